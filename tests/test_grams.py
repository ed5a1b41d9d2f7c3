"""One contract for every representation of a Gram matrix, and every estimator as a function of any of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sketches import gram_of_features
from sklearn.base import clone
from tables import MEANS, sample

import muhat as mh
from muhat.grams import MatrixGram, PairGram, RowsGram

Z = sample(30, 4, seed=1)
K = Z @ Z.T
COUNTS = np.r_[np.ones(20), np.full(10, 2.0)]
LINEAR = mh.Linear()


class FactorGram(PairGram):
    """K = ZZᵀ from Z alone: what a representation of one's own has to define."""

    kind, kernel = "a factor", None

    def __init__(self, Z, counts=None):
        self.points, self.counts = Z, counts

    def diagonal(self):
        return (self.points**2).sum(axis=1)

    def dense(self, arrays=2, *, own=False):
        return self.points @ self.points.T

    def matmul(self, W):
        return self.points @ (self.points.T @ W)

    def column(self, i):
        return self.points @ self.points[i]

    def take(self, index, counts=None):
        return FactorGram(self.points[index], counts)


PAIRS = {
    "matrix": lambda counts=None: MatrixGram(K, counts),
    "rows": lambda counts=None: RowsGram(LINEAR, Z, counts),
    "factor": lambda counts=None: FactorGram(Z, counts),
}
every_pair = pytest.mark.parametrize("gram", PAIRS.values(), ids=PAIRS)
weighted = pytest.mark.parametrize("counts", [None, COUNTS], ids=["once", "counted"])


def estimator(name):
    found = clone(MEANS[name].estimator)
    return found.set_params(target=None) if "target" in found.get_params() else found


@every_pair
@weighted
def test_operations_are_those_of_the_matrix(gram, counts):
    G, w = gram(counts), np.linspace(-1, 1, 30)
    share = np.full(30, 1 / 30) if counts is None else counts / counts.sum()
    assert G.n == (30 if counts is None else 40)
    assert_allclose(G.averages(), [G.n, share @ np.diag(K), share @ K @ share], rtol=1e-12)
    assert_allclose(G.average(0.5), 0.5 * share)
    assert_allclose(G.diagonal(), np.diag(K))
    assert_allclose(G.matmul(w), K @ w, atol=1e-12)
    assert_allclose(G.squared_norm(w), w @ K @ w)
    assert_allclose(G.column(7), K[7], atol=1e-14)
    assert_allclose(G.take([3, 3, 5], COUNTS[:3]).dense(), K[np.ix_([3, 3, 5], [3, 3, 5])], atol=1e-14)
    G.dense(own=True)[:] = 0.0
    assert_allclose(G.dense(), K, atol=1e-14)


@pytest.mark.parametrize("name", MEANS)
@every_pair
@weighted
def test_an_estimate_does_not_depend_on_the_representation(gram, name, counts):
    want = estimator(name).estimate_weighted(MatrixGram(K, counts))
    found = estimator(name).estimate_weighted(gram(counts))
    assert_allclose(found.weights, want.weights, atol=1e-8)  # of rank 4: what solvers leave undetermined is rounding
    assert_allclose(found.loo_score, want.loo_score, rtol=1e-8)


OF_FEATURES = [name for name in MEANS if name.startswith(("kernel_mean", "shrunk", "adaptive"))] + [
    f"spectral{setting}" for setting in ("", "_theorem4", "_fixed", "_nested", "_nested_fixed")
]


@pytest.mark.parametrize("name", OF_FEATURES)
def test_sums_of_features_give_the_same_element(name):
    found, want = (estimator(name).estimate(G) for G in (gram_of_features(Z), MatrixGram(K)))
    assert_allclose(found.weights, Z.T @ want.weights, atol=1e-8)
    assert_allclose(found.loo_score, want.loo_score, rtol=1e-8)


@pytest.mark.parametrize("name", sorted(MEANS.keys() - set(OF_FEATURES)))
def test_estimates_that_need_the_matrix_refuse_sums_of_features(name):
    with pytest.raises(ValueError, match=r"features.*[uU]se .*(Tikhonov|ShrunkKernelMean)\(\)"):
        estimator(name).estimate(gram_of_features(Z))


@pytest.mark.parametrize("counts", [None, np.arange(30) % 3.0], ids=["once", "some absent"])
@pytest.mark.parametrize("mean", [mh.ShrunkKernelMean, mh.AdaptiveKernelMean], ids=lambda each: each.__name__)
def test_a_target_in_the_space_of_a_matrix(mean, counts):
    """Rows that are left out or repeated stay points of the one space."""
    target = 0.5 * mh.KernelMean("precomputed").fit(K).mean_
    by_matrix = mean("precomputed", target=target).fit(K, sample_weight=counts)
    by_rows = mean(LINEAR, target=0.5 * mh.KernelMean(LINEAR).fit(Z).mean_).fit(Z, sample_weight=counts)
    assert_allclose(by_matrix.weights_, by_rows.weights_, atol=1e-8)


def test_an_estimate_that_repeats_rows_takes_no_counts():
    for mean in (mh.AdaptiveKernelMean(), mh.MedianOfMeans(random_state=0)):
        with pytest.raises(ValueError, match=r"counts cannot be used .* G\.take"):
            mean.estimate(MatrixGram(K, COUNTS))

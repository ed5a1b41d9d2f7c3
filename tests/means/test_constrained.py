"""Weights that sum to one, against the optimality conditions, every support and every deletion."""

import itertools

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import null_space
from scipy.optimize import nnls
from sklearn.base import clone
from tables import KERNELS, data_sets, sample

import muhat as mh
from muhat.means.constrained import ConstrainedKernelMean, affine_weights, simplex_weights

DATA = data_sets()
ALPHAS = [0.0, 1e-12, 0.1, 0.5, 1.0]
PROGRAMMES = {"affine": affine_weights, "simplex": simplex_weights}
every_programme = pytest.mark.parametrize("name", PROGRAMMES)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_data_set = pytest.mark.parametrize("data", DATA)


def objective(K, beta, alpha):
    """‖Σβφ − (1−α)μ̂‖²."""
    residual = beta - (1 - alpha) / len(K)
    return residual @ K @ residual


def half_gradient(K, beta, alpha):
    return K @ beta - (1 - alpha) * K.mean(axis=1)


# ---------------------------------------------------------------- the programmes


@every_data_set
@every_kernel
def test_optimality(kernel, data):
    """No row lies on the near side of the mean: the gap ⟨g − target, g − φᵢ⟩ bounds what any other β could gain."""
    K = KERNELS[kernel](DATA[data])
    for alpha in ALPHAS:
        beta = simplex_weights(K, alpha)
        assert beta.min() >= 0
        assert_allclose(beta.sum(), 1, rtol=1e-12)
        slope = half_gradient(K, beta, alpha)
        assert (beta @ slope - slope).max() <= 1e-13 * np.abs(K).max()
        free = affine_weights(K, alpha)
        assert_allclose(free.sum(), 1, rtol=1e-12 * np.abs(free).max())
        slope = half_gradient(K, free, alpha)
        assert np.ptp(slope) <= 1e-7 * np.abs(K).max()  # a direction of relative norm ε counts as none: √ε of slope
        assert objective(K, free, alpha) <= objective(K, beta, alpha) + 1e-13 * np.abs(K).max()


def best_of_all_supports(K, alpha):
    best = np.inf
    for size in range(1, len(K) + 1):
        for support in map(list, itertools.combinations(range(len(K)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[-1, -1] = K[np.ix_(support, support)], 0.0
            right = np.append((1 - alpha) * K[support].mean(axis=1), 1.0)
            beta = np.zeros(len(K))
            beta[support] = np.linalg.lstsq(system, right)[0][:size]
            if beta.min() >= 0:
                best = min(best, objective(K, beta, alpha))
    return best


@pytest.mark.parametrize("kernel", ["linear", "polynomial2", "gaussian", "laplace"])
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_the_best_of_all_supports(kernel, alpha):
    K = KERNELS[kernel](sample(7, 2, seed=1))
    assert_allclose(
        objective(K, simplex_weights(K, alpha), alpha), best_of_all_supports(K, alpha), atol=1e-12 * K.max()
    )


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_the_closed_form(alpha):
    K = KERNELS["laplace"](sample(9, 3, seed=1))
    flat = np.linalg.solve(K, np.ones(9))
    assert_allclose(affine_weights(K, alpha), (1 - alpha) / 9 + alpha * flat / flat.sum(), atol=1e-12)


def shortest(X, beta):
    """The least ‖β‖ of those with the same Σβ, Σβx and β ≥ 0, as a least distance programme (Lawson and Hanson)."""
    null = null_space(np.vstack([X.T, np.ones(len(X))]))
    base = beta - null @ (null.T @ beta)
    system = np.vstack([null.T, -base])
    last = np.eye(len(system))[-1]
    residual = system @ nnls(system, last)[0] - last
    return base - null @ residual[:-1] / residual[-1]


@pytest.mark.parametrize("seed", range(10))
def test_of_several_the_nearest_to_equal_weights(seed):
    X = sample(10, 2, seed=seed)
    K = X @ X.T
    for alpha in (0.3, 0.8):
        beta = simplex_weights(K, alpha)
        assert_allclose(beta, shortest(X, beta), atol=1e-11)
        free = affine_weights(K, alpha)
        null = null_space(np.vstack([X.T, np.ones(10)]))
        assert np.abs(null.T @ free).max() <= 1e-11


@pytest.mark.parametrize("seed", [0, 3, 12, 18, 27, 36])
def test_rounding_makes_no_weight_negative(seed):
    """Whole numbers lie on the boundary of the programme, where a step that takes off rounding may cross it."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 15), rng.integers(1, 4)
    K = mh.Polynomial(2)(np.round(rng.normal(size=(n, d))))
    for alpha in (0.1, 0.5, 1.0):
        beta = simplex_weights(K, alpha)
        assert (beta >= 0).all()
        assert_allclose(beta.sum(), 1, rtol=1e-12)


@every_programme
def test_equal_rows_get_equal_weights(name):
    X = np.repeat(sample(4, 2, seed=1), 3, axis=0)
    beta = PROGRAMMES[name](KERNELS["gaussian"](X), 0.7).reshape(4, 3)
    assert np.ptp(beta, axis=1).max() <= 1e-12
    assert np.ptp(beta[:, 0]) > 0.01


@every_programme
def test_nothing_to_choose_is_the_plain_average(name):
    programme = PROGRAMMES[name]
    assert_array_equal(programme(np.array([[2.0]]), 0.5), [1.0])
    for K in (np.zeros((4, 4)), np.ones((4, 4)), 1e300 * np.ones((4, 4)), 1e-300 * np.eye(4)):
        assert_allclose(programme(K, 0.5), 0.25, rtol=1e-14)
    K = KERNELS["gaussian"](sample(8, 1, seed=1))
    assert_allclose(programme(K, 0.0), 1 / 8, rtol=1e-15)


# ---------------------------------------------------------------- the estimator

BOTH = {"simplex": ConstrainedKernelMean(shrinkage=0.5), "affine": ConstrainedKernelMean(nonnegative=False)}
both = pytest.mark.parametrize("mean", BOTH.values(), ids=BOTH)
X = sample(9, 3, seed=1)
KERNEL = mh.Gaussian(1.5)


def test_shrinkage_is_that_of_simple_shrinkage():
    fitted = ConstrainedKernelMean(KERNEL).fit(X)
    assert_allclose(fitted.shrinkage_, mh.ShrunkKernelMean(KERNEL).fit(X).shrinkage_, rtol=1e-12)
    assert_array_equal(fitted.weights_, simplex_weights(KERNEL(X), fitted.shrinkage_))


@both
@pytest.mark.parametrize("data", ["generic", "duplicates", "two_points", "two_equal_points", "low_rank"])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_the_score_is_that_of_deletion(mean, kernel, data):
    rows, k = DATA[data], KERNELS[kernel]
    fitted = clone(mean).set_params(kernel=k).fit(rows)
    K, programme = k(rows), simplex_weights if fitted.nonnegative else affine_weights
    B = oracles.refits(K, lambda part: programme(part, fitted.shrinkage_))
    expected = oracles.scaled_score(K, *oracles.pieces(K, B))
    assert_allclose(fitted.loo_score_, expected, rtol=1e-9, atol=1e-12 * np.trace(K))


def test_fractions_of_rows():
    weights = np.array([0.5, *np.ones(7), 2.5])
    fitted = ConstrainedKernelMean(KERNEL, 0.5).fit(X, sample_weight=weights)
    assert_allclose(fitted.weights_, simplex_weights(KERNEL(X), 0.5, weights))
    with pytest.raises(ValueError, match=r"sample_weight=0\.5 is too small for loo_score_"):
        _ = fitted.loo_score_

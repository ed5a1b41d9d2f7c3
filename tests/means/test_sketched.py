"""Mean estimators by features: all at once, and a block at a time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import muhat as mh

KERNEL = mh.Gaussian(2.0)
ESTIMATORS = {
    "plain": mh.KernelMean(KERNEL),
    "shrunk": mh.ShrunkKernelMean(KERNEL),
    "shrunk by a number": mh.ShrunkKernelMean(KERNEL, shrinkage=0.3),
    "theorem 4": mh.SpectralKernelMean(KERNEL, lam="theorem4"),
    "deletion": mh.SpectralKernelMean(KERNEL),
    "nested": mh.SpectralKernelMean(KERNEL, scale="loo"),
    "given": mh.SpectralKernelMean(KERNEL, lam=2.0, scale=0.9),
    "given, scale by deletion": mh.SpectralKernelMean(KERNEL, lam=2.0, scale="loo"),
}
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)


def sample(n: int = 120, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)) + 0.5


@every_estimator
def test_all_rows_as_landmarks_equal_the_exact_estimate(estimator):
    X = sample()
    exact = clone(estimator).fit(X)
    found = clone(estimator).set_params(features=mh.Nystroem(n_components=120)).fit(X)
    assert found.solver_ == "features"
    assert found.n_rows_seen_ == 120
    assert found.mean_.distance(exact.mean_) <= 1e-6 * exact.mean_.norm()  # Gram matrices of features square rounding
    if "given" not in ESTIMATORS or estimator is not ESTIMATORS["given"]:
        assert_allclose(found.loo_score_, exact.loo_score_, rtol=1e-7)


@every_estimator
def test_blocks_in_any_number_give_the_same(estimator):
    X = sample()
    features = mh.Nystroem(KERNEL, n_components=20, random_state=0).fit(X)
    whole = clone(estimator).set_params(features=features).fit(X)
    parts = clone(estimator)
    parts.features = features
    for block in np.array_split(X, 7):
        parts.partial_fit(block)
    assert parts.mean_.distance(whole.mean_) <= 1e-9
    assert parts.n_rows_seen_ == len(X)
    again = pickle.loads(pickle.dumps(parts)).partial_fit(sample(5, seed=1))
    assert again.n_rows_seen_ == len(X) + 5


def test_a_stream_comes_close_to_the_truth():
    P = mh.paper_mixture(5, random_state=0)
    kernel = mh.Gaussian(15.0)
    mean = mh.ShrunkKernelMean(kernel, features=mh.Nystroem(n_components=150, landmarks="k-means++", random_state=0))
    for seed in range(20):
        mean.partial_fit(P.sample(500, random_state=seed))
    truth = mh.embed(kernel, P)
    one_block = mh.KernelMean(kernel).fit(P.sample(500, random_state=0)).mean_
    assert mean.mean_.distance(truth) < 0.6 * one_block.distance(truth)


def test_fit_forgets_what_was_before():
    X = sample()
    mean = mh.KernelMean(KERNEL, features=mh.Nystroem(n_components=20, random_state=0))
    assert mean.partial_fit(X).fit(X).n_rows_seen_ == len(X)


BAD = [
    ({"features": mh.Fourier()}, "features=Fourier"),
    ({"features": mh.Nystroem(n_components=5), "target": mh.embed(KERNEL, sample(3))}, "target="),
    ({"features": mh.Nystroem(n_components=5), "kernel": "precomputed"}, "kernel object"),
    ({"features": mh.Nystroem(n_components=5), "shrinkage": 2.0}, "shrinkage=2.0"),
    ({"features": mh.Nystroem(n_components=500)}, "500"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(parameters, message):
    with pytest.raises(ValueError, match=message):
        mh.ShrunkKernelMean(**{"kernel": KERNEL, **parameters}).fit(sample(20))


def test_other_filters_and_weights_are_refused():
    features = mh.Nystroem(n_components=5)
    with pytest.raises(ValueError, match="Tikhonov"):
        mh.SpectralKernelMean(KERNEL, filter=mh.TruncatedSVD(), features=features).fit(sample(20))
    with pytest.raises(ValueError, match="equal weight"):
        mh.KernelMean(KERNEL, features=features).fit(sample(20), sample_weight=np.full(20, 2.0))


def test_a_wrong_width_later_is_refused_and_partial_fit_is_hidden_without_features():
    mean = mh.KernelMean(KERNEL, features=mh.Nystroem(n_components=5)).partial_fit(sample(20))
    with pytest.raises(ValueError, match="features"):
        mean.partial_fit(sample(20, d=4))
    assert not hasattr(mh.KernelMean(KERNEL), "partial_fit")
    with pytest.raises(AttributeError, match="score is unknown"):
        _ = mh.SpectralKernelMean(KERNEL, lam=2.0, features=mh.Nystroem(n_components=5)).fit(sample(20)).loo_score_

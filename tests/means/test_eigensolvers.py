"""The low-rank solver against the dense one, its certificate, and the memory budget."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import muhat as mh
from muhat.linalg.resources import check_memory, free_memory
from muhat.means import eigensolvers

KERNELS = {
    "linear": 1.0 * mh.Linear(),  # a multiple offers no features: here the factor is Cholesky's
    "polynomial": 1.0 * mh.Polynomial(2),
    "gaussian": mh.Gaussian(2.0),
    "scaled": 1e12 * mh.Gaussian(2.0),
    "laplace": mh.Laplace(20.0),
}


def sample(n: int = 200, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)) + 0.5


@pytest.fixture
def small_ranks(monkeypatch):
    monkeypatch.setattr(eigensolvers, "FIRST_RANK", 8)


@pytest.mark.usefixtures("small_ranks")
@pytest.mark.parametrize("lam", ["loo", "theorem4", 3.0])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_certificate_bounds_the_error(kernel, lam):
    X = sample()
    found = mh.SpectralKernelMean(kernel, lam=lam, solver="low-rank", tol=1e-3).fit(X)
    exact = mh.SpectralKernelMean(kernel, lam=found.lam_, solver="dense").fit(X)
    error = found.mean_.distance(exact.mean_) / found.mean_.norm()
    assert error <= found.spectrum_error_ + 1e-12
    assert found.spectrum_error_ <= 1e-3
    assert exact.spectrum_error_ == 0


@pytest.mark.usefixtures("small_ranks")
def test_more_rank_for_less_tolerance():
    X = sample()
    ranks = [mh.SpectralKernelMean(mh.Gaussian(2.0), solver="low-rank", tol=tol).fit(X).rank_ for tol in (1e-2, 1e-5)]
    assert ranks[0] < ranks[1]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_full_rank_equals_dense(kernel, monkeypatch):
    monkeypatch.setattr(eigensolvers, "FIRST_RANK", 60)
    X = sample(60)
    dense = mh.SpectralKernelMean(kernel, scale="loo", solver="dense").fit(X)
    found = mh.SpectralKernelMean(kernel, scale="loo", solver="low-rank").fit(X)
    assert_allclose(found.loo_score_, dense.loo_score_, rtol=1e-9)
    assert found.mean_.distance(dense.mean_) <= 1e-8 * dense.mean_.norm()


FEW_FEATURES = {
    "linear": mh.Linear(),
    "quadratic": mh.Polynomial(2),
    "cubic": mh.Polynomial(3, 0.5),
    "homogeneous": mh.Polynomial(2, 0.0),
}
CHOICES = {
    "deletion": {},
    "theorem 4": {"lam": "theorem4"},
    "given": {"lam": 3.0},
    "scaled": {"scale": "loo"},
    "average": {"lam": 0.0},
    "zero": {"lam": np.inf},
}


def assert_same_fit(found, dense):
    assert (found.solver_, dense.solver_) == ("low-rank", "dense")
    assert (found.rank_, found.spectrum_error_) == (dense.rank_, 0.0)
    assert_allclose([found.lam_, found.scale_], [dense.lam_, dense.scale_], rtol=1e-8)
    assert_allclose(found.weights_, dense.weights_, rtol=0, atol=1e-8 / len(dense.weights_))
    assert_allclose(found.loo_score_, dense.loo_score_, rtol=1e-10)
    assert found.mean_.distance(dense.mean_) <= 1e-10 * dense.mean_.norm()


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("kernel", FEW_FEATURES.values(), ids=FEW_FEATURES)
def test_few_exact_features_equal_the_whole_spectrum(kernel, choice):
    for X in (sample(120), np.repeat(sample(30), 4, axis=0), sample(120) * [1.0, 1.0, 0.0]):
        dense = mh.SpectralKernelMean(kernel, **choice, solver="dense").fit(X)
        assert_same_fit(mh.SpectralKernelMean(kernel, **choice).fit(X), dense)


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_exact_features_take_weights(choice):
    X, counts = sample(60), np.random.default_rng(1).integers(0, 4, size=60).astype(float)
    for kernel in (mh.Linear(), mh.Polynomial(2)):
        dense = mh.SpectralKernelMean(kernel, **choice, solver="dense").fit(X, sample_weight=counts)
        assert_same_fit(mh.SpectralKernelMean(kernel, **choice).fit(X, sample_weight=counts), dense)


def test_auto_is_dense_where_features_are_many_or_the_filter_needs_all():
    linear = mh.Linear()
    assert mh.SpectralKernelMean(linear).fit(sample(12)).solver_ == "low-rank"
    assert mh.SpectralKernelMean(linear).fit(sample(11)).solver_ == "dense"
    assert mh.SpectralKernelMean(linear, filter=mh.TruncatedSVD(), lam=1.0).fit(sample(12)).solver_ == "dense"
    assert mh.SpectralKernelMean("precomputed").fit(linear(sample(12))).solver_ == "dense"


def test_a_zero_matrix_has_the_plain_average():
    for n in (5, 50):
        found = mh.SpectralKernelMean(mh.Linear(), solver="low-rank").fit(np.zeros((n, 3)))
        assert_allclose(found.weights_, np.full(n, 1 / n), rtol=1e-15)
        assert found.loo_score_ == 0.0


def test_exact_features_are_refused_where_they_do_not_fit():
    with pytest.raises(MemoryError, match=r"2,000 rows at rank 3 would need 9.79 MB and 5 MB may be used"):
        mh.SpectralKernelMean(mh.Linear(), memory_limit=5e6).fit(sample(2000))


def test_the_score_counts_what_is_left_out():
    X = sample(300)
    kernel = mh.Gaussian(1.0)
    dense = mh.SpectralKernelMean(kernel, lam=2.0, solver="dense").fit(X)
    found = mh.SpectralKernelMean(kernel, lam=2.0, solver="low-rank", tol=1e-2).fit(X)
    assert_allclose(found.loo_score_, dense.loo_score_, rtol=1e-4)


def test_auto_says_what_it_took(monkeypatch):
    monkeypatch.setattr(eigensolvers, "MAX_ROWS_FOR_WHOLE_SPECTRUM", 100)
    assert mh.SpectralKernelMean(mh.Gaussian(3.0)).fit(sample(100)).solver_ == "dense"
    assert mh.SpectralKernelMean(mh.Gaussian(3.0)).fit(sample(101)).solver_ == "low-rank"
    assert (
        mh.SpectralKernelMean(mh.Gaussian(3.0), filter=mh.IteratedTikhonov(), lam=1.0).fit(sample(101)).solver_
        == "dense"
    )


@pytest.mark.parametrize("mean", [mh.SpectralKernelMean(), mh.AdaptiveKernelMean()], ids=repr)
def test_rows_that_would_take_hours_are_refused(mean, monkeypatch):
    """At once, with what to do, unless the low rank was asked for by name."""
    monkeypatch.setattr(eigensolvers, "MAX_ROWS_FOR_WHOLE_SPECTRUM", 100)
    monkeypatch.setattr(eigensolvers, "MAX_ROWS_TO_CERTIFY", 200)
    with pytest.raises(ValueError, match=r"201 rows would take 4e\+04 kernel values .*MeanSketch"):
        mean.fit(sample(201))
    assert mean.set_params(solver="low-rank", tol=0.1).fit(sample(201)).solver_ == "low-rank"


def test_a_small_budget_moves_auto_to_low_rank():
    fitted = mh.SpectralKernelMean(mh.Gaussian(20.0), memory_limit=1.2e7).fit(sample(800))
    assert fitted.solver_ == "low-rank"


def test_auto_is_dense_where_no_rank_suffices(monkeypatch):
    monkeypatch.setattr(eigensolvers, "MAX_ROWS_FOR_WHOLE_SPECTRUM", 100)
    X = sample(300)
    found = mh.SpectralKernelMean(mh.Gaussian(0.05), lam=1.0).fit(X)
    assert found.solver_ == "dense"
    assert_allclose(found.weights_, mh.SpectralKernelMean(mh.Gaussian(0.05), lam=1.0, solver="dense").fit(X).weights_)


def test_what_cannot_be_met_is_said():
    with pytest.raises(ValueError, match=r"tol=1e-08 cannot be met: at rank .* Raise tol"):
        mh.SpectralKernelMean(mh.Gaussian(0.05), lam=1.0, solver="low-rank", tol=1e-8).fit(sample(600))


def test_too_much_memory_is_refused_before_it_is_taken():
    with pytest.raises(MemoryError, match=r"400 rows would need 5.12 MB and 1 MB may be used; .*low-rank"):
        mh.SpectralKernelMean(solver="dense", memory_limit=1e6).fit(sample(400))
    with pytest.raises(MemoryError, match="rank 256"):
        mh.SpectralKernelMean(solver="low-rank", memory_limit=1e6).fit(sample(400))
    with pytest.raises(MemoryError, match=r"1e\+09 TB"):
        check_memory(1e21, None, "this", "do less")
    assert 0 < free_memory() < 1e18

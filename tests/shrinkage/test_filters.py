"""Spectral filters through the estimator, against literal iterations and refits."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from tables import FILTERS, data_sets, gram

import muhat as mh

DATA = data_sets()
# Relative to the largest eigenvalue; none makes a step count a tie of the rounding.
RATIOS = (0.013, 0.07, 0.31, 0.9, 1.7)

every_filter = pytest.mark.parametrize("name", FILTERS)
every_data_set = pytest.mark.parametrize("data", DATA)
OTHERS = [("linear", "low_rank"), ("polynomial2", "low_rank")]
every_gram = pytest.mark.parametrize(("kernel", "data"), [*(("gaussian", data) for data in DATA), *OTHERS])


def oracle_weights(name, lam, top):
    """K -> weights. ``top`` is the largest eigenvalue of the whole matrix: refits keep its step length, as
    they keep lam, else leaving a point out would also change the amount of regularisation."""
    factors = {
        "tikhonov": lambda g: oracles.tikhonov_factor(g, lam),
        "iterated_tikhonov": lambda g: oracles.iterated_tikhonov_factor(g, lam, 2),
        "iterated_tikhonov_5": lambda g: oracles.iterated_tikhonov_factor(g, lam, 5),
        "truncated_svd": lambda g: oracles.truncated_factor(g, lam),
    }
    if name in factors:
        return lambda K: oracles.filtered_weights(K, factors[name])
    if name == "landweber":
        return lambda K: oracles.landweber_weights(K, 1 / top, round(top / lam))
    return lambda K: oracles.nu_method_weights(K, 1 / top, round(np.sqrt(top / lam)), FILTERS[name].nu)


def fit(name, K, lam, **settings):
    return mh.SpectralKernelMean(kernel="precomputed", filter=FILTERS[name], lam=float(lam), **settings).fit(K)


def prepared(kernel, data, ratio):
    K = gram(kernel, DATA[data])
    top = np.linalg.eigvalsh(K)[-1]
    return K, ratio * top, top


# ---------------------------------------------------------------- weights


@every_gram
@every_filter
def test_weights(name, kernel, data):
    for ratio in RATIOS:
        K, lam, top = prepared(kernel, data, ratio)
        want = oracle_weights(name, lam, top)(K)
        assert_allclose(fit(name, K, lam).weights_, want, rtol=0, atol=1e-10 / len(K))


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_steps", [1, 2, 3, 7, 20])
def test_nu_method_residual_is_a_jacobi_polynomial(n_steps, nu):
    """On a diagonal Gram matrix each weight shows its own residual: n beta_k = h(g_k)."""
    d = np.linspace(0, 1, 9)
    g = 3.0 * d
    estimator = mh.SpectralKernelMean(kernel="precomputed", filter=mh.NuMethod(nu=nu), lam=float(g[-1] / n_steps**2))
    residual = 1 - len(d) * estimator.fit(np.diag(g)).weights_
    assert_allclose(residual, oracles.nu_method_residual(d, n_steps, nu), rtol=0, atol=1e-10)


def test_truncation_keeps_an_eigenvalue_equal_to_lam():
    """1{g >= lam}: eigenvalues of a diagonal matrix are exact, also in the refits."""
    K = np.diag([1.0, 2.0, 4.0])
    fitted = fit("truncated_svd", K, 2.0)
    assert_allclose(fitted.weights_, [0, 1 / 3, 1 / 3], rtol=0, atol=1e-15)
    B = oracles.refits(K, oracle_weights("truncated_svd", 2.0, 4.0))
    assert_allclose(fitted.loo_score_, oracles.residuals(K, B).mean(), rtol=1e-10)


# ---------------------------------------------------------------- leave-one-out


@every_gram
@every_filter
def test_deletion_scores(name, kernel, data):
    for ratio in RATIOS:
        K, lam, top = prepared(kernel, data, ratio)
        B = oracles.refits(K, oracle_weights(name, lam, top))
        score, mean_diag = fit(name, K, lam).loo_score_, np.trace(K) / len(K)
        assert_allclose(score, oracles.residuals(K, B).mean(), rtol=0, atol=1e-10 * mean_diag)


@every_filter
def test_best_scale(name):
    K, lam, top = prepared("gaussian", "generic", 0.07)
    p, Q = oracles.pieces(K, oracles.refits(K, oracle_weights(name, lam, top)))
    fitted = fit(name, K, lam, scale="loo")
    assert_allclose(fitted.loo_score_, oracles.scaled_score(K, p, Q, "loo"), rtol=0, atol=1e-10)
    assert_allclose(fitted.weights_, fitted.scale_ * fit(name, K, lam).weights_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@every_filter
def test_the_search_reports_the_score_of_what_it_chose(name, kernel):
    for data in ("generic", "low_rank", "duplicates", "two_points", "centred"):
        K = gram(kernel, DATA[data])
        top, mean_diag = np.linalg.eigvalsh(K)[-1], np.trace(K) / len(K)
        fitted = mh.SpectralKernelMean(kernel="precomputed", filter=FILTERS[name]).fit(K)
        limits = (fit(name, K, 0.0).loo_score_, fit(name, K, np.inf).loo_score_)
        assert fitted.loo_score_ <= min(limits) + 1e-12 * mean_diag
        for ratio in RATIOS:
            assert fitted.loo_score_ <= fit(name, K, ratio * top).loo_score_ + 1e-12 * mean_diag
        again = fit(name, K, fitted.lam_)
        assert_allclose(fitted.loo_score_, again.loo_score_, rtol=0, atol=1e-12 * mean_diag)
        assert_allclose(fitted.weights_, again.weights_, rtol=0, atol=1e-12)

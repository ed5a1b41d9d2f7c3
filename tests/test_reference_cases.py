"""Reference cases from 60-digit arithmetic, through the public API."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_array_equal
from reference_cases import assert_close, assert_weights, every_case, kernel_of, mixture_of

import muhat as mh
from muhat.shrinkage.scores import deletion_scores, simple_scores, theorem4_scores

RULES = {"loo": ("f_lambda_deletion", "deletion"), "theorem4": ("f_lambda_theorem4", "theorem4")}
every_rule = pytest.mark.parametrize("rule", RULES)


def points(case):
    return np.array(case["X"])


def spectral(case, lam):
    return mh.SpectralKernelMean(kernel=kernel_of(case), lam=lam).fit(points(case))


def loss(element, case):
    return element.distance(mh.embed(kernel_of(case), mixture_of(case))) ** 2


def size_of_loss(case):
    """The terms whose difference a loss is."""
    return case["rho"] + case["mixture"]["mu_norm2"]


# ---------------------------------------------------------------- kernel and data


@every_case
def test_gram_matrix(case):
    kernel, X = kernel_of(case), points(case)
    np.testing.assert_allclose(kernel(X, X), case["K"], rtol=1e-10, atol=1e-14 * case["varrho"])
    np.testing.assert_allclose(kernel(X), case["K"], rtol=1e-10, atol=1e-14 * case["varrho"])
    np.testing.assert_allclose(kernel.diag(X), np.diag(case["K"]), rtol=1e-10)
    assert_close(kernel(np.array(case["X_test"]), X), case["L"], case["varrho"])


@every_case
def test_median_bandwidth(case):
    X = points(case)
    if case["sigma2_median"] == 0:
        with pytest.raises(ValueError, match="bandwidth"):
            mh.Gaussian().resolve(X)
    else:
        assert_close(mh.Gaussian().resolve(X).bandwidth ** 2, case["sigma2_median"], 0)


@every_case
def test_rank(case):
    K = kernel_of(case)(points(case))
    assert np.linalg.matrix_rank(K, tol=1e-10 * case["varrho"]) == case["rank"]


# ---------------------------------------------------------------- KME


@every_case
def test_plain_mean(case):
    fitted = mh.KernelMean(kernel=kernel_of(case)).fit(points(case))
    n, size = case["n"], case["varrho"]
    assert_array_equal(fitted.weights_, np.full(n, 1 / n))
    assert_close(fitted.mean_.norm() ** 2, case["rho"], size)
    assert_close(fitted.kernel_.diag(points(case)).mean(), case["varrho"], 0)
    offdiag = (n * fitted.mean_.norm() ** 2 - fitted.kernel_.diag(points(case)).mean()) / (n - 1)
    assert_close(offdiag, case["offdiag_mean"], 10 * size)
    assert_close(fitted.loo_score_, case["f_loocv_limit_lam0"], size)
    assert_close(loss(fitted.mean_, case), case["loss"]["KME"], size_of_loss(case))


# ---------------------------------------------------------------- S-KMSE


@every_case
def test_simple_shrinkage(case):
    fitted = mh.ShrunkKernelMean(kernel=kernel_of(case)).fit(points(case))
    assert_close(fitted.shrinkage_, case["alpha_clipped"], 1.0)
    assert_weights(fitted.weights_, case["s_weights"])
    assert_close(loss(fitted.mean_, case), case["loss"]["S"], size_of_loss(case))
    best = simple_scores(np.array(case["K"]), [case["alpha_clipped"]])[0]
    assert_close(fitted.loo_score_, best, case["varrho"])


@every_case
def test_zero_shrinkage_weights_are_exact(case):
    """Where alpha* >= 1 rounding must not leave a remnant of the mean."""
    fitted = mh.ShrunkKernelMean(kernel=kernel_of(case)).fit(points(case))
    if case["alpha_star"] > 1 + 1e-9:
        assert_array_equal(fitted.weights_, np.zeros(case["n"]))
    if case["alpha_star"] == 0:
        assert_weights(fitted.weights_, np.full(case["n"], 1 / case["n"]))


@every_case
def test_unclipped_shrinkage(case):
    """Theorem 3 read literally: a fixed shrinkage outside [0, 1] is refused, its element still has a loss."""
    X, alpha = points(case), case["alpha_star"]
    assert_close(oracles.simple_shrinkage(np.array(case["K"])), alpha, 1.0)
    if case["lambda_star_is_infinite"]:
        assert alpha == 1
    else:
        assert_close(alpha, case["lambda_star"] / (1 + case["lambda_star"]), 1.0)
    assert_weights((1 - alpha) * np.full(case["n"], 1 / case["n"]), case["s_weights_unclipped"])
    element = mh.embed(kernel_of(case), X, weights=case["s_weights_unclipped"])
    assert_close(loss(element, case), case["loss"]["S_unclipped"], size_of_loss(case))
    if alpha > 1 + 1e-9:
        with pytest.raises(ValueError, match="shrinkage"):
            mh.ShrunkKernelMean(kernel=kernel_of(case), shrinkage=alpha).fit(X)


@every_case
def test_simple_scores(case):
    alphas, scores = zip(*[(row["alpha"], row["score"]) for row in case["s_loocv"]], strict=True)
    assert_close(simple_scores(np.array(case["K"]), alphas), scores, case["varrho"])
    for alpha, score in zip(alphas, scores, strict=True):
        fitted = mh.ShrunkKernelMean(kernel=kernel_of(case), shrinkage=alpha).fit(points(case))
        assert_close(fitted.loo_score_, score, case["varrho"])


# ---------------------------------------------------------------- F-KMSE


@every_case
def test_spectral_weights(case):
    for row in case["f_weights"]:
        fitted = spectral(case, row["lam"])
        assert fitted.lam_ == row["lam"]
        assert_weights(fitted.weights_, row["weights"])
        assert_close(loss(fitted.mean_, case), row["loss"], size_of_loss(case))


@every_case
def test_spectral_scores(case):
    K, lams = np.array(case["K"]), [row["lam"] for row in case["f_loocv"]]
    deletion = [row["deletion"] for row in case["f_loocv"]]
    assert_close(deletion_scores(K, lams), deletion, case["varrho"])
    assert_close(theorem4_scores(K, lams), [row["theorem4"] for row in case["f_loocv"]], case["varrho"])
    assert_close(np.mean([row["deletion_per_point"] for row in case["f_loocv"]], axis=1), deletion, 0)
    for lam, score in zip(lams, deletion, strict=True):
        assert_close(spectral(case, lam).loo_score_, score, case["varrho"])


@every_case
def test_limits(case):
    limits = [case["f_loocv_limit_lam0"], case["f_loocv_limit_laminf"]]
    for scores in (deletion_scores, theorem4_scores):
        assert_close(scores(np.array(case["K"]), [0.0, np.inf]), limits, case["varrho"])
    n = case["n"]
    assert_array_equal(spectral(case, 0.0).weights_, np.full(n, 1 / n))
    assert_array_equal(spectral(case, np.inf).weights_, np.zeros(n))
    assert_close(loss(spectral(case, np.inf).mean_, case), case["mixture"]["mu_norm2"], 0)


@every_rule
@every_case
def test_chosen_lam(case, rule):
    want, fitted = case[RULES[rule][0]], spectral(case, rule)
    assert_close(fitted.loo_score_, want["score"], case["varrho"])
    if want["where"] == "boundary":
        assert fitted.lam_ == float(want["lam"])
        weight = 1 / case["n"] if fitted.lam_ == 0 else 0.0
        assert_array_equal(fitted.weights_, np.full(case["n"], weight))
        return
    assert 0 < fitted.lam_ < np.inf
    assert_weights(fitted.weights_, want["weights"])
    np.testing.assert_allclose(loss(fitted.mean_, case), want["loss"], rtol=1e-8)


@every_rule
@every_case
def test_chosen_lam_from_a_gram_matrix(case, rule):
    fitted = mh.SpectralKernelMean(kernel="precomputed", lam=rule).fit(np.array(case["K"]))
    assert_close(fitted.loo_score_, case[RULES[rule][0]]["score"], case["varrho"])
    np.testing.assert_allclose(fitted.weights_, spectral(case, rule).weights_, rtol=0, atol=1e-8 / case["n"])


# ---------------------------------------------------------------- the truth


@every_case
def test_mixture_embedding(case):
    truth, stated = mh.embed(kernel_of(case), mixture_of(case)), case["mixture"]
    size = np.sqrt(case["varrho"] * stated["mu_norm2"])
    assert_close(truth(points(case)), stated["mu_at_X"], size)
    assert_close(truth.norm() ** 2, stated["mu_norm2"], 0)
    weights = np.linspace(-1, 1, case["n"])
    element = mh.embed(kernel_of(case), points(case), weights=weights)
    assert_close(element.inner(truth), weights @ stated["mu_at_X"], case["n"] * size)


# ---------------------------------------------------------------- edge cases that have no numbers

every_selecting_estimator = pytest.mark.parametrize("estimator", [mh.ShrunkKernelMean, mh.SpectralKernelMean])
NO_GRAM_MATRICES = {"asymmetric": [[2.0, 1.0], [0.0, 2.0]], "indefinite": [[1.0, 2.0], [2.0, 1.0]]}


@every_selecting_estimator
def test_one_point_cannot_be_left_out(estimator):
    with pytest.raises(ValueError, match=r"sample|row|point"):
        estimator(kernel=mh.Linear()).fit([[1.0, 2.0]])


@every_selecting_estimator
def test_zero_gram_gives_the_plain_average(estimator):
    fitted = estimator(kernel=mh.Linear()).fit(np.zeros((4, 2)))
    assert_array_equal(fitted.weights_, np.full(4, 0.25))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kernel", [mh.Linear(), "precomputed"])
def test_values_that_are_not_finite(kernel, bad):
    data = np.eye(3)
    data[1, 1] = bad
    for estimator in (mh.KernelMean, mh.ShrunkKernelMean, mh.SpectralKernelMean):
        with pytest.raises(ValueError, match=r"NaN|infinity|finite"):
            estimator(kernel=kernel).fit(data)


@pytest.mark.parametrize("name", NO_GRAM_MATRICES)
def test_a_matrix_that_is_no_gram_matrix(name):
    with pytest.raises(ValueError, match=r"symmetric|definite"):
        mh.SpectralKernelMean(kernel="precomputed").fit(np.array(NO_GRAM_MATRICES[name]))

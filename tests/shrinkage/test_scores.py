"""Leave-one-out scores against n fits without a row, and the search over lam against a fine grid."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from tables import FUNCTIONS, data_sets, gram, sample

import muhat as mh
from muhat.shrinkage.scores import deletion_scores, simple_scores, theorem4_scores

DATA = data_sets()
LAMS = np.array([1e-6, 1e-3, 0.05, 0.7, 4.0, 60.0, 1e4])
ALPHAS = np.linspace(0, 1, 6)
SEARCHED = ("linear", "polynomial2", "polynomial3", "gaussian", "gaussian_narrow", "laplace")

every_data_set = pytest.mark.parametrize("data", DATA)
every_kernel = pytest.mark.parametrize("name", FUNCTIONS)
every_flexible_score = pytest.mark.parametrize("scores", [deletion_scores, theorem4_scores])


def lams_for(K):
    """In units of the largest eigenvalue: the same shrinkage for every kernel."""
    return LAMS * np.linalg.eigvalsh(K)[-1]


def assert_scores(got, want, K):
    mean_diag = np.trace(K) / len(K)
    assert_allclose(got, want, rtol=0, atol=1e-10 * mean_diag)


# ---------------------------------------------------------------- the scores


@every_data_set
@every_kernel
def test_scores_are_n_fits_or_the_lemma_of_theorem_4(name, data):
    K = gram(name, DATA[data])
    lams = lams_for(K)
    assert_scores(deletion_scores(K, lams), [oracles.deletion_score(K, lam) for lam in lams], K)
    assert_scores(theorem4_scores(K, lams), [oracles.theorem4_score(K, lam) for lam in lams], K)
    assert_scores(simple_scores(K, ALPHAS), [oracles.simple_score(K, alpha) for alpha in ALPHAS], K)
    n, mean_diag, mean_gram = len(K), np.trace(K) / len(K), K.mean()
    limits = [(n / (n - 1)) ** 2 * (mean_diag - mean_gram), mean_diag]
    for scores in (deletion_scores, theorem4_scores):
        assert_scores(scores(K, [0.0, np.inf]), limits, K)
    assert_scores(simple_scores(K, [0.0, 1.0]), limits, K)


@pytest.mark.parametrize("name", ["gaussian_narrow", "laplace"])
def test_theorem4_scores_are_the_printed_formula(name):
    K = gram(name, DATA["generic"])
    lams = lams_for(K)
    assert_scores(theorem4_scores(K, lams), [oracles.theorem4_literal(K, lam) for lam in lams], K)


@every_flexible_score
@every_data_set
def test_scores_tend_to_their_limits(scores, data):
    """No jump at lam = 0, where singular matrices make the formulas 0/0."""
    K = gram("linear", DATA[data])
    top = np.linalg.eigvalsh(K)[-1]
    near, limits = scores(K, [1e-9 * top, 1e9 * top]), scores(K, [0.0, np.inf])
    # The score moves by about n lam / g_min, and g_min > 0 is above 1e-3 of the largest here.
    assert_allclose(near, limits, rtol=0, atol=1e-4 * np.trace(K) / len(K))


@every_flexible_score
@pytest.mark.parametrize("name", ["linear", "gaussian"])
@pytest.mark.parametrize("data", ["duplicates", "two_equal_points", "with_the_origin"])
def test_lam_below_rounding_is_the_limit(data, name, scores):
    """Eigenvalues that should be zero come out as rounding of either sign, and lam is as small here."""
    K = gram(name, DATA[data])
    g = np.linalg.eigvalsh(K)
    assert g[0] < 1e-13 * g[-1]
    assert g[g > 1e-13 * g[-1]].min() > 1e-4 * g[-1]
    lams = g[-1] * np.array([1e-19, 1e-17, 3e-16, 1e-15, 1e-14])
    # lam / g_min stays below 1e-10, and the score moves by a few times that share.
    assert_allclose(scores(K, lams), scores(K, [0.0] * 5), rtol=0, atol=1e-9 * np.trace(K) / len(K))


# ---------------------------------------------------------------- scores of fitted estimators


@every_data_set
@pytest.mark.parametrize("name", SEARCHED)
def test_best_scale_at_a_fixed_lam(name, data):
    K = gram(name, DATA[data])
    for lam in [0.0, *lams_for(K)]:
        fitted = mh.SpectralKernelMean(kernel="precomputed", lam=float(lam), scale="loo").fit(K)
        p, Q = oracles.pieces(K, oracles.deletion_refits(K, lam))
        assert 0 <= fitted.scale_ <= 1
        assert_scores(fitted.loo_score_, oracles.scaled_score(K, p, Q, "loo"), K)
        assert_scores(fitted.loo_score_, oracles.scaled_score(K, p, Q, fitted.scale_), K)
        plain = mh.SpectralKernelMean(kernel="precomputed", lam=float(lam)).fit(K)
        assert_allclose(fitted.weights_, fitted.scale_ * plain.weights_, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_fixed_scale(scale):
    K = gram("gaussian", DATA["generic"])
    fitted = mh.SpectralKernelMean(kernel="precomputed", lam=0.4, scale=scale).fit(K)
    p, Q = oracles.pieces(K, oracles.deletion_refits(K, 0.4))
    assert_scores(fitted.loo_score_, oracles.scaled_score(K, p, Q, scale), K)
    assert_allclose(fitted.weights_, scale * oracles.tikhonov_weights(K, 0.4), rtol=1e-10, atol=1e-14)


# ---------------------------------------------------------------- the search


def search_cases(seeds):
    """Small samples with means from far to zero, so that both limits and several minima occur."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, d = rng.integers(2, 9), rng.integers(1, 6)
        X = sample(n, d, seed, shift=rng.choice([0.0, 0.2, 1.0])) * rng.choice([0.5, 2.0], size=(n, 1))
        if seed % 7 == 0:
            X = np.concatenate([X, X[:1]])
        yield X


def excess_over_grid(name, X, pieces_on, **settings):
    K = gram(name, X)
    fitted = mh.SpectralKernelMean(kernel="precomputed", **settings).fit(K)
    best = oracles.grid_minimum(K, pieces_on, settings["scale"], size=1201)
    return (fitted.loo_score_ - best) / (np.trace(K) / len(K))


@pytest.mark.parametrize(("lam", "scale"), [("loo", 1.0), ("loo", "loo"), ("theorem4", 1.0)])
@pytest.mark.parametrize("name", SEARCHED)
def test_the_search_misses_no_minimum(name, lam, scale):
    pieces_on = oracles.deletion_pieces_on if lam == "loo" else oracles.theorem4_pieces_on
    cases = search_cases(range(30))
    assert max(excess_over_grid(name, X, pieces_on, lam=lam, scale=scale) for X in cases) <= 1e-12


@pytest.mark.parametrize("name", SEARCHED)
def test_simple_shrinkage_is_the_best_of_a_grid(name):
    for X in search_cases(range(300, 315)):
        K = gram(name, X)
        fitted = mh.ShrunkKernelMean(kernel="precomputed").fit(K)
        scores = [oracles.simple_score(K, alpha) for alpha in np.linspace(0, 1, 51)]
        assert fitted.loo_score_ <= min(scores) + 1e-12 * np.trace(K) / len(K)
        assert_scores(fitted.loo_score_, oracles.simple_score(K, fitted.shrinkage_), K)


def test_paths_are_the_scores():
    K = gram("gaussian", DATA["generic"])
    for rule, scores in (("loo", deletion_scores), ("theorem4", theorem4_scores)):
        fitted = mh.SpectralKernelMean(kernel="precomputed", lam=rule).fit(K)
        path = fitted.loo_path_
        assert_scores(path.scores, scores(K, path.values), K)
        assert fitted.loo_score_ <= min(path.scores) + 1e-12
    fitted = mh.ShrunkKernelMean(kernel="precomputed").fit(K)
    assert_scores(fitted.loo_path_.scores, simple_scores(K, fitted.loo_path_.values), K)

"""Mistakes with means, kernels and elements: every error names the parameter, the value and the remedy."""

import numpy as np
import pytest
from errors import refused
from scipy import sparse
from tables import MEANS, sample

import muhat as mh
from muhat.means import james_stein_risk
from muhat.rkhs.elements import Element
from muhat.shrinkage.scores import deletion_scores

X = sample(8, 3, seed=1)
K = mh.Gaussian(1.0)(X)
P = mh.GaussianMixture([1.0], [[0.0, 0.0, 0.0]], [1.0])
FITTED = mh.KernelMean().fit(X)
GRAM = mh.KernelMean("precomputed").fit(K)
F = mh.embed(mh.Gaussian(1.0), X)


def spoiled(matrix, value, place=(0, 1)):
    matrix = np.array(matrix, dtype=np.asarray(matrix).dtype if value is None else np.result_type(matrix, type(value)))
    matrix[place] = value
    return matrix


def fit(data=X, estimator=mh.KernelMean, sample_weight=None, **params):
    return lambda: estimator(**params).fit(data, sample_weight=sample_weight)


S, SPECTRAL, ADAPTIVE = mh.ShrunkKernelMean, mh.SpectralKernelMean, mh.AdaptiveKernelMean
CONSTRAINED, ROBUST, BLOCKS = mh.ConstrainedKernelMean, mh.RobustKernelMean, mh.MedianOfMeans
ASYMMETRIC = spoiled(K, 0.9)
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
ROWS = r"minimum of 2 is required"

CASES = [
    # data
    ("sparse", fit(sparse.csr_array(X)), TypeError, r"Sparse data was passed.*toarray\(\)"),
    ("width of mean_(X)", lambda: FITTED.mean_(X[:, :2]), "X has 2 columns and must have 3"),
    ("width of score(X)", lambda: FITTED.score(X[:, :2]), "X has 2 features.* expecting 3 features"),
    ("width of k(X, Y)", lambda: mh.Linear()(X, X[:, :2]), "2 columns and must have 3"),
    ("NaN in mean_(X)", lambda: FITTED.mean_(spoiled(X, np.nan)), "contains NaN"),
    # kernels
    ("bandwidth < 0", lambda: mh.Gaussian(-1.0), r'bandwidth=-1.0 must be .*\(0, inf\) or be "median"'),
    ("bandwidth NaN", lambda: mh.Matern(1.5, np.nan), "bandwidth=nan must be"),
    ("bandwidth a column", lambda: mh.Gaussian(np.ones(3)), "bandwidth=array"),
    ("degree 0", lambda: mh.Polynomial(0), "degree=0 must be a whole number of at least 1"),
    ("constant -1", lambda: mh.Polynomial(2, -1), r"constant=-1 must be a number in \[0, inf\)"),
    ("nu 0.7", lambda: mh.Matern(0.7), "nu=0.7 must be 0.5, 1.5 or 2.5; .*as_kernel"),
    ("median of a mixture", lambda: mh.embed(mh.Gaussian(), P).norm(), "median needs data"),
    ("kernel a string", fit(kernel="rbf"), r"kernel='rbf' must be a kernel object.*'precomputed'"),
    ("no closed form", lambda: mh.embed(mh.Laplace(1.0), P).norm(), "no closed-form.* use a sample"),
    # parameters of the estimators
    ("shrinkage 1.4", fit(estimator=S, shrinkage=1.4), r'shrinkage=1.4 must be .*\[0, 1\] or be "loo"'),
    ("shrinkage auto", fit(estimator=S, shrinkage="auto"), "shrinkage='auto' must be .*\"loo\""),
    ("lam -1", fit(estimator=SPECTRAL, lam=-1), 'lam=-1 must be .*"loo" or "theorem4"'),
    ("lam gcv", fit(estimator=SPECTRAL, lam="gcv"), 'lam=\'gcv\' must be .*"loo" or "theorem4"'),
    ("scale -1", fit(estimator=SPECTRAL, scale=-1), 'scale=-1 must be .* or be "loo"'),
    ("filter a string", fit(estimator=SPECTRAL, filter="tikhonov"), r"filter='tikhonov' .*Tikhonov\(\)"),
    ("theorem4, other filter", fit(estimator=SPECTRAL, lam="theorem4", filter=mh.TruncatedSVD()), "loo"),
    ("theorem4, scale", fit(estimator=SPECTRAL, lam="theorem4", scale="loo"), 'scale=.loo.*lam="loo"'),
    ("target elsewhere", fit(estimator=S, kernel=mh.Linear(), target=F), "target=.*space of Linear"),
    ("target, median", fit(estimator=S, target=F), "target=Element.*Resolve the kernel"),
    ("target an array", fit(estimator=S, target=np.zeros(3)), "target=array.* must be an Element"),
    (
        "target of another width",
        fit(X[:, :2], estimator=S, kernel=mh.Gaussian(1.0), target=F),
        "target.* 3 .*2|dimensions",
    ),
    # Gram matrices
    ("Gram not square", fit(K[:3], kernel="precomputed"), r"shape \(3, 8\); .* square Gram matrix"),
    ("Gram not symmetric", fit(ASYMMETRIC, kernel="precomputed"), r"not symmetric .* pass .*k\(X, X\)"),
    ("Gram not PSD", fit(INDEFINITE, kernel="precomputed"), "not positive semi-definite .* clip"),
    ("Gram, huge", fit(1.5e308 * np.eye(2), kernel="precomputed"), "overflow"),
    ("Gram, NaN", fit(spoiled(K, np.nan), kernel="precomputed"), "contains NaN"),
    ("rows of a Gram", lambda: GRAM.mean_(X), "3 columns; .* with the 8 training rows"),
    ("score of a Gram", lambda: GRAM.score(X), "3 features.* expecting 8"),
    ("scores, NaN", lambda: deletion_scores(spoiled(K, np.nan), [1.0]), "K must be finite"),
    ("scores, lam < 0", lambda: deletion_scores(K, [-1.0]), r"lams=\[-1.\] must lie in \[0, inf\]"),
    ("an empty element", lambda: Element(mh.Gaussian(1.0)), "needs at least one measure; see muhat.embed"),
    ("two widths", lambda: Element(F.kernel, P, mh.Atoms(X[:, :2])), r"\[2, 3\] dimensions"),
    ("an infinite element", lambda: np.inf * F, "multiplied by a finite number"),
    ("an element over 0", lambda: F / 0, "cannot be divided by zero"),
    ("values of other rows", lambda: GRAM.kernel_(K[:2]), "no kernel values between two rows outside"),
    ("k(x, x) of other rows", lambda: GRAM.kernel_.diag(K[:2]), r"no k\(x, x\) for a row outside"),
    ("scores, not square", lambda: deletion_scores(K[:3], [1.0]), r"K has shape \(3, 8\)"),
    # elements
    ("two spaces", lambda: F.inner(mh.embed(mh.Laplace(1.0), X)), r"Gaussian.* and Laplace.*pooled"),
    ("too few weights", lambda: mh.embed(mh.Linear(), X, weights=[1.0]), r"weights has shape \(1,\)"),
    ("weights NaN", lambda: mh.embed(mh.Linear(), X, weights=[np.nan] * 8), "weights must be finite"),
    # weights of rows
    ("sample_weight < 0", fit(sample_weight=[-1.0] + [1.0] * 7), "sample_weight must not be negative.*-1"),
    ("sample_weight 0", fit(sample_weight=np.zeros(8)), "sample_weight is zero for every row"),
    ("sample_weight long", fit(sample_weight=np.ones(9)), r"sample_weight has shape \(9,\).*\(8,\)"),
    ("sample_weight 2-D", fit(sample_weight=np.ones((8, 1))), r"sample_weight has shape \(8, 1\)"),
    ("sample_weight NaN", fit(sample_weight=[np.nan] * 8), "sample_weight must be finite"),
    ("sample_weight text", fit(sample_weight=["a"] * 8), "sample_weight"),
    ("sample_weight shares", fit(sample_weight=np.full(8, 1 / 8)), "sums to 1 .* multiply it"),
    # robust, constrained and adaptive means, and solvers
    ("loss='cauchy'", fit(estimator=ROBUST, loss="cauchy"), "loss='cauchy' must be"),
    ("threshold=0.0", fit(estimator=ROBUST, threshold=0.0), "threshold=0.0"),
    ("threshold='median'", fit(estimator=ROBUST, threshold="median"), "threshold='median' must be a number"),
    ("threshold=(1.0, 2.0, 3.0)", fit(estimator=ROBUST, threshold=(1.0, 2.0, 3.0)), "threshold="),
    ("loss='hampel', threshold=1.0", fit(estimator=ROBUST, loss="hampel", threshold=1.0), "three numbers"),
    (
        "loss='hampel', threshold=(1.0, 3.0, 2.0)",
        fit(estimator=ROBUST, loss="hampel", threshold=(1.0, 3.0, 2.0)),
        "three numbers",
    ),
    (
        "loss='hampel', threshold=(1e-9, 2e-9, 3e-9)",
        fit(estimator=ROBUST, loss="hampel", threshold=(1e-9, 2e-9, 3e-9)),
        "rejects every row",
    ),
    ("shrinkage=1.4", fit(estimator=ROBUST, shrinkage=1.4), r"shrinkage=1.4 must .* or be None or \"loo\""),
    ("tol=0.0", fit(estimator=ROBUST, tol=0.0), "tol=0.0"),
    ("max_iter=0", fit(estimator=ROBUST, max_iter=0), "max_iter=0"),
    ("n_blocks=0", fit(estimator=BLOCKS, n_blocks=0), "n_blocks=0"),
    ("n_blocks=21", fit(estimator=BLOCKS, n_blocks=21), "n_blocks=21 must be at most the number of rows, 8"),
    ("robust, half rows", fit(estimator=ROBUST, sample_weight=[0.5, *[1.0] * 7]), "0 or at least 1"),
    ("blocks, half rows", fit(estimator=BLOCKS, sample_weight=[0.5, *[1.0] * 7]), "whole"),
    (
        "constrained, shrinkage",
        fit(estimator=CONSTRAINED, shrinkage=1.4),
        r'shrinkage=1\.4 must be a number in \[0, 1\] or be "loo"',
    ),
    (
        "constrained, nonnegative",
        fit(estimator=CONSTRAINED, nonnegative="yes"),
        "nonnegative='yes' must be True or False",
    ),
    (
        "adaptive target, a word",
        fit(X[:, :2], ADAPTIVE, kernel=mh.Gaussian(1.0), target="normal"),
        r"target='normal' must be \"gaussian\", None or an Element",
    ),
    (
        "adaptive target, another space",
        fit(X[:, :2], ADAPTIVE, kernel=mh.Gaussian(1.0), target=mh.embed(mh.Gaussian(3.0), [[0.0, 0.0]])),
        "must be",
    ),
    (
        "adaptive target, another width",
        fit(X[:, :2], ADAPTIVE, kernel=mh.Gaussian(1.0), target=mh.embed(mh.Gaussian(1.0), [[0.0]])),
        "is a function of 1 columns, and X has 2",
    ),
    ("adaptive, half rows", fit(estimator=ADAPTIVE, sample_weight=[1.5, *[1.0] * 7]), "whole numbers"),
    ("solver='sparse'", fit(estimator=SPECTRAL, solver="sparse"), "solver='sparse'"),
    ("tol=0.0", fit(estimator=SPECTRAL, tol=0.0), "tol=0.0"),
    ("memory_limit=-1", fit(estimator=SPECTRAL, memory_limit=-1), "memory_limit=-1"),
    (
        "solver='low-rank', filter=mh.TruncatedSVD(), lam=1.0",
        fit(estimator=SPECTRAL, solver="low-rank", filter=mh.TruncatedSVD(), lam=1.0),
        "Tikhonov",
    ),
    ("low rank, weights", fit(estimator=SPECTRAL, solver="low-rank", sample_weight=np.full(8, 2.0)), "without"),
    # Stein
    ("james_stein, 2 columns", lambda: mh.james_stein(X[:, :2], 1.0), "X has 2 columns; .* 3 or more"),
    ("james_stein, variance", lambda: mh.james_stein(X, -1.0), r"variance=-1.0 .*\[0, inf\)"),
    ("james_stein, target", lambda: mh.james_stein(X, 1.0, target=[1.0]), r"target=\[1.0\].*\(3,\)"),
    ("james_stein, text", lambda: mh.james_stein(X, 1.0, target="zero"), "target='zero'"),
    ("risk, variance", lambda: james_stein_risk([1.0, 0, 0], -1.0, 1), "variance=-1.0"),
    ("risk, n", lambda: james_stein_risk([1.0, 0, 0], 1.0, 0), "n=0"),
    ("risk, 2 columns", lambda: james_stein_risk([1.0, 0.0], 1.0, 1), "3"),
    ("oracle, n 0", lambda: mh.oracle_shrinkage(mh.Linear(), P, 0), "n=0 must be a whole number"),
    ("oracle, median", lambda: mh.oracle_shrinkage(mh.Gaussian(), P, 3), "median needs data"),
    ("oracle, kernel", lambda: mh.oracle_shrinkage("rbf", P, 3), "kernel='rbf' must be a kernel"),
    ("oracle, target", lambda: mh.oracle_shrinkage(mh.Linear(), P, 3, target=0.5), "target=0.5"),
    ("oracle, target elsewhere", lambda: mh.oracle_shrinkage(mh.Linear(), P, 3, target=F), "two spaces"),
    ("oracle, array", lambda: mh.oracle_shrinkage(mh.Linear(), X, 3), "P.*(Atoms|GaussianMixture)"),
    # sizes
    ("overflow", fit(1e150 * X, kernel=mh.Polynomial(3)), r"Polynomial.*overflows on X.*Rescale X"),
    ("overflow, product", fit(1e100 * X, kernel=mh.Linear() * mh.Linear()), "overflows on X"),
    ("overflow, multiple", fit(1e10 * X, kernel=1e300 * mh.Polynomial(2)), "overflows on X"),
    ("n_features 0", lambda: mh.paper_mixture(0), "n_features=0 must be a whole number of at least 1"),
    ("sample of 0", lambda: P.sample(0), "n=0 must be a whole number of at least 1"),
    ("random_state", lambda: P.sample(2, random_state="x"), "random_state='x' must be None"),
]

test_mistakes = refused(CASES)


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_every_estimator_checks_its_data(name, value):
    with pytest.raises(ValueError, match="Input X contains"):
        MEANS[name].estimator.fit(spoiled(X, value))

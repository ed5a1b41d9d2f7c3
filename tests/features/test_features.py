"""Features: ZZᵀ against K, the spectral measures against the kernels, and scikit-learn's rules."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import KERNELS, data_sets, sample

import muhat as mh
from muhat.features.fourier import Fourier, _half_angles
from muhat.features.nystroem import Nystroem, pivoted_cholesky
from muhat.kernels import decode_kernel, encode_kernel

STATIONARY = ("gaussian", "gaussian_narrow", "laplace", "matern_half", "matern", "matern_smooth")
RADIAL = tuple(name for name in STATIONARY if name != "laplace")
CHOICES = ("uniform", "k-means++", "pivoted")
X = sample(60, 3, seed=0)


@pytest.mark.parametrize("landmarks", CHOICES)
@pytest.mark.parametrize("name", KERNELS)
def test_all_rows_as_landmarks_are_exact(name, landmarks):
    kernel = KERNELS[name]
    features = Nystroem(kernel, len(X), landmarks, random_state=0).fit(X)
    K = kernel(X)
    assert_allclose(features.transform(X) @ features.transform(X).T, K, rtol=0, atol=1e-8 * K.max())
    assert features.approximation_error_ <= 1e-8 * np.trace(K) / len(X)


@pytest.mark.parametrize("data", data_sets())
@pytest.mark.parametrize("landmarks", CHOICES)
def test_duplicates_and_low_rank(data, landmarks):
    rows = data_sets()[data]
    for kernel in (mh.Linear(), mh.Gaussian(1.0), mh.Polynomial(2)):
        Z = Nystroem(kernel, len(rows), landmarks, random_state=0).fit_transform(rows)
        K = kernel(rows)
        assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-8 * K.max())
        assert Z.shape[1] <= len(rows)


@pytest.mark.parametrize("landmarks", [*CHOICES, X[:7] + 0.1, np.repeat(X[:3], 3, axis=0)], ids=str)
def test_nystroem_projects_on_the_span_of_the_landmarks(landmarks):
    kernel, others = mh.Gaussian(1.0), sample(20, 3, seed=1)
    features = Nystroem(kernel, 9, landmarks, random_state=0).fit(X)
    L = features.landmarks_
    projected = kernel(others, L) @ np.linalg.pinv(kernel(L), rcond=1e-13, hermitian=True) @ kernel(L, X)
    assert_allclose(features.transform(others) @ features.transform(X).T, projected, atol=1e-8)
    missed = 1.0 - (features.transform(X) ** 2).sum(axis=1)
    assert missed.min() >= -1e-12
    assert_allclose(features.approximation_error_, missed.mean(), atol=1e-12)


def test_the_error_bounds_the_distance_of_the_means():
    features = Nystroem(mh.Gaussian(1.0), 10, random_state=0).fit(X)
    weights = features._map @ features.transform(X).mean(axis=0)
    approximate = mh.embed(features.kernel_, features.landmarks_, weights=weights)
    assert approximate.distance(mh.embed(features.kernel_, X)) ** 2 <= features.approximation_error_


@pytest.mark.parametrize("name", KERNELS)
def test_pivoted_cholesky(name):
    kernel, seen = KERNELS[name], []

    class Counted(type(kernel)):
        def evaluate(self, A, B):
            seen.append(len(A) * len(B))
            return super().evaluate(A, B)

    K = kernel(X)
    pivots, L, residual = pivoted_cholesky(Counted(**kernel.get_params(deep=False)), X, 12)
    rest = K - L @ L.T
    assert L.shape == (60, len(pivots))
    assert len(set(pivots.tolist())) == len(pivots) <= 12
    assert_allclose(residual, np.trace(rest), atol=1e-12 * np.trace(K))
    assert_allclose(rest[pivots], 0, atol=1e-12 * K.max())
    assert np.linalg.eigvalsh(rest)[0] >= -1e-12 * np.trace(K)
    assert max(seen) <= 60
    assert sum(seen) <= 60 * 12


def test_pivoted_cholesky_is_greedy_and_stops():
    K = mh.Gaussian(1.0)(X)
    pivots, _, _ = pivoted_cholesky(mh.Gaussian(1.0), X, 6)
    for step in range(6):
        done = pivots[:step]
        rest = np.diag(K - K[:, done] @ np.linalg.solve(K[np.ix_(done, done)], K[done]))
        assert rest[pivots[step]] >= rest.max() - 1e-12
    few, _, residual = pivoted_cholesky(mh.Gaussian(1.0), X, 60, tol=1e-2)
    assert residual <= 1e-2 * 60
    assert len(few) < 60
    assert pivoted_cholesky(mh.Gaussian(1.0), X, len(few) - 1)[2] > 1e-2 * 60
    assert len(pivoted_cholesky(mh.Linear(), X, 60)[0]) == 3
    assert len(pivoted_cholesky(mh.Linear(), np.zeros((4, 2)), 4)[0]) == 0
    assert len(pivoted_cholesky(mh.Laplace(1.0), np.repeat(X[:5], 4, axis=0), 20)[0]) == 5


# ---------------------------------------------------------------- Fourier


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "orthogonal"), [(name, False) for name in STATIONARY] + [(name, True) for name in RADIAL]
)
def test_frequencies_have_the_spectral_measure_of_the_kernel(name, orthogonal):
    """Each entry of ZZᵀ averages cosines; over independent features its mean is the kernel, within 4.5 errors."""
    rows, kernel = sample(7, 3, seed=2), KERNELS[name]
    draws = [Fourier(kernel, 300, orthogonal, random_state=seed).fit_transform(rows) for seed in range(60)]
    grams = np.array([Z @ Z.T for Z in draws])[:, *np.triu_indices(7, 1)]
    errors = grams.std(axis=0, ddof=1) / np.sqrt(len(grams))
    want = kernel(rows)[np.triu_indices(7, 1)]
    assert (np.abs(grams.mean(axis=0) - want) <= 4.5 * errors).all()
    assert errors.max() < 0.01


def test_orthogonal_directions():
    d = 4
    W = Fourier(mh.Matern(1.5, 1.0), 20, orthogonal=True, random_state=0).fit(sample(5, d, seed=0)).frequencies_
    assert W.shape == (d, 10)
    for block in (W[:, :4], W[:, 4:8], W[:, 8:]):
        products = block.T @ block
        assert_allclose(products, np.diag(np.diag(products)), atol=1e-12 * products.max())


def test_orthogonal_directions_lower_the_error():
    rows = sample(40, 10, seed=3)
    kernel = mh.Gaussian().resolve(rows)

    def error(orthogonal):
        draws = (Fourier(kernel, 20, orthogonal, random_state=seed).fit_transform(rows) for seed in range(20))
        return np.mean([np.mean((Z @ Z.T - kernel(rows)) ** 2) for Z in draws])

    assert error(True) < 0.8 * error(False)


@pytest.mark.parametrize("name", STATIONARY)
def test_fourier_features_are_cosines_and_sines(name):
    rows, kernel = sample(3000, 3, seed=4), KERNELS[name]
    features = Fourier(kernel, 40, random_state=0).fit(rows)
    assert_allclose(features._centre, rows.mean(axis=0), rtol=1e-12)
    scaled = (rows - features._centre) / kernel.bandwidth
    phases = scaled @ features.frequencies_
    Z = features.transform(rows)
    assert_allclose((Z**2).sum(axis=1), 1.0, atol=1e-14)
    size = np.abs(scaled) @ np.abs(features.frequencies_) + 1
    want = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(20)
    assert (np.abs(Z - want) <= 1e-15 * np.hstack([size, size])).all()
    total, squares = features._totals(rows)
    assert_allclose(total, Z.sum(axis=0), atol=1e-11)
    assert_allclose(squares, len(rows))


def test_half_angles_to_the_last_digits():
    turns = np.concatenate([np.linspace(-3, 3, 4001), [0.5, -0.5, 1e6 + 0.25, 0.0]])[None]
    left = (turns - np.rint(turns)) * np.pi
    sine, cosine = _half_angles(turns.copy(), np.empty_like(turns), np.empty_like(turns))
    assert_allclose(sine, 2 * np.sin(left), rtol=0, atol=2e-15)
    assert_allclose(cosine, np.cos(left), rtol=0, atol=1e-15)


def test_the_fourier_error_is_that_of_the_entries():
    features = Fourier(mh.Gaussian(1.0), 200, random_state=0).fit(X)
    Z = features.transform(X)
    errors = (mh.Gaussian(1.0)(X) - Z @ Z.T)[np.triu_indices(60, 1)]
    assert_allclose(features.approximation_error_, np.sqrt(np.mean(errors**2)), rtol=1e-10)
    errors = [
        Fourier(n_components=m, random_state=0).fit(sample(200, 5, seed=1)).approximation_error_ for m in (40, 4000)
    ]
    assert 5 < errors[0] / errors[1] < 20


# ---------------------------------------------------------------- both


FITTED = {
    "uniform": Nystroem(n_components=8, random_state=0),
    "k-means++": Nystroem(n_components=8, landmarks="k-means++", random_state=0),
    "pivoted": Nystroem(n_components=8, landmarks="pivoted"),
    "fourier": Fourier(n_components=16, random_state=0),
    "laplace": Fourier(mh.Laplace(), n_components=16, random_state=0),
    "orthogonal": Fourier(mh.Matern(), n_components=16, orthogonal=True, random_state=0),
}


@parametrize_with_checks(
    [
        Nystroem(n_components=2, random_state=0),
        Nystroem(n_components=2, landmarks="k-means++", random_state=0),
        Nystroem(n_components=2, landmarks="pivoted"),
        Fourier(n_components=6, random_state=0),
        Fourier(mh.Matern(), n_components=6, orthogonal=True, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("scale", [1e-150, 1e-5, 1e5, 1e150])
def test_units_do_not_matter(name, scale):
    want = clone(FITTED[name]).fit_transform(X)
    got = clone(FITTED[name]).fit_transform(scale * X)
    assert_allclose(got @ got.T, want @ want.T, atol=1e-9)


@pytest.mark.parametrize("name", FITTED)
def test_rows_far_from_zero_keep_their_digits(name):
    rows = np.round(X, 3)
    far = clone(FITTED[name]).fit_transform(rows + 2.0**20)
    near = clone(FITTED[name]).fit_transform(rows)
    assert_allclose(far @ far.T, near @ near.T, atol=1e-7)


@pytest.mark.parametrize("name", FITTED)
def test_extreme_rows_have_finite_features(name):
    features = clone(FITTED[name]).fit(X)
    Z = features.transform(np.array([[1e308, -1e308, 0.0], [1e100, 1e-300, 1.0]]))
    assert np.isfinite(Z).all()
    assert np.isfinite(clone(FITTED[name]).set_params(kernel__bandwidth=1e-300).fit(X).transform(X)).all()


@pytest.mark.parametrize("name", FITTED)
def test_float32_and_names(name):
    features = clone(FITTED[name]).set_output(transform="pandas").fit(X)
    frame = features.transform(X.astype(np.float32))
    assert_allclose(frame, features.transform(X), atol=1e-5)
    assert list(frame.columns) == list(features.get_feature_names_out())
    assert frame.columns[0] == f"{type(features).__name__.lower()}0"


@pytest.mark.parametrize("name", FITTED)
def test_blocks_do_not_matter(name):
    rows = sample(1200, 3, seed=5)
    features = clone(FITTED[name]).fit(rows)
    parts = [features.transform(rows[i : i + 7]) for i in range(0, 1200, 7)]
    assert_allclose(features.transform(rows), np.concatenate(parts), atol=1e-12)


def test_the_fingerprint_tells_shapes_apart():
    """The same numbers in another shape are other landmarks."""
    one, other = (Nystroem(mh.Gaussian(1.0), 4, random_state=0).fit(X) for _ in range(2))
    other.landmarks_ = other.landmarks_.reshape(-1, 2)
    assert other._fingerprint() != one._fingerprint() == one.fingerprint_


@pytest.mark.parametrize("kernel", [mh.Gaussian(1.0), mh.Laplace(1.0), mh.Matern(1.5, 1.0)], ids=repr)
def test_rows_beyond_all_scales_have_features_on_the_circle(kernel):
    """z(x) has norm 1 wherever x is; a row that is farther than can be told lies at a distance that can."""
    rows = np.array([[1e308, -1e308, 1e200], [1e160, 0.0, 0.0], [-1e160, 0.0, 0.0], [0.1, 0.2, 0.3]])
    features = Fourier(kernel, 20, random_state=0).fit(X)
    Z = features.transform(rows)
    assert_allclose(np.square(Z).sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(Z[1], features.transform(rows[1:2] * 10)[0], atol=1e-12)


def test_the_fingerprint_is_that_of_the_transform():
    def fingerprint(features, rows=X):
        return features.fit(rows).fingerprint_

    base = fingerprint(Nystroem(mh.Gaussian(1.0), 5, random_state=0))
    assert fingerprint(Nystroem(mh.Gaussian(1.0), 5, random_state=0)) == base
    landmarks = Nystroem(mh.Gaussian(1.0), 5, random_state=0).fit(X).landmarks_
    assert fingerprint(Nystroem(mh.Gaussian(1.0), landmarks=landmarks)) == base
    others = [
        fingerprint(Nystroem(mh.Gaussian(1.0), 5, random_state=1)),
        fingerprint(Nystroem(mh.Gaussian(1.1), 5, random_state=0)),
        fingerprint(Nystroem(mh.Laplace(1.0), 5, random_state=0)),
        fingerprint(Nystroem(mh.Gaussian(1.0), 5, random_state=0), X + 1),
        fingerprint(Fourier(mh.Gaussian(1.0), 10, random_state=0)),
        fingerprint(Fourier(mh.Gaussian(1.0), 10, random_state=1)),
        fingerprint(Nystroem(mh.as_kernel(RBF(1.0)), 5, random_state=0)),
        fingerprint(Nystroem(mh.as_kernel(RBF(1.0)), 5, random_state=0)),
    ]
    assert len({base, *others}) == 9


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_as_names_and_numbers(name):
    assert decode_kernel(encode_kernel(KERNELS[name])) == KERNELS[name]


def test_kernels_of_numpy_numbers():
    kernel = mh.Polynomial(np.int64(2), np.float32(0.5)) + mh.Gaussian(np.float64(1.5))
    assert decode_kernel(json.loads(json.dumps(encode_kernel(kernel)))) == kernel
    assert Nystroem(kernel, 5, random_state=0).fit(X).fingerprint_


def test_kernels_of_functions_have_no_numbers():
    assert encode_kernel(mh.as_kernel(RBF(1.0))) is None
    assert encode_kernel(mh.Linear() + 2.0 * mh.as_kernel(RBF(1.0))) is None


def test_a_pipeline_and_a_grid():
    y = X[:, 0] ** 2
    pipeline = make_pipeline(Nystroem(n_components=20, random_state=0), Ridge(1e-3))
    grid = GridSearchCV(pipeline, {"nystroem__kernel__bandwidth": [0.5, 2.0, 20.0]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.8


BAD = {
    "more landmarks than rows": (Nystroem(n_components=61), "n_components=61 must be at most .* n_samples=60"),
    "no landmarks": (Nystroem(n_components=0), "n_components=0 must be a whole number of at least 1"),
    "half a landmark": (Nystroem(n_components=2.5), "n_components=2.5 must be a whole number"),
    "unknown choice": (Nystroem(n_components=5, landmarks="best"), "landmarks='best' must be \"uniform\""),
    "landmarks too narrow": (Nystroem(landmarks=X[:, :2]), "landmarks have 2 columns and X has 3"),
    "landmarks NaN": (Nystroem(landmarks=np.full((2, 3), np.nan)), "landmarks contains NaN"),
    "landmarks in one row": (Nystroem(landmarks=X[0]), "2D"),
    "kernel a string": (Nystroem("rbf"), "kernel='rbf' must be a kernel object"),
    "kernel precomputed": (Nystroem("precomputed"), "kernel='precomputed' must be a kernel object"),
    "seed": (Nystroem(n_components=5, random_state=-1), "random_state=-1 must be"),
    "overflow": (Nystroem(1e308 * mh.Linear(), 5), "overflows on X"),
    "overflow of landmarks": (Nystroem(mh.Polynomial(3), landmarks=1e120 * X), "overflows"),
    "no feature": (Fourier(n_components=0), "n_components=0 must be a whole number of at least 1"),
    "not stationary": (
        Fourier(mh.Polynomial(2)),
        r"kernel=Polynomial.* must be a function of the distance .*Nystroem takes any",
    ),
    "sum": (Fourier(mh.Gaussian(1.0) + mh.Linear()), "kernel=Sum.* must be"),
    "Fourier of a string": (Fourier("rbf"), "kernel='rbf' must be a kernel object"),
    "orthogonal Laplace": (Fourier(mh.Laplace(), 10, orthogonal=True), "orthogonal=True .*orthogonal=False"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_parameters(case):
    features, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        features.fit(X)


@pytest.mark.parametrize("name", FITTED)
def test_bad_rows(name):
    features = clone(FITTED[name])
    with pytest.raises(NotFittedError):
        features.transform(X)
    with pytest.raises(ValueError, match=r"2 features.* expecting 3"):
        features.fit(X).transform(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        features.transform(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="all rows of X are equal"):
        features.fit(np.ones((9, 3)))


def test_one_row_and_zero_rows_of_the_space():
    row = X[:1]
    assert_allclose(Nystroem(mh.Gaussian(1.0), 1).fit_transform(row), 1.0)
    assert Fourier(mh.Gaussian(1.0), 3).fit_transform(row).shape == (1, 4)
    assert Fourier(mh.Gaussian(1.0), 4).fit(row).approximation_error_ == 0.0
    for landmarks in CHOICES:
        assert Nystroem(mh.Linear(), 2, landmarks).fit_transform(np.zeros((3, 2))).shape == (3, 0)


@pytest.mark.parametrize("lam", [0.0, np.inf])
@pytest.mark.parametrize("scale", [1.0, 0.5, "loo"])
def test_the_scale_at_the_limits_of_the_ridge_is_that_of_the_rows(lam, scale):
    X, kernel = sample(12, 2, seed=0), mh.Gaussian(1.0)
    rows = mh.SpectralKernelMean(kernel, lam=lam, scale=scale).fit(X)
    features = mh.SpectralKernelMean(kernel, lam=lam, scale=scale, features=mh.Nystroem(kernel, 12)).fit(X)
    assert_allclose(features.scale_, rows.scale_, rtol=1e-7)

"""Properties of all features: scale, order and type of rows, fingerprints, and errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import sample

import muhat as mh
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem

CHOICES = ("uniform", "k-means++", "pivoted")
X = sample(60, 3, seed=0)

FITTED = {
    "uniform": Nystroem(n_components=8, random_state=0),
    "k-means++": Nystroem(n_components=8, landmarks="k-means++", random_state=0),
    "pivoted": Nystroem(n_components=8, landmarks="pivoted"),
    "fourier": Fourier(n_components=16, random_state=0),
    "laplace": Fourier(mh.Laplace(), n_components=16, random_state=0),
    "matern": Fourier(mh.Matern(), n_components=16, random_state=0),
}


@parametrize_with_checks(
    [
        Nystroem(n_components=2, random_state=0),
        Nystroem(n_components=2, landmarks="k-means++", random_state=0),
        Nystroem(n_components=2, landmarks="pivoted"),
        Fourier(n_components=6, random_state=0),
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

"""Kernels on mixed columns, against their definitions and through a test and an estimator."""

import numpy as np
import pytest

import muhat as mh

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(40, 2)) * [1, 50], rng.integers(3, size=(40, 2))])
MIXED = mh.OnColumns(mh.Gaussian(), (0, 1)) * mh.OnColumns(mh.Categorical(), (2, 3))


def test_against_the_definition():
    k = MIXED.resolve(X)
    s = mh.Gaussian().resolve(X[:, :2]).bandwidth
    for i, j in ((0, 1), (3, 17), (5, 5)):
        numbers = np.exp(-((X[i, :2] - X[j, :2]) ** 2).sum() / (2 * s**2))
        same = np.mean([X[i, c] == X[j, c] for c in (2, 3)])
        assert k(X)[i, j] == pytest.approx(numbers * same, rel=1e-12)
    np.testing.assert_allclose(k.diag(X), np.diag(k(X)), rtol=1e-12)
    assert np.linalg.eigvalsh(k(X)).min() > -1e-10
    assert k(X).max() <= mh.kernels.upper_bound(k)


def test_a_changed_category_is_seen():
    Y = X.copy()
    Y[:30, 2] = 0
    assert mh.mmd_test(X, Y, MIXED, n_resamples=199, random_state=0, scale=None).pvalue <= 0.05
    assert mh.ShrunkKernelMean(MIXED).fit(X).mean_.norm() > 0


@pytest.mark.parametrize("columns", [(), [0], (-1,), (0.5,)])
def test_columns_are_checked(columns):
    with pytest.raises(ValueError, match="must be a tuple of numbers of columns; pass"):
        mh.OnColumns(mh.Gaussian(), columns)


def test_a_column_that_is_not_there():
    with pytest.raises(ValueError, match="X, with 4 columns, does not have"):
        mh.OnColumns(mh.Gaussian(1.0), (4,))(X)


def test_rescaled_columns_are_those_divided_by_their_scales():
    scales = (2.0, 50.0, 1.0, 1.0)
    k = mh.kernels.Rescaled(mh.Gaussian(), scales).resolve(X)
    inner = mh.Gaussian().resolve(X / scales)
    assert k.kernel == inner
    np.testing.assert_array_equal(k(X), inner(X / scales))
    np.testing.assert_array_equal(k.diag(X), inner.diag(X / scales))
    assert mh.kernels.upper_bound(k) == 1.0
    assert mh.kernels.upper_bound(mh.kernels.Rescaled(mh.Linear(), scales)) == np.inf


@pytest.mark.parametrize("scales", [(), [1.0], (0.0,), (np.nan,), (-1.0, 2.0)])
def test_scales_are_checked(scales):
    with pytest.raises(ValueError, match="must be a tuple of positive numbers; pass one for each column"):
        mh.kernels.Rescaled(mh.Gaussian(), scales)

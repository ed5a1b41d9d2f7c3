"""Whitened rows against inverses, regressions and refits."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from muhat.linalg.whitening import RIDGE, Whitening, inverse_root, leave_one_out, leave_two_out


def correlated(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3.0


def metric(rows, lam=None):
    """Standardised rows and (S + λI)⁻¹, from the definitions."""
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    S = z.T @ z / len(z)
    lam = RIDGE * np.linalg.eigvalsh(S)[-1] if lam is None else lam
    return z, np.linalg.inv(S + lam * np.eye(len(S)))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("n", [40, 3])  # regular, and singular without the ridge
def test_the_inverse_root_of_a_covariance(n, scale):
    C = np.cov(correlated(n, 6), rowvar=False)
    P = np.linalg.inv(C + 0.1 * np.eye(6))
    root, halved = (inverse_root(scale * C, 0.1 * scale, power) for power in (1.0, 0.5))
    np.testing.assert_allclose(root @ root.T * scale, P, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.linalg.matrix_power(halved @ halved.T * scale**0.5, 2), P, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(40, 6), (8, 30)], ids=["tall", "wide"])
def test_maps_are_powers_of_the_metric(shape):
    rows = correlated(*shape)
    found, (z, P) = Whitening.of(rows), metric(rows)
    new = correlated(5, shape[1], seed=1)  # rows outside the span of the fitted ones
    for X in (rows, new):
        y = (X - rows.mean(axis=0)) / rows.std(axis=0)
        np.testing.assert_allclose(found.standardise(X), y)
        np.testing.assert_allclose(found.residuals(X), y @ P, atol=1e-9 * np.abs(P).max())
        np.testing.assert_allclose(found.whiten(X) @ found.whiten(X).T, y @ P @ y.T, rtol=1e-8, atol=1e-7)
        np.testing.assert_allclose(found.squared_norms(X), np.einsum("ij,jk,ik->i", y, P, y), rtol=1e-8)
    scores = found.principal_scores(rows)
    np.testing.assert_allclose((scores**2).sum(axis=1), np.einsum("ij,jk,ik->i", z, P, z), rtol=1e-8)


def test_residuals_are_those_of_ridge_regressions():
    rows = correlated(50, 5)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    lam = 0.2
    found, (z, P) = Whitening.of_standardised(rows, lam), metric(rows, lam)
    for j in range(5):
        others = np.delete(z, j, axis=1)
        fitted = Ridge(alpha=lam * len(z), fit_intercept=False).fit(others, z[:, j])
        np.testing.assert_allclose(found.residuals(rows)[:, j], P[j, j] * (z[:, j] - fitted.predict(others)), rtol=1e-9)


def test_the_order_of_rows_and_units_of_columns_do_not_matter():
    rows = correlated(30, 4)
    order, units = np.random.default_rng(1).permutation(30), np.array([1.0, 1e-3, 50.0, 1e6])
    base, other = Whitening.of(rows), Whitening.of(rows[order] * units)
    np.testing.assert_allclose(other.residuals(rows * units), base.residuals(rows), rtol=1e-8)


def test_constant_and_repeated_columns():
    rows = correlated(30, 3)
    wider = np.column_stack([rows, np.full(30, 7.0), rows[:, 0]])
    found = Whitening.of(wider)
    for mapped in (found.standardise(wider), found.whiten(wider), found.residuals(wider)):
        assert np.isfinite(mapped).all()
        np.testing.assert_allclose(mapped[:, 3], 0.0, atol=1e-12)
    assert (Whitening.of(np.ones((5, 2))).residuals(np.ones((5, 2))) == 0).all()


@pytest.mark.parametrize("shape", [(12, 3), (7, 10)], ids=["tall", "wide"])
def test_leaving_out_rows_is_refitting(shape):
    Y, lam = correlated(*shape), 0.4
    Y = Y - Y.mean(axis=0)
    pairs, single = leave_two_out(Y, lam), leave_one_out(Y, lam)

    def refitted(*left_out):
        rest = np.delete(Y, left_out, axis=0)
        centred = rest - rest.mean(axis=0)
        P = np.linalg.inv(centred.T @ centred / len(rest) + lam * np.eye(Y.shape[1]))
        return Y - rest.mean(axis=0), P

    for j in range(len(Y)):
        z, P = refitted(j)
        np.testing.assert_allclose(single.squared_norms[j], z[j] @ P @ z[j], rtol=1e-9)
        gaps = z - z[j]
        np.testing.assert_allclose(
            single.squared_distances[:, j], np.einsum("ij,jk,ik->i", gaps, P, gaps), rtol=1e-8, atol=1e-9
        )
        for i in range(j):
            z, P = refitted(i, j)
            gap = z[i] - z[j]
            for found in (pairs.products[i, j], pairs.products[j, i]):
                np.testing.assert_allclose(found, z[i] @ P @ z[j], rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(pairs.squared_distances[i, j], gap @ P @ gap, rtol=1e-8)

"""Nyström features: projections on the span of landmarks, and the pivoted Cholesky decomposition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tables import KERNELS, data_sets, sample

import muhat as mh
from muhat.features.nystroem import Nystroem, pivoted_cholesky

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

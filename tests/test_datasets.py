"""The paper's distributions: what they are, and what they are on average."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from muhat.datasets import paper_mixture


@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_paper_mixture(d):
    P = paper_mixture(d, random_state=d)
    assert_allclose(P.weights, [0.05, 0.3, 0.4, 0.25], rtol=1e-15)
    assert P.means.shape == (4, d)
    assert (np.abs(P.means) <= 10).all()
    for covariance in P.covariances:
        eigenvalues = np.linalg.eigvalsh(covariance - 0.2 * np.eye(d))
        assert eigenvalues.min() >= -1e-10
        assert np.sum(eigenvalues > 1e-8) == min(d, 7)
    assert_array_equal(P.covariances, paper_mixture(d, random_state=d).covariances)


def test_paper_mixture_in_the_mean():
    """Means uniform on (-10, 10); Wishart(2 I, 7) has mean 14 I."""
    draws = [paper_mixture(5, random_state=seed) for seed in range(300)]
    means = np.concatenate([P.means.ravel() for P in draws])
    assert abs(means.mean()) <= 4.5 * means.std() / np.sqrt(means.size)
    assert_allclose(means.var(), 100 / 3, rtol=0.06)  # 6,000 draws: standard error 1.2 %
    noise = np.concatenate([P.covariances for P in draws])
    error = noise.std(axis=0) / np.sqrt(len(noise))
    assert (np.abs(noise.mean(axis=0) - 14.2 * np.eye(5)) <= 4.5 * error).all()


def test_other_designs():
    P = paper_mixture(5, random_state=0, n_components=10, reach=2.0, degrees_of_freedom=40)
    assert_allclose(P.weights, np.full(10, 0.1), rtol=1e-15)
    assert P.means.shape == (10, 5)
    assert np.abs(P.means).max() <= 2.0
    assert np.trace(P.covariances.mean(axis=0)) / 5 == pytest.approx(80.2, rel=0.1)

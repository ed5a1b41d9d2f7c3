"""Mixture prior over bags: EM, moments and risk against their definitions, and gains where bags come in kinds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import muhat as mh
from muhat.bags.efron_morris import estimate_between, fit_pools
from muhat.bags.mixture_prior import fit_kinds, fit_kinds_pool, fit_mixture, risk_weights
from muhat.bags.moments import BagMoments


def kinds_of_means(n=60, kinds=3, m=4, apart=4.0, seed=0):
    """True means, observed means and sizes of bags of several kinds, where W is the identity over m."""
    rng = np.random.default_rng(seed)
    centres = apart * rng.normal(size=(kinds, m)) / np.sqrt(m)
    sizes, owners = rng.integers(5, 40, size=n), np.arange(n) % kinds
    truth = centres[owners] + 0.1 * rng.normal(size=(n, m))
    return truth, truth + rng.normal(size=(n, m)) / np.sqrt(m * sizes)[:, None], sizes, owners


def test_kinds_are_found():
    _, means, sizes, owners = kinds_of_means()
    kinds = fit_kinds(means * 2.0, sizes, 3, np.random.default_rng(0))
    rho = kinds.responsibilities(means * 2.0, sizes)
    assert_allclose(rho.sum(axis=1), 1)
    labels = rho.argmax(axis=1)
    assert all(len(set(labels[owners == k])) == 1 for k in range(3))
    assert len(set(labels)) == 3


def test_one_kind_is_the_plain_prior():
    _, means, sizes, _ = kinds_of_means(kinds=1)
    W = np.eye(4) / 4
    plain = fit_pools(BagMoments(means, W, 100), sizes, [0.3])[0]
    found = fit_kinds_pool(plain, means, sizes, 1, np.random.default_rng(0))
    centre, root = estimate_between(means, sizes, W)
    assert_allclose(found.centres[0], centre, atol=1e-10)
    assert_allclose(found.pool.between, root @ root.T, atol=1e-10)
    assert_allclose(found.means(means, sizes, 0.1), plain.means(means, sizes, 0.1), atol=1e-10)
    for got, want in zip(found.left_out(means, sizes, 0.1), plain.left_out(means, sizes, 0.1), strict=True):
        assert_allclose(got, want, atol=1e-10)


@pytest.mark.parametrize("apart", [1.0, 4.0])
def test_the_estimate_of_the_risk_is_that_of_the_loss(apart):
    """For bags that the prior has not seen, over many draws of their noise."""
    _, means, sizes, _ = kinds_of_means(m=2, apart=apart)
    W = np.eye(2) / 2
    finder = fit_pools(BagMoments(means, W, 100), sizes, [0.01])[0]
    prior = fit_kinds_pool(finder, means, sizes, 3, np.random.default_rng(0))
    truth, _, new_sizes, _ = kinds_of_means(m=2, apart=apart, seed=0)
    rng, gaps = np.random.default_rng(1), []
    for _ in range(300):
        X = truth + rng.normal(size=truth.shape) / np.sqrt(2 * new_sizes)[:, None]
        residual, optimism = prior.left_out(X, new_sizes, 0.0)
        estimate = np.square(residual).sum() + (2.0 * optimism - np.trace(W) / new_sizes).sum()
        gaps.append(estimate - np.square(X - residual - truth).sum())
    loss = np.square(X - residual - truth).sum()
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(300) + 0.05 * loss  # responsibilities have a D of their own


def test_weights_minimise_the_estimated_risk():
    rng = np.random.default_rng(0)
    R, d = rng.normal(size=(3, 200)), rng.uniform(0, 40, size=3)
    weights = risk_weights(R @ R.T, d)
    grid = rng.dirichlet(np.ones(3), size=5000)
    risks = np.einsum("ni,ij,nj->n", grid, R @ R.T, grid) + 2 * grid @ d
    assert weights @ (R @ R.T) @ weights + 2 * d @ weights <= risks.min() * (1 + 1e-3)


def test_numbers_of_kinds():
    _, means, sizes, _ = kinds_of_means()
    moments = BagMoments(means, np.eye(4) / 4, 100)
    pool = fit_pools(moments, sizes, [0.3])[0]
    chosen = fit_mixture(pool, means, sizes).weights
    assert_allclose(sum(chosen.values()), 1)
    assert chosen.get(1, 0.0) < 0.5
    assert fit_mixture(pool, means, sizes, kinds=2).weights == {2: 1.0}
    assert fit_mixture(pool, means[:8], sizes[:8]).weights == {1: 1.0}


@pytest.mark.slow
def test_bags_of_several_kinds_gain():
    rng = np.random.default_rng(0)
    centres = np.array([[4.0, 0.0], [-2.0, 3.5], [-2.0, -3.5]])[np.arange(45) % 3]
    bags = [rng.normal(centre, size=(10, 2)) for centre in centres]
    kernel = mh.Gaussian(2.0)
    truth = [mh.embed(kernel, mh.GaussianMixture([1.0], [centre], [1.0])) for centre in centres]

    def loss(**options):
        pooled = mh.pooled_means(bags, kernel, **options)
        return sum(f.distance(g) ** 2 for f, g in zip(pooled, truth, strict=True))

    assert loss(kinds=3) < 0.8 * loss(kinds=1)
    assert loss() < loss(kinds=1)
    order = rng.permutation(45)
    again = mh.pooled_means([bags[i] for i in order], kernel)
    assert_allclose(sum(f.distance(truth[i]) ** 2 for f, i in zip(again, order, strict=True)), loss(), rtol=0.15)

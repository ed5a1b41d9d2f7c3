"""Exact expectations of kernels against Monte Carlo, quadrature and direct sums."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from tables import CLOSED_FORM, FUNCTIONS, KERNELS, WITHOUT_CLOSED_FORM, sample

import muhat as mh
from muhat.kernels.expectations import expect_diag, expectations

every_closed_form = pytest.mark.parametrize("name", CLOSED_FORM)
DRAWS = 200_000


def covariance(d, rank, seed):
    root = np.random.default_rng(seed).normal(size=(d, rank)) * 0.6
    return root @ root.T


def mixture_parts(d, ranks, seed):
    """(weights, means, covariances): a rank below d makes a singular component, rank 0 a point."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(len(ranks)))
    covariances = np.array([covariance(d, rank, seed + 10 * j) for j, rank in enumerate(ranks)])
    return weights, rng.normal(size=(len(ranks), d)) * 0.8, covariances


PAIRS = {
    "regular": (mixture_parts(3, (3, 3), seed=1), mixture_parts(3, (3, 3, 3), seed=2)),
    "singular": (mixture_parts(3, (1, 2), seed=3), mixture_parts(3, (2, 1), seed=4)),
    "with_points": (mixture_parts(3, (0, 2), seed=5), mixture_parts(3, (3, 0), seed=6)),
    "one_dimension": (mixture_parts(1, (1, 1), seed=7), mixture_parts(1, (1,), seed=8)),
}
every_pair = pytest.mark.parametrize("pair", PAIRS)


def in_the_plane(seed):
    """Spreads of about half the narrowest bandwidth, so that the quadrature below converges to rounding."""
    weights, means, covariances = mixture_parts(2, (2, 1, 0), seed)
    return weights, means, 0.1 * covariances


# ---------------------------------------------------------------- Gaussian mixtures


@pytest.mark.slow
@every_pair
@every_closed_form
def test_expectations_against_monte_carlo(name, pair):
    P, Q = PAIRS[pair]
    rng, k = np.random.default_rng(11), FUNCTIONS[name]
    x, y = oracles.sample_mixture(*P, DRAWS, rng), oracles.sample_mixture(*Q, DRAWS, rng)
    exact = KERNELS[name].expect(mh.GaussianMixture(*P), mh.GaussianMixture(*Q))
    on_diagonal = expect_diag(KERNELS[name], mh.GaussianMixture(*P))
    for found, values in ((exact, k(x, y)), (on_diagonal, k(x, x))):
        estimate, error = oracles.monte_carlo(values)
        # The diagonal of a Gaussian kernel is a constant: its standard error is zero.
        assert abs(found - estimate) <= 4 * error + 1e-10


@every_closed_form
def test_expect_against_quadrature(name):
    P, Q = in_the_plane(21), in_the_plane(22)
    (x, p), (y, q) = (oracles.gauss_hermite_mixture(*R, order=24) for R in (P, Q))
    want = p @ oracles.gram(FUNCTIONS[name], x, y) @ q
    measure_p, measure_q = mh.GaussianMixture(*P), mh.GaussianMixture(*Q)
    assert_allclose(KERNELS[name].expect(measure_p, measure_q), want, rtol=1e-10)
    assert_allclose(expect_diag(KERNELS[name], measure_p), p @ FUNCTIONS[name](x, x), rtol=1e-10)


@every_closed_form
def test_expectations_are_componentwise(name):
    (pi, a, A), (rho, b, B) = PAIRS["regular"]
    P, Q = mh.GaussianMixture(pi, a, A), mh.GaussianMixture(rho, b, B)
    table = expectations(KERNELS[name], P, Q)
    assert table.shape == (len(pi), len(rho))
    for i in range(len(pi)):
        for j in range(len(rho)):
            one = mh.GaussianMixture([1.0], a[i : i + 1], A[i : i + 1])
            other = mh.GaussianMixture([1.0], b[j : j + 1], B[j : j + 1])
            assert_allclose(table[i, j], KERNELS[name].expect(one, other), rtol=1e-10)
    assert_allclose(KERNELS[name].expect(P, Q), pi @ table @ rho, rtol=1e-10)


# ---------------------------------------------------------------- atoms


@pytest.mark.parametrize("name", KERNELS)
def test_atoms_are_direct_sums(name):
    X, Y, rng = sample(6, 3, seed=31), sample(4, 3, seed=32), np.random.default_rng(33)
    alpha, beta = rng.normal(size=6), rng.normal(size=4)
    P, Q, K = mh.Atoms(X, alpha), mh.Atoms(Y, beta), oracles.gram(FUNCTIONS[name], X, Y)
    size = np.abs(alpha) @ np.abs(K) @ np.abs(beta)
    assert_allclose(KERNELS[name].expect(P, Q), alpha @ K @ beta, rtol=0, atol=1e-10 * size)
    assert_allclose(expectations(KERNELS[name], P, Q), K, rtol=1e-10, atol=1e-12 * np.abs(K).max())
    diagonal = FUNCTIONS[name](X, X)
    assert_allclose(expect_diag(KERNELS[name], P), alpha @ diagonal, rtol=0, atol=1e-10 * size)


@every_closed_form
def test_a_point_is_a_gaussian_without_spread(name):
    X = sample(5, 3, seed=41)
    weights = oracles.uniform(5)
    points, spikes = mh.Atoms(X, weights), mh.GaussianMixture(weights, X, np.zeros((5, 3, 3)))
    other = mh.GaussianMixture(*PAIRS["regular"][0])
    kernel = KERNELS[name]
    for partner in (points, spikes, other):
        assert_allclose(kernel.expect(points, partner), kernel.expect(spikes, partner), rtol=1e-10)
        assert_allclose(kernel.expect(partner, points), kernel.expect(partner, spikes), rtol=1e-10)
    assert_allclose(expect_diag(kernel, points), expect_diag(kernel, spikes), rtol=1e-10)
    assert_allclose(expectations(kernel, points, other), expectations(kernel, spikes, other), rtol=1e-10, atol=1e-13)


# ---------------------------------------------------------------- algebra


def test_sums_and_multiples_are_linear():
    P, Q = (mh.GaussianMixture(*parts) for parts in PAIRS["regular"])
    k, m = mh.Gaussian(bandwidth=0.8), mh.Polynomial(degree=3, constant=0.5)
    for mixed, want in (
        (k + m, lambda f: f(k) + f(m)),
        (2.5 * m, lambda f: 2.5 * f(m)),
        (2.0 * k + 0.5 * m, lambda f: 2.0 * f(k) + 0.5 * f(m)),
    ):
        assert_allclose(mixed.expect(P, Q), want(lambda kernel: kernel.expect(P, Q)), rtol=1e-10)
        assert_allclose(expect_diag(mixed, P), want(lambda kernel: expect_diag(kernel, P)), rtol=1e-10)
        assert_allclose(expectations(mixed, P, Q), want(lambda kernel: expectations(kernel, P, Q)), rtol=1e-10)


def test_polynomial_of_degree_one_is_linear_plus_a_constant():
    P, Q = (mh.GaussianMixture(*parts) for parts in PAIRS["singular"])
    difference = mh.Polynomial(degree=1, constant=0.7).expect(P, Q) - mh.Linear().expect(P, Q)
    assert_allclose(difference, 0.7, rtol=1e-10)


@pytest.mark.parametrize("name", WITHOUT_CLOSED_FORM)
def test_kernels_without_a_closed_form_say_what_to_do(name):
    P = mh.GaussianMixture(*PAIRS["regular"][0])
    points = mh.Atoms(sample(3, 3, seed=51), oracles.uniform(3))
    for Q in (P, points):
        with pytest.raises(ValueError, match="sample"):
            KERNELS[name].expect(P, Q)


# ---------------------------------------------------------------- the loss


@every_closed_form
def test_the_exact_loss(name):
    """||sum_i beta_i phi(x_i) - mu_P||^2 by its three terms."""
    kernel, P = KERNELS[name], mh.GaussianMixture(*PAIRS["singular"][0])
    X, beta = sample(7, 3, seed=61), np.random.default_rng(62).normal(size=7)
    truth = mh.embed(kernel, P)
    terms = np.array(
        [
            beta @ oracles.gram(FUNCTIONS[name], X, X) @ beta,
            -2 * beta @ [kernel.expect(mh.Atoms(x[None], [1.0]), P) for x in X],
            kernel.expect(P, P),
        ]
    )
    loss = mh.embed(kernel, X, weights=beta).distance(truth) ** 2
    assert_allclose(loss, terms.sum(), rtol=0, atol=1e-10 * np.abs(terms).sum())


@every_closed_form
def test_the_expected_loss_of_the_plain_mean(name):
    """(E k(x, x) - ||mu||^2) / n: forty samples agree within 4 standard errors."""
    parts = PAIRS["regular"][0]
    kernel, P, rng, n = KERNELS[name], mh.GaussianMixture(*parts), np.random.default_rng(71), 30
    truth, squared_truth = mh.embed(kernel, P), kernel.expect(P, P)
    means = [mh.embed(kernel, oracles.sample_mixture(*parts, n, rng)) for _ in range(40)]
    losses = [mean.norm() ** 2 - 2 * mean.inner(truth) + squared_truth for mean in means]
    estimate, error = oracles.monte_carlo(losses)
    assert abs(estimate - (expect_diag(kernel, P) - squared_truth) / n) <= 4 * error


@pytest.mark.parametrize("degree", [4, 7])
def test_polynomials_without_a_closed_form_say_so_for_means_and_diagonals(degree):
    P = mh.GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])
    kernel = mh.Polynomial(degree)
    for compute in (lambda: kernel.expect(P, P), lambda: expect_diag(kernel, P)):
        with pytest.raises(ValueError, match=rf"Polynomial\(degree={degree}.* has no closed-form expectation"):
            compute()

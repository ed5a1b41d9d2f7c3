"""The objective of matching against elements, its gradients against differences, the weights against brute force."""

import itertools

import numpy as np
import pytest
from mixtures import spherical_and_diag
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from tables import CLOSED_FORM, KERNELS, sample

import muhat as mh
from muhat.density.objective import Mixture
from muhat.density.solvers import Settings, _Coordinates, _FreeCoordinates, solve
from muhat.density.start import kernel_size, matching_objective

every_kernel = pytest.mark.parametrize("name", CLOSED_FORM)
every_target = pytest.mark.parametrize("target", ["few_atoms", "many_atoms", "gaussians", "both"])


def random_mixture(m, d, seed, covariance_type="diag"):
    rng = np.random.default_rng(seed)
    width = 1 if covariance_type == "spherical" else d
    variances = rng.uniform(0.2, 1.5, size=(m, width)) * np.ones(d)
    return Mixture(rng.dirichlet(np.ones(m)), rng.normal(size=(m, d)), variances)


def random_target(kernel, kind, d=3):
    """Signed weights, more and fewer atoms than d², and Gaussians with full covariances."""
    rng = np.random.default_rng(5)
    n = {"few_atoms": 6, "many_atoms": 40}.get(kind, 8)
    atoms = mh.embed(kernel, sample(n, d, seed=1), rng.normal(0.3, 1.0, size=n) / n)
    if kind in ("few_atoms", "many_atoms"):
        return atoms
    roots = rng.normal(size=(2, d, d))
    gaussians = mh.embed(kernel, mh.GaussianMixture([0.4, 0.6], sample(2, d, seed=2), roots @ roots.transpose(0, 2, 1)))
    return 0.7 * gaussians if kind == "gaussians" else atoms + 0.7 * gaussians


# ---------------------------------------------------------------- objective and gradients


@every_target
@every_kernel
def test_objective_is_the_squared_distance(name, target):
    kernel = KERNELS[name]
    element = random_target(kernel, target)
    mixture = random_mixture(4, 3, seed=3)
    distance = element.distance(mh.embed(kernel, mh.GaussianMixture(*mixture)))
    assert_allclose(matching_objective(element).value(mixture), distance**2, rtol=1e-10, atol=1e-12)


@every_target
@every_kernel
def test_gradient_by_means_variances_and_weights(name, target):
    objective = matching_objective(random_target(KERNELS[name], target))
    mixture = random_mixture(4, 3, seed=4)
    shapes, cuts = [part.shape for part in mixture], [4, 16]

    def value(x):
        parts = zip(np.split(x, cuts), shapes, strict=True)
        return objective.value(Mixture(*(part.reshape(shape) for part, shape in parts)))

    written = np.concatenate([part.ravel() for part in objective.with_gradient(mixture)[1]])
    assert_gradient(value, np.concatenate([part.ravel() for part in mixture]), written)


@pytest.mark.parametrize("coordinates", [_Coordinates, _FreeCoordinates])
@spherical_and_diag
@every_kernel
def test_gradient_in_the_coordinates_of_each_solver(name, covariance_type, coordinates):
    objective = matching_objective(random_target(KERNELS[name], "both"))
    mixture = random_mixture(4, 3, seed=4, covariance_type=covariance_type)
    settings = Settings(covariance_type == "spherical", floor=1e-3, unit=1.7, size=2.0, tol=1e-6, max_iter=1)
    vector = coordinates(mixture, settings)
    x = vector.encode(mixture)
    for part, expected in zip(vector.decode(x), mixture, strict=True):
        assert_allclose(part, expected, rtol=1e-12)
    written = vector.gradient(x, objective.with_gradient(mixture)[1])
    assert_gradient(lambda x: objective.value(vector.decode(x)), x, written)


def assert_gradient(value, x, written):
    """Forward and backward differences of step h have opposite first errors: their mean errs by h²."""
    h = 1e-5
    differences = (approx_fprime(x, value, h) + approx_fprime(x, value, -h)) / 2
    assert_allclose(written, differences, rtol=0, atol=1e-7 * max(1.0, np.abs(written).max()))


# ---------------------------------------------------------------- the weights


def best_of_all_supports(Q, inner):
    """The least of πᵀQπ − 2πᵀl on the simplex, by trying every set of non-zero weights."""
    m, best = len(Q), np.inf
    for size in range(1, m + 1):
        for support in map(list, itertools.combinations(range(m), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[-1, -1] = Q[np.ix_(support, support)], 0.0
            weights = np.linalg.lstsq(system, np.append(inner[support], 1.0))[0][:size]
            if weights.min() >= 0:
                part = Q[np.ix_(support, support)]
                best = min(best, weights @ part @ weights - 2 * weights @ inner[support])
    return best


@every_target
@every_kernel
def test_best_weights_are_the_best_of_all_supports(name, target):
    kernel = KERNELS[name]
    element, mixture = random_target(kernel, target), random_mixture(5, 3, seed=6)
    parts = zip(mixture.means, mixture.variances, strict=True)
    components = [mh.embed(kernel, mh.GaussianMixture([1.0], [mean], [variances])) for mean, variances in parts]
    Q = np.array([[a.inner(b) for a in components] for b in components])
    inner = np.array([element.inner(a) for a in components])
    weights = matching_objective(element).best_weights(mixture)
    assert weights.min() >= 0
    assert_allclose(weights.sum(), 1, rtol=1e-14)
    size = max(np.abs(Q).max(), np.abs(inner).max())
    assert weights @ Q @ weights - 2 * weights @ inner <= best_of_all_supports(Q, inner) + 1e-10 * size


def test_the_size_of_a_kernel_is_one_at_scale_one():
    for kernel, size in (
        (mh.Gaussian(0.3), 1.0),
        (mh.Polynomial(3, 0.5), 1.0),
        (2.0 * mh.Polynomial(2) + mh.Linear(), 3.0),
    ):
        assert_allclose(kernel_size(kernel, 1.0), size)
    assert_allclose(kernel_size(mh.Linear(), 3.0), 9.0)
    assert_allclose(kernel_size(mh.Polynomial(2, 0.0), 3.0), 81.0)


# ---------------------------------------------------------------- the start


SETTINGS = Settings(spherical=True, floor=1e-3, unit=1.0, size=1.0, tol=1e-6, max_iter=1)


@pytest.mark.parametrize("solver", ["slsqp", "lbfgs", "weights"])
def test_no_solution_is_worse_than_its_start(solver):
    """The start is the truth, with a component that has no weight: every step away from it is one for the worse."""
    truth = random_mixture(3, 3, seed=8, covariance_type="spherical")
    kernel = mh.Gaussian(1.0)
    objective = matching_objective(mh.embed(kernel, mh.GaussianMixture(*truth)))
    far = Mixture(
        np.append(truth.weights, 0.0),
        np.vstack([truth.means, [[9.0, 9.0, 9.0]]]),
        np.vstack([truth.variances, [[1.0] * 3]]),
    )
    found = solve(objective, far, solver, SETTINGS).mixture
    assert objective.value(found) <= objective.value(far)


def test_weights_that_are_as_good_stay():
    """Two components that are one leave their weights undetermined; those of the start are kept."""
    truth = random_mixture(2, 3, seed=9, covariance_type="spherical")
    objective = matching_objective(mh.embed(mh.Gaussian(1.0), mh.GaussianMixture(*truth)))
    twice = Mixture(
        np.append(truth.weights * [1.0, 0.3], truth.weights[1] * 0.7),
        truth.means[[0, 1, 1]],
        truth.variances[[0, 1, 1]],
    )
    assert_allclose(solve(objective, twice, "weights", SETTINGS).mixture.weights, twice.weights, rtol=0, atol=0)
    moved = twice._replace(weights=np.array([0.2, 0.2, 0.6]))
    better = solve(objective, moved, "weights", SETTINGS).mixture
    assert objective.value(better) < 1e-3 * objective.value(moved)

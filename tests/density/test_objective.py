"""The objective of matching against elements, its gradients against differences, its weights against brute force."""

import itertools

import numpy as np
import pytest
from mixtures import assert_gradient, random_mixture, random_target
from numpy.testing import assert_allclose
from tables import CLOSED_FORM, KERNELS

import muhat as mh
from muhat.density.objective import Mixture, kernel_size, matching_objective

every_kernel = pytest.mark.parametrize("name", CLOSED_FORM)
every_target = pytest.mark.parametrize("target", ["few_atoms", "many_atoms", "gaussians", "both"])


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

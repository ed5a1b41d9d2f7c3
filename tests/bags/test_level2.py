"""Kernels between mean elements: functions of inner products and distances, and their median."""

import numpy as np
import oracles
import pytest
from bag_samples import random_bags
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.bags import data as bags_module
from muhat.bags.distribution_kernel import DistributionKernel

LEVEL2 = {
    "linear": "linear",
    "Linear": mh.Linear(),
    "polynomial": mh.Polynomial(degree=2, constant=0.5),
    "gaussian": mh.Gaussian(bandwidth=0.7),
    "laplace": mh.Laplace(bandwidth=0.7),
    "matern_half": mh.Matern(nu=0.5, bandwidth=0.7),
    "matern": mh.Matern(nu=1.5, bandwidth=0.7),
    "matern_smooth": mh.Matern(nu=2.5, bandwidth=0.7),
    "sum": 2.0 * mh.Linear() + mh.Gaussian(bandwidth=0.7),
    "product": mh.Polynomial(degree=2, constant=0.5) * mh.Gaussian(bandwidth=0.7),
}


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles so small that bags are cut by them."""
    monkeypatch.setattr(bags_module, "BLOCK", 7)


def elements(kernel, bags):
    return [mh.embed(kernel, bag) for bag in bags]


@pytest.mark.parametrize("name", LEVEL2)
@pytest.mark.usefixtures("small_tiles")
def test_level_2_is_a_function_of_elements(name):
    level2, kernel = LEVEL2[name], mh.Gaussian(1.2)
    train, test = random_bags(), random_bags((5, 1, 12), seed=1)
    profiles = {
        "polynomial": lambda f, g: (f.inner(g) + 0.5) ** 2,
        "gaussian": lambda f, g: np.exp(-(f.distance(g) ** 2) / (2 * 0.7**2)),
        "laplace": lambda f, g: np.exp(-f.distance(g) / 0.7),
        "sum": lambda f, g: 2 * f.inner(g) + np.exp(-(f.distance(g) ** 2) / (2 * 0.7**2)),
        "product": lambda f, g: (f.inner(g) + 0.5) ** 2 * np.exp(-(f.distance(g) ** 2) / (2 * 0.7**2)),
        **{
            key: lambda f, g, nu=nu: oracles.matern(np.zeros(1), np.array([f.distance(g)]), nu=nu, bandwidth=0.7)
            for key, nu in (("matern_half", 0.5), ("matern", 1.5), ("matern_smooth", 2.5))
        },
    }
    profile = profiles.get(name, lambda f, g: f.inner(g))
    fitted = DistributionKernel(kernel, level2=level2).fit(train)
    want = [[profile(f, g) for g in elements(kernel, train)] for f in elements(kernel, test)]
    assert_allclose(fitted.transform(test), want, rtol=1e-10)
    want = [[profile(f, g) for g in elements(kernel, train)] for f in elements(kernel, train)]
    assert_allclose(fitted.fit_transform(train), want, rtol=1e-10)


@pytest.mark.parametrize("level2", [mh.Gaussian(), mh.Matern(), mh.Laplace()])
@pytest.mark.parametrize("n", [2, 7, 8])
def test_the_level_2_median_is_over_pairs_of_bags(level2, n):
    bags = random_bags((6,) * n)
    fitted = DistributionKernel(mh.Gaussian(1.0), level2=level2).fit(bags)
    f = elements(mh.Gaussian(1.0), bags)
    distances = np.array([f[i].distance(f[j]) for i in range(n) for j in range(i + 1, n)])
    want = np.median(distances) if isinstance(level2, mh.Laplace) else np.sqrt(np.median(distances**2))
    assert_allclose(fitted.level2_.bandwidth, want, rtol=1e-10)
    assert fitted.level2 == level2


@pytest.mark.parametrize("name", LEVEL2)
def test_gram_matrices_are_positive_semidefinite(name):
    K = DistributionKernel(level2=LEVEL2[name]).fit_transform(random_bags((1, 1, 2, 5, 8, 20) * 3))
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)


def test_equal_bags_are_equal():
    base = random_bags((20,), d=8)[0]
    bags = [base, *random_bags((700, 3, 5), d=8, seed=1), base.copy(), base[::-1]]
    for level2 in (mh.Gaussian(), mh.Laplace(), mh.Matern(nu=0.5)):
        K = DistributionKernel(level2=level2).fit_transform(bags)
        assert_array_equal(K[np.ix_([0, 4, 5], [0, 4, 5])], 1.0)


def test_identical_bags():
    bags = [random_bags((20,))[0]] * 5
    assert_array_equal(DistributionKernel(level2=mh.Gaussian(1.0)).fit_transform(bags), 1.0)


def test_mostly_identical_bags_warn():
    bags = [random_bags((20,))[0]] * 6 + random_bags((4,))
    with pytest.warns(UserWarning, match="half of the pairs of bags coincide"):
        fitted = DistributionKernel(level2=mh.Gaussian()).fit(bags)
    assert fitted.level2_.bandwidth > 0.01

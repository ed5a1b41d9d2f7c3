"""Shared protocol: exact losses are distances of elements, and tables are standardised whatever their source."""

import numpy as np
import pytest
from paper_samples import KERNELS as NAMES

import muhat as mh
from paper.data import BUNDLED
from paper.protocol import (
    KERNELS,
    exact_loss,
    population_and_sample,
    selected_losses,
    standardised_table,
)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_the_squared_distance_of_elements(name):
    P, X = population_and_sample(8, 3, np.random.default_rng(0))
    kernel = KERNELS[name].resolve(X)
    weights = np.random.default_rng(1).uniform(size=8)
    distance = mh.embed(kernel, X, weights=weights).distance(mh.embed(kernel, P))
    assert exact_loss(kernel, P, X)(weights) == pytest.approx(distance**2, rel=1e-8)
    plain = mh.embed(kernel, X).distance(mh.embed(kernel, P))
    assert selected_losses(KERNELS[name], P, X)["KME"] == pytest.approx(plain**2, rel=1e-8)


@pytest.mark.parametrize("name", BUNDLED)
def test_columns_have_mean_zero_and_variance_one(name):
    X = standardised_table(name, None)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)

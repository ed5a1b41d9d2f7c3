"""The empirical Bernstein radius solves its inequality."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

import muhat as mh
from muhat.inference.bernstein import bernstein_radius


def test_the_radius_solves_its_inequality():
    """The level of Pinelis' inequality at the radius, for the upper bound of σ, is δ/2; and so is that of σ itself."""
    n, variance, diameter, delta = 50, 0.3, 2.0, 0.1
    radius = bernstein_radius(n, variance, diameter, delta)
    slack = diameter * np.log(2 / delta) / n
    sigma = np.sqrt(variance + slack) + np.sqrt(slack)
    exponent = n * radius**2 / (2 * (sigma**2 + np.sqrt(diameter) * radius / 3))
    assert_allclose(2 * np.exp(-exponent), delta / 2, rtol=1e-10)
    # nσ² − nV ≤ √(4 nσ² log(2/δ)) in units of D², with equality at the bound
    gap = n * (sigma**2 - variance) / diameter
    assert_allclose(np.exp(-(gap**2) / (4 * n * sigma**2 / diameter)), delta / 2, rtol=1e-10)


def test_the_variance_is_self_bounding():
    """What the proof of the constants uses, for Z = nV in units of D²: changes at most 1, squares sum to at most 2Z."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.normal(size=(12, 2)) * rng.uniform(0.1, 5.0)
        K = mh.Gaussian(1.0)(rows)
        squares = (2 - 2 * K) / 2
        value = squares.sum() / (2 * (12 - 1))
        drops = squares.sum(axis=1) / (12 - 1)
        assert drops.max() <= 1
        assert (drops**2).sum() <= 2 * value + 1e-12

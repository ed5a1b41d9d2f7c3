"""Moments of bags in features: light ones against plain ones."""

import numpy as np
import pytest
from bag_samples import random_bags
from numpy.testing import assert_allclose

import muhat as mh
from muhat.bags import moments
from muhat.bags.data import check_bags
from muhat.bags.moments import bag_moments, light_moments


@pytest.mark.parametrize(
    "features", [mh.Nystroem(n_components=9, random_state=0), mh.Fourier(n_components=20, random_state=0)]
)
def test_light_moments_are_the_plain_ones(features, monkeypatch):
    data = check_bags(random_bags((1, 700, 3, 2000, 1), d=2), mh.BagPrior(), reset=True)
    fitted = features.fit(data.rows)
    light, plain = light_moments(fitted, data), bag_moments(fitted, data)
    assert_allclose(light.means, plain.means, rtol=1e-9, atol=1e-12)
    assert_allclose(light.within, plain.within, rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(moments, "LIGHT_ROWS_WITHIN", 500)
    assert light_moments(fitted, data).degrees == 1 + 100 + 3 + 100 + 1 - 5
    assert_allclose(light_moments(fitted, data).within, plain.within, atol=0.1 * np.trace(plain.within))


def test_a_period_in_the_rows_of_a_bag_does_not_hide_the_covariance_within(monkeypatch):
    """Every tenth row is alike, as readings at one hour of the day are."""
    hours = np.tile(np.arange(10.0), 200)[:, None]
    data = check_bags([hours + shift for shift in range(3)], mh.BagPrior(), reset=True)
    fitted = mh.Nystroem(mh.Gaussian(2.0), 30, random_state=0).fit(data.rows)
    monkeypatch.setattr(moments, "LIGHT_ROWS_WITHIN", 600)
    light, plain = light_moments(fitted, data).within, bag_moments(fitted, data).within
    assert_allclose(light, plain, atol=0.1 * np.trace(plain))

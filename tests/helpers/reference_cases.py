"""Reference cases, and the kernel of the library that each is computed with."""

import json
from pathlib import Path

import numpy as np
import pytest

import muhat as mh

CASES = json.loads((Path(__file__).parents[1] / "data" / "reference_cases.json").read_text())["cases"]
every_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def kernel_of(case):
    if case["kernel"] == "RBF":
        return mh.Gaussian(bandwidth=np.sqrt(case["sigma2_median"]))
    named = {"LIN": mh.Linear(), "POLY2": mh.Polynomial(2, 1.0), "POLY3": mh.Polynomial(3, 1.0)}
    return named[case["kernel"]]


def mixture_of(case):
    stated = case["mixture"]
    noise = stated["noise_var"] * np.eye(case["d"])
    return mh.GaussianMixture(stated["pi"], stated["means"], np.array(stated["covs"]) + noise)


def assert_close(got, want, size):
    """1e-10 relative, or 1e-14 of the terms' own size: a near-zero value is a difference of those."""
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-14 * size)


def assert_weights(got, want):
    """1e-8 relative in norm; zero weights are compared on the scale of the plain average's."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    scale = np.linalg.norm(want) or 1 / np.sqrt(len(want))
    assert np.linalg.norm(got - want) <= 1e-8 * scale

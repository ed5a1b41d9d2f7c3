"""Choice of the kernel: losses by brute force, and the verdicts on which kernels gain."""

from itertools import product

import numpy as np
import oracles
import pytest
from paper_samples import CELL, EQUAL, SHRUNK, measured, verdict

from muhat.datasets import paper_mixture
from paper import kernel_choice
from paper.comparison import select
from paper.experiment import generator


def test_kernel_choice_by_brute_force():
    rows = kernel_choice.EXPERIMENT.run({**CELL, "width": [0.5]}, None)
    rng = generator("kernel_choice", CELL)
    P = paper_mixture(kernel_choice.D, random_state=rng)
    points = P.sample(kernel_choice.ATOMS, random_state=rng)
    X = points[rng.integers(kernel_choice.ATOMS, size=kernel_choice.N)]
    euclidean, cityblock = oracles.gaussian_median_bandwidth(X), oracles.laplace_median_bandwidth(X)
    width = 0.5
    kernels = {
        "RBF": lambda x, y: np.exp(-((x - y) ** 2).sum(-1) / (2 * width * euclidean**2)),
        "L1": lambda x, y: np.exp(-abs(x - y).sum(-1) / (2 * width * cityblock)),
        "L2": lambda x, y: np.exp(-np.sqrt(((x - y) ** 2).sum(-1)) / (2 * width * euclidean)),
    }
    whole = np.full(len(points), 1 / len(points))
    for family, k in kernels.items():
        (row,) = select(rows, family=family)
        K = oracles.gram(k, X, X)
        truth = oracles.gram(k, X, points) @ whole
        norm = np.mean([k(points, point).mean() for point in points])
        shrunk = (1 - np.clip(oracles.simple_shrinkage(K), 0, 1)) * oracles.uniform(len(X))
        for name, beta in (("KME", oracles.uniform(len(X))), ("S", shrunk)):
            assert row[name] == pytest.approx(beta @ K @ beta - 2 * beta @ truth + norm, rel=1e-8)
        eigenvalues = np.linalg.eigvalsh(K)
        assert row["evenness"] == pytest.approx(eigenvalues.sum() ** 2 / (len(X) * (eigenvalues**2).sum()))


def kernel_rows(factor, evenness, repetitions=8):
    """Rows with ``factor(family, width)`` for all estimators."""
    rows = []
    for family, width in product(kernel_choice.FAMILIES, (0.1, 1.0, 10.0)):
        head = {"family": family, "width": width, "evenness": evenness(family, width)}
        rows += [head | row for row in measured(dict.fromkeys(SHRUNK, factor(family, width)), repetitions)]
    return rows


def falling(family, width):
    """Narrow kernels gain more, and Laplacian ones more than Gaussian ones."""
    return {0.1: 0.5, 1.0: 0.7, 10.0: 0.9}[width] - {"RBF": 0.0, "L1": 0.05, "L2": 0.1}[family]


def rising(family, width):
    return 1.0 - falling(family, width)


@pytest.mark.parametrize("claim", ["slow-decay-gains-more", "narrow-kernels-gain-more", "laplacian-gains-more"])
def test_kernels(claim):
    assert verdict(claim, kernel_choice=kernel_rows(falling, evenness=rising)) == "holds"
    assert verdict(claim, kernel_choice=kernel_rows(rising, evenness=rising)) == "does not hold"
    assert verdict(claim, kernel_choice=kernel_rows(lambda *_: EQUAL, evenness=rising)) == "does not hold"
    assert verdict(claim, kernel_choice=kernel_rows(falling, rising, repetitions=1)) == "cannot be checked"


def test_plain_claims_need_more_than_hedged_ones():
    """One width of three is level: that is too little for the plain claim, and enough for hedged ones."""

    def except_wide(family, width):
        return falling(family, width) if width < 10 else 0.7

    assert verdict("narrow-kernels-gain-more", kernel_choice=kernel_rows(except_wide, rising)) == "holds in part"
    assert verdict("slow-decay-gains-more", kernel_choice=kernel_rows(except_wide, rising)) == "holds"


def test_decay_goes_by_the_evenness_and_not_by_the_width():
    assert verdict("slow-decay-gains-more", kernel_choice=kernel_rows(falling, evenness=falling)) == "does not hold"

"""What the tests of the paper share: verdicts on rows whose outcome is known, and samples of cells by hand."""

import numpy as np
import oracles

from muhat.datasets import paper_mixture
from paper.claim import judge
from paper.experiment import generator
from paper.registry import CLAIMS

KERNELS = ("LIN", "POLY2", "POLY3", "RBF")
SHRUNK = ("S", "F_theorem4", "F_loo")
BETTER, WORSE, EQUAL = 0.8, 1.2, 1.0
CELL = {"seed": 0, "repetition": 0}


def judged(claim, **rows):
    """What a run with these rows of experiments finds on the claim with this id."""
    (chosen,) = [candidate for candidate in CLAIMS if candidate.id == claim]
    found = judge(chosen, rows)
    assert "nan" not in found.evidence
    return found


def verdict(claim, **rows):
    return judged(claim, **rows).verdict()


def measured(factors, repetitions=8):
    """Rows in which each name has its factor times KME's loss, and a little noise that cancels."""
    rows = []
    for i in range(repetitions):
        base, noise = 1.0 + 0.1 * (i // 2), 0.001 * (-1) ** i
        rows.append({"repetition": i, "KME": base, **{name: base * (f + noise) for name, f in factors.items()}})
    return rows


def drawn(name, n, d, *stream):
    """The distribution of the cell, and its sample."""
    rng = generator(name, CELL, *stream)
    P = paper_mixture(d, random_state=rng)
    return P, P.sample(n, random_state=rng)


def gram(kernel, X, Y=None, bandwidth=None):
    Y = X if Y is None else Y
    if kernel == "RBF":
        return oracles.gram(lambda x, y: oracles.gaussian(x, y, bandwidth), X, Y)
    degree, constant = {"LIN": (1, 0.0), "POLY2": (2, 1.0), "POLY3": (3, 1.0)}[kernel]
    return oracles.gram(lambda x, y: oracles.polynomial(x, y, degree, constant), X, Y)


def feature_loss(kernel, P, X, beta):
    """The loss in coordinates: of x for LIN, and of (1, √2 x, x xᵀ) for POLY2."""
    mean = P.weights @ P.means
    linear = ((X.T @ beta - mean) ** 2).sum()
    if kernel == "LIN":
        return linear
    moment = np.einsum("c,cij->ij", P.weights, P.covariances + P.means[:, :, None] * P.means[:, None, :])
    return (beta.sum() - 1) ** 2 + 2 * linear + (((X.T * beta) @ X - moment) ** 2).sum()

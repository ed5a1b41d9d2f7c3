"""Protocol that the experiments share: kernels, estimators, mixtures with exact losses, and standardised tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch

import muhat as mh
from paper.data import BUNDLED, UCI_TABLES, load_bags, load_uci
from paper.experiment import Array, Plan

KERNELS: dict[str, mh.kernels.Kernel] = {
    "LIN": mh.Linear(),
    "POLY2": mh.Polynomial(degree=2),
    "POLY3": mh.Polynomial(degree=3),
    "RBF": mh.Gaussian(),
}

ESTIMATORS: dict[str, mh.means.BaseKernelMean] = {
    "KME": mh.KernelMean(),
    "S": mh.ShrunkKernelMean(),
    "F_theorem4": mh.SpectralKernelMean(lam="theorem4"),
    "F_loo": mh.SpectralKernelMean(),
}

COMPARED = ("S", "F_theorem4", "F_loo", "oracle")
"""What the synthetic experiments compare with KME."""


def population_and_sample(n: int, d: int, rng: np.random.Generator) -> tuple[mh.GaussianMixture, Array]:
    """A random mixture of the paper's kind, and n draws from it."""
    P = mh.paper_mixture(d, random_state=rng)
    return P, P.sample(n, random_state=rng)


def exact_loss(kernel: mh.kernels.Kernel, P: mh.kernels.Measure, X: Array) -> Callable[[Array], float]:
    """The function β -> ‖Σ βᵢ k(xᵢ, ·) − μ_P‖²."""
    truth = mh.embed(kernel, P)
    K, values, squared_norm = kernel(X, X), truth(X), truth.norm() ** 2

    def loss(beta: Array) -> float:
        return float(beta @ K @ beta - 2.0 * beta @ values + squared_norm)

    return loss


def selected_weights(kernel: mh.kernels.Kernel, X: Array) -> dict[str, Array]:
    """Weights of each estimator, with λ by leave-one-out."""
    return {name: clone(mean).set_params(kernel=kernel).fit(X).weights_ for name, mean in ESTIMATORS.items()}


def selected_losses(kernel: mh.kernels.Kernel, P: mh.kernels.Measure, X: Array) -> dict[str, float]:
    """Losses with λ by leave-one-out, and of the oracle. ``kernel`` may have a median bandwidth."""
    kernel = kernel.resolve(X)
    loss = exact_loss(kernel, P, X)
    weights = selected_weights(kernel, X)
    weights["oracle"] = (1.0 - mh.oracle_shrinkage(kernel, P, len(X)).shrinkage) * weights["KME"]
    return {name: loss(beta) for name, beta in weights.items()}


def uci_tables(plan: Plan) -> tuple[str, ...]:
    """Names of the tables of a plan; the quick form uses those alone that come with scikit-learn."""
    return BUNDLED if plan.quick else UCI_TABLES


def load_data(name: str, data: str | None) -> Bunch:
    """A table, from OpenML if need be, or bags."""
    return load_uci(name, data=data, download=True) if name in UCI_TABLES else load_bags(name, data=data)


def standardised_table(
    name: str, data: str | None, features: Literal["paper_plausible", "strict_real"] = "paper_plausible"
) -> Array:
    """A table without constant columns, each column with mean 0 and variance 1.

    The order of the rows depends on where the table comes from, so they are sorted first.
    """
    X = load_uci(name, features=features, data=None if name in BUNDLED else data, download=True).data
    X = X[np.lexsort(X.T)]
    return (X - X.mean(axis=0)) / X.std(axis=0)

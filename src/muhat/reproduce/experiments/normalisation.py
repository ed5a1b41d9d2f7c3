"""Weights that are made to sum to one, after the fact or by a constraint."""

from __future__ import annotations

import numpy as np

from muhat.kernels.base import Kernel
from muhat.means.constrained import affine_weights, simplex_weights
from muhat.measures import GaussianMixture
from muhat.report.page import Table
from muhat.reproduce.experiment import Experiment, Plan, Row, Section, Setting, generator
from muhat.reproduce.experiments.comparison import compared, shown
from muhat.reproduce.experiments.statistics import column, grouped
from muhat.reproduce.experiments.synthetic import KERNELS, exact_loss, population_and_sample, selected_weights
from muhat.types import Array

NAME = "normalisation"


D = 30


SIZES = (10, 20)


NORMALISED = ("S", "F_theorem4", "F_deletion")


HALF = 0.5


_ZERO = 1e-9  # of 1/n: what a solver leaves of a weight on the boundary


def flexible_affine_weights(K: Array, lam: float) -> Array:
    """The least of βᵀKβ − 2βᵀK1ₙ + λβᵀβ over Σβ = 1, by its optimality conditions."""
    n = len(K)
    system = np.block([[K + lam * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(K.mean(axis=1), 1.0))[:n]


def _cells(plan: Plan) -> list[Setting]:
    return [{"seed": plan.seed, "repetition": i} for i in range(plan.times(full=300, quick=30))]


def _run(setting: Setting, data: str | None) -> list[Row]:
    P, X = population_and_sample(SIZES[-1], D, generator(NAME, setting))
    return [
        {"kernel": name, "n": n, "repetition": setting["repetition"], **_losses(kernel.resolve(X[:n]), P, X[:n])}
        for n in SIZES
        for name, kernel in KERNELS.items()
    ]


def _losses(kernel: Kernel, P: GaussianMixture, X: Array) -> Row:
    K, loss, weights = kernel(X, X), exact_loss(kernel, P, X), selected_weights(kernel, X)
    row: Row = {name: loss(beta) for name, beta in weights.items()}
    for name in NORMALISED:
        total = weights[name].sum()
        row[f"{name}_normalised"] = loss(weights[name] / total) if total != 0 else None
    for suffix, alpha in (("", 1.0 - weights["S"].sum()), ("_half", HALF)):
        simplex = simplex_weights(K, alpha)
        row["affine" + suffix] = loss(affine_weights(K, alpha))
        row["simplex" + suffix] = loss(simplex)
        row["zeros" + suffix] = float((simplex < _ZERO / len(K)).mean())
    row["flexible_affine"] = loss(flexible_affine_weights(K, np.trace(K) / len(K)))
    return row


def _seconds(setting: Setting) -> float:
    return 0.12


COLUMNS = {
    "S": "S-KMSE",
    "S_normalised": "S, divided by Σβ",
    "F_theorem4": "F (Theorem 4)",
    "F_theorem4_normalised": "F (Theorem 4), divided",
    "F_deletion": "F (deletion)",
    "F_deletion_normalised": "F (deletion), divided",
    "affine": "Σβ = 1",
    "simplex": "Σβ = 1, β ≥ 0",
    "affine_half": "Σβ = 1, α = ½",
    "simplex_half": "Σβ = 1, β ≥ 0, α = ½",
    "flexible_affine": "F's penalty, Σβ = 1",
}


def _summary_row(rows: list[Row]) -> Row:
    head: Row = {"kernel": rows[0]["kernel"], "n": rows[0]["n"], "distributions": len(rows)}
    zeros = {name: float(column(rows, name).mean()) for name in ("zeros", "zeros_half")}
    return {**head, **zeros, **compared(rows, COLUMNS)}


def _section(rows: list[Row]) -> Section:
    settings = grouped(rows, "kernel", "n")
    summary = [_summary_row(settings[kernel, n]) for kernel in KERNELS for n in SIZES]
    names = list(COLUMNS)
    return Section(summary, (), [_table(summary, names[:6]), _table(summary, names[6:]), _sparsity_table(summary)])


def _table(summary: list[Row], names: list[str]) -> Table:
    caption = "Mean loss relative to KME's ± standard error, and the share of distributions improved"
    values = [[row["kernel"], row["n"], *(shown(row[name]) for name in names)] for row in summary]
    return Table(caption, ["kernel", "n", *(COLUMNS[name] for name in names)], values)


def _sparsity_table(summary: list[Row]) -> Table:
    values = [[row["kernel"], row["n"], f"{row['zeros']:.1%}", f"{row['zeros_half']:.1%}"] for row in summary]
    return Table("Share of weights that are zero, with β ≥ 0", ["kernel", "n", "α of S-KMSE", "α = ½"], values)


EXPERIMENT = Experiment(
    name=NAME,
    title="Weights that sum to one",
    protocol=(
        f"The data of figure 1, n = {SIZES[0]} and {SIZES[1]}, d = {D}. The weights of the shrinkage estimators are "
        "divided by their sum; for S-KMSE this is KME again.",
        "The constrained programmes minimise the shrinkage loss over Σβ = 1, with and without β ≥ 0, at the λ of "
        "S-KMSE and at λ = 1 (α = ½). With F-KMSE's penalty βᵀβ the constraint gives KME for every λ.",
    ),
    cells=_cells,
    run=_run,
    seconds=_seconds,
    section=_section,
)

"""Weights that sum to one: shrunken weights divided by their sum, and weights under a constraint."""

from __future__ import annotations

import numpy as np

from muhat.kernels.base import Kernel
from muhat.means.constrained import affine_weights, simplex_weights
from muhat.measures import GaussianMixture
from muhat.paper.claim import ESTIMATOR_SECTION, Judgement, claim, count_not_above, judged_together, spanned
from muhat.paper.comparison import PAPERS, SHRUNK, column, compared, decided, grouped, relative
from muhat.paper.experiment import Experiment, Headline, Row, Section, Setting, generator
from muhat.paper.panels import RATIOS, ratio_table
from muhat.paper.protocol import KERNELS, exact_loss, population_and_sample, selected_weights
from muhat.report.page import Table
from muhat.types import Array

NAME = "normalisation"
D = 30
SIZES = (10, 20)
HALF = 0.5
_ZERO = 1e-9  # of 1/n: what a solver leaves of a weight on the boundary

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


def flexible_affine_weights(K: Array, lam: float) -> Array:
    """The least of βᵀKβ − 2βᵀK1ₙ + λβᵀβ over Σβ = 1, by its optimality conditions."""
    n = len(K)
    system = np.block([[K + lam * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(K.mean(axis=1), 1.0))[:n]


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
    for name in SHRUNK:
        total = weights[name].sum()
        row[f"{name}_normalised"] = loss(weights[name] / total) if total != 0 else None
    for suffix, alpha in (("", 1.0 - weights["S"].sum()), ("_half", HALF)):
        simplex = simplex_weights(K, alpha)
        row["affine" + suffix] = loss(affine_weights(K, alpha))
        row["simplex" + suffix] = loss(simplex)
        row["zeros" + suffix] = float((simplex < _ZERO / len(K)).mean())
    row["flexible_affine"] = loss(flexible_affine_weights(K, np.trace(K) / len(K)))
    return row


def _summary_row(rows: list[Row]) -> Row:
    head: Row = {"kernel": rows[0]["kernel"], "n": rows[0]["n"], "distributions": len(rows)}
    zeros = {name: float(column(rows, name).mean()) for name in ("zeros", "zeros_half")}
    return {**head, **zeros, **compared(rows, COLUMNS)}


def _section(rows: list[Row]) -> Section:
    settings = grouped(rows, "kernel", "n")
    summary = [_summary_row(settings[kernel, n]) for kernel in KERNELS for n in SIZES]
    halves = dict(list(COLUMNS.items())[:6]), dict(list(COLUMNS.items())[6:])
    tables = [ratio_table(RATIOS, summary, {"kernel": "kernel", "n": "n"}, columns) for columns in halves]
    return Section(summary, (), [*tables, _sparsity_table(summary)])


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
    cells=lambda plan: plan.repeated(full=300, quick=30),
    run=_run,
    seconds=lambda setting: 0.12,
    section=_section,
)


@claim(
    "sum-to-one-unlikely-to-improve",
    "One may impose a constraint that β must sum to one and resort to a quadratic programming. Unfortunately, this "
    "approach has undesirable effect of sparsity which is unlikely to improve upon the standard estimator.",
    ESTIMATOR_SECTION,
    NAME,
)
def sum_to_one_unlikely_to_improve(rows: list[Row]) -> Judgement:
    """No better than KME, for the programme with β ≥ 0 at the λ of S-KMSE."""
    settings = grouped(rows, "kernel", "n").values()
    names = ("simplex", "simplex_half", "affine", "affine_half")
    no_better = {name: count_not_above([relative(part, "KME", name) for part in settings], 1.0) for name in names}
    zeros, half = (column(rows, name).mean() for name in ("zeros", "zeros_half"))
    ranges = {name: spanned(relative(part, name) for part in settings) for name in names}
    texts = [f"{COLUMNS[name]}: {no_better[name]}, loss relative to KME's {ranges[name]}" for name in names]
    evidence = (
        f"“Unlikely to improve” is judged for β ≥ 0 at the λ of S-KMSE: a setting is against it where the loss is "
        f"below KME's by two standard errors, else for it. {'; '.join(texts)}. Of the weights "
        f"{zeros:.1%} are zero ({half:.1%} at α = ½)"
    )
    return Judgement(no_better["simplex"].verdict, evidence)


@claim(
    "post-normalising-deteriorates",
    "Post-normalizing the weights often deteriorates the estimation performance.",
    ESTIMATOR_SECTION,
    NAME,
)
def post_normalising_deteriorates(rows: list[Row]) -> Judgement:
    """Every kernel and sample size is a comparison."""
    settings = grouped(rows, "kernel", "n").values()
    parts = {name: [relative(part, name, f"{name}_normalised") for part in settings] for name in SHRUNK}
    return judged_together(parts, PAPERS, 1.0, "loss before dividing by Σβ over the loss after")


def _sentence(summary: list[Row]) -> str:
    better, worse = decided(row["simplex"] for row in summary)
    return f"beat KME in {better} of {len(summary)} settings and lose in {worse}. The paper expected no gain from them."


HEADLINE = Headline(NAME, "Weights that sum to one", _sentence)

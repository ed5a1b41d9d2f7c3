"""Weights that sum to one: shrunken weights divided by their sum, and weights under a constraint."""

from __future__ import annotations

import numpy as np

import muhat as mh
from paper.claim import ESTIMATOR_SECTION, Judgement, claim, judged, ratio_parts
from paper.comparison import LABELS, PAPERS, SHRUNK, column, grouped, relative, setting_summary
from paper.experiment import Array, Experiment, Row, Section, Setting, generator
from paper.page import ReportTable
from paper.panels import RATIOS, ratio_table
from paper.protocol import KERNELS, exact_loss, population_and_sample, selected_weights

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
    "F_loo": "F (leave-one-out)",
    "F_loo_normalised": "F (leave-one-out), divided",
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


def constrained_weights(K: Array, alpha: float, nonnegative: bool) -> Array:
    """The weights with Σβ = 1, and β ≥ 0 if asked for, that come nearest to simple shrinkage by α."""
    return mh.ConstrainedKernelMean("precomputed", alpha, nonnegative).fit(K).weights_


def _run(setting: Setting, data: str | None) -> list[Row]:
    P, X = population_and_sample(SIZES[-1], D, generator(NAME, setting))
    return [
        {"kernel": name, "n": n, "repetition": setting["repetition"], **_losses(kernel.resolve(X[:n]), P, X[:n])}
        for n in SIZES
        for name, kernel in KERNELS.items()
    ]


def _losses(kernel: mh.kernels.Kernel, P: mh.GaussianMixture, X: Array) -> Row:
    K, loss, weights = kernel(X, X), exact_loss(kernel, P, X), selected_weights(kernel, X)
    row: Row = {name: loss(beta) for name, beta in weights.items()}
    for name in SHRUNK:
        total = weights[name].sum()
        row[f"{name}_normalised"] = loss(weights[name] / total) if total != 0 else None
    for suffix, alpha in (("", max(1.0 - weights["S"].sum(), 0.0)), ("_half", HALF)):
        affine, simplex = (constrained_weights(K, alpha, nonnegative=flag) for flag in (False, True))
        row["affine" + suffix] = loss(affine)
        row["simplex" + suffix] = loss(simplex)
        row["zeros" + suffix] = float((simplex < _ZERO / len(K)).mean())
    row["flexible_affine"] = loss(flexible_affine_weights(K, np.trace(K) / len(K)))
    return row


def _section(rows: list[Row]) -> Section:
    settings = grouped(rows, "kernel", "n")
    chosen = [settings[kernel, n] for kernel in KERNELS for n in SIZES]
    summary = [setting_summary(part, ("kernel", "n"), ("zeros", "zeros_half"), COLUMNS) for part in chosen]
    divided, constrained = dict(list(COLUMNS.items())[:6]), dict(list(COLUMNS.items())[6:])
    tables = [ratio_table(RATIOS, summary, {"kernel": "kernel", "n": "n"}, part) for part in (constrained, divided)]
    return Section(summary, (), [*tables, _sparsity_table(summary)])


def _sparsity_table(summary: list[Row]) -> ReportTable:
    values = [[row["kernel"], row["n"], f"{row['zeros']:.1%}", f"{row['zeros_half']:.1%}"] for row in summary]
    return ReportTable("Share of weights that are zero, with β ≥ 0", ["kernel", "n", "α of S-KMSE", "α = ½"], values)


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
    seconds=lambda setting: 0.03,
    section=_section,
)


@claim(
    "sum-to-one-unlikely-to-improve",
    "One may impose a constraint that β must sum to one and resort to a quadratic programming. Unfortunately, this "
    "approach has undesirable effect of sparsity which is unlikely to improve upon the standard estimator.",
    ESTIMATOR_SECTION,
)
def sum_to_one_unlikely_to_improve(normalisation: list[Row]) -> Judgement:
    """Not better than KME: with F-KMSE's penalty, and with S-KMSE's at its own λ, one part each."""
    settings = list(grouped(normalisation, "kernel", "n").values())
    labels = {
        "flexible_affine": "F-KMSE's penalty, Σβ = 1",
        "simplex": "S-KMSE's penalty at its own λ, Σβ = 1 and β ≥ 0",
        "affine": "the same without β ≥ 0",
        "simplex_half": "S-KMSE's penalty at α = ½, Σβ = 1 and β ≥ 0",
    }
    pairs = [(label, "KME", name, name in ("flexible_affine", "simplex")) for name, label in labels.items()]
    parts = ratio_parts(settings, pairs, "not worse")
    zeros, half = (column(normalisation, name).mean() for name in ("zeros", "zeros_half"))
    same = max(abs(row["flexible_affine"] / row["KME"] - 1.0) for row in normalisation)
    worse = [relative(part, "simplex_half").value for part in settings]
    note = (
        f"With F-KMSE's penalty the solution is KME at every λ (losses agree to {same:.0e}), which confirms the paper. "
        f"Of the weights of S-KMSE's programme {zeros:.1%} are zero ({half:.1%} at α = ½, where the loss is up to "
        f"{max(worse):.2f} times KME's)."
    )
    better = [part.count().against for part in parts[:2]]
    number = f"better than KME in {better[1]} of {len(settings)} settings (S-KMSE's penalty) and {better[0]} (F-KMSE's)"
    what = "KME's loss relative to that of the programme; a setting is against the claim where KME's is larger."
    return judged(parts, what, number, note)


@claim(
    "post-normalising-deteriorates",
    "Post-normalizing the weights often deteriorates the estimation performance.",
    ESTIMATOR_SECTION,
)
def post_normalising_deteriorates(normalisation: list[Row]) -> Judgement:
    """Every kernel and sample size is a comparison; S-KMSE and F-KMSE are one part each."""
    pairs = [(LABELS[name], name, f"{name}_normalised", name in PAPERS) for name in SHRUNK]
    parts = ratio_parts(grouped(normalisation, "kernel", "n").values(), pairs, "hedged")
    return judged(parts, "Loss before dividing by Σβ relative to the loss after, one comparison per kernel and n.")

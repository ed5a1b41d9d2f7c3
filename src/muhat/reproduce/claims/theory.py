"""Claims of the paper up to its experiments: Stein's effect, the theorems, which kernels and weights do well."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from scipy.stats import spearmanr

from muhat.reproduce.claims.base import Claim, Finding, Rows
from muhat.reproduce.claims.counts import ALL, EXACT, PAPERS, agreeing, all_agree, counted, in_parts, not_above, spanned
from muhat.reproduce.estimator_names import LABELS
from muhat.reproduce.experiment import Row
from muhat.reproduce.experiments import theorems
from muhat.reproduce.experiments.comparison import ratio_difference, relative
from muhat.reproduce.experiments.normalisation import COLUMNS
from muhat.reproduce.experiments.statistics import column, grouped, select
from muhat.reproduce.experiments.theorem_checks import REFITS


def _stein(rows: Rows) -> Finding:
    stein = select(rows["theorems"], theorem="stein")
    risks = column(stein, "risk")
    losses = [f"d = {d} {relative(select(stein, d=d), 'JS')}" for d in sorted({row["d"] for row in stein})]
    what = (
        f"exact risk {risks.min():.6f} to {risks.max():.6f} of the average's, with ‖θ‖/σ from "
        f"{column(stein, 'length').min():.2g} to {column(stein, 'length').max():.2g}; mean loss of draws relative to "
        f"the average's: {', '.join(losses)}"
    )
    return all_agree([row["risk"] < 1.0 for row in stein], what)


def _theorem1(rows: Rows) -> Finding:
    first = select(rows["theorems"], theorem="1")
    gains = column(first, "1") / column(first, "KME")
    wider = [max(row["0.5"], row["1.5"]) < row["KME"] for row in first]
    what = (
        f"exact risk at α* {gains.min():.3f} to {gains.max():.6f} of KME's, for f* = 0, at a point and far away; lower "
        f"than KME's at ½α* and 1½α* too in {np.mean(wider):.0%}, and off the proof's formula by at most "
        f"{column(first, 'error').max():.1e}. α* needs the distribution, as the paper says"
    )
    return all_agree([row["1"] < row["KME"] for row in first], what)


def _theorem2(rows: Rows) -> Finding:
    second = select(rows["theorems"], theorem="2")
    what = (
        f"relative error {column(second, 'sum').max():.1e} with the eigenvalues of K, as in the proof, but up to "
        f"{column(second, 'average').max():.2f} with those of the averaged operator, n times smaller; the factors go "
        f"from {column(second, 'factor_lowest').min():.2g} where the variance is low to "
        f"{column(second, 'factor_highest').max():.2g} where it is high"
    )
    return all_agree([row["sum"] < EXACT for row in second], what)


def _theorem3(rows: Rows) -> Finding:
    third = select(rows["theorems"], theorem="3")
    negative = [row["kernel"] for row in third if row["lam"] < 0]
    what = (
        f"α* agrees with refits to {column(third, 'error').max():.1e}; λ* is negative, and no shrinkage parameter, in "
        f"{len(negative)} of {len(third)}, {negative.count('LIN, mean zero')} of them on data of mean zero"
    )
    return all_agree([row["error"] < EXACT and row["lam"] >= 0 for row in third], what)


def _theorem4(rows: Rows) -> Finding:
    """Judged by the reading of the ridge that comes nearest."""
    fourth = theorems.regular(rows["theorems"], "4")
    nearest = [min(row[refit] for refit in REFITS) for row in fourth]
    what = (
        f"as printed it agrees to {column(fourth, 'printed').max():.1e} with fits that keep φ(xᵢ) in the span, and "
        f"differs by {column(fourth, 'λ').min():.1%} to {column(fourth, 'λ').max():.1%} from leave-one-out as defined, "
        f"by {min(nearest):.1%} at least whichever ridge is meant ({', '.join(REFITS)})"
    )
    return all_agree([distance < EXACT for distance in nearest], what)


def _small_weights(rows: Rows) -> Finding:
    """S-KMSE has (1−α)/n, so that α > 0 says it; both estimators are one part each."""
    remarks = select(rows["theorems"], theorem="remarks")
    simple = agreeing([row["printed"] > 0 for row in select(rows["theorems"], theorem="3")])
    flexible = agreeing([row["F_theorem4_largest"] < 1.0 for row in remarks])
    largest = [column(remarks, f"{name}_largest").max() for name in ALL[1:]]
    evidence = (
        f"S-KMSE, whose weights are (1−α)/n: {simple}; F-KMSE, all kernels of a sample: {flexible}, with a weight of "
        f"{largest[0]:.2f}/n by Theorem 4 and {largest[1]:.2f}/n by deletion. Exact comparisons, no standard error; S "
        "and F are one part each"
    )
    return Finding(in_parts((simple.verdict, flexible.verdict)), evidence)


def _linear_cost(rows: Rows) -> Finding:
    remarks = select(rows["theorems"], theorem="remarks")
    n, entries = theorems.N, column(remarks, "entries")
    what = (
        f"{entries.min():.0f} of the {n * (n + 1) // 2} entries of K change α*, each of which has to be read (for the "
        f"claim: at most 2n = {2 * n})"
    )
    return all_agree([row["entries"] <= 2 * n for row in remarks], what)


def _slow_decay(rows: Rows) -> Finding:
    """All pairs of kernels, each in the order of the mean spread of their eigenvalues, the greater one first."""
    kernels = list(grouped(rows["kernel_choice"], "family", "width").values())
    kernels.sort(key=lambda part: -column(part, "spread").mean())
    parts = {name: [ratio_difference(a, b, name) for a, b in combinations(kernels, 2)] for name in ALL}
    spreads = [column(part, "spread").mean() for part in kernels]
    ranks = [f"{LABELS[name]} {_rank_correlation(spreads, kernels, name):+.2f}" for name in ALL]
    what = (
        "relative loss with a kernel less that with one whose eigenvalues decay faster, all pairs of kernels (slow: a "
        f"great (Σγ)²/nΣγ²); rank correlation of this with the relative loss: {', '.join(ranks)}"
    )
    return counted(parts, PAPERS, 0.0, what)


def _rank_correlation(spreads: list[float], kernels: list[list[Row]], name: str) -> float:
    ratios = [relative(part, name).value for part in kernels]
    return float(spearmanr(spreads, ratios).statistic) if np.ptp(ratios) > 0.0 else 0.0


def _narrower(rows: Rows) -> Finding:
    widths = sorted(grouped(select(rows["kernel_choice"], family="RBF"), "width").items())
    steps = [(narrow, wide) for (_, narrow), (_, wide) in pairwise(widths)]
    parts = {name: [ratio_difference(narrow, wide, name) for narrow, wide in steps] for name in ALL}
    return counted(parts, PAPERS, 0.0, "relative loss at a width less that at the next one, RBF")


def _laplacian(rows: Rows) -> Finding:
    kernels = grouped(rows["kernel_choice"], "family", "width")
    pairs = [(part, kernels["RBF", width]) for (family, width), part in kernels.items() if family != "RBF"]
    parts = {name: [ratio_difference(laplacian, gaussian, name) for laplacian, gaussian in pairs] for name in ALL}
    what = "relative loss with a Laplacian kernel, of either metric, less that with RBF of the same width"
    return counted(parts, PAPERS, 0.0, what)


def _constraint(rows: Rows) -> Finding:
    """No better than KME, for the programme with β ≥ 0 at the λ of S-KMSE."""
    settings = grouped(rows["normalisation"], "kernel", "n").values()
    names = ("simplex", "simplex_half", "affine", "affine_half")
    no_better = {name: not_above([relative(part, "KME", name) for part in settings], 1.0) for name in names}
    zeros, half = (column(rows["normalisation"], name).mean() for name in ("zeros", "zeros_half"))
    ranges = {name: spanned(relative(part, name) for part in settings) for name in names}
    texts = [f"{COLUMNS[name]}: {no_better[name]}, loss relative to KME's {ranges[name]}" for name in names]
    evidence = (
        f"“Unlikely to improve” is judged for β ≥ 0 at the λ of S-KMSE: a setting is against it where the loss is "
        f"below KME's by two standard errors, else for it. {'; '.join(texts)}. Of the weights "
        f"{zeros:.1%} are zero ({half:.1%} at α = ½)"
    )
    return Finding(no_better["simplex"].verdict, evidence)


def _normalising_hurts(rows: Rows) -> Finding:
    settings = grouped(rows["normalisation"], "kernel", "n").values()
    parts = {name: [relative(part, name, f"{name}_normalised") for part in settings] for name in ALL}
    return counted(parts, PAPERS, 1.0, "loss before dividing by Σβ over the loss after")


_ESTIMATOR, _CV = "Kernel mean shrinkage estimator", "Cross-validation"


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "james-stein-dominates",
        "There exists an estimator that always achieves smaller total mean squared error regardless of the true θ, "
        "when the dimension is at least 3 (that of James and Stein).",
        "Introduction, and appendix on James-Stein's estimator",
        ("theorems",),
        _stein,
    ),
    Claim(
        "theorem-1-better-for-any-target",
        "Given an arbitrary function f*, there exists α* for which the shrinkage estimator is better than the standard "
        "one.",
        "Theorem 1",
        ("theorems",),
        _theorem1,
    ),
    Claim(
        "theorem-2-form-of-f-kmse",
        "For F-KMSE, we can write μ̂_λ = Σ γᵢ/(γᵢ+λ) ⟨μ̂, vᵢ⟩ vᵢ where {γᵢ, vᵢ} are eigenvalue and eigenvector pairs of "
        "the covariance operator.",
        "Theorem 2",
        ("theorems",),
        _theorem2,
    ),
    Claim(
        "slow-decay-gains-more",
        "An improvement of shrinkage estimators should also depend on how fast the eigenvalues of k decay. One would "
        "expect greater improvement if the values of γᵢ decay very slowly.",
        _ESTIMATOR,
        ("kernel_choice",),
        _slow_decay,
    ),
    Claim(
        "narrow-kernels-gain-more",
        "The Gaussian RBF kernel with larger bandwidth gives smaller improvement when compared to one with smaller "
        "bandwidth.",
        _ESTIMATOR,
        ("kernel_choice",),
        _narrower,
    ),
    Claim(
        "laplacian-gains-more",
        "We should expect to see more improvement when applying a Laplacian kernel than when using a Gaussian RBF "
        "kernel.",
        _ESTIMATOR,
        ("kernel_choice",),
        _laplacian,
    ),
    Claim(
        "weights-below-one-over-n",
        "The weight vector β output by our estimators is in general not normalized. In fact, all elements will be "
        "smaller than 1/n as a result of shrinkage.",
        _ESTIMATOR,
        ("theorems",),
        _small_weights,
    ),
    Claim(
        "sum-to-one-unlikely-to-improve",
        "One may impose a constraint that β must sum to one and resort to a quadratic programming. Unfortunately, this "
        "approach has undesirable effect of sparsity which is unlikely to improve upon the standard estimator.",
        _ESTIMATOR,
        ("normalisation",),
        _constraint,
    ),
    Claim(
        "post-normalising-deteriorates",
        "Post-normalizing the weights often deteriorates the estimation performance.",
        _ESTIMATOR,
        ("normalisation",),
        _normalising_hurts,
    ),
    Claim(
        "theorem-3-minimises-loocv",
        "The shrinkage parameter λ* = (ϱ−ρ)/((n−1)ρ + ϱ/n − ϱ) of the S-KMSE is the minimizer of LOOCV(λ).",
        "Theorem 3",
        ("theorems",),
        _theorem3,
    ),
    Claim(
        "theorem-4-is-loocv",
        "The LOOCV score of F-KMSE satisfies LOOCV(λ) = (1/n) Σ (βᵀK − Kᵢ)ᵀ C_λ (βᵀK − Kᵢ).",
        "Theorem 4",
        ("theorems",),
        _theorem4,
    ),
    Claim(
        "s-kmse-selection-linear-cost",
        "The S-KMSE requires only O(n) operations to select shrinkage parameter.",
        _CV,
        ("theorems",),
        _linear_cost,
    ),
)

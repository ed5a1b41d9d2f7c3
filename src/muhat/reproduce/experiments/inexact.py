"""Statements of the paper that do not hold to the letter, each with a number that shows it."""

from __future__ import annotations

import numpy as np

from muhat.elements import embed
from muhat.kernels.dot import Linear
from muhat.kernels.radial import Gaussian
from muhat.linalg.distances import median_distance
from muhat.measures import GaussianMixture
from muhat.report.page import Table
from muhat.reproduce.experiment import Row
from muhat.reproduce.experiments.comparison import relative
from muhat.reproduce.experiments.statistics import column, select
from muhat.reproduce.experiments.synthetic import KERNELS, exact_loss, selected_weights
from muhat.reproduce.experiments.theorem_checks import REFITS
from muhat.shrinkage.scores import simple_shrinkage
from muhat.types import Array

_BAGS = 5


def remark_row(P: GaussianMixture, X: Array) -> Row:
    """All numbers of one sample."""
    K = Gaussian().resolve(X)(X, X)
    parts = (_weight_sizes(X), _bandwidth_readings(P, X), _level2_signs(X), _unit_of_lam(X), _copies(K))
    row: Row = {"theorem": "remarks", "entries": entries_that_matter(K), "cose": shrunken_pca_difference(K)}
    for part in parts:
        row |= part
    return row


def _weight_sizes(X: Array) -> Row:
    """Extreme weights of F-KMSE over the kernels, in units of 1/n."""
    weights = [selected_weights(kernel.resolve(X), X) for kernel in KERNELS.values()]
    row: Row = {}
    for name in ("F_theorem4", "F_deletion"):
        relative = len(X) * np.array([each[name] for each in weights])
        row |= {f"{name}_largest": float(relative.max()), f"{name}_smallest": float(relative.min())}
    return row


def _bandwidth_readings(P: GaussianMixture, X: Array) -> Row:
    """σ² as the median squared distance, and as the median distance, which the words say."""
    median = median_distance(X, "euclidean")
    row: Row = {}
    for reading, bandwidth in (("formula", median), ("words", np.sqrt(median))):
        kernel = Gaussian(bandwidth=bandwidth)
        loss, weights = exact_loss(kernel, P, X), selected_weights(kernel, X)
        row |= {f"KME_{reading}": loss(weights["KME"]), f"S_{reading}": loss(weights["S"])}
        row[f"kernel_{reading}"] = float(kernel(X, X)[np.triu_indices(len(X), 1)].mean())
    return row


def _level2_signs(X: Array) -> Row:
    """Smallest eigenvalue of exp(±‖μᵢ − μⱼ‖²/2τ²) between bags: a kernel has none below zero."""
    kernel = Gaussian().resolve(X)
    means = [embed(kernel, bag) for bag in np.array_split(X, _BAGS)]
    squares = np.array([[f.distance(g) ** 2 for g in means] for f in means])
    squares /= 2.0 * np.median(squares[np.triu_indices(_BAGS, 1)])
    return {name: float(np.linalg.eigvalsh(np.exp(sign * squares))[0]) for name, sign in (("plus", 1), ("minus", -1))}


def _unit_of_lam(X: Array) -> Row:
    """What S-KMSE keeps of the mean at λ = γ₀, for the linear kernel and for the data in units ten times as large."""
    smallest = np.linalg.eigvalsh(Linear()(X, X))[0]
    return {"kept": 1.0 / (1.0 + smallest), "kept_rescaled": 1.0 / (1.0 + 0.01 * smallest)}


def _copies(K: Array) -> Row:
    """Two weight vectors of one element, on a sample whose first row is there twice: their βᵀβ differ."""
    twice = np.append(0, np.arange(len(K)))
    K = K[np.ix_(twice, twice)]
    equal = np.full(len(K), 1.0 / len(K))
    moved = equal.copy()
    moved[0], moved[1] = 2.0 / len(K), 0.0
    gap = moved - equal
    return {"copies_distance": float(abs(gap @ K @ gap)), "copies_penalty": float(moved @ moved / (equal @ equal))}


def entries_that_matter(K: Array) -> int:
    """How many of the n(n+1)/2 entries of K change α* when they change."""
    n = len(K)
    before = simple_shrinkage(n, np.trace(K) / n, K.mean())
    count = 0
    for i, j in zip(*np.triu_indices(n), strict=True):
        changed = K.copy()
        changed[i, j] = changed[j, i] = 1.01 * K[i, j]
        count += simple_shrinkage(n, np.trace(changed) / n, changed.mean()) != before
    return count


def shrunken_pca_difference(K: Array, components: int = 5) -> float:
    """Largest difference of the projections on the leading directions, between S-COSE's operator and the plain one."""
    n = len(K)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    product = centred**2
    alpha = simple_shrinkage(n, np.trace(product) / n, product.mean())
    projectors = []
    for scale in (1.0, 1.0 - alpha):
        _, directions = np.linalg.eigh(scale / n * centred)
        projectors.append(directions[:, -components:] @ directions[:, -components:].T)
    return float(np.abs(projectors[0] - projectors[1]).max())


def inexact_table(rows: list[Row]) -> tuple[list[Row], Table]:
    """The places, what holds, and the numbers of the run: for the summary and as a table."""
    lines = [*_theorem_lines(rows), *_remark_lines(select(rows, theorem="remarks"))]
    summary = [{"place": place, "shown": number} for place, _, number in lines]
    shown = [[place, number, truth] for place, truth, number in lines]
    return summary, Table("Where the paper is inexact", ["place", "number", "what holds"], shown)


def _theorem_lines(rows: list[Row]) -> list[list[str]]:
    fourth = select(rows, theorem="4")
    full = [row for row in fourth if "span" not in row]
    singular = [row for row in fourth if "span" in row]
    wrong = [row for row in singular if row["printed"] is None or abs(row["printed"] / row["span"] - 1.0) > 0.01]
    centred = column(select(rows, theorem="3", kernel="LIN, mean zero"), "lam")
    less = column(full, "kept_theorem4") < column(full, "kept_deletion")
    ratios = relative(select(full, kernel="RBF"), "F_theorem4", "F_deletion")
    nearest = min(float(np.median(column(full, refit))) for refit in REFITS)
    return [
        [
            "Theorem 4 is called leave-one-out",
            "φ(xᵢ) stays in the span, and the minimiser shrinks too much",
            f"it keeps less of ‖μ̂‖ than deletion in {less.mean():.0%}; with RBF its loss is {ratios.value:.3f} of "
            "deletion's",
        ],
        [
            "C_λ in Theorem 4 inverts K",
            "the printed formula fails where K is singular",
            f"off by more than 1 % in {len(wrong)} of {len(singular)} singular cases",
        ],
        [
            "the appendix's objective has no 1/(n−1)",
            "Theorem 4 equals no refit, whatever ridge is meant",
            f"nearest reading: {nearest:.1%} away (median of the largest distance)",
        ],
        [
            "λ* of S-KMSE",
            "negative where the estimate of ‖μ‖² is; α is clipped",
            f"λ* < 0 in {(centred < 0).mean():.0%} of samples of mean zero",
        ],
    ]


def _remark_lines(rows: list[Row]) -> list[list[str]]:
    largest = max(column(rows, "F_theorem4_largest").max(), column(rows, "F_deletion_largest").max())
    smallest = min(column(rows, "F_theorem4_smallest").min(), column(rows, "F_deletion_smallest").min())
    words, formula = relative(rows, "S_words", "KME_words"), relative(rows, "S_formula", "KME_formula")
    return [
        ["“all elements of β are smaller than 1/n”", "not for F-KMSE", f"from {smallest:.2f}/n to {largest:.2f}/n"],
        [
            "S-KMSE's λ costs O(n)",
            "it depends on every entry of K",
            f"{column(rows, 'entries').min():.0f} of the n(n+1)/2 entries change α*",
        ],
        [
            "S-COSE improves kernel PCA",
            "equal weights only scale the eigenvalues",
            f"projections differ by at most {column(rows, 'cose').max():.0e}",
        ],
        [
            "level-2 kernel exp(+‖·‖²/2σ²)",
            "the minus sign is missing",
            f"smallest eigenvalue {column(rows, 'plus').max():.2f} or lower; {column(rows, 'minus').min():.2f} or "
            "higher with it",
        ],
        [
            "bandwidth “square-root of the median distance”",
            "the formula beside it is meant",
            f"mean k(x, x') {column(rows, 'kernel_words').mean():.3f} by the words, "
            f"{column(rows, 'kernel_formula').mean():.3f} by the formula; S-KMSE's relative loss {words.value:.3f} and "
            f"{formula.value:.3f}",
        ],
        [
            "figure 1: λ = c·γ₀ for S-KMSE",
            "its λ has no unit, γ₀ has",
            f"at c = 1 it keeps {column(rows, 'kept').mean():.0%} of μ̂ (LIN), "
            f"{column(rows, 'kept_rescaled').mean():.0%} with the same data in units ten times as large",
        ],
        [
            "Ω = βᵀβ as a function of ‖g‖",
            "one element can have several; the span restriction is an assumption",
            f"same element, βᵀβ {column(rows, 'copies_penalty').mean():.3f} times as large",
        ],
        ["½ factors in the appendix, missing tildes in COSE", "no effect on the estimators", "no number"],
    ]

"""Choice of the kernel: gains of shrinkage for narrow and wide, Gaussian and Laplacian kernels."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian, Laplace, Matern
from muhat.linalg.distances import median_distance
from muhat.measures import Atoms
from muhat.paper.claim import ESTIMATOR_SECTION, Judgement, claim, judged_together
from muhat.paper.comparison import (
    COLOURS,
    LABELS,
    PAPERS,
    SHRUNK,
    column,
    compared,
    grouped,
    ratio_difference,
    relative,
    select,
)
from muhat.paper.experiment import Experiment, Headline, Plan, Row, Section, Setting, generator
from muhat.paper.panels import draw_baseline, draw_panels, draw_ratios, mark_positions, ratio_table
from muhat.paper.protocol import COMPARED, population_and_sample, selected_losses
from muhat.report.page import Picture
from muhat.types import Array

NAME = "kernel_choice"
N, D, ATOMS = 20, 10, 1000
WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
QUICK_WIDTHS = (0.1, 0.5, 1.0, 10.0)
FAMILIES = {"RBF": "Gaussian", "L1": "Laplacian, ‖x − y‖₁", "L2": "Laplacian, ‖x − y‖₂"}


def kernels_of_width(X: Array, width: float) -> dict[str, Kernel]:
    """One kernel of each family, with the same value e^(−1/2w) at the median distance of its own metric."""
    euclidean, cityblock = median_distance(X, "euclidean"), median_distance(X, "cityblock")
    return {
        "RBF": Gaussian(bandwidth=np.sqrt(width) * euclidean),
        "L1": Laplace(bandwidth=2.0 * width * cityblock),
        "L2": Matern(nu=0.5, bandwidth=2.0 * width * euclidean),
    }


def _cells(plan: Plan) -> list[Setting]:
    widths = list(QUICK_WIDTHS if plan.quick else WIDTHS)
    return [{**each, "width": widths} for each in plan.repeated(full=300, quick=20)]


def _run(setting: Setting, data: str | None) -> list[Row]:
    """The distribution is uniform on drawn points: no kernel needs a closed form for its mean to be exact."""
    rng = generator(NAME, setting)
    _, points = population_and_sample(ATOMS, D, rng)
    X = points[rng.integers(ATOMS, size=N)]
    return [
        {
            "family": family,
            "width": width,
            "repetition": setting["repetition"],
            "spread": spread(kernel(X, X)),
            **selected_losses(kernel, Atoms(points), X),
        }
        for width in setting["width"]
        for family, kernel in kernels_of_width(X, width).items()
    ]


def spread(K: Array) -> float:
    """(Σ γᵢ)² / n Σ γᵢ², in [1/n, 1]: the share of directions that count; large where eigenvalues decay slowly."""
    return float(np.trace(K) ** 2 / (len(K) * (K**2).sum()))


def _summary(rows: list[Row]) -> list[Row]:
    kernels = grouped(rows, "family", "width")
    widths = sorted({width for _, width in kernels})
    return [_summary_row(kernels[family, width]) for family in FAMILIES for width in widths]


def _summary_row(rows: list[Row]) -> Row:
    head: Row = {"family": rows[0]["family"], "width": rows[0]["width"], "distributions": len(rows)}
    return {**head, "spread": float(column(rows, "spread").mean()), **compared(rows, COMPARED)}


def _widths_picture(summary: list[Row]) -> Picture:
    def draw(ax: Any, family: str) -> None:
        chosen = select(summary, family=family)
        draw_ratios(ax, [row["width"] for row in chosen], chosen, COMPARED)
        mark_positions(ax, WIDTHS)
        ax.set(xlabel="width w", title=FAMILIES[family])

    shared = {"sharex": True, "sharey": True}
    text = draw_panels(draw, FAMILIES, "mean loss / KME's", width=10, height=3.4, legend_columns=4, **shared)
    parts = [f"{family} {_ends(select(summary, family=family))}" for family in FAMILIES]
    caption = "Loss relative to KME's against the width; bars are two standard errors."
    return Picture(text, caption, f"S-KMSE: {'; '.join(parts)}.")


def _ends(summary: list[Row]) -> str:
    return ", ".join(f"{row['S']['ratio']:.2f} at w = {row['width']:g}" for row in (summary[0], summary[-1]))


def _spread_picture(summary: list[Row]) -> Picture:
    """The same numbers against the spread of the eigenvalues, one mark per family."""

    def draw(ax: Any, name: str) -> None:
        for (family, label), marker in zip(FAMILIES.items(), "osx", strict=True):
            chosen = select(summary, family=family)
            style = {"color": COLOURS[name], "marker": marker, "ls": "none", "mfc": "none", "ms": 6}
            ax.plot([row["spread"] for row in chosen], [row[name]["ratio"] for row in chosen], label=label, **style)
        draw_baseline(ax)
        ax.set(xlabel="spread of the eigenvalues", title=LABELS[name])

    text = draw_panels(draw, SHRUNK, "mean loss / KME's", width=10, height=3.2, sharex=True, sharey=True)
    ends = (chosen(summary, key=lambda row: row["spread"]) for chosen in (min, max))
    parts = [f"{row['S']['ratio']:.2f} at a spread of {row['spread']:.2f}" for row in ends]
    caption = "The same against the spread (Σγ)²/nΣγ² of the eigenvalues: to the right they decay slowly."
    return Picture(text, caption, f"S-KMSE: {', '.join(parts)}.")


def _section(rows: list[Row]) -> Section:
    summary = _summary(rows)
    rounded = [{**row, "spread": round(row["spread"], 3)} for row in summary]
    heads = {"family": "kernel", "width": "w", "spread": "spread of eigenvalues"}
    caption = "Mean loss relative to KME's ± standard error, and the share of samples improved"
    table = ratio_table(caption, rounded, heads, {name: LABELS[name] for name in COMPARED})
    return Section(summary, [_widths_picture(summary), _spread_picture(summary)], [table])


EXPERIMENT = Experiment(
    name=NAME,
    title="Which kernels gain by shrinkage",
    protocol=(
        f"The paper expects more of narrow kernels and of Laplacian ones, without an experiment; this one is ours. "
        f"{ATOMS} draws in d = {D} dimensions from a random mixture are taken as the whole distribution, so that the "
        f"loss is exact for every kernel; n = {N} draws from these, with replacement, are the sample.",
        "A kernel of width w has the value exp(−1/2w) at the median distance, whatever its family: w = 1 is the median "
        "rule of RBF, and w = ½ that of the Laplacian. The spread (Σγ)²/nΣγ² is large where eigenvalues decay slowly.",
    ),
    cells=_cells,
    run=_run,
    seconds=lambda setting: 0.18 * len(setting["width"]),
    section=_section,
)


@claim(
    "slow-decay-gains-more",
    "An improvement of shrinkage estimators should also depend on how fast the eigenvalues of k decay. One would "
    "expect greater improvement if the values of γᵢ decay very slowly.",
    ESTIMATOR_SECTION,
    NAME,
)
def slow_decay_gains_more(rows: list[Row]) -> Judgement:
    """All pairs of kernels, each in the order of the mean spread of their eigenvalues, the greater one first."""
    kernels = list(grouped(rows, "family", "width").values())
    kernels.sort(key=lambda part: -column(part, "spread").mean())
    parts = {name: [ratio_difference(a, b, name) for a, b in combinations(kernels, 2)] for name in SHRUNK}
    spreads = [column(part, "spread").mean() for part in kernels]
    ranks = [f"{LABELS[name]} {_rank_correlation(spreads, kernels, name):+.2f}" for name in SHRUNK]
    what = (
        "relative loss with a kernel less that with one whose eigenvalues decay faster, all pairs of kernels (slow: a "
        f"great (Σγ)²/nΣγ²); rank correlation of this with the relative loss: {', '.join(ranks)}"
    )
    return judged_together(parts, PAPERS, 0.0, what)


def _rank_correlation(spreads: list[float], kernels: list[list[Row]], name: str) -> float:
    ratios = [relative(part, name).value for part in kernels]
    return float(spearmanr(spreads, ratios).statistic) if np.ptp(ratios) > 0.0 else 0.0


@claim(
    "narrow-kernels-gain-more",
    "The Gaussian RBF kernel with larger bandwidth gives smaller improvement when compared to one with smaller "
    "bandwidth.",
    ESTIMATOR_SECTION,
    NAME,
)
def narrow_kernels_gain_more(rows: list[Row]) -> Judgement:
    """Every width against the next one."""
    widths = sorted(grouped(select(rows, family="RBF"), "width").items())
    steps = [(narrow, wide) for (_, narrow), (_, wide) in pairwise(widths)]
    parts = {name: [ratio_difference(narrow, wide, name) for narrow, wide in steps] for name in SHRUNK}
    return judged_together(parts, PAPERS, 0.0, "relative loss at a width less that at the next one, RBF")


@claim(
    "laplacian-gains-more",
    "We should expect to see more improvement when applying a Laplacian kernel than when using a Gaussian RBF kernel.",
    ESTIMATOR_SECTION,
    NAME,
)
def laplacian_gains_more(rows: list[Row]) -> Judgement:
    """Both Laplacian kernels against the Gaussian one of the same width."""
    kernels = grouped(rows, "family", "width")
    pairs = [(part, kernels["RBF", width]) for (family, width), part in kernels.items() if family != "RBF"]
    parts = {name: [ratio_difference(laplacian, gaussian, name) for laplacian, gaussian in pairs] for name in SHRUNK}
    what = "relative loss with a Laplacian kernel, of either metric, less that with RBF of the same width"
    return judged_together(parts, PAPERS, 0.0, what)


def _sentence(summary: list[Row]) -> str:
    losses = {row["width"]: row["S"]["ratio"] for row in select(summary, family="RBF")}
    return (
        f"S-KMSE has {losses[0.1]:.2f} of KME's loss at a tenth of the median squared distance, and {losses[1.0]:.2f} "
        "at the median."
    )


HEADLINE = Headline(NAME, "Narrow kernels gain more:", _sentence)

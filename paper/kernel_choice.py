"""Choice of the kernel: gains of shrinkage for narrow and wide, Gaussian and Laplacian kernels."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import muhat as mh
from paper.claim import ESTIMATOR_SECTION, Judgement, Part, Words, claim, judged, paired_part
from paper.comparison import (
    LABELS,
    PAPERS,
    SHRUNK,
    column,
    grouped,
    ratio_difference,
    relative,
    select,
    setting_summary,
)
from paper.experiment import Array, Experiment, Headline, Plan, Row, Section, Setting, generator
from paper.page import Picture
from paper.panels import RATIOS, draw_panels, draw_ratios, mark_positions, ratio_table
from paper.protocol import COMPARED, population_and_sample, selected_losses

NAME = "kernel_choice"
N, D, ATOMS = 20, 10, 1000
WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
QUICK_WIDTHS = (0.1, 0.5, 1.0, 10.0)
FAMILIES = {"RBF": "Gaussian", "L1": "Laplacian, ‖x − y‖₁", "L2": "Laplacian, ‖x − y‖₂"}


def kernels_of_width(X: Array, width: float) -> dict[str, mh.kernels.Kernel]:
    """One kernel of each family, with the same value e^(−1/2w) at the median distance of its own metric."""
    euclidean, cityblock = mh.Gaussian().resolve(X).width, mh.Laplace().resolve(X).width
    return {
        "RBF": mh.Gaussian(bandwidth=np.sqrt(width) * euclidean),
        "L1": mh.Laplace(bandwidth=2.0 * width * cityblock),
        "L2": mh.Matern(nu=0.5, bandwidth=2.0 * width * euclidean),
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
            "evenness": evenness(kernel(X, X)),
            **selected_losses(kernel, mh.Atoms(points), X),
        }
        for width in setting["width"]
        for family, kernel in kernels_of_width(X, width).items()
    ]


def evenness(K: Array) -> float:
    """(Σ γᵢ)² / n Σ γᵢ², in [1/n, 1]: the share of directions that count; large where eigenvalues decay slowly."""
    return float(np.trace(K) ** 2 / (len(K) * (K**2).sum()))


def _summary(rows: list[Row]) -> list[Row]:
    kernels = grouped(rows, "family", "width")
    widths = sorted({width for _, width in kernels})
    chosen = [kernels[family, width] for family in FAMILIES for width in widths]
    return [setting_summary(part, ("family", "width"), ["evenness"], COMPARED) for part in chosen]


def _picture(summary: list[Row]) -> Picture:
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


def _section(rows: list[Row]) -> Section:
    summary = _summary(rows)
    rounded = [{**row, "evenness": round(row["evenness"], 3)} for row in summary]
    heads = {"family": "kernel", "width": "w", "evenness": "evenness of eigenvalues"}
    table = ratio_table(RATIOS, rounded, heads, {name: LABELS[name] for name in COMPARED})
    return Section(summary, [_picture(summary)], [table])


EXPERIMENT = Experiment(
    name=NAME,
    title="Which kernels gain by shrinkage",
    protocol=(
        f"The paper expects more of narrow kernels and of Laplacian ones, without an experiment; this one is ours. "
        f"{ATOMS} draws in d = {D} dimensions from a random mixture are taken as the whole distribution, so that the "
        f"loss is exact for every kernel; n = {N} draws from these, with replacement, are the sample.",
        "A kernel of width w has the value exp(−1/2w) at the median distance, whatever its family: w = 1 is the median "
        "rule of RBF, and w = ½ that of the Laplacian. The evenness (Σγ)²/nΣγ² of the eigenvalues is large where they "
        "decay slowly.",
    ),
    cells=_cells,
    run=_run,
    seconds=lambda setting: 0.04 * len(setting["width"]),
    section=_section,
)


def _parts(pairs: Iterable[tuple[list[Row], list[Row]]], words: Words) -> list[Part]:
    """S-KMSE and F-KMSE are one part each: relative loss with the first kernel of a pair less that with the second."""
    known = list(pairs)
    return [
        paired_part(LABELS[name], [ratio_difference(a, b, name) for a, b in known], 0.0, words, judged=name in PAPERS)
        for name in SHRUNK
    ]


@claim(
    "slow-decay-gains-more",
    "An improvement of shrinkage estimators should also depend on how fast the eigenvalues of k decay. One would "
    "expect greater improvement if the values of γᵢ decay very slowly.",
    ESTIMATOR_SECTION,
)
def slow_decay_gains_more(kernel_choice: list[Row]) -> Judgement:
    """All pairs of kernels, each in the order of the evenness of their eigenvalues, the more even one first."""
    kernels = list(grouped(kernel_choice, "family", "width").values())
    kernels.sort(key=lambda part: -column(part, "evenness").mean())
    evenness = [column(part, "evenness").mean() for part in kernels]
    correlations = [_rank_correlation(evenness, kernels, name) for name in PAPERS]
    what = (
        "Relative loss with a kernel less that with one whose eigenvalues decay faster, all pairs of kernels (slow "
        "decay: a large (Σγ)²/nΣγ²)."
    )
    number = (
        f"rank correlation with the relative loss {correlations[0]:.2f} (S-KMSE) and {correlations[1]:.2f} (F-KMSE)"
    )
    return judged(_parts(combinations(kernels, 2), "hedged"), what, number)


def _rank_correlation(evenness: list[float], kernels: list[list[Row]], name: str) -> float:
    ratios = [relative(part, name).value for part in kernels]
    return float(spearmanr(evenness, ratios).statistic) if np.ptp(ratios) > 0.0 else 0.0


@claim(
    "narrow-kernels-gain-more",
    "The Gaussian RBF kernel with larger bandwidth gives smaller improvement when compared to one with smaller "
    "bandwidth.",
    ESTIMATOR_SECTION,
)
def narrow_kernels_gain_more(kernel_choice: list[Row]) -> Judgement:
    """Every width against the next one."""
    widths = sorted(grouped(select(kernel_choice, family="RBF"), "width").items())
    steps = [(narrow, wide) for (_, narrow), (_, wide) in pairwise(widths)]
    return judged(_parts(steps, "plain"), "Relative loss at a width less that at the next one, RBF.")


@claim(
    "laplacian-gains-more",
    "We should expect to see more improvement when applying a Laplacian kernel than when using a Gaussian RBF kernel.",
    ESTIMATOR_SECTION,
)
def laplacian_gains_more(kernel_choice: list[Row]) -> Judgement:
    """Both Laplacian kernels against the Gaussian one of the same width."""
    kernels = grouped(kernel_choice, "family", "width")
    pairs = [(part, kernels["RBF", width]) for (family, width), part in kernels.items() if family != "RBF"]
    what = "Relative loss with a Laplacian kernel, of either metric, less that with RBF of the same width."
    return judged(_parts(pairs, "hedged"), what)


def _sentence(summary: list[Row]) -> str:
    losses = {row["width"]: row["S"]["ratio"] for row in select(summary, family="RBF")}
    return (
        f"Narrow kernels gain more, as the paper expects: S-KMSE has {losses[0.1]:.2f} of KME's loss at a tenth of the "
        f"median squared distance and {losses[1.0]:.2f} at the median."
    )


HEADLINE = Headline(NAME, "replicates", _sentence)

"""The report in seven lines: what came out, in words, from the numbers that ``results.json`` keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from muhat.reproduce.claims.counts import EXACT
from muhat.reproduce.experiment import Row
from muhat.reproduce.experiments.statistics import select
from muhat.reproduce.experiments.table2 import PAPER as TABLE2

Experiments = dict[str, Any]
"""The experiments of ``results.json`` by name."""


class Line(NamedTuple):
    """One line: the experiment that it rests on, its subject, and what came out."""

    experiment: str
    subject: str
    words: str


def summary_lines(experiments: Experiments) -> list[Line]:
    """The lines whose experiments were run, in the order of the README."""
    known = [(name, subject, say) for name, subject, say in _LINES if name in experiments]
    return [Line(name, subject, say(experiments[name]["summary"])) for name, subject, say in known]


def _decided(values: Iterable[Row], part: str = "ratio", level: float = 1.0) -> tuple[int, int]:
    """How many values lie below the level by two standard errors, and how many above it."""
    known = [value for value in values if value[part] is not None and value["error"] is not None]
    below = sum(value[part] < level - 2.0 * value["error"] for value in known)
    return below, sum(value[part] > level + 2.0 * value["error"] for value in known)


def _of_the_paper(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["d"] > 2]  # two dimensions are ours


def _simple(rows: list[Row]) -> str:
    found = [row["S"] for row in _of_the_paper(rows)]
    better, worse = _decided(found)
    ratios = [value["ratio"] for value in found]
    return (
        f"beats KME in {better} of {len(found)} settings of figure 2 and loses in {worse}, with {min(ratios):.2f} to "
        f"{max(ratios):.2f} of its loss."
    )


def _flexible(rows: list[Row]) -> str:
    theorem4, deletion = ([row[name] for row in _of_the_paper(rows)] for name in ("F_theorem4", "F_deletion"))
    better, worse = _decided(theorem4)
    ours = _decided(deletion)
    return (
        f"with λ by the paper's Theorem 4 beats KME in {better} of them and loses in {worse}, with up to "
        f"{max(value['ratio'] for value in theorem4):.2f} times its loss. With λ by true deletion, our default, it "
        f"beats KME in {ours[0]} and loses in {ours[1]}."
    )


def _narrow(rows: list[Row]) -> str:
    losses = {row["width"]: row["S"]["ratio"] for row in select(rows, family="RBF")}
    return (
        f"S-KMSE has {losses[0.1]:.2f} of KME's loss at a tenth of the median squared distance, and {losses[1.0]:.2f} "
        "at the median."
    )


def _sum_to_one(rows: list[Row]) -> str:
    better, worse = _decided(row["simplex"] for row in rows)
    return f"beat KME in {better} of {len(rows)} settings and lose in {worse}. The paper expected no gain from them."


def _densities(rows: list[Row]) -> str:
    texts = []
    for kernel in ("RBF", "POLY3"):
        [counts] = [row for row in rows if row.get("sets") and row["kernel"] == kernel]
        better, worse, printed = (
            " and ".join(str(counts[name][part]) for name in ("S", "F_theorem4"))
            for part in ("better", "worse", "paper_better")
        )
        texts.append(
            f"With {kernel}, S- and F-KMSE are better than KME on {better} of {counts['sets']} tables and worse on "
            f"{worse}; the paper has them better on {printed}."
        )
    return " ".join(texts)


def _components(rows: list[Row]) -> str:
    texts = []
    for name, label in (("S_COSE", "S-COSE"), ("F_theorem4_COSE", "F-COSE")):
        better, worse, count = _change(rows, "E1", name)
        texts.append(f"{label} is better than standard kernel PCA on {better} of {count} tables and worse on {worse}")
    better, _, _ = _change(rows, "diagnostic", "S_COSE")
    return f"{'. '.join(texts)}. S-COSE is better on {better} by a diagnostic that is not a reconstruction error."


def _change(rows: list[Row], reading: str, name: str) -> tuple[int, int, int]:
    """Tables with a smaller error and with a larger one, beyond rounding, and all tables."""
    found = [row[name] for row in select(rows, reading=reading)]
    beyond_rounding = [{**value, "error": value["error"] and value["error"] + EXACT} for value in found]
    return *_decided(beyond_rounding), len(found)


def _bags(rows: list[Row]) -> str:
    found = [row[name] for row in rows for name in ("S", "F_theorem4", "F_deletion")]
    worse, better = _decided(found, "gain", 0.0)
    printed = [case[name] - case["KME"] for case in TABLE2.values() for name in ("S", "F_theorem4")]
    return (
        f"Shrinkage beats KME in {better} of {len(found)} comparisons and loses in {worse}. The paper has gains of "
        f"{min(printed):.3f} to {max(printed):.3f}."
    )


_LINES: tuple[tuple[str, str, Callable[[list[Row]], str]], ...] = (
    ("figure2", "S-KMSE", _simple),
    ("figure2", "F-KMSE", _flexible),
    ("kernel_choice", "Narrow kernels gain more:", _narrow),
    ("normalisation", "Weights that sum to one", _sum_to_one),
    ("table1", "Densities (table 1).", _densities),
    ("figure3", "Kernel PCA (figure 3).", _components),
    ("table2", "Bags (table 2).", _bags),
)

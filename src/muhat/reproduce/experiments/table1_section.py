"""What the report says of table 1: our likelihoods beside the paper's, and the sign tests."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from muhat.report.drawing import figure, svg
from muhat.report.page import Picture, Table
from muhat.reproduce.estimator_names import COLOURS, LABELS
from muhat.reproduce.experiment import Row, Section
from muhat.reproduce.experiments.comparison import summarised
from muhat.reproduce.experiments.statistics import column, grouped, mean_difference, select, sign_test
from muhat.reproduce.experiments.table1_paper import ESTIMATOR_NAMES, KERNEL_NAMES, PAPER, SETS
from muhat.types import Array

LEVEL = 0.05


SHRUNK = ("S", "F_theorem4", "F_deletion")


_MARKS = {-1: " ↓", 0: "", 1: " ↑"}


def decided(rows: list[Row], estimator: str, baseline: str = "KME") -> int:
    """−1 where the paired sign test finds the estimator's likelihood loss smaller, 1 where larger, else 0."""
    values, base = column(rows, estimator), column(rows, baseline)
    if sign_test(values, base) > LEVEL:
        return 0
    return -1 if (values < base).sum() > (values > base).sum() else 1


def in_table(rows: list[Row], solver: str = "slsqp") -> dict[tuple[str, str], list[Row]]:
    """Rows of each (set, kernel) that was run, in the order of the table."""
    cells = grouped(select(rows, solver=solver), "set", "kernel")
    return {key: cells[key] for key in product(SETS, KERNEL_NAMES) if key in cells}


def make_section(rows: list[Row]) -> Section:
    """The report's part."""
    summary = [_summary(cell, *key) for key, cell in in_table(rows).items()]
    converged = [_summary(cell, *key) for key, cell in in_table(rows, "lbfgs").items()]
    tables = [_overview(summary), *(_kernel_table(summary, kernel) for kernel in KERNEL_NAMES)]
    if converged:
        tables.append(_solver_table(converged, summary))
    agreement = [{"kernel": kernel, **_agreement(summary, kernel)} for kernel in KERNEL_NAMES]
    return Section([*summary, *converged, *agreement], [_picture(summary)], tables, _notes(summary))


def _summary(cell: list[Row], name: str, kernel: str) -> Row:
    row: Row = {"set": name, "kernel": kernel, "solver": cell[0]["solver"], "repetitions": len(cell)}
    row["initialisation"] = float(column(cell, "initialisation").mean())
    for estimator in ("KME", *SHRUNK):
        values, base = column(cell, estimator), column(cell, "KME")
        row[estimator] = {
            "mean": float(values.mean()),
            **summarised(mean_difference(values, base), "difference"),
            "below": int((values < base).sum()),
            "decided": decided(cell, estimator),
            "unmoved": float(np.isclose(values, column(cell, "initialisation"), rtol=1e-9).mean()),
            "converged": float(column(cell, f"{estimator}_converged").mean()),
            "variance": float(column(cell, f"{estimator}_variance").mean()),
        }
    return row


def _agreement(summary: list[Row], kernel: str) -> Row:
    """How far KME's column lies from the paper's, and how many sets the sign test decides, theirs for the same sets."""
    chosen = select(summary, kernel=kernel)
    logs = [abs(np.log(row["KME"]["mean"] / PAPER[row["set"]][kernel]["KME"].value)) for row in chosen]
    found: Row = {"sets": len(chosen), "median_log_ratio": float(np.median(logs))}
    for estimator in SHRUNK:
        verdicts = [row[estimator]["decided"] for row in chosen]
        found[estimator] = {"better": verdicts.count(-1), "worse": verdicts.count(1)}
        if estimator in ESTIMATOR_NAMES:
            printed = [_paper_verdict(row["set"], kernel, estimator) for row in chosen]
            found[estimator] |= {"paper_better": printed.count(-1), "paper_worse": printed.count(1)}
    return found


def _paper_verdict(name: str, kernel: str, estimator: str) -> int:
    number, base = PAPER[name][kernel][estimator], PAPER[name][kernel]["KME"]
    return int(np.sign(number.value - base.value)) if number.bold else 0


def _overview(summary: list[Row]) -> Table:
    rows = []
    for kernel in KERNEL_NAMES:
        found = _agreement(summary, kernel)
        counts = [f"{found[e]['better']} / {found[e]['worse']}" for e in SHRUNK]
        printed = [f"{found[e]['paper_better']} / {found[e]['paper_worse']}" for e in SHRUNK[:2]]
        rows.append(
            [kernel, found["sets"], counts[0], printed[0], counts[1], printed[1], counts[2], found["median_log_ratio"]]
        )
    names = [label for e in SHRUNK[:2] for label in (LABELS[e], "paper")]
    columns = ["kernel", "sets", *names, LABELS["F_deletion"], "median |log(ours/paper)|, KME"]
    return Table("Sets on which the sign test finds the estimator better / worse than KME", columns, rows)


def _kernel_table(summary: list[Row], kernel: str) -> Table:
    """One kernel's columns of the paper's table, each beside the paper's own."""
    columns, rows, bold = ["set", "k-means start"], [], set()
    for estimator in ("KME", *SHRUNK):
        columns += [LABELS[estimator], "paper"] if estimator in ESTIMATOR_NAMES else [LABELS[estimator]]
    for i, row in enumerate(select(summary, kernel=kernel)):
        shown = [row["set"], f"{row['initialisation']:.3f}"]
        for estimator in ("KME", *SHRUNK):
            ours = row[estimator]
            bold |= {(i, len(shown))} if ours["decided"] else set()
            shown.append(f"{ours['mean']:.3f}{_MARKS[ours['decided']]}")
            if estimator in ESTIMATOR_NAMES:
                printed = PAPER[row["set"]][kernel][estimator]
                bold |= {(i, len(shown))} if printed.bold else set()
                shown.append(f"{printed.value:.3f}")
        rows.append(shown)
    caption = (
        f"{kernel}: mean negative log-likelihood of the test rows. Bold: the paired sign test against KME decides at "
        f"{LEVEL:.0%}, for less (↓) or for more (↑)"
    )
    return Table(caption, columns, rows, frozenset(bold))


def _solver_table(converged: list[Row], summary: list[Row]) -> Table:
    rows = []
    for row in converged:
        early = select(summary, set=row["set"], kernel=row["kernel"])
        shown = [f"{row[e]['mean']:.3f}{_MARKS[row[e]['decided']]}" for e in ("KME", *SHRUNK)]
        rows.append(
            [row["set"], row["kernel"], f"{row['initialisation']:.3f}", f"{early[0]['KME']['mean']:.3f}", *shown]
        )
    columns = ["set", "kernel", "k-means start", "KME, stopped early", *(LABELS[e] for e in ("KME", *SHRUNK))]
    return Table("The same by L-BFGS, which runs until it converges", columns, rows)


def _picture(summary: list[Row]) -> Picture:
    names, handles = [name for name in SETS if select(summary, set=name)], {}
    with figure(columns=len(KERNEL_NAMES), width=10, height=1.6 + 0.33 * len(names), sharey=True) as (drawn, axes):
        for ax, kernel in zip(axes[0], KERNEL_NAMES, strict=True):
            chosen = select(summary, kernel=kernel)
            for offset, estimator in enumerate(SHRUNK, start=-1):
                places = np.arange(len(names)) + 0.2 * offset
                change, error = _percent(chosen, estimator, "difference"), 2 * _percent(chosen, estimator, "error")
                style: dict[str, Any] = {"color": COLOURS[estimator], "marker": "o", "ms": 4, "ls": "none"}
                label = LABELS[estimator]
                handles[label] = ax.errorbar(change, places, xerr=error, label=label, **style)
                if estimator in ESTIMATOR_NAMES:
                    style |= {"markerfacecolor": "none", "ms": 6, "label": f"{label}, paper"}
                    (handles[f"{label}, paper"],) = ax.plot(_paper_percent(chosen, estimator), places, **style)
            ax.axvline(0.0, color=COLOURS["KME"], lw=1, ls="--")
            ax.set_xscale("symlog", linthresh=1.0)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.tick_params(axis="x", labelsize=7)
            ax.set(xlabel="% of KME's", title=kernel, yticks=range(len(names)), yticklabels=names)
        axes[0, 0].invert_yaxis()
        drawn.legend(handles=list(handles.values()), loc="outside lower center", ncols=3)
        text = svg(drawn)
    caption = (
        "Mean difference of the negative log-likelihood from KME's, in per cent of KME's; bars are two standard "
        "errors. The scale is logarithmic beyond 1 %. Left of the line shrinkage is better."
    )
    return Picture(text, caption, _finding(summary))


def _percent(summary: list[Row], estimator: str, part: str) -> Array:
    return np.array([100.0 * (row[estimator][part] or 0.0) / row["KME"]["mean"] for row in summary])


def _paper_percent(summary: list[Row], estimator: str) -> Array:
    printed = [PAPER[row["set"]][row["kernel"]] for row in summary]
    return np.array([100.0 * (numbers[estimator].value / numbers["KME"].value - 1.0) for numbers in printed])


def _finding(summary: list[Row]) -> str:
    parts = []
    for kernel in KERNEL_NAMES:
        found = _agreement(summary, kernel)
        counts = [f"{LABELS[e]} {found[e]['better']} : {found[e]['worse']}" for e in SHRUNK]
        parts.append(f"{kernel} {', '.join(counts)}")
    return f"Sets of {found['sets']} where the sign test finds less loss than KME's : more. {'; '.join(parts)}."


def _notes(summary: list[Row]) -> list[str]:
    linear = select(summary, kernel="LIN")
    moved = max(abs(row["KME"]["mean"] - row["initialisation"]) for row in linear)
    notes = [f"With LIN, KME's objective is 0 at the k-means start: its column is the start's, within {moved:.1g}."]
    for kernel in ("POLY2", "POLY3", "RBF"):
        chosen = select(summary, kernel=kernel)
        widths = [np.median([row[e]["variance"] / row["KME"]["variance"] for row in chosen]) for e in SHRUNK]
        ended, unmoved = (
            np.mean([row[e][part] for row in chosen for e in ("KME", *SHRUNK)]) for part in ("converged", "unmoved")
        )
        notes.append(
            f"{kernel}: the mean variance of the components is {widths[0]:.2f} (S), {widths[1]:.2f} (F, Theorem 4) and "
            f"{widths[2]:.2f} (F, deletion) times KME's, in the median of the sets; {ended:.0%} of the fits "
            f"converged within the iterations allowed, and {unmoved:.0%} found nothing better than the start."
        )
    return notes

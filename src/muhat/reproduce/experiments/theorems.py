"""Theorems 1 to 4 in numbers, and the places where the paper is inexact."""

from __future__ import annotations

import numpy as np

from muhat.report.page import Table
from muhat.reproduce.experiment import Experiment, Plan, Row, Section, Setting, generator
from muhat.reproduce.experiments.inexact import inexact_table, remark_row
from muhat.reproduce.experiments.statistics import column, select
from muhat.reproduce.experiments.synthetic import population_and_sample
from muhat.reproduce.experiments.theorem_checks import (
    REFITS,
    stein_rows,
    theorem1_rows,
    theorem2_rows,
    theorem3_rows,
    theorem4_rows,
)

NAME = "theorems"


N, D = 20, 30


POINTS = 21


FLAT = (12, 3)


SINGULAR = "LIN, singular"


_ROUNDED = 1e-4


def _cells(plan: Plan) -> list[Setting]:
    return [{"seed": plan.seed, "repetition": i} for i in range(plan.times(full=300, quick=30))]


def _run(setting: Setting, data: str | None) -> list[Row]:
    P, X = population_and_sample(N, D, generator(NAME, setting))
    others = generator(NAME, setting, 1)
    measured = [
        *stein_rows(others),
        *theorem1_rows(P.sample(POINTS, random_state=others)),
        *theorem2_rows(X),
        *theorem3_rows(X, others.standard_normal((N, D))),
        *theorem4_rows(P, X, others.standard_normal(FLAT)),
        remark_row(P, X),
    ]
    return [{**row, "repetition": setting["repetition"]} for row in measured]


def _seconds(setting: Setting) -> float:
    return 0.35


def regular(rows: list[Row], theorem: str) -> list[Row]:
    """Rows of a theorem on data whose Gram matrix is not singular."""
    return [row for row in select(rows, theorem=theorem) if row["kernel"] != SINGULAR]


def _largest(rows: list[Row], name: str) -> float:
    return float(column(rows, name).max())


def _lines(rows: list[Row]) -> list[Row]:
    """What was checked, the paper's side, and the largest error over all repetitions and kernels."""
    stein, first = select(rows, theorem="stein"), select(rows, theorem="1")
    second, third, fourth = (regular(rows, theorem) for theorem in "234")
    gains = column(first, "1") / column(first, "KME")
    lines = [
        ("James–Stein: exact risk relative to the average's, largest", _largest(stein, "risk")),
        ("Theorem 1: risk at α* relative to KME's, largest", float(gains.max())),
        ("Theorem 1: exact risks against the formula, relative error", _largest(first, "error")),
        ("Theorem 2: eigenvalues of Σφ⊗φ, that is of K, relative error", _largest(second, "sum")),
        ("Theorem 2: eigenvalues of the average of φ⊗φ, relative distance", _largest(second, "average")),
        ("Theorem 3: α* against refits, relative error", _largest(third, "error")),
        ("Theorem 4: our form against φ(xᵢ) kept in the span, relative error", _largest(fourth, "ours")),
        ("Theorem 4: as printed, where K has full rank, relative error", _largest(fourth, "printed")),
    ]
    lines += [
        (
            f"Theorem 4: distance from leave-one-out refits with ridge {refit}, median",
            float(np.median(column(fourth, refit))),
        )
        for refit in REFITS
    ]
    return [{"check": check, "value": value} for check, value in lines]


def _shown(line: Row) -> str:
    """Enough digits to tell a ratio from one, and no more of a rounding error than its size."""
    return f"{line['value']:.6f}" if line["value"] > _ROUNDED else f"{line['value']:.1e}"


def _section(rows: list[Row]) -> Section:
    lines = _lines(rows)
    checks = Table("The theorems in numbers", ["check", "value"], [[line["check"], _shown(line)] for line in lines])
    inexact, table = inexact_table(rows)
    return Section([*lines, *inexact], (), [checks, table])


EXPERIMENT = Experiment(
    name=NAME,
    title="The theorems, and where the paper is inexact",
    protocol=(
        f"Each theorem against a computation that follows its words. Theorem 1: all {POINTS - 1}² samples of size 2 "
        f"from {POINTS - 1} points are listed, so that the risk is exact. Theorems 2 to 4: n = {N}, d = {D}, all "
        "kernels, and leave-one-out by refits.",
        f"A singular Gram matrix is that of the linear kernel on {FLAT[0]} points in {FLAT[1]} dimensions.",
    ),
    cells=_cells,
    run=_run,
    seconds=_seconds,
    section=_section,
)

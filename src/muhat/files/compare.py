"""Do two files hold rows of one distribution, how much do they differ, and where?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.files.progress import progress
from muhat.files.samples import Sample, kernel_json, moments, standardised
from muhat.inference.two_sample import MMDResult, mmd_test
from muhat.kernels.base import Kernel
from muhat.types import Array

TYPICAL = 5
"""How many rows of each file are shown."""


@dataclass(frozen=True, eq=False)
class ColumnDifference:
    """One column by itself: its test, the p-value after Holm's correction, the relative size, moments of both files."""

    name: str
    test: MMDResult
    adjusted_pvalue: float
    relative_size: float
    means: tuple[float, float]
    standard_deviations: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What :func:`compare` found.

    ``test`` is of all columns together, ``points`` are the rows as the kernel saw them, ``columns`` come most different
    first, and ``typical`` holds the numbers of the rows of either sample that are most unlike the other.
    """

    samples: tuple[Sample, Sample]
    points: tuple[Array, Array]
    test: MMDResult
    relative_size: float
    columns: tuple[ColumnDifference, ...]
    typical: tuple[NDArray[np.int64], NDArray[np.int64]]
    level: float
    notes: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether a difference was found at the level."""
        return self.test.pvalue <= self.level

    @property
    def found(self) -> list[ColumnDifference]:
        """The columns that differ by themselves."""
        return [column for column in self.columns if column.adjusted_pvalue <= self.level]

    def witnesses(self, which: int) -> Array:
        """The witness at the typical rows of one sample; positive is more like that sample than like the other."""
        values = self.test.witness(self.points[which][self.typical[which]])
        return values if which == 0 else -values


def compare(
    first: Sample,
    second: Sample,
    kernel: Kernel,
    *,
    resamples: int = 999,
    seed: int = 0,
    level: float = 0.05,
    raw: bool = False,
    notes: Sequence[str] = (),
) -> Comparison:
    r"""Test two samples as a whole, then column by column.

    The statistic is the unbiased :math:`\mathrm{MMD}^2`, and the relative size
    :math:`\mathrm{MMD}^2 / E\|\phi(x) - \phi(y)\|^2` in [0, 1]: the share of the squared distance between a row of one
    sample and a row of the other that is due to the difference between the samples.

    Parameters
    ----------
    first, second : Sample
        With the same columns.
    kernel : Kernel
        Its median bandwidth is found on the pooled rows, for single columns on those columns.
    resamples, seed : int
        Of the permutation tests.
    level : float
        A p-value up to it counts as a difference.
    raw : bool
        Leave the columns as they are; by default they get the pooled mean 0 and standard deviation 1.
    notes : sequence of str

    Returns
    -------
    Comparison
    """
    X, Y = (first.rows, second.rows) if raw else standardised(first.rows, second.rows)

    def tested(x: Array, y: Array) -> MMDResult:
        return mmd_test(x, y, kernel, resamples, seed, unbiased=True, scale=None)

    def tested_alone(j: int) -> MMDResult:
        say(f"column {j + 1} of {len(first.columns)}: {first.columns[j]}")
        return tested(X[:, [j]], Y[:, [j]])

    with warnings.catch_warnings(), progress() as say:
        # Columns of few values are common, and nobody can choose their bandwidths here.
        warnings.filterwarnings("ignore", 'bandwidth="median": more than half', UserWarning)
        test = tested(X, Y)
        tests = [tested_alone(j) for j in range(X.shape[1])]
    adjusted = holm([single.pvalue for single in tests])
    columns = [
        _column(first, second, j, single, adjusted[j], relative_size(single, X[:, [j]], Y[:, [j]]))
        for j, single in enumerate(tests)
    ]
    columns.sort(key=lambda column: (column.adjusted_pvalue, -column.relative_size))
    return Comparison(
        (first, second),
        (X, Y),
        test,
        relative_size(test, X, Y),
        tuple(columns),
        (_largest(test.witness(X)), _largest(-test.witness(Y))),
        level,
        (*notes, *_too_few(resamples, len(columns), level)),
    )


def relative_size(test: MMDResult, X: Array, Y: Array) -> float:
    """MMD² / E‖φ(x) − φ(y)‖², between 0 and 1, for a kernel with k(x, x) = 1."""
    between = 2.0 - 2.0 * float(test.kernel(X, Y).mean())
    return float(np.clip(test.statistic / between, 0.0, 1.0)) if between > 0 else 0.0


def holm(pvalues: Sequence[float]) -> Array:
    """P-values adjusted so that the chance of any false finding stays below the level (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(pvalues)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)).clip(max=1.0)
    adjusted = np.empty(len(values))
    adjusted[order] = steps
    return adjusted


def _column(first: Sample, second: Sample, j: int, test: MMDResult, adjusted: float, size: float) -> ColumnDifference:
    (mean_a, deviation_a), (mean_b, deviation_b) = moments(first.rows[:, j]), moments(second.rows[:, j])
    means, deviations = (mean_a, mean_b), (deviation_a, deviation_b)
    return ColumnDifference(first.columns[j], test, float(adjusted), size, means, deviations)


def _largest(values: Array) -> NDArray[np.int64]:
    return np.argsort(-values, kind="stable")[:TYPICAL]


def _too_few(resamples: int, columns: int, level: float) -> list[str]:
    needed = int(np.ceil(columns / level)) - 1
    if resamples >= needed:
        return []
    return [
        f"{resamples} resamples cannot show which of {columns} columns differ at level {level:g}; "
        f"take --resamples {needed}"
    ]


def as_json(comparison: Comparison) -> dict[str, Any]:
    """What ``muhat compare --json`` prints."""
    return {
        "differs": comparison.differs,
        "level": comparison.level,
        "pvalue": comparison.test.pvalue,
        "resamples": len(comparison.test.null_distribution),
        "mmd_squared": comparison.test.statistic,
        "relative_size": comparison.relative_size,
        **kernel_json(comparison.test.kernel),
        "files": [_file_json(comparison, which) for which in (0, 1)],
        "columns": [
            {
                "name": column.name,
                "differs": column.adjusted_pvalue <= comparison.level,
                "pvalue": column.test.pvalue,
                "adjusted_pvalue": column.adjusted_pvalue,
                "relative_size": column.relative_size,
                "means": list(column.means),
                "standard_deviations": list(column.standard_deviations),
            }
            for column in comparison.columns
        ],
        "notes": list(comparison.notes),
    }


def _file_json(comparison: Comparison, which: int) -> dict[str, Any]:
    sample, chosen = comparison.samples[which], comparison.typical[which]
    typical = [
        {sample.place: int(sample.lines[i]), "witness": float(value), "values": sample.rows[i].tolist()}
        for i, value in zip(chosen, comparison.witnesses(which), strict=True)
    ]
    return {
        "path": sample.path,
        "rows_in_file": sample.total,
        "rows_used": len(sample.rows),
        "rows_with_missing_values": sample.dropped,
        "columns": list(sample.columns),
        "most_typical_rows": typical,
    }

"""Description of one table: columns, least typical rows, and what shrinkage would save."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.stats import entropy

from muhat.files.matching import Matched
from muhat.files.reasons import Reason, reasons
from muhat.files.rows import Sample, drawn_rows
from muhat.files.selection import used_columns
from muhat.files.summaries import Summary
from muhat.files.tables import Reading
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.means.adaptive import AdaptiveKernelMean
from muhat.means.base import BaseKernelMean
from muhat.means.simple import KernelMean, ShrunkKernelMean
from muhat.means.spectral import SpectralKernelMean
from muhat.progress import progress
from muhat.types import Array

LITTLE = 0.01
"""A gain below it is not worth a dearer estimator."""

ROWS = 1000
"""How many rows the kernel means are fitted to by default."""

THOUSANDS = 3000
"""From this many rows on the plain average is good enough."""

FAR = 0.1
"""Rows at which the mean is below this share of its median are called far."""

SHOWN = 5


@dataclass(frozen=True)
class EstimatorChoice:
    """What leave-one-out chose for an estimator, its score, and the estimated share of KME's squared error it saves."""

    name: str
    estimator: str
    choice: str
    loo_score: float
    gain: float


@dataclass(frozen=True, eq=False)
class Description:
    """What :func:`describe` found: ``columns`` of all rows, and the kernel mean of the rows in ``sample``.

    ``typicality`` is the mean at each row, relative to its median over the rows, and ``least_typical`` are the numbers
    of the rows where it is smallest. ``far`` rows lie far from the others.
    """

    name: str
    path: str
    total: int
    sample: Sample
    kernel: Kernel
    columns: tuple[Summary, ...]
    duplicates: int
    effective_rank: float
    estimators: tuple[EstimatorChoice, ...]
    typicality: Array
    least_typical: NDArray[np.int64]
    far: int
    advice: str
    notes: tuple[str, ...]

    def reasons(self) -> list[list[Reason]]:
        """For each of the least typical rows, its values that are rare in the table."""
        return [reasons(self.sample, int(i), 0, self.columns) for i in self.least_typical]


def describe(matched: Matched, reading: Reading, kernel: Kernel = Gaussian(), *, raw: bool = False) -> Description:
    """Summarise all rows, fit the mean estimators to a sample of them and say what each would gain.

    Parameters
    ----------
    matched : Matched
        One table and its columns.
    reading : Reading
        ``rows`` bounds the sample, by default 1,000, and ``seed`` draws it.
    kernel : Kernel, default Gaussian()
    raw : bool
        Leave columns of numbers as they are; by default they get mean 0 and standard deviation 1.

    Returns
    -------
    Description
    """
    (table,) = matched.tables
    with progress() as say:
        used, notes = used_columns(matched, reading, say)
        (sample,) = drawn_rows(matched, used, reading.rows or ROWS, reading.seed, raw)
        say("kernel means")
        points = sample.points
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", 'bandwidth="median": more than half', UserWarning)
            resolved = kernel.resolve(points)
        plain = KernelMean(resolved).fit(points)
        estimators = estimated_gains(plain, points)
        typicality = plain.mean_(points)
        typicality /= np.median(typicality)
    if len(points) < table.total:
        notes.append(
            f"{table.path}: kernel means are of {len(points):,} of {table.total:,} rows, drawn at random; "
            "--rows N takes more"
        )
    return Description(
        matched.names[0],
        table.path,
        table.total,
        sample,
        resolved,
        tuple(used),
        len(points) - len(np.unique(points, axis=0)),
        effective_rank(resolved(points)),
        estimators,
        typicality,
        np.argsort(typicality, kind="stable")[:SHOWN],
        far := int((typicality < FAR).sum()),
        _advice(table.total, estimators, far),
        (*matched.notes, *notes),
    )


def estimated_gains(plain: KernelMean, points: Array) -> tuple[EstimatorChoice, ...]:
    """The estimators by leave-one-out, and the share of the plain average's squared error that each saves.

    A leave-one-out score estimates ϱ − ‖μ‖², a constant of the data, plus the loss with n − 1 rows. For the plain
    average that loss is (ϱ − ‖μ‖²)/(n − 1), one nth of its score. Gains are differences of scores, relative to it:
    estimates, of a choice that minimised the same score.
    """
    loss = plain.loo_score_ / len(points)
    simple = ShrunkKernelMean(plain.kernel_).fit(points)
    flexible = SpectralKernelMean(plain.kernel_).fit(points)
    adaptive = AdaptiveKernelMean(plain.kernel_).fit(points)
    a, b = adaptive.shares_
    base = f"{a:.2f} · mean (λ = {adaptive.lam_:.3g})"
    choices: list[tuple[str, BaseKernelMean, str]] = [
        ("plain average (KME)", plain, "no shrinkage"),
        ("simple (S-KMSE)", simple, f"shrunk by {100 * simple.shrinkage_:.2g} %"),
        ("flexible (F-KMSE)", flexible, f"λ = {flexible.lam_:.3g}"),
        ("adaptive", adaptive, base if adaptive.target_ is None else f"{base} + {b:.2f} · Gaussian"),
    ]
    return tuple(
        EstimatorChoice(
            name,
            type(mean).__name__,
            choice,
            mean.loo_score_,
            float(np.clip((plain.loo_score_ - mean.loo_score_) / loss, 0.0, 1.0)) if loss > 0 else 0.0,
        )
        for name, mean, choice in choices
    )


def effective_rank(K: Array) -> float:
    """Of the centred Gram matrix: exp of the entropy of its eigenvalues' shares, between 1 and n − 1.

    >>> round(effective_rank(np.eye(5)), 6)
    4.0
    """
    means = K.mean(axis=0)
    eigenvalues = eigvalsh(K - means - means[:, None] + means.mean()).clip(0)
    return float(np.exp(entropy(eigenvalues)))


def _advice(total: int, estimators: Sequence[EstimatorChoice], far: int) -> str:
    best = max(choice.gain for choice in estimators)
    chosen = next(choice for choice in estimators if choice.gain >= best - LITTLE)  # the cheapest comes first
    if total >= THOUSANDS:
        advice = f"KernelMean, the plain average: of {total:,} rows little is left to gain."
    elif chosen.gain < LITTLE:
        advice = "KernelMean, the plain average: shrinkage would save less than an estimated 1 % of its squared error."
    else:
        saved = f"an estimated {100 * chosen.gain:.2g} % of the plain average's squared error"
        advice = f"{chosen.estimator}: it saves {saved}."
    if far:
        lie = "row lies" if far == 1 else "rows lie"
        advice += (
            f' {far} {lie} far from the others: RobustKernelMean(loss="hampel") leaves out rows that may be wrong.'
        )
    return advice


def as_json(description: Description) -> dict[str, Any]:
    """What ``muhat describe --json`` prints."""
    sample = description.sample
    return {
        "path": description.path,
        "rows_in_file": description.total,
        "rows_used": len(sample.points),
        "duplicate_rows": description.duplicates,
        "columns": [_column_json(summary) for summary in description.columns],
        "kernel": repr(description.kernel),
        "effective_rank": description.effective_rank,
        "estimators": [asdict(choice) for choice in description.estimators],
        "least_typical_rows": [
            {
                sample.place: int(sample.places[i]),
                "typicality": float(description.typicality[i]),
                "because": [reason.as_json("share_of_file") for reason in because],
                "values": sample.row(int(i)),
            }
            for i, because in zip(description.least_typical, description.reasons(), strict=True)
        ],
        "advice": description.advice,
        "notes": list(description.notes),
    }


def _column_json(summary: Summary) -> dict[str, Any]:
    found = {"name": summary.name, "kind": summary.kind, "missing": summary.missing[0], "distinct": summary.distinct}
    if summary.kind != "category":
        return found | asdict(summary.moments[0])
    counts = zip(summary.values[:20], summary.counts[0][:20].tolist(), strict=True)
    return found | {"counts": [{"value": str(text), "rows": rows} for text, rows in counts]}

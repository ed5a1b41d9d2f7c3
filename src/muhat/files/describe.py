"""What a kernel mean of the rows of a file is like, and which estimator of it to use."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.stats import entropy

from muhat.files.samples import Sample, kernel_json, moments, standardised
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.means.adaptive import AdaptiveKernelMean
from muhat.means.base import BaseKernelMean
from muhat.means.simple import KernelMean, ShrunkKernelMean
from muhat.means.spectral import SpectralKernelMean
from muhat.types import Array

LITTLE = 0.01
"""A gain below it is not worth a dearer estimator."""

THOUSANDS = 3000
"""From so many rows on the plain average is good enough."""

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


@dataclass(frozen=True)
class ColumnSummary:
    """One column in the units of the file."""

    name: str
    mean: float
    standard_deviation: float
    smallest: float
    largest: float


@dataclass(frozen=True, eq=False)
class Description:
    """What :func:`describe` found; ``typicality`` is the mean at each row, relative to its median over the rows.

    ``least_typical`` are the numbers of the rows where it is smallest, and ``points`` the rows as the kernel saw them.
    """

    sample: Sample
    points: Array
    kernel: Kernel
    columns: tuple[ColumnSummary, ...]
    duplicates: int
    effective_rank: float
    estimators: tuple[EstimatorChoice, ...]
    typicality: Array
    least_typical: NDArray[np.int64]
    advice: str
    notes: tuple[str, ...]


def describe(
    sample: Sample,
    kernel: Kernel = Gaussian(),
    *,
    raw: bool = False,
    notes: Sequence[str] = (),
) -> Description:
    """Fit the mean estimators to the rows and say what each would gain.

    Parameters
    ----------
    sample : Sample
    kernel : Kernel, default Gaussian()
    raw : bool
        Leave the columns as they are; by default they get mean 0 and standard deviation 1.
    notes : sequence of str

    Returns
    -------
    Description
    """
    points = sample.rows if raw else standardised(sample.rows)[0]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", 'bandwidth="median": more than half', UserWarning)
        resolved = kernel.resolve(points)
    plain = KernelMean(resolved).fit(points)
    estimators = estimated_gains(plain, points)
    typicality = plain.mean_(points)
    typicality /= np.median(typicality)
    return Description(
        sample,
        points,
        resolved,
        tuple(_summary(name, values) for name, values in zip(sample.columns, sample.rows.T, strict=True)),
        len(sample.rows) - len(np.unique(sample.rows, axis=0)),
        effective_rank(resolved(points)),
        estimators,
        typicality,
        np.argsort(typicality, kind="stable")[:SHOWN],
        _advice(sample, estimators, int((typicality < FAR).sum())),
        tuple(notes),
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


def _summary(name: str, values: Array) -> ColumnSummary:
    return ColumnSummary(name, *moments(values), float(values.min()), float(values.max()))


def _advice(sample: Sample, estimators: Sequence[EstimatorChoice], far: int) -> str:
    best = max(choice.gain for choice in estimators)
    chosen = next(choice for choice in estimators if choice.gain >= best - LITTLE)  # the cheapest comes first
    if sample.total >= THOUSANDS:
        advice = f"KernelMean, the plain average: of {sample.total:,} rows little is left to gain."
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
    sample, chosen = description.sample, description.least_typical
    return {
        "path": sample.path,
        "rows_in_file": sample.total,
        "rows_used": len(sample.rows),
        "rows_with_missing_values": sample.dropped,
        "duplicate_rows": description.duplicates,
        "columns": [asdict(column) for column in description.columns],
        **kernel_json(description.kernel),
        "effective_rank": description.effective_rank,
        "estimators": [asdict(choice) for choice in description.estimators],
        "least_typical_rows": [
            {sample.place: int(sample.lines[i]), "typicality": float(description.typicality[i]), "values": row.tolist()}
            for i, row in zip(chosen, sample.rows[chosen], strict=True)
        ],
        "advice": description.advice,
        "notes": list(description.notes),
    }

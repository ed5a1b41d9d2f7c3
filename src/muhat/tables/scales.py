"""Scales of columns: standard deviations, mean absolute deviations, and columns that dominate the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_weights
from muhat.linalg.distances import powers_of_two

DOMINANT = 0.98
"""A column that makes up more of the squared distances than this is worth a warning."""


@dataclass(frozen=True, eq=False)
class ColumnScales:
    """A centre and a scale for each column."""

    # both (d,); the scale is positive
    centre: Array
    scale: Array

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Means and standard deviations of the columns; a constant column keeps the scale 1."""
        tops = np.abs(rows).max(axis=0)
        powers = powers_of_two(tops)
        small, tops = rows / powers, tops / powers  # squares and sums of these do not overflow
        centre = small.mean(axis=0).clip(-tops, tops)  # which rounding may take beyond the largest number
        deviations = np.minimum((small - centre).std(axis=0), tops)
        varies = (rows != rows[0]).any(axis=0) & (deviations > 0)
        scale = np.maximum(deviations * powers, np.finfo(np.float64).smallest_subnormal)
        return cls(np.where(varies, centre * powers, rows[0]), np.where(varies, scale, 1.0))

    @classmethod
    def none(cls, width: int) -> Self:
        """Rows as they are."""
        return cls(np.zeros(width), np.ones(width))

    def divide(self, rows: Array) -> Array:
        """Rows in these scales, from the centre; infinite where they are too far."""
        powers = powers_of_two(self.scale)  # differences of the largest numbers overflow
        return (rows / powers - self.centre / powers) / (self.scale / powers)

    def restore(self, scaled: Array) -> Array:
        """Rows in the scales that they had."""
        return self.centre + self.scale * scaled


def standard_deviations(rows: Array) -> Array:
    """The standard deviation of each column; 1 for a constant column."""
    return ColumnScales.of(rows).scale


def mean_absolute_deviations(rows: Array) -> Array:
    """The mean absolute deviation of each column from its median; 1 for a constant column."""
    halves = np.abs(rows / 2 - np.median(rows / 2, axis=0))
    powers = powers_of_two(halves.max(axis=0))
    deviations = (halves / powers).mean(axis=0) * powers  # of numbers whose sum may overflow
    return np.where(deviations > 0, np.minimum(deviations, np.finfo(np.float64).max / 2) * 2, 1.0)


def given_scales(scale: Any, width: int) -> Array:
    """The scales that a user gives, one positive number per column, or a ValueError."""
    scales = check_weights("scale", scale, width)
    if (scales <= 0).any():
        raise ValueError(f"scale has the entry {scales.min():g}; pass one positive number per column")
    return scales


def dominant_column(rows: Array) -> tuple[int, float] | None:
    """The column that makes up nearly all of the squared distances, and its share of them; None without such a one."""
    if rows.shape[1] < 2:
        return None
    halves = rows / 2 - rows[0] / 2
    tops = np.abs(halves).max(axis=0)
    deviations = tops * (halves / np.where(tops > 0, tops, 1.0)).std(axis=0)
    largest = float(deviations.max())
    if not (np.isfinite(largest) and largest > 0):
        return None
    shares = (deviations / largest) ** 2
    shares /= shares.sum()
    column = int(shares.argmax())
    return (column, float(shares[column])) if shares[column] > DOMINANT else None

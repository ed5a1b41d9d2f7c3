"""Centre and scale of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from muhat.types import Array

DOMINANT = 0.98
"""A column that makes up more of the squared distances than this is worth a warning."""


@dataclass(frozen=True, eq=False)
class ColumnUnits:
    """A centre and a unit for each column.

    Parameters
    ----------
    centre, unit : arrays of shape (d,)
        The unit is positive.
    """

    centre: Array
    unit: Array

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Means and standard deviations of the columns; a constant column keeps the unit 1."""
        powers = _powers_of_two(np.abs(rows).max(axis=0))
        small = rows / powers  # squares and sums of these do not overflow
        centre = small.mean(axis=0)
        deviations = (small - centre).std(axis=0)
        varies = (rows != rows[0]).any(axis=0) & (deviations > 0)
        return cls(np.where(varies, centre * powers, rows[0]), np.where(varies, deviations * powers, 1.0))

    @classmethod
    def none(cls, width: int) -> Self:
        """Rows as they are."""
        return cls(np.zeros(width), np.ones(width))

    def divide(self, rows: Array) -> Array:
        """Rows in these units, from the centre."""
        powers = _powers_of_two(self.unit)  # differences of the largest numbers overflow
        return (rows / powers - self.centre / powers) / (self.unit / powers)

    def restore(self, scaled: Array) -> Array:
        """Rows in the units that they had."""
        return self.centre + self.unit * scaled


def _powers_of_two(tops: Array) -> Array:
    """Powers of two next to the numbers; dividing by them rounds nothing."""
    return np.ldexp(1.0, np.frexp(tops)[1].clip(-1000, 1000))


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

"""Serial dependence of a reference: whether neighbouring rows are alike, and for how many rows that lasts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from muhat.types import Array

LEVEL = 0.005
"""Probability of finding dependence in independent rows, over all columns together."""

HARMLESS = 0.05
"""Correlation of neighbours up to which a monitor keeps about four fifths of its run length (404 of 500 rows)."""

_PAIRS_LEFT_OUT = 2


class Dependence(NamedTuple):
    """The column whose neighbouring values are most alike.

    Parameters
    ----------
    column : int
    correlation : float
        Lag-1 autocorrelation.
    rows : float
        Integrated autocorrelation time: how many dependent rows are worth one independent row.
    """

    column: int
    correlation: float
    rows: float


def serial_dependence(rows: Array) -> Dependence | None:
    r"""The column with the largest lag-1 autocorrelation, or None where it may be chance or does no harm.

    The correlation of neighbours in n independent rows is about normal with variance 1/n; the level is divided by the
    number of columns. The two pairs of neighbours that contribute most do not count: in heavy-tailed columns, and in
    columns of zeros with a few other values, two neighbouring outliers would be taken for dependence. O(nd).

    Parameters
    ----------
    rows : array of shape (n, d)
        In the order of time.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=(500, 3))
    >>> serial_dependence(noise) is None
    True
    >>> found = serial_dependence(np.cumsum(noise, axis=0))
    >>> found.correlation > 0.9 and found.rows > 10
    True
    """
    n, d = rows.shape
    scaled = _standardised(rows)
    products = scaled[1:] * scaled[:-1]
    correlations = products.sum(axis=0) / n
    cut = n - 1 - _PAIRS_LEFT_OUT
    kept = np.partition(products, cut, axis=0)[:cut].sum(axis=0) / n
    # The column is the one that is shown to depend, so that an outlier pair elsewhere does not hide it.
    column = int(np.argmax(kept))
    if kept[column] <= norm.isf(LEVEL / d) / np.sqrt(n) or correlations[column] <= HARMLESS:
        return None
    return Dependence(column, float(correlations[column]), _autocorrelation_time(scaled[:, column]))


def _standardised(rows: Array) -> Array:
    """Columns of mean 0 and variance 1; constant ones are 0."""
    unit = np.abs(rows).max(axis=0)
    scaled = rows / np.where(unit > 0, unit, 1.0)  # or squares might overflow
    scaled -= scaled.mean(axis=0)
    deviation = np.sqrt((scaled**2).mean(axis=0))
    constant = deviation <= 8 * np.finfo(np.float64).eps
    return np.where(constant, 0.0, scaled / np.where(constant, 1.0, deviation))


def _autocorrelation_time(x: Array) -> float:
    r""":math:`\tau = 1 + 2 \sum_{k \le M} r_k` with the smallest M of at least 5 τ (Sokal, 1997), at least 1."""
    n = len(x)
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2  # of a column with as many zeros behind it: no lag wraps around
    correlations = np.fft.irfft(spectrum)[:n] / n
    times = 2.0 * np.cumsum(correlations) - 1.0  # the correlation at lag 0 is 1
    enough = np.flatnonzero(np.arange(n) >= 5.0 * times)
    return max(float(times[enough[0] if len(enough) else -1]), 1.0)

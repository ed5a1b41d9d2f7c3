"""James and Stein's estimator of a mean vector, and its exact risk."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import hyp1f1

from muhat._support.types import Array
from muhat._support.validation import check_count, check_number, check_rows, check_weights


def james_stein(X: Any, variance: float, target: Any = 0.0, positive_part: bool = True) -> Array:
    r"""The James–Stein estimate of the mean θ of N(θ, v·I) from rows of X, in three dimensions or more.

    It has a lower risk than the average :math:`\bar x`, whatever θ is:

    .. math:: f^* + \left(1 - \frac{(d - 2)\, v}{n\, \|\bar x - f^*\|^2}\right) (\bar x - f^*)

    Parameters
    ----------
    X : array of shape (n, d), d >= 3
        The rows, one observation each.
    variance : float
        v, known.
    target : float or array of shape (d,), default 0.0
        f*, the point toward which the mean is shrunk.
    positive_part : bool, default True
        Clip the factor at 0: never worse, and never past the target.

    Returns
    -------
    array of shape (d,)
        The estimate of the mean.

    See Also
    --------
    ShrunkKernelMean : Shrinkage with the variance unknown; with a linear kernel, of the same mean.
    muhat.means.james_stein_risk : Its exact risk.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.james_stein([[2.0, 0.0, 0.0, 0.0]], variance=1.0)
    array([1., 0., 0., 0.])
    """
    X = check_rows(X)
    n, d = X.shape
    if d < 3:
        raise ValueError(f"X has {d} columns; the James-Stein estimator needs 3 or more (below, x̄ cannot be beaten)")
    variance = check_number("variance", variance, low=0)
    try:
        centre = check_weights("target", np.full(d, target) if np.ndim(target) == 0 else target, d)
    except ValueError as error:
        raise ValueError(f"target={target!r} must be a finite number or have one entry a column: ({d},)") from error
    offset = X.mean(axis=0) - centre
    squared_length = offset @ offset
    if squared_length == 0:
        return offset + centre
    factor = 1.0 - (d - 2) * variance / (n * squared_length)
    return centre + (max(factor, 0.0) if positive_part else factor) * offset


def james_stein_risk(theta: Any, variance: float, n: int) -> float:
    r"""Exact risk of the James–Stein estimate δ toward 0 without the positive part.

    .. math:: \mathrm{E}\|\delta - \theta\|^2 = V \left(d - (d-2)^2\, \mathrm{E} \frac{1}{d - 2 + 2N}\right),
              \qquad V = v/n

    N is Poisson with mean :math:`r = \|\theta\|^2 / 2V`, and the expectation on the right is
    :math:`M(1, d/2, -r)/(d-2)` with Kummer's function M.

    Parameters
    ----------
    theta : array of shape (d,)
        The true mean, with d of at least 3.
    variance : float
        Variance v of each coordinate of a row.
    n : int
        Number of rows.

    Returns
    -------
    float
        The expected squared error.

    See Also
    --------
    muhat.james_stein : The estimate.
    muhat.oracle_shrinkage : The best fixed shrinkage for a known distribution.

    Examples
    --------
    >>> import muhat as mh
    >>> round(mh.means.james_stein_risk([0.0, 0.0, 0.0, 0.0, 0.0], variance=1.0, n=1), 12)
    2.0
    """
    theta = check_weights("theta", theta, np.size(theta))
    d = len(theta)
    if d < 3:
        raise ValueError(f"theta has {d} entries; the James-Stein estimator needs 3 or more")
    V = check_number("variance", variance, low=0, open_low=True) / check_count("n", n)
    return float(V * (d - (d - 2) * hyp1f1(1.0, d / 2, -(theta @ theta) / (2 * V))))

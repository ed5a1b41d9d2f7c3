"""The squared maximum mean discrepancy, biased and unbiased, from averages of kernel values."""

from __future__ import annotations

from typing import Any


def unbiased_squared_mmd(squared: Any, n: int, spread_x: Any, m: int, spread_y: Any) -> Any:
    r"""The unbiased estimate of MMD² from the biased one, :math:`\|\hat\mu_X - \hat\mu_Y\|^2`.

    The biased estimate averages k over all pairs of rows, a row and itself among them. The unbiased one leaves those
    pairs out and divides by n(n − 1) and m(m − 1), which is the same as

    .. math:: \widehat{\mathrm{MMD}}^2_u = \|\hat\mu_X - \hat\mu_Y\|^2 - \frac{v_X}{n - 1} - \frac{v_Y}{m - 1},

    with the spread :math:`v_X = \frac1n\sum_i k(x_i, x_i) - \frac1{n^2}\sum_{ij} k(x_i, x_j)` of each sample. It may be
    negative.

    Parameters
    ----------
    squared : float or array
        The biased estimate.
    n, m : int
        Numbers of rows.
    spread_x, spread_y : float or array
        The spreads of the two samples.

    References
    ----------
    A. Gretton, K. Borgwardt, M. Rasch, B. Schölkopf, A. Smola. A kernel two-sample test. JMLR 2012, Lemma 6.
    """
    return squared - spread_x / (n - 1) - spread_y / (m - 1)

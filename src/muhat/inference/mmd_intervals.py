"""Intervals for squared MMDs, by scores, and for their differences, by the jackknife, on one Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from muhat._support.types import Array
from muhat.inference.error_bars import check_level, few_rows_carry, quantile_of_unseen, warn_of_few_rows
from muhat.inference.mmd import unbiased_mean_similarities
from muhat.kernels import tiles
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.capabilities import upper_bound
from muhat.kernels.radial import Gaussian
from muhat.linalg.centered_gram import center_gram, mean_off_diagonal, subtract_means
from muhat.linalg.resources import one_blas_thread
from muhat.tables.encoder import encode_samples


@dataclass(frozen=True, eq=False, repr=False)
class MMDInterval:
    """Result of :func:`mmd_interval` and :func:`mmd_difference_interval`.

    Attributes
    ----------
    estimate : float
        The unbiased estimate of the squared MMD, maybe negative; or of the difference of two squared MMDs.
    low, high : float
        The ends of the interval.
    standard_error : float
        That of the estimate, by the jackknife.
    level : float
        The probability with which the truth is inside.
    kernel : Kernel
        The kernel with its bandwidth.
    pvalue : float or None
        Of a difference: small where the first MMD is surely the larger one. None for one MMD, whose test is
        :func:`muhat.mmd_test`.
    """

    estimate: float
    low: float
    high: float
    standard_error: float
    level: float
    kernel: Kernel
    pvalue: float | None = None

    def __repr__(self) -> str:
        found = f"estimate={self.estimate:.4g}, low={self.low:.4g}, high={self.high:.4g}"
        tested = "" if self.pvalue is None else f", pvalue={self.pvalue:.4g}"
        return f"MMDInterval({found}, level={self.level:g}{tested})"


def mmd_interval(X: Any, Y: Any, kernel: Kernel = Gaussian(), level: float = 0.95) -> MMDInterval:
    """An interval for the squared MMD of two distributions.

    The estimate is unbiased: means of k over pairs of different rows. The interval holds the values whose own standard
    deviation of the estimate does not exclude it (a score interval), because the estimate varies more where the MMD is
    larger; with Student's t of the rows of the smaller sample. Whether the distributions are equal,
    :func:`muhat.mmd_test` asks. Where fewer than four rows of a sample carry the error, the interval is wider by what
    rows that the sample lacks could change, as in :func:`mean_bands`; with an unbounded kernel there is a warning
    instead.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), with at least 3 rows
        The two samples, with the same columns. Those of data frames are matched by name.
    kernel : Kernel, default Gaussian()
        A bandwidth "median" is found once, on the pooled sample.
    level : float in (0, 1), default 0.95
        The probability with which the truth is inside.

    Returns
    -------
    MMDInterval
        The estimate may be negative, the ends are not.

    See Also
    --------
    mmd_test : Whether the distributions differ at all.
    mmd_difference_interval : Which of two distributions is nearer to a third.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> mh.mmd_interval(rng.normal(size=(80, 2)), rng.normal(size=(60, 2)) + 1.0)
    MMDInterval(estimate=0.15..., low=0.081..., high=0.27..., level=0.95)
    """
    between = np.array([[0.0, -2.0], [-2.0, 0.0]])
    return replace(_interval({"X": X, "Y": Y}, kernel, (1.0, 1.0), between, level), pvalue=None)


def mmd_difference_interval(X: Any, Y: Any, Z: Any, kernel: Kernel = Gaussian(), level: float = 0.95) -> MMDInterval:
    r"""An interval for :math:`\mathrm{MMD}^2(X, Y) - \mathrm{MMD}^2(X, Z)`: which of Y and Z is nearer to X?

    It is positive where Z is nearer. ``pvalue`` tests that Y is at least as near as Z (the relative test).

    Parameters
    ----------
    X, Y, Z : arrays of shape (n, d), (m, d) and (l, d), with at least 3 rows
        The three samples, with the same columns.
    kernel, level
        See :func:`mmd_interval`.

    Returns
    -------
    MMDInterval
        Estimate, interval and p-value.

    See Also
    --------
    mmd_interval : An interval for one squared MMD.

    References
    ----------
    Bounliphone, Belilovsky, Blaschko, Antonoglou, Gretton (2016). A test of relative similarity for model selection
    in generative models. ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> X, Y, Z = (rng.normal(size=(80, 2)) + shift for shift in (0.0, 1.0, 0.2))
    >>> mh.mmd_difference_interval(X, Y, Z)
    MMDInterval(estimate=0.144..., low=0.065..., high=0.22..., level=0.95, pvalue=0.000...)
    """
    between = np.array([[0.0, -2.0, 2.0], [-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    return _interval({"X": X, "Y": Y, "Z": Z}, kernel, (0.0, 1.0, -1.0), between, level)


@one_blas_thread()
def _interval(
    samples: dict[str, Any], kernel: Kernel, within: tuple[float, ...], between: Array, level: float
) -> MMDInterval:
    """The interval of Σ_g within_g·U_g + Σ_{g<h} between_gh·C_gh, U and C the means of k in and between samples."""
    encoded = encode_samples(samples, min_rows=3)
    check_kernel("kernel", kernel)
    level, kernel = check_level(level), kernel.resolve(encoded.pooled)
    groups = [slice(start, stop) for start, stop in pairwise(np.cumsum([0, *encoded.sizes]))]
    contrast = _Contrast(tiles.dense(kernel, encoded.pooled), groups, within, between)
    estimate, error, left_out = contrast.jackknife()
    freedom = min(encoded.sizes) - 1
    quantile = float(student.ppf(0.5 + 0.5 * level, freedom))
    if min(within) > 0:
        low, high = contrast.score_ends(estimate, quantile)
    else:
        low, high = estimate - quantile * error, estimate + quantile * error
    below, above = contrast.reach_of_unseen_rows(left_out, kernel, level)
    if below or above:
        bound = 2.0 * upper_bound(kernel)
        low = max(estimate - np.hypot(estimate - low, below), min(low, -bound if min(within) < 0 else 0.0))
        high = min(estimate + np.hypot(high - estimate, above), max(high, bound))
    spread = float(np.hypot(error, (below if estimate > 0 else above) / quantile))
    pvalue = float(student.sf(estimate / spread, freedom)) if spread > 0 else float(estimate <= 0)
    return MMDInterval(estimate, float(low), float(high), error, level, kernel, pvalue)


class _Contrast(NamedTuple):
    """The estimate Σ_g within_g·U_g + Σ_{g<h} between_gh·C_gh from the Gram matrix K of all rows, in groups."""

    K: Array
    groups: list[slice]
    within: tuple[float, ...]
    between: Array

    def jackknife(self) -> tuple[float, float, list[Array]]:
        """The estimate, its standard error from leaving out each row of each sample, and the estimates without each."""
        K, within, between = self.K, self.within, self.between
        means = unbiased_mean_similarities(K, self.groups)
        estimate = float(np.diag(means) @ within + 0.5 * (between * means).sum())
        sums = np.stack([K[:, group].sum(axis=1) for group in self.groups], axis=1)
        variance, without = 0.0, []
        for g, group in enumerate(self.groups):
            n = group.stop - group.start
            own = sums[group, g] - np.diag(K)[group]  # a row with all other rows of its sample
            left_out = within[g] * (own.sum() - 2.0 * own) / ((n - 1) * (n - 2))
            for h, other in enumerate(self.groups):
                if h != g:
                    cross = sums[group, h] / (other.stop - other.start)
                    left_out += between[g, h] * (cross.sum() - cross) / (n - 1)
            variance += (n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()
            without.append(left_out)
        return estimate, float(np.sqrt(variance)), without

    def score_ends(self, estimate: float, quantile: float) -> tuple[float, float]:
        """The ends of the score interval of one squared MMD: all θ ≥ 0 with (U − θ)² ≤ q² Var(U | θ).

        With S = Σ_X/n + Σ_Y/m, the covariance of the difference of the two means, the variance at θ is c₀ + c₁θ:
        c₀ = 2 tr S² that of equal distributions, and c₁θ = 4⟨δ, Sδ⟩ that of the witness δ, with the ratio
        c₁ = 4⟨δ, Sδ⟩/‖δ‖² of the estimated one. The ends are the roots of a quadratic.
        """
        unit = max(float(np.abs(self.K).max()), 1e-300)  # squares of K stay finite
        (x, y), K = self.groups, self.K / unit
        n, m = x.stop - x.start, y.stop - y.start
        witness = K[:, x].mean(axis=1) - K[:, y].mean(axis=1)
        squared = float(witness[x].mean() - witness[y].mean())  # ‖δ‖²
        along = float(np.var(witness[x], ddof=1)) / n + float(np.var(witness[y], ddof=1)) / m
        within_x, within_y = center_gram(K[x, x].copy()), center_gram(K[y, y].copy())
        rows, columns = K[x, y].mean(axis=1), K[x, y].mean(axis=0)
        between = subtract_means(K[x, y].copy(), rows, columns, float(rows.mean()))
        # Pairs of different rows: those of a row and itself are the fourth moment.
        own = [mean_off_diagonal(np.square(C)) * k / (k - 2.0) / k**2 for C, k in ((within_x, n), (within_y, m))]
        both = float(np.square(between).sum()) / ((n - 1.0) * (m - 1.0)) / (n * m)
        fixed = 2.0 * quantile**2 * (sum(own) + 2.0 * both)
        slope = 4.0 * quantile**2 * along / squared if squared > 0 else 0.0
        start = max(estimate / unit, 0.0)
        half = float(np.sqrt(fixed + slope * start + slope**2 / 4.0))
        return unit * max(start + slope / 2.0 - half, 0.0), unit * (start + slope / 2.0 + half)

    def reach_of_unseen_rows(self, left_out: list[Array], kernel: Kernel, level: float) -> tuple[float, float]:
        """How far an interval reaches below and above for rows that a sample lacks, where few rows carry the error.

        The first derivative of the estimate by the share of a row x in sample g, 2·within_g·μ_g(x) +
        Σ_h between_gh·μ_h(x), is known at all rows, and 0 far away from them. Its spread vanishes for equal samples,
        where the second derivative counts: a share ε far away changes MMD² by up to 2·ε²·sup k.
        """
        bound, rounding = upper_bound(kernel), 1e-12 * float(np.abs(self.K).max())
        few = [bool(few_rows_carry(values - values.mean(), rounding, bound)) for values in left_out]
        if any(few) and not np.isfinite(bound):
            warn_of_few_rows("the interval", kernel)
            return 0.0, 0.0
        means = np.stack([self.K[:, group].mean(axis=1) for group in self.groups], axis=1)
        squares = np.zeros(2)
        for g, group in enumerate(self.groups):
            if few[g]:
                reach = quantile_of_unseen(group.stop - group.start, level)
                slopes = np.append(2.0 * self.within[g] * means[:, g] + means @ self.between[g], 0.0)
                own = slopes[group].mean()
                first = reach * np.array([own - slopes.min(), slopes.max() - own])
                second = 2.0 * bound * reach**2 * np.maximum([-self.within[g], self.within[g]], 0.0)
                squares += first**2 + second**2
        below, above = np.sqrt(squares)
        return float(below), float(above)

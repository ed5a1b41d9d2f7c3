"""Sample blended with a fitted Gaussian, for expectations, probabilities and quantiles from few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_flag, check_rng, check_rows, unchanged_on_error
from muhat.kernels import tiles
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.capabilities import gaussian_bandwidth, is_stationary
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.centered_gram import mean_off_diagonal
from muhat.linalg.resources import check_memory, steady_blas
from muhat.means.targets import LooTarget, TargetKind, gaussian_kind, gaussian_target, sampled_target
from muhat.rkhs.oas_gaussian import FittedGaussian, varying_columns
from muhat.tables.frames import FrameType
from muhat.tables.scales import ColumnScales

MAX_COLUMNS_FOR_COVARIANCE = 300
"""Up to this many columns the Gaussian has a covariance matrix; beyond, a sample of it stands for it in the kernel."""

POINTS = 4096
"""Points of the Gaussian, with their mirror images, that an expectation is computed from."""

BLOCK_VALUES = 2**22
"""Numbers of Gaussian points that are in memory at a time: 32 MB."""

BISECTIONS = 60
"""Halvings of an interval, after which it is as short as rounding: 2⁻⁶⁰."""

FARTHEST = 40.0
"""No point of the Gaussian lies farther from its centre, in standard deviations of a column of the rows."""

DISCRETE = 0.7
"""A column with fewer different values than this share of the rows is discrete."""

CAUTION = 0.5
"""Variance of the sample's answer over the squared distance of the two answers, times this, bounds the share."""

LEVELS = np.linspace(0.1, 0.9, 9)
"""Levels at which the distribution functions of a column are compared."""


@dataclass(frozen=True, eq=False)
class Blend:
    """A sample, the Gaussian fitted to it, and the share of the Gaussian."""

    rows: Array
    scales: ColumnScales
    gaussian: FittedGaussian  # of the scaled rows
    share: float
    discrete: NDArray[np.bool_]  # columns that keep the values of the sample
    seed: int  # of the points of the Gaussian

    def smooth(self, Z: Array) -> Array:
        """Points of the Gaussian, of standard normal ones; discrete columns take values of the sample by their rank."""
        scaled = self.gaussian.at(Z)
        points = self.scales.restore(scaled)
        deviations, n = self.gaussian.deviations(), len(self.rows)
        for j in np.flatnonzero(self.discrete & (deviations > 0)):
            ranks = ndtr((scaled[:, j] - self.gaussian.centre[j]) / deviations[j])
            points[:, j] = np.sort(self.rows[:, j])[np.minimum((ranks * n).astype(int), n - 1)]
        return points

    def points(self) -> Iterator[Array]:
        """Points of the Gaussian, the same for all functions, with their mirror images; a block at a time."""
        rng, d = np.random.default_rng(self.seed), self.rows.shape[1]
        block = int(np.clip(BLOCK_VALUES // d, 1, POINTS) // 2) or 1
        for part in blocks(POINTS // 2, block):
            half = rng.normal(size=(part.stop - part.start, d))
            yield self.smooth(np.concatenate([half, -half]))

    def expectation(self, values_of: Callable[[Array], Array]) -> Any:
        """The expectation of a function, with a share of the Gaussian that its two answers allow."""
        own = values_of(self.rows)
        answer = own.mean(axis=0)
        if self.share > 0:
            smooth = np.concatenate([values_of(points) for points in self.points()])
            other = smooth.mean(axis=0)
            variance = ((1.0 - self.share) * own.var(axis=0) + self.share * smooth.var(axis=0)) / len(own)
            share = allowed_share(self.share, answer - other, variance)
            answer = (1.0 - share) * answer + share * other
        return float(answer) if np.ndim(answer) == 0 else answer

    def quantiles(self, levels: Array) -> Array:
        """Quantiles of the columns, of shape (levels, d)."""
        deviations = self.scales.scale * self.gaussian.deviations()
        centres = self.scales.restore(self.gaussian.centre)
        shares = np.where(self.discrete, 0.0, self.share)
        columns = zip(np.sort(self.rows, axis=0).T, centres, deviations, shares, strict=True)
        return np.array([_blended_quantiles(*column, levels) for column in columns]).T


def fit_blend(rows: Array, scales: ColumnScales, kernel: Kernel, discrete: NDArray[np.bool_], seed: int) -> Blend:
    """Fit the Gaussian to rows, and choose its share in a kernel for scaled rows."""
    scaled = scales.divide(rows)
    varies = varying_columns(scaled)
    gaussian = FittedGaussian.of(scaled, max(int(varies.sum()), 1), varies)
    return Blend(rows, scales, gaussian, blending_share(kernel, scaled), discrete, seed)


def allowed_share(share: float, difference: Any, variance: Any) -> Any:
    r"""The share of the Gaussian for one answer: at most :math:`v/(2 (p - g)^2)` for the answers p and g of the parts.

    Where the sample's answer p, with variance v, and the Gaussian's answer g differ by more than chance explains, the
    Gaussian is wrong about this function, whatever it is right about on average.
    """
    squares = np.square(difference)
    bound = np.divide(CAUTION * variance, squares, out=np.ones_like(squares), where=squares > 0)
    return share * np.minimum(bound, 1.0)


def discrete_columns(rows: Array) -> NDArray[np.bool_]:
    """Columns with many ties."""
    return np.array([len(np.unique(column)) < DISCRETE * len(column) for column in rows.T])


class BlendedSample(ValueParametersMixin, BaseEstimator):
    r"""Sample blended with a fitted Gaussian, for expectations, probabilities and quantiles from ten to a hundred rows.

    The measure is :math:`(1 - b) \cdot \text{sample} + b \cdot N(\bar x, \Sigma)`, Σ the OAS covariance of the rows. It
    has positive weights that sum to one, so it is a distribution, which can be sampled. Columns are standardised
    inside, so their units do not matter, and all answers are in the units of the rows. The share b minimises the
    estimated risk of the kernel mean of the measure (see :class:`AdaptiveKernelMean`, with λ = 0 and a + b = 1):

    .. math:: b = \frac{Q - X - p + t}{Q - 2X + T}, \quad \text{clipped to } [0, 1],

    with Q and T the squared norms of the mean of the sample and of the Gaussian, X their inner product, and p and t the
    mean values of both at a row that was left out of them.

    That share holds for the distribution as a whole, and for ``sample``. An answer about one event, function or
    quantile takes at most the share :math:`v/(2(p - g)^2)`, with p and g the answers of the sample and of the Gaussian
    and v the variance of p: where the two differ by more than chance explains, the Gaussian is wrong about this event,
    and the answer is that of the sample. Discrete columns, those with many ties, keep the values of the sample:
    points of the Gaussian take the value of the same rank, and quantiles are those of the sample.

    It pays for events that depend on many columns together, such as half-spaces and tails, and for up to about a
    hundred rows.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The kernel in which the share is chosen: Gaussian, or another radial one. "median" is that of the rows. A
        bandwidth that you pass counts standard deviations of a column, unless ``scale=False``.
    scale : bool, default True
        Divide each column by its standard deviation before the share is chosen and the Gaussian is fitted. A constant
        column keeps its unit. False compares rows as they are: for columns in one unit whose spreads matter.
    n_resamples : int, default 100
        Resamples of the bootstrap, for error bars.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the bootstrap, and of the points of the Gaussian. None is a fixed seed for the points.

    Attributes
    ----------
    share_ : float
        b: 0 is the sample, 1 the Gaussian; the largest share in an answer.
    location_ : array of shape (d,)
        The mean :math:`\bar x` of both.
    kernel_ : Kernel
        With the bandwidth as a number, for the standardised columns.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the rows have column names.

    See Also
    --------
    AdaptiveKernelMean : The kernel mean that the share comes from.
    mean_error : Error bars of a kernel mean.

    Notes
    -----
    O(n²·min(n, d)) time for n rows in d columns up to 300, n times as much beyond, and n x n numbers. With more than
    300 columns there is no d x d array.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> blended = mh.BlendedSample(random_state=0).fit(X)
    >>> far = lambda rows: rows.sum(axis=1) > 3  # of probability 0.042
    >>> round(float(far(X).mean()), 2), round(blended.probability(far), 2)
    (0.1, 0.08)
    >>> blended.quantile(0.9).shape, blended.sample(5, random_state=0).shape
    ((3,), (5, 3))

    Events of a data frame get data frames:

    >>> import pandas as pd
    >>> people = pd.DataFrame(X[:, :2] * [9000, 8] + [50_000, 40], columns=["salary", "age"])
    >>> mh.BlendedSample().fit(people).probability(lambda rows: rows["age"] < 20) < 0.05
    True
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        *,
        scale: bool = True,
        n_resamples: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.scale = scale
        self.n_resamples = n_resamples
        self.random_state = random_state

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the Gaussian to two rows or more, and choose its share."""
        check_kernel("kernel", self.kernel)
        check_count("n_resamples", self.n_resamples, low=2)
        scale, rows = check_flag("scale", self.scale), check_rows(X, estimator=self, min_rows=2)
        check_memory(5 * 8 * len(rows) ** 2, None, f"{len(rows):,} rows", "use fewer rows: the sample itself will do")
        self._frame = FrameType.of(X)
        units = ColumnScales.of(rows) if scale else ColumnScales.none(rows.shape[1])
        if (np.abs(units.centre) / FARTHEST + units.scale > np.finfo(np.float64).max / FARTHEST).any():
            raise ValueError(f"X has values up to {np.abs(rows).max():.3g}, whose sums overflow; rescale it first")
        seed = self.random_state if isinstance(self.random_state, int) else 0
        with steady_blas(len(rows)):
            self.kernel_ = self.kernel.resolve(units.divide(rows))
            self._blend = fit_blend(rows, units, self.kernel_, discrete_columns(rows), seed)
        self.share_, self.location_ = self._blend.share, units.restore(self._blend.gaussian.centre)
        return self

    def expect(self, f: Callable[[Array], Any], *, return_std: bool = False) -> Any:
        """Compute the expectation of a function of a row, with ``return_std`` also its bootstrap standard error.

        The function maps rows (k, d) to values (k,) or (k, q); the rows are a data frame if ``fit`` got one.
        """
        _check_function("f", f, "lambda rows: rows.max(axis=1)")
        check_is_fitted(self, "share_")
        return self._with_error(lambda blend: blend.expectation(lambda rows: _values(f, rows, self._frame)), return_std)

    def probability(self, event: Callable[[Array], Any], *, return_std: bool = False) -> Any:
        """Compute the probability of an event, with ``return_std`` also its bootstrap standard error.

        The event maps rows (k, d) to True or False for each; the rows are a data frame if ``fit`` got one.
        """
        _check_function("event", event, 'lambda rows: rows["age"] > 60')
        return self.expect(lambda rows: _indicator(event, rows), return_std=return_std)

    def quantile(self, q: Any, *, return_std: bool = False) -> Any:
        """Estimate quantiles of each column, with ``return_std`` also their bootstrap standard errors.

        An array of q gives an array of shape (n_quantiles, d). At the share 0 they are those of ``numpy.quantile``.
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(
                f"q={q!r} must lie between 0 and 1, or be a list of such numbers; a Gaussian has no smallest and no "
                f"largest value, so pass for example 0.01"
            )
        return self._with_error(
            lambda blend: blend.quantiles(np.atleast_1d(levels))[() if levels.ndim else 0], return_std
        )

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Any:
        """Draw rows of the measure, as a data frame if ``fit`` got one."""
        check_is_fitted(self, "share_")
        rng, count = check_rng(random_state), check_count("n_samples", n_samples)
        rows = self._blend.rows
        drawn = rows[rng.integers(len(rows), size=count)]
        smooth = np.flatnonzero(rng.random(count) < self.share_)
        drawn[smooth] = self._blend.smooth(rng.normal(size=(len(smooth), self.n_features_in_)))
        return self._frame.made_of(drawn)

    def _with_error(self, statistic: Callable[[Blend], Any], return_std: bool) -> Any:
        check_is_fitted(self, "share_")
        blend = self._blend
        value = statistic(blend)
        if not return_std:
            return value
        rng, n = check_rng(self.random_state), len(blend.rows)
        resampled = (blend.rows[rng.integers(n, size=n)] for _ in range(self.n_resamples))
        refitted = (fit_blend(rows, blend.scales, self.kernel_, blend.discrete, blend.seed) for rows in resampled)
        std = np.std([statistic(each) for each in refitted], axis=0, ddof=1)
        return value, float(std) if np.ndim(std) == 0 else std


def _indicator(event: Callable[[Array], Any], rows: Array) -> Array:
    inside = np.asarray(event(rows))
    if inside.dtype != bool or inside.shape != (len(rows),):
        raise ValueError(
            f"event must return True or False for each of {len(rows)} rows, and gave {inside.dtype} of shape "
            f"{inside.shape}; pass for example lambda rows: rows[:, 0] > 1"
        )
    return inside.astype(np.float64)


def _values(f: Callable[[Any], Any], rows: Array, frame: FrameType) -> Array:
    given = frame.made_of(rows)
    try:
        found = f(given)
    except Exception as error:
        error.add_note(f"The function gets {frame.described(rows)}, as fit did.")
        raise
    values = np.asarray(found, dtype=np.float64)
    if values.ndim == 0 or len(values) != len(rows):
        raise ValueError(
            f"f must return a value for each of {len(rows)} rows, and gave shape {values.shape}; pass a function of "
            f"rows such as lambda rows: rows.max(axis=1)"
        )
    if not np.isfinite(values).all():
        wrong = int((~np.isfinite(values)).reshape(len(values), -1).any(axis=1).sum())
        raise ValueError(
            f"f gave NaN or an infinite value for {wrong} of {len(rows)} rows, so that it has no expectation; the "
            f"rows include draws of the fitted Gaussian, on which f must be defined too"
        )
    return values


def _check_function(name: str, function: Any, example: str) -> None:
    if not callable(function):
        raise ValueError(f"{name}={function!r} must be a function of rows; pass for example {example}")


def _blended_quantiles(column: Array, centre: float, deviation: float, share: float, levels: Array) -> Array:
    """Where the blend of the two distribution functions reaches the levels; ``column`` is sorted."""
    heights = np.linspace(0.0, 1.0, len(column))
    own = np.interp(levels, heights, column)
    if share == 0 or deviation == 0:
        return own
    smooth = centre + deviation * ndtri(levels)
    share = quantile_share(share, column, centre, deviation)
    low, high = np.minimum(own, smooth), np.maximum(own, smooth)
    for _ in range(BISECTIONS):  # the blend reaches a level between the places where its parts do
        middle = 0.5 * (low + high)
        below = (1.0 - share) * np.interp(middle, column, heights) + share * ndtr((middle - centre) / deviation)
        low, high = np.where(below < levels, middle, low), np.where(below < levels, high, middle)
    return np.asarray(0.5 * (low + high))


def quantile_share(share: float, column: Array, centre: float, deviation: float) -> float:
    """The share of the Gaussian for the quantiles of a column: one for all levels, so that quantiles grow with them."""
    # The levels that the sample reaches where the Gaussian reaches those of the grid, with their binomial variance.
    reached = np.interp(centre + deviation * ndtri(LEVELS), column, np.linspace(0.0, 1.0, len(column)))
    distance = float(np.sqrt(np.square(reached - LEVELS).mean()))
    return float(allowed_share(share, distance, float((LEVELS * (1.0 - LEVELS)).mean()) / len(column)))


def blending_share(kernel: Kernel, rows: Array) -> float:
    """The share b of the Gaussian that minimises the estimated risk of the blend's kernel mean."""
    n, varies = len(rows), varying_columns(rows)
    if not varies.any():
        return 0.0  # one point: both parts are the same
    if is_stationary(kernel):  # it does not see the others
        rows = rows[:, varies]
    target = _loo_target(kernel, rows)
    K = tiles.dense(kernel, rows)
    Q, p = float(K.sum()) / n**2, mean_off_diagonal(K)
    T, X = target.squared_norm, float(target.at_rows.mean())
    t = float(target.own.mean())
    apart = Q - 2.0 * X + T
    return float(np.clip((Q - X - p + t) / apart, 0.0, 1.0)) if apart > 0 else 0.0


def _loo_target(kernel: Kernel, rows: Array) -> LooTarget:
    kind = gaussian_kind(kernel, rows)
    if kind not in (TargetKind.GAUSSIAN, TargetKind.SAMPLE):
        raise ValueError(
            f"kernel={kernel!r} cannot compare these rows with a Gaussian ({kind.value.removeprefix('none: ')}); use "
            f"Gaussian(), and rescale rows that are very large or very small"
        )
    narrow = rows.shape[1] <= MAX_COLUMNS_FOR_COVARIANCE or gaussian_bandwidth(kernel) is not None
    exact = kind is TargetKind.GAUSSIAN and narrow
    return (gaussian_target if exact else sampled_target)(kernel, rows)

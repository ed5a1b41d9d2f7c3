"""FitSample blended with a fitted Gaussian, for expectations, probabilities and quantiles from few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat.gaussian import FittedGaussian, varying_columns
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.capabilities import is_stationary
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.linalg.blocks import blocks
from muhat.linalg.gram import gaussian_bandwidth
from muhat.linalg.resources import check_memory, steady_blas
from muhat.means.targets import LooTarget, TargetKind, gaussian_kind, gaussian_target, sampled_target
from muhat.parameters import ValueParametersMixin
from muhat.tables.frames import FrameType
from muhat.tables.scales import ColumnScales
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_flag, check_rng, check_rows, unchanged_on_error

MAX_COLUMNS_FOR_COVARIANCE = 300
"""Up to this many columns the Gaussian has a covariance matrix; beyond, a sample of it stands for it in the kernel."""


POINTS = 4096
"""Points of the Gaussian, with their mirror images, that an expectation is computed from."""


BLOCK_VALUES = 2**22
"""Numbers of Gaussian points that are in memory at a time: 32 MB."""


BISECTIONS = 60


FARTHEST = 40.0
"""No point of the Gaussian lies farther from its centre, in standard deviations of a column of the rows."""


class BlendedSample(ValueParametersMixin, BaseEstimator):
    r"""Expectations, probabilities and quantiles from ten to a hundred rows, with less error than the sample's own.

    The measure :math:`(1 - b) \cdot \text{sample} + b \cdot N(\bar x, \Sigma)`, Σ the OAS covariance of the rows. It
    has positive weights that sum to one, so it is a distribution, which can be sampled. Columns are standardised
    inside, so their units do not matter, and all answers are in the units of the rows. The share b minimises the
    estimated risk of the kernel mean of the measure (see :class:`AdaptiveKernelMean`, with λ = 0 and a + b = 1):

    .. math:: b = \frac{Q - X - p + t}{Q - 2X + T}, \quad \text{clipped to } [0, 1],

    with Q and T the squared norms of the mean of the sample and of the Gaussian, X their inner product, and p and t the
    mean values of both at a row that was left out of them.

    It pays for events that depend on many columns together, such as half-spaces and tails, and for up to about a
    hundred rows. It loses for joint events of columns that take few values, which no Gaussian resembles.

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
        b: 0 is the sample, 1 the Gaussian.
    location_ : array of shape (d,)
        The mean :math:`\bar x` of both.
    kernel_ : Kernel
        With the bandwidth as a number, for the standardised columns.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the rows have column names.

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
    (0.1, 0.04)
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
        """Fit the Gaussian, and choose its share.

        Parameters
        ----------
        X : array of shape (n, d)
            Two rows or more.
        y : ignored

        Returns
        -------
        self
        """
        check_kernel("kernel", self.kernel)
        check_count("n_resamples", self.n_resamples, low=2)
        scale, rows = check_flag("scale", self.scale), check_rows(X, estimator=self, min_rows=2)
        check_memory(5 * 8 * len(rows) ** 2, None, f"{len(rows):,} rows", "use fewer rows: the sample itself will do")
        self._frame = FrameType.of(X)
        units = ColumnScales.of(rows) if scale else ColumnScales.none(rows.shape[1])
        if (np.abs(units.centre) / FARTHEST + units.scale > np.finfo(np.float64).max / FARTHEST).any():
            raise ValueError(f"X has values up to {np.abs(rows).max():.3g}, whose sums overflow; rescale it first")
        with steady_blas(len(rows)):
            self._fit_rows(rows, units, self.kernel.resolve(units.divide(rows)))
        return self

    def _fit_rows(self, rows: Array, units: ColumnScales, kernel: Kernel) -> None:
        scaled = units.divide(rows)
        self.share_, self.kernel_ = blending_share(kernel, scaled), kernel
        varies = varying_columns(scaled)
        self._rows, self._units = rows, units
        self._gaussian = FittedGaussian.of(scaled, max(int(varies.sum()), 1), varies)
        self.location_ = units.restore(self._gaussian.centre)

    def expect(self, f: Callable[[Array], Any], *, return_std: bool = False) -> Any:
        """The expectation of a function of a row.

        Parameters
        ----------
        f : callable
            Maps rows (k, d) to values (k,) or (k, q). The rows come as a data frame if ``fit`` got one.
        return_std : bool, default False
            Whether to return the standard error of the estimate too, by the bootstrap.

        Returns
        -------
        value : float or array of shape (q,)
        std : float or array of shape (q,)
            With ``return_std``.
        """
        _check_function("f", f, "lambda rows: rows.max(axis=1)")
        return self._with_error(lambda fitted: fitted._expectation(f), return_std)

    def probability(self, event: Callable[[Array], Any], *, return_std: bool = False) -> Any:
        """The probability of an event.

        Parameters
        ----------
        event : callable
            Maps rows (k, d) to True or False for each. The rows come as a data frame if ``fit`` got one.
        return_std : bool, default False
            Whether to return the standard error too, by the bootstrap.

        Returns
        -------
        probability : float
        std : float
            With ``return_std``.
        """
        _check_function("event", event, 'lambda rows: rows["age"] > 60')
        return self.expect(lambda rows: _indicator(event, rows), return_std=return_std)

    def quantile(self, q: Any, *, return_std: bool = False) -> Any:
        """Quantiles of each column.

        Parameters
        ----------
        q : float in (0, 1) or array of those
        return_std : bool, default False
            Whether to return the standard errors too, by the bootstrap.

        Returns
        -------
        quantiles : array of shape (d,), or (n_quantiles, d) for an array
            At the share 0 those of ``numpy.quantile``.
        std : array of the same shape
            With ``return_std``.
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(
                f"q={q!r} must lie between 0 and 1, or be a list of such numbers; a Gaussian has no smallest and no "
                f"largest value, so pass for example 0.01"
            )
        return self._with_error(
            lambda fitted: fitted._quantiles(np.atleast_1d(levels))[() if levels.ndim else 0], return_std
        )

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Any:
        """Draw rows of the measure.

        Parameters
        ----------
        n_samples : int, default 1
        random_state : None, int, Generator, SeedSequence or RandomState

        Returns
        -------
        array of shape (n_samples, d), or a data frame if ``fit`` got one
        """
        check_is_fitted(self, "share_")
        rng, count = check_rng(random_state), check_count("n_samples", n_samples)
        drawn = self._rows[rng.integers(len(self._rows), size=count)]
        smooth = np.flatnonzero(rng.random(count) < self.share_)
        drawn[smooth] = self._units.restore(self._gaussian.at(rng.normal(size=(len(smooth), self.n_features_in_))))
        return self._frame.made_of(drawn)

    def _with_error(self, statistic: Callable[[BlendedSample], Any], return_std: bool) -> Any:
        check_is_fitted(self, "share_")
        value = statistic(self)
        if not return_std:
            return value
        rng, n = check_rng(self.random_state), len(self._rows)
        values = []
        for _ in range(self.n_resamples):
            resampled = BlendedSample(self.kernel_, random_state=self.random_state)
            resampled._frame = self._frame
            resampled._fit_rows(self._rows[rng.integers(n, size=n)], self._units, self.kernel_)
            values.append(statistic(resampled))
        std = np.std(values, axis=0, ddof=1)
        return value, float(std) if np.ndim(std) == 0 else std

    def _expectation(self, f: Callable[[Array], Any]) -> Any:
        value = _mean_value(f, self._rows, self._frame)
        if self.share_ > 0:
            parts = [(len(points), _mean_value(f, points, self._frame)) for points in self._gaussian_points()]
            smooth = sum(count * part for count, part in parts) / sum(count for count, _ in parts)
            value = (1.0 - self.share_) * value + self.share_ * smooth
        return float(value) if np.ndim(value) == 0 else value

    def _gaussian_points(self) -> Iterator[Array]:
        """Points of the Gaussian, the same for all functions, with their mirror images; a block at a time."""
        seed = 0 if self.random_state is None or not isinstance(self.random_state, int) else self.random_state
        rng, d = np.random.default_rng(seed), len(self.location_)
        block = int(np.clip(BLOCK_VALUES // d, 1, POINTS) // 2) or 1
        for part in blocks(POINTS // 2, block):
            half = rng.normal(size=(part.stop - part.start, d))
            yield self._units.restore(self._gaussian.at(np.concatenate([half, -half])))

    def _quantiles(self, levels: Array) -> Array:
        columns, deviations = np.sort(self._rows, axis=0).T, self._units.scale * self._gaussian.deviations()
        parts = [
            _blended_quantiles(column, centre, deviation, self.share_, levels)
            for column, centre, deviation in zip(columns, self.location_, deviations, strict=True)
        ]
        return np.array(parts).T


def _indicator(event: Callable[[Array], Any], rows: Array) -> Array:
    inside = np.asarray(event(rows))
    if inside.dtype != bool or inside.shape != (len(rows),):
        raise ValueError(
            f"event must return True or False for each of {len(rows)} rows, and gave {inside.dtype} of shape "
            f"{inside.shape}; pass for example lambda rows: rows[:, 0] > 1"
        )
    return inside.astype(np.float64)


def _mean_value(f: Callable[[Any], Any], rows: Array, frame: FrameType) -> Any:
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
    return values.mean(axis=0)


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
    if share == 1:
        return smooth
    low, high = np.minimum(own, smooth), np.maximum(own, smooth)
    for _ in range(BISECTIONS):  # the blend reaches a level between the places where its parts do
        middle = 0.5 * (low + high)
        below = (1.0 - share) * np.interp(middle, column, heights) + share * ndtr((middle - centre) / deviation)
        low, high = np.where(below < levels, middle, low), np.where(below < levels, high, middle)
    return 0.5 * (low + high)


def blending_share(kernel: Kernel, rows: Array) -> float:
    """The share b of the Gaussian that minimises the estimated risk of the blend's kernel mean."""
    n, varies = len(rows), varying_columns(rows)
    if not varies.any():
        return 0.0  # one point: both parts are the same
    if is_stationary(kernel):  # it does not see the others
        rows = rows[:, varies]
    target = _loo_target(kernel, rows)
    K = gram.dense(kernel, rows)
    trace, total = float(np.trace(K)), float(K.sum())
    Q, p = total / n**2, (total - trace) / (n * (n - 1))
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

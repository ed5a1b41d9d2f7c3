"""Error bars: how far an estimated mean is from the true one, as an element, as a function, and in MMDs.

Everything reads one Gram matrix: the jackknife through its row sums, the bootstrap through products with counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import t as student

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_number, check_rng, warn_caller
from muhat.inference.bernstein import bernstein_radius
from muhat.kernels import tiles
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import upper_bound
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import BaseKernelMean, fit_of
from muhat.means.nested import mean_element, mean_weights
from muhat.means.simple_shrinkage import KernelMean
from muhat.rkhs.elements import Element, embed
from muhat.rkhs.measures import Atoms

COUNT_BYTES = 2**25
"""Size of a block of bootstrap counts, 32 MB; each column is one resample."""

FEW_ROWS = 4.0
"""Where fewer rows than this carry a variance, values that the sample lacks may matter more than those it has."""

UNSEEN_ROWS = 2.0
"""How many rows with the most extreme value are then added to the variance: without variance, a share of unseen rows of
up to 2.8/n is covered at the level .95, for which the probability to see none of them is .06."""


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceBall:
    """Result of :func:`confidence_ball`: a ball around an estimated mean that holds the true one.

    Attributes
    ----------
    center : Element
        The estimate.
    radius : float
        A distance in the space of the kernel.
    level : float
        The probability with which the true mean is inside.
    method : str
        "bernstein" or "bootstrap".
    """

    center: Element
    radius: float
    level: float
    method: str

    def contains(self, f: Element) -> bool:
        """Whether an element of the space of the centre lies inside the ball or on its boundary."""
        return self.center.distance(f) <= self.radius

    def __repr__(self) -> str:
        return f"ConfidenceBall(radius={self.radius:.4g}, level={self.level:g}, method={self.method!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Bands:
    """Result of :func:`mean_bands`: values of an estimated mean at some points, with an interval for each.

    Attributes
    ----------
    points : array of shape (m, d)
        Where the mean is evaluated.
    values, low, high : arrays of shape (m,)
        Values of the estimate, and the ends of the intervals.
    level : float
        The probability with which the truth is inside, at each point by itself.
    """

    points: Array
    values: Array
    low: Array
    high: Array
    level: float

    def __repr__(self) -> str:
        width = float(np.mean(self.high - self.low))
        return f"Bands(n_points={len(self.values):,}, mean_width={width:.4g}, level={self.level:g})"


# ---------------------------------------------------------------- the sample behind a mean


class _Sample(NamedTuple):
    """Rows with their repetitions, the estimate from them, and the estimator that made it (None: the plain average)."""

    kernel: Kernel
    points: Array
    repetitions: Array
    mean: Element
    estimator: BaseKernelMean | None

    @property
    def n(self) -> float:
        return float(self.repetitions.sum())

    def plain(self) -> Element:
        return Element(self.kernel, Atoms.trusted(self.points, self.repetitions / self.n))

    def copies(self) -> Array:
        """Numbers of the rows, each as often as it repeats."""
        if (self.repetitions != np.rint(self.repetitions)).any():
            raise ValueError("sample_weight must be whole numbers for resampling, which draws whole rows")
        return np.repeat(np.arange(len(self.points)), self.repetitions.astype(int))


def _sample_of(mean: Any) -> _Sample:
    if isinstance(mean, BaseKernelMean):
        fit = fit_of(mean)
        gram: Any = fit.gram
        points, counts = gram.points, gram.counts
        repetitions = np.ones(len(points)) if counts is None else counts
        estimator = None if type(mean) is KernelMean else mean
        return _Sample(mean.kernel_, points, repetitions, mean.mean_, estimator)
    one_sample = isinstance(mean, Element) and len(mean.measures) == 1 and isinstance(mean.measures[0], Atoms)
    if not one_sample or np.ptp(mean.measures[0].weights) > 0 or len(mean.measures[0]) < 2:
        raise ValueError(
            f"mean={mean!r} must be a fitted mean estimator, or the plain average of at least two rows: "
            f"muhat.embed(kernel, X)"
        )
    points = mean.measures[0].points
    return _Sample(mean.kernel, points, np.ones(len(points)), embed(mean.kernel, points), None)


def check_level(level: Any) -> float:
    level = check_number("level", level, low=0, high=1, open_low=True)
    if level == 1.0:
        raise ValueError("level=1 must lie below 1; only the whole space is certain")
    return level


def _squared_error(sample: _Sample) -> float:
    """(ϱ − m)/n, the unbiased estimate of E‖μ̂ − μ‖² of the plain average, as (ϱ − ρ)/(n − 1)."""
    share = sample.repetitions / sample.n
    spread = float(share @ sample.kernel.diagonal(sample.points))
    spread -= tiles.quadratic_form(sample.kernel, sample.points, share)
    return max(spread, 0.0) / (sample.n - 1.0)


@one_blas_thread()
def mean_error(mean: BaseKernelMean | Element) -> float:
    r"""Root mean squared error of the plain average, :math:`\sqrt{\Delta}` with :math:`\Delta = (\varrho - m)/n`.

    Δ is an unbiased estimate of :math:`E\|\hat\mu - \mu\|^2`: ϱ is the mean of k(x, x), m that of k(x, x') over pairs.
    It needs O(n²) time and no n × n memory.

    Parameters
    ----------
    mean : fitted mean estimator, or Element
        The error is that of the plain average of its rows, whatever the estimator; ``muhat.embed(kernel, X)`` will do.

    Returns
    -------
    float
        The estimated error.

    See Also
    --------
    confidence_ball : A ball that holds the true mean.
    mean_bands : Intervals for the values of the mean.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.paper_mixture(5, random_state=0)
    >>> mean = mh.KernelMean(mh.Gaussian(20.0)).fit(P.sample(50, random_state=0))
    >>> round(mh.mean_error(mean), 3), round(mean.mean_.distance(mh.embed(mean.kernel_, P)), 3)
    (0.085, 0.113)
    """
    return float(np.sqrt(_squared_error(_sample_of(mean))))


# ---------------------------------------------------------------- balls


@one_blas_thread()
def confidence_ball(
    mean: BaseKernelMean | Element,
    level: float = 0.95,
    method: Literal["auto", "bernstein", "bootstrap"] = "auto",
    *,
    bound: float | None = None,
    n_resamples: int = 999,
    random_state: RandomState = None,
) -> ConfidenceBall:
    r"""A ball around an estimated mean that holds the true one.

    "bernstein" holds at every n for rows drawn independently and a kernel fixed beforehand. With
    :math:`L = \log(4/\delta)` and δ = 1 − ``level``, D a bound of :math:`\|\phi(x) - \phi(x')\|`, and V = ϱ − m the
    variance in the sample,

    .. math:: \|\hat\mu - \mu\| \le \frac{DL}{3n} + \sqrt{\frac{D^2L^2}{9n^2} + \frac{2\sigma_+^2L}{n}}, \qquad
              \sigma_+ = \sqrt{V + \frac{D^2 \log(2/\delta)}n} + D\sqrt{\frac{\log(2/\delta)}n}.

    It is never larger than D. "bootstrap" takes the quantile of the distance between the average and its resamples,
    times :math:`\sqrt{n/(n-1)}`: close to the level for large n, and too small for few rows or heavy tails.

    Parameters
    ----------
    mean : fitted mean estimator, or Element ``muhat.embed(kernel, X)``
        The ball is found about the plain average. About another estimate it is wider by the distance of the two, which
        keeps the level, but gives nothing for the better estimate.
    level : float in (0, 1), default 0.95
        The probability with which the truth is inside.
    method : "auto", "bernstein" or "bootstrap", default "auto"
        "auto" is "bernstein" where k(x, x) is known to be bounded, else "bootstrap".
    bound : float, optional
        A number that k(x, x) never exceeds, for kernels of which the library does not know it.
    n_resamples : int, default 999
        Number of resamples of the rows, for method "bootstrap".
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.

    Returns
    -------
    ConfidenceBall
        Centre and radius.

    See Also
    --------
    mean_error : The typical distance, one number.
    mean_bands : Intervals for the values of the mean.

    References
    ----------
    Pinelis (1994). Optimum bounds for the distributions of martingales in Banach spaces. Annals of Probability 22.
    Maurer, Pontil (2009). Empirical Bernstein bounds and sample variance penalization. COLT.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.paper_mixture(5, random_state=0)
    >>> kernel = mh.Gaussian(20.0)
    >>> ball = mh.confidence_ball(mh.embed(kernel, P.sample(200, random_state=0)))
    >>> ball
    ConfidenceBall(radius=0.185..., level=0.95, method='bernstein')
    >>> ball.contains(mh.embed(kernel, P))
    True
    """
    level, sample = check_level(level), _sample_of(mean)
    # An upper bound of ‖φ(x) − φ(x')‖²: 2 sup k for kernels without negative values, 4 sup k for others.
    known = bound is not None
    diameter = 4.0 * check_number("bound", bound, low=0, open_low=True) if known else 2.0 * upper_bound(sample.kernel)
    if method not in ("auto", "bernstein", "bootstrap"):
        raise ValueError(f'method={method!r} must be "auto", "bernstein" or "bootstrap"')
    if bound is not None and method == "bootstrap":
        raise ValueError(f'bound={bound!r} is of method="bernstein"; leave it out with method="bootstrap"')
    if method == "auto":
        method = "bernstein" if np.isfinite(diameter) else "bootstrap"
    if method == "bootstrap":
        drawn = check_count("n_resamples", n_resamples), check_rng(random_state)
        radius = _bootstrap_radius(sample, level, *drawn, diameter)
    elif not np.isfinite(diameter):
        raise ValueError(f"method='bernstein' needs a bounded kernel; give {sample.kernel!r} a bound, or resample")
    else:
        radius = bernstein_radius(sample.n, sample.n * _squared_error(sample), diameter, 1.0 - level)
    offset = 0.0 if sample.estimator is None else sample.mean.distance(sample.plain())
    return ConfidenceBall(sample.mean, radius + offset, level, method)


def _bootstrap_radius(
    sample: _Sample, level: float, n_resamples: int, rng: np.random.Generator, diameter: float
) -> float:
    n, share = len(sample.copies()), sample.repetitions / sample.n
    K = tiles.dense(sample.kernel, sample.points)
    draws = []
    for part in blocks(n_resamples, max(1, COUNT_BYTES // (8 * len(share)))):
        W = rng.multinomial(n, share, size=part.stop - part.start).T / n - share[:, None]
        draws.append(np.einsum("ib,ib->b", W, K @ W).clip(0))
    distances = np.sort(np.sqrt(np.concatenate(draws) * n / (n - 1)))
    radius = float(distances[min(int(np.ceil(level * (n_resamples + 1))), n_resamples) - 1])
    products = K @ share
    from_mean = np.sqrt(np.maximum(np.diag(K) - 2.0 * products + share @ products, 0.0))[sample.copies()]
    rounding = 1e-6 * float(np.sqrt(np.diag(K).max()))  # the root of that of squares
    if not few_rows_carry(from_mean, rounding, diameter):
        return radius
    if not np.isfinite(diameter):
        warn_of_few_rows("the radius", sample.kernel)
        return radius
    return float(min(np.hypot(radius, quantile_of_unseen(n, level) * np.sqrt(diameter)), np.sqrt(diameter)))


# ---------------------------------------------------------------- bands


@one_blas_thread()
def mean_bands(mean: BaseKernelMean | Element, X_eval: Any, level: float = 0.95) -> Bands:
    r"""Bands of an estimated mean as a function, at each point by itself.

    The plain mean at x is an average of the n numbers k(xᵢ, x). Its jackknife interval is that of Student's t,

    .. math:: \hat\mu(x) \pm t_{n-1} \, s(x) / \sqrt n,

    s the standard deviation of those numbers. Where fewer than four rows carry s, that is
    :math:`(\sum_i d_i^2)^2 / \sum_i d_i^4 < 4` for the deviations d, the sample may lack a rare value of the rows and s
    may be far too small. With a bounded kernel s² is then that of a sample with two more rows of the most extreme
    value, 0 below and sup k above; with an unbounded kernel there is a warning.

    Another estimator is fitted again without each row, at a fixed kernel: its bands are about the mean of its
    estimates, which shrinkage moves away from μ.

    Parameters
    ----------
    mean : fitted mean estimator, or Element ``muhat.embed(kernel, X)``
        The estimate, with the rows that it came from.
    X_eval : array of shape (m, d)
        Where; for ``kernel="precomputed"`` the kernel values with the training rows, (m, n).
    level : float in (0, 1), default 0.95
        That of each point. All points at once are covered less often.

    Returns
    -------
    Bands
        Values and intervals at the points.

    See Also
    --------
    confidence_ball : A ball that holds the mean as a whole.
    muhat.plotting.FunctionDisplay : Draws the bands along one column, by ``from_bands``.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> mh.mean_bands(mh.KernelMean(mh.Gaussian(1.0)).fit(X), np.linspace(-3, 3, 50)[:, None])
    Bands(n_points=50, mean_width=0.157..., level=0.95)
    """
    level, sample = check_level(level), _sample_of(mean)
    points = sample.kernel.points(X_eval, sample.mean.n_features)
    values = sample.mean.values(points)
    rows = sample.copies()
    V = sample.kernel.evaluate(points, sample.points)[:, rows]
    left_out, n = _left_out_values(sample, rows, points, V), len(rows)
    errors = np.sqrt((n - 1) / n * ((left_out - left_out.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    half = student.ppf(0.5 + 0.5 * level, n - 1) * errors
    low, high = _allowing_for_unseen_rows(sample, values, values - half, values + half, V, level)
    return Bands(points, values, low, high, level)


def _allowing_for_unseen_rows(
    sample: _Sample, values: Array, low: Array, high: Array, V: Array, level: float
) -> tuple[Array, Array]:
    """The bands, wider where few rows carry the variance; a row that was not seen has values in [0, k(x, x)]."""
    bound, deviations = upper_bound(sample.kernel), V - V.mean(axis=1, keepdims=True)
    few = few_rows_carry(deviations, 1e-12 * float(np.abs(V).max()), bound)
    if not np.isfinite(bound):
        if few.any():
            warn_of_few_rows(f"the band at {few.sum():,} of {len(few):,} points", sample.kernel)
        return low, high
    reach = quantile_of_unseen(V.shape[1], level)
    wider_low = values - np.hypot(np.maximum(values - low, 0.0), reach * values)
    wider_high = values + np.hypot(np.maximum(high - values, 0.0), reach * (bound - values))
    return (
        np.where(few, np.maximum(wider_low, np.minimum(low, 0.0)), low),
        np.where(few, np.minimum(wider_high, np.maximum(high, bound)), high),
    )


def _left_out_values(sample: _Sample, rows: Any, points: Array, V: Array) -> Array:
    """Column i holds the values of the estimate without row i."""
    n, estimator = len(rows), sample.estimator
    if estimator is None:
        return (V.sum(axis=1, keepdims=True) - V) / (n - 1)
    others = [np.delete(np.arange(n), i) for i in range(n)]
    if any(isinstance(getattr(estimator, name, None), Element) for name in ("target", "target_")):  # not weights alone
        refitted = (mean_element(estimator, sample.kernel, sample.points[rows[part]]).values(points) for part in others)
    else:
        K = tiles.dense(sample.kernel, sample.points[rows])
        refitted = (V[:, part] @ mean_weights(estimator, K[np.ix_(part, part)]) for part in others)
    return np.stack(list(refitted), axis=1)


# ---------------------------------------------------------------- rows that a sample lacks


def carrying_rows(deviations: Array) -> Array:
    """How many rows carry a variance, (Σd²)² / Σd⁴ along the last axis: n where all d² are equal, 1 for one outlier."""
    squares = (deviations / np.maximum(np.abs(deviations).max(axis=-1, keepdims=True), 1e-300)) ** 2
    return np.asarray(squares.sum(axis=-1) ** 2 / np.maximum((squares**2).sum(axis=-1), 1e-300))


def few_rows_carry(deviations: Array, rounding: float, bound: float) -> Any:
    """Whether few rows carry a variance; or one or none of them, where no bound tells what others could change."""
    fewest = FEW_ROWS if np.isfinite(bound) else 1.5
    return (carrying_rows(deviations) < fewest) | (np.abs(deviations).max(axis=-1) <= rounding)


def quantile_of_unseen(n: float, level: float) -> float:
    """How far, in units of a row's largest deviation, an interval reaches for the sake of rows that were not seen."""
    return float(student.ppf(0.5 + 0.5 * level, n - 1.0) * np.sqrt(UNSEEN_ROWS) / n)


def warn_of_few_rows(what: str, kernel: Kernel) -> None:
    warn_caller(
        f"{what} rests on the deviations of one row or none, and {kernel!r} has no bound by which rows that the sample "
        "lacks could be allowed for; pass more rows, or use a bounded kernel such as muhat.Gaussian()"
    )

"""Robust kernel means: iteratively reweighted rows (Huber, Hampel) and the median of means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_number, check_number_or, check_rng, warn_caller
from muhat.grams import Gram, PairGram
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.distances import power_of_two_near
from muhat.means.base import BaseKernelMean, MeanFit, Scored, check_unweighted, dense_matrix
from muhat.shrinkage.leave_one_out import LooMoments

BLOCK_ROWS = 3
"""Rows of a block of the median of means by default: a sixth of the rows cannot spoil more than half of the blocks."""

AUTO_KNOTS = {"huber": (1.5,), "hampel": (1.5, 2.0, 3.0)}
"""Knots of the losses, in units of the 75 % quantile of the distances to the geometric median."""

_START_STEPS = 100
"""Steps to the geometric median that an iteration starts from: a start need not have converged."""

_SMOOTHING = 1e-2
"""Distances below this share of their median are smoothed, which moves the geometric median by less than that."""

_SLACK, _DIGITS = 1e-9, 10
"""Rounding that comparisons of shares and distances allow for, and the digits by which equal rows are recognised."""


class Loss(NamedTuple):
    """A loss ρ of a residual: quadratic to a, linear to b, flat from c on; Huber's has b = c = ∞."""

    a: float
    b: float = np.inf
    c: float = np.inf

    def factors(self, r: Array) -> Array:
        """ψ(r)/r: 1 to a, a/r to b, then down to 0 at c."""
        factors = self.a / np.maximum(r, self.a)
        return factors if np.isinf(self.c) else factors * np.clip((self.c - r) / (self.c - self.b), 0.0, 1.0)

    def values(self, r: Array) -> Array:
        """ρ(r), with ρ(0) = 0."""
        a, b, c = self
        values = np.where(r <= a, 0.5 * r**2, a * r - 0.5 * a**2)
        if np.isinf(c):
            return values
        over = np.clip(r - b, 0.0, c - b)
        return np.where(r <= b, values, a * b - 0.5 * a**2 + a * (over - 0.5 * over**2 / (c - b)))


class Reweighting(NamedTuple):
    """Result of the iteration: weights that sum to one, residuals, the objective, and whether it converged."""

    weights: Array
    residuals: Array
    objectives: Array
    converged: bool


def residuals(K: Array, weights: Array) -> tuple[Array, Array]:
    """The distances ‖φ(xᵢ) − μ‖ for μ = Σ wⱼφ(xⱼ), and the products Kw."""
    products = K @ weights
    return np.sqrt(np.maximum(np.diag(K) - 2.0 * products + weights @ products, 0.0)), products


def reweight(K: Array, counts: Array, loss: Loss, weights: Array, tol: float, max_iter: int) -> Reweighting:
    r"""Minimise Σ ρ(‖φ(xᵢ) − μ‖) over μ: each step is the mean with weights ∝ ψ(r)/r at the residuals of the last.

    As ψ(r)/r never grows, a quadratic in r above ρ touches it at the last residuals, and the step minimises that: the
    objective never grows. It ends when the mean moves by at most ``tol`` times its root mean squared residual.
    """
    share = counts / counts.sum()
    r, products = residuals(K, weights)
    objectives = [float(share @ loss.values(r))]
    for _ in range(max_iter):
        raw = share * loss.factors(r)
        before, before_products, weights = weights, products, raw / raw.sum()
        r, products = residuals(K, weights)
        objectives.append(float(share @ loss.values(r)))
        step = np.sqrt(max(float((weights - before) @ (products - before_products)), 0.0))
        rounding = _rounding(K) * np.abs(weights - before).sum()
        if step <= max(tol * float(np.sqrt(weights @ r**2)), rounding):
            return Reweighting(weights, r, np.array(objectives), True)
    return Reweighting(weights, r, np.array(objectives), False)


def _rounding(K: Array) -> float:
    """Residuals that rounding alone may leave."""
    return float(np.sqrt(64 * np.finfo(np.float64).eps * np.abs(np.diag(K)).max()))


def geometric_median(K: Array, counts: Array, tol: float, max_iter: int) -> Reweighting:
    """The point with the smallest sum of distances (Weiszfeld's iteration), to a hundredth of the dispersion.

    Distances below a hundredth of their median are smoothed as Huber does. From the average, where the search starts,
    far rows make that median too large, so that it is taken again until it settles.
    """
    weights, a = counts / counts.sum(), np.inf
    r, _ = residuals(K, weights)
    while True:
        before, a = a, max(_SMOOTHING * _quantile(r, counts, 0.5, 0.0), _rounding(K)) or 1.0
        found = reweight(K, counts, Loss(a), weights, tol, max_iter)
        if a > 0.5 * before or a <= _rounding(K):
            return found
        weights, r = found.weights, found.residuals


def _quantile(values: Array, counts: Array, q: float, rounding: float) -> float:
    """The quantile of the values that are more than rounding; 0 where none is."""
    counted = (values > rounding) & (counts > 0)
    if not counted.any():
        return 0.0
    weights = counts[counted]
    unequal = weights if np.ptp(weights) > 0 else None  # numpy sorts for weights, and only selects without
    return float(np.quantile(values[counted], q, weights=unequal, method="inverted_cdf"))


def outlying(K: Array, counts: Array, most: float) -> NDArray[np.bool_]:
    """The rows far from all places where many rows are, provided that they matter and are at most a share of all.

    Two rows are near within the (1 − ``most``)² quantile of the distances of all pairs, as that many are of good rows.
    Rows near a share ``most`` of the rows are the body; a row near less than 2 % of the rows, counted in the body, is
    an outlier. They matter if the mean without them moves by more than √¾ standard errors.
    """
    share, diagonal = counts / counts.sum(), np.diag(K)
    squares = diagonal[:, None] + diagonal - 2.0 * K
    reach = _quantile(squares, np.outer(counts, counts), (1.0 - most) ** 2, _rounding(K) ** 2)
    near = squares <= (1.0 + _SLACK) * reach
    body = near @ share >= most - _SLACK
    found = near @ (share * body) < 0.02 - _SLACK
    if 0.0 < share[found].sum() <= most + _SLACK:
        rest = np.where(found, 0.0, share) / share[~found].sum()
        step, variance = share - rest, rest @ diagonal - rest @ K @ rest
        if counts.sum() * (step @ K @ step) > 0.75 * variance:
            return found
    return np.zeros_like(found)


def weighted_loo_moments(K: Array, weights: Array, counts: Array) -> tuple[float, LooMoments]:
    r"""Weighted averages of k(xᵢ, xᵢ), and of the means without row i: the weights of the others in proportion.

    A row of weight v that leaves has μ⁽ⁱ⁾ = (μ − vφ(xᵢ))/(1 − v); of a row that stands for several, one leaves.
    """
    diagonal, products = np.diag(K), K @ weights
    v = weights / counts
    kept = np.where(v < 1.0 - 1e-12, 1.0 - v, np.inf)  # nothing is left of a mean of one row
    cross = (products - v * diagonal) / kept
    square = (weights @ products - 2.0 * v * products + v**2 * diagonal) / kept**2
    return float(weights @ diagonal), LooMoments(np.asarray(weights @ cross), np.asarray(weights @ square))


RowWeights = Callable[[Array, Array, float], tuple[Array, dict[str, Any]]]
"""A function of K in a unit, counts and the root of the unit: weights that sum to one, and what was chosen."""


def weighted_mean(G: Gram, row_weights: RowWeights, shrinkage: float | Literal["loo"] | None = None) -> MeanFit:
    """Estimate the mean with weights that a function finds from the Gram matrix, and shrink it if asked to."""
    alpha = 0.0 if shrinkage is None else shrinkage
    given = check_number_or("shrinkage", alpha, "loo", low=0, high=1, or_else='None or "loo"')
    repetitions = G.counts if isinstance(G, PairGram) else None
    weighted = repetitions is not None and np.ptp(repetitions) > 0
    K = dense_matrix(G, 12 if weighted else 7)  # the quantile of weighted pairs sorts them, with their weights
    counts = np.ones(len(K)) if repetitions is None else repetitions
    unit = power_of_two_near(float(np.abs(np.diag(K)).max()))
    K = K / unit
    weights, chosen = row_weights(K, counts, float(np.sqrt(unit)))
    size, left_out = weighted_loo_moments(K, weights, counts)
    scale = float(left_out.best_scale()) if given is None else 1.0 - given
    score = unit * max(float(left_out.scores(size, scale)), 0.0)
    chosen = {**chosen, "shrinkage": 1.0 - scale, "solver": "dense"}
    return MeanFit(scale * weights, chosen, Scored(score), gram=G)


class _WeightedKernelMean(BaseKernelMean):
    """Base of estimators that give each row a weight from the Gram matrix, and may shrink what comes out."""

    shrinkage: float | Literal["loo"] | None
    tol: float
    max_iter: int
    _smallest_count = 1.0

    def estimate(self, G: Gram) -> MeanFit:
        return weighted_mean(G, self._row_weights, self.shrinkage)

    def _stopping(self) -> tuple[float, int]:
        return check_number("tol", self.tol, low=0, open_low=True), check_count("max_iter", self.max_iter)

    def _row_weights(self, K: Array, counts: Array, unit: float) -> tuple[Array, dict[str, Any]]:
        """Weights that sum to one, and what was chosen, from K in a unit; residuals times ``unit`` are the data's."""
        raise TypeError(f"{type(self).__name__} must define _row_weights(K, counts, unit)")

    def _n_iter(self, found: Reweighting) -> int:
        """Number of steps that were taken, with a warning where they did not suffice."""
        if not found.converged:
            message = f"the weights still move after max_iter={self.max_iter} steps; raise it, or tol={self.tol:g}"
            warn_caller(message, ConvergenceWarning)
        return len(found.objectives) - 1


class RobustKernelMean(_WeightedKernelMean):
    r"""Robust kernel mean (M-estimator): outliers are set aside, and rows far from the estimate count less.

    It minimises :math:`\sum_i \rho(\|\phi(x_i) - \mu\|)` over μ. The minimiser is a mean with weights
    :math:`w_i \propto \psi(r_i)/r_i` at its own residuals :math:`r_i = \|\phi(x_i) - \mu\|`, ψ = ρ', and is found by
    averaging again until it rests; the objective never grows. The start is the geometric median of the rows.

    "huber" has ψ(r) = min(r, a): it is convex, and a far row counts a/r. "hampel" has the same ψ to b, from where it
    falls to 0 at c: a row beyond c counts nothing.

    A bounded kernel bounds r: a/r is not small, and a bad row keeps half of its weight at any useful a. So
    ``threshold="auto"`` sets outliers aside (``outlying``), and leaves the others to a loss with late knots.
    Kim and Scott have knots at the 50, 75 and 85 % quantiles of the residuals, which give up a seventh of all samples.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
    loss : "huber" or "hampel", default "huber"
        "huber" gives far rows less weight, "hampel" gives the farthest none.
    threshold : "auto", float, or three floats, default "auto"
        a for Huber's loss, (a, b, c) for Hampel's, in units of the residuals. "auto" sets outliers aside, and takes
        1.5·q, or (1.5, 2, 3)·q, q the 75 % quantile of the distances of the others from their geometric median.
    shrinkage : None, "loo" or float in [0, 1], default None
        Then toward zero; "loo" is the leave-one-out optimum with the weights held fixed.
    contamination : float in [0, 0.5], default 0.15
        The largest share of rows that may be outliers, for "auto"; a larger group in one place is a part of the data.
    tol : float, default 1e-6
        The iteration ends when the mean moves by less, relative to its root mean squared residual.
    max_iter : int, default 500
        Largest number of steps; a warning says where it was not enough.

    Attributes
    ----------
    kernel_, mean_
        See :class:`KernelMean`.
    weights_ : array of shape (n,)
        Non-negative; their sum is 1, before shrinkage. Rows set aside have 0.
    threshold_ : float or tuple of three floats
    shrinkage_ : float
    n_iter_ : int
    objective_path_ : array of shape (n_iter_ + 1,)
        The mean of ρ over the rows, at the start and after each step.
    loo_score_ : float
        Weighted average of :math:`\|\phi(x_i) - (1 - \alpha)\mu^{(i)}\|^2`, with :math:`\mu^{(i)}` the mean without row
        i, the other weights in proportion: it chooses α. The weights have seen every row: it does not compare with the
        score of another estimator.

    See Also
    --------
    MedianOfMeans : For heavy tails.
    KernelMean : The average, without protection.
    MatchedGaussianMixture : A density that resists outliers.

    References
    ----------
    Kim, Scott (2012). Robust kernel density estimation. JMLR 13.

    Examples
    --------
    >>> import muhat as mh
    >>> P, kernel = mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0]), mh.Gaussian(bandwidth=2.0)
    >>> X = P.sample(100, random_state=0)
    >>> X[:10] += 20.0
    >>> means = [mh.KernelMean(kernel), mh.RobustKernelMean(kernel), mh.RobustKernelMean(kernel, threshold=0.4)]
    >>> [round(mean.fit(X).mean_.distance(mh.embed(kernel, P)) ** 2, 4) for mean in means]
    [0.0208, 0.0064, 0.0073]
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        loss: Literal["huber", "hampel"] = "huber",
        threshold: float | tuple[float, float, float] | Literal["auto"] = "auto",
        shrinkage: float | Literal["loo"] | None = None,
        *,
        contamination: float = 0.15,
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.threshold = threshold
        self.shrinkage = shrinkage
        self.contamination = contamination
        self.tol = tol
        self.max_iter = max_iter

    def _row_weights(self, K: Array, counts: Array, unit: float) -> tuple[Array, dict[str, Any]]:
        tol, max_iter = self._stopping()
        knots = self._given_knots()
        if knots is None:
            most = check_number("contamination", self.contamination, low=0, high=0.5)
            counts = np.where(outlying(K, counts, most), 0.0, counts)
        start = geometric_median(K, counts, tol, _START_STEPS)
        spread = _quantile(start.residuals, counts, 0.75, 2.0 * _rounding(K)) or 1.0  # any will do for equal rows
        loss = Loss(*(np.multiply(spread, AUTO_KNOTS[self.loss]) if knots is None else np.divide(knots, unit)))
        if (nearest := unit * start.residuals.min()) >= unit * loss.c:
            raise ValueError(f"threshold={self.threshold!r} rejects every row; the nearest is at {nearest:.3g}")
        found = reweight(K, counts, loss, start.weights, tol, max_iter)
        threshold = unit * loss.a if np.isinf(loss.c) else tuple(unit * knot for knot in loss)
        path = unit**2 * found.objectives
        return found.weights, {"threshold": threshold, "objective_path": path, "n_iter": self._n_iter(found)}

    def _given_knots(self) -> tuple[float, ...] | None:
        if not (isinstance(self.loss, str) and self.loss in AUTO_KNOTS):
            raise ValueError(f'loss={self.loss!r} must be "huber" or "hampel"')
        if isinstance(self.threshold, str) and self.threshold == "auto":
            return None
        if self.loss == "huber":
            return (check_number("threshold", self.threshold, low=0, open_low=True, or_else='"auto"'),)
        if isinstance(self.threshold, tuple | list | np.ndarray) and len(self.threshold) == 3:
            a, b, c = (check_number("threshold", knot, low=0, open_low=True) for knot in self.threshold)
            if a <= b < c:
                return a, b, c
        raise ValueError(f'threshold={self.threshold!r} must be "auto" or, for "hampel", three numbers 0 < a <= b < c')


class MedianOfMeans(_WeightedKernelMean):
    r"""Robust kernel mean as the geometric median of the means of blocks of rows.

    The rows are dealt at random into blocks; the estimate minimises the sum of its distances to the means of the
    blocks (Weiszfeld's iteration on their Gram matrix). Where most blocks hold good rows alone, it stays with them.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
    n_blocks : "auto" or int in [1, n], default "auto"
        "auto" makes blocks of three rows, which fewer than n/6 bad rows cannot spoil. One block gives the plain
        average; n blocks give the geometric median of the rows. Fewer blocks are better the fewer bad rows there are.
    random_state : None, int, Generator, SeedSequence or RandomState
        Deals the rows, after they were put in order of the row sums of K: a number gives the same blocks in whatever
        order the rows come, up to different rows with equal sums.
    shrinkage : None, "loo" or float in [0, 1], default None
        See :class:`RobustKernelMean`.
    tol, max_iter
        See :class:`RobustKernelMean`; 1e-6 and 5000 by default.

    Attributes
    ----------
    kernel_, mean_, weights_, shrinkage_, loo_score_, n_iter_
        See :class:`RobustKernelMean`; the rows of a block have equal weights, n_iter_ is that of the last pass.
    n_blocks_ : int

    See Also
    --------
    RobustKernelMean : Sets outliers aside.
    KernelMean : One block.

    References
    ----------
    Minsker (2015). Geometric median and robust estimation in Banach spaces. Bernoulli 21.
    Lerasle, Szabó, Mathieu, Lecué (2019). MONK: outlier-robust mean embedding estimation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[:10] += 20.0
    >>> weights = mh.MedianOfMeans(mh.Gaussian(2.0), random_state=0).fit(X).weights_
    >>> bool(weights[:10].mean() < weights[10:].mean())
    True
    """

    def _repeats_rows(self) -> bool:
        return True

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        n_blocks: int | Literal["auto"] = "auto",
        random_state: RandomState = None,
        shrinkage: float | Literal["loo"] | None = None,
        *,
        tol: float = 1e-6,
        max_iter: int = 5000,
    ) -> None:
        self.kernel = kernel
        self.n_blocks = n_blocks
        self.random_state = random_state
        self.shrinkage = shrinkage
        self.tol = tol
        self.max_iter = max_iter

    def estimate(self, G: Gram) -> MeanFit:
        check_unweighted(G)
        return super().estimate(G)

    def _row_weights(self, K: Array, counts: Array, unit: float) -> tuple[Array, dict[str, Any]]:
        tol, max_iter = self._stopping()
        n_blocks = self._chosen_blocks(len(K))
        blocks = np.array_split(check_rng(self.random_state).permutation(_own_order(K)), n_blocks)
        shares = np.zeros((len(K), n_blocks))
        for j, block in enumerate(blocks):
            shares[block, j] = 1.0 / len(block)
        found = geometric_median(shares.T @ K @ shares, np.ones(n_blocks), tol, max_iter)
        return shares @ found.weights, {"n_blocks": n_blocks, "n_iter": self._n_iter(found)}

    def _chosen_blocks(self, n: int) -> int:
        if isinstance(self.n_blocks, str) and self.n_blocks == "auto":
            return -(-n // BLOCK_ROWS)
        blocks = check_count("n_blocks", self.n_blocks)
        if blocks > n:
            raise ValueError(f'n_blocks={blocks} must be at most the number of rows, {n}, or be "auto"')
        return blocks


def _own_order(K: Array) -> NDArray[np.intp]:
    """The rows by the sums of K, and of its squares, to some digits: copies of a row come together."""
    keys = np.stack([K.sum(axis=1), (K**2).sum(axis=1)])
    keys /= np.abs(keys).max(axis=1, keepdims=True).clip(1e-300)
    return np.lexsort(keys.round(_DIGITS)[::-1])

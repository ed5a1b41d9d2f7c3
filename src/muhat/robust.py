"""Kernel means that a few bad rows cannot move far: reweighted rows, and the median of the means of blocks."""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from muhat import gram
from muhat.distances import power_of_two_near
from muhat.kernels import Gaussian, Kernel
from muhat.mean import BaseKernelMean
from muhat.types import Array, RandomState
from muhat.validation import check_count, check_number, check_rng

BLOCK_ROWS = 3
"""Rows of a block of the median of means by default: a sixth of the rows cannot spoil more than half of the blocks."""

AUTO_QUANTILE = 0.75
AUTO_KNOTS = {"huber": (1.0,), "hampel": (1.25, 1.4, 1.6)}
"""Knots of the losses, in units of that quantile of the distances to the geometric median."""

_ROUNDING = float(np.sqrt(64 * np.finfo(np.float64).eps))
_START_STEPS = 100
_SMOOTHING = 1e-2
_DIGITS = 10


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
    """What the iteration found: weights that sum to one, residuals, the objective, and whether it came to rest."""

    weights: Array
    residuals: Array
    objectives: Array
    converged: bool


def residuals(K: Array, weights: Array) -> tuple[Array, Array]:
    """The distances ‖φ(xᵢ) − μ‖ for μ = Σ wⱼφ(xⱼ), and the products Kw."""
    products = K @ weights
    return np.sqrt(np.maximum(np.diag(K) - 2.0 * products + weights @ products, 0.0)), products


def reweight(K: Array, repetitions: Array, loss: Loss, weights: Array, tol: float, max_iter: int) -> Reweighting:
    r"""Minimise Σ ρ(‖φ(xᵢ) − μ‖) over μ: each step is the mean with weights ∝ ψ(r)/r at the residuals of the last.

    As ψ(r)/r never grows, a quadratic in r above ρ touches it at the last residuals, and the step minimises that: the
    objective never grows. It ends when the mean moves by at most ``tol`` times its root mean squared residual.
    """
    share = repetitions / repetitions.sum()
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
    return _ROUNDING * float(np.sqrt(np.abs(np.diag(K)).max()))


def geometric_median(K: Array, repetitions: Array, tol: float, max_iter: int) -> Reweighting:
    """The point with the smallest sum of distances (Weiszfeld's iteration), to a hundredth of the spread.

    Distances below a hundredth of their median are smoothed as Huber does. From the average, where the search starts,
    far rows make that median too large, so that it is taken again until it settles.
    """
    weights, a = repetitions / repetitions.sum(), np.inf
    r, _ = residuals(K, weights)
    while True:
        before, a = a, max(_SMOOTHING * _quantile(r, repetitions, 0.5), _rounding(K)) or 1.0
        found = reweight(K, repetitions, Loss(a), weights, tol, max_iter)
        if a > 0.5 * before or a <= _rounding(K):
            return found
        weights, r = found.weights, found.residuals


def _quantile(r: Array, repetitions: Array, q: float = AUTO_QUANTILE) -> float:
    return float(np.quantile(r, q, weights=repetitions, method="inverted_cdf"))


def leave_one_out_means(K: Array, weights: Array, repetitions: Array) -> tuple[float, float, float]:
    r"""Weighted averages of k(xᵢ, xᵢ), of ⟨φ(xᵢ), μ⁽ⁱ⁾⟩ and of ‖μ⁽ⁱ⁾‖², the weights of the other rows in proportion.

    A row of weight v that leaves has μ⁽ⁱ⁾ = (μ − vφ(xᵢ))/(1 − v); of a row that stands for several, one leaves.
    """
    diagonal, products = np.diag(K), K @ weights
    v = weights / repetitions
    kept = np.where(v < 1.0 - 1e-12, 1.0 - v, np.inf)  # nothing is left of a mean of one row
    cross = (products - v * diagonal) / kept
    square = (weights @ products - 2.0 * v * products + v**2 * diagonal) / kept**2
    return float(weights @ diagonal), float(weights @ cross), float(weights @ square)


class _WeightedKernelMean(BaseKernelMean):
    """Base of estimators that give each row a weight from the Gram matrix, and may shrink what comes out."""

    shrinkage: float | Literal["loo"] | None
    tol: float
    max_iter: int
    _copies_rows = False

    def _estimate(self, points: Array, repetitions: Array) -> None:
        given = self._given_shrinkage()
        rows = np.flatnonzero(repetitions)
        counts = repetitions[rows]
        self._check_repetitions(counts)
        if self._copies_rows:
            rows, counts = np.repeat(rows, counts.astype(int)), np.ones(int(counts.sum()))
        self.solver_ = "dense"
        K = gram.dense(self.kernel_._gram, points[rows])
        unit = power_of_two_near(float(np.abs(np.diag(K)).max()))
        K /= unit
        weights = self._row_weights(K, counts, float(np.sqrt(unit)))
        size, cross, square = leave_one_out_means(K, weights, counts)
        best = min(max(cross / square, 0.0), 1.0) if square > 0 else 1.0
        scale = best if given is None else 1.0 - given
        self.shrinkage_ = 1.0 - scale
        self._known_loo_score = unit * max(size - 2.0 * scale * cross + scale**2 * square, 0.0)
        everywhere = np.zeros(len(points))
        np.add.at(everywhere, rows, scale * weights)
        self._store(points, everywhere)

    def _given_shrinkage(self) -> float | None:
        if self.shrinkage is None:
            return 0.0
        if isinstance(self.shrinkage, str) and self.shrinkage == "loo":
            return None
        return check_number("shrinkage", self.shrinkage, low=0, high=1, or_else='None or "loo"')

    def _stopping(self) -> tuple[float, int]:
        return check_number("tol", self.tol, low=0, open_low=True), check_count("max_iter", self.max_iter)

    def _check_repetitions(self, counts: Array) -> None:
        if (counts < 1).any():
            raise ValueError(
                f"sample_weight={counts.min():g} is too small: this estimator leaves whole rows out, so that weights "
                f"must be 0 or at least 1; multiply them by a constant"
            )

    def _row_weights(self, K: Array, counts: Array, unit: float) -> Array:
        """Weights that sum to one, from K in a unit; residuals times ``unit`` are those of the data."""
        raise TypeError(f"{type(self).__name__} must define _row_weights(K, counts, unit)")


def _settled(found: Reweighting, tol: float, max_iter: int) -> Array:
    if not found.converged:
        message = f"the weights still move after max_iter={max_iter} steps; raise it, or tol={tol:g}"
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return found.weights


class RobustKernelMean(_WeightedKernelMean):
    r"""The mean by reweighting: rows far from the estimate count less.

    It minimises :math:`\sum_i \rho(\|\phi(x_i) - \mu\|)` over μ. The minimiser is a mean with weights
    :math:`w_i \propto \psi(r_i)/r_i` at its own residuals :math:`r_i = \|\phi(x_i) - \mu\|`, ψ = ρ', and is found by
    averaging anew until it rests; the objective never grows. The start is the geometric median of the rows.

    "huber" has ψ(r) = min(r, a): it is convex, and a far row counts a/r. "hampel" has the same ψ to b, from where it
    falls to 0 at c: a row beyond c counts nothing.

    Differs from Kim and Scott: their knots, the 50, 75 and 85 % quantiles of the residuals, give up a seventh of every
    sample, and cost clean ones more than outliers would. Multiples of the 75 % quantile leave clean samples almost as
    they are, and up to a quarter of the rows may be bad.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
    loss : "huber" or "hampel", default "huber"
    threshold : "auto", float, or three floats, default "auto"
        a for Huber's loss, (a, b, c) for Hampel's, in units of the residuals. "auto" takes the 75 % quantile q of the
        distances of the rows from their geometric median: a = q, or (a, b, c) = (1.25, 1.4, 1.6)·q. Where q is 0,
        because most rows are equal, the quantile is that of the positive distances.
    shrinkage : None, "loo" or float in [0, 1], default None
        How far the robust mean is then shrunk toward zero; "loo" is the leave-one-out optimum with the weights held
        fixed.
    tol : float, default 1e-6
        The iteration ends when the mean moves by less, relative to its root mean squared residual.
    max_iter : int, default 500

    Attributes
    ----------
    kernel_, mean_
        See :class:`KernelMean`.
    weights_ : array of shape (n,)
        Non-negative; their sum is 1, before shrinkage.
    threshold_ : float or tuple of three floats
    shrinkage_ : float
        0 without shrinkage.
    n_iter_ : int
    objective_path_ : array of shape (n_iter_ + 1,)
        The mean of ρ over the rows, at the start and after each step.
    loo_score_ : float
        Weighted average of ‖φ(xᵢ) − (1−α)μ⁽ⁱ⁾‖², with μ⁽ⁱ⁾ the mean without row i, the weights of the others in
        proportion. It chooses α. It is a little too low, as the weights have seen every row, and counts bad rows
        less, so that it cannot be compared with the score of another estimator.

    References
    ----------
    Kim, Scott (2012). Robust kernel density estimation. JMLR 13.

    Examples
    --------
    >>> import muhat as mh
    >>> from muhat.robust import RobustKernelMean
    >>> P = mh.GaussianMixture([1.0], [[0.0, 0.0]], [1.0])
    >>> X = P.sample(100, random_state=0)
    >>> X[:10] += 20.0
    >>> kernel = mh.Gaussian(bandwidth=2.0)
    >>> truth = mh.embed(kernel, P)
    >>> means = [mh.KernelMean(kernel), RobustKernelMean(kernel), RobustKernelMean(kernel, loss="hampel")]
    >>> [round(mean.fit(X).mean_.distance(truth) ** 2, 4) for mean in means]
    [0.0208, 0.012, 0.0064]
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        loss: Literal["huber", "hampel"] = "huber",
        threshold: float | tuple[float, float, float] | Literal["auto"] = "auto",
        shrinkage: float | Literal["loo"] | None = None,
        *,
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.threshold = threshold
        self.shrinkage = shrinkage
        self.tol = tol
        self.max_iter = max_iter

    def _row_weights(self, K: Array, counts: Array, unit: float) -> Array:
        tol, max_iter = self._stopping()
        knots = self._given_knots()
        start = geometric_median(K, counts, tol, _START_STEPS)
        if knots is None:
            knots = _auto_knots(AUTO_KNOTS[self.loss], start.residuals, counts, _rounding(K))
        else:
            knots = tuple(knot / unit for knot in knots)
            if self.loss == "hampel" and start.residuals.min() >= knots[-1]:
                nearest = unit * start.residuals.min()
                raise ValueError(f"threshold={self.threshold!r} rejects every row, also the nearest, at {nearest:.3g}")
        self.threshold_ = unit * knots[0] if len(knots) == 1 else tuple(unit * knot for knot in knots)
        if not knots[0] > 0:  # all rows are equal
            self.n_iter_, self.objective_path_ = 0, np.zeros(1)
            return counts / counts.sum()
        found = reweight(K, counts, Loss(*knots), start.weights, tol, max_iter)
        self.n_iter_, self.objective_path_ = len(found.objectives) - 1, unit**2 * found.objectives
        return _settled(found, tol, max_iter)

    def _given_knots(self) -> tuple[float, ...] | None:
        if not (isinstance(self.loss, str) and self.loss in AUTO_KNOTS):
            raise ValueError(f'loss={self.loss!r} must be "huber" or "hampel"')
        if isinstance(self.threshold, str) and self.threshold == "auto":
            return None
        if self.loss == "huber":
            return (check_number("threshold", self.threshold, low=0, open_low=True, or_else='"auto"'),)
        wanted = f'threshold={self.threshold!r} must be "auto" or three numbers 0 < a <= b < c for loss="hampel"'
        if isinstance(self.threshold, tuple | list | np.ndarray) and len(self.threshold) == 3:
            a, b, c = (check_number("threshold", knot, low=0, open_low=True) for knot in self.threshold)
            if a <= b < c:
                return a, b, c
        raise ValueError(wanted)


def _auto_knots(multiples: tuple[float, ...], r: Array, counts: Array, rounding: float) -> tuple[float, ...]:
    quantile = _quantile(r, counts)
    if quantile <= 2.0 * rounding:
        apart = r > 2.0 * rounding
        quantile = _quantile(r[apart], counts[apart]) if apart.any() else 0.0
    return tuple(multiple * quantile for multiple in multiples)


class MedianOfMeans(_WeightedKernelMean):
    r"""The geometric median of the means of blocks of rows.

    The rows are dealt at random into blocks; the estimate minimises the sum of its distances to the means of the
    blocks (Weiszfeld's iteration on their Gram matrix). Where most blocks hold good rows alone, it stays with them.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
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

    References
    ----------
    Minsker (2015). Geometric median and robust estimation in Banach spaces. Bernoulli 21.
    Lerasle, Szabó, Mathieu, Lecué (2019). MONK: outlier-robust mean embedding estimation. ICML.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from muhat.robust import MedianOfMeans
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[:10] += 20.0
    >>> fitted = MedianOfMeans(mh.Gaussian(2.0), random_state=0).fit(X)
    >>> bool(fitted.weights_[:10].mean() < fitted.weights_[10:].mean())
    True
    """

    _copies_rows = True

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

    def _check_repetitions(self, counts: Array) -> None:
        if (counts != np.rint(counts)).any():
            raise ValueError("sample_weight must be whole numbers here: copies of a row go to blocks of their own")

    def _row_weights(self, K: Array, counts: Array, unit: float) -> Array:
        tol, max_iter = self._stopping()
        self.n_blocks_ = self._chosen_blocks(len(K))
        order = np.argsort(_own_ranks(K), kind="stable")
        blocks = np.array_split(check_rng(self.random_state).permutation(order), self.n_blocks_)
        shares = np.zeros((len(K), self.n_blocks_))
        for j, block in enumerate(blocks):
            shares[block, j] = 1.0 / len(block)
        found = geometric_median(shares.T @ K @ shares, np.ones(self.n_blocks_), tol, max_iter)
        self.n_iter_ = len(found.objectives) - 1
        return shares @ _settled(found, tol, max_iter)

    def _chosen_blocks(self, n: int) -> int:
        if isinstance(self.n_blocks, str) and self.n_blocks == "auto":
            return -(-n // BLOCK_ROWS)
        blocks = check_count("n_blocks", self.n_blocks)
        if blocks > n:
            raise ValueError(f'n_blocks={blocks} must be at most the number of rows, {n}, or be "auto"')
        return blocks


def _own_ranks(K: Array) -> NDArray[np.intp]:
    """Ranks of the rows by the sums of K, and of its squares, to some digits: equal for copies of a row."""
    keys = np.stack([K.sum(axis=1), (K**2).sum(axis=1)], axis=1)
    keys /= np.abs(keys).max(axis=0).clip(1e-300)
    return np.unique(keys.round(_DIGITS), axis=0, return_inverse=True)[1].ravel()

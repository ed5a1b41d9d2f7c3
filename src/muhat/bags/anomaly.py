"""Detection of anomalous groups: scores calibrated by the size of a group, with p-values."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from muhat.bags.data import Bags, TakesBagsMixin, check_bags
from muhat.bags.pooling import Pool, fit_pool
from muhat.bags.prior import check_noise
from muhat.bags.whitening import (
    RIDGE,
    BagMoments,
    check_features,
    light_features,
    light_moments,
    light_sample,
    with_widths,
)
from muhat.features.base import BaseFeatures
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import one_blas_thread
from muhat.parameters import ValueParametersMixin
from muhat.types import Array, RandomState
from muhat.validation import check_number, check_rng, unchanged_on_error, warn_caller

FOLDS = 5
"""Parts of the training bags that are left out in turn, to be scored by the others."""


FEWEST_BAGS = 10


FEWEST_FOR_CALIBRATION = 80
"""Training bags that a p-value is computed from at least, or 1/alpha; the largest ones where fewer are as large as the
new bag."""


SIZE_LEVEL, SIGN_FLIPS = 0.01, 499
"""Level of the test that warns where content depends on size, and its number of resamples."""


WIDTH = 0.5
"""The bandwidth in units of the median: of 0.3, 0.5, 1 and 2 the best on the populations that were chosen on."""


STEPS_TO_DOUBLE = 2
"""Sizes in a doubling at which bags are cut for the calibration."""


class Form(NamedTuple):
    r"""The quadratic form :math:`x^\top M x` of a centred mean x, and its moments under the prior.

    For a bag of n rows x has the covariance C = B + W/n, so the mean is tr(MC) and the variance 2 tr((MC)²).
    """

    root: Array | None  # R with M = RRᵀ; None is the identity
    traces: tuple[float, float]  # of MB and MW
    squares: tuple[float, float, float]  # tr (MB)², tr MBMW, tr (MW)²

    @classmethod
    def of(cls, between: Array, within: Array, root: Array | None) -> Form:
        B, W = (C if root is None else root.T @ C @ root for C in (between, within))
        squares = float(np.vdot(B, B)), float(np.vdot(B, W)), float(np.vdot(W, W))
        return cls(root, (float(np.trace(B)), float(np.trace(W))), squares)

    def surprise(self, X: Array, sizes: NDArray[np.number]) -> Array:
        """The form of each row, less its mean, over its standard deviation."""
        values = np.square(X if self.root is None else X @ self.root).sum(axis=1)
        share = 1.0 / sizes
        mean = self.traces[0] + self.traces[1] * share
        variance = self.squares[0] + 2.0 * self.squares[1] * share + self.squares[2] * share**2
        return (values - mean) / np.sqrt(2.0 * variance)


class Surprise:
    """The score of a bag: plain and weighted forms of its mean, each standardised for its size, added.

    The plain form finds groups that differ along directions of large variance; the one with M = (B + W/n)^(−½) finds
    those that differ where normal groups do not. Neither wins everywhere.
    """

    def __init__(self, pool: Pool, sizes: NDArray[np.intp], ridge: float) -> None:
        self.pool = pool
        self.plain = Form.of(pool.between, pool.within, None)
        self.weighted = [Form.of(pool.between, pool.within, self._root(n, ridge)) for n in sizes]

    def _root(self, size: int, ridge: float) -> Array:
        """(B + W_ρ/n)^(−¼)."""
        m = len(self.pool.centre)
        covariance = self.pool.between + self.pool.within / size
        covariance[np.diag_indices(m)] += ridge * np.trace(self.pool.within) / (m * size)
        g, V = eigh(covariance, driver="evd", check_finite=False)
        return V * g.clip(np.finfo(float).tiny) ** -0.25

    def __call__(self, means: Array, sizes: NDArray[np.number], kind: int) -> Array:
        """Scores of means of bags, large for odd ones, with the weights of the given kind of size."""
        X = means / self.pool.unit - self.pool.centre
        return self.plain.surprise(X, sizes) + self.weighted[kind].surprise(X, sizes)


class GroupAnomalyDetector(OutlierMixin, ValueParametersMixin, TakesBagsMixin, BaseEstimator):
    r"""Detector of odd groups of rows, with p-values that take the size of a group into account.

    The mean of a small group is noisy, so it lies far from the others even where the group is normal. A prior learned
    from normal groups (see :class:`BagPrior`) says how far the mean :math:`\hat\mu` of n rows may lie from the centre:
    its covariance is :math:`C_n = B + W/n`. The score is the sum of two standardised squared distances,

    .. math:: z_M = \frac{\langle x, M x\rangle - \operatorname{tr}(M C_n)}{\sqrt{2 \operatorname{tr}((M C_n)^2)}},
              \qquad x = \hat\mu - \bar\mu,\quad M = I \text{ and } M = C_n^{-1/2},

    and the p-value compares it with normal groups that were left out of the prior and cut to the size of the new one.
    So normal groups of every size have false alarms at the rate ``alpha``, provided that what a group contains does not
    depend on its size: else a small group is compared with cuts of large groups that are unlike it. ``fit`` tests this
    on the training groups at the nominal level 1 %, and warns where it does not hold; of 1,000 fits to groups for which
    it holds, 18 warned.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The kernel between rows. With a bandwidth "median" it is half the median distance of rows, since odd groups
        often differ in detail.
    alpha : float in (0, 1), default 0.1
        The rate of false alarms of ``predict``. ``fit`` needs 1/alpha bags or more, since no p-value of fewer is so
        small.
    features : Nystroem or Fourier, optional
        Features of the kernel. Default 200 Nyström landmarks.
    ridge : float > 0, default 0.05
        The ridge of the covariance within bags, in units of its mean eigenvalue.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the landmarks, of the folds and of the cuts. None is a fixed seed, so that two fits agree.

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    p_values_ : array of shape (n,)
        The p-value of each bag of ``fit``, by the others: for "which of my groups is odd?" A fold of the bags is scored
        by the prior of the other folds.
    sizes_ : array
        Sizes at which training bags were cut for the calibration.
    n_features_in_ : int
        Columns of the bags.

    Notes
    -----
    p-values are at least 1/(1 + k) for k training bags of the calibration. O(N m) time for N rows and m features, and
    an eigendecomposition of an m x m matrix for each fold and size of ``sizes_``.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> sizes = rng.integers(3, 100, size=150)
    >>> bags = [rng.normal(size=(n, 2)) + 0.3 * rng.normal(size=2) for n in sizes]
    >>> detector = mh.GroupAnomalyDetector(random_state=0).fit(bags)
    >>> odd = [np.repeat(rng.normal(size=(n, 1)), 2, axis=1) for n in (30, 60, 90)]  # normal rows, odd together
    >>> detector.predict(odd).tolist()
    [-1, -1, -1]

    The same among the groups at hand:

    >>> detector.fit_predict(bags + odd)[-3:].tolist()
    [-1, -1, -1]
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        alpha: float = 0.1,
        features: BaseFeatures | None = None,
        *,
        ridge: float = RIDGE,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.features = features
        self.ridge = ridge
        self.random_state = random_state

    @one_blas_thread()
    @unchanged_on_error
    def fit(self, bags: Any, y: Any = None) -> Self:
        """Learn from normal bags; a few odd ones among them make the test more timid, and do no other harm.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        ridge = float(self.ridge)
        data = check_bags(bags, self, reset=True)
        if len(data) < FEWEST_BAGS:
            raise ValueError(
                f"{len(data)} bags are too few to calibrate with; pass {FEWEST_BAGS} or more, and "
                f"{round(2 / self.alpha)} or more for alpha={self.alpha:g}"
            )
        fewest = int(np.ceil(1.0 / self.alpha))
        if len(data) < fewest:
            raise ValueError(
                f"alpha={self.alpha:g} is below every p-value of {len(data)} bags, so there would never be an alarm; "
                f"pass {fewest:,} bags or more, or alpha={np.ceil(1e4 / len(data)) / 1e4:g} or more"
            )
        rng = check_rng(0 if self.random_state is None else self.random_state)
        rows = light_sample(data, rng)
        features = light_features(self.features, with_widths(self.kernel, rows, (WIDTH,))[0], rows)
        folds = rng.permutation(np.arange(len(data)) % FOLDS)
        parts = [light_moments(features, subset(data, np.flatnonzero(folds == fold))) for fold in range(FOLDS)]
        sizes = size_grid(int(data.sizes.max()))
        cuts, kinds = cut_means(features, data, sizes, rng), nearest_kind(data.sizes, sizes)
        whole = check_noise(together(parts, folds, range(FOLDS)))
        pool = fit_pool(whole, data.sizes, ridge)
        calibration, left_out = np.empty(cuts.shape[:2]), np.empty(len(data))  # (sizes, bags)
        for fold in range(FOLDS):
            others = [each for each in range(FOLDS) if each != fold]
            moments = check_noise(together(parts, folds, others))
            others_surprise = Surprise(fit_pool(moments, data.sizes[folds != fold], ridge), sizes, ridge)
            out = folds == fold
            for kind, size in enumerate(sizes):
                calibration[kind, out] = others_surprise(cuts[kind, out], np.minimum(data.sizes[out], size), kind)
            left_out[out] = scores_by_kind(others_surprise, whole.means[out], data.sizes[out], kinds[out])
        surprise = Surprise(pool, sizes, ridge)
        self.kernel_, self.sizes_ = features.kernel_, sizes
        self._features, self._surprise = features, surprise
        chosen = [calibrating(data.sizes, size, fewest) for size in sizes]
        self._calibration = [np.sort(calibration[kind, which]) for kind, which in enumerate(chosen)]
        self.p_values_ = np.empty(len(data))
        for i, kind in enumerate(kinds):
            others = chosen[kind][chosen[kind] != i]
            self.p_values_[i] = (1.0 + (calibration[kind, others] >= left_out[i]).sum()) / (1.0 + len(others))
        self._check_sizes(size_dependence(whole.means, data.sizes, rng), data.sizes)
        return self

    def _check_sizes(self, p: float, sizes: NDArray[np.intp]) -> None:
        """Warn where what a bag contains depends on its size."""
        if p > SIZE_LEVEL:
            return
        low, high = np.quantile(sizes, [0.25, 0.75])
        small, large = (np.mean(self.p_values_[which] <= self.alpha) for which in (sizes <= low, sizes >= high))
        warn_caller(
            f"what a bag contains depends on its size (p = {p:g}), and so does the rate of false alarms: of the bags "
            f"of fit, {100 * small:.0f} % of those with at most {low:g} rows and {100 * large:.0f} % of those with at "
            f"least {high:g} rows have a p-value of at most alpha={self.alpha:g}. Fit one detector per range of sizes.",
        )

    def fit_predict(self, bags: Any, y: Any = None, **options: Any) -> NDArray[np.intp]:
        """Which of the bags at hand are odd: -1 where ``p_values_`` is at most ``alpha``, and 1 elsewhere.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
        y : ignored
        **options : ignored

        Returns
        -------
        array of shape (n,)
        """
        return np.where(self.fit(bags).p_values_ <= self.alpha, -1, 1)

    def _check_parameters(self) -> None:
        check_kernel("kernel", self.kernel)
        check_features(self.features)
        check_number("ridge", self.ridge, low=0, open_low=True)
        if not 0 < check_number("alpha", self.alpha, low=0, high=1) < 1:
            raise ValueError(f"alpha={self.alpha!r} must lie between 0 and 1; pass for example 0.1")

    def score_samples(self, bags: Any) -> Array:
        """How normal each bag is, the larger the more: 0 on average and level in size for normal bags.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)

        Returns
        -------
        array of shape (n,)
        """
        scores, kinds = self._scores(bags)
        middles = np.array([values.mean() for values in self._calibration])
        widths = np.array([values.std() for values in self._calibration])
        return (middles[kinds] - scores) / widths[kinds]

    def p_values(self, bags: Any) -> Array:
        """The probability that a normal bag of the same size is at least as odd.

        For new bags. Those of ``fit`` have shaped the prior, so that they look less odd than they are: they have their
        p-values in ``p_values_``.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)

        Returns
        -------
        array of shape (n,)
        """
        scores, kinds = self._scores(bags)
        p = np.empty(len(scores))
        for kind in np.unique(kinds):
            values, which = self._calibration[kind], kinds == kind
            above = len(values) - np.searchsorted(values, scores[which], side="left")
            p[which] = (1.0 + above) / (1.0 + len(values))
        return p

    def predict(self, bags: Any) -> NDArray[np.intp]:
        """-1 for bags with a p-value of at most ``alpha``, and 1 for the others.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)

        Returns
        -------
        array of shape (n,)
        """
        return np.where(self.p_values(bags) <= self.alpha, -1, 1)

    @one_blas_thread()
    def _scores(self, bags: Any) -> tuple[Array, NDArray[np.intp]]:
        check_is_fitted(self, "kernel_")
        data = check_bags(bags, self, reset=False)
        means, kinds = light_moments(self._features, data, within=False).means, nearest_kind(data.sizes, self.sizes_)
        return scores_by_kind(self._surprise, means, data.sizes, kinds), kinds


def nearest_kind(sizes: NDArray[np.intp], grid: NDArray[np.intp]) -> NDArray[np.intp]:
    """The number of the size of the grid that is nearest to each size, by ratio."""
    return np.abs(np.log(sizes)[:, None] - np.log(grid)).argmin(axis=1)


def scores_by_kind(surprise: Surprise, means: Array, sizes: NDArray[np.intp], kinds: NDArray[np.intp]) -> Array:
    """Scores of bags, each with the weights of its kind of size."""
    scores = np.empty(len(means))
    for kind in np.unique(kinds):
        which = kinds == kind
        scores[which] = surprise(means[which], sizes[which], int(kind))
    return scores


def size_grid(largest: int) -> NDArray[np.intp]:
    """Sizes from 1 to the largest, in equal steps of their logarithm."""
    steps = int(np.floor(STEPS_TO_DOUBLE * np.log2(largest))) + 1
    return np.unique(np.round(2.0 ** (np.arange(steps + 1) / STEPS_TO_DOUBLE)).astype(int).clip(1, largest))


def subset(data: Bags, chosen: NDArray[np.intp]) -> Bags:
    """Some of the bags."""
    parts = data.parts(data.rows)
    return Bags(np.concatenate([parts[i] for i in chosen]), np.cumsum([0, *data.sizes[chosen]]))


def together(parts: list[BagMoments], folds: NDArray[np.intp], chosen: Any) -> BagMoments:
    """The moments of the bags of several folds, in the order of the bags."""
    kept = np.flatnonzero(np.isin(folds, list(chosen)))
    means = np.empty((len(folds), parts[0].means.shape[1]))
    for fold in chosen:
        means[folds == fold] = parts[fold].means
    degrees = sum(parts[fold].degrees for fold in chosen)
    within = sum(parts[fold].degrees * parts[fold].within for fold in chosen) / max(degrees, 1)
    return BagMoments(means[kept], np.asarray(within), degrees)


def size_dependence(means: Array, sizes: NDArray[np.intp], rng: np.random.Generator) -> float:
    """The p-value of a test whether the expected mean of a bag depends on its size.

    The statistic is the squared length of the covariance between means and ranks of sizes. Where the expectation does
    not depend on size, the signs of centred means may be flipped, however much more those of small bags vary.
    """
    ranks = rankdata(sizes)
    if not np.ptp(ranks):
        return 1.0
    products = (ranks - ranks.mean())[:, None] * (means - means.mean(axis=0))
    signs = (rng.choice([-1.0, 1.0], size=len(sizes)) for _ in range(SIGN_FLIPS))
    flipped = np.array([np.square(each @ products).sum() for each in signs])
    return float((1.0 + (flipped >= np.square(products.sum(axis=0)).sum()).sum()) / (1.0 + SIGN_FLIPS))


def cut_means(features: BaseFeatures, data: Bags, sizes: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Means of all bags cut at random to each size, or whole where they are smaller: shape (sizes, bags, m)."""
    parts = data.parts(data.rows)
    rows = np.concatenate([part[rng.permutation(len(part))] for part in parts])
    ends = np.minimum.outer(data.sizes, sizes)  # (bags, sizes): pieces between them make up the cuts
    offsets = np.unique(np.append(data.offsets, data.offsets[:-1, None] + ends))
    pieces = light_moments(features, Bags(rows, offsets), within=False).means
    sums = np.cumsum(np.diff(offsets)[:, None] * pieces, axis=0)
    sums = np.concatenate([np.zeros((1, sums.shape[1])), sums])
    starts = np.searchsorted(offsets, data.offsets[:-1])
    cuts = np.empty((len(sizes), len(data), sums.shape[1]))
    for kind in range(len(sizes)):
        stops = np.searchsorted(offsets, data.offsets[:-1] + ends[:, kind])
        cuts[kind] = (sums[stops] - sums[starts]) / ends[:, kind, None]
    return cuts


def calibrating(sizes: NDArray[np.intp], size: int, fewest: int = 1) -> NDArray[np.intp]:
    """Numbers of the bags of at least a size; where those are few, of the largest ones and all that are as large."""
    smallest = np.sort(sizes)[-min(max(fewest, FEWEST_FOR_CALIBRATION), len(sizes))]
    return np.flatnonzero(sizes >= min(size, smallest))

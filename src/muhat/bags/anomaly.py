"""Detection of anomalous bags: scores calibrated by the size of a bag, with p-values and explanations.

Constants that are not derived were chosen on the halves of ``benchmarks/groups.py`` and ``natural_groups.py`` that are
there for it (``--set chosen`` and ``--set choose``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array, RandomState
from muhat._support.validation import check_number, check_rng, unchanged_on_error, warn_caller
from muhat.bags.bag_explanations import BagExplanation, ColumnPrior
from muhat.bags.data import Bags, TakesBagsMixin, check_bags
from muhat.bags.efron_morris import Pool, fit_pools
from muhat.bags.moments import (
    LIGHT_LANDMARKS,
    LIGHT_ROWS,
    RIDGE,
    BagMoments,
    RowFeatures,
    check_features,
    check_noise,
    fit_features,
    light_means,
    light_moments,
)
from muhat.features.base import BaseFeatures
from muhat.kernels.base import Kernel, check_kernel, with_widths
from muhat.kernels.dot import Linear
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import columns_by_value, random_rows
from muhat.linalg.resources import one_blas_thread
from muhat.linalg.whitening import Whitening, inverse_root

FOLDS = 5
"""Parts of the training bags that are left out in turn, to be scored by the others; more would cost a prior each."""

FEWEST_BAGS = 10  # two for each part that is left out

FEWEST_FOR_CALIBRATION = 80
"""Training bags that a p-value is computed from at least, or 1/alpha; the largest ones where fewer are as large as the
new bag. The standard error of a p-value of 0.1 is then 0.03."""

FEWEST_FOR_SCALE = 25
"""Training bags that mean and standard deviation of the scores at a size come from at least; the latter is then known
to a seventh."""

SIZE_LEVEL, SIGN_FLIPS = 0.01, 499
"""Level of the test that warns where content depends on size, and its resamples: the least p-value is a fifth of it."""

STEPS_TO_DOUBLE = 2
"""Sizes in a doubling at which bags are cut for the calibration: no bag is a fifth larger or smaller than its cut."""

WIDTH = 0.5
"""Bandwidth of the kernel view over the median. Mixtures of several kinds of rows are told apart at half of it; what a
wider kernel sees, moments see as well."""

MOMENT_RIDGE = 1e-3
"""Ridge of the covariance of moments within bags, relative to its mean eigenvalue: against columns that determine each
other, since moments are few and known well."""

FARTHEST = 4.0
"""Values farther from the centre of a column, in standard deviations, count as this far in moments, so that one row
does not decide the mean of a bag."""

MOST_COLUMNS = 100
"""Tables with more columns are reduced to this number of principal components before moments are taken,
which are then as many as the landmarks."""


class MomentFeatures(NamedTuple):
    """Standardised columns z of rows, |z|, and |u| of the whitened columns u: their means are moments of a bag.

    The means of z show changes of location, |z| changes of dispersion, and |u| changed relations of correlated columns.
    Wide tables have the largest principal components in place of z, and no |u|, which would be |z| again.
    """

    whitening: Whitening
    kernel_: Kernel = Linear()

    @property
    def n_features_out_(self) -> int:
        """Number of features."""
        return int(self.evaluate(self.whitening.centre[None]).shape[1])

    def evaluate(self, rows: Array) -> Array:
        """Features of rows."""
        columns, whitened = self.whitening.standardise(rows), np.empty((len(rows), 0))
        if columns.shape[1] > MOST_COLUMNS:
            columns = self.whitening.principal_scores(rows)[:, -MOST_COLUMNS:]
        elif columns.shape[1] > 1:
            whitened = self.whitening.whiten(rows)
        z = columns.clip(-FARTHEST, FARTHEST)
        return np.hstack([z, np.abs(z), np.abs(whitened).clip(max=FARTHEST)])


class View(NamedTuple):
    """One way to look at rows: features, and the forms of their means that are added up to a score.

    Whitened features are fitted once per fold, without the bags of the fold that they will score: rows that had a part
    in a whitening look too ordinary under it. Features of the kernel are fitted once for all folds.
    """

    name: str
    features: Sequence[RowFeatures]  # by fold, or one for all folds
    powers: tuple[float, ...]  # a in M = C^(−a)
    ridge: float

    def surprises(self, data: Bags, folds: NDArray[np.intp], grid: NDArray[np.intp]) -> Iterator[Surprise]:
        """Scores by the prior of the bags outside of each fold, for each size of a grid."""
        if len(self.features) > 1:
            for fold, features in enumerate(self.features):
                others = subset(data, folds != fold)
                yield Surprise.of(self, light_moments(features, others), others.sizes, grid)
            return
        parts = [subset(data, folds == k) for k in range(FOLDS)]
        moments = [light_moments(self.features[0], part) for part in parts]  # of the same features, so they add up
        for fold in range(FOLDS):
            kept = [k for k in range(FOLDS) if k != fold]
            counts = np.concatenate([parts[k].sizes for k in kept])
            yield Surprise.of(self, reduce(BagMoments.plus, [moments[k] for k in kept]), counts, grid)


class Form(NamedTuple):
    r"""The quadratic form :math:`x^\top M x` of a centred mean x, and its moments under the prior.

    For a bag of n rows x has the covariance C = B + W/n, so the mean is tr(MC) and the variance 2 tr((MC)²).
    """

    root: Array | None  # R with M = RRᵀ; None is the identity
    traces: tuple[float, float]  # of MB and MW
    squares: tuple[float, float, float]  # tr (MB)², tr MBMW, tr (MW)²

    @classmethod
    def of(cls, pool: Pool, root: Array | None) -> Form:
        """The form with M = RRᵀ under a prior."""
        B, W = (C if root is None else root.T @ C @ root for C in (pool.between, pool.within))
        squares = float(np.vdot(B, B)), float(np.vdot(B, W)), float(np.vdot(W, W))
        return cls(root, (float(np.trace(B)), float(np.trace(W))), squares)

    def surprise(self, X: Array, sizes: NDArray[np.number]) -> Array:
        """The form of each row, less its mean, over its standard deviation."""
        values = np.square(X if self.root is None else X @ self.root).sum(axis=1)
        share = 1.0 / sizes
        mean = self.traces[0] + self.traces[1] * share
        variance = self.squares[0] + 2.0 * self.squares[1] * share + self.squares[2] * share**2
        return (values - mean) / np.sqrt(2.0 * variance)


class Surprise(NamedTuple):
    """Scores of means of bags in one view: forms of the mean, each standardised for the size of the bag, added."""

    pool: Pool
    forms: list[list[Form]]  # for each size of the grid, one for each power of the view

    @classmethod
    def of(cls, view: View, moments: BagMoments, counts: NDArray[np.intp], grid: NDArray[np.intp]) -> Surprise:
        """The forms for each size of a grid, under the prior of bags with the given moments and numbers of rows."""
        (pool,) = fit_pools(check_noise(moments), counts, [view.ridge])
        forms = []
        for n in grid:  # R with RRᵀ = (B + W_ρ/n)^(−power); None is the identity, for the power 0
            C, lam = pool.between + pool.within / n, view.ridge * np.trace(pool.within) / (len(pool.within) * n)
            forms.append([Form.of(pool, inverse_root(C, lam, power) if power else None) for power in view.powers])
        return cls(pool, forms)

    def __call__(self, means: Array, sizes: NDArray[np.number], place: int) -> Array:
        """Scores of means of bags, large for anomalous ones, by the forms of the given size of the grid."""
        X = means / self.pool.unit - self.pool.centre
        return np.asarray(sum(form.surprise(X, sizes) for form in self.forms[place]))


class ScoreCalibration(NamedTuple):
    """Scores of bags by priors that they had no part in, cut to each size of a grid.

    A bag of fold k is scored by the prior of the other folds, and a new bag by each of these priors in turn: it is
    compared with the bags of fold k by the prior of the other folds (cross-conformal prediction).
    """

    views: list[View]
    sizes: NDArray[np.intp]  # the grid
    folds: NDArray[np.intp]  # of the training bags
    surprises: list[list[Surprise]]  # by fold and view
    middles: Array  # (sizes, views)
    widths: Array
    scores: Array  # (sizes, bags): sums over views, standardised each
    chosen: list[NDArray[np.intp]]  # the bags that calibrate each size

    def view_scores(self, bags: Bags) -> tuple[Array, NDArray[np.intp]]:
        """Standardised scores of new bags, of shape (folds, bags, views), and the place of their sizes in the grid."""
        places = nearest_size(bags.sizes, self.sizes)
        scores = np.empty((len(self.surprises), len(bags), len(self.views)))
        for v, view in enumerate(self.views):
            by_features = [light_means(each, bags) for each in view.features]
            for k, surprises in enumerate(self.surprises):
                means = by_features[k % len(by_features)]
                for place in np.unique(places):
                    which = places == place
                    scores[k, which, v] = surprises[v](means[which], bags.sizes[which], int(place))
        return (scores - self.middles[places]) / self.widths[places], places

    def p_values(self, scores: Array, places: NDArray[np.intp]) -> Array:
        """(1 + how many normal bags of the size score as high) / (1 + how many there are)."""
        totals, p = scores.sum(axis=-1), np.empty(len(places))
        for place in np.unique(places):
            which, chosen = np.flatnonzero(places == place), self.chosen[place]
            normal, above = self.scores[place, chosen], np.ones(len(which))
            for k, total in enumerate(totals[:, which]):
                ordered = np.sort(normal[self.folds[chosen] == k])
                above += len(ordered) - np.searchsorted(ordered, total, side="left")
            p[which] = above / (1.0 + len(chosen))
        return p


def calibrate(
    views: list[View], data: Bags, folds: NDArray[np.intp], fewest: int, rng: np.random.Generator
) -> tuple[ScoreCalibration, Array]:
    """Calibrate all views on the same folds and cuts of the training bags; and the p-value of each bag by the others.

    ``folds`` has the fold of each bag; a p-value needs ``fewest`` bags, and ``rng`` draws the cuts.
    """
    sizes = size_grid(int(data.sizes.max()))
    shuffled = shuffled_rows(data, rng)
    surprises: list[list[Surprise]] = [[] for _ in range(FOLDS)]
    cut_scores = np.empty((len(sizes), len(data), len(views)))
    own = np.empty((len(data), len(views)))
    places = nearest_size(data.sizes, sizes)
    for v, view in enumerate(views):
        for fold, surprise in enumerate(view.surprises(shuffled, folds, sizes)):
            surprises[fold].append(surprise)
            out = np.flatnonzero(folds == fold)
            cuts = cut_means(view.features[fold % len(view.features)], subset(shuffled, folds == fold), sizes)
            for place, size in enumerate(sizes):
                cut_scores[place, out, v] = surprise(cuts[place], np.minimum(data.sizes[out], size), place)
                whole = places[out] == place
                own[out[whole], v] = surprise(cuts[-1, whole], data.sizes[out[whole]], place)
    # Middles and widths come from bags that were cut to the size, as far as there are enough. Bags that are smaller
    # than the size stand in for larger ones with their own scores, in units of those of their own size: an error of B
    # moves the scores of large bags and of small bags by different amounts.
    scaling = [calibrating(data.sizes, size, FEWEST_FOR_SCALE) for size in sizes]
    middles = np.array([cut_scores[place, which].mean(axis=0) for place, which in enumerate(scaling)])
    widths = np.array([cut_scores[place, which].std(axis=0) for place, which in enumerate(scaling)])
    widths = np.where(widths > 0, widths, 1.0)
    totals = ((own - middles[places]) / widths[places]).sum(axis=1)
    scores = ((cut_scores - middles[:, None]) / widths[:, None]).sum(axis=2)
    scores = np.where(data.sizes >= sizes[:, None], scores, totals)
    chosen = [calibrating(data.sizes, size, max(fewest, FEWEST_FOR_CALIBRATION)) for size in sizes]
    calibration = ScoreCalibration(views, sizes, folds, surprises, middles, widths, scores, chosen)
    p = np.empty(len(data))
    for i, place in enumerate(places):
        others = chosen[place][chosen[place] != i]
        p[i] = (1.0 + (scores[place, others] >= totals[i]).sum()) / (1.0 + len(others))
    return calibration, p


class GroupAnomalyDetector(OutlierMixin, ValueParametersMixin, TakesBagsMixin, BaseEstimator):
    r"""Detector of anomalous bags (groups of rows), with p-values that allow for the size of a bag.

    The mean of a small bag is noisy, so it lies far from the others even where the bag is normal. A prior learned from
    normal bags (see :class:`BagPrior`) says how far the mean :math:`\hat\mu` of n rows may lie from the centre: its
    covariance is :math:`C_n = B + W/n`. A score is a standardised squared distance,

    .. math:: z_M = \frac{\langle x, M x\rangle - \operatorname{tr}(M C_n)}{\sqrt{2 \operatorname{tr}((M C_n)^2)}},
              \qquad x = \hat\mu - \bar\mu,

    and rows are looked at in two ways. In features of the kernel, scores for :math:`M = I` and
    :math:`M = C_n^{-1/2}` are added: the first finds bags that differ along directions of large variance, the second
    those that differ where normal bags do not. In moments, the means of standardised columns, of their absolute values
    and of absolute values of whitened columns, the form is :math:`M = C_n^{-1}`, a Mahalanobis distance; it sees
    relations of correlated columns that change. The p-value compares the sum of both scores, each
    standardised, with normal bags that were left out of the prior and cut to the size of the new bag. So normal bags of
    every size have false alarms at the rate ``alpha``, provided that what a bag contains does not depend on its size:
    else a small bag is compared with cuts of large bags that are unlike it. ``fit`` tests this on the training bags at
    the nominal level 1 %, and warns where it does not hold.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The kernel between rows. With a bandwidth "median", half the median is taken.
    alpha : float in (0, 1), default 0.1
        The rate of false alarms of ``predict``. ``fit`` needs 1/alpha bags or more, since no p-value of fewer is so
        small.
    features : Nystroem or Fourier, optional
        Features of the kernel. Default 200 Nyström landmarks.
    ridge : float > 0, default 0.05
        The ridge of the covariance within bags in features of the kernel, relative to its mean eigenvalue.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the landmarks, of the folds and of the cuts. None is a fixed seed, so that two fits agree.

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    p_values_ : array of shape (n,)
        The p-value of each bag of ``fit``, by the others: for "which of my groups is anomalous?" A fold of the bags is
        scored by the prior of the other folds.
    sizes_ : array
        Sizes at which training bags were cut for the calibration.
    views_ : list of str
        The ways in which rows are looked at: "kernel" and "moments".
    n_features_in_ : int
        Columns of the bags.
    feature_names_in_ : array of str
        Names of the columns, where bags are data frames.

    See Also
    --------
    OneClassSupportMeasureMachine : For bags of similar sizes, without p-values.
    BagPrior : The prior that the scores come from.
    DriftMonitor : For rows that arrive one after the other.

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
    >>> odd = [np.repeat(rng.normal(size=(n, 1)), 2, axis=1) for n in (60, 80, 90)]  # normal columns, always equal
    >>> detector.predict(odd).tolist()
    [-1, -1, -1]
    >>> print(detector.explain(odd)[1].deviations[0])
    correlation of column 0 and column 1 higher (z = 20.6)

    The same among the bags at hand:

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
        """Learn from normal bags; a few anomalous ones among them make the test more timid, and do no other harm."""
        check_kernel("kernel", self.kernel)
        check_features(self.features)
        check_number("ridge", self.ridge, low=0, open_low=True)
        if not 0 < check_number("alpha", self.alpha, low=0, high=1) < 1:
            raise ValueError(f"alpha={self.alpha!r} must lie between 0 and 1; pass for example 0.1")
        given = check_bags(bags, self, reset=True)
        fewest = check_enough(len(given), float(self.alpha))
        data, order, keys = ordered_by_value(given)
        rng = check_rng(0 if self.random_state is None else self.random_state)
        landmarks, kept = landmark_rows(data, rng)
        if self.features is not None:
            kept = data
        folds = rng.permutation(np.arange(len(kept)) % FOLDS)
        whitenings = [Whitening.of(subset(kept, folds != fold).rows) for fold in range(FOLDS)]
        rows = random_rows(kept.rows, LIGHT_ROWS, np.random.default_rng(0))
        (kernel,) = with_widths(self.kernel, rows, (WIDTH,))
        kernel_features = fit_features(self.features, kernel, rows, landmarks=landmarks)
        views = [
            View("kernel", [kernel_features], (0.0, 0.5), float(self.ridge)),
            View("moments", [MomentFeatures(each) for each in whitenings], (1.0,), MOMENT_RIDGE),
        ]
        self._calibration, p = calibrate(views, kept, folds, fewest, rng)
        self.p_values_ = np.empty(len(p))
        self.p_values_[order] = p
        self._p_of_fit = dict(zip(keys, p.tolist(), strict=True))
        self._column_prior = ColumnPrior.of(kept, Whitening.of(kept.rows))
        self.kernel_, self.sizes_ = kernel_features.kernel_, self._calibration.sizes
        self.views_ = [view.name for view in views]
        self._check_sizes(size_dependence(light_means(kernel_features, kept), kept.sizes, rng), given.sizes)
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
        """Fit, and return -1 for anomalous bags, whose ``p_values_`` are at most ``alpha``, and 1 for others."""
        return np.where(self.fit(bags).p_values_ <= self.alpha, -1, 1)

    def score_samples(self, bags: Any) -> Array:
        """Return how normal each bag is, the larger the more: 0 on average, and level in size, for normal bags."""
        scores, places = self._scores(bags)
        normal = [self._calibration.scores[place, chosen] for place, chosen in enumerate(self._calibration.chosen)]
        middles, widths = np.array([[each.mean(), each.std() or 1.0] for each in normal]).T
        return (middles[places] - scores.sum(axis=2).mean(axis=0)) / widths[places]

    def p_values(self, bags: Any) -> Array:
        """The probability that a normal bag of the same size is at least as anomalous.

        For new bags. Those of ``fit`` have shaped the prior, so that they look more normal than they are: they have
        their p-values in ``p_values_``.
        """
        scores, places = self._scores(bags)
        return self._calibration.p_values(scores, places)

    def predict(self, bags: Any) -> NDArray[np.intp]:
        """Return -1 for bags with a p-value of at most ``alpha``, and 1 for the others."""
        return np.where(self.p_values(bags) <= self.alpha, -1, 1)

    def explain(self, bags: Any) -> list[BagExplanation]:
        """Explain how each bag differs from normal ones of its size: columns, with direction, and the view that saw it.

        The mean and the dispersion of each column and the correlations of pairs of columns are compared with those of
        the training bags; columns also given the others, as residuals of a regression on them that was fitted to all
        rows. The z-values describe; whether a bag is anomalous is for its p-value to say, which is that of
        ``p_values_`` for a bag of ``fit``, and of ``p_values`` for a new one.
        """
        scores, places = self._scores(bags)
        data, names = check_bags(bags, self, reset=False), getattr(self, "feature_names_in_", self._bag_features)
        deviations = self._column_prior.explain(data, names)
        p, by_view = self._calibration.p_values(scores, places), scores.mean(axis=0)
        keys = map(bag_key, data.parts(data.rows))
        said = [self._p_of_fit.get(key, new) for key, new in zip(keys, p.tolist(), strict=True)]
        return [
            BagExplanation(said[i], dict(zip(self.views_, by_view[i].tolist(), strict=True)), deviations[i])
            for i in range(len(data))
        ]

    @one_blas_thread()
    def _scores(self, bags: Any) -> tuple[Array, NDArray[np.intp]]:
        check_is_fitted(self, "kernel_")
        return self._calibration.view_scores(check_bags(bags, self, reset=False))


def check_enough(n: int, alpha: float) -> int:
    """The number of bags that alpha needs, or a ValueError where there are fewer."""
    if n < FEWEST_BAGS:
        raise ValueError(
            f"too few bags to calibrate with, {n}; pass {FEWEST_BAGS} or more, and {round(2 / alpha)} or more for "
            f"alpha={alpha:g}"
        )
    fewest = int(np.ceil(1.0 / alpha))
    if n < fewest:
        raise ValueError(
            f"alpha={alpha:g} is below every p-value of {n} bags, so there would never be an alarm; pass {fewest:,} "
            f"bags or more, or alpha={np.ceil(1e4 / n) / 1e4:g} or more"
        )
    return fewest


def ordered_by_value(data: Bags) -> tuple[Bags, NDArray[np.intp], list[bytes]]:
    """The bags in an order that their values fix, rows within them too; their numbers in ``data``, and their keys.

    Landmarks, folds and cuts are drawn by number, so no decision depends on the order in which bags, rows and columns
    came.
    """
    columns = columns_by_value(data.rows)
    parts = [rows[np.lexsort(rows.T[columns[::-1]])] for rows in data.parts(data.rows)]
    keys = [bag_key(part[:, columns]) for part in parts]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return Bags.of([parts[i] for i in order]), np.array(order), [bag_key(parts[i]) for i in order]


def bag_key(rows: Array) -> bytes:
    """A digest of the rows in whatever order they come."""
    ordered = rows[np.lexsort(rows.T[::-1])] + 0.0  # -0.0 is 0.0
    return blake2b(np.ascontiguousarray(ordered, dtype=float).tobytes(), digest_size=16).digest()


def landmark_rows(data: Bags, rng: np.random.Generator) -> tuple[Array, Bags]:
    """Random rows as landmarks, and the bags without them.

    Bags that hold landmarks look unlike new bags, which hold none. So landmarks leave the calibration, where a bag
    gives at most a quarter of its rows, and all bags together at most LIGHT_LANDMARKS.
    """
    order = rng.permutation(len(data.rows))
    owners = np.repeat(np.arange(len(data)), data.sizes)[order]
    # The place of each row among those of its bag, in random order.
    by_bag = np.argsort(owners, kind="stable")
    rank = np.empty(len(order), dtype=np.intp)
    rank[by_bag] = np.concatenate([np.arange(size) for size in data.sizes])
    chosen = order[rank < data.sizes[owners] // 4][:LIGHT_LANDMARKS]
    if len(chosen) < min(FEWEST_LANDMARKS, len(order)):
        return data.rows[order[:LIGHT_LANDMARKS]], data
    kept = np.ones(len(order), dtype=bool)
    kept[chosen] = False
    sizes = np.add.reduceat(kept.astype(np.intp), data.offsets[:-1])
    return data.rows[chosen], Bags(data.rows[kept], np.cumsum([0, *sizes]))


FEWEST_LANDMARKS = 20
"""Where the bags can spare fewer rows, which would span little, landmarks stay in the bags."""


def nearest_size(sizes: NDArray[np.intp], grid: NDArray[np.intp]) -> NDArray[np.intp]:
    """The place in the grid of the size that is nearest to each size, by ratio."""
    return np.abs(np.log(sizes)[:, None] - np.log(grid)).argmin(axis=1)


def size_grid(largest: int) -> NDArray[np.intp]:
    """Sizes from 1 to the largest, in equal steps of their logarithm."""
    steps = int(np.floor(STEPS_TO_DOUBLE * np.log2(largest))) + 1
    return np.unique(np.round(2.0 ** (np.arange(steps + 1) / STEPS_TO_DOUBLE)).astype(int).clip(1, largest))


def shuffled_rows(data: Bags, rng: np.random.Generator) -> Bags:
    """Bags with their rows in random order."""
    return Bags.of([part[rng.permutation(len(part))] for part in data.parts(data.rows)])


def subset(data: Bags, chosen: NDArray[np.bool_]) -> Bags:
    """Some of the bags."""
    return Bags(data.rows[np.repeat(chosen, data.sizes)], np.cumsum([0, *data.sizes[chosen]]))


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


def cut_means(features: RowFeatures, shuffled: Bags, sizes: NDArray[np.intp]) -> Array:
    """Means of the first rows of all bags up to each size, or of whole bags: shape (sizes, bags, m)."""
    starts = shuffled.offsets[:-1]
    ends = np.minimum.outer(shuffled.sizes, sizes)  # (bags, sizes): pieces between them make up the cuts
    offsets = np.unique(np.append(shuffled.offsets, starts[:, None] + ends))
    pieces = light_means(features, Bags(shuffled.rows, offsets))
    sums = np.cumsum(np.diff(offsets)[:, None] * pieces, axis=0)
    sums = np.concatenate([np.zeros((1, sums.shape[1])), sums])
    firsts = np.searchsorted(offsets, starts)
    cuts = np.empty((len(sizes), len(shuffled), sums.shape[1]))
    for place in range(len(sizes)):
        stops = np.searchsorted(offsets, starts + ends[:, place])
        cuts[place] = (sums[stops] - sums[firsts]) / ends[:, place, None]
    return cuts


def calibrating(sizes: NDArray[np.intp], size: int, fewest: int) -> NDArray[np.intp]:
    """Numbers of the bags of at least a size; where those are few, of the largest ones and all that are as large."""
    smallest = np.sort(sizes)[-min(fewest, len(sizes))]
    return np.flatnonzero(sizes >= min(size, smallest))

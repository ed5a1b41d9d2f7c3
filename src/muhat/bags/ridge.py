"""Ridge regression and classification on bags (distribution regression) with size-dependent uncertainty.

Constants that are not derived were chosen on the halves of ``benchmarks/groups.py`` and ``natural_groups.py`` that are
there for it (``--set chosen`` and ``--set choose``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array, RandomState
from muhat._support.validation import (
    check_flag,
    check_not_masked,
    check_number,
    check_rng,
    unchanged_on_error,
    warn_caller,
)
from muhat.bags.data import Bags, TakesBagsMixin, check_bag_weights, check_bags, check_labels, check_row_labels
from muhat.bags.distribution_kernel import Level2, check_level2
from muhat.bags.efron_morris import Pool, fit_pools
from muhat.bags.moments import (
    LIGHT_LANDMARKS,
    LIGHT_ROWS,
    RIDGE,
    check_features,
    check_noise,
    fit_features,
    light_means,
    light_moments,
)
from muhat.bags.stacking import (
    COMPONENTS,
    FEWEST_TO_STACK,
    FOLDS,
    LEARNERS,
    bag_summaries,
    class_probabilities,
    fit_stack,
)
from muhat.bags.weighted_ridge import BagVectors, RidgeLearner, SizeNoise, fit_ridges
from muhat.features.base import BaseFeatures
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel, check_kernel, with_widths
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import columns_by_value, random_folds
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.resources import one_blas_thread
from muhat.linalg.spectrum import thin_svd
from muhat.tables.scales import ColumnScales

LEVEL2_LANDMARKS = 300
"""Bags that are landmarks of a level-2 kernel, in O(n · 300²); up to as many bags it is exact."""

WIDTHS = (0.5, 1.0, 2.0)
"""Multiples of the median that are tried as bandwidths."""

LEVEL2_WIDTHS = (1.0, 2.0)  # the same for level 2, beside the linear kernel

FEWEST_FOR_STD = 20
"""With fewer bags, left-out errors do not tell how wide intervals must be: with 10, those of 95 % cover .45 to .77."""

FEWEST_TO_WARN, CONSTANT = 5, 1e-3
"""Bags from which on predictions that do not vary are worth a warning, and the share of the spread of y that is none:
a ridge that keeps nothing has 1e-4 of it, and one that learned a little a hundredth or more."""

_LEAST_VARIANCE = 1e-12  # of a target with the variance 1, where the bags of a fold have one and the same target


class RidgeVectors(NamedTuple):
    """From bags to vectors: features of rows, averaged, pooled by a prior, and features of level 2 of those."""

    features: BaseFeatures
    pool: Pool
    pooled: bool
    level2: Level2
    level2_features: Nystroem | None
    axes: Array  # principal axes of the pooled means
    columns: NDArray[np.intp]  # by value, in whose order summaries are, so that trees and folds do not depend on it

    def of(self, bags: Bags, Z: Array | None = None) -> BagVectors:
        """Vectors of bags, without summaries; ``Z`` are their means about the centre of the prior, if these are known.

        The means are shrunk where they should be.
        """
        if Z is None:
            Z = light_means(self.features, bags) / self.pool.unit - self.pool.centre
            Z = self.pool.shrunk(Z, bags.sizes, 0.0) if self.pooled else Z
        mapped, outside = Z, np.zeros(len(Z))
        if self.level2_features is not None:
            mapped = self.level2_features.evaluate(Z)
            outside = self.level2_features.kernel_.diagonal(Z) - np.square(mapped).sum(axis=1)
        return BagVectors(mapped, outside.clip(0.0), Z @ self.axes, np.empty((len(Z), 0)), bags.sizes)


class _RidgeOnBags(ValueParametersMixin, TakesBagsMixin, BaseEstimator, ABC):
    """Base of the two: one ridge regression for each column of targets, all in the same vectors of bags."""

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        level2: Level2 | Literal["loo"] = "loo",
        features: BaseFeatures | None = None,
        *,
        ridge: float = RIDGE,
        pool: bool = True,
        stack: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.level2 = level2
        self.features = features
        self.ridge = ridge
        self.pool = pool
        self.stack = stack
        self.random_state = random_state

    @one_blas_thread()
    @unchanged_on_error
    def fit(self, bags: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the kernels, and fit a ridge regression for each output (y of shape (n,) or (n, n_outputs)) or class.

        ``sample_weight`` are factors of the precision of each target; a bag of weight 0 takes no part. ``groups`` are
        labels of bags that are related, such as bags of one day: left-out predictions for the weights of the learners
        then leave out whole groups.
        """
        check_kernel("kernel", self.kernel)
        check_features(self.features)
        check_number("ridge", self.ridge, low=0, open_low=True)
        check_flag("pool", self.pool)
        check_flag("stack", self.stack)
        if self.level2 != "loo":
            check_level2(self.level2)
        data = check_bags(bags, self, reset=True)
        weights = check_bag_weights(sample_weight, len(data))
        related = None if groups is None else check_row_labels("groups", groups, len(data), of="bag")[1]
        present = np.flatnonzero(weights)
        if len(present) < _FEWEST_BAGS:
            raise ValueError(f"too few bags to regress on, {len(present)}; pass {_FEWEST_BAGS} or more")
        targets, labels = self._targets(y, weights)
        weights, targets = weights[present] / weights[present].mean(), targets[present]
        rng = check_rng(0 if self.random_state is None else self.random_state)
        chosen, seen, fitted = self._best(data, present, targets, weights, rng)
        self._n_bags, self._inflation = len(present), self._missed(data, present, targets, weights)
        stack = None
        if self.stack and len(present) >= FEWEST_TO_STACK:
            seen = seen._replace(summaries=bag_summaries(data, chosen.columns)[present])
            folds = stacking_folds(seen.summaries, None if related is None else related[present])
            seed = int(rng.integers(2**31))
            stack = fit_stack(fitted, seen, targets, None if labels is None else labels[present], weights, folds, seed)
        self._vectors, self._ridge, self._stack = chosen, fitted, stack
        spread = fitted.predict(seen.means).std(axis=0)
        learned = stack is not None or labels is not None or (spread >= CONSTANT * targets.std(axis=0)).any()
        if len(present) >= FEWEST_TO_WARN and not learned:
            warn_caller(
                f"nothing was learned beyond the mean of y, which is the prediction for every bag: {len(present)} bags "
                f"show no relation with y that noise would not; fit on more bags, or on columns that say more about y"
            )
        self.loo_score_ = -fitted.score
        self.kernel_, self.level2_ = chosen.features.kernel_, chosen.level2
        self.lam_ = np.array([each.lam for each in fitted.ridges])
        self.noise_: list[SizeNoise] = [each.noise for each in fitted.ridges]
        shares = (1.0, 0.0, 0.0) if stack is None else stack.weights.tolist()
        self.stack_weights_: dict[str, float] = dict(zip(LEARNERS, shares, strict=True))
        return self

    def _best(
        self, data: Bags, present: NDArray[np.intp], targets: Array, weights: Array, rng: np.random.Generator
    ) -> tuple[RidgeVectors, BagVectors, RidgeLearner]:
        """The likeliest choice of the kernels, by the targets of the bags that are present."""
        best: tuple[RidgeVectors, BagVectors, RidgeLearner] | None = None
        for vectors, means in self._candidates(data, rng):
            seen = vectors.of(data, means).part(present)
            fitted = fit_ridges(seen.means, targets, seen.sizes, weights)
            if best is None or fitted.score < best[2].score - _TIE:
                best = vectors, seen, fitted
        assert best is not None
        return best

    def _missed(self, data: Bags, present: NDArray[np.intp], targets: Array, weights: Array) -> Any:
        """Factor of the variances; 1 but for a few bags and numbers as targets."""
        return 1.0

    @abstractmethod
    def _targets(self, y: Any, weights: Array) -> tuple[Array, NDArray[np.intp] | None]:
        """Targets of all bags, one column per output, and the numbers of their classes."""

    @one_blas_thread()
    def _predicted(self, bags: Any) -> tuple[Array, Array, Array | None]:
        """Means and variances of the ridge, of shape (n, outputs), and what the stack says in place of the means."""
        check_is_fitted(self, "kernel_")
        data, stacked = check_bags(bags, self, reset=False), None
        seen = self._vectors.of(data)
        if self._stack is not None:
            summaries = bag_summaries(data, self._vectors.columns)
            stacked = self._stack.combined(self._ridge, seen._replace(summaries=summaries))
        return self._ridge.predict(seen.means), self._ridge.variances(seen.means, seen.sizes, seen.outside), stacked

    def _candidates(self, data: Bags, rng: np.random.Generator) -> Iterator[tuple[RidgeVectors, Array]]:
        """Every choice of the two kernels, with the centred means of the bags in its features."""
        rows = data.rows[rng.permutation(len(data.rows))[:LIGHT_ROWS]]
        columns = columns_by_value(data.rows)
        for kernel in with_widths(self.kernel, rows, WIDTHS):
            features = fit_features(self.features, kernel, rows, landmarks=rows[:LIGHT_LANDMARKS])
            moments = check_noise(light_moments(features, data))
            (pool,) = fit_pools(moments, data.sizes, [self.ridge])
            Z = moments.means / pool.unit - pool.centre
            if self.pool:  # by the map that new bags get: ridge weights of one map would be wrong for another
                Z = pool.shrunk(Z, data.sizes, 0.0)
            axes = thin_svd(Z - Z.mean(axis=0))[2][:COMPONENTS].T
            levels: list[Level2] = ["linear"] if self.level2 == "loo" else [self.level2]
            if self.level2 == "loo" and np.ptp(Z, axis=0).max() > _ROUNDING:  # where a row has the variance 1
                median: Any = Gaussian().resolve(Z).bandwidth
                levels += [Gaussian(factor * median) for factor in LEVEL2_WIDTHS]
            for level2 in levels:
                second = None
                if isinstance(level2, Kernel):
                    second = Nystroem(level2, min(len(Z), LEVEL2_LANDMARKS), random_state=0).fit(Z)
                    level2 = second.kernel_
                yield RidgeVectors(features, pool, self.pool, level2, second, axes, columns), Z


def stacking_folds(keys: Array, groups: NDArray[Any] | None) -> NDArray[np.intp]:
    """Random folds of bags, the same in whatever order they come; bags of one group are in one fold."""
    if groups is None:
        return random_folds(keys, FOLDS)
    labels, owners = np.unique(groups, return_inverse=True)
    if len(labels) < FOLDS:
        raise ValueError(f"groups has {len(labels)} different labels, and needs {FOLDS} or more; leave groups out")
    return np.random.default_rng(0).permutation(np.arange(len(labels)) % FOLDS)[owners]


class DistributionRidge(RegressorMixin, _RidgeOnBags):
    r"""Regression on bags (distribution regression): a number per group of rows, with size-dependent error bars.

    The mean of a bag of n rows is known with an error. A prior learned from all bags (see :class:`BagPrior`) gives its
    best guess :math:`m_i` and the covariance :math:`V_i` of what is left unknown, and

    .. math:: \operatorname{E} y_i = b + \langle\theta, m_i\rangle, \qquad
              \operatorname{Var} y_i = \sigma^2 + \langle\theta, V_i\theta\rangle .

    Small bags are shrunk more, count less in the fit, and get wider intervals. The variance is modelled as the function
    :math:`\sigma^2(1 + c/(1 + n/n_0))` of the size. The bandwidth, the level-2 kernel, λ, c and :math:`n_0` are chosen
    by the likelihood of each bag when it is left out, which has a closed form.

    Where the target depends on a threshold or an extreme within a bag, summary statistics tell more than a smooth mean.
    So the ridge is stacked with a ridge and with extremely randomised trees on summaries of the bags (mean, standard
    deviation and quantiles of each column, and log n); weights that minimise the squared error of left-out predictions
    combine the three, and the variance is rescaled to the left-out errors of the combination. With fewer than 40 bags,
    which do not tell learners apart, the ridge stands alone.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The kernel between rows. With a bandwidth "median", half, once and twice the median are tried.
    level2 : "loo", "linear" or Kernel, default "loo"
        The kernel between pooled means; "loo" tries the linear one and two Gaussians.
    features : Nystroem or Fourier, optional
        Features of the embedding kernel. Default 200 Nyström landmarks.
    ridge : float > 0, default 0.05
        The ridge of the covariance within bags, relative to its mean eigenvalue.
    pool : bool, default True
        Whether to shrink the mean of each bag by the prior; False takes plain averages.
    stack : bool, default True
        Whether to combine the ridge with the two learners on summaries, with 40 bags or more; False is the ridge alone.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the landmarks and trees. None is a fixed seed, so that two fits agree.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel between rows that was chosen, with its bandwidth as a number.
    level2_ : "linear" or Kernel
        The kernel between means that was chosen.
    lam_ : array of shape (n_outputs,)
        The λ of each output.
    noise_ : list of SizeNoise
        c and :math:`n_0` of each output; ``noise_[0](sizes)`` is the variance by size, relative to its smallest.
    loo_score_ : float
        The mean log-likelihood of a target when its bag is left out, summed over standardised outputs, of the ridge.
    stack_weights_ : dict of str to float
        The weights of the ridge on "kernel means", of the ridge on "summaries" and of the "trees".
    n_features_in_ : int
        Columns of the bags.
    feature_names_in_ : array of str
        Names of the columns, where bags are data frames.

    See Also
    --------
    DistributionRidgeClassifier : The same for classes.
    SupportMeasureClassifier : Support vector classification of bags.
    BagPrior : The prior over bags that the means are shrunk by.

    Notes
    -----
    For N rows in n bags and m features, O(N m) time for each bandwidth (plus that of the covariance within bags, from
    about 100,000 rows), and memory for the rows and n x m numbers. Several outputs share the kernels, and have a λ and
    a noise each.

    References
    ----------
    H. C. L. Law, D. J. Sutherland, D. Sejdinovic, S. Flaxman. Bayesian approaches to distribution regression.
    AISTATS 2018.

    D. H. Wolpert. Stacked generalization. Neural Networks 1992.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(1, 3, size=150)
    >>> bags = [rng.normal(scale=scale, size=(rng.integers(3, 200), 2)) for scale in y]  # the target is the spread
    >>> machine = mh.DistributionRidge(random_state=0).fit(bags[:100], y[:100])
    >>> print(f"{machine.score(bags[100:], y[100:]):.2f}")
    0.96
    >>> mean, std = machine.predict([bags[0][:3], bags[0]], return_std=True)
    >>> std.round(1)  # three rows tell less
    array([0.4, 0.2])
    """

    def _targets(self, y: Any, weights: Array) -> tuple[Array, None]:
        if y is None:
            raise ValueError("DistributionRidge requires y to be passed, but the target y is None")
        check_not_masked("y", y)
        try:
            targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"y holds labels ({error}), and a regression needs numbers; use DistributionRidgeClassifier for classes"
            ) from error
        if len(targets) != len(weights):
            raise ValueError(f"y has {len(targets)} entries for {len(weights)} bags; pass one entry per bag")
        self._one_output, targets = targets.ndim == 1, targets.reshape(len(weights), -1)
        present = targets[weights > 0]
        self._scales = ColumnScales.of(present)
        rounding = self._scales.scale <= _ROUNDING * np.abs(self._scales.centre)
        constant = np.flatnonzero((present == present[0]).all(axis=0) | rounding)
        if len(constant):
            raise ValueError(
                f"y is {self._scales.centre[constant[0]]:g} for every bag (output {constant[0]}), so there is nothing "
                f"to learn; pass targets that differ, or leave this output out"
            )
        return self._scales.divide(targets), None

    def _missed(self, data: Bags, present: NDArray[np.intp], targets: Array, weights: Array) -> Any:
        """By how much variances are too small where few bags choose the prior, the kernels, λ and the noise as well.

        Everything is fitted again without each tenth of the bags. The factor is the mean square of the standardised
        errors of the bags that were left out, but at least 1, times the square of Student's over the normal quantile,
        so that mean ± 1.96 std holds 95 % of new targets.
        """
        n = len(present)
        if not FEWEST_FOR_STD <= n < FEWEST_TO_STACK:
            return 1.0
        numbers, parts = np.arange(n), data.parts(data.rows)
        unit = power_of_two_near(float(np.abs(data.rows).max()))  # numbers whose squares do not overflow
        summaries = [[(part / unit).mean(), (part / unit).std(), len(part)] for part in parts]
        folds = random_folds(np.array(summaries)[present], FOLDS)
        squares = np.full(targets.shape, np.nan)
        for fold in range(FOLDS):
            kept, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            inside, left = (Bags.of([parts[present[i]] for i in some]) for some in (kept, out))
            rng = np.random.default_rng(fold)
            vectors, _, ridge = self._best(inside, numbers[: len(kept)], targets[kept], weights[kept], rng)
            seen = vectors.of(left)
            variances = np.maximum(ridge.variances(seen.means, seen.sizes, seen.outside), _LEAST_VARIANCE)
            squares[out] = weights[out, None] * (targets[out] - ridge.predict(seen.means)) ** 2 / variances
        return np.maximum(1.0, squares.mean(axis=0)) * float(student.ppf(0.975, n - 1) / ndtri(0.975)) ** 2

    def predict(self, bags: Any, return_std: bool = False) -> Any:
        """Predict the target of each bag, of shape (n,) or (n, n_outputs).

        With ``return_std`` the standard deviation of a new target is returned as well; small bags have larger ones. It
        needs 20 bags in ``fit``, and with fewer than 40 it is scaled by the errors of bags that were left out.
        """
        check_is_fitted(self, "kernel_")
        if return_std and self._n_bags < FEWEST_FOR_STD:
            raise ValueError(
                f"return_std=True needs {FEWEST_FOR_STD} bags in fit, and there were {self._n_bags}, which do not tell "
                f"how far predictions are off; fit on more bags, or call predict without return_std"
            )
        means, variances, stacked = self._predicted(bags)
        variances = variances * self._inflation
        if self._stack is not None and stacked is not None:
            means, variances = stacked, variances * self._stack.inflation
        chosen = (slice(None), 0) if self._one_output else slice(None)
        mean = self._scales.restore(means)[chosen]
        return (mean, (np.sqrt(variances) * self._scales.scale)[chosen]) if return_std else mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class DistributionRidgeClassifier(ClassifierMixin, _RidgeOnBags):
    r"""Classification of bags (groups of rows), with probabilities that depend on the size of a bag.

    Each class has a target, 1 for its bags and −1 for the others (two classes share one), which the ridge regression of
    :class:`DistributionRidge` predicts; it is stacked with the same two learners on summaries, by weights that maximise
    the likelihood of left-out probabilities. As for numbers, small bags are shrunk more and count less in the fit, and
    nothing has to be searched.

    Parameters
    ----------
    kernel, level2, features, ridge, pool, stack, random_state
        See :class:`DistributionRidge`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    kernel_, level2_, lam_, noise_, loo_score_, stack_weights_, n_features_in_, feature_names_in_
        See :class:`DistributionRidge`; an output is a class, and with two classes the second.

    See Also
    --------
    DistributionRidge : The same for numbers.
    SupportMeasureClassifier : A support vector classifier of bags.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> bags = [rng.normal(scale=1 + label / 2, size=(rng.integers(3, 60), 2)) for label in y]  # they differ in spread
    >>> machine = mh.DistributionRidgeClassifier().fit(bags[:80], y[:80])
    >>> print(f"{machine.score(bags[80:], y[80:]):.2f}")
    1.00
    >>> machine.predict_proba([bags[1][:4], bags[1]]).round(2)  # four rows tell less
    array([[0.09, 0.91],
           [0.  , 1.  ]])
    """

    def _targets(self, y: Any, weights: Array) -> tuple[Array, NDArray[np.intp]]:
        labels = check_labels(self, weights, y)
        self.classes_ = np.unique(labels)
        absent = np.setdiff1d(self.classes_, labels[weights > 0])
        if len(absent):
            raise ValueError(
                f"all bags of class {absent[0]!r} have sample_weight 0; leave them out, or give them weight"
            )
        numbers = np.searchsorted(self.classes_, labels)
        of_class = np.eye(len(self.classes_))[numbers][:, 1 if len(self.classes_) == 2 else 0 :]
        return 2.0 * of_class - 1.0, numbers

    def decision_function(self, bags: Any) -> Array:
        """Return the logarithm of the probability of each class, or the log-odds of the second of two."""
        logs = np.log(np.maximum(self.predict_proba(bags), np.finfo(float).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict(self, bags: Any) -> NDArray[Any]:
        """Predict the class of each bag, that of the largest probability."""
        probabilities = self.predict_proba(bags)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, bags: Any) -> Array:
        r"""The probability of each class; small bags are left in more doubt.

        In a ridge with mean m and standard deviation s of the target of a class it is :math:`\Phi(m/s)`, the
        probability of a positive target, and several classes share the probability in proportion to it. The
        probabilities of the learners are averaged with their weights.
        """
        means, variances, stacked = self._predicted(bags)
        return class_probabilities(means, variances) if stacked is None else stacked


_FEWEST_BAGS = 3  # a line through two bags leaves no residual

_TIE = 1e-9
"""Scores this close are ties, and a tie goes to the kernel that was tried first."""

_ROUNDING = 1e-12  # of targets and means, relative to their size

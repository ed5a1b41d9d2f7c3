"""Ridge regression and classification on bags (distribution regression) with size-dependent uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from muhat.bags.data import Bags, TakesBagsMixin, asking_for_numbers, check_bag_weights, check_bags, check_labels
from muhat.bags.distribution_kernel import Level2, check_level2
from muhat.bags.pooling import Pool, fit_pool, left_out_means
from muhat.bags.prior import check_noise
from muhat.bags.weighted_ridge import SizeNoise, WeightedRidge, fit_by_size
from muhat.bags.whitening import RIDGE, check_features, light_features, light_moments, light_sample, with_widths
from muhat.features.base import BaseFeatures
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import one_blas_thread
from muhat.parameters import ValueParametersMixin
from muhat.tables.scales import ColumnScales
from muhat.types import Array, RandomState
from muhat.validation import check_flag, check_number, check_rng, unchanged_on_error

LEVEL2_LANDMARKS = 300
"""Bags that are landmarks of a level-2 kernel; up to as many bags it is exact."""


WIDTHS = (0.5, 1.0, 2.0)
"""Multiples of the median that are tried as bandwidths."""


LEVEL2_WIDTHS = (1.0, 2.0)


class Vectors(NamedTuple):
    """Bags as vectors: features of rows, averaged, pooled, and features of level 2 of those."""

    features: BaseFeatures
    pool: Pool
    pooled: bool
    level2: Level2
    level2_features: Nystroem | None

    def of(self, means: Array, sizes: NDArray[np.intp]) -> tuple[Array, Array]:
        """Vectors of new bags, and the squared part of each that the features of level 2 miss."""
        X = means / self.pool.unit - self.pool.centre
        return self.of_centred(self.pool.shrunk(X, sizes, 0.0) if self.pooled else X)

    def of_centred(self, Z: Array) -> tuple[Array, Array]:
        """The same of means about the centre of the prior, shrunk where they should be."""
        if self.level2_features is None:
            return Z, np.zeros(len(Z))
        mapped = self.level2_features.transform(Z)
        outside = self.level2_features.kernel_.diagonal(Z) - np.square(mapped).sum(axis=1)
        return mapped, outside.clip(0.0)


class _RidgeOnBags(ValueParametersMixin, TakesBagsMixin, BaseEstimator):
    """Base of the two: one ridge regression for each column of targets, all in the same vectors of bags."""

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        level2: Level2 | Literal["loo"] = "loo",
        features: BaseFeatures | None = None,
        *,
        ridge: float = RIDGE,
        pool: bool = True,
        weight_by_size: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.level2 = level2
        self.features = features
        self.ridge = ridge
        self.pool = pool
        self.weight_by_size = weight_by_size
        self.random_state = random_state

    def _fit_targets(self, data: Bags, targets: Array, sample_weight: Any) -> None:
        """Choose the kernels, and fit a ridge regression to each column."""
        weights = check_bag_weights(sample_weight, len(data))
        present = np.flatnonzero(weights)
        if len(present) < _FEWEST_BAGS:
            raise ValueError(f"{len(present)} bags are too few to regress on; pass {_FEWEST_BAGS} or more")
        units = ColumnScales.of(targets[present])
        check_varies(targets[present], units)
        standard = units.divide(targets[present])
        weights = weights[present] / weights[present].mean()
        best: tuple[float, Vectors, list[WeightedRidge]] | None = None
        for vectors, means in self._candidates(data):
            Z, _ = vectors.of_centred(means[present])
            by_size = bool(self.weight_by_size)
            fits = [fit_by_size(Z, t, data.sizes[present], weights, by_size=by_size) for t in standard.T]
            score = sum(each.score for each in fits)
            if best is None or score < best[0] - _TIE:
                best = score, vectors, fits
        assert best is not None
        self.loo_score_, self._vectors, self._ridges = -best[0], best[1], best[2]
        self._units = units
        self.kernel_, self.level2_ = self._vectors.features.kernel_, self._vectors.level2
        self.lam_ = np.array([each.lam for each in self._ridges])
        self.noise_: list[SizeNoise] = [each.noise for each in self._ridges]

    @one_blas_thread()
    def _predict_targets(self, bags: Any, *, with_stds: bool = True) -> tuple[Array, Array | None]:
        """Mean and standard deviation of each target of new bags."""
        check_is_fitted(self, "kernel_")
        data = check_bags(bags, self, reset=False)
        moments = light_moments(self._vectors.features, data, within=False)
        Z, outside = self._vectors.of(moments.means, data.sizes)
        means = self._units.restore(np.column_stack([ridge.predict(Z) for ridge in self._ridges]))
        if not with_stds:
            return means, None
        variances = np.column_stack([ridge.variances(Z, data.sizes, outside) for ridge in self._ridges])
        return means, np.sqrt(variances) * self._units.scale

    def _check_parameters(self) -> None:
        check_kernel("kernel", self.kernel)
        check_features(self.features)
        check_number("ridge", self.ridge, low=0, open_low=True)
        check_flag("pool", self.pool)
        check_flag("weight_by_size", self.weight_by_size)
        if not (isinstance(self.level2, str) and self.level2 == "loo"):
            check_level2(self.level2)

    def _candidates(self, data: Bags) -> Iterator[tuple[Vectors, Array]]:
        """Every choice of the two kernels, with the centred means of the bags in its features.

        Bags are shrunk by a prior of others, as new ones will be: shrunk by a prior that they are part of, they would
        look better known than they are.
        """
        rows = light_sample(data, check_rng(0 if self.random_state is None else self.random_state))
        for kernel in with_widths(self.kernel, rows, WIDTHS):
            features = light_features(self.features, kernel, rows)
            moments = check_noise(light_moments(features, data))
            pool = fit_pool(moments, data.sizes, self.ridge)
            Z = moments.means / pool.unit - pool.centre
            if self.pool:
                Z = left_out_means(pool, moments, data.sizes, self.ridge)
            for level2 in self._level2_candidates(Z):
                second = None
                if isinstance(level2, Kernel):
                    second = Nystroem(level2, min(len(Z), LEVEL2_LANDMARKS), random_state=0).fit(Z)
                    level2 = second.kernel_
                yield Vectors(features, pool, self.pool, level2, second), Z

    def _level2_candidates(self, Z: Array) -> list[Level2]:
        if not (isinstance(self.level2, str) and self.level2 == "loo"):
            return [self.level2]
        if not np.ptp(Z, axis=0).any():
            return ["linear"]  # bags that do not differ have no median distance
        median = Gaussian().resolve(Z).bandwidth
        return ["linear", *(Gaussian(factor * float(median)) for factor in LEVEL2_WIDTHS)]


class DistributionRidge(RegressorMixin, _RidgeOnBags):
    r"""A number for each group of rows, from ridge regression that knows how much each group can tell.

    The mean of a bag of n rows is known with an error. A prior learned from all bags (see :class:`BagPrior`) gives its
    best guess :math:`m_i` and the covariance :math:`V_i` of what is left unknown, and

    .. math:: \operatorname{E} y_i = b + \langle\theta, m_i\rangle, \qquad
              \operatorname{Var} y_i = \sigma^2 + \langle\theta, V_i\theta\rangle .

    Small bags are shrunk more, count less in the fit, and get wider intervals. The variance is modelled as the function
    :math:`\sigma^2(1 + c/(1 + n/n_0))` of the size. The bandwidth, the level-2 kernel, λ, c and :math:`n_0` are chosen
    by the likelihood of each bag when it is left out, which has a closed form. In the fit each bag is shrunk by a prior
    that other bags gave, as new bags are.

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The kernel between rows. With a bandwidth "median", half, once and twice the median are tried.
    level2 : "loo", "linear" or Kernel, default "loo"
        The kernel between pooled means; "loo" tries the linear one and two Gaussians.
    features : Nystroem or Fourier, optional
        Features of the embedding kernel. Default 200 Nyström landmarks.
    ridge : float > 0, default 0.05
        The ridge of the covariance within bags, in units of its mean eigenvalue.
    pool : bool, default True
        Whether to shrink the mean of each bag by the prior; False takes plain averages.
    weight_by_size : bool, default True
        Whether the variance may depend on the size; False gives all bags one.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the landmarks. None is a fixed seed, so that two fits agree.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel between rows that was chosen, with its bandwidth as a number.
    level2_ : "linear" or Kernel
        The kernel between means that was chosen.
    lam_ : array of shape (n_outputs,)
        The λ of each output.
    noise_ : list of SizeNoise
        c and :math:`n_0` of each output; ``noise_[0](sizes)`` is the variance by size, in units of its smallest.
    loo_score_ : float
        The mean log-likelihood of a target when its bag is left out, summed over standardised outputs.
    n_features_in_ : int
        Columns of the bags.

    Notes
    -----
    For N rows in n bags and m features, O(N m) time for each bandwidth (plus that of the covariance within bags, from
    about 100,000 rows), and memory for the rows and n x m numbers. Several outputs share the kernels, and have a λ and
    a noise each.

    References
    ----------
    H. C. L. Law, D. J. Sutherland, D. Sejdinovic, S. Flaxman. Bayesian approaches to distribution regression.
    AISTATS 2018.

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

    @one_blas_thread()
    @unchanged_on_error
    def fit(self, bags: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the kernels, and fit a ridge regression for each output.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
        y : array of shape (n,) or (n, n_outputs)
            The targets of each bag.
        sample_weight : array of shape (n,), optional
            Factors of the precision of each target; a bag of weight 0 takes no part.

        Returns
        -------
        self
        """
        self._check_parameters()
        data = check_bags(bags, self, reset=True)
        targets, self._one_output = check_targets(y, len(data))
        self._fit_targets(data, targets, sample_weight)
        return self

    def predict(self, bags: Any, return_std: bool = False) -> Any:
        """The target of each bag.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
        return_std : bool, default False
            Whether to return the standard deviation of a new target as well; small bags have larger ones.

        Returns
        -------
        mean : array of shape (n,) or (n, n_outputs)
        std : array of the same shape
            With ``return_std``.
        """
        means, std = self._predict_targets(bags, with_stds=return_std)
        if std is None:
            return means[:, 0] if self._one_output else means
        return (means[:, 0], std[:, 0]) if self._one_output else (means, std)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class DistributionRidgeClassifier(ClassifierMixin, _RidgeOnBags):
    r"""A class for each group of rows, from the ridge regression of :class:`DistributionRidge`.

    Each class has a target, 1 for its bags and −1 for the others (two classes share one), and the largest prediction
    wins. As for numbers, small bags are shrunk more and count less in the fit, and nothing has to be searched: the
    bandwidth, the level-2 kernel, λ and the noise by size are chosen by closed-form leave-one-out.

    Parameters
    ----------
    kernel, level2, features, ridge, pool, weight_by_size, random_state
        See :class:`DistributionRidge`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    kernel_, level2_, lam_, noise_, loo_score_, n_features_in_
        See :class:`DistributionRidge`; an output is a class, and with two classes the second.

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
    array([[0.06, 0.94],
           [0.  , 1.  ]])
    """

    @one_blas_thread()
    @unchanged_on_error
    def fit(self, bags: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the kernels, and fit a ridge regression for each class.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)
        y : array of shape (n,)
            The class of each bag.
        sample_weight : array of shape (n,), optional
            Factors of the precision of each target; a bag of weight 0 takes no part.

        Returns
        -------
        self
        """
        self._check_parameters()
        labels = check_labels(self, bags, y)
        data = check_bags(bags, self, reset=True)
        weights = check_bag_weights(sample_weight, len(data))
        self.classes_ = np.unique(labels)
        absent = np.setdiff1d(self.classes_, labels[weights > 0])
        if len(absent):
            raise ValueError(
                f"all bags of class {absent[0]!r} have sample_weight 0; leave them out, or give them weight"
            )
        of_class = labels[:, None] == self.classes_[1 if len(self.classes_) == 2 else 0 :]
        self._fit_targets(data, np.where(of_class, 1.0, -1.0), weights)
        return self

    def decision_function(self, bags: Any) -> Array:
        """The prediction of each class: near 1 for the bags of a class, and near −1 for others.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)

        Returns
        -------
        array of shape (n, n_classes), or (n,) for two classes: positive for the second
        """
        means, _ = self._predict_targets(bags, with_stds=False)
        return means[:, 0] if len(self.classes_) == 2 else means

    def predict(self, bags: Any) -> NDArray[Any]:
        """The class of each bag.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)

        Returns
        -------
        array of shape (n,)
        """
        values = self.decision_function(bags)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]

    def predict_proba(self, bags: Any) -> Array:
        r"""The probability of each class; small bags are left in more doubt.

        With mean m and standard deviation s of the target of a class it is :math:`\Phi(m/s)`, the probability of a
        positive target, and several classes share the probability in proportion to it.

        Parameters
        ----------
        bags : sequence of arrays of shape (n_i, d)

        Returns
        -------
        array of shape (n, n_classes)
        """
        means, std = self._predict_targets(bags)
        assert std is not None
        scores = means / std
        return softmax(log_ndtr(np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores), axis=1)


_FEWEST_BAGS = 3


_TIE = 1e-9
"""Scores this close are ties, and a tie goes to the kernel that was tried first."""


def check_targets(y: Any, n: int) -> tuple[Array, bool]:
    """Targets as a matrix with a row a bag, and whether they were given as a vector."""
    if y is None:
        raise ValueError("DistributionRidge requires y to be passed, but the target y is None")
    with asking_for_numbers("DistributionRidgeClassifier"):
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    if len(targets) != n:
        raise ValueError(f"y has {len(targets)} entries for {n} bags; pass one entry a bag")
    return targets.reshape(n, -1), targets.ndim == 1


def check_varies(targets: Array, units: ColumnScales) -> None:
    """Raise a ValueError where a target is the same for all bags."""
    constant = np.flatnonzero((targets == targets[0]).all(axis=0) | (units.scale <= _ROUNDING * np.abs(units.centre)))
    if len(constant):
        raise ValueError(
            f"y is {units.centre[constant[0]]:g} for every bag (output {constant[0]}), so there is nothing to learn; "
            f"pass targets that differ, or leave this output out"
        )


_ROUNDING = 1e-12

"""Estimators of a kernel mean: the plain average, and simple shrinkage."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat import gram
from muhat.adapters import Precomputed, check_precomputed, is_precomputed
from muhat.elements import Element
from muhat.features import Nystroem
from muhat.kernels import Gaussian, Kernel
from muhat.lowrank import MeanChoice
from muhat.measures import Atoms
from muhat.selection import ScorePath, simple_score, simple_shrinkage
from muhat.streaming import SketchedMeanMixin, SketchPlan
from muhat.types import Array
from muhat.validation import check_gram, check_multiplicities, check_number, check_overflow, check_rows
from muhat.values import ValueParametersMixin


class BaseKernelMean(SketchedMeanMixin, ValueParametersMixin, BaseEstimator):
    r"""Base of the mean estimators: a fitted one has ``mean_``, an :class:`Element` of the space of ``kernel_``.

    ``score(X)`` is minus the paper's loss, the mean of :math:`\|\phi(x) - \hat\mu\|^2`. It compares estimators
    within one space. Across kernels it means nothing (a wider kernel always looks better): never choose a
    bandwidth by it.
    """

    kernel: Kernel | Literal["precomputed"]
    features: Nystroem | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the mean.

        Parameters
        ----------
        X : array of shape (n, d), n >= 2
            Or the Gram matrix (n, n) for ``kernel="precomputed"``.
        y : ignored
        sample_weight : array of shape (n,), optional
            Repetitions: weight 2 is the row twice, weight 0 the row absent.

        Returns
        -------
        self
        """
        if self.features is not None:
            return self._fit_features(X, sample_weight)
        rows = check_rows(X, estimator=self, min_rows=2)
        multiplicities = check_multiplicities(sample_weight, rows)
        if isinstance(self.kernel, Kernel):
            return self._fit_points(self.kernel.resolve(rows, multiplicities), rows, multiplicities)
        check_precomputed(self.kernel)
        kernel = Precomputed(check_gram(rows, name="X"))
        return self._fit_points(kernel, kernel.training_points(), multiplicities)

    def _fit_features(self, X: Any, sample_weight: Any) -> Self:
        if sample_weight is not None or is_precomputed(self.kernel):
            raise ValueError("features go with rows of equal weight and a kernel object; leave features=None otherwise")
        self.__dict__.pop("_sketch", None)
        return self.partial_fit(X)

    def _fit_points(self, kernel: Kernel, points: Array, multiplicities: Array | None = None) -> Self:
        """Fit to a resolved kernel and to points that were checked before."""
        with np.errstate(over="ignore"):
            check_overflow(kernel, kernel._diag(points))
        self.kernel_ = kernel
        self._multiplicities = multiplicities
        self._known_loo_score: float | None = None
        self.solver_ = "tiles"
        self._estimate(points, multiplicities_or_ones(points, multiplicities))
        return self

    def _estimate(self, points: Array, repetitions: Array) -> None:
        raise TypeError(f"{type(self).__name__} must define _estimate(points, repetitions)")

    def _store(self, points: Array, weights: Array, *others: Element) -> None:
        self.weights_ = weights
        self.mean_ = sum(others, start=Element(self.kernel_, Atoms.trusted(points, weights)))

    @property
    def loo_score_(self) -> float:
        """Leave-one-out score of the estimate: an honest estimate of its loss, up to a constant of the data."""
        if self._known_loo_score is None:
            if self.solver_ == "features":
                raise AttributeError('the sums of features do not tell the score of a given lam; use lam="loo"')
            self._known_loo_score = self._compute_loo_score()
        return self._known_loo_score

    def _compute_loo_score(self) -> float:
        raise TypeError(f"{type(self).__name__} must define _compute_loo_score()")

    def __dir__(self) -> list[str]:
        """The names that are there, a score only once it is known: completion and notebooks evaluate every name."""
        unknown = {"loo_score_"} if vars(self).get("_known_loo_score") is None else set()
        return [name for name in object.__dir__(self) if name not in unknown and hasattr(self, name)]

    def score(self, X: Any, y: Any = None) -> float:
        r"""Minus the mean of :math:`\|\phi(x) - \hat\mu\|^2` over the rows of X.

        Parameters
        ----------
        X : array of shape (m, d)
            For ``kernel="precomputed"`` the values k(X, training rows), of shape (m, n); the constant, the mean of
            k(x, x), is unknown then and left out.
        y : ignored

        Returns
        -------
        float
        """
        check_is_fitted(self, "mean_")
        rows = check_rows(X, estimator=self, reset=False)
        constant = 0.0 if isinstance(self.kernel_, Precomputed) else self.kernel_._diag(rows).mean()
        return float(2.0 * self.mean_.values(rows).mean() - constant - self.mean_.norm() ** 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


def multiplicities_or_ones(points: Array, multiplicities: Array | None) -> Array:
    """Repetitions of the rows, 1 each by default."""
    return np.ones(len(points)) if multiplicities is None else multiplicities


def _gram_means(kernel: Kernel, points: Array, repetitions: Array) -> tuple[float, float, float]:
    """n, ϱ and ρ of a sample whose rows repeat."""
    n = repetitions.sum()
    share = repetitions / n
    mean_gram = gram.quadratic_form(kernel._tile, points, share)
    return float(n), float(share @ kernel._diag(points)), max(mean_gram, 0.0)


class KernelMean(BaseKernelMean):
    r"""The plain average :math:`\hat\mu = \frac1n \sum_i k(x_i, \cdot)` (KME), which everybody uses.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
    features : Nystroem, optional
        Work in the span of landmarks, in memory that does not grow with n: ``fit`` for many rows, ``partial_fit`` for
        a stream. The weights are then those of the landmarks.

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    mean_ : Element
    weights_ : array of shape (n,)
        1/n each.
    loo_score_ : float
        Computed when asked for, in O(n²).
    solver_ : str
        "tiles", or "features" where those were given.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(5, random_state=0).sample(20, random_state=0)
    >>> mh.KernelMean().fit(X).mean_
    Element(Gaussian(bandwidth=21.5...), 20 atoms in 5 dimensions, total weight 1)
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        *,
        features: Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.features = features

    def _sketch_plan(self) -> SketchPlan:
        return SketchPlan()

    def _store_choice(self, choice: MeanChoice) -> None:
        self._known_loo_score = choice.score

    def _estimate(self, points: Array, repetitions: Array) -> None:
        self._store(points, repetitions / repetitions.sum())

    def _compute_loo_score(self) -> float:
        points = self.mean_.measures[0].points
        means = _gram_means(self.kernel_, points, multiplicities_or_ones(points, self._multiplicities))
        return float(simple_score(*means, 0.0))


class ShrunkKernelMean(BaseKernelMean):
    r"""Simple shrinkage (S-KMSE): :math:`\hat\mu_\alpha = \alpha f^* + (1 - \alpha)\hat\mu`.

    The leave-one-out optimum has a closed form (Theorem 3): for :math:`f^* = 0` it is
    :math:`\alpha_* = (\varrho - m) / (\varrho + (n-2)m)`, with ϱ the mean of k(x, x) and m the mean of k(x, x')
    over pairs of different rows. Toward another target it is that of the residuals φ(x) − f*.

    Differs from the paper: α is clipped to [0, 1]; where m ≤ 0 the estimate is the target.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
    shrinkage : "loo" or float in [0, 1], default "loo"
        The amount α; "loo" is the leave-one-out optimum.
    target : Element, optional
        f*, an element of the space of the fitted kernel: give the kernel a numeric bandwidth. Default zero.
    features : Nystroem, optional
        See :class:`KernelMean`; not with a target.

    Attributes
    ----------
    shrinkage_ : float
    kernel_, mean_, weights_, loo_score_
        See :class:`KernelMean`; the weights are those of the rows, (1−α)/n each.
    loo_path_ : ScorePath
        The leave-one-out score over α in [0, 1], to be plotted.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(30, random_state=0).sample(10, random_state=0)
    >>> round(mh.ShrunkKernelMean().fit(X).shrinkage_, 3)
    0.057
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        shrinkage: float | Literal["loo"] = "loo",
        target: Element | None = None,
        *,
        features: Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.shrinkage = shrinkage
        self.target = target
        self.features = features

    def _given_shrinkage(self) -> float | None:
        if isinstance(self.shrinkage, str) and self.shrinkage == "loo":
            return None
        return check_number("shrinkage", self.shrinkage, low=0, high=1, or_else='"loo"')

    def _sketch_plan(self) -> SketchPlan:
        if self.target is not None:
            raise ValueError(f"target={self.target!r} cannot be used with features; shrink toward zero: target=None")
        shrinkage = self._given_shrinkage()
        return SketchPlan(scale="loo" if shrinkage is None else 1.0 - shrinkage)

    def _store_choice(self, choice: MeanChoice) -> None:
        self.shrinkage_, self._known_loo_score = 1.0 - choice.scale, choice.score

    def _estimate(self, points: Array, repetitions: Array) -> None:
        n, mean_diag, mean_gram = _gram_means(self.kernel_, points, repetitions)
        if self.target is not None:
            offset = self._squared_offset(points, repetitions / n)
            mean_diag, mean_gram = max(mean_diag + offset, 0.0), max(mean_gram + offset, 0.0)
        given = self._given_shrinkage()
        self.shrinkage_ = simple_shrinkage(n, mean_diag, mean_gram) if given is None else given
        alphas = np.unique(np.append(np.linspace(0, 1, 101), self.shrinkage_))
        self.loo_path_ = ScorePath(alphas, simple_score(n, mean_diag, mean_gram, alphas))
        self._known_loo_score = float(simple_score(n, mean_diag, mean_gram, self.shrinkage_))
        pulls = [] if self.target is None else [self.shrinkage_ * self.target]
        self._store(points, (1.0 - self.shrinkage_) / n * repetitions, *pulls)

    def _squared_offset(self, points: Array, share: Array) -> float:
        """What the residuals φ(x) − f* add to every mean of inner products: ‖f*‖² − 2⟨f*, μ̂⟩."""
        if not isinstance(self.target, Element) or self.target.kernel != self.kernel_:
            raise ValueError(
                f"target={self.target!r} must be an Element of the space of {self.kernel_!r}; resolve the kernel "
                f"first, and give it to both: kernel = kernel.resolve(X); target = muhat.embed(kernel, ...)"
            )
        if self.target.n_features != points.shape[1]:
            raise ValueError(
                f"target={self.target!r} lives in {self.target.n_features} dimensions, X in {points.shape[1]}"
            )
        return float(self.target.norm() ** 2 - 2.0 * share @ self.target.values(points))

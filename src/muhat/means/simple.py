"""Plain average (KME) and simple shrinkage (S-KMSE, Theorem 3)."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from muhat.elements import Element, check_element
from muhat.features.feature_sums import MeanChoice
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.means.base import BaseKernelMean, fit_of
from muhat.means.fit import FitSample, MeanFit, Scored
from muhat.means.sketched import SketchedMeanMixin, SketchPlan
from muhat.shrinkage.scores import ScorePath, simple_score, simple_shrinkage
from muhat.types import Array
from muhat.validation import check_number_or, check_overflow


class Averages(NamedTuple):
    """Total number of rows n, mean of the diagonal ϱ and mean of all entries ρ of a Gram matrix whose rows count."""

    n: float
    mean_diag: float
    mean_gram: float


def averages_of_gram(K: Array, counts: Array | None = None) -> Averages:
    """n, ϱ and ρ of a Gram matrix."""
    share = equal_weights(len(K), counts)
    n = float(len(K) if counts is None else counts.sum())
    return Averages(n, float(share @ np.diag(K)), max(float(share @ K @ share), 0.0))


def averages_of_rows(kernel: Kernel, rows: Array, counts: Array | None = None) -> Averages:
    """n, ϱ and ρ of the Gram matrix of rows, in tiles: the matrix is never held."""
    share = equal_weights(len(rows), counts)
    n = float(len(rows) if counts is None else counts.sum())
    diagonal = _checked_diagonal(kernel, rows)
    return Averages(n, float(share @ diagonal), max(gram.quadratic_form(kernel, rows, share), 0.0))


def equal_weights(n: int, counts: Array | None = None, total: float = 1.0) -> Array:
    """Weights of the plain average of n rows that count, times ``total``."""
    return np.full(n, total / n) if counts is None else total / counts.sum() * counts


def _checked_diagonal(kernel: Kernel, rows: Array) -> Array:
    """The values k(x, x), or a ValueError where sums over all pairs would overflow."""
    with np.errstate(over="ignore"):
        diagonal = kernel.diagonal(rows)
    check_overflow(kernel, diagonal)
    return diagonal


def _plain_score(sample: FitSample) -> Scored:
    """Leave-one-out score of the plain average."""
    return Scored(float(simple_score(*averages_of_rows(sample.kernel, sample.rows, sample.counts), 0.0)))


class KernelMean(SketchedMeanMixin, BaseKernelMean):
    r"""The plain average :math:`\hat\mu = \frac1n \sum_i k(x_i, \cdot)` (KME), the usual estimate.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
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
    Element(Gaussian(bandwidth=21.0...), 20 atoms in 5 dimensions, total weight 1)
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        *,
        features: Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.features = features

    def sketch_plan(self) -> SketchPlan:
        return SketchPlan()

    def from_gram(self, K: Array, counts: Array | None = None) -> MeanFit:
        return MeanFit(equal_weights(len(K), counts), {"solver": "tiles"}, _plain_score)

    def from_sample(self, sample: FitSample) -> MeanFit:
        _checked_diagonal(sample.kernel, sample.rows)
        return self.from_gram(sample.rows, sample.counts)  # their number is all that matters


def simple_mean(
    averages: Averages, weights: Array, shrinkage: float | None = None, target: Element | None = None
) -> MeanFit:
    """Simple shrinkage (S-KMSE) of the plain average with these weights, toward zero or a target.

    Parameters
    ----------
    averages : Averages
        Of the Gram matrix; for a target, of the residuals φ(x) − f*.
    weights : array of shape (n,)
        The weights of the plain average.
    shrinkage : float, optional
        The amount α; by default the leave-one-out optimum in closed form (Theorem 3).
    target : Element, optional
        f*.
    """
    alpha = simple_shrinkage(*averages) if shrinkage is None else shrinkage
    return MeanFit(
        (1.0 - alpha) * weights,
        {"shrinkage": alpha, "solver": "tiles"},
        partial(_simple_scored, averages, alpha),
        None if target is None else partial(_given, target),
        alpha,
    )


def _given(target: Element) -> Element:
    return target


def _simple_scored(averages: Averages, alpha: float, sample: FitSample | None = None) -> Scored:
    """The leave-one-out score at α, and over α in [0, 1]."""
    alphas = np.unique(np.append(np.linspace(0, 1, 101), alpha))
    return Scored(float(simple_score(*averages, alpha)), ScorePath(alphas, simple_score(*averages, alphas)))


class ShrunkKernelMean(SketchedMeanMixin, BaseKernelMean):
    r"""Simple shrinkage (S-KMSE): :math:`\hat\mu_\alpha = \alpha f^* + (1 - \alpha)\hat\mu`.

    The leave-one-out optimum has a closed form (Theorem 3): for :math:`f^* = 0` it is
    :math:`\alpha_* = (\varrho - m) / (\varrho + (n-2)m)`, with ϱ the mean of k(x, x) and m the mean of k(x, x')
    over pairs of different rows. Toward another target it is that of the residuals φ(x) − f*.

    Differs from the paper: α is clipped to [0, 1]; where m ≤ 0 the estimate is the target.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
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
    0.054
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
        return check_number_or("shrinkage", self.shrinkage, "loo", low=0, high=1)

    def sketch_plan(self) -> SketchPlan:
        if self.target is not None:
            raise ValueError(f"target={self.target!r} cannot be used with features. Use target=None, which is zero")
        shrinkage = self._given_shrinkage()
        return SketchPlan(scale="loo" if shrinkage is None else 1.0 - shrinkage)

    def _named_choice(self, choice: MeanChoice) -> dict[str, float]:
        return {"shrinkage": 1.0 - choice.scale}

    def from_gram(self, K: Array, counts: Array | None = None) -> MeanFit:
        if self.target is not None:
            raise ValueError(f"target={self.target!r} cannot be used with a Gram matrix. Use target=None, or pass rows")
        return simple_mean(averages_of_gram(K, counts), equal_weights(len(K), counts), self._given_shrinkage())

    def from_sample(self, sample: FitSample) -> MeanFit:
        rows, counts, shrinkage = sample.rows, sample.counts, self._given_shrinkage()
        averages = averages_of_rows(sample.kernel, rows, counts)
        if self.target is not None:  # the residuals φ(x) − f* add ‖f*‖² − 2⟨f*, μ̂⟩ to every mean of inner products
            check_element("target", self.target, sample.kernel, rows.shape[1])
            at_rows = np.average(self.target.values(rows), weights=counts)
            offset = float(self.target.norm() ** 2 - 2.0 * at_rows)
            averages = Averages(averages.n, *(max(average + offset, 0.0) for average in averages[1:]))
        return simple_mean(averages, equal_weights(len(rows), counts), shrinkage, self.target)

    @property
    def loo_path_(self) -> ScorePath | None:
        """The leave-one-out score over α in [0, 1]."""
        return fit_of(self).loo_path

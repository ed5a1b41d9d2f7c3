"""Plain average (KME) and simple shrinkage (S-KMSE) with Theorem 3's leave-one-out amount α."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Literal, NamedTuple

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_number_or, check_overflow
from muhat.features.feature_gram import MeanChoice
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.linalg.resources import NUMBERS_OF_ONE_THREAD
from muhat.means.base import BaseKernelMean, FitSample, MeanFit, Scored, fit_of
from muhat.means.sketched import SketchedMeanMixin, SketchPlan
from muhat.rkhs.elements import Element, check_element
from muhat.shrinkage.scores import ScorePath, simple_score


class GramAverages(NamedTuple):
    """Number of rows n, mean of the diagonal ϱ, and mean of all entries ρ of a Gram matrix whose rows count."""

    n: float
    mean_diag: float
    mean_gram: float


def gram_averages(K: Array, counts: Array | None = None) -> GramAverages:
    """n, ϱ and ρ of a Gram matrix."""
    if counts is None:
        return GramAverages(len(K), float(K.trace() / len(K)), max(float(K.mean()), 0.0))
    share = counts / counts.sum()
    return GramAverages(float(counts.sum()), float(share @ np.diagonal(K)), max(float(share @ K @ share), 0.0))


def sample_averages(sample: FitSample) -> GramAverages:
    """n, ϱ and ρ of the Gram matrix of a sample; a large one is summed in tiles and never held."""
    kernel, rows, counts = sample.kernel, sample.rows, sample.counts
    if len(rows) <= gram.BLOCK:
        return gram_averages(sample.gram(), counts)
    share = equal_weights(len(rows), counts)
    diagonal = _checked_diagonal(kernel, rows)
    n = float(len(rows) if counts is None else counts.sum())
    return GramAverages(n, float(share @ diagonal), max(gram.quadratic_form(kernel, rows, share), 0.0))


def equal_weights(n: int, counts: Array | None = None, total: float = 1.0) -> Array:
    """Weights of the plain average of n rows that count, times ``total``."""
    return np.full(n, total / n) if counts is None else total / counts.sum() * counts


def _checked_diagonal(kernel: Kernel, rows: Array) -> Array:
    """The values k(x, x), or a ValueError where sums over all pairs would overflow."""
    with np.errstate(over="ignore"):
        diagonal = kernel.diagonal(rows)
    check_overflow(kernel, diagonal)
    return diagonal


class PlainFit(MeanFit):
    """The plain average; its leave-one-out score costs O(n²), where the average itself costs O(n)."""

    def late_score(self, sample: FitSample) -> Scored:
        return Scored(float(simple_score(*sample_averages(sample), 0.0)))


class KernelMean(SketchedMeanMixin, BaseKernelMean):
    r"""Empirical kernel mean (KME), the average :math:`\hat\mu = \frac1n \sum_i k(x_i, \cdot)`.

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

    See Also
    --------
    ShrunkKernelMean : Simple shrinkage of this average.
    AdaptiveKernelMean : Shrinkage toward a fitted Gaussian, with nothing to tune.
    MeanSketch : The same from sums of features, over one pass of the rows.
    embed : Mean element of a sample without an estimator.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(5, random_state=0).sample(20, random_state=0)
    >>> mh.KernelMean().fit(X).mean_
    Element(Gaussian(bandwidth=21.0...), 20 atoms in 5 dimensions, total weight 1)
    """

    _threads_from = NUMBERS_OF_ONE_THREAD

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
        return PlainFit(equal_weights(len(K), counts), {"solver": "tiles"})

    def from_sample(self, sample: FitSample) -> MeanFit:
        _checked_diagonal(sample.kernel, sample.rows)
        return self.from_gram(sample.rows, sample.counts)  # their number is all that matters


def simple_shrinkage(n: float, mean_diag: float, mean_gram: float) -> float:
    """The α in [0, 1] with the lowest leave-one-out score of (1−α)·average (Theorem 3, clipped).

    From the number of rows, the mean of the diagonal ϱ and the mean of all entries ρ of the Gram matrix.
    """
    # Theorem 3 has α = (ϱ − m) / (ϱ + (n−2) m) with m = (nρ − ϱ)/(n−1), the mean of k(x, x') over pairs of different
    # rows. Numerator and denominator are divided by ϱ, so that no product overflows.
    if not mean_diag > 0:
        return 0.0
    mean_offdiag = (n * mean_gram / mean_diag - 1.0) / (n - 1.0)
    alpha = (1.0 - mean_offdiag) / (1.0 + (n - 2.0) * mean_offdiag)
    return float(min(max(alpha, 0.0), 1.0))


@dataclass(frozen=True, eq=False, kw_only=True)
class SimpleFit(MeanFit):
    """Simple shrinkage by α toward a target: the averages of the Gram matrix give its score and the curve over α."""

    averages: GramAverages
    toward: Element | None = None

    @property
    def target(self) -> Element | None:
        return self.toward

    def late_score(self, sample: FitSample) -> Scored:
        alpha = self.chosen["shrinkage"]
        alphas = np.unique(np.append(np.linspace(0, 1, 101), alpha))
        path = ScorePath(alphas, simple_score(*self.averages, alphas))
        return Scored(float(simple_score(*self.averages, alpha)), path)


def simple_mean(
    K: Array | GramAverages,
    counts: Array | None = None,
    shrinkage: float | None = None,
    target: Element | None = None,
) -> MeanFit:
    """Simple shrinkage (S-KMSE): weights (1 − α)/n, by default at the leave-one-out optimum (:func:`simple_shrinkage`).

    For a target f*, the averages are those of the residuals φ(x) − f*.
    """
    averages = K if isinstance(K, GramAverages) else gram_averages(K, counts)
    alpha = simple_shrinkage(*averages) if shrinkage is None else shrinkage
    weights = equal_weights(int(averages.n), counts, 1.0 - alpha)
    chosen = {"shrinkage": alpha, "solver": "tiles"}
    target_weight = 0.0 if target is None else alpha
    return SimpleFit(weights, chosen, target_weight=target_weight, averages=averages, toward=target)


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

    See Also
    --------
    KernelMean : The average without shrinkage.
    SpectralKernelMean : Shrinks directions of little variance most.
    AdaptiveKernelMean : Combines both, toward a fitted Gaussian.
    oracle_shrinkage : The best amount for a known distribution.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(30, random_state=0).sample(10, random_state=0)
    >>> round(mh.ShrunkKernelMean().fit(X).shrinkage_, 3)
    0.054
    """

    _threads_from = NUMBERS_OF_ONE_THREAD

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
        return simple_mean(K, counts, self._given_shrinkage())

    def weights_from_gram(self, K: Array, counts: Array | None = None) -> Array:
        if K.ndim == 2 or counts is not None or self.target is not None:
            return super().weights_from_gram(K, counts)
        n, alpha = K.shape[-1], self._given_shrinkage()
        if alpha is None:  # the averages of all matrices at once
            mean_diag, mean_gram = K.trace(axis1=1, axis2=2) / n, K.mean(axis=(1, 2)).clip(0.0)
            alphas = list(map(simple_shrinkage, repeat(n), mean_diag.tolist(), mean_gram.tolist()))
        else:
            alphas = [alpha] * len(K)
        return np.repeat((1.0 - np.array(alphas)[:, None]) / n, n, axis=1)

    def from_sample(self, sample: FitSample) -> MeanFit:
        shrinkage, averages = self._given_shrinkage(), sample_averages(sample)
        if self.target is not None:  # the residuals φ(x) − f* add ‖f*‖² − 2⟨f*, μ̂⟩ to every mean of inner products
            check_element("target", self.target, sample.kernel, sample.rows.shape[1])
            at_rows = np.average(self.target.values(sample.rows), weights=sample.counts)
            offset = float(self.target.norm() ** 2 - 2.0 * at_rows)
            averages = GramAverages(averages.n, *(max(average + offset, 0.0) for average in averages[1:]))
        return simple_mean(averages, sample.counts, shrinkage, self.target)

    @property
    def loo_path_(self) -> ScorePath | None:
        """The leave-one-out score over α in [0, 1]."""
        return fit_of(self).loo_path

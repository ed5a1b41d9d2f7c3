"""Empirical average (KME) and simple shrinkage (S-KMSE) with the leave-one-out amount α of Theorem 3."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Literal

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_number_or
from muhat.grams import Gram, GramAverages, PairGram
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import NUMBERS_OF_ONE_THREAD
from muhat.means.base import BaseKernelMean, MeanFit, Scored, check_target, fit_of
from muhat.rkhs.elements import Element, check_element
from muhat.shrinkage.scores import ScorePath, simple_score

Shrinkage = float | Literal["loo"]


def given_shrinkage(shrinkage: Shrinkage) -> float | None:
    """An amount α that is given as a number, None where it is to be found."""
    return check_number_or("shrinkage", shrinkage, "loo", low=0, high=1)


class PlainFit(MeanFit):
    """The empirical average; its leave-one-out score costs O(n²), where the average itself costs O(n)."""

    def late_score(self, G: Gram) -> Scored:
        return Scored(float(simple_score(*G.averages(), 0.0)))


def plain_mean(G: Gram) -> MeanFit:
    """Estimate the mean by the empirical average (KME, equation 2): weights 1/n."""
    if isinstance(G, PairGram):
        G.diagonal()  # refuses what overflows
    return PlainFit(G.average(), {"solver": G.solver}, gram=G)


class KernelMean(BaseKernelMean):
    r"""Empirical kernel mean (KME), the average :math:`\hat\mu = \frac1n \sum_i k(x_i, \cdot)`.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.

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
        "tiles": nothing is decomposed.

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

    def __init__(self, kernel: Kernel | Literal["precomputed"] = Gaussian()) -> None:
        self.kernel = kernel

    def estimate(self, G: Gram) -> MeanFit:
        return plain_mean(G)


def simple_shrinkage(n: float, mean_diag: float, mean_gram: float) -> float:
    """The α in [0, 1] with the lowest leave-one-out score of (1−α)·average (Theorem 3, clipped).

    From the number of rows, the mean of the diagonal ϱ and the mean of all entries ρ of the Gram matrix.
    """
    # Theorem 3 has α = (ϱ − ρ) / ((n−2) ρ + ϱ/n), which is (ϱ − m) / (ϱ + (n−2) m) with m = (nρ − ϱ)/(n−1), the mean of
    # k(x, x') over pairs of different rows. Numerator and denominator are divided by ϱ, so that no product overflows.
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

    def late_score(self, G: Gram) -> Scored:
        alpha = self.chosen["shrinkage"]
        alphas = np.unique(np.append(np.linspace(0, 1, 101), alpha))
        path = ScorePath(alphas, simple_score(*self.averages, alphas))
        return Scored(float(simple_score(*self.averages, alpha)), path)


def simple_mean(G: Gram, shrinkage: Shrinkage = "loo", target: Element | None = None) -> MeanFit:
    """Estimate the mean by simple shrinkage (S-KMSE): weights (1 − α)/n, by default at the optimum of Theorem 3.

    Toward a target f* it is the optimum of the residuals φ(x) − f*.
    """
    given = given_shrinkage(shrinkage)
    averages = G.averages() if target is None else residual_averages(G, target)
    alpha = simple_shrinkage(*averages) if given is None else given
    weights, chosen = G.average(1.0 - alpha), {"shrinkage": alpha, "solver": G.solver}
    target_weight = 0.0 if target is None else alpha
    return SimpleFit(weights, chosen, gram=G, target_weight=target_weight, averages=averages, toward=target)


def residual_averages(G: Gram, target: Element) -> GramAverages:
    """n, ϱ and ρ of the residuals φ(x) − f*, which add ‖f*‖² − 2⟨f*, μ̂⟩ to every mean of inner products."""
    check_target(target, G)
    check_element("target", target, G.kernel, G.points.shape[1])
    n, *averages = G.averages()
    offset = float(target.norm() ** 2 - 2.0 * (G.average() @ target.values(G.points)))
    return GramAverages(n, *(max(average + offset, 0.0) for average in averages))


class ShrunkKernelMean(BaseKernelMean):
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
        shrinkage: Shrinkage = "loo",
        target: Element | None = None,
    ) -> None:
        self.kernel = kernel
        self.shrinkage = shrinkage
        self.target = target

    def estimate(self, G: Gram) -> MeanFit:
        return simple_mean(G, self.shrinkage, self.target)

    def stack_weights(self, stack: Array) -> Array:
        if self.shrinkage != "loo" or self.target is not None:
            return super().stack_weights(stack)
        n = stack.shape[-1]  # the averages of all matrices at once
        mean_diag, mean_gram = stack.trace(axis1=1, axis2=2) / n, stack.mean(axis=(1, 2)).clip(0.0)
        alphas = list(map(simple_shrinkage, repeat(n), mean_diag.tolist(), mean_gram.tolist()))
        return np.repeat((1.0 - np.array(alphas)[:, None]) / n, n, axis=1)

    @property
    def loo_path_(self) -> ScorePath | None:
        """The leave-one-out score over α in [0, 1]."""
        return fit_of(self).loo_path

"""The plain average, and simple shrinkage."""

from __future__ import annotations

from typing import Literal

import numpy as np

from muhat.elements import Element
from muhat.features.nystroem import Nystroem
from muhat.features.plan import SketchPlan
from muhat.features.sums import MeanChoice
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.means.base import BaseKernelMean, multiplicities_or_ones
from muhat.shrinkage.scores import ScorePath, simple_score, simple_shrinkage
from muhat.types import Array
from muhat.validation import check_number


def _gram_means(kernel: Kernel, points: Array, repetitions: Array) -> tuple[float, float, float]:
    """n, ϱ and ρ of a sample whose rows repeat."""
    n = repetitions.sum()
    share = repetitions / n
    mean_gram = gram.quadratic_form(kernel, points, share)
    return float(n), float(share @ kernel.diagonal(points)), max(mean_gram, 0.0)


class KernelMean(BaseKernelMean):
    r"""The plain average :math:`\hat\mu = \frac1n \sum_i k(x_i, \cdot)` (KME), which everybody uses.

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

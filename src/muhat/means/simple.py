"""The plain average, and simple shrinkage."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from muhat.elements import Element, check_element
from muhat.features.nystroem import Nystroem
from muhat.features.plan import SketchedMeanMixin, SketchPlan
from muhat.features.sums import MeanChoice
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.means.base import BaseKernelMean
from muhat.shrinkage.scores import ScorePath, simple_score, simple_shrinkage
from muhat.types import Array
from muhat.validation import check_number_or, check_overflow


def _means_of_rows(kernel: Kernel, rows: Array, counts: Array | None) -> tuple[float, float, float]:
    """n, ϱ and ρ of rows, in tiles: the matrix is never held."""
    n = float(len(rows) if counts is None else counts.sum())
    share = np.full(len(rows), 1.0 / n) if counts is None else counts / n
    diagonal = _checked_diagonal(kernel, rows)
    mean_gram = gram.quadratic_form(kernel, rows, share)
    return n, float(share @ diagonal), max(mean_gram, 0.0)


def _checked_diagonal(kernel: Kernel, rows: Array) -> Array:
    """The values k(x, x), or a ValueError where sums over all pairs would overflow."""
    with np.errstate(over="ignore"):
        diagonal = kernel.diagonal(rows)
    check_overflow(kernel, diagonal)
    return diagonal


def means_of_gram(K: Array, counts: Array | None = None) -> tuple[float, float, float]:
    """n, ϱ (the mean of the diagonal) and ρ (the mean of all entries) of a Gram matrix whose rows count."""
    n = float(len(K) if counts is None else counts.sum())
    share = np.full(len(K), 1.0 / n) if counts is None else counts / n
    return n, float(share @ np.diag(K)), max(float(share @ K @ share), 0.0)


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

    def _sketch_plan(self) -> SketchPlan:
        return SketchPlan()

    def _store_choice(self, choice: MeanChoice) -> None:
        pass

    def weights_from_gram(self, K: Array, counts: Array | None = None) -> Array:
        self.solver_ = "tiles"
        return np.full(len(K), 1.0 / len(K)) if counts is None else counts / counts.sum()

    def _weights_from_rows(self, rows: Array, counts: Array | None) -> Array:
        _checked_diagonal(self.kernel_, rows)
        return self.weights_from_gram(rows, counts)  # their number is all that matters

    def _loo_score(self, rows: Array, counts: Array | None) -> float:
        return float(simple_score(*_means_of_rows(self.kernel_, rows, counts), 0.0))


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

    def _sketch_plan(self) -> SketchPlan:
        if self.target is not None:
            raise ValueError(f"target={self.target!r} cannot be used with features. Use target=None, which is zero")
        shrinkage = self._given_shrinkage()
        return SketchPlan(scale="loo" if shrinkage is None else 1.0 - shrinkage)

    def _store_choice(self, choice: MeanChoice) -> None:
        self.shrinkage_ = 1.0 - choice.scale
        for known in ("loo_path_", "_averages"):  # those of an earlier fit
            self.__dict__.pop(known, None)

    def weights_from_gram(self, K: Array, counts: Array | None = None) -> Array:
        if self.target is not None:
            raise ValueError(f"target={self.target!r} cannot be used with a Gram matrix. Use target=None, or pass rows")
        return self._shrunk_weights(counts, len(K), *means_of_gram(K, counts))

    def _weights_from_rows(self, rows: Array, counts: Array | None) -> Array:
        n, mean_diag, mean_gram = _means_of_rows(self.kernel_, rows, counts)
        if self.target is not None:  # the residuals φ(x) − f* add ‖f*‖² − 2⟨f*, μ̂⟩ to every mean of inner products
            check_element("target", self.target, self.kernel_, rows.shape[1])
            at_rows = np.average(self.target.values(rows), weights=counts)
            offset = float(self.target.norm() ** 2 - 2.0 * at_rows)
            mean_diag, mean_gram = max(mean_diag + offset, 0.0), max(mean_gram + offset, 0.0)
        self.solver_ = "tiles"
        return self._shrunk_weights(counts, len(rows), n, mean_diag, mean_gram)

    def _shrunk_weights(self, counts: Array | None, rows: int, n: float, mean_diag: float, mean_gram: float) -> Array:
        given = self._given_shrinkage()
        self.shrinkage_ = simple_shrinkage(n, mean_diag, mean_gram) if given is None else given
        self._averages = n, mean_diag, mean_gram
        for known in ("loo_path_", "loo_score_"):  # those of an earlier fit
            self.__dict__.pop(known, None)
        weight = (1.0 - self.shrinkage_) / n
        return np.full(rows, weight) if counts is None else weight * counts

    @cached_property
    def loo_path_(self) -> ScorePath:
        """The leave-one-out score over α in [0, 1]."""
        alphas = np.unique(np.append(np.linspace(0, 1, 101), self.shrinkage_))
        return ScorePath(alphas, simple_score(*self._averages, alphas))

    @cached_property
    def loo_score_(self) -> float:
        """Leave-one-out score of the estimate."""
        averages: tuple[float, float, float] | None = self.__dict__.get("_averages")
        return super().loo_score_ if averages is None else float(simple_score(*averages, self.shrinkage_))

    def _pull(self) -> Element | None:
        return None if self.target is None else self.shrinkage_ * self.target

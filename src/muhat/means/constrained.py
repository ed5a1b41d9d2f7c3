"""Kernel means with weights that sum to one: shrinkage within the affine or the convex hull of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from muhat._support.types import Array
from muhat._support.validation import check_flag
from muhat.grams import Gram, PairGram, matrix_averages
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.distances import power_of_two_near
from muhat.linalg.simplex import simplex_minimiser
from muhat.means.base import BaseKernelMean, MeanFit, Scored, dense_matrix
from muhat.means.simple_shrinkage import Shrinkage, given_shrinkage, simple_shrinkage

_ARRAYS = 8
"""n × n arrays at the peak: K, its weighed copy, the basis, and what LAPACK works on."""


class ConstrainedKernelMean(BaseKernelMean):
    r"""Shrunken kernel mean :math:`\sum_i \beta_i k(x_i, \cdot)` whose weights are not negative and sum to one.

    It is the point of the convex hull of the rows :math:`\phi(x_i)` that lies nearest to simple shrinkage
    :math:`(1 - \alpha)\hat\mu`, or of their affine hull where weights may be negative. With α = λ/(1+λ) that is

    .. math:: \min_\beta \; (1 + \lambda)\beta^\top K \beta - 2 \beta^\top K 1_n
              \quad\text{subject to}\quad 1^\top\beta = 1, \; \beta \ge 0.

    Without β ≥ 0 it is :math:`(1 - \alpha)1_n + \alpha f`, :math:`f = K^{-1}1 / (1^\top K^{-1} 1)` the weights of the
    point of the affine hull with the least norm; K may be singular. With β ≥ 0 many weights are 0.

    The paper has it as a remark, and expects no improvement on the plain average. On its mixtures there is one with
    linear and polynomial kernels, and next to none with the Gaussian kernel, where :class:`ShrunkKernelMean` is better.
    Take it where weights have to be those of a probability distribution.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
    shrinkage : "loo" or float in [0, 1], default "loo"
        The amount α; "loo" is the optimum of :class:`ShrunkKernelMean`.
    nonnegative : bool, default True
        Whether β ≥ 0.

    Attributes
    ----------
    shrinkage_ : float
    weights_ : array of shape (n,)
        β. Where several give the same mean (equal rows, or a linear kernel with more rows than columns) those nearest
        to 1/n.
    loo_score_ : float
        Computed when asked for, by n fits at the same α: O(n⁴).
    kernel_, mean_
        See :class:`KernelMean`.

    See Also
    --------
    ShrunkKernelMean : The same amount of shrinkage without constraint.
    KernelMean : Equal weights.

    Notes
    -----
    O(n³) time at least, and eight n x n arrays: for a thousand rows or two.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(5, random_state=0).sample(20, random_state=0)
    >>> mean = mh.ConstrainedKernelMean(shrinkage=0.5).fit(X)
    >>> mean.mean_
    Element(Gaussian(bandwidth=21.0...), 20 atoms in 5 dimensions, total weight 1)
    >>> int((mean.weights_ == 0).sum())
    11
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        shrinkage: Shrinkage = "loo",
        nonnegative: bool = True,
    ) -> None:
        self.kernel = kernel
        self.shrinkage = shrinkage
        self.nonnegative = nonnegative

    def estimate(self, G: Gram) -> MeanFit:
        return constrained_mean(G, self.shrinkage, self.nonnegative)


Programme = Callable[[Array, float, Array | None], Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstrainedFit(MeanFit):
    """A mean within a hull of the rows; its leave-one-out score solves the programme again without each row."""

    programme: Programme

    def late_score(self, G: PairGram) -> Scored:
        counts = np.ones(len(G)) if G.counts is None else G.counts
        if counts.min() < 1:
            raise ValueError(
                f"sample_weight={counts.min():g} is too small for loo_score_, which leaves out one copy of a row. "
                f"Use weights of 0 or at least 1"
            )
        K = G.dense(_ARRAYS, own=True)
        unit = power_of_two_near(float(np.diag(K).max()))
        K /= unit
        losses = [_loss_without(i, K, counts, self.programme, self.chosen["shrinkage"]) for i in range(len(K))]
        return Scored(float(unit * (counts @ losses) / counts.sum()))


def constrained_mean(G: Gram, shrinkage: Shrinkage = "loo", nonnegative: bool = True) -> MeanFit:
    """Estimate the mean by the point of the convex (or affine) hull of the rows nearest to simple shrinkage."""
    given, K = given_shrinkage(shrinkage), dense_matrix(G, _ARRAYS)
    programme = simplex_weights if check_flag("nonnegative", nonnegative) else affine_weights
    counts = G.counts if isinstance(G, PairGram) else None
    alpha = simple_shrinkage(*matrix_averages(K, counts)) if given is None else given
    chosen = {"shrinkage": alpha, "solver": "dense"}
    return ConstrainedFit(programme(K, alpha, counts), chosen, gram=G, programme=programme)


def _loss_without(i: int, K: Array, counts: Array, programme: Programme, alpha: float) -> float:
    """‖φ(xᵢ) − μ‖² for the mean μ without one copy of row i."""
    left = counts - (np.arange(len(K)) == i)
    kept = left > 0
    residual = np.zeros(len(K))
    residual[kept] = programme(K[np.ix_(kept, kept)], alpha, left[kept])
    residual[i] -= 1.0
    return float(residual @ K @ residual)


def affine_weights(K: Array, alpha: float, counts: Array | None = None) -> Array:
    r"""The least of ‖Σβᵢφ(xᵢ) − (1−α)μ̂‖² over Σβ = 1, for any Gram matrix K; of several β that nearest to 1/n.

    With H an orthonormal basis of the vectors that sum to zero it is :math:`1_n - \alpha H (H^\top KH)^+ H^\top K1_n`.
    """
    root, weighed = _weighed(K, counts)
    return root * (root - alpha * _step(weighed, root, weighed @ root))


def simplex_weights(K: Array, alpha: float, counts: Array | None = None) -> Array:
    """The least of ‖Σβᵢφ(xᵢ) − (1−α)μ̂‖² over Σβ = 1 and β ≥ 0; of several β that nearest to 1/n.

    Where the weights without β ≥ 0 have no negative entry it is those. Else: on the simplex the objective is βᵀMβ with
    M the Gram matrix of φ(xᵢ) − (1−α)μ̂.
    """
    root, weighed = _weighed(K, counts)
    products = weighed @ root
    unbounded = root - alpha * _step(weighed, root, products)
    if (unbounded >= 0).all():
        return root * unbounded
    inner = (1.0 - alpha) * products
    M = weighed - np.outer(inner, root) - np.outer(root, inner - (1.0 - alpha) * (root @ inner) * root)
    return root * _polished(simplex_minimiser(M, root, _rounding(weighed)), weighed, root, inner)


def _polished(u: Array, weighed: Array, root: Array, inner: Array) -> Array:
    """The shortest solution on the support that was found, free of rounding where that does not change signs."""
    support = u > 0
    part, ones = weighed[np.ix_(support, support)], root[support]
    start = ones / (ones @ ones)
    polished = np.zeros_like(u)
    polished[support] = start + _step(part, ones, inner[support] - part @ start)
    return polished if (polished >= 0).all() else u


def _step(K: Array, ones: Array, slope: Array) -> Array:
    """The shortest of the z with zᵀ``ones`` = 0 for which zᵀKz − 2zᵀ``slope`` is least."""
    basis = np.linalg.qr(ones[:, None], mode="complete")[0][:, 1:]
    eigenvalues, eigenvectors = np.linalg.eigh(basis.T @ K @ basis)
    kept = eigenvalues > _rounding(K)
    directions = basis @ eigenvectors[:, kept]
    return directions @ (directions.T @ slope / eigenvalues[kept])


def _weighed(K: Array, counts: Array | None) -> tuple[Array, Array]:
    """Roots of the shares of the rows, and K times both, over a power of two near its mean diagonal.

    In these units repeated rows behave as repeated ones would, each with the same weight.
    """
    share = np.full(len(K), 1.0 / len(K)) if counts is None else counts / counts.sum()
    root = np.sqrt(share)
    return root, K / power_of_two_near(float(share @ np.diag(K))) * root * root[:, None]


def _rounding(K: Array) -> float:
    return float(len(K) * np.finfo(np.float64).eps * np.trace(K))

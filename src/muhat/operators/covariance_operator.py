"""Covariance operators between two spaces: their action, Hilbert–Schmidt inner products and singular functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, svd

from muhat._support.types import Array
from muhat._support.validation import check_count
from muhat.kernels import tiles
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import evaluate_fast
from muhat.kernels.mixed import OnColumns
from muhat.linalg.centered_gram import subtract_means
from muhat.linalg.spectrum import above_rounding, signs
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms


class SingularSystem(NamedTuple):
    """Singular values, descending, with orthonormal functions: operator(right[k]) = values[k] · left[k]."""

    values: Array
    left: list[Element]
    right: list[Element]


@dataclass(frozen=True, eq=False)
class CovarianceOperator:
    r"""The operator :math:`\Sigma_{YX} = \sum_i \beta_i\, (\varphi(y_i) - \mu_Y) \otimes (\phi(x_i) - \mu_X)`.

    ``operator(f)`` is an element of the space of Y, ``operator.covariance(f, g)`` the number
    :math:`\langle g, \Sigma f \rangle`, and inner products, norms and distances are Hilbert–Schmidt's; operators of
    different samples meet if their kernels are equal, however each was centred.

    Parameters
    ----------
    x, y : arrays of shape (n, d) and (n, e)
        The rows of each side.
    mean_x, mean_y : Element
        The centres, each in its space.
    weights : array of shape (n,)
        The weights β.

    See Also
    --------
    muhat.KernelCovariance : Estimates it.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> operator = mh.KernelCovariance(mh.Linear()).fit(X, 2 * X).operator_
    >>> f = mh.embed(mh.Linear(), np.array([[1.0]]))  # the function f(x) = x
    >>> round(operator.covariance(f, f), 3), round(float(2 * X.var()), 3)
    (0.737, 0.737)
    """

    x: Array
    y: Array
    mean_x: Element
    mean_y: Element
    weights: Array

    @property
    def kernel_x(self) -> Kernel:
        """Kernel of the space that the operator acts on."""
        return self.mean_x.kernel

    @property
    def kernel_y(self) -> Kernel:
        """Kernel of the space that the operator maps into."""
        return self.mean_y.kernel

    def __call__(self, f: Element) -> Element:
        """The image Σf of an element of the space of X."""
        moved = self.weights * _centred_values(f, self.mean_x, self.x)
        return _centred_combination(self.mean_y, self.y, moved)

    def covariance(self, f: Element, g: Element) -> float:
        """Compute ⟨g, Σf⟩, the estimated covariance of f(X) and g(Y)."""
        at_x, at_y = _centred_values(f, self.mean_x, self.x), _centred_values(g, self.mean_y, self.y)
        return float((self.weights * at_x) @ at_y)

    def inner(self, other: CovarianceOperator) -> float:
        """Compute the Hilbert–Schmidt inner product with an operator between the same spaces, in tiles of pairs."""
        on_x = _CentredTiles(self.mean_x, other.mean_x)
        on_y = _CentredTiles(self.mean_y, other.mean_y)
        mine, d = np.hstack([on_x.left(self.x), on_y.left(self.y)]), self.x.shape[1] + 1
        pairs = OnColumns(on_x, tuple(range(d))) * OnColumns(on_y, tuple(range(d, mine.shape[1])))
        if other is self:
            return tiles.quadratic_form(pairs, mine, self.weights)
        theirs = np.hstack([on_x.right(other.x), on_y.right(other.y)])
        return tiles.bilinear_form(pairs, mine, theirs, self.weights, other.weights)

    def norm(self) -> float:
        """Compute the Hilbert–Schmidt norm."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def hsic(self) -> float:
        """Compute the squared norm, the Hilbert–Schmidt independence criterion."""
        return self.norm() ** 2

    def distance(self, other: CovarianceOperator) -> float:
        """Compute the Hilbert–Schmidt norm of the difference."""
        squared = self.inner(self) - 2.0 * self.inner(other) + other.inner(other)
        return float(np.sqrt(max(squared, 0.0)))

    def singular_system(self, n_components: int = 5) -> SingularSystem:
        """Compute at most ``n_components`` leading singular values and functions; fewer where the rank is lower."""
        k = check_count("n_components", n_components)
        x_basis, y_basis = self._basis(self.x, self.mean_x), self._basis(self.y, self.mean_y)
        P, values, Rt = svd((y_basis.roots.T * self.weights) @ x_basis.roots, full_matrices=False)
        k = min(k, int(np.count_nonzero(above_rounding(values, len(self.x)))))
        of_left, of_right = y_basis.coefficients @ P[:, :k], x_basis.coefficients @ Rt[:k].T
        sign = signs(of_left)  # one for both functions of a pair
        left = [_centred_combination(self.mean_y, self.y, column) for column in (of_left * sign).T]
        right = [_centred_combination(self.mean_x, self.x, column) for column in (of_right * sign).T]
        return SingularSystem(values[:k], left, right)

    def _basis(self, points: Array, mean: Element) -> _Basis:
        g, U = eigh(_centred_gram(points, mean).T, driver="evd", overwrite_a=True, check_finite=False)
        kept = above_rounding(g, len(g))
        return _Basis(U[:, kept] * np.sqrt(g[kept]), U[:, kept] / np.sqrt(g[kept]))

    def __repr__(self) -> str:
        return f"CovarianceOperator({self.kernel_x!r} -> {self.kernel_y!r}, {len(self.x):,} pairs)"


class _Basis(NamedTuple):
    """An orthonormal basis of the span of the centred features."""

    roots: Array
    """L with K̃ = LLᵀ: the features in the basis."""
    coefficients: Array
    """The basis in the features."""


def _centred_values(f: Element, mean: Element, points: Array) -> Array:
    """⟨f, φ(x) − μ⟩ at each row."""
    return f.values(points) - f.inner(mean)


def _centred_combination(mean: Element, points: Array, coefficients: Array) -> Element:
    """Σ c_i (φ(x_i) − μ)."""
    combination = Element(mean.kernel, Atoms.trusted(points, coefficients))
    return combination - float(coefficients.sum()) * mean


def _centred_gram(points: Array, mean: Element) -> Array:
    """⟨φ(x) − μ, φ(y) − μ⟩ for all pairs of rows; two bases are five arrays of that size."""
    K = tiles.dense(mean.kernel, points, arrays=5)
    values = mean.values(points)
    subtract_means(K, values, values, mean.norm() ** 2)
    return K


@dataclass(frozen=True, eq=False)
class _CentredTiles(Kernel):
    """⟨φ(x) − μ, φ(y) − ν⟩ for blocks of rows that have what the other mean is there, ν(x) or μ(y), for last column."""

    mean: Element
    other_mean: Element

    def left(self, X: Array) -> Array:
        return np.column_stack([X, self.other_mean.values(X)])

    def right(self, Y: Array) -> Array:
        return np.column_stack([Y, self.mean.values(Y)])

    @cached_property
    def _shared(self) -> float:
        return self.mean.inner(self.other_mean)  # raises where the spaces differ

    def evaluate(self, A: Array, B: Array) -> Array:
        K = evaluate_fast(self.mean.kernel, A[:, :-1], B[:, :-1])
        subtract_means(K, A[:, -1], B[:, -1], self._shared)
        return K

    def diagonal(self, A: Array) -> Array:
        raise TypeError("only with μ = ν is this a kernel with a diagonal; use Centered")

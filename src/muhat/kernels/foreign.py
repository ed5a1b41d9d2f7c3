"""Kernels given by a Gram matrix, by a function, or by a Gaussian-process kernel of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from muhat._support.types import Array
from muhat._support.validation import check_rows
from muhat.kernels.base import Composed, Kernel, check_values, some_rows


@dataclass(frozen=True, eq=False, repr=False)
class Precomputed(Kernel):
    """A Gram matrix in place of a kernel: training rows are known by number, other rows by their kernel values.

    ``matrix`` holds the kernel values of all pairs of training rows. ``points`` are numbers of training rows, an
    integer array of shape (n, 1), or rows k(x, training rows). An estimator with ``kernel="precomputed"`` makes it.
    """

    matrix: Array

    def training_points(self) -> Any:
        """The training rows, by number: integers where other kernels have coordinates."""
        return np.arange(len(self.matrix))[:, None]

    def points(self, X: Any, n_features: int | None = None) -> Array:
        if _are_indices(X):
            return X
        rows = check_rows(X)
        if rows.shape[1] != len(self.matrix):
            raise ValueError(
                f"X has {rows.shape[1]} columns; with kernel='precomputed' it must hold the kernel values of each "
                f"row with the {len(self.matrix)} training rows"
            )
        return rows

    def __call__(self, X: Any, Y: Any = None) -> Array:
        A = self.points(X)
        return self.evaluate(A, A if Y is None else self.points(Y))

    def evaluate(self, X: Array, Y: Array) -> Array:
        if _are_indices(X) and _are_indices(Y):
            return self.matrix[_positions(X)][:, _positions(Y)].copy()
        if _are_indices(X):
            return Y[:, _positions(X)].T.copy()
        if _are_indices(Y):
            return X[:, _positions(Y)].copy()
        raise ValueError("kernel='precomputed' knows no kernel values between two rows outside of the training rows")

    def diagonal(self, X: Array) -> Array:
        if not _are_indices(X):
            raise ValueError("kernel='precomputed' knows no k(x, x) for a row outside of the training rows")
        return np.diag(self.matrix)[X[:, 0]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Precomputed) and (
            self.matrix is other.matrix or np.array_equal(self.matrix, other.matrix)
        )

    def __hash__(self) -> int:
        return hash((Precomputed, self.matrix.shape))

    def __repr__(self) -> str:
        return f"Precomputed(n={len(self.matrix)})"


def evaluates_new_rows(kernel: Kernel) -> bool:
    """Whether the kernel is known at every row, and not only between the rows of a Gram matrix."""
    if isinstance(kernel, Composed):
        return all(map(evaluates_new_rows, kernel.parts))
    return not isinstance(kernel, Precomputed)


def _positions(X: Array) -> Any:
    """Row numbers as a slice where they follow each other: the common case, and many times faster."""
    first, last = int(X[0, 0]), int(X[-1, 0])
    consecutive = last - first + 1 == len(X) and bool((np.diff(X[:, 0]) == 1).all())
    return slice(first, last + 1) if consecutive else X[:, 0]


def _are_indices(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind == "i" and X.ndim == 2 and X.shape[1] == 1


_ROWWISE = (
    "a function f of two rows becomes one of two matrices by lambda X, Y: pairwise_kernels(X, Y, metric=f), with "
    "pairwise_kernels of sklearn.metrics.pairwise"
)


@dataclass(frozen=True, repr=False)
class FromFunction(Kernel):
    """A function of two matrices, ``function(X, Y) -> (n, m)``, as a kernel."""

    function: Callable[[Array, Array], Array]

    def evaluate(self, X: Array, Y: Array) -> Array:
        try:
            values = np.asarray(self.function(X, Y))
            if np.iscomplexobj(values):
                raise ValueError("its values are complex numbers; return real ones, such as their real parts")
            K = values.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"the kernel function fails on {len(X)} and {len(Y)} rows ({error}); {_ROWWISE}"
            ) from error
        if K.shape != (len(X), len(Y)):
            raise ValueError(
                f"the kernel function returned shape {K.shape} for {len(X)} and {len(Y)} rows and must return "
                f"{(len(X), len(Y))}; {_ROWWISE}"
            )
        return K

    def diagonal(self, X: Array) -> Array:
        return np.array([self.evaluate(row, row)[0, 0] for row in X[:, None, :]])

    def resolve(self, X: Any, sample_weight: Array | None = None) -> Kernel:
        """This kernel, or a ValueError where its matrix on some rows of X shows that it is not a kernel."""
        check_values(self, some_rows(self.points(X)))
        return self


@dataclass(frozen=True, repr=False)
class FromGaussianProcess(Kernel):
    """A kernel of ``sklearn.gaussian_process.kernels`` as a kernel of this library."""

    kernel: Any = field(hash=False)

    def evaluate(self, X: Array, Y: Array) -> Array:
        return self.kernel(X) if X is Y else self.kernel(X, Y)

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diag(X)


def _is_gaussian_process_kernel(kernel: Any) -> bool:
    return callable(kernel) and all(hasattr(kernel, name) for name in ("diag", "theta", "is_stationary"))


def as_kernel(kernel: Any) -> Kernel:
    """Turn a callable or a Gaussian-process kernel of scikit-learn into a kernel of this library.

    Parameters
    ----------
    kernel : Kernel, callable or sklearn.gaussian_process.kernels.Kernel
        A callable takes two matrices X (n, d) and Y (m, d), and returns the matrix (n, m) of a positive
        definite kernel.

    Returns
    -------
    Kernel
        The kernel; one of this library is returned as it is.

    See Also
    --------
    muhat.kernels.Kernel : Base class for a kernel of your own.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> import muhat as mh
    >>> mh.as_kernel(RBF(1.0))([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """
    if isinstance(kernel, Kernel):
        return kernel
    if _is_gaussian_process_kernel(kernel):
        return FromGaussianProcess(clone(kernel))
    if callable(kernel) and not isinstance(kernel, type):
        return FromFunction(kernel)
    raise ValueError(
        f"kernel={kernel!r} is not a kernel; use an object such as muhat.Gaussian() or muhat.Laplace(bandwidth=2.0), "
        f"or pass a callable or a Gaussian-process kernel of scikit-learn to muhat.as_kernel"
    )

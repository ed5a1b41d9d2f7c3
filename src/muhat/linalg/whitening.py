r"""Whitened rows: standardised columns under a shrunk covariance, residuals given the other columns, leave-one-out.

Real columns are correlated, and what changes often shows along directions in which rows hardly vary. With
:math:`z = (x - \bar x) / \mathrm{sd}` the columns in standard deviations and :math:`S = V \mathrm{diag}(\gamma) V^\top`
their correlation matrix, the metric :math:`P = (S + \lambda I)^{-1}` weighs all directions evenly, and the ridge λ
keeps it finite where there are fewer rows than columns or columns that determine each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from muhat._support.types import Array
from muhat.linalg.distances import power_of_two_near, powers_of_two
from muhat.linalg.spectrum import signs

RIDGE = 1e-3
"""The ridge λ of a metric, relative to the largest eigenvalue of the correlation matrix."""

FARTHEST = 1e70
"""Where standardised values are held: sums of their fourth powers are finite."""


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""The metric :math:`P = (S + \lambda I)^{-1}` of standardised columns, and the maps that belong to it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(size=500)
    >>> rows = np.column_stack([height, height + 0.1 * rng.normal(size=500)])
    >>> whitening = Whitening.of(rows)
    >>> unlikely, likely = [1.0, -1.0], [1.0, 1.0]
    >>> whitening.squared_norms(np.array([unlikely, likely])).round()
    array([308.,   1.])
    """

    # centre, deviations: (d,): means and standard deviations of the columns; the deviation of a constant column is
    # infinite, so that it is 0 in every map
    centre: Array
    deviations: Array
    # axes, variances: (d, r) and (r,): the eigenvectors V of S that rows span, and the eigenvalues γ + λ of S + λI that
    # belong to them
    axes: Array
    variances: Array
    floor: float  # the eigenvalue of S + λI in all other directions

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Fit to rows of any scale."""
        centre, deviations = column_moments(rows)
        variances, axes = _eigenpairs(_in_deviations(rows, centre, deviations))
        lam = RIDGE * (float(variances.max(initial=0.0)) or 1.0)
        return cls(centre, deviations, axes, variances + lam, lam)

    @classmethod
    def of_standardised(cls, rows: Array, ridge: float) -> Self:
        """Fit to rows whose columns are centred and scaled already, with the ridge λ as it is."""
        variances, axes = _eigenpairs(rows)
        d = rows.shape[1]
        return cls(np.zeros(d), np.ones(d), axes, variances + ridge, ridge)

    def root(self) -> Array:
        """P^{1/2}, so that ``standardise(rows) @ root()`` is ``whiten(rows)``."""
        return self._power(np.eye(len(self.centre)), -0.5)

    def standardise(self, rows: Array) -> Array:
        """Columns in standard deviations, constant ones 0."""
        return _in_deviations(rows, self.centre, self.deviations)

    def principal_scores(self, rows: Array) -> Array:
        """Principal components of rows in their standard deviations, diag(γ + λ)^(−1/2) Vᵀz: one column for each."""
        return np.asarray(self.standardise(rows) @ self.axes / np.sqrt(self.variances))

    def whiten(self, rows: Array) -> Array:
        r"""Symmetrically whitened rows :math:`P^{1/2} z`: each column stays as near to its own as can be."""
        return self._power(self.standardise(rows), -0.5)

    def residuals(self, rows: Array) -> Array:
        """Pz, whose column j is the residual of column j given all others, over the variance of that residual.

        For the inverse of a covariance, row j holds the coefficients of the (ridge) regression of column j on the
        others: P_jj (z_j − Σ_k b_jk z_k), where 1/P_jj is the variance that is left.
        """
        return self._power(self.standardise(rows), -1.0)

    def partner(self, column: int) -> int:
        """The other column that has the largest weight in the residual of a column."""
        weights = np.abs(self.axes @ (self.axes[column] * (1.0 / self.variances - 1.0 / self.floor)))
        weights[column] = -1.0
        return int(weights.argmax())

    def squared_norms(self, rows: Array) -> Array:
        """Squared Mahalanobis distances zᵀPz of rows from the centre."""
        z = self.standardise(rows)
        return np.einsum("ij,ij->i", z, self.residuals(rows))

    def _power(self, z: Array, power: float) -> Array:
        """(S + λI)^power z; directions that the fitted rows do not span have the eigenvalue ``floor``."""
        scores, scales = z @ self.axes, self.variances**power
        if self.axes.shape[1] == self.axes.shape[0]:
            return np.asarray((scores * scales) @ self.axes.T)
        outside = self.floor**power
        return np.asarray(outside * z + (scores * (scales - outside)) @ self.axes.T)


def inverse_root(C: Array, ridge: float, power: float = 1.0) -> Array:
    r"""R with :math:`RR^\top = (C + \lambda I)^{-p}` for a covariance C, ``ridge`` λ and ``power`` p, up to a rotation.

    Rows x of a distribution with covariance C + λI are whitened by xR, where p = 1.
    """
    unit = power_of_two_near(float(np.trace(C)))
    values, vectors = eigh(C / unit, driver="evd", check_finite=False)
    g = np.maximum(values.clip(0.0) * unit + ridge, np.finfo(np.float64).tiny)
    return np.asarray(vectors * signs(vectors) * g ** (-power / 2))


def column_moments(rows: Array) -> tuple[Array, Array]:
    """Means and standard deviations of columns; infinite for constant ones, which then have no part in anything."""
    powers = powers_of_two(np.abs(rows).max(axis=0, initial=0.0))
    small = rows / powers  # sums and squares of these do not overflow
    deviations = small.std(axis=0)
    varies = deviations > 1e-10 * np.abs(small).max(axis=0, initial=0.0)
    return small.mean(axis=0) * powers, np.where(varies, deviations * powers, np.inf)


def standardised(rows: Array) -> Array:
    """Columns with mean 0 and variance 1; constant ones are 0."""
    return _in_deviations(rows, *column_moments(rows))


def _in_deviations(rows: Array, centre: Array, deviations: Array) -> Array:
    """Columns from their centres in their deviations, held where sums of their fourth powers are finite."""
    with np.errstate(over="ignore"):  # halves, because differences of the largest numbers overflow
        return np.clip(2.0 * ((rows / 2.0 - centre / 2.0) / deviations), -FARTHEST, FARTHEST)


def _eigenpairs(Z: Array) -> tuple[Array, Array]:
    """Positive eigenvalues and eigenvectors of ZᵀZ/n, through ZZᵀ where there are fewer rows than columns."""
    n, d = Z.shape
    if d <= n:
        values, vectors = eigh(Z.T @ Z / n, driver="evd", check_finite=False)
        return values.clip(0.0), vectors * signs(vectors)
    values, vectors = eigh(Z @ Z.T / n, driver="evd", check_finite=False)
    kept = values > n * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    axes = Z.T @ (vectors[:, kept] / np.sqrt(n * values[kept]))
    return values[kept], axes * signs(axes)


class PairProducts(NamedTuple):
    """zᵢᵀPzⱼ and (zᵢ − zⱼ)ᵀP(zᵢ − zⱼ) of all pairs of rows, each under a metric that was fitted without the two."""

    products: Array
    squared_distances: Array


def leave_two_out(Y: Array, ridge: float) -> PairProducts:
    r"""Whitened products and distances of every pair of rows, with mean and covariance of the other n − 2 rows.

    A stream that is simulated from the rows to which a metric was fitted looks too ordinary under it: its rows had a
    part in the fit. Here no pair has one, and no refits are needed.

    Columns of Y have the mean 0, and the metric is :math:`(S_{-ij} + \lambda I)^{-1}`. Diagonals have no meaning.
    """
    # Without rows i and j the mean is −(y_i + y_j)/q, q = n − 2, and with U = [y_i, y_j] the covariance is
    #     S_{-ij} = C/q − U (I/q + 11ᵀ/q²) Uᵀ,   C = YᵀY.
    # Woodbury: UᵀPU = A⁻¹ F A⁻¹ − A⁻¹ with A = I/q + 11ᵀ/q², A⁻¹ = qI − (q/n) 11ᵀ, F = (A⁻¹ − UᵀP_CU)⁻¹ and
    # P_C = (C/q + λI)⁻¹. The entries of A⁻¹ are α = q − q/n and β = −q/n.
    n = len(Y)
    q = n - 2
    G = _products(Y, q, ridge)
    own = np.diag(G)
    alpha, beta = q - q / n, -q / n
    # E = A⁻¹ − UᵀP_CU for each pair, and its inverse F.
    first, second, across = alpha - own[:, None], alpha - own[None, :], beta - G
    with np.errstate(divide="ignore", invalid="ignore"):  # on the diagonal, which is overwritten
        determinant = first * second - across**2
        F11, F22, F12 = second / determinant, first / determinant, -across / determinant
        # H = UᵀPU = A⁻¹ F A⁻¹ − A⁻¹
        H11 = alpha**2 * F11 + 2.0 * alpha * beta * F12 + beta**2 * F22 - alpha
        H22 = alpha**2 * F22 + 2.0 * alpha * beta * F12 + beta**2 * F11 - alpha
        H12 = alpha * beta * (F11 + F22) + (alpha**2 + beta**2) * F12 - beta
        # Both rows are taken from the mean of the others, y + (y_i + y_j)/q.
        products = H12 + (1.0 / q + 1.0 / q**2) * (H11 + 2.0 * H12 + H22)
        squared_distances = H11 + H22 - 2.0 * H12
    np.fill_diagonal(products, 0.0)
    np.fill_diagonal(squared_distances, 0.0)
    return PairProducts(products, squared_distances.clip(0.0))  # of a far row rounding is all that is left


class RowProducts(NamedTuple):
    """zᵢᵀPzᵢ without row i, and the squared distance of row k from row j without row j, in entry (k, j)."""

    squared_norms: Array
    squared_distances: Array


def leave_one_out(Y: Array, ridge: float) -> RowProducts:
    """Whitened norms of rows, and distances of all rows to each, with mean and covariance of the other n − 1 rows.

    ``Y`` and ``ridge`` are as in :func:`leave_two_out`.
    """
    # Without row j the mean is −y_j/q, q = n − 1, and S_{-j} = C/q − b y_j y_jᵀ with b = 1/q + 1/q². Sherman–Morrison:
    #     uᵀPv = uᵀP_C v + b (uᵀP_C y_j)(y_jᵀP_C v) / (1 − b y_jᵀP_C y_j).
    q = len(Y) - 1
    G = _products(Y, q, ridge)
    own, b = np.diag(G), 1.0 / q + 1.0 / q**2
    left = 1.0 - b * own
    distances = own[:, None] + own[None, :] - 2.0 * G + b * (G - own) ** 2 / left
    return RowProducts((1.0 + 1.0 / q) ** 2 * own / left, distances.clip(0.0))


def _products(Y: Array, q: int, ridge: float) -> Array:
    """Y (YᵀY/q + λI)⁻¹ Yᵀ, through an n × n system where there are fewer rows than columns."""
    n, d = Y.shape
    if d <= n:
        C = Y.T @ Y / q
        C[np.diag_indices(d)] += ridge
        return np.asarray(Y @ cho_solve(cho_factor(C, check_finite=False), Y.T, check_finite=False))
    K = Y @ Y.T
    shifted = K / q
    shifted[np.diag_indices(n)] += ridge
    return np.asarray(cho_solve(cho_factor(shifted, check_finite=False), K, check_finite=False))

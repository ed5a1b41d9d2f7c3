"""Conditional kernel mean: the estimator, from tables of x and y to embeddings, quantiles, intervals and draws."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array, RandomState
from muhat._support.validation import (
    check_count,
    check_counts,
    check_gram,
    check_not_masked,
    check_number,
    check_overflow,
    check_precomputed,
    check_rng,
    check_rows,
    column_names,
    is_precomputed,
    unchanged_on_error,
    warn_caller,
)
from muhat.conditional.blend import embedding_shares, energy_share, probabilities
from muhat.conditional.centred_ridge import CentredRidge, FittedEmbedding, NewRows, fit_embedding
from muhat.conditional.target import LocationScale, fit_location_scale, target_moments
from muhat.kernels.base import Kernel, check_kernel, with_widths
from muhat.kernels.mixed import rescaled
from muhat.kernels.radial import Gaussian, Matern
from muhat.linalg.blocks import blocks
from muhat.linalg.resources import check_memory, steady_blas
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms
from muhat.tables.encoder import TableEncoder, fit_encoder
from muhat.tables.frames import FrameType, as_table
from muhat.tables.scales import ColumnScales, standard_deviations

WIDTHS = (0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0, 8.0)
"""Multiples of the median that are tried as the bandwidth of x: from a third, by roots of two, to nearly linear."""

MAX_ROWS = 4000
"""More rows are refused: every bandwidth takes an eigendecomposition, in all some minutes at this size."""

ALIKE = 1e-3
"""Columns whose standard deviations differ by less, relative to the largest, need no scales."""

CHOSEN = 2
"""Rows that intervals count as missed because two regressions, of location and of scale, were chosen by the same rows.
Without them 90 % intervals from 40 rows covered 0.86 on some tables."""

LEAST_WIDTH = 0.1
"""Of the standard deviation of y; it keeps intervals between equal quantiles from being widened without bound."""

_BLOCK = 2**21
"""Weights of new rows that are in memory at a time: 16 MB."""


class _Distributions(NamedTuple):
    """Distributions of y at new rows: probabilities of the training rows, and atoms with a share of the whole."""

    probabilities: Array  # (m, n)
    atoms: Array  # (m, atoms, q)
    share: float

    def means(self, Y: Array) -> Array:
        found = (1.0 - self.share) * (self.probabilities @ Y)
        return found + (self.share / self.atoms.shape[1] * self.atoms).sum(axis=1) if self.share > 0 else found

    def quantiles(self, y: Array, levels: Array) -> Array:
        """Quantiles (m, levels) of one column, the smallest values at which the distribution functions reach them."""
        m, count = self.atoms.shape[:2]
        values = np.concatenate([np.broadcast_to(y, (m, len(y))), self.atoms[:, :, 0]], axis=1)
        own = np.full((m, count), self.share / max(count, 1))
        weights = np.concatenate([(1.0 - self.share) * self.probabilities, own], axis=1)
        order = np.argsort(values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        # Sums that should equal a level may miss it by rounding.
        places = [np.searchsorted(each, each[-1] * levels * (1.0 - 1e-9)) for each in reached]
        return np.take_along_axis(values, np.array(places), axis=1)


class ConditionalKernelMean(ValueParametersMixin, RegressorMixin, BaseEstimator):
    r"""Conditional kernel mean (conditional mean embedding): the distribution of y given x, from pairs of rows.

    The kernel mean of y given x is estimated as

    .. math:: \hat\mu_x = a \sum_j w_j(x)\, l(y_j, \cdot) + b\, f^*_x .

    The weights :math:`w(x)`, which sum to one, are those of ridge regression with an intercept from the kernel on x to
    the features of the kernel l on y. Target :math:`f^*_x` is the embedding of a fitted regression
    :math:`y = m(x) + v(x) s(x) r`: m and v are the posterior mean and standard deviation of a Gaussian process, log s
    is a ridge regression on the size of its residuals over v, and r has the distribution of the standardised residuals.
    The bandwidth of x, λ for each direction of the features of y, and a and b in [0, 1] minimise the exact
    leave-one-out loss :math:`\|l(y_i, \cdot) - \hat\mu^{(-i)}_{x_i}\|^2`.

    ``predict``, ``quantile``, ``interval`` and ``sample`` are those of a distribution, which :math:`\hat\mu_x` need not
    be the embedding of: negative weights are dropped and the others made to sum to one, and the regression has the
    share ``quantile_share_`` in place of b, which minimises the continuous ranked probability score (for several
    columns of y, the energy score) of left-out rows.

    Parameters
    ----------
    kernel_x : Kernel or "precomputed", default Matern(2.5)
        The kernel on x. With a bandwidth "median", eight multiples of the median, from 0.35 to 8, are tried. The
        default is a little rougher than a Gaussian kernel, as relations in real tables are. "precomputed" takes the
        Gram matrix in place of X, and k(new rows, training rows) afterwards.
    kernel_y : Kernel, default Gaussian()
        The kernel l on y, in whose space the means are. A bandwidth "median" is that of the rows of Y.
    target : "gaussian" or None, default "gaussian"
        "gaussian" is the fitted Gaussian-process regression above, with the shape of its residuals in place of the
        normal distribution. None is the ridge regression alone: a = 1, b = 0.
    scale : "loo" or bool, default "loo"
        Whether every column of X is divided by its standard deviation. "loo" tries both, and leaves columns as they are
        where you pass a bandwidth as a number. Y is never rescaled for ``kernel_y``.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of ``sample``, where it gets none. The fit is not random.

    Attributes
    ----------
    kernel_x_, kernel_y_ : Kernel
        With their bandwidths as numbers; ``kernel_x_`` is "precomputed" where ``kernel_x`` is.
    lam_ : array of shape (n_directions,)
        λ, in Gram units, for each direction of the features of y, in the order of falling variance; inf is the average
        over all rows.
    shares_ : tuple of two floats
        (a, b).
    quantile_share_ : float
        The share of the fitted regression in ``predict``, ``quantile``, ``interval`` and ``sample``.
    loo_score_ : float
        Mean leave-one-out loss of the means, in the space of ``kernel_y_``.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the rows have column names.

    See Also
    --------
    AdaptiveKernelMean : The mean of one distribution.
    DistributionRidge : Regression on groups of rows.
    BlendedSample : The same for quantiles without x.

    Notes
    -----
    One eigendecomposition per bandwidth and scale, O(n³), then O(n²) times up to 60 output directions for each of 20 λ.
    More than 4,000 rows are refused. Data frames may have columns of text, dates and missing values in X; categories
    get an indicator each. ``sample_weight`` must be whole numbers, because rows are repeated; copies are left out one
    at a time, so that weights should count independent observations.

    References
    ----------
    L. Song, J. Huang, A. Smola, K. Fukumizu. Hilbert space embeddings of conditional distributions. ICML 2009.

    S. Grünewälder, G. Lever, L. Baldassarre, S. Patterson, A. Gretton, M. Pontil. Conditional mean embeddings as
    regressors. ICML 2012.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=(200, 1))
    >>> y = np.sin(2 * x[:, 0]) + (0.1 + 0.2 * np.abs(x[:, 0])) * rng.normal(size=200)
    >>> model = mh.ConditionalKernelMean().fit(x, y)
    >>> at = [[0.0], [1.5]]
    >>> model.predict(at).shape, model.quantile(at, [0.1, 0.5, 0.9]).shape
    ((2,), (2, 3))
    >>> low, high = model.interval(at, coverage=0.8).T
    >>> bool(high[0] - low[0] < high[1] - low[1])  # the noise grows with |x|
    True
    >>> near, far = model.means([[0.0], [0.8]])
    >>> near.distance(far) > 0.3
    True
    """

    def __init__(
        self,
        kernel_x: Kernel | Literal["precomputed"] = Matern(2.5),
        kernel_y: Kernel = Gaussian(),
        target: Literal["gaussian"] | None = "gaussian",
        *,
        scale: bool | Literal["loo"] = "loo",
        random_state: RandomState = None,
    ) -> None:
        self.kernel_x = kernel_x
        self.kernel_y = kernel_y
        self.target = target
        self.scale = scale
        self.random_state = random_state

    @unchanged_on_error
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose bandwidth, λ and shares by leave-one-out.

        Parameters
        ----------
        X : array or data frame of shape (n, d), n >= 2
            The rows of x; for ``kernel_x="precomputed"`` their Gram matrix.
        y : array or data frame of shape (n,) or (n, q)
            The rows of y.
        sample_weight : array of shape (n,), optional
            How often each pair counts: whole numbers.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        rows = self._fitted_rows(X)
        Y = self._fitted_targets(y, len(rows))
        kept = _repeated(check_counts(sample_weight, len(rows)), len(rows))
        gram = is_precomputed(self.kernel_x)
        _check_size(len(kept), 1 if gram else 2 * len(WIDTHS))
        rows = rows[np.ix_(kept, kept)] if gram else rows[kept]
        with steady_blas(len(kept)):
            self._fit(rows, Y[kept])
        self._kept, self._n = kept, len(Y)
        return self

    def _fit(self, rows: Array, Y: Array) -> None:
        if isinstance(self.kernel_x, Kernel):
            ridges = [CentredRidge(_gram(kernel, rows), kernel) for kernel in self._candidates(self.kernel_x, rows)]
        else:
            ridges = [CentredRidge(rows)]
        kernel_y = _resolved(self.kernel_y, Y)
        L, units = _gram(kernel_y, Y), ColumnScales.of(Y)
        embedding = fit_embedding(ridges, L)
        W, used = embedding.left_out_weights(), [embedding.ridge]
        target, moments, self.quantile_share_ = None, None, 0.0
        if self.target is not None:
            standard = units.divide(Y)
            target = fit_location_scale(ridges, standard)
            moments = target_moments(target, kernel_y, Y, units)
            self.quantile_share_ = energy_share(_without_own(W), target, standard)
            used += [fitted.ridge for fitted in (*target.locations, *target.scales)]
        self.shares_, self.loo_score_ = embedding_shares(W, L, moments)
        self.kernel_x_ = embedding.ridge.kernel or "precomputed"
        self.kernel_y_, self.lam_ = kernel_y, embedding.lams
        self._rows, self._Y, self._units, self._used = rows, Y, units, list(dict.fromkeys(used))
        self._embedding: FittedEmbedding = embedding
        self._target: LocationScale | None = target

    def weights(self, X: Any) -> Array:
        """Weights a·w(x) of the training rows in the means at the rows of X: an array of shape (m, n)."""
        repeated = self.shares_[0] * self._weights(self._new(X))
        weights = np.zeros((len(repeated), self._n))
        np.add.at(weights.T, self._kept, repeated.T)
        return weights

    def means(self, X: Any) -> list[Element]:
        """Conditional kernel means at the rows of X, elements of the space of ``kernel_y_``."""
        new, (a, b) = self._new(X), self.shares_
        weights = a * self._weights(new)
        points, found = self._Y, []
        atoms = self._atoms(new) if b > 0 else None
        for i, own in enumerate(weights):
            measure = Atoms.trusted(points, own)
            if atoms is not None:
                measure = measure + Atoms.trusted(atoms[i], np.full(len(atoms[i]), b / len(atoms[i])))
            found.append(Element(self.kernel_y_, measure, feature_names=self._y_names))
        return found

    def predict(self, X: Any) -> Any:
        """Conditional means of y at the rows of X: an array of shape (m,) or (m, q), or a data frame like y."""
        means = np.concatenate([each.means(self._Y) for each in self._distributions(X)])
        return means[:, 0] if self._vector else self._y_frame.made_of(means)

    def quantile(self, X: Any, q: Any) -> Array:
        """Conditional quantiles of one column: (m,) for one level in (0, 1), and (m, n_levels) for several."""
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or levels.size == 0 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q={q!r} must lie between 0 and 1, or be a list of such numbers; pass for example 0.5")
        found = self._quantiles(X, np.atleast_1d(levels))
        return found if levels.ndim else found[:, 0]

    def interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Central prediction intervals of one column, of shape (m, 2), widened until they cover left-out rows.

        The two quantiles are moved apart, by the same part of their distance everywhere, until intervals fitted without
        a row cover it for this share of the rows, counting more that are missed: one for the new row (leave-one-out
        conformal inference), and two for what was chosen by the rows. They are never narrowed. With fewer than
        c/(1 − c) rows, 9 for a coverage c = 0.9, they are too short.
        """
        c = check_number("coverage", coverage, low=0, high=1, open_low=True)
        if c == 1:
            raise ValueError("coverage=1 would be an interval without ends; pass for example 0.99")
        fewest = int(np.ceil(c / (1.0 - c) - 1e-9))  # (n + 1) c must be at most n
        if len(self._Y) < fewest:
            warn_caller(f"{len(self._Y)} rows are too few for {c:.0%} intervals: at least {fewest} are needed")
        low, high = self._quantiles(X, np.array([0.5 - c / 2, 0.5 + c / 2])).T
        added = self._widening(c) * self._widths(low, high)
        return np.column_stack([low - added, high + added])

    def sample(self, X: Any, n: int = 1, random_state: RandomState = None) -> Array:
        """Draw from the conditional distributions: (m, n) for one column of y, (m, n, q) for several."""
        n = check_count("n", n)
        rng = check_rng(self.random_state if random_state is None else random_state)
        drawn = []
        for part in self._distributions(X):
            for i, weights in enumerate(part.probabilities):
                rows = self._Y[rng.choice(len(weights), size=n, p=weights)]
                if part.share > 0:
                    fitted = np.flatnonzero(rng.random(n) < part.share)
                    rows[fitted] = part.atoms[i][rng.integers(part.atoms.shape[1], size=len(fitted))]
                drawn.append(rows)
        found = np.array(drawn)
        return found[:, :, 0] if self._vector else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score new pairs: minus the mean of ‖l(y, ·) − μ_x‖², in the space of ``kernel_y_``; larger is better."""
        new, (a, b) = self._new(X), self.shares_
        weights = a * self._weights(new)
        Y = self._targets(y, len(weights))
        if Y.shape[1] != self._Y.shape[1]:
            raise ValueError(f"y has {Y.shape[1]} columns and had {self._Y.shape[1]} in fit; pass the same columns")
        kernel, points = self.kernel_y_, self._Y
        losses = kernel.diagonal(Y) + np.einsum("ij,ij->i", weights @ _gram(kernel, points), weights)
        losses -= 2.0 * np.einsum("ij,ij->i", weights, kernel.evaluate(Y, points))
        if b > 0:
            for i, atoms in enumerate(self._atoms(new)):
                own = kernel.evaluate(atoms, np.concatenate([points, Y[i : i + 1]])).mean(axis=0)
                losses[i] += b * (b * kernel.evaluate(atoms, atoms).mean() + 2.0 * (weights[i] @ own[:-1] - own[-1]))
        return -float(np.average(losses, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel_x)
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # the score is minus a loss, and not R²
        return tags

    # ------------------------------------------------------------ distributions at new rows

    def _new(self, X: Any) -> dict[CentredRidge, NewRows]:
        """Kernel values of new rows with the training rows, for each regression that is used."""
        check_is_fitted(self, "shares_")
        rows = check_rows(X, estimator=self, reset=False) if self._encoder is None else self._encoder.transform(X)
        found = {}
        for ridge in self._used:
            if ridge.kernel is None:  # k(x, x) is not among given values
                found[ridge] = NewRows(rows[:, self._kept], np.full(len(rows), ridge.square))
            else:
                found[ridge] = NewRows(ridge.kernel.evaluate(rows, self._rows), ridge.kernel.diagonal(rows))
        return found

    def _weights(self, new: dict[CentredRidge, NewRows]) -> Array:
        """Weights w(x) of the rows in the fit, which sum to one."""
        return self._embedding.weights(new[self._embedding.ridge].values)

    def _atoms(self, new: dict[CentredRidge, NewRows]) -> Array:
        """Atoms of the fitted regression, in the units of y."""
        if self._target is None:
            return np.empty((len(new[self._embedding.ridge].values), 0, self._Y.shape[1]))
        return self._units.restore(self._target.atoms(new))

    def _distributions(self, X: Any) -> Iterator[_Distributions]:
        """Distributions at the rows of X, some rows at a time."""
        new = self._new(X)
        for rows in blocks(len(new[self._embedding.ridge].values), max(_BLOCK // len(self._Y), 1)):
            part = {ridge: NewRows(each.values[rows], each.squares[rows]) for ridge, each in new.items()}
            yield _Distributions(probabilities(self._weights(part)), self._atoms(part), self.quantile_share_)

    def _quantiles(self, X: Any, levels: Array) -> Array:
        check_is_fitted(self, "shares_")
        if self._Y.shape[1] > 1:
            raise ValueError(
                f"y has {self._Y.shape[1]} columns, which have no common quantiles; fit one column at a time, or use "
                f"sample(X, n)"
            )
        return np.concatenate([each.quantiles(self._Y[:, 0], levels) for each in self._distributions(X)])

    def _widths(self, low: Array, high: Array) -> Array:
        """What intervals are widened in proportion to: their widths, and a part of the spread of y."""
        return high - low + max(LEAST_WIDTH * self._units.scale[0], np.finfo(np.float64).smallest_subnormal)

    def _widening(self, coverage: float) -> float:
        """By how many of their widths the ends of intervals move apart."""
        y, n, found = self._Y[:, 0], len(self._Y), []
        left_out = _without_own(self._embedding.left_out_weights())
        for rows in blocks(n, max(_BLOCK // n, 1)):
            atoms = np.empty((len(y[rows]), 0, 1))
            if self._target is not None:
                atoms = self._units.restore(self._target.left_out_atoms(rows))
            part = _Distributions(left_out[rows], atoms, self.quantile_share_)
            low, high = part.quantiles(y, np.array([0.5 - coverage / 2, 0.5 + coverage / 2])).T
            found.append(np.maximum(low - y[rows], y[rows] - high) / self._widths(low, high))
        place = min(int(np.ceil((n + 1) * coverage)) + CHOSEN, n) - 1
        return max(float(np.sort(np.concatenate(found))[place]), 0.0)

    # ------------------------------------------------------------ tables

    def _check_parameters(self) -> None:
        if isinstance(self.kernel_x, Kernel):
            check_kernel("kernel_x", self.kernel_x)
        else:
            check_precomputed(self.kernel_x, "kernel_x")
        check_kernel("kernel_y", self.kernel_y)
        if not (isinstance(self.scale, str) and self.scale == "loo") and not isinstance(self.scale, bool | np.bool_):
            raise ValueError(f'scale={self.scale!r} must be True, False or "loo"')
        if not (self.target is None or (isinstance(self.target, str) and self.target == "gaussian")):
            raise ValueError(f'target={self.target!r} must be "gaussian" or None')

    def _fitted_rows(self, X: Any) -> Array:
        """The rows of x as numbers, by an encoder where a data frame is not all numbers."""
        self._encoder: TableEncoder | None = None
        if is_precomputed(self.kernel_x):
            return check_gram(check_rows(X, estimator=self, min_rows=2), name="X")
        if FrameType.of(X).library is not None:
            table = as_table(X)
            encoder = fit_encoder([table], scaling=standard_deviations)
            if not encoder.is_plain:
                if table.n_rows < 2:
                    raise ValueError("X has 1 row, and at least 2 are needed")
                self._encoder, self.n_features_in_ = encoder, len(encoder.columns)
                self.feature_names_in_ = np.array(encoder.names, dtype=object)
                return encoder.transform(table)
        return check_rows(X, estimator=self, min_rows=2)

    def _candidates(self, kernel: Kernel, rows: Array) -> list[Kernel]:
        """Kernels of several bandwidths, on columns as they are and in their scales; or one of a given bandwidth."""
        # What columns are divided by; categories have the scale of their encoder.
        scales = ColumnScales.of(rows).scale if self._encoder is None else self._encoder.scales
        if getattr(kernel, "bandwidth", None) != "median" or _equal(rows):
            scaled = self.scale is True
            return [rescaled(_resolved(kernel, rows / scales if scaled else rows), scales if scaled else None)]
        plain = self.scale is False or (self.scale == "loo" and self._encoder is None)
        alike = plain and np.ptp(scales) <= ALIKE * scales.max()
        with warnings.catch_warnings():  # of rows of which many are equal: the median of the others will do
            warnings.simplefilter("ignore", UserWarning)
            found = with_widths(kernel, rows, WIDTHS) if plain else []
            if self.scale is True or (self.scale == "loo" and not alike):
                found += [rescaled(each, scales) for each in with_widths(kernel, rows / scales, WIDTHS)]
        return found

    def _fitted_targets(self, y: Any, n: int) -> Array:
        """The rows of y, of shape (n, q)."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None; pass the rows of y")
        self._y_frame, self._y_names = FrameType.of(y), column_names(y)
        self._vector = self._y_frame.library is None and np.asarray(y).ndim <= 1
        return self._targets(y, n)

    def _targets(self, y: Any, n: int) -> Array:
        if self._vector:
            check_not_masked("y", y)
            y = np.asarray(y)
            if y.ndim > 1:
                raise ValueError(f"y has shape {y.shape} and was a vector in fit; pass one number per row")
            y = y.reshape(-1, 1)
        Y = check_rows(y, name="y", copy=True)
        if len(Y) != n:
            raise ValueError(f"X has {n} rows and y has {len(Y)}: inconsistent numbers of samples; pass pairs")
        return Y


def _resolved(kernel: Kernel, rows: Array) -> Kernel:
    """The kernel with the median of the rows; equal rows have none, and any bandwidth will do for them."""
    if getattr(kernel, "bandwidth", None) == "median" and _equal(rows):
        return kernel.with_params(bandwidth=1.0)
    with warnings.catch_warnings():  # of rows of which many are equal: the median of the others will do
        warnings.simplefilter("ignore", UserWarning)
        return kernel.resolve(rows)


def _equal(rows: Array) -> bool:
    return bool((rows == rows[0]).all())


def _gram(kernel: Kernel, rows: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel.evaluate(rows, rows)
    check_overflow(kernel, np.diagonal(K))
    return K


def _repeated(counts: Array | None, n: int) -> NDArray[np.intp]:
    """Numbers of the rows that enter the fit."""
    if counts is None:
        return np.arange(n)
    if (counts != np.rint(counts)).any():
        raise ValueError("sample_weight must be whole numbers, because rows are repeated; round them")
    return np.repeat(np.arange(n), counts.astype(int))


def _without_own(W: Array) -> Array:
    """Left-out weights as probabilities, none of them a row's own."""
    others = W.copy()
    np.fill_diagonal(others, 0.0)
    return probabilities(others)


def _check_size(n: int, candidates: int) -> None:
    needed = 8.0 * n * n * (candidates + 6)  # eigenvectors of each, and what one of them and y take on the way
    if n > MAX_ROWS:
        raise ValueError(
            f"{n:,} rows are more than {MAX_ROWS:,}: the fit would need {needed / 1e9:.1f} GB and the time of "
            f"{candidates} eigendecompositions. Fit a random part of the rows"
        )
    check_memory(needed, None, f"{n:,} rows", "use fewer rows")

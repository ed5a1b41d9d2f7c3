"""The adaptive mean: flexible shrinkage and a Gaussian fitted to the rows, mixed by leave-one-out."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from muhat.elements import Element
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.spectrum import Spectrum, dense_spectrum, whole_spectrum
from muhat.means.base import BaseKernelMean
from muhat.means.solvers import ARRAYS_OF_WHOLE_SPECTRUM
from muhat.means.targets import TargetRefits, gaussian_kind, gaussian_target, given_target, sampled_target
from muhat.shrinkage.refits import RefitMeans, TikhonovRefits, plain_refit_means, tikhonov_factors, times
from muhat.shrinkage.scores import TIE, ScorePath, SpectralScore, choose_shrinkage
from muhat.types import Array


class AdaptiveKernelMean(BaseKernelMean):
    r"""The mean :math:`\hat\mu = a F(\lambda) + b f^*`, all three numbers by leave-one-out.

    F(λ) is flexible shrinkage with Tikhonov's filter, and f* the embedding of a Gaussian :math:`N(\bar x, \Sigma)` with
    the OAS covariance Σ of the rows. λ lies in [0, inf] and (a, b) in [0, 1]². The plain average (λ = 0, a = 1, b = 0),
    simple shrinkage (λ = 0, b = 0), flexible shrinkage (a = 1, b = 0) and the two combined (b = 0) are special cases.

    They minimise an estimate of the risk, :math:`\|f\|^2 - 2\,\mathrm{mean}_i f_{-i}(x_i)`: the norm is known, and for
    the rest row i leaves the data, the span *and the target*, which is refitted without it: taken as fixed it would be
    trusted too much. For each λ this is a quadratic in (a, b), minimised on the square exactly.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
    target : "gaussian", None or Element, default "gaussian"
        f*. For Laplace, Matérn and sums and products of radial kernels, which have no closed-form expectation under a
        Gaussian, a sample of 256 points stands for it. An element of the space of the fitted kernel is taken as it is:
        it must not come from the same rows. None sets b = 0, and so does a kernel for which a Gaussian is of no use or
        cannot be had, such as the Gram matrix that bags, tests and kernel PCA give a recipe: see ``target_kind_``.
    memory_limit : float, optional
        Bytes that the fit may take; default six tenths of what is free.

    Attributes
    ----------
    lam_ : float
        In Gram units: 0 is the plain average as a base, and inf leaves the target alone.
    shares_ : tuple of two floats
        (a, b).
    target_ : Element or None
        f*.
    target_kind_ : str
        "gaussian", "gaussian sample", "given" or "none", and where a Gaussian was asked for but b = 0 the reason:
        "none: Gram matrix", "none: linear kernel" (f* would be the plain average), "none: no closed form", or
        "none: scale" (squares of the data overflow or vanish).
    mean_ : Element
        Atoms plus, where b > 0, the target; atoms of a target come after the rows.
    weights_ : array of shape (n,)
        Of the rows: a·β.
    kernel_, loo_score_
        See :class:`KernelMean`. The score is that of other estimators, with the norms of the refits too.
    loo_path_ : ScorePath
        The leave-one-out score over λ, at the best (a, b) for each, both limits left out; ``lam_`` need not be at its
        lowest point, for the risk is estimated otherwise.

    Notes
    -----
    O(n³) time for one eigendecomposition, then O(n²) for each λ, and seven n x n arrays. The refits of the target cost
    O(n²·min(n, d)) for the Gaussian kernel; for others O(n²d²), or by samples O(n²d·min(n, d)) and 256·n² values of the
    kernel, and beyond 300 rows one refit for each of 20 parts of the rows. ``sample_weight`` must be whole numbers:
    rows are repeated.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.paper_mixture(10, random_state=0)
    >>> X = P.sample(20, random_state=1)
    >>> kernel = mh.Gaussian(bandwidth=10.0)
    >>> truth = mh.embed(kernel, P)
    >>> means = [mh.KernelMean(kernel), mh.SpectralKernelMean(kernel), mh.AdaptiveKernelMean(kernel)]
    >>> [round(mean.fit(X).mean_.distance(truth) ** 2, 4) for mean in means]
    [0.0499, 0.0341, 0.0319]
    >>> means[-1].mean_
    Element(Gaussian(bandwidth=10.0), 20 atoms + 1 Gaussian in 10 dimensions, total weight ...)
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        target: Element | Literal["gaussian"] | None = "gaussian",
        *,
        memory_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.target = target
        self.memory_limit = memory_limit

    target_: Element | None

    def _repeats_rows(self) -> bool:
        return True

    def weights_from_gram(self, K: Array, counts: Array | None = None) -> Array:
        if self.target is not None and not isinstance(self.target, str):
            raise ValueError(f"target={self.target!r} cannot be used with a Gram matrix. Use target=None, or pass rows")
        self.target_kind_ = "none" if self.target is None else "none: Gram matrix"
        self.solver_, self.target_ = "dense", None
        spectrum = whole_spectrum(K.copy())
        self._choose_scale(spectrum)
        return self.shares_[0] * spectrum.weights(tikhonov_factors, self.lam_)

    def _weights_from_rows(self, rows: Array, counts: Array | None) -> Array:
        self.solver_ = "dense"
        arrays = ARRAYS_OF_WHOLE_SPECTRUM + 3
        spectrum = dense_spectrum(self.kernel_, rows, arrays=arrays, memory_limit=self.memory_limit, remedy=_REMEDY)
        self.target_kind_, refits = self._target_refits(rows)
        if refits is None:
            self.target_ = None
            self._choose_scale(spectrum)
        else:
            self.target_ = refits.target
            self._choose_shares(AdaptiveScore(spectrum, refits, rows))
        return self.shares_[0] * spectrum.weights(tikhonov_factors, self.lam_)

    def _pull(self) -> Element | None:
        return None if self.target_ is None or self.shares_[1] == 0 else self.shares_[1] * self.target_

    def _target_refits(self, rows: Array) -> tuple[str, TargetRefits | None]:
        if self.target is None:
            return "none", None
        if not isinstance(self.target, str) or self.target != "gaussian":
            return "given", given_target(self.target, self.kernel_, rows)
        kind = gaussian_kind(self.kernel_, rows)
        if kind.startswith("none"):
            return kind, None
        return kind, (gaussian_target if kind == "gaussian" else sampled_target)(self.kernel_, rows)

    def _choose_scale(self, spectrum: Spectrum) -> None:
        self.lam_, scale, score, self.loo_path_ = choose_shrinkage(spectrum, TikhonovRefits, "loo", "loo")
        self.shares_ = (scale, 0.0)
        if score is not None:
            self.loo_score_ = score

    def _choose_shares(self, score: AdaptiveScore) -> None:
        self.lam_, _, risks = score.search()
        self.shares_, self.loo_score_ = score.best_shares(self.lam_)
        self.loo_path_ = ScorePath(risks.values, score.deletion_scores(risks.values))


class _Quadratic(NamedTuple):
    """a²·square + 2ab·mixed + b²·target_square − 2(a·cross + b·target_cross), an entry for each λ."""

    base: RefitMeans
    mixed: Array
    target_cross: float
    target_square: float

    def values(self, a: Array, b: Array) -> Array:
        Q, T = self.base.square, self.target_square
        return a**2 * Q + 2 * a * b * self.mixed + b**2 * T - 2 * (a * self.base.cross + b * self.target_cross)

    def lowest(self, tie: float) -> tuple[Array, Array]:
        """The lowest point of the square [0, 1]²: inside, or on an edge; b = 0 wins ties.

        The matrix of the quadratic is a Gram matrix, or an average of them, so there is no other kind of minimum.
        """
        p, Q, X = self.base.cross.real, self.base.square.real, self.mixed.real
        t, T = np.full_like(p, self.target_cross), np.full_like(p, self.target_square)
        real = self._replace(base=RefitMeans(p, Q), mixed=X)
        zero, one = np.zeros_like(p), np.ones_like(p)
        determinant = Q * T - X**2
        candidates = [
            (_ratio(p, Q, 1.0), zero),
            (zero, _ratio(t, T, 0.0)),
            (one, _ratio(t - X, T, 0.0)),
            (_ratio(p - X, Q, 0.0), one),
            (_ratio(p * T - t * X, determinant, 0.0), _ratio(t * Q - p * X, determinant, 0.0)),
        ]
        a, b = (np.stack(part) for part in zip(*candidates, strict=True))
        values = real.values(a, b)
        values[0] -= tie
        lowest = np.argmin(values, axis=0)[None]
        return np.take_along_axis(a, lowest, axis=0)[0], np.take_along_axis(b, lowest, axis=0)[0]


def _ratio(numerator: Array, denominator: Array, otherwise: float) -> Array:
    """The quotient in [0, 1]."""
    small = np.finfo(float).tiny
    ratio = np.divide(numerator, denominator, out=np.full_like(numerator, otherwise), where=denominator > small)
    return np.clip(ratio, 0.0, 1.0)


class AdaptiveScore(SpectralScore):
    r"""Estimate of the risk of f = a·F(λ) + b·f*, at the best (a, b) for each λ.

    It is ϱ + ‖f‖² − 2·mean f₋ᵢ(x_i): the norm is known, and only ⟨f, μ⟩ has to be estimated, by refits without row i.
    """

    smooth = False  # where (a, b) reaches an edge, the curve breaks

    def __init__(self, spectrum: Spectrum, target: TargetRefits, rows: Array) -> None:
        super().__init__(spectrum)
        self.refits = TikhonovRefits(spectrum)
        self.deleted = _DeletedTarget(spectrum, target)
        self._target_at_rows = spectrum.eigenvectors.T @ target.target.values(rows) / spectrum.unit
        self._target_square = target.target.norm() ** 2 / spectrum.unit

    def inside(self, lams: Array) -> Array:
        return self._lowest(self._risk(lams))

    def limits(self) -> tuple[float, float]:
        at_zero, at_infinity = (float(self._lowest(limit.risk)[0]) for limit in (self._plain(), self._nothing()))
        tied = abs(at_zero - at_infinity) <= TIE * self.spectrum.mean_diag
        return at_zero, at_zero if tied else at_infinity  # of equals, the plain average is the simpler

    def best_shares(self, lam: float) -> tuple[tuple[float, float], float]:
        """(a, b) at λ in [0, inf], and the leave-one-out score there, in the units of the data."""
        quadratics = self._quadratics(lam)
        a, b = self._shares(quadratics.risk)
        return (float(a[0]), float(b[0])), float(self._deletion_scores(quadratics)[0])

    def deletion_scores(self, lams: Array) -> Array:
        """Leave-one-out scores at many λ in (0, inf) and their best (a, b), in the units of the data."""
        return self._deletion_scores(self._quadratics_inside(lams / self.spectrum.unit))

    def _deletion_scores(self, quadratics: _Quadratics) -> Any:
        return self._in_data_units(self._valued(quadratics.deletion, self._shares(quadratics.risk)))

    def _lowest(self, risk: _Quadratic) -> Array:
        return self._valued(risk, self._shares(risk))

    def _valued(self, quadratic: _Quadratic, shares: tuple[Array, Array]) -> Array:
        return self.spectrum.mean_diag + quadratic.values(*shares)

    def _shares(self, risk: _Quadratic) -> tuple[Array, Array]:
        return risk.lowest(TIE * self.spectrum.mean_diag)

    def _quadratics(self, lam: float) -> _Quadratics:
        if 0 < lam < np.inf:
            return self._quadratics_inside(np.array([lam / self.spectrum.unit]))
        return self._nothing() if lam > 0 else self._plain()

    def _quadratics_inside(self, lams: Array) -> _Quadratics:
        return _Quadratics(self._risk(lams), self._quadratic(self.refits.means(lams), self.deleted.mixed(lams)))

    def _risk(self, lams: Array) -> _Quadratic:
        sp = self.spectrum
        g, ones = sp.eigenvalues[:, None], sp.ones[:, None]
        shrunk = g / (g + lams) * ones / sp.n
        cross = self.refits.means(lams * _without_a_row(sp.n)).cross
        means = RefitMeans(cross, (g * shrunk**2).sum(axis=0))
        return self._quadratic(means, self._target_at_rows @ shrunk, known=True)

    def _plain(self) -> _Quadratics:
        sp = self.spectrum
        refits = plain_refit_means(sp.n, sp.mean_diag, sp.mean_gram)
        known, mixed = refits._replace(square=np.array(sp.mean_gram)), self._target_at_rows @ sp.ones / sp.n
        return _Quadratics(self._quadratic(known, mixed, known=True), self._quadratic(refits, self.deleted.plain_mixed))

    def _nothing(self) -> _Quadratics:
        zero = RefitMeans(np.zeros(1), np.zeros(1))
        return _Quadratics(self._quadratic(zero, 0.0, known=True), self._quadratic(zero, 0.0))

    def _quadratic(self, base: RefitMeans, mixed: Any, known: bool = False) -> _Quadratic:
        cross, square = map(np.atleast_1d, base)
        target_square = self._target_square if known else self.deleted.square
        return _Quadratic(RefitMeans(cross, square), np.atleast_1d(mixed), self.deleted.cross, target_square)


class _Quadratics(NamedTuple):
    """The risk, where squares and products are known, and the leave-one-out score, where they are of the refits."""

    risk: _Quadratic
    deletion: _Quadratic


def _without_a_row(n: float) -> float:
    """What λ is multiplied by when a row is left out.

    With (n−1)/n the refits shrink as F does, and leave-one-out has next to no bias; with 1 they have the λ that n − 1
    rows would be given, for the best one depends little on n. This is half way (docs/adaptive.md has the figures).
    """
    return float(np.sqrt((n - 1.0) / n))


class _DeletedTarget:
    r"""Means over the rows of ⟨φ_i, f*₋ᵢ⟩ (cross), ‖f*₋ᵢ‖² (square) and ⟨F₋ᵢ, f*₋ᵢ⟩ (mixed), in O(n²) for each λ.

    With M_ij = f*₋ᵢ(x_j), e = λ/(g+λ), and the weights of F₋ᵢ, (1 − W_j + t_i·U e U_i)/(n−1) for j ≠ i, the last is
    the mean of (Σ_j M_ij − M_ii − (MW)_i + t_i Σ_k (MU∘U)_ik e_k)/(n−1).
    """

    def __init__(self, spectrum: Spectrum, target: TargetRefits) -> None:
        U, self.spectrum = spectrum.eigenvectors, spectrum
        values, parts = target.values / spectrum.unit, target.parts
        sizes = np.bincount(parts, minlength=len(values))
        own = values[parts, np.arange(len(U))]
        n = len(U)
        self.cross = float(own.mean())
        self.square = float(sizes @ (target.squared_norms / spectrum.unit) / n)
        self.plain_mixed = float(sizes @ values.sum(axis=1) - own.sum()) / (n * (n - 1))
        projected = values @ U
        self._sums = sizes @ projected * spectrum.ones
        self._products = projected[parts] * U

    def mixed(self, lams: Array) -> Array:
        sp = self.spectrum
        e = lams / (sp.eigenvalues[:, None] + lams)
        W = times(sp.eigenvectors, e * sp.ones[:, None])
        H = times(sp.squared_eigenvectors, e)
        corrections = (W / H * times(self._products, e)).sum(axis=0) - self._sums @ e
        return self.plain_mixed + corrections / (sp.n * (sp.n - 1))


_REMEDY = "use ShrunkKernelMean, or fewer rows; or raise memory_limit"

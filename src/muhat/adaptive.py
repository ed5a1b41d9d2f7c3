"""The adaptive mean: flexible shrinkage and a Gaussian fitted to the rows, mixed by leave-one-out."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from muhat import gram
from muhat.elements import Element
from muhat.kernels import Gaussian, Kernel
from muhat.mean import BaseKernelMean
from muhat.memory import check_memory
from muhat.refits import RefitMeans, TikhonovRefits, plain_refit_means, times
from muhat.selection import TIE, SpectralScore
from muhat.spectral import DENSE_ARRAYS
from muhat.spectrum import Spectrum, whole_spectrum
from muhat.targets import TargetRefits, gaussian_kind, gaussian_target, given_target, sampled_target
from muhat.types import Array


class AdaptiveKernelMean(BaseKernelMean):
    r"""The mean :math:`\hat\mu = a F(\lambda) + b f^*`, all three numbers by leave-one-out.

    F(λ) is flexible shrinkage with Tikhonov's filter, and f* the embedding of a Gaussian :math:`N(\bar x, \Sigma)` with
    the OAS covariance Σ of the rows. λ lies in [0, inf] and (a, b) in [0, 1]². The plain average (λ = 0, a = 1, b = 0),
    simple shrinkage (λ = 0, b = 0), flexible shrinkage (a = 1, b = 0) and the two combined (b = 0) are special cases.

    Row i leaves the data, the span *and the target*, which is refitted without it: with the target taken as fixed the
    score would trust it too much. For each λ the score is a quadratic in (a, b), minimised on the square exactly.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
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
        See :class:`KernelMean`.
    loo_path_ : ScorePath
        The score over λ, at the best (a, b) for each, both limits left out.

    Notes
    -----
    O(n³) time for one eigendecomposition, then O(n²) for each λ, and seven n x n arrays. The refits of the target cost
    O(n²·min(n, d)) for the Gaussian kernel; for others O(n²d²), or by samples O(n²d·min(n, d)) and 256·n² values of the
    kernel, and beyond 300 rows one refit for each of 20 parts of the rows. ``sample_weight`` must be whole numbers:
    rows are repeated.

    Examples
    --------
    >>> import muhat as mh
    >>> from muhat.adaptive import AdaptiveKernelMean
    >>> P = mh.paper_mixture(10, random_state=0)
    >>> X = P.sample(20, random_state=1)
    >>> kernel = mh.Gaussian(bandwidth=10.0)
    >>> truth = mh.embed(kernel, P)
    >>> means = [mh.KernelMean(kernel), mh.SpectralKernelMean(kernel), AdaptiveKernelMean(kernel)]
    >>> [round(mean.fit(X).mean_.distance(truth) ** 2, 4) for mean in means]
    [0.0367, 0.0245, 0.0194]
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

    def _estimate(self, points: Array, repetitions: Array) -> None:
        rows, first_copies = _repeated(points, repetitions)
        check_memory((DENSE_ARRAYS + 3) * 8 * len(rows) ** 2, self.memory_limit, f"{len(rows):,} rows", _REMEDY)
        self.solver_ = "dense"
        self.target_kind_, refits = self._target_refits(rows)
        spectrum = whole_spectrum(gram.dense(self.kernel_._gram, rows))
        score = AdaptiveScore(spectrum, refits)
        self.lam_, self._known_loo_score, self.loo_path_ = score.search()
        self.shares_ = score.best_shares(self.lam_)
        self.target_ = None if refits is None else refits.target
        weights = np.zeros(len(points))
        weights[repetitions > 0] = self.shares_[0] * np.add.reduceat(self._base_weights(spectrum), first_copies)
        pulls = [] if self.target_ is None or self.shares_[1] == 0 else [self.shares_[1] * self.target_]
        self._store(points, weights, *pulls)

    def _target_refits(self, rows: Array) -> tuple[str, TargetRefits | None]:
        if self.target is None:
            return "none", None
        if not isinstance(self.target, str) or self.target != "gaussian":
            return "given", given_target(self.target, self.kernel_, rows)
        kind = gaussian_kind(self.kernel_, rows)
        if kind.startswith("none"):
            return kind, None
        return kind, (gaussian_target if kind == "gaussian" else sampled_target)(self.kernel_, rows)

    def _base_weights(self, spectrum: Spectrum) -> Array:
        if self.lam_ == 0:
            return spectrum.repetitions / spectrum.n
        lam, g = self.lam_ / spectrum.unit, spectrum.eigenvalues
        return spectrum.weights(np.zeros_like(g) if np.isinf(lam) else g / (g + lam))


def _repeated(points: Array, repetitions: Array) -> tuple[Array, Any]:
    """The rows, each as often as it counts, and where the first copy of each is."""
    present = repetitions > 0
    counts = repetitions[present]
    if (counts != np.rint(counts)).any():
        raise ValueError("sample_weight must be whole numbers here, for rows are repeated; others: SpectralKernelMean")
    first_copies = np.cumsum(np.append(0, counts[:-1])).astype(int)
    return np.repeat(points[present], counts.astype(int), axis=0), first_copies


class _Shares(NamedTuple):
    """The quadratic a²·square + 2ab·mixed + b²·target_square − 2(a·cross + b·target_cross), an entry for each λ."""

    base: RefitMeans
    mixed: Array
    target_cross: float
    target_square: float

    def scores(self, a: Array, b: Array) -> Array:
        Q, T = self.base.square, self.target_square
        return a**2 * Q + 2 * a * b * self.mixed + b**2 * T - 2 * (a * self.base.cross + b * self.target_cross)

    def best(self, tie: float) -> tuple[Array, Array]:
        """The lowest point of the square [0, 1]²: inside, or on an edge; b = 0 wins ties.

        The matrix of the quadratic is an average of Gram matrices, so there is no other kind of minimum.
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
        scores = real.scores(a, b)
        scores[0] -= tie
        lowest = np.argmin(scores, axis=0)[None]
        return np.take_along_axis(a, lowest, axis=0)[0], np.take_along_axis(b, lowest, axis=0)[0]


def _ratio(numerator: Array, denominator: Array, otherwise: float) -> Array:
    """The quotient in [0, 1]."""
    small = np.finfo(float).tiny
    ratio = np.divide(numerator, denominator, out=np.full_like(numerator, otherwise), where=denominator > small)
    return np.clip(ratio, 0.0, 1.0)


class AdaptiveScore(SpectralScore):
    """Leave-one-out score of a·F(λ) + b·f*, at the best (a, b) for each λ; the base deletes one row in any case."""

    smooth = False  # where (a, b) reaches an edge, the curve breaks

    def __init__(self, spectrum: Spectrum, target: TargetRefits | None) -> None:
        super().__init__(spectrum)
        self.refits = TikhonovRefits(spectrum)
        self.target = None if target is None else _MixedMeans(spectrum, target)

    def inside(self, lams: Array) -> Array:
        return self._scored(self._shares(lams))

    def limits(self) -> tuple[float, float]:
        at_zero, at_infinity = float(self._scored(self._plain())[0]), float(self._scored(self._nothing())[0])
        tied = abs(at_zero - at_infinity) <= TIE * self.spectrum.mean_diag
        return at_zero, at_zero if tied else at_infinity  # of equals, the plain average is the simpler

    def best_shares(self, lam: float) -> tuple[float, float]:
        """(a, b) at λ, in the units of the data."""
        if np.isinf(lam):
            shares = self._nothing()
        else:
            shares = self._shares(np.array([lam / self.spectrum.unit])) if lam > 0 else self._plain()
        a, b = shares.best(TIE * self.spectrum.mean_diag)
        return float(a[0]), float(b[0])

    def _scored(self, shares: _Shares) -> Array:
        return self.spectrum.mean_diag + shares.scores(*shares.best(TIE * self.spectrum.mean_diag))

    def _shares(self, lams: Array) -> _Shares:
        base = self.refits.means(lams)
        if self.target is None:
            return _Shares(base, np.zeros_like(base.cross), 0.0, 0.0)
        return _Shares(base, self.target.mixed(lams), self.target.cross, self.target.square)

    def _plain(self) -> _Shares:
        sp = self.spectrum
        cross, square = plain_refit_means(sp.n, sp.mean_diag, sp.mean_gram)
        return self._limit(cross, square, 0.0 if self.target is None else self.target.plain_mixed)

    def _nothing(self) -> _Shares:
        return self._limit(0.0, 0.0, 0.0)

    def _limit(self, *means: Array | float) -> _Shares:
        cross, square, mixed = (np.atleast_1d(np.asarray(mean, dtype=float)) for mean in means)
        t, T = (0.0, 0.0) if self.target is None else (self.target.cross, self.target.square)
        return _Shares(RefitMeans(cross, square), mixed, t, T)


class _MixedMeans:
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

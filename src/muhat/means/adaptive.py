"""Adaptive mean: spectral shrinkage mixed with a Gaussian fitted to the rows, by leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from muhat._support.types import Array
from muhat.grams import FeaturesGram, Gram, PairGram, RowsGram
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import steady_blas
from muhat.linalg.spectrum import Spectrum
from muhat.means.base import BaseKernelMean, MeanFit, Scored, check_target, check_unweighted, fit_of
from muhat.means.eigensolvers import AUTO, Eigensolver, certificate
from muhat.means.targets import (
    LooTarget,
    TargetKind,
    gaussian_element,
    gaussian_kind,
    gaussian_target,
    given_target,
    sampled_element,
    sampled_target,
)
from muhat.rkhs.elements import Element
from muhat.shrinkage.filters import Tikhonov
from muhat.shrinkage.leave_one_out import LooMoments, TikhonovLoo, plain_loo_moments, times
from muhat.shrinkage.scores import TIE, SpectralScore, choose_shrinkage, on_edges

Target = Literal["gaussian"] | Element | None


class AdaptiveKernelMean(BaseKernelMean):
    r"""Kernel mean shrunk toward a fitted Gaussian, with all parameters selected by leave-one-out cross-validation.

    In :math:`\hat\mu = a F(\lambda) + b f^*`, F(λ) is flexible shrinkage with Tikhonov's filter, and f* the embedding
    of a Gaussian :math:`N(\bar x, \Sigma)` with the OAS covariance Σ of the rows. λ lies in [0, inf], and a and b in
    [0, 1]. The plain average (λ = 0, a = 1, b = 0), simple shrinkage (λ = 0, b = 0), flexible shrinkage (a = 1, b = 0)
    and the two combined (b = 0) are special cases.

    They minimise an estimate of the loss, :math:`\|f\|^2 - 2\,\mathrm{mean}_i f_{-i}(x_i)`. Here :math:`\|f\|^2` is
    known. The inner product is estimated by leaving out row i, from the data, the span and the fit of the target. If
    the target were held fixed, leave-one-out would trust it too much. For each λ this is a quadratic in (a, b), and its
    minimum on the square is exact.

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
    target : "gaussian", None or Element, default "gaussian"
        f*. For Laplace, Matérn and sums and products of radial kernels, which have no closed-form expectation under a
        Gaussian, a sample of 256 points stands for it. An element of the space of the fitted kernel is taken as it is:
        it must not come from the same rows. None sets b = 0, and so does a kernel for which a Gaussian is of no use or
        cannot be had, such as the Gram matrix that bags, tests and kernel PCA pass to the mean: see ``target_kind_``.
    solver : "auto", "dense" or "low-rank", default "auto"
        "dense" decomposes the whole Gram matrix, "low-rank" a factor of a rank that is doubled until ``tol`` is met.
        "auto" is "dense" up to 3,000 rows, and "low-rank" beyond unless that cannot meet ``tol``; more than 300,000
        rows are refused.
    tol : float, default 1e-4
        What ``spectrum_error_`` may be.
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
        "none: scale" (squares of the data, in units of the bandwidth, overflow or vanish).
    mean_ : Element
        Atoms plus, where b > 0, the target; atoms of a target come after the rows.
    weights_ : array of shape (n,)
        Of the rows: a·β.
    solver_ : str
        What "auto" took.
    rank_ : int
        Eigen-directions that F(λ) rests on.
    spectrum_error_ : float
        How far a low rank is off, 0 for "dense": the larger of a bound of the distance of F(λ) to that of the whole
        spectrum at the same λ, relative to its norm, and the share of ‖F(λ)‖² that the rank misses, on which a and b
        rest.
    kernel_, loo_score_
        See :class:`KernelMean`. The score is that of other estimators, with the norms of the left-out fits too. It
        takes the time of another fit, or of many for a target that is a sample, when it is first asked for.

    See Also
    --------
    SpectralKernelMean : The base F(λ) alone.
    ShrunkKernelMean : Shrinkage toward zero or a given target.
    BlendedSample : Probabilities and quantiles from rows and a fitted Gaussian.

    Notes
    -----
    One eigendecomposition costs O(n³) time and four n x n arrays (``loo_score_`` seven), then each λ O(n²). For the
    Gaussian kernel the target is fitted without each row in O(n²·min(n, d)), up to 3,000 rows; for other kernels and
    more rows without each of 20 parts of them, which by samples takes about 256·(n + 128) values of the kernel. No
    d x d array is made, and kernels of the Euclidean distance see no more than n + 128 columns. ``sample_weight`` must
    be whole numbers, because rows are repeated.

    At rank r the low-rank way costs O(nr²), and n² kernel values in tiles for the certificate. With :math:`\hat K` the
    matrix of the factor, F(λ) is off by at most :math:`\|(K - \hat K)(1/n - \beta)\| / 2\sqrt\lambda`.

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
        target: Target = "gaussian",
        *,
        solver: Literal["auto", "dense", "low-rank"] = "auto",
        tol: float = 1e-4,
        memory_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.target = target
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit

    def _repeats_rows(self) -> bool:
        return True

    @property
    def target_(self) -> Element | None:
        """f*, or None."""
        return fit_of(self).target

    def estimate(self, G: Gram) -> MeanFit:
        return adaptive_mean(G, self.target, Eigensolver(self.solver, self.tol, self.memory_limit))


@dataclass(frozen=True, eq=False, kw_only=True)
class AdaptiveFit(MeanFit):
    """The adaptive mean: its target as an element, and its leave-one-out score, are made when they are asked for."""

    kind: TargetKind
    given: Element | None = None

    @cached_property
    def target(self) -> Element | None:
        make = {TargetKind.GAUSSIAN: gaussian_element, TargetKind.SAMPLE: sampled_element}.get(self.kind)
        G = self.estimated_from()
        if make is None or G is None:
            return self.given
        with steady_blas(len(self.weights)):
            return make(G.kernel, G.points)

    def late_score(self, G: PairGram) -> Scored:
        _, target = fitted_target("gaussian" if self.given is None else self.given, G)
        assert target is not None, "the score is known where there is no target"
        spectrum = G.spectrum(self.chosen["solver"], self.chosen["rank"], more_arrays=3)
        score = AdaptiveScore(spectrum, target)
        a, b = np.atleast_2d(self.chosen["shares"]).T
        without_rows = deletion_quadratic(score, self.chosen["lam"]).values(a, b)
        return Scored(float(score.in_data_units(spectrum.mean_diag + without_rows)[0]))


def adaptive_mean(G: Gram, target: Target = "gaussian", solver: Eigensolver = AUTO) -> AdaptiveFit:
    """Estimate the mean by a·F(λ) + b·f*, F(λ) spectral shrinkage and f* a target; without a target b = 0."""
    check_unweighted(G)
    spectra = solver.spectra(G)
    kind, loo_target = fitted_target(target, G)

    def shrunk(spectrum: Spectrum) -> AdaptiveFit:
        if loo_target is None:
            lam, a, score, path = choose_shrinkage(spectrum, Tikhonov().leave_one_out, "loo", "loo")
            assert score is not None, "both were searched"
            b, known = 0.0, Scored(score, path)
        else:
            (lam, a, b), known = AdaptiveScore(spectrum, loo_target).choose(), None
        chosen = {
            "lam": lam,
            "shares": (a, b),
            "target_kind": kind.value,
            "rank": int(np.count_nonzero(spectrum.eigenvalues)),
            "spectrum_error": _spectrum_error(G, spectrum, lam),
            "solver": spectrum.solver,
        }
        weights, given = a * spectrum.weights(Tikhonov(), lam), target if isinstance(target, Element) else None
        return AdaptiveFit(weights, chosen, known, gram=G, target_weight=b, kind=kind, given=given)

    return solver.first(spectra, shrunk)


def fitted_target(target: Target, G: Gram) -> tuple[TargetKind, LooTarget | None]:
    """The kind of target for these rows, and the target with its leave-one-out fits (None: no target)."""
    if target is None:
        return TargetKind.NONE, None
    if not isinstance(target, str) or target != "gaussian":
        check_target(target, G)
        return TargetKind.GIVEN, given_target(target, G.kernel, G.points)
    if not isinstance(G, RowsGram):
        return TargetKind.FEATURES if isinstance(G, FeaturesGram) else TargetKind.GRAM_MATRIX, None
    kind = gaussian_kind(G.kernel, G.points)
    if kind is TargetKind.GAUSSIAN:
        return kind, gaussian_target(G.kernel, G.points)
    return kind, sampled_target(G.kernel, G.points) if kind is TargetKind.SAMPLE else None


def _spectrum_error(G: Gram, spectrum: Spectrum, lam: float) -> float:
    """Relative error of F(λ) by a low rank: the certificate's, and what the rank misses of the squared norm."""
    if spectrum.solver != "low-rank":
        return 0.0
    base = spectrum.weights(Tikhonov(), lam if lam < np.inf else 0.0)
    square = G.squared_norm(base)
    missed = 1.0 - spectrum.squared_norm(base) / square if square > 0 else 0.0
    return missed if spectrum.factor is None else max(certificate(G, spectrum.factor, base, lam), missed)


class LooQuadratic(NamedTuple):
    """a²·square + 2ab·mixed + b²·target_square − 2(a·cross + b·target_cross), an entry for each λ."""

    base: LooMoments
    mixed: Array
    target_cross: float
    target_square: float

    def values(self, a: Array, b: Array) -> Array:
        Q, T = self.base.square, self.target_square
        return a**2 * Q + 2 * a * b * self.mixed + b**2 * T - 2 * (a * self.base.cross + b * self.target_cross)

    def at_limit(self, lam: float) -> LooQuadratic:
        """The entry at λ = 0 or at infinity, where there are both."""
        at = slice(0, 1) if lam == 0 else slice(1, 2)
        return self._replace(base=LooMoments(*(part[at] for part in self.base)), mixed=self.mixed[at])

    def lowest(self, tie: float) -> tuple[Array, Array]:
        """The lowest point of the square [0, 1]²: inside, or on an edge; b = 0 wins ties.

        The matrix of the quadratic is a Gram matrix, or an average of them, so there is no other kind of minimum.
        """
        p, Q, X = self.base.cross.real, self.base.square.real, self.mixed.real
        zero = np.zeros_like(p)
        one, t, T = zero + 1.0, zero + self.target_cross, zero + self.target_square
        # Five candidates. On the edges b = 0, a = 0, a = 1 and b = 1 the quadratic is one in the other number, with its
        # minimum at p/Q, t/T, (t − X)/T and (p − X)/Q, clipped to the edge; inside it lies where both derivatives
        # vanish, aQ + bX = p and aX + bT = t, by Cramer's rule.
        inside = Q * T - X**2
        numerators = np.array([p, t, t - X, p - X, p * T - t * X, t * Q - p * X])
        denominators = np.array([Q, T, T, Q, inside, inside])
        ratios = np.zeros_like(numerators)
        ratios[0] = 1.0  # of an estimate without norm
        np.divide(numerators, denominators, out=ratios, where=denominators > np.finfo(float).tiny)
        on_a, on_b, on_one_b, on_one_a, inside_a, inside_b = ratios.clip(0.0, 1.0)
        a = np.array([on_a, zero, one, on_one_a, inside_a])
        b = np.array([zero, on_b, on_one_b, one, inside_b])
        values = a * (a * Q + 2 * b * X - 2 * p) + b * (b * T - 2 * t)
        values[0] -= tie
        lowest = np.argmin(values, axis=0), np.arange(len(p))
        return a[lowest], b[lowest]


class AdaptiveScore(SpectralScore):
    r"""Estimate of the risk of f = a·F(λ) + b·f*, at the best (a, b) for each λ.

    It is ϱ + ‖f‖² − 2·mean f₋ᵢ(x_i): the norm is known, and only ⟨f, μ⟩ has to be estimated, by fits without row i.
    """

    def __init__(self, spectrum: Spectrum, target: LooTarget) -> None:
        # All inner products are taken in the basis of eigenvectors. An element Σ_j β_j φ(x_j) with β = Uc has the
        # squared norm Σ_k g_k c_k², and its product with f* is Σ_k c_k (Uᵀf*)_k, f* at the rows. For F(λ) it has
        # c = g/(g + λ)·Uᵀ1/n. At the limits F is the plain average (λ = 0) and zero (λ = ∞).
        super().__init__(spectrum)
        self.target, self.leave_one_out = target, TikhonovLoo(spectrum)
        self._tie = TIE * spectrum.mean_diag
        self._projected_target = spectrum.eigenvectors.T @ target.at_rows / spectrum.unit
        self.cross, self._square = float(target.own.mean()) / spectrum.unit, target.squared_norm / spectrum.unit
        plain = plain_loo_moments(spectrum.n, spectrum.mean_diag, spectrum.mean_gram)
        known = LooMoments(plain.cross * _AVERAGE, spectrum.mean_gram * _AVERAGE)
        mixed = self._projected_target @ spectrum.ones / spectrum.n * _AVERAGE
        self._limits = LooQuadratic(known, mixed, self.cross, self._square)

    def choose(self) -> tuple[float, float, float]:
        """λ, a and b with the lowest risk, in the units of the data."""
        lam = self.search().lam
        a, b = self.risk(lam).lowest(self._tie)
        return lam, float(a[0]), float(b[0])

    def risk(self, lam: float) -> LooQuadratic:
        """The risk at λ in [0, inf], in the units of the data, as a quadratic in (a, b)."""
        return self._inside(np.array([lam / self.spectrum.unit])) if 0 < lam < np.inf else self._limits.at_limit(lam)

    def inside(self, lams: Array) -> Array:
        risk = self._inside(lams)
        return self.spectrum.mean_diag + risk.values(*risk.lowest(self._tie))

    def pieces(self, lams: Array) -> Array:
        """Where (a, b) reaches an edge of the square, the curve breaks."""
        a, b = self._inside(lams).lowest(self._tie)
        return 3.0 * on_edges(a) + on_edges(b)

    def limits(self) -> tuple[float, float]:
        risk = self._limits
        at_zero, at_infinity = (self.spectrum.mean_diag + risk.values(*risk.lowest(self._tie))).tolist()
        tied = abs(at_zero - at_infinity) <= self._tie
        return at_zero, at_zero if tied else at_infinity  # of equals, the plain average is the simpler

    def _inside(self, lams: Array) -> LooQuadratic:
        """The risk at λ in (0, inf), in the units of the spectrum, as a quadratic in (a, b)."""
        # Q = ‖F‖² and X = ⟨F, f*⟩ are known, and only p = mean_i F₋ᵢ(x_i) is left out one by one. There λ is that of
        # n − ½ rows. With λ(n−1)/n the fits without a row would shrink as F does, and leave-one-out would have next to
        # no bias; with λ they have what n − 1 rows would be given, as the best λ depends little on n. The factor
        # is half way between the two.
        sp = self.spectrum
        g, ones = sp.eigenvalues[:, None], sp.ones[:, None]
        shrunk = g / (g + lams) * ones / sp.n
        cross = self.leave_one_out.moments(lams * np.sqrt((sp.n - 1.0) / sp.n)).cross
        square = (g * shrunk**2).sum(axis=0)
        return LooQuadratic(LooMoments(cross, square), self._projected_target @ shrunk, self.cross, self._square)


def deletion_quadratic(score: AdaptiveScore, lam: float) -> LooQuadratic:
    """The leave-one-out score of f = a·F(λ) + b·f*, without ϱ, as a quadratic in (a, b), λ in the units of the data.

    Its squares and products are those of the fits without a row. It needs the values of all left-out targets at all
    rows, where the risk needs those at the own rows.
    """
    # M_ij = f*₋ᵢ(x_j) has one row per part: sums over i weigh a part by its size. For the plain average without row
    # i, ⟨F₋ᵢ, f*₋ᵢ⟩ = (Σ_j M_ij − M_ii)/(n − 1), whose mean over i is ``plain_mixed``.
    sp, target = score.spectrum, score.target
    n, parts = len(sp.diagonal), target.parts
    values, squared_norms = target.without_parts()
    values, sizes = values / sp.unit, np.bincount(parts, minlength=len(values))
    at_own, square = values[parts, np.arange(n)], float(sizes @ squared_norms / sp.unit / n)
    plain_mixed = float(sizes @ values.sum(axis=1) - at_own.sum()) / (n * (n - 1))
    if not 0 < lam < np.inf:
        plain = plain_loo_moments(sp.n, sp.mean_diag, sp.mean_gram)
        base = LooMoments(plain.cross * _AVERAGE, plain.square * _AVERAGE)
        return LooQuadratic(base, plain_mixed * _AVERAGE, score.cross, square).at_limit(lam)
    # With R = U e Uᵀ, e = λ/(g + λ), the weights of F₋ᵢ are (1 − W_j + t_i R_ij)/(n−1) for j ≠ i, W = R1 and
    # t_i = W_i/R_ii (``TikhonovLoo``). Summed against M_ij this gives
    #     (n−1) ⟨F₋ᵢ, f*₋ᵢ⟩ = Σ_j M_ij − M_ii − (MW)_i + t_i Σ_k (MU ∘ U)_ik e_k,
    # where the sum over i of (MW)_i is Σ_k e_k (1ᵀMU)_k (Uᵀ1)_k. Eigenvectors with the eigenvalue 0 that are left
    # out have e = 1: there e = 1 − s with s = g/(g + λ), and the ones are added apart.
    projected, lams, g = values @ sp.eigenvectors, np.array([lam / sp.unit]), sp.eigenvalues[:, None]
    share = lams / (g + lams) if sp.complete else -g / (g + lams)
    W, H = times(sp.eigenvectors, share * sp.ones[:, None]), times(sp.squared_eigenvectors, share)
    own = times(projected[parts] * sp.eigenvectors, share)
    if not sp.complete:
        W, H, own = 1.0 + W, 1.0 + H, at_own[:, None] + own
    kept = plain_mixed if sp.complete else -score.cross / (sp.n - 1)
    crossed = (W / H * own).sum(axis=0) - (sizes @ projected * sp.ones) @ share
    mixed = kept + crossed / (sp.n * (sp.n - 1))
    return LooQuadratic(score.leave_one_out.moments(lams), mixed, score.cross, square)


_AVERAGE = np.array([1.0, 0.0])
"""The share of the plain average at the limits of λ: all at 0, and nothing at infinity."""

"""Spectral shrinkage (F-KMSE with Tikhonov's filter, and other filters)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muhat.grams import FeaturesGram, Gram
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.spectrum import Spectrum
from muhat.means.base import UNKNOWN_SCORE, BaseKernelMean, MeanFit, Scored, check_unweighted, fit_of
from muhat.means.eigensolvers import AUTO, Eigensolver, certificate
from muhat.shrinkage.filters import Filter, Tikhonov
from muhat.shrinkage.scores import Lam, LooScore, Scale, ScorePath, choose_shrinkage, given_lam, given_scale


class SpectralKernelMean(BaseKernelMean):
    r"""Spectral shrinkage of a kernel mean: :math:`\hat\mu_\lambda = c \sum_k h(g_k) \langle\hat\mu, v_k\rangle v_k`.

    Each eigen-direction of the Gram matrix is shrunk by a filter h; with Tikhonov's, h(g) = g/(g+λ), this is the
    paper's F-KMSE with weights :math:`\beta = (K + \lambda I)^{-1} K 1_n`.

    Differs from the paper: λ is chosen by true deletion, where row i leaves the data and the span. The paper's
    score (Theorem 4, ``lam="theorem4"``) leaves :math:`\phi(x_i)` in the span and shrinks too much. The paper
    minimises it by MATLAB's ``fminsearch`` and ``fminbnd`` and names neither start nor bounds, which decide how much is
    shrunk; here λ is the exact minimiser on [0, inf].

    Parameters
    ----------
    kernel : Kernel or "precomputed", default Gaussian()
        The kernel, or "precomputed" where X is its Gram matrix. A bandwidth "median" becomes a number in ``fit``.
    filter : Filter, default Tikhonov()
        Tikhonov, IteratedTikhonov, TruncatedSVD, Landweber or NuMethod. Leave-one-out costs O(n²) for each λ with
        Tikhonov; the others name their cost.
    lam : "loo", "theorem4" or float in [0, inf], default "loo"
        λ in Gram units: 0 is the plain average and inf the zero element.
    scale : float >= 0 or "loo", default 1.0
        The constant c; "loo" takes the leave-one-out optimum in [0, 1], together with λ.
    solver : "auto", "dense" or "low-rank", default "auto"
        "dense" decomposes the whole Gram matrix, O(n³). "low-rank" decomposes r features of the rows, O(nr²): the exact
        ones of a linear or polynomial kernel where they are few, r ≤ n/4 and r ≤ 750, else a pivoted Cholesky factor
        that approximates the matrix, with a certificate. "auto" is low-rank where that is exact, else dense to 3,000
        rows, if they fit the memory, and beyond where no rank below n/2 meets ``tol``; without exact features, more
        than 300,000 rows are refused.
    tol : float, default 1e-4
        The largest error of a low-rank estimate, relative to its norm; the rank is raised until it is met.
    memory_limit : float, optional
        Bytes that the fit may take; default six tenths of what is free.

    Attributes
    ----------
    lam_, scale_ : float
    solver_ : str
        What "auto" took.
    rank_ : int
        Eigen-directions that the estimate rests on.
    spectrum_error_ : float
        A bound of the distance to the estimate from the whole spectrum at the same λ, relative to its norm.
    kernel_, mean_, weights_, loo_score_
        See :class:`KernelMean`; weights may be negative, or larger than 1/n. With ``lam="theorem4"`` the score is
        the paper's.
    loo_path_ : ScorePath
        The score over λ as the search saw it, both limits left out; only where λ was searched.

    See Also
    --------
    ShrunkKernelMean : One factor for all directions, in closed form.
    AdaptiveKernelMean : The same filter, with a fitted Gaussian as target.
    muhat.shrinkage.deletion_scores : Leave-one-out scores of a Gram matrix.
    muhat.shrinkage.theorem4_scores : Scores of the paper.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.paper_mixture(10, random_state=0)
    >>> X = P.sample(20, random_state=1)
    >>> kernel = mh.Gaussian(bandwidth=10.0)
    >>> truth = mh.embed(kernel, P)
    >>> means = [mh.KernelMean(kernel), mh.SpectralKernelMean(kernel)]
    >>> [round(mean.fit(X).mean_.distance(truth) ** 2, 4) for mean in means]
    [0.0499, 0.0341]
    """

    def __init__(
        self,
        kernel: Kernel | Literal["precomputed"] = Gaussian(),
        filter: Filter = Tikhonov(),
        lam: Lam = "loo",
        scale: Scale = 1.0,
        *,
        solver: Literal["auto", "dense", "low-rank"] = "auto",
        tol: float = 1e-4,
        memory_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.filter = filter
        self.lam = lam
        self.scale = scale
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit

    _smallest_count = 1.0

    def _repeats_rows(self) -> bool:
        return isinstance(self.filter, Filter) and not self.filter.takes_counts

    def estimate(self, G: Gram) -> MeanFit:
        solver = Eigensolver(self.solver, self.tol, self.memory_limit)
        return spectral_mean(G, self.filter, self.lam, self.scale, solver)

    @property
    def loo_path_(self) -> ScorePath | None:
        """The score over λ as the search saw it; None where λ was given."""
        return fit_of(self).loo_path


@dataclass(frozen=True, eq=False, kw_only=True)
class SpectralFit(MeanFit):
    """Spectral shrinkage; where λ was given, its score needs the decomposition once more."""

    filter: Filter

    def late_score(self, G: Gram) -> Scored:
        lam, scale, solver, rank = (self.chosen[name] for name in ("lam", "scale", "solver", "rank"))
        spectrum = G.spectrum(solver, rank)
        if not len(spectrum.eigenvectors):
            raise AttributeError(UNKNOWN_SCORE)  # sums of features without rows
        return Scored(float(LooScore(spectrum, self.filter.leave_one_out(spectrum), scale).at(lam)[0]))


def spectral_mean(
    G: Gram, filter: Filter = Tikhonov(), lam: Lam = "loo", scale: Scale = 1.0, solver: Eigensolver = AUTO
) -> MeanFit:
    """Estimate the mean by spectral shrinkage, β = c·h(K)·1/n with a filter h and a scale c, from λ in Gram units.

    For Tikhonov's filter it is the paper's F-KMSE (Theorem 2, equation 5), and λ minimises the leave-one-out score of
    equation 7.
    """
    check_filter(filter, lam, G)
    given_scale(scale, lam)
    given_lam(lam)

    def shrunk(spectrum: Spectrum) -> MeanFit:
        found = choose_shrinkage(spectrum, filter.leave_one_out, lam, scale)
        weights, L = spectrum.weights(filter, found.lam), spectrum.factor
        chosen = {
            "lam": found.lam,
            "scale": found.scale,
            "rank": spectrum.rank,
            "spectrum_error": 0.0 if L is None else certificate(G, L, weights, found.lam),
            "solver": spectrum.solver,
        }
        known = None if found.score is None else Scored(found.score, found.path)
        return SpectralFit(found.scale * weights, chosen, known, gram=G, filter=filter)

    return solver.first(solver.spectra(G, low_rank=isinstance(filter, Tikhonov)), shrunk)


def check_filter(filter: Filter, lam: Lam, G: Gram) -> None:
    """Raise a ValueError unless the filter goes with λ and with the representation of the Gram matrix."""
    if not isinstance(filter, Filter):
        raise ValueError(f"filter={filter!r} must be a filter object. Use one such as muhat.Tikhonov()")
    if not filter.takes_counts:
        check_unweighted(G)
    if isinstance(filter, Tikhonov):
        return
    if isinstance(lam, str) and lam == "theorem4":
        raise ValueError(f'lam="theorem4" is a score of Tikhonov\'s filter. Use lam="loo" with {filter!r}')
    if isinstance(G, FeaturesGram):
        raise ValueError(f"filter={filter!r} cannot be used with features. Use Tikhonov()")

"""Density estimation by kernel mean matching: the Gaussian mixture whose mean element is nearest to the data's."""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array, RandomState
from muhat._support.validation import (
    check_count,
    check_number,
    check_overflow,
    check_rng,
    check_rows,
    unchanged_on_error,
    warn_caller,
)
from muhat.density.objective import Mixture, check_matchable, kernel_size, matching_objective
from muhat.density.solvers import Settings, Solver, solve
from muhat.density.start import start_mixture
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.capabilities import length_scales
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import check_memory
from muhat.means.base import BaseKernelMean
from muhat.means.nested import check_mean, mean_element
from muhat.rkhs.measures import GaussianMixture

_DEFAULTS: dict[Solver, tuple[float, int]] = {"slsqp": (1e-6, 100), "lbfgs": (1e-10, 5000), "weights": (1e-12, 1)}
"""Tolerance and most iterations of each solver."""

_NEAR_FLOOR = 1.1
"""A variance below this multiple of the floor counts as collapsed: solvers stop a little above it."""


class MatchedGaussianMixture(ValueParametersMixin, DensityMixin, BaseEstimator):
    r"""Gaussian mixture fitted by kernel mean matching: it minimises :math:`\|\hat\mu - \mu_Q\|^2` over mixtures Q.

    :math:`Q = \sum_j \pi_j N(\theta_j, \sigma_j^2 I)`, and :math:`\hat\mu` is any estimate of the data's kernel
    mean: the plain average, or a shrinkage estimator passed as ``mean``. Both inner products are exact, with
    written gradients. It starts from k-means: shares, means and within-cluster variances.

    The criterion is not a likelihood. Run to convergence it fits the kernel mean ever closer and often ends in a worse
    likelihood; ``solver="slsqp"`` with its few, early-stopped steps is nearest to the paper.

    Differs from the paper: variances are kept above ``variance_floor``; the paper names no optimiser.

    Parameters
    ----------
    n_components : int, default 10
        Number of Gaussians, m.
    kernel : Kernel, default Gaussian()
        Linear, Polynomial of degree 1 to 3, Gaussian, their sums and multiples.
    mean : mean estimator, optional
        Estimator of the kernel mean to match, such as ``ShrunkKernelMean()``; its own kernel is not used. Default:
        the plain average.
    solver : {"slsqp", "lbfgs", "weights"}, default "slsqp"
        "slsqp": sequential quadratic programmes on (π, θ, σ) from the cluster shares. "lbfgs": L-BFGS to
        convergence, from the best weights of the initial components. "weights": those best weights alone, a
        quadratic programme; means and variances stay where they start.
    n_init : int, default 50
        Runs of k-means; the one of lowest inertia is taken.
    random_state : None, int, Generator, SeedSequence or RandomState
        For k-means and for ``sample``.
    covariance_type : {"spherical", "diag"}, default "spherical"
        One variance per component, or one per component and feature.
    variance_floor : float, default 1e-3
        Least variance, in the squared scale of X: made for standardised data.
    max_iter : int, optional
        Default 100 for "slsqp", 5000 for "lbfgs".
    tol : float, optional
        The solver stops when the objective falls by less. Default 1e-6 for "slsqp", 1e-10 for "lbfgs". It is
        absolute for standardised data; otherwise relative to the size that the scale of X gives to the kernel. A
        kernel that is much wider than the data has a tiny objective and needs a smaller value.
    init : KMeans, array of shape (n,), GaussianMixture, optional
        Where to start, so that estimators compare from one start: a k-means (fitted: its clusters; not fitted, as
        clones are: fitted on X first), labels 0, …, n_components − 1 of the rows, or a mixture.

    Attributes
    ----------
    weights_ : array of shape (m,)
        Weights of the components.
    means_ : array of shape (m, d)
        Their means.
    variances_ : array of shape (m,), or (m, d) for "diag"
        Their variances.
    density_ : GaussianMixture
        The matched mixture.
    initial_density_ : GaussianMixture
        The mixture before matching.
    objective_ : float
        The squared distance that is reached.
    mean_ : Element
        The target.
    kernel_ : Kernel
        The kernel, with the bandwidth as a number.
    n_iter_ : int
        Iterations of the solver.
    converged_ : bool
        Whether it met its tolerance.

    See Also
    --------
    sklearn.mixture.GaussianMixture : Mixtures by maximum likelihood.
    BlendedSample : A sample and a fitted Gaussian, blended as the adaptive mean does.

    References
    ----------
    L. Song, X. Zhang, A. Smola, A. Gretton, B. Schölkopf (2008). Tailoring density estimation via reproducing
    kernel moment matching. ICML.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.GaussianMixture([0.3, 0.7], [[-2.0, 0.0], [2.0, 0.0]], [0.5, 1.0])
    >>> matched = mh.MatchedGaussianMixture(2, n_init=5, random_state=0).fit(P.sample(500, random_state=0))
    >>> matched.weights_.round(1)
    array([0.7, 0.3])
    >>> matched.means_.round()[:, 0]
    array([ 2., -2.])
    """

    def __init__(
        self,
        n_components: int = 10,
        kernel: Kernel = Gaussian(),
        mean: BaseKernelMean | None = None,
        solver: Solver = "slsqp",
        n_init: int = 50,
        random_state: RandomState = None,
        *,
        covariance_type: Literal["spherical", "diag"] = "spherical",
        variance_floor: float = 1e-3,
        max_iter: int | None = None,
        tol: float | None = None,
        init: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.mean = mean
        self.solver = solver
        self.n_init = n_init
        self.random_state = random_state
        self.covariance_type = covariance_type
        self.variance_floor = variance_floor
        self.max_iter = max_iter
        self.tol = tol
        self.init = init

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None) -> Self:
        """Match a mixture to the kernel mean of the rows, at least 2 and ``n_components`` of them."""
        self._check_parameters()
        X = check_rows(X, estimator=self, min_rows=2)
        _check_size(X, self.n_components)
        self._check_memory(*X.shape)
        kernel = self.kernel.resolve(X)
        check_matchable(kernel)
        check_overflow(kernel, kernel.diagonal(X))
        _check_squares(kernel)
        self.kernel_ = kernel
        self.mean_ = mean_element(self.mean, self.kernel_, X)
        objective, settings = matching_objective(self.mean_), self._settings(_scale(X))
        start = start_mixture(self._init(), X, self.n_components, settings.spherical, settings.floor)
        solution = solve(objective, start, self.solver, settings)
        self.initial_density_ = self._density(start)
        self.density_ = self._density(solution.mixture)
        self.weights_, self.means_, _ = solution.mixture
        self.variances_ = self._own_variances(solution.mixture)
        self.objective_ = max(objective.value(solution.mixture), 0.0)
        self.n_iter_, self.converged_ = solution.n_iter, solution.converged
        self._warn(X, solution.message)
        return self

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
        check_count("n_init", self.n_init)
        check_mean("mean", self.mean)
        check_kernel("kernel", self.kernel)
        for name, choices in (("solver", get_args(Solver)), ("covariance_type", ("spherical", "diag"))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(repr, choices))}")
        check_number("variance_floor", self.variance_floor, low=0, open_low=True)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        if self.tol is not None:
            check_number("tol", self.tol, low=0, open_low=True)

    def _check_memory(self, n: int, d: int) -> None:
        m = self.n_components
        parameters = m * (d + 2 if self.covariance_type == "spherical" else 2 * d + 1)
        dense = 11.0 * parameters**2 if self.solver == "slsqp" else 40.0 * parameters  # curvature and its work space
        needed = 8.0 * (dense + 4.0 * m * d**2 + 6.0 * m**2 * d + n * (3.0 * d + 3.0 * m))  # covariances, pairs, rows
        remedy = 'use solver="lbfgs", ' if self.solver == "slsqp" else "use "
        check_memory(needed, None, f"{m} components in {d:,} columns", f"{remedy}fewer components, or fewer columns")

    def _settings(self, scale: float) -> Settings:
        tol, max_iter = _DEFAULTS[self.solver]
        return Settings(
            spherical=self.covariance_type == "spherical",
            floor=float(self.variance_floor),
            scale=scale,
            size=kernel_size(self.kernel_, scale),
            tol=tol if self.tol is None else float(self.tol),
            max_iter=max_iter if self.max_iter is None else self.max_iter,
        )

    def _init(self) -> Any:
        if self.init is not None:
            return self.init
        from sklearn.cluster import KMeans  # takes long to import

        seed = int(check_rng(self.random_state).integers(2**31 - 1))
        return KMeans(self.n_components, n_init=self.n_init, random_state=seed)

    def _own_variances(self, mixture: Mixture) -> Array:
        return mixture.variances[:, 0] if self.covariance_type == "spherical" else mixture.variances

    def _density(self, mixture: Mixture) -> GaussianMixture:
        return GaussianMixture(mixture.weights, mixture.means, self._own_variances(mixture))

    def _warn(self, X: Array, message: str) -> None:
        m, floor = self.n_components, self.variance_floor
        distinct = len(np.unique(X, axis=0))
        collapsed = (self.variances_.reshape(m, -1) <= _NEAR_FLOOR * floor).any(axis=1) & (self.weights_ > 0)
        if distinct <= m:
            warn_caller(
                f"X has {distinct} distinct rows for n_components={m}: every component sits on one row, which "
                f"is not a density; use fewer components",
            )
        elif collapsed.any():
            warn_caller(
                f"{collapsed.sum()} of {m} components have a variance at variance_floor={floor:g}: they sit on single "
                f"rows or flat directions; use fewer components, drop constant columns, standardise X, or set "
                f"variance_floor to what is small in the units of X",
            )
        if not self.converged_:
            warn_caller(
                f'solver="{self.solver}" ended after {self.n_iter_} iterations without convergence ({message}); '
                f"raise max_iter or tol. Stopping early need not be worse in likelihood",
                ConvergenceWarning,
            )

    def _weighted_logs(self, X: Any) -> Array:
        """log π_j N(x; θ_j, σ_j²), of shape (n, m)."""
        check_is_fitted(self, "density_")
        X = check_rows(X, estimator=self, reset=False)
        variances = self.variances_.reshape(len(self.weights_), -1) * np.ones(X.shape[1])
        squares = [((X - mean) ** 2 / v).sum(axis=1) for mean, v in zip(self.means_, variances, strict=True)]
        with np.errstate(divide="ignore"):  # a weight of 0 has the logarithm −inf
            constants = np.log(self.weights_) - 0.5 * np.log(2 * np.pi * variances).sum(axis=1)
        return constants - 0.5 * np.column_stack(squares)

    def score_samples(self, X: Any) -> Array:
        """Compute the log-density at each row."""
        return logsumexp(self._weighted_logs(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean log-likelihood of the rows; higher is better."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> Array:
        """Compute the probability of each component given the row, one column per component."""
        logs = self._weighted_logs(X)
        return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:
        """Return the number of the most probable component of each row."""
        return self._weighted_logs(X).argmax(axis=1)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Array, Any]:
        """Draw rows and the numbers of their components, sorted by component, as scikit-learn does.

        For independent rows alone: ``density_.sample(n)``. With a whole number as ``random_state``, by default that of
        the estimator, every call draws the same rows.
        """
        check_is_fitted(self, "density_")
        rng = check_rng(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(check_count("n_samples", n_samples), self.weights_)
        components = np.repeat(np.arange(len(counts)), counts)
        deviations = np.sqrt(self.variances_.reshape(len(counts), -1))[components]
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        return self.means_[components] + deviations * noise, components

    def aic(self, X: Any) -> float:
        """Compute Akaike's information criterion, −2 log-likelihood + 2 · (free parameters); lower is better."""
        return -2.0 * float(self.score_samples(X).sum()) + 2.0 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """Compute the Bayesian information criterion, with log n in place of Akaike's 2; lower is better."""
        logs = self.score_samples(X)
        return -2.0 * float(logs.sum()) + self._n_parameters() * float(np.log(len(logs)))

    def _n_parameters(self) -> int:
        return self.means_.size + self.variances_.size + self.weights_.size - 1


def _check_size(X: Array, m: int) -> None:
    if len(X) < m:
        raise ValueError(f"n_components={m} must not exceed the number of rows of X, n_samples = {len(X)}")
    if np.abs(X).max() > 1e150:
        raise ValueError(f"X reaches {np.abs(X).max():.3g}, where variances overflow; rescale X first")


def _check_squares(kernel: Kernel) -> None:
    """Raise a ValueError where variances in units of the bandwidth, or their derivatives, overflow or vanish."""
    for length in length_scales(kernel):
        if not 1e-150 < length < 1e150:
            raise ValueError(
                f"{kernel!r} has a bandwidth whose square over- or underflows. Multiply X by a constant so that its "
                f"columns are of an ordinary size"
            )


def _scale(X: Array) -> float:
    """Root of the mean variance of the columns: 1 for standardised data."""
    return float(np.sqrt(X.var(axis=0).mean())) or 1.0

"""Means of many bags at once: each borrows strength from all the others."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from muhat.bags import DistributionKernel, check_bags, feature_moments
from muhat.elements import Element
from muhat.features import Nystroem
from muhat.kernels import Gaussian, Kernel
from muhat.measures import Atoms
from muhat.types import Array
from muhat.validation import check_number
from muhat.whitening import BagMoments, check_features, regularised_eigenpairs

RIDGES = (0.1, 10**-0.5, 1.0, 10**0.5, 10.0)
FOLDS = 5


class _Prior(NamedTuple):
    """What bags have in common: the centre μ̄, and the covariance B of the means about it."""

    centre: Array
    between: Array


def _estimate_prior(means: Array, sizes: NDArray[Any], within: Array) -> _Prior:
    r"""Moments of bags of any sizes: :math:`\sum_i w_i (m_i - \bar m)(·)^\top` less its part of noise, positive part.

    A mean of n_i rows varies by B + W/n_i; bags are weighted by 1/(s + 1/n_i), s the ratio of the traces of B and W.
    """
    trace = np.trace(within)
    if len(means) == 1:
        return _Prior(means[0], np.zeros_like(within))
    spread = np.square(means - means.mean(axis=0)).sum() / (len(means) - 1)
    ratio = max(spread / trace - (1.0 / sizes).mean(), 0.0)
    w = 1.0 / (ratio + 1.0 / sizes)
    w /= w.sum()
    centre = w @ means
    X = np.sqrt(w)[:, None] * (means - centre)
    noise = (w * (1.0 - w) / sizes).sum()
    g, V = eigh((X.T @ X - noise * within) / (1.0 - w @ w), driver="evd", check_finite=False)
    return _Prior(centre, (V * g.clip(0.0)) @ V.T)


class _Shrinker:
    """The map x -> B(B + W_ρ/n)⁻¹x for any n, by the eigenvectors that B and W_ρ = W + ρ tr(W)/m I share."""

    def __init__(self, between: Array, within: Array, ridge: float) -> None:
        g, V = regularised_eigenpairs(within, ridge)
        self.root = np.sqrt(g)
        whitened = (V.T @ between @ V) / np.outer(self.root, self.root)
        self.ratios, E = eigh(whitened, driver="evd", check_finite=False)
        self.ratios = self.ratios.clip(0.0)
        self.into, self.back = (V / self.root) @ E, E.T @ (V * self.root).T

    def factors(self, sizes: NDArray[Any]) -> Array:
        return self.ratios / (self.ratios + 1.0 / sizes[:, None])

    def __call__(self, X: Array, sizes: NDArray[Any]) -> Array:
        return (X @ self.into * self.factors(sizes)) @ self.back

    def risk(self, X: Array, sizes: NDArray[Any], within: Array) -> float:
        """Estimate, without bias for bags that B does not come from, of the sum of the squared errors."""
        noise = np.einsum("ij,jk,ki->i", self.back, within, self.into, optimize=True)  # tr(A W) = Σ factor · noise
        optimism = 2.0 * ((self.factors(sizes) @ noise) / sizes).sum() - (np.trace(within) / sizes).sum()
        return float(np.square(X - self(X, sizes)).sum() + optimism)


def _chosen_ridge(means: Array, sizes: NDArray[Any], within: Array) -> float:
    """The ridge with the smallest risk on bags left out, in folds; every FOLDS-th bag is in a fold."""
    folds = np.arange(len(means)) % FOLDS
    risks = np.zeros(len(RIDGES))
    for fold in range(min(FOLDS, len(means))):
        out = folds == fold
        prior = _estimate_prior(means[~out], sizes[~out], within)
        X = means[out] - prior.centre
        risks += [_Shrinker(prior.between, within, ridge).risk(X, sizes[out], within) for ridge in RIDGES]
    return RIDGES[int(np.argmin(risks))]


def _pooled(moments: BagMoments, sizes: NDArray[Any], ridge: float | Literal["cv"]) -> Array:
    """The shrunken means in features."""
    means, within, degrees = moments
    if len(means) == 1 or (degrees and not np.trace(within) > 0):  # nothing to borrow from, or no noise
        return means
    if not degrees:
        raise ValueError("all bags have one row, which says nothing of the noise; pass a bag of two rows or more")
    unit = np.sqrt(np.trace(within))
    means, within = means / unit, within / unit**2
    chosen = _chosen_ridge(means, sizes, within) if ridge == "cv" else ridge
    centre, between = _estimate_prior(means, sizes, within)
    return unit * (centre + _Shrinker(between, within, chosen)(means - centre, sizes))


def pooled_means(
    bags: Any,
    kernel: Kernel = Gaussian(),
    *,
    features: Nystroem | None = None,
    ridge: float | Literal["cv"] = "cv",
) -> list[Element]:
    r"""Mean elements of bags, each shrunk toward the mean of all bags along the directions in which it is noise.

    The operator-valued rule of Efron and Morris:
    :math:`\mu_i = \bar\mu + B (B + W_\rho / n_i)^{-1} (\hat\mu_i - \bar\mu)`, W the pooled covariance of rows within
    bags, :math:`W_\rho = W + \rho \operatorname{tr}(W)/m\, I`, and B that of the true means, the positive part of the
    covariance of the :math:`\hat\mu_i` less what of it is noise. For small bags of one kind, where the mean of
    each is wanted. It does not help a classifier, for which see ``whiten=`` of :class:`DistributionKernel`.

    Parameters
    ----------
    bags : sequence of arrays of shape (n_i, d)
    kernel : Kernel, default Gaussian()
        "median" is resolved once, on the pooled rows.
    features : Nystroem, optional
        The m features in which all this is computed; the estimates lie in the span of the landmarks. Default 500
        landmarks with a fixed seed, or all rows where they are fewer.
    ridge : float > 0 or "cv", default "cv"
        The ridge ρ; "cv" takes that of the smallest risk, estimated without bias on bags left out, among five from 0.1
        to 10.

    Returns
    -------
    list of Element
        In the order of the bags, on the same atoms.

    References
    ----------
    B. Efron, C. Morris. Empirical Bayes on vector observations: an extension of Stein's method. Biometrika 1972.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from muhat.pooling import pooled_means
    >>> rng = np.random.default_rng(0)
    >>> centres = 0.2 * rng.normal(size=(40, 2))
    >>> bags = [rng.normal(centre, size=(6, 2)) for centre in centres]
    >>> pooled = pooled_means(bags)
    >>> kernel = pooled[0].kernel
    >>> truth = [mh.embed(kernel, mh.GaussianMixture([1.0], [centre], [1.0])) for centre in centres]
    >>> plain = [mh.embed(kernel, bag) for bag in bags]
    >>> losses = [sum(f.distance(g) ** 2 for f, g in zip(each, truth)) for each in (pooled, plain)]
    >>> round(losses[0] / losses[1], 2)
    0.15
    """
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel={kernel!r} must be a kernel object such as Gaussian(); see muhat.as_kernel")
    check_features(features)
    if features is not None and not isinstance(features, Nystroem):
        raise ValueError(f"features={features!r} are no elements of the space of the kernel; use Nystroem()")
    if ridge != "cv":
        ridge = check_number("ridge", ridge, low=0, open_low=True, or_else='"cv"')
    data = check_bags(bags, DistributionKernel(), reset=True)
    fitted: Any
    fitted, moments = feature_moments(kernel.resolve(data.rows), None, features, data, within=True)
    weights = _pooled(moments, np.diff(data.offsets), ridge) @ fitted._map.T
    return [Element(fitted.kernel_, Atoms.trusted(fitted.landmarks_, row)) for row in weights]

"""Means of many bags at once: each borrows strength from all the others."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from muhat.bags.data import Bags, check_bags
from muhat.bags.kernel import DistributionKernel, feature_moments
from muhat.bags.whitening import BagMoments, check_features, regularised_eigenpairs
from muhat.elements import Element
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg import gram
from muhat.measures import Atoms
from muhat.types import Array
from muhat.validation import check_number

BLENDS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


FOLDS = 5


def _check_population(population: Any, sizes: NDArray[Any]) -> Array:
    r"""Sizes of bags with the same noise from populations without end: 1/n_i − 1/N_i is 1/(n_i/(1 − n_i/N_i))."""
    try:
        rows = np.broadcast_to(np.asarray(population, dtype=np.float64), sizes.shape)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"population={population!r} must be a number of rows, or one for each of {len(sizes)} bags"
        ) from error
    if not (rows > sizes).all():
        i = int(np.argmin(rows > sizes))
        raise ValueError(
            f"population={rows[i]:g} must be larger than the bag drawn from it, and bag {i} has {sizes[i]} rows; the "
            f"average of a whole population has no noise, so leave such bags out"
        )
    return sizes / (1.0 - sizes / rows)


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
    """The map x -> B_θ(B_θ + W_ρ/n)⁻¹x for any n, by the eigenvectors that B and W_ρ share.

    B_θ = (1 − θ)B + θ tr(B)/tr(W_ρ) W_ρ has them too, for any θ; at θ = 1 all directions are shrunk alike.
    """

    def __init__(self, between: Array, noise: tuple[Array, Array]) -> None:
        g, V = noise  # eigenpairs of W_ρ
        root = np.sqrt(g)
        self.ratios, E = eigh((V.T @ between @ V) / np.outer(root, root), driver="evd", check_finite=False)
        self.ratios = self.ratios.clip(0.0)
        self.common = np.trace(between) / g.sum()
        self.into, self.back = (V / root) @ E, E.T @ (V * root).T

    def factors(self, sizes: NDArray[Any], blend: float) -> Array:
        ratios = (1.0 - blend) * self.ratios + blend * self.common
        return ratios / (ratios + 1.0 / sizes[:, None])

    def __call__(self, X: Array, sizes: NDArray[Any], blend: float) -> Array:
        return (X @ self.into * self.factors(sizes, blend)) @ self.back

    def gains(self, sizes: NDArray[Any], within: Array, blend: float) -> Array:
        """What the noise of each mean loses, tr((I − A)W)/n for the map A: the gain in risk where B_θ is right."""
        noise = np.einsum("ij,ji->i", self.back @ within, self.into)
        return ((1.0 - self.factors(sizes, blend)) @ noise) / sizes

    def risk(self, X: Array, sizes: NDArray[Any], within: Array, blend: float) -> float:
        """Estimate, without bias for bags that B does not come from, of the sum of the squared errors."""
        optimism = np.trace(within) / sizes - 2.0 * self.gains(sizes, within, blend)
        return float(np.square(X - self(X, sizes, blend)).sum() + optimism.sum())


def _chosen_blend(means: Array, sizes: NDArray[Any], within: Array, noise: tuple[Array, Array]) -> float:
    """The blend with the smallest risk on bags left out, in folds; every FOLDS-th bag is in a fold."""
    folds = np.arange(len(means)) % FOLDS
    risks = np.zeros(len(BLENDS))
    for fold in range(min(FOLDS, len(means))):
        out = folds == fold
        prior = _estimate_prior(means[~out], sizes[~out], within)
        shrinker = _Shrinker(prior.between, noise)
        risks += [shrinker.risk(means[out] - prior.centre, sizes[out], within, blend) for blend in BLENDS]
    return BLENDS[int(np.argmin(risks))]


def _pooled(
    moments: BagMoments, sizes: NDArray[Any], ridge: float, blend: float | Literal["cv"]
) -> tuple[Array, Array]:
    """The shrunken means in features, and what each gains in risk."""
    unit = np.sqrt(np.trace(moments.within))
    means, within = moments.means / unit, moments.within / unit**2
    noise = regularised_eigenpairs(within, ridge)
    chosen = _chosen_blend(means, sizes, within, noise) if blend == "cv" else blend
    centre, between = _estimate_prior(means, sizes, within)
    shrinker = _Shrinker(between, noise)
    shrunken = centre + shrinker(means - centre, sizes, chosen)
    return unit * shrunken, unit**2 * shrinker.gains(sizes, within, chosen)


def _better_plain(features: Nystroem, bags: Bags, means: Array, noise_sizes: Array, gains: Array) -> NDArray[np.bool_]:
    r"""Bags whose average errs less than an estimate in the span of the landmarks, as far as can be told.

    The estimate misses R, the squared part of a true mean outside of the span. Landmarks have no such part, so that R
    comes from pairs of other rows of a bag, and the average of n_i rows with a share p_i of others errs there by
    R(1 − p_i)² + (e − R)p_i/n_i, with e the mean of k(x, x) − ‖z(x)‖² of the others. Of a population of N_i rows the
    mean has the part R + (e − R)/N_i, and 1/n_i is 1/n_i − 1/N_i.
    """
    sizes, parts = np.diff(bags.offsets), bags.parts(bags.rows)
    landmarks = {row.tobytes() for row in features.landmarks_}
    others = np.array([sum(row.tobytes() not in landmarks for row in rows) for rows in parts])
    pairs = (others * (others - 1)).sum()
    if not pairs:
        return np.zeros(len(sizes), dtype=bool)
    kernel = features.kernel_.evaluate
    norms = [gram.quadratic_form(kernel, rows, np.full(len(rows), 1.0 / len(rows))) for rows in parts]
    total = sizes.sum() * features.approximation_error_
    missed = max(float((sizes**2 * (norms - np.square(means).sum(axis=1))).sum() - total) / pairs, 0.0)
    noise = max(total / others.sum() - missed, 0.0)
    share = others / sizes
    lost = missed + noise * (1.0 / sizes - 1.0 / noise_sizes)
    return lost > missed * (1.0 - share) ** 2 + noise * share / noise_sizes + gains


def pooled_means(
    bags: Any,
    kernel: Kernel = Gaussian(),
    *,
    features: Nystroem | None = None,
    ridge: float = 0.3,
    blend: float | Literal["cv"] = "cv",
    population: ArrayLike = np.inf,
) -> list[Element]:
    r"""Mean elements of bags, each shrunk toward the mean of all bags along the directions in which it is noise.

    The operator-valued rule of Efron and Morris:
    :math:`\mu_i = \bar\mu + B_\theta (B_\theta + W_\rho / n_i)^{-1} (\hat\mu_i - \bar\mu)`, W the pooled covariance of
    rows within bags, :math:`W_\rho = W + \rho \operatorname{tr}(W)/m\, I`, and B that of the true means, the positive
    part of the covariance of the :math:`\hat\mu_i` less what of it is noise. Few bags do not tell B in all directions,
    so it is blended with a multiple of the noise of its own size,
    :math:`B_\theta = (1 - \theta) B + \theta \operatorname{tr}(B)/\operatorname{tr}(W_\rho)\, W_\rho`: at θ = 1 all
    directions are shrunk by one factor, as James and Stein do.

    For small bags of one kind, where the mean of each is wanted. It does not help a classifier, for which see
    ``whiten=`` of :class:`DistributionKernel`.

    Parameters
    ----------
    bags : sequence of arrays of shape (n_i, d)
    kernel : Kernel, default Gaussian()
        "median" is resolved once, on the pooled rows.
    features : Nystroem, optional
        The m features in which all this is computed; the estimates lie in the span of the landmarks. Bags which that
        would cost more than they gain (large ones, where the kernel is narrow) keep their averages: more landmarks
        help them. Default 500 to 1,000 landmarks (5√N for N rows) with a fixed seed, or all rows where they are fewer.
    ridge : float > 0, default 0.3
        The ridge ρ, in units of the mean eigenvalue of W; results depend on it little.
    blend : float in [0, 1] or "cv", default "cv"
        The blend θ; "cv" takes, of six from 0 to 1, that of the smallest risk on bags left out, where it can be
        estimated without bias.
    population : float or array of shape (n_bags,), default infinity
        Where rows were drawn without replacement, say from larger bags, out of how many N_i, more than n_i: the mean
        of those is then what is estimated, and the noise is W (1/n_i − 1/N_i) in place of W/n_i. It cannot be told
        from the rows.

    Returns
    -------
    list of Element
        In the order of the bags, on the same atoms but for bags that keep their averages.

    References
    ----------
    B. Efron, C. Morris. Empirical Bayes on vector observations: an extension of Stein's method. Biometrika 1972.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from muhat.bags.pooling import pooled_means
    >>> rng = np.random.default_rng(0)
    >>> centres = 0.2 * rng.normal(size=(40, 2))
    >>> bags = [rng.normal(centre, size=(6, 2)) for centre in centres]
    >>> pooled = pooled_means(bags)
    >>> kernel = pooled[0].kernel
    >>> truth = [mh.embed(kernel, mh.GaussianMixture([1.0], [centre], [1.0])) for centre in centres]
    >>> plain = [mh.embed(kernel, bag) for bag in bags]
    >>> losses = [sum(f.distance(g) ** 2 for f, g in zip(each, truth)) for each in (pooled, plain)]
    >>> round(losses[0] / losses[1], 2)
    0.14
    """
    check_kernel("kernel", kernel)
    check_features(features)
    if features is not None and not isinstance(features, Nystroem):
        raise ValueError(f"features={features!r} are no elements of the space of the kernel; use Nystroem()")
    ridge = check_number("ridge", ridge, low=0, open_low=True)
    if blend != "cv":
        blend = check_number("blend", blend, low=0, high=1, or_else='"cv"')
    data = check_bags(bags, DistributionKernel(), reset=True)
    fitted: Any
    fitted, moments = feature_moments(kernel.resolve(data.rows), None, features, data, within=True)
    space, noise_sizes = fitted.kernel_, _check_population(population, np.diff(data.offsets))
    averages = [Atoms.trusted(rows, np.full(len(rows), 1.0 / len(rows))) for rows in data.parts(data.rows)]
    if len(data) == 1 or (moments.degrees and not np.trace(moments.within) > 0):  # nothing to borrow from, or no noise
        return [Element(space, atoms) for atoms in averages]
    if not moments.degrees:
        raise ValueError("all bags have one row, which says nothing of the noise; pass a bag of two rows or more")
    shrunken, gains = _pooled(moments, noise_sizes, ridge, blend)
    weights = shrunken @ fitted._map.T
    plain = _better_plain(fitted, data, moments.means, noise_sizes, gains)
    return [
        Element(space, average if keep else Atoms.trusted(fitted.landmarks_, row))
        for average, keep, row in zip(averages, plain, weights, strict=True)
    ]

"""Empirical Bayes prior over bags, and the pooled means and log-odds that follow from it.

Constants that are not derived were chosen on the halves of ``benchmarks/groups.py`` and ``natural_groups.py`` that are
there for it (``--set chosen`` and ``--set choose``).
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_number, unchanged_on_error
from muhat.bags.data import Bags, TakesBagsMixin, check_bags
from muhat.bags.efron_morris import fit_pools
from muhat.bags.mixture_prior import fit_mixture, least_risk
from muhat.bags.moments import bag_moments, check_features, check_noise, fit_features
from muhat.bags.outside_span import OutsidePart
from muhat.features.base import BaseFeatures
from muhat.features.nystroem import Nystroem
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.linalg.spectrum import signs
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms

RIDGES = (0.3, 1.0, 3.0, 10.0)
"""Ridges of W that are tried. Along directions in which rows hardly vary, B and W are known badly, so that means are
best left near the centre by a large ridge; bags that have little in common need a small one."""

RIDGE_OF_COORDINATES = 3.0
"""Ridge of coordinates and log-odds, which weigh all directions alike."""


class BagPrior(ValueParametersMixin, TakesBagsMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Prior over the kernel means of bags, estimated from many bags (empirical Bayes).

    A bag of five rows says little of its distribution, and one of five hundred says much. The prior learns three
    things from the training bags: the centre :math:`\bar\mu` of their mean elements, the covariance W of rows within
    bags, and the covariance B between the true means of bags (with the noise :math:`W/n_i` taken out). The mean of any
    bag, of the training set or new, is then

    .. math:: \mu_i = \bar\mu + B (B + W / n_i)^{-1} (\hat\mu_i - \bar\mu),

    the rule of Efron and Morris: a small bag stays near the centre in directions in which it is mostly noise. Where
    bags come in kinds, ``means`` shrinks each toward the centre of its kind (a mixture prior).

    Parameters
    ----------
    kernel : Kernel, default Gaussian()
        The kernel between rows; "median" is resolved once, on the pooled rows of fit.
    features : Nystroem or Fourier, optional
        The m features in which all this is computed. Default 500 to 1,000 Nyström landmarks (5√N for N rows), or all
        rows where they are fewer. ``means`` needs Nyström features, whose span belongs to the space of the kernel.
    ridge : float > 0 or "auto", default "auto"
        The ridge ρ in :math:`W_\rho = W + \rho \operatorname{tr}(W)/m\, I`: the larger, the more means are shrunk along
        directions in which rows hardly vary. "auto" takes, of four values, the one with the smallest estimated risk of
        the means, and 3 for ``transform`` and ``log_odds``.
    blend : float in [0, 1] or "cv", default "cv"
        For ``means`` alone. Few bags do not determine B in all directions, so it is blended with a multiple of the
        noise, :math:`B_\theta = (1 - \theta) B + \theta \operatorname{tr}(B)/\operatorname{tr}(W)\, W_\rho`; at
        θ = 1 all directions are shrunk by one factor, as James and Stein do. "cv" takes, of six values, the one with
        the smallest risk on bags left out.
    kinds : int or "cv", default "cv"
        For ``means`` alone. The number K of kinds that bags come in: the mean of a bag is shrunk toward the centre of
        its kind, as far as that can be told. "cv" combines one to seven kinds by weights that minimise the risk on
        bags left out; more than one kind needs five bags for each.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the default landmarks. None is a fixed seed, so that two fits agree.

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    ratios_ : array
        Positive eigenvalues r of :math:`W_\rho^{-1} B`, largest first: how much bags differ along a direction, in units
        of the noise of one row. A bag of n rows keeps the share :math:`r/(r + 1/n)` of its coordinate.
    kinds_ : dict of int to float
        The numbers of kinds that ``means`` combines, with their weights.
    approximation_error_ : float
        That of the features, on the rows of fit.
    n_features_in_ : int
        Columns of the bags.

    See Also
    --------
    pooled_means : Pooled means of the bags of one call.
    DistributionRidge : Regression on bags with this prior.
    GroupAnomalyDetector : Bags that are unlikely under this prior.

    Notes
    -----
    O(N m²) time for N rows, and memory for the rows, a block of 1,024 of them in features, and a few m x m matrices.

    References
    ----------
    B. Efron, C. Morris. Empirical Bayes on vector observations: an extension of Stein's method. Biometrika 1972.

    H. Marienwald, J.-B. Fermanian, G. Blanchard. High-dimensional multi-task averaging and application to kernel mean
    embedding. AISTATS 2021.

    S. Ioffe. Probabilistic linear discriminant analysis. ECCV 2006.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> sizes = rng.integers(3, 100, size=60)
    >>> bags = [rng.normal(rng.normal(scale=0.5, size=2), size=(n, 2)) for n in sizes]
    >>> prior = mh.BagPrior(random_state=0).fit(bags)
    >>> prior.transform(bags).shape[0], prior.log_odds(bags).shape
    (60, (60, 60))

    Two halves of one bag are found to belong together:

    >>> halves = prior.log_odds([bag[::2] for bag in bags], [bag[1::2] for bag in bags])
    >>> bool(np.mean(np.diag(halves)) > np.mean(halves))
    True
    """

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        features: BaseFeatures | None = None,
        *,
        ridge: float | Literal["auto"] = "auto",
        blend: float | Literal["cv"] = "cv",
        kinds: int | Literal["cv"] = "cv",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.features = features
        self.ridge = ridge
        self.blend = blend
        self.kinds = kinds
        self.random_state = random_state

    @one_blas_thread()
    @unchanged_on_error
    def fit(self, bags: Any, y: Any = None, *, population: ArrayLike = np.inf) -> Self:
        """Learn centre, noise and covariance from bags, one matrix of rows each; for ``population`` see ``means``."""
        ridge, blend, kinds = self._checked_parameters()
        data = check_bags(bags, self, reset=True)
        if len(data) < 2:
            raise ValueError("bags holds one bag, and a prior needs two or more; use KernelMean for one sample")
        seed = 0 if self.random_state is None else self.random_state
        features = fit_features(self.features, self.kernel.resolve(data.rows), data.rows, seed)
        moments, noise_sizes = bag_moments(features, data), check_population(population, data.sizes)
        check_noise(moments)
        self.kernel_, self._features = features.kernel_, features
        self.approximation_error_ = features.approximation_error_
        pools = fit_pools(moments, noise_sizes, RIDGES if ridge == "auto" else [ridge])
        best = least_risk(pools, moments.means, noise_sizes)
        self._mixture = fit_mixture(best, moments.means, noise_sizes, blend, kinds)
        pool = pools[RIDGES.index(RIDGE_OF_COORDINATES) if ridge == "auto" else 0]
        self._pool = pool.turned(signs(pool.coordinates(moments.means)))
        self.kinds_ = self._mixture.weights
        self.ratios_ = self._pool.ratios
        self._n_features_out = max(int((self.ratios_ > _NO_DIFFERENCE * self.ratios_[0]).sum()), 1)
        self._outside = OutsidePart.of(features, data) if isinstance(features, Nystroem) else None
        return self

    def _checked_parameters(self) -> tuple[float | Literal["auto"], float | Literal["cv"], int | Literal["cv"]]:
        check_kernel("kernel", self.kernel)
        check_features(self.features)
        ridge, blend, kinds = self.ridge, self.blend, self.kinds
        if ridge != "auto":
            ridge = check_number("ridge", ridge, low=0, open_low=True, or_else='"auto"')
        if blend != "cv":
            blend = check_number("blend", blend, low=0, high=1, or_else='"cv"')
        if kinds != "cv":
            kinds = check_count("kinds", kinds)
        return ridge, blend, kinds

    @one_blas_thread()
    def means(self, bags: Any, *, population: ArrayLike = np.inf) -> list[Element]:
        r"""Estimate the mean element of the population of each bag: a list in their order.

        The elements lie in the span of the landmarks, except for bags which that would cost more than they gain (large
        ones, where the kernel is narrow): those keep their averages. Where rows were drawn without replacement out of
        N_i, pass ``population`` :math:`= N_i`, one number or one per bag: the mean of those is then what is estimated,
        and the noise is :math:`W (1/n_i - 1/N_i)`, which the rows do not reveal.
        """
        data = self._check_new(bags)
        features = self._features
        if not isinstance(features, Nystroem) or self._outside is None:
            raise ValueError(
                f"features={self.features!r} are not elements of the space of the kernel; use Nystroem(), or transform"
            )
        noise_sizes = check_population(population, data.sizes)
        pooled = self._mixture.means(bag_moments(features, data, within=False).means, noise_sizes)
        gains = self._pool.unit**2 * self._mixture.gains(noise_sizes)
        plain = self._outside.better_plain(features, data, noise_sizes, gains)
        return [
            Element(self.kernel_, average if keep else Atoms.trusted(features.landmarks_, row))
            for average, keep, row in zip(averages(data), plain, pooled @ features.projection_.T, strict=True)
        ]

    @one_blas_thread()
    def transform(self, bags: Any) -> Array:
        r"""Map bags to vectors: means in units of the noise, each coordinate shrunk by what the bag can tell.

        In the coordinates u in which the noise of one row is the identity and B is diag(r), the vector of a bag is
        :math:`u_i \cdot r/(r + 1/n_i)`. The direction in which bags differ most comes first; directions in which they
        do not differ are left out. The largest entry of a column is positive in the bags of ``fit``.
        """
        data = self._check_new(bags)
        return self._coordinates(data) * self._pool.factors(data.sizes)[:, : self._n_features_out]

    @one_blas_thread()
    def log_odds(self, bags: Any, others: Any = None) -> Array:
        r"""Return the log-odds that two bags come from one population and not from two, for all pairs.

        ``others`` are the bags themselves by default; the diagonal then compares each bag with a copy of itself.

        With coordinates x and y of two bags, per direction :math:`s = r + 1/n_i`, :math:`t = r + 1/n_j` and
        :math:`e = st - r^2`, it is the sum over directions of

        .. math:: -\tfrac12\left[\frac{t x^2 + s y^2 - 2 r x y}{e} - \frac{x^2}{s} - \frac{y^2}{t}\right]
                  - \tfrac12 \log\frac{e}{st}.

        Small bags have log-odds near 0, since they tell little. Use them to find duplicates, for retrieval, and (with
        the sign changed) as a distance for clustering. An unbiased MMD must not rank neighbours: of many bags the
        smallest has the most negative estimate.
        """
        left = self._check_new(bags)
        right = left if others is None else check_bags(others, self, reset=False)
        check_memory(3 * 8 * len(left) * len(right), None, f"{len(left):,} x {len(right):,} log-odds", "use fewer bags")
        x = self._coordinates(left)
        y = x if others is None else self._coordinates(right)
        return log_odds(x, left.sizes, y, right.sizes, self.ratios_[: self._n_features_out])

    def _check_new(self, bags: Any) -> Bags:
        check_is_fitted(self, "kernel_")
        return check_bags(bags, self, reset=False)

    def _coordinates(self, data: Bags) -> Array:
        """Whitened coordinates of the means of bags, along directions in which bags differ."""
        means = bag_moments(self._features, data, within=False).means
        return self._pool.coordinates(means)[:, : self._n_features_out]


_NO_DIFFERENCE = 1e-12
"""Ratios below this share of the largest are rounding: bags do not differ there."""


def log_odds(x: Array, sizes_x: NDArray[Any], y: Array, sizes_y: NDArray[Any], ratios: Array) -> Array:
    """Log-odds of one population against two, for all pairs of coordinates.

    For one size of y, the exponent is linear in x², xy and y², so that two matrix products serve all pairs.
    """
    result = np.empty((len(x), len(y)))
    distinct, owners = np.unique(sizes_y, return_inverse=True)
    s = ratios + 1.0 / sizes_x[:, None]
    for k, size in enumerate(distinct):
        t = ratios + 1.0 / size
        e = s * t - ratios**2
        of_x = (t / e - 1.0 / s) * x**2
        constant = of_x.sum(axis=1) + np.log(e / (s * t)).sum(axis=1)
        columns = np.flatnonzero(owners == k)
        Y = y[columns]
        forms = (s / e - 1.0 / t) @ (Y**2).T - 2.0 * (ratios * x / e) @ Y.T
        result[:, columns] = -0.5 * (forms + constant[:, None])
    return result


def check_population(population: Any, sizes: NDArray[Any]) -> Array:
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


def averages(data: Bags) -> list[Atoms]:
    """The plain mean of each bag."""
    return [Atoms.trusted(rows, np.full(len(rows), 1.0 / len(rows))) for rows in data.parts(data.rows)]


def pooled_means(
    bags: Any,
    kernel: Kernel = Gaussian(),
    *,
    features: Nystroem | None = None,
    ridge: float | Literal["auto"] = "auto",
    blend: float | Literal["cv"] = "cv",
    kinds: int | Literal["cv"] = "cv",
    population: ArrayLike = np.inf,
) -> list[Element]:
    r"""Mean elements of bags, each shrunk toward the mean of all bags along the directions in which it is noise.

    A short way to write ``BagPrior(...).fit(bags).means(bags)``; see :class:`BagPrior` for the rule. One bag alone, or
    bags without noise, keep their averages.

    Parameters
    ----------
    bags : sequence of arrays of shape (n_i, d)
        The bags: one matrix of rows each, all with d columns.
    kernel : Kernel, default Gaussian()
        "median" is resolved once, on the pooled rows.
    features, ridge, blend, kinds
        See :class:`BagPrior`.
    population : float or array of shape (n_bags,), default infinity
        See :meth:`BagPrior.means`.

    Returns
    -------
    list of Element
        In the order of the bags, on the same atoms but for bags that keep their averages.

    See Also
    --------
    BagPrior : The prior, to be applied to new bags.
    AdaptiveKernelMean : The mean of one bag alone.

    References
    ----------
    B. Efron, C. Morris. Empirical Bayes on vector observations: an extension of Stein's method. Biometrika 1972.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> centres = 0.2 * rng.normal(size=(40, 2))
    >>> bags = [rng.normal(centre, size=(6, 2)) for centre in centres]
    >>> pooled = mh.pooled_means(bags)
    >>> kernel = pooled[0].kernel
    >>> truth = [mh.embed(kernel, mh.GaussianMixture([1.0], [centre], [1.0])) for centre in centres]
    >>> plain = [mh.embed(kernel, bag) for bag in bags]
    >>> losses = [sum(f.distance(g) ** 2 for f, g in zip(each, truth)) for each in (pooled, plain)]
    >>> round(losses[0] / losses[1], 2)
    0.15
    """
    prior = BagPrior(kernel, features, ridge=ridge, blend=blend, kinds=kinds)
    prior._checked_parameters()
    if features is not None and not isinstance(features, Nystroem):
        raise ValueError(f"features={features!r} are not elements of the space of the kernel; use Nystroem()")
    data = check_bags(bags, prior, reset=True)
    check_population(population, data.sizes)
    noiseless = len(data.rows) > len(data) and all((rows == rows[0]).all() for rows in data.parts(data.rows))
    if len(data) == 1 or noiseless:  # nothing to borrow from, or no need to
        space = kernel.resolve(data.rows)
        return [Element(space, atoms) for atoms in averages(data)]
    return prior.fit(bags, population=population).means(bags, population=population)

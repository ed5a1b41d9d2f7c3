"""Kernel means of many bags at once, each from its own rows."""

from __future__ import annotations

from typing import Any

from muhat.bags.data import TakesBagsMixin, check_bags
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.resources import one_blas_thread
from muhat.means.base import BaseKernelMean
from muhat.means.nested import bag_weights, check_mean, mean_element
from muhat.means.simple_shrinkage import ShrunkKernelMean
from muhat.rkhs.elements import Element
from muhat.rkhs.measures import Atoms

_SIMPLE_SHRINKAGE = ShrunkKernelMean()


@one_blas_thread()
def bag_means(bags: Any, kernel: Kernel = Gaussian(), mean: BaseKernelMean | None = _SIMPLE_SHRINKAGE) -> list[Element]:
    """Mean elements of bags in one space, each estimated from the rows of its bag alone.

    The same as a loop over ``mean.fit(bag).mean_`` with one kernel for all bags. Simple shrinkage of thousands of small
    bags takes a fraction of the time of that loop, because bags of one size are estimated together.

    Parameters
    ----------
    bags : sequence of arrays of shape (n_i, d)
        The bags: one matrix of rows each, all with d columns.
    kernel : Kernel, default Gaussian()
        "median" is resolved once, on the pooled rows.
    mean : mean estimator, optional
        How the mean of each bag is estimated, by default ``ShrunkKernelMean()``; its kernel is replaced by ``kernel``.
        None is the plain average. A bag of one row is its own mean.

    Returns
    -------
    list of Element
        In the order of the bags.

    See Also
    --------
    pooled_means : Means that are shrunk toward the mean of all bags, which for bags that are alike is better.
    ShrunkKernelMean : Simple shrinkage of one sample.
    bags_from_groups : Cuts a table into bags.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(n, 2)) for n in (5, 20, 5)]
    >>> means = mh.bag_means(bags)
    >>> means[1]
    Element(Gaussian(bandwidth=1.48974), 20 atoms in 2 dimensions, total weight 0.961)
    >>> alone = mh.ShrunkKernelMean(means[0].kernel).fit(bags[1]).mean_
    >>> bool(means[1].distance(alone) < 1e-7)
    True
    """
    check_kernel("kernel", kernel)
    check_mean("mean", mean)
    taker = TakesBagsMixin()
    data = check_bags(bags, taker, reset=True)
    kernel, parts = kernel.resolve(data.rows), data.parts(data.rows)
    names = getattr(taker, "feature_names_in_", None)
    if mean is not None and not (isinstance(mean, ShrunkKernelMean) and mean.target is None):
        return [mean_element(mean, kernel, rows) for rows in parts]
    weights = data.parts(bag_weights(mean, kernel, data.rows, data.offsets))
    pairs = zip(parts, weights, strict=True)
    return [Element(kernel, Atoms.trusted(rows, beta), feature_names=names) for rows, beta in pairs]

"""One table of kernels and one of mean estimators: every property test runs over them."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import oracles

import muhat as mh

KERNELS = {
    "linear": mh.Linear(),
    "polynomial1": mh.Polynomial(degree=1, constant=0.5),
    "polynomial2": mh.Polynomial(degree=2, constant=1.0),
    "polynomial3": mh.Polynomial(degree=3, constant=0.5),
    "polynomial4": mh.Polynomial(degree=4, constant=1.0),
    "gaussian": mh.Gaussian(bandwidth=1.5),
    "gaussian_narrow": mh.Gaussian(bandwidth=0.4),
    "laplace": mh.Laplace(bandwidth=1.2),
    "matern_half": mh.Matern(nu=0.5, bandwidth=1.3),
    "matern": mh.Matern(nu=1.5, bandwidth=1.3),
    "matern_smooth": mh.Matern(nu=2.5, bandwidth=0.9),
    "sum": mh.Linear() + mh.Gaussian(bandwidth=0.8),
    "scaled": 3.0 * mh.Polynomial(degree=2, constant=0.5),
    "scaled_sum": 0.5 * (mh.Gaussian(bandwidth=1.1) + 2.0 * mh.Polynomial(degree=3, constant=1.0)),
    "product": mh.Linear() * mh.Gaussian(bandwidth=1.5),
}

# The same kernels as functions k(x, y) of the oracles.
FUNCTIONS = {
    "linear": oracles.linear,
    "polynomial1": partial(oracles.polynomial, degree=1, constant=0.5),
    "polynomial2": partial(oracles.polynomial, degree=2, constant=1.0),
    "polynomial3": partial(oracles.polynomial, degree=3, constant=0.5),
    "polynomial4": partial(oracles.polynomial, degree=4, constant=1.0),
    "gaussian": partial(oracles.gaussian, bandwidth=1.5),
    "gaussian_narrow": partial(oracles.gaussian, bandwidth=0.4),
    "laplace": partial(oracles.laplace, bandwidth=1.2),
    "matern_half": partial(oracles.matern, nu=0.5, bandwidth=1.3),
    "matern": partial(oracles.matern, nu=1.5, bandwidth=1.3),
    "matern_smooth": partial(oracles.matern, nu=2.5, bandwidth=0.9),
    "sum": lambda x, y: oracles.linear(x, y) + oracles.gaussian(x, y, 0.8),
    "scaled": lambda x, y: 3.0 * oracles.polynomial(x, y, 2, 0.5),
    "scaled_sum": lambda x, y: 0.5 * oracles.gaussian(x, y, 1.1) + oracles.polynomial(x, y, 3, 1.0),
    "product": lambda x, y: oracles.linear(x, y) * oracles.gaussian(x, y, 1.5),
}

WITHOUT_CLOSED_FORM = ("polynomial4", "laplace", "matern_half", "matern", "matern_smooth", "product")
CLOSED_FORM = tuple(name for name in KERNELS if name not in WITHOUT_CLOSED_FORM)

FILTERS = {
    "tikhonov": mh.Tikhonov(),
    "iterated_tikhonov": mh.IteratedTikhonov(n_iter=2),
    "iterated_tikhonov_5": mh.IteratedTikhonov(n_iter=5),
    "truncated_svd": mh.TruncatedSVD(),
    "landweber": mh.Landweber(),
    "nu_method": mh.NuMethod(nu=1.0),
    "nu_method_2": mh.NuMethod(nu=2.0),
}


@dataclass(frozen=True)
class MeanCase:
    """An estimator of a mean, and what may be asked of it."""

    estimator: mh.means.BaseKernelMean
    weights_only: bool = True
    """``mean_`` is Σ β_i φ(x_i), so that a Gram matrix can stand for the data."""
    exact_units: bool = True
    """Powers of two in the kernel change no bit."""
    convex: bool = False
    """Weights are at least 0 and sum to 1, or to 1 − ``shrinkage_`` where that scales them."""

    def with_kernel(self, kernel, unit=1.0):
        """A copy for a kernel; λ is in Gram units and a threshold in units of the norm."""
        params = self.estimator.get_params(deep=False)
        scaled = {"lam": unit, "threshold": unit**0.5}
        fixed = {name: params[name] * factor for name, factor in scaled.items() if type(params.get(name)) is float}
        return type(self.estimator)(**{**params, "kernel": kernel, **fixed})


MEANS = {
    "kernel_mean": MeanCase(mh.KernelMean(), convex=True),
    "shrunk": MeanCase(mh.ShrunkKernelMean(), convex=True),
    "shrunk_fixed": MeanCase(mh.ShrunkKernelMean(shrinkage=0.3), convex=True),
    "spectral": MeanCase(mh.SpectralKernelMean()),
    "spectral_theorem4": MeanCase(mh.SpectralKernelMean(lam="theorem4")),
    "spectral_fixed": MeanCase(mh.SpectralKernelMean(lam=0.7)),
    "spectral_nested": MeanCase(mh.SpectralKernelMean(scale="loo")),
    "spectral_nested_fixed": MeanCase(mh.SpectralKernelMean(lam=0.7, scale="loo")),
    **{
        f"spectral_{name}": MeanCase(mh.SpectralKernelMean(filter=filter, lam=0.4))
        for name, filter in FILTERS.items()
        if name != "tikhonov"
    },
    "adaptive": MeanCase(mh.AdaptiveKernelMean(), weights_only=False, exact_units=False),
    "adaptive_sampled": MeanCase(mh.AdaptiveKernelMean(mh.Laplace()), weights_only=False, exact_units=False),
    "adaptive_no_target": MeanCase(mh.AdaptiveKernelMean(target=None)),
    "constrained": MeanCase(mh.ConstrainedKernelMean(), convex=True),
    "constrained_half": MeanCase(mh.ConstrainedKernelMean(shrinkage=0.5), convex=True),
    "affine": MeanCase(mh.ConstrainedKernelMean(nonnegative=False)),
    "huber": MeanCase(mh.RobustKernelMean(), exact_units=False, convex=True),
    "huber_fixed": MeanCase(mh.RobustKernelMean(threshold=0.5, max_iter=50_000), exact_units=False, convex=True),
    "huber_half": MeanCase(mh.RobustKernelMean(shrinkage=0.5), exact_units=False, convex=True),
    "hampel": MeanCase(mh.RobustKernelMean(loss="hampel"), exact_units=False, convex=True),
    "hampel_shrunk": MeanCase(mh.RobustKernelMean(loss="hampel", shrinkage="loo"), exact_units=False, convex=True),
    "median_of_means": MeanCase(mh.MedianOfMeans(random_state=0), exact_units=False, convex=True),
    "median_of_means_shrunk": MeanCase(
        mh.MedianOfMeans(random_state=0, shrinkage="loo"), exact_units=False, convex=True
    ),
}
"""Every class, and every setting that changes a formula; ``properties/test_means.py`` holds for all of them."""


def sample(n, d, seed, shift=0.5):
    """Points with a mean away from zero, so that neither limit of lam wins by default."""
    return np.random.default_rng(seed).normal(size=(n, d)) + shift


def gram(name, X):
    return oracles.gram(FUNCTIONS[name], X, X)


def data_sets():
    """Names and points on which leave-one-out is easy to get wrong: ties, low rank, two points."""
    spread = sample(9, 3, seed=1)
    return {
        "generic": spread,
        "more_dimensions_than_points": sample(6, 11, seed=2),
        "low_rank": sample(12, 2, seed=3),
        "duplicates": np.concatenate([spread[:5], spread[:4], spread[:1]]),
        "two_points": sample(2, 3, seed=4),
        "two_equal_points": np.repeat(sample(1, 3, seed=5), 2, axis=0),
        "three_points": sample(3, 1, seed=6),
        "centred": spread - spread.mean(axis=0),
        "with_the_origin": np.concatenate([np.zeros((2, 3)), spread[:5]]),
        "far_from_zero": sample(8, 3, seed=7, shift=30.0),
    }


def awkward_rows():
    """Rows on which formulas break: few, equal, wide, far away, huge, tiny, of another type."""
    return {
        "two rows": sample(2, 3, seed=15),
        "equal rows": np.full((5, 2), 3.0),
        "zeros": np.zeros((4, 2)),
        "a constant column": np.column_stack([sample(8, 2, seed=16), np.full(8, 7.0)]),
        "all equal but one": np.vstack([np.ones((6, 2)), [[2.0, 5.0]]]),
        "wide": sample(5, 200, seed=17),
        "one column": sample(6, 1, seed=18),
        "far away": sample(8, 2, seed=19, shift=1e8),
        "huge outlier": np.vstack([sample(7, 2, seed=20), [[1e12, -1e12]]]),
        "large": 1e100 * sample(8, 3, seed=21),
        "small": 1e-100 * sample(8, 3, seed=21),
        "too large": 1e200 * sample(8, 3, seed=21),
        "too small": 1e-200 * sample(8, 3, seed=21),
        "single precision": sample(8, 3, seed=22).astype(np.float32),
        "whole numbers": np.arange(12).reshape(6, 2),
    }

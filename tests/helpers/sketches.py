"""Rows, features and comparisons that the tests of sketches share."""

import numpy as np
from numpy.testing import assert_allclose
from tables import sample

import muhat as mh
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.grams import FeaturesGram, FeatureSums

X = sample(300, 3, seed=0)
FEATURES = {
    "nystroem": Nystroem(mh.Gaussian(1.0), 20, random_state=0).fit(X),
    "linear": Nystroem(mh.Linear(), 3, random_state=0).fit(X),
    "polynomial": Nystroem(2.0 * mh.Polynomial(2) + mh.Laplace(1.0), 15, "pivoted").fit(X),
    "fourier": Fourier(mh.Gaussian(1.0), 30, random_state=0).fit(X),
    "laplace": Fourier(mh.Laplace(1.0), 30, random_state=0).fit(X),
}
ESTIMATES = {
    "simple": mh.ShrunkKernelMean("precomputed"),
    "plain": mh.KernelMean("precomputed"),
    "leave-one-out": mh.SpectralKernelMean("precomputed"),
    "theorem4": mh.SpectralKernelMean("precomputed", lam="theorem4"),
    "nested": mh.SpectralKernelMean("precomputed", scale="loo"),
    "fixed": mh.SpectralKernelMean("precomputed", lam=0.7),
    "fixed, scaled": mh.SpectralKernelMean("precomputed", lam=0.7, scale=0.5),
    "average": mh.SpectralKernelMean("precomputed", lam=0.0),
    "average, scaled": mh.SpectralKernelMean("precomputed", lam=0.0, scale="loo"),
    "zero": mh.SpectralKernelMean("precomputed", lam=np.inf, scale="loo"),
}
FULL = {"second_moment": True, "reservoir_size": 50}
BINNED = {**FULL, "bins": 40}


def states(sketch):
    sums, kept = sketch.state_.sums, sketch.state_.kept
    return [
        sketch.n_,
        sums.total,
        sums.squares,
        sums.moment,
        kept.rows,
        kept.counts,
        kept.limit,
        *(() if sketch.state_.bins is None else map(len, sketch.state_.bins.levels)),
    ]


def assert_equal_sketches(a, b, tol=1e-12):
    for mine, theirs in zip(states(a), states(b), strict=True):
        if mine is not None:
            assert_allclose(mine, theirs, rtol=0, atol=tol * max(a.n_, 1))


def gram_of_features(Z):
    """The Gram matrix ZZᵀ from n, Zᵀ1 and ZᵀZ, with all rows for leave-one-out."""
    return FeaturesGram(FeatureSums(len(Z), Z.sum(axis=0), float(np.vdot(Z, Z)), Z.T @ Z), rows=Z)

"""Density estimation by kernel mean matching."""

from muhat.density.matched_mixture import MatchedGaussianMixture

__all__ = [
    "MatchedGaussianMixture",
]

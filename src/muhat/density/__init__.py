"""Density estimation by kernel mean matching."""

from muhat.density.matched_mixture import MatchedGaussianMixture
from muhat.density.objective import Mixture, matching_objective

__all__ = [
    "MatchedGaussianMixture",
    "Mixture",
    "matching_objective",
]

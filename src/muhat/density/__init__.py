"""Density estimation by kernel mean matching."""

from muhat.density.matched_mixture import MatchedGaussianMixture
from muhat.density.objective import Mixture, Objective, matching_objective

__all__ = [
    "MatchedGaussianMixture",
    "Mixture",
    "Objective",
    "matching_objective",
]

"""The Gaussian mixture whose kernel mean is nearest."""

from muhat.density.matched_mixture import MatchedGaussianMixture

__all__ = [
    "MatchedGaussianMixture",
]

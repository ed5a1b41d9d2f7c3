"""Estimators of a kernel mean: the plain average, simple and spectral shrinkage, adaptive, robust and constrained."""

from muhat.means.adaptive import AdaptiveKernelMean
from muhat.means.base import BaseKernelMean, MeanFit
from muhat.means.blended import BlendedSample
from muhat.means.constrained import ConstrainedKernelMean
from muhat.means.oracle import OracleShrinkage, oracle_shrinkage
from muhat.means.robust import MedianOfMeans, RobustKernelMean
from muhat.means.simple_shrinkage import KernelMean, ShrunkKernelMean
from muhat.means.spectral import SpectralKernelMean
from muhat.means.stein import james_stein, james_stein_risk

__all__ = [
    "AdaptiveKernelMean",
    "BaseKernelMean",
    "BlendedSample",
    "ConstrainedKernelMean",
    "KernelMean",
    "MeanFit",
    "MedianOfMeans",
    "OracleShrinkage",
    "RobustKernelMean",
    "ShrunkKernelMean",
    "SpectralKernelMean",
    "james_stein",
    "james_stein_risk",
    "oracle_shrinkage",
]

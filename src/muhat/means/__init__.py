"""Estimators of a kernel mean: the plain average, simple and spectral shrinkage, adaptive, robust and constrained."""

from muhat.means.adaptive import AdaptiveKernelMean, adaptive_mean
from muhat.means.base import BaseKernelMean, MeanFit
from muhat.means.blended import BlendedSample
from muhat.means.constrained import ConstrainedKernelMean, constrained_mean
from muhat.means.eigensolvers import Eigensolver
from muhat.means.oracle import OracleShrinkage, oracle_shrinkage
from muhat.means.robust import MedianOfMeans, RobustKernelMean, weighted_mean
from muhat.means.simple_shrinkage import KernelMean, ShrunkKernelMean, plain_mean, simple_mean
from muhat.means.spectral import SpectralKernelMean, spectral_mean
from muhat.means.stein import james_stein, james_stein_risk

__all__ = [
    "AdaptiveKernelMean",
    "BaseKernelMean",
    "BlendedSample",
    "ConstrainedKernelMean",
    "Eigensolver",
    "KernelMean",
    "MeanFit",
    "MedianOfMeans",
    "OracleShrinkage",
    "RobustKernelMean",
    "ShrunkKernelMean",
    "SpectralKernelMean",
    "adaptive_mean",
    "constrained_mean",
    "james_stein",
    "james_stein_risk",
    "oracle_shrinkage",
    "plain_mean",
    "simple_mean",
    "spectral_mean",
    "weighted_mean",
]

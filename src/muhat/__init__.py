"""muhat: kernel means that beat the plain average."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from muhat.adapters import as_kernel
from muhat.adaptive import AdaptiveKernelMean
from muhat.bags import DistributionKernel, bags_from_groups
from muhat.constrained import ConstrainedKernelMean
from muhat.covariance import Centered, KernelCovariance, ShrunkKernelCenterer
from muhat.datasets import load_bags, load_uci
from muhat.density import MatchedGaussianMixture
from muhat.elements import Element, embed
from muhat.features import Fourier, Nystroem
from muhat.filters import IteratedTikhonov, Landweber, NuMethod, Tikhonov, TruncatedSVD
from muhat.hypothesis_tests import hsic_test, mmd_test
from muhat.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from muhat.mean import KernelMean, ShrunkKernelMean
from muhat.measures import Atoms, GaussianMixture, paper_mixture
from muhat.pca import KernelPCA
from muhat.pooling import pooled_means
from muhat.robust import MedianOfMeans, RobustKernelMean
from muhat.sketch import MeanSketch
from muhat.spectral import SpectralKernelMean
from muhat.stein import james_stein, oracle_shrinkage
from muhat.support_measure import (
    OneClassSupportMeasureMachine,
    SupportMeasureClassifier,
    SupportMeasureRegressor,
)

__version__ = "0.1.0"

__all__ = [
    "AdaptiveKernelMean",
    "Atoms",
    "Centered",
    "ConstrainedKernelMean",
    "DistributionKernel",
    "Element",
    "Fourier",
    "Gaussian",
    "GaussianMixture",
    "IteratedTikhonov",
    "KernelCovariance",
    "KernelMean",
    "KernelPCA",
    "Landweber",
    "Laplace",
    "Linear",
    "MatchedGaussianMixture",
    "Matern",
    "MeanSketch",
    "MedianOfMeans",
    "NuMethod",
    "Nystroem",
    "OneClassSupportMeasureMachine",
    "Polynomial",
    "RobustKernelMean",
    "ShrunkKernelCenterer",
    "ShrunkKernelMean",
    "SpectralKernelMean",
    "SupportMeasureClassifier",
    "SupportMeasureRegressor",
    "Tikhonov",
    "TruncatedSVD",
    "as_kernel",
    "bags_from_groups",
    "embed",
    "hsic_test",
    "james_stein",
    "load_bags",
    "load_uci",
    "mmd_test",
    "oracle_shrinkage",
    "paper_mixture",
    "pooled_means",
]

_MODULES = ("bag_plotting", "errors", "gram", "mean_plotting", "mmd_intervals", "plotting", "selection")

if not _TYPE_CHECKING:  # types know the modules that are imported, and no others

    def __getattr__(name: str) -> object:
        """Modules with public names of their own, imported when they are asked for."""
        if name in _MODULES:
            return _import_module(f"muhat.{name}")
        raise AttributeError(f"module 'muhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]

"""Kernel means: shrinkage estimators, many and conditional means, tests, models on groups, comparisons of tables."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from warnings import warn as _warn

from muhat.bags.anomaly import GroupAnomalyDetector
from muhat.bags.data import BagScaler, bags_from_groups
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.bags.prior import BagPrior, pooled_means
from muhat.bags.ridge import DistributionRidge, DistributionRidgeClassifier
from muhat.bags.separate_means import bag_means
from muhat.bags.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier
from muhat.conditional.conditional_mean import ConditionalKernelMean
from muhat.datasets import load_nyc_hours, paper_mixture
from muhat.density.matched_mixture import MatchedGaussianMixture
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
from muhat.groups.group_distances import group_distances
from muhat.inference.error_bars import confidence_ball, mean_bands, mean_error
from muhat.inference.independence import hsic_test
from muhat.inference.mmd_intervals import mmd_difference_interval, mmd_interval
from muhat.inference.two_sample import mmd_test
from muhat.kernels.dot import Linear, Polynomial
from muhat.kernels.foreign import as_kernel
from muhat.kernels.mixed import Categorical, OnColumns
from muhat.kernels.radial import Gaussian, Laplace, Matern
from muhat.means.adaptive import AdaptiveKernelMean
from muhat.means.blended import BlendedSample
from muhat.means.constrained import ConstrainedKernelMean
from muhat.means.oracle import oracle_shrinkage
from muhat.means.robust import MedianOfMeans, RobustKernelMean
from muhat.means.simple_shrinkage import KernelMean, ShrunkKernelMean
from muhat.means.spectral import SpectralKernelMean
from muhat.means.stein import james_stein
from muhat.operators.centering import Centered, ShrunkKernelCenterer
from muhat.operators.covariance import KernelCovariance
from muhat.operators.pca import KernelPCA
from muhat.rkhs.elements import Element, embed
from muhat.rkhs.measures import Atoms, GaussianMixture
from muhat.shrinkage.filters import IteratedTikhonov, Landweber, NuMethod, Tikhonov, TruncatedSVD

__version__ = "0.4.0"

__all__ = [
    "AdaptiveKernelMean",
    "Atoms",
    "BagPrior",
    "BagScaler",
    "BlendedSample",
    "Categorical",
    "Centered",
    "ConditionalKernelMean",
    "ConstrainedKernelMean",
    "DistributionKernel",
    "DistributionRidge",
    "DistributionRidgeClassifier",
    "DriftMonitor",
    "Element",
    "Fourier",
    "Gaussian",
    "GaussianMixture",
    "GroupAnomalyDetector",
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
    "OnColumns",
    "OneClassSupportMeasureMachine",
    "Polynomial",
    "RobustKernelMean",
    "ShrunkKernelCenterer",
    "ShrunkKernelMean",
    "SpectralKernelMean",
    "SupportMeasureClassifier",
    "Tikhonov",
    "TruncatedSVD",
    "as_kernel",
    "bag_means",
    "bags_from_groups",
    "compare",
    "confidence_ball",
    "embed",
    "group_distances",
    "hsic_test",
    "james_stein",
    "load_nyc_hours",
    "mean_bands",
    "mean_error",
    "mmd_difference_interval",
    "mmd_interval",
    "mmd_test",
    "oracle_shrinkage",
    "paper_mixture",
    "pooled_means",
]

_APPLICATIONS = {"DriftMonitor": "muhat.apps.monitor.drift_monitor", "compare": "muhat.apps.compare.two_tables"}
"""Names of applications, which are imported when they are asked for."""

_MOVED = {"comparison": "apps.compare", "monitor": "apps.monitor"}
"""Subpackages that 0.3 had elsewhere; the old names go with 0.5."""

_SUBPACKAGES = (
    "apps",
    "bags",
    "conditional",
    "density",
    "features",
    "grams",
    "groups",
    "inference",
    "kernels",
    "linalg",
    "means",
    "operators",
    "plotting",
    "shrinkage",
    "testing",
)

if _TYPE_CHECKING:
    from muhat import apps as apps
    from muhat import bags as bags
    from muhat import conditional as conditional
    from muhat import density as density
    from muhat import features as features
    from muhat import grams as grams
    from muhat import groups as groups
    from muhat import inference as inference
    from muhat import kernels as kernels
    from muhat import linalg as linalg
    from muhat import means as means
    from muhat import operators as operators
    from muhat import plotting as plotting
    from muhat import shrinkage as shrinkage
    from muhat import testing as testing
    from muhat.apps.compare.two_tables import compare
    from muhat.apps.monitor.drift_monitor import DriftMonitor
else:

    def __getattr__(name: str) -> object:
        """Import an application, or a subpackage with public names of its own, when it is asked for."""
        if name in _SUBPACKAGES:
            return _import_module(f"muhat.{name}")
        if name in _MOVED:
            _warn(f"muhat.{name} is muhat.{_MOVED[name]}", DeprecationWarning, stacklevel=2)
            return _import_module(f"muhat.{_MOVED[name]}")
        if name in _APPLICATIONS:
            globals()[name] = getattr(_import_module(_APPLICATIONS[name]), name)
            return globals()[name]
        raise AttributeError(f"module 'muhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_SUBPACKAGES, "__version__"]

"""muhat: kernel means that beat the plain average."""

from muhat.adapters import as_kernel
from muhat.covariance import Centered, KernelCovariance, ShrunkKernelCenterer
from muhat.elements import Element, embed
from muhat.filters import IteratedTikhonov, Landweber, NuMethod, Tikhonov, TruncatedSVD
from muhat.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from muhat.mean import KernelMean, ShrunkKernelMean, SpectralKernelMean
from muhat.measures import Atoms, GaussianMixture, paper_mixture
from muhat.pca import KernelPCA
from muhat.stein import james_stein, oracle_shrinkage

__version__ = "0.1.0"

__all__ = [
    "Atoms",
    "Centered",
    "Element",
    "Gaussian",
    "GaussianMixture",
    "IteratedTikhonov",
    "KernelCovariance",
    "KernelMean",
    "KernelPCA",
    "Landweber",
    "Laplace",
    "Linear",
    "Matern",
    "NuMethod",
    "Polynomial",
    "ShrunkKernelCenterer",
    "ShrunkKernelMean",
    "SpectralKernelMean",
    "Tikhonov",
    "TruncatedSVD",
    "as_kernel",
    "embed",
    "james_stein",
    "oracle_shrinkage",
    "paper_mixture",
]

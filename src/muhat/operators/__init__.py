"""Centring, covariance operators (COSE) and kernel PCA."""

from muhat.operators.centering import Centered, ShrunkKernelCenterer
from muhat.operators.covariance import KernelCovariance
from muhat.operators.covariance_operator import CovarianceOperator
from muhat.operators.pca import KernelPCA

__all__ = [
    "Centered",
    "CovarianceOperator",
    "KernelCovariance",
    "KernelPCA",
    "ShrunkKernelCenterer",
]

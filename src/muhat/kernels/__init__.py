"""What a kernel is, and all that we have."""

from muhat.kernels.base import Kernel, Measure, Product, Scaled, Sum, check_kernel
from muhat.kernels.dot import Linear, Polynomial
from muhat.kernels.foreign import Precomputed, as_kernel
from muhat.kernels.radial import Gaussian, Laplace, Matern

__all__ = [
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Measure",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
    "as_kernel",
    "check_kernel",
]

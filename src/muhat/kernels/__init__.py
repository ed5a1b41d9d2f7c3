"""What a kernel is, and all that we have."""

from muhat.kernels.base import Kernel, Measure, Product, Scaled, Sum, check_kernel
from muhat.kernels.dot import InnerProduct, Linear, Polynomial
from muhat.kernels.encoding import decode_kernel, encode_kernel
from muhat.kernels.foreign import Precomputed, as_kernel
from muhat.kernels.mixed import Categorical, OnColumns
from muhat.kernels.radial import Gaussian, Laplace, Matern, Radial

__all__ = [
    "Categorical",
    "Gaussian",
    "InnerProduct",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Measure",
    "OnColumns",
    "Polynomial",
    "Precomputed",
    "Product",
    "Radial",
    "Scaled",
    "Sum",
    "as_kernel",
    "check_kernel",
    "decode_kernel",
    "encode_kernel",
]

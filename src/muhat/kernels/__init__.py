"""Kernels, their sums and products, functions of them (exact features, expectations, bounds), and sums over tiles."""

from muhat.kernels.base import Kernel, Measure, Product, Scaled, Sum, check_kernel
from muhat.kernels.between_elements import evaluate_between_elements
from muhat.kernels.capabilities import (
    evaluate_fast,
    exact_feature_count,
    exact_features,
    is_isotropic,
    is_stationary,
    length_scales,
    sample_frequencies,
    upper_bound,
)
from muhat.kernels.dot import InnerProduct, Linear, Polynomial
from muhat.kernels.expectations import gaussian_diagonal, gaussian_expectations
from muhat.kernels.foreign import Precomputed, as_kernel
from muhat.kernels.mixed import Categorical, OnColumns, Rescaled
from muhat.kernels.radial import Gaussian, Laplace, Matern, Radial
from muhat.kernels.serialization import decode_kernel, encode_kernel

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
    "Rescaled",
    "Scaled",
    "Sum",
    "as_kernel",
    "check_kernel",
    "decode_kernel",
    "encode_kernel",
    "evaluate_between_elements",
    "evaluate_fast",
    "exact_feature_count",
    "exact_features",
    "gaussian_diagonal",
    "gaussian_expectations",
    "is_isotropic",
    "is_stationary",
    "length_scales",
    "sample_frequencies",
    "upper_bound",
]

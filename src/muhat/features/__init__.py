"""Explicit features of kernels (Nyström, Fourier), and mergeable sums of them over one pass of the rows."""

from muhat.features.base import BaseFeatures
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem, pivoted_cholesky
from muhat.features.sketch import MeanSketch
from muhat.features.sketch_state import SketchState

__all__ = [
    "BaseFeatures",
    "Fourier",
    "MeanSketch",
    "Nystroem",
    "SketchState",
    "pivoted_cholesky",
]

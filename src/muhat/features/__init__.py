"""m numbers in place of a function; sums of them; one pass."""

from muhat.features.base import BaseFeatures
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch

__all__ = [
    "BaseFeatures",
    "Fourier",
    "MeanSketch",
    "Nystroem",
]

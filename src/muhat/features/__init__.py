"""m numbers in place of a function; sums of them; one pass."""

from muhat.features.base import BaseFeatures
from muhat.features.feature_sums import FeatureMean, feature_mean
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem, pivoted_cholesky
from muhat.features.sketch import MeanSketch

__all__ = [
    "BaseFeatures",
    "FeatureMean",
    "Fourier",
    "MeanSketch",
    "Nystroem",
    "feature_mean",
    "pivoted_cholesky",
]

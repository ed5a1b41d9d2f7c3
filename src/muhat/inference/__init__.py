"""Inference on kernel means: tests of two samples and of independence, confidence balls, bands and intervals."""

from muhat.inference.error_bars import Bands, ConfidenceBall, confidence_ball, mean_bands, mean_error
from muhat.inference.independence import HSICResult, hsic_test
from muhat.inference.mmd_intervals import MMDInterval, mmd_difference_interval, mmd_interval
from muhat.inference.results import ComponentResult
from muhat.inference.two_sample import MMDResult, mmd_test

__all__ = [
    "Bands",
    "ComponentResult",
    "ConfidenceBall",
    "HSICResult",
    "MMDInterval",
    "MMDResult",
    "confidence_ball",
    "hsic_test",
    "mean_bands",
    "mean_error",
    "mmd_difference_interval",
    "mmd_interval",
    "mmd_test",
]

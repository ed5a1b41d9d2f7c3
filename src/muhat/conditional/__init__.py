"""Conditional kernel means: the distribution of y given x, by ridge regression between two kernels."""

from muhat.conditional.centred_ridge import CentredRidge, fit_embedding

__all__ = ["CentredRidge", "fit_embedding"]

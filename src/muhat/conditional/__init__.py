"""Conditional kernel means: the distribution of y given x, by ridge regression between two kernels."""

"""Elements of an RKHS, the measures whose means they are, and the fitted Gaussian."""

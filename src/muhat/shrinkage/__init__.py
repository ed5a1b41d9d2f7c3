"""Spectral filters, scores (leave-one-out, Theorem 4), and the search for the amount of shrinkage."""

from muhat.shrinkage.filters import Filter, IteratedTikhonov, Landweber, NuMethod, Tikhonov, TruncatedSVD
from muhat.shrinkage.scores import ScorePath, deletion_scores, simple_scores, theorem4_scores

__all__ = [
    "Filter",
    "IteratedTikhonov",
    "Landweber",
    "NuMethod",
    "ScorePath",
    "Tikhonov",
    "TruncatedSVD",
    "deletion_scores",
    "simple_scores",
    "theorem4_scores",
]

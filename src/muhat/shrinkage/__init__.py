"""How much to keep of each eigen-direction, and the search for λ: Theorems 3 and 4."""

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

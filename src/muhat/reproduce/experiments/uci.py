"""The UCI tables as the paper's experiments use them."""

from __future__ import annotations

import numpy as np

from muhat.datasets import load_uci
from muhat.types import Array

BUNDLED = ("wine", "wdbc")
"""Tables that come with scikit-learn."""


def standardised_table(name: str, data: str | None) -> Array:
    """A table without constant columns, each column with mean 0 and variance 1.

    The order of the rows depends on where the table comes from, so they are sorted first.
    """
    X = load_uci(name, features="paper_plausible", data=None if name in BUNDLED else data, download=True).data
    X = X[np.lexsort(X.T)]
    return (X - X.mean(axis=0)) / X.std(axis=0)

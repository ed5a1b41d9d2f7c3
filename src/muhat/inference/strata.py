"""Strata: groups of rows within which a test permutes."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat.types import Array
from muhat.validation import first_missing


def check_strata(strata: Any, observed: Array | None, n: int) -> Any:
    """Numbers of the strata of n rows, or None; ``observed`` says which rows are the first sample's."""
    if strata is None:
        return None
    labels = np.asarray(strata)
    if labels.shape != (n,):
        rows = "n + m rows, those of X first" if observed is not None else "rows"
        raise ValueError(f"strata has shape {labels.shape} and must have one label for each of the {n} {rows}")
    missing = first_missing(strata)
    if missing is not None:
        raise ValueError(f"strata[{missing}] is missing; leave rows without a stratum out, or give them a label")
    if len({type(label) for label in labels.tolist()}) > 1:
        labels = labels.astype(str)  # numbers and texts have no common order
    _, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if sizes.min() < 2:
        alone = labels[np.flatnonzero(numbers == int(sizes.argmin()))[0]]
        raise ValueError(
            f"strata has the label {alone!r} on one row only, which cannot be permuted; drop that row, or join strata"
        )
    if observed is not None:
        shares = np.bincount(numbers, weights=observed) / sizes
        if not ((shares > 0) & (shares < 1)).any():
            raise ValueError(
                "no stratum holds rows of both X and Y, so that nothing can be permuted; use coarser strata, or None"
            )
    return numbers

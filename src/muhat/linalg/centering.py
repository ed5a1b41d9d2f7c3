"""The centred Gram matrix, about any weighted mean of the rows."""

from __future__ import annotations

import numpy as np

from muhat.linalg.blocks import blocks
from muhat.types import Array

_STRIP = 256


def center_gram(K: Array, weights: Array) -> None:
    """Centre K, in place, about the mean with the given weights: K − 1βᵀK − Kβ1ᵀ + (βᵀKβ)11ᵀ."""
    offsets = K @ weights
    squared_norm = weights @ offsets
    for rows in blocks(len(K), _STRIP):
        K[rows] -= np.add.outer(offsets[rows], offsets)
        K[rows] += squared_norm

"""Whitening of bag means by the covariance of rows within bags."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from muhat.bags.moments import BagMoments
from muhat.linalg.distances import power_of_two_near
from muhat.types import Array
from muhat.validation import warn_caller

RIDGE = 0.05
"""Default ridge of W, relative to its mean eigenvalue. Not derived: accuracy is flat below it and falls above in large
bags, and neither a search nor an estimate of W's noise did clearly better (``benchmarks/bags_accuracy.py``)."""


_ROUNDING = 1e-13
"""Centred means below so much of the means themselves are rounding, and count as 0."""


def regularised_eigenpairs(within: Array, ridge: float) -> tuple[Array, Array]:
    """Eigenvalues of W + ρ tr(W)/m I, and eigenvectors of W."""
    unit = power_of_two_near(float(np.trace(within)))
    g, V = eigh(within / unit, driver="evd", check_finite=False)
    g = g.clip(0.0)
    return (g + ridge * g.mean()) * unit, V


class BagWhitening(NamedTuple):
    r"""Whitening map :math:`m \mapsto (m - \bar m)(W + \rho \operatorname{tr}(W)/m\, I)^{-1/2}`, up to a rotation."""

    centre: Array
    map: Array

    @classmethod
    def of(cls, moments: BagMoments, ridge: float) -> BagWhitening:
        """Centred at the mean of the bags; where W = 0 only the centre is known, and the map is the identity."""
        centre = moments.means.mean(axis=0)
        if not np.trace(moments.within) > 0:
            warn_caller(
                "no bag has two rows that differ, so there is no covariance within bags to whiten by; mean elements "
                "are only centred. Pass whiten=False and pool=False, or bags of several rows.",
            )
            return cls(centre, np.eye(len(centre)))
        g, V = regularised_eigenpairs(moments.within, ridge)
        return cls(centre, V / np.sqrt(g))

    def __call__(self, means: Array, sizes: Any = None) -> Array:
        """Whitened means, one per row, whatever the sizes of the bags."""
        centred = means - self.centre
        lengths = np.linalg.norm(means, axis=1) + np.linalg.norm(self.centre)
        centred[np.linalg.norm(centred, axis=1) <= _ROUNDING * lengths] = 0.0
        return centred @ self.map

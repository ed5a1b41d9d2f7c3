"""Displays of kernel principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.plotting.display import Display, styled
from muhat.types import Array


@dataclass
class KernelPCADisplay(Display):
    """Scores of rows on two principal components, coloured by class.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> display = mh.plotting.KernelPCADisplay.from_estimator(mh.KernelPCA(2).fit(X), X, y=X[:, 0] > 0)
    """

    scores: Array
    shares: Array
    classes: Any = None
    components: tuple[int, int] = (0, 1)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        y: Any = None,
        components: tuple[int, int] = (0, 1),
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Draw the scores of the rows of X on two components of a fitted ``KernelPCA``."""
        check_is_fitted(estimator)
        shares = estimator.explained_variance_ratio_
        if not all(0 <= k < len(shares) for k in components):
            raise ValueError(f"components={components!r} must be two of the {len(shares)} components, counted from 0")
        scores = np.asarray(estimator.transform(X))
        return cls(scores, shares, None if y is None else np.asarray(y), components).plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        i, j = self.components
        groups = [None] if self.classes is None else list(np.unique(self.classes))
        for group in groups:
            chosen = slice(None) if group is None else self.classes == group
            label = None if group is None else str(group)
            ax.scatter(self.scores[chosen, i], self.scores[chosen, j], **styled({"s": 14, "label": label}, style))
        if self.classes is not None:
            ax.legend()
        ax.set(xlabel=f"component {i} ({self.shares[i]:.0%})", ylabel=f"component {j} ({self.shares[j]:.0%})")

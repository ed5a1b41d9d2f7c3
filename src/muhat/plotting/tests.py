"""Displays of test results: evidence of the components, single columns, witness function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat.plotting.display import Display, styled
from muhat.plotting.element_displays import ElementDisplay, grid_around
from muhat.types import Array


@dataclass
class ComponentsDisplay(Display):
    """The components of a combined test: how strong the evidence of each is, by itself, and its share of the whole.

    Bars are −log₁₀ p of each component alone, by the gamma approximation; they are not corrected for each other.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 40, 3))
    >>> display = mh.plotting.ComponentsDisplay.from_result(mh.mmd_test(X, 2 * Y, random_state=0))
    """

    names: list[str]
    evidence: Array
    shares: Array
    title: str

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the components of the result of ``mmd_test`` or ``hsic_test``."""
        if not result.components:
            raise ValueError("this test has one statistic and no components; pass kernel=None for the joined test")
        found = result.components[:_MAX_BARS]
        names = [f.name if f.name == f.group else f"{f.group}: {f.name}" for f in found]
        evidence = np.array([finding.evidence for finding in found]) / np.log(10.0)
        shares = np.array([finding.share for finding in found])
        return cls(names, evidence, shares, f"p = {result.pvalue:.3g}: {result.summary}").plot(ax, **style)

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        places = np.arange(len(self.names))[::-1]
        bars = ax.barh(places, np.maximum(self.evidence, 0.0), **styled({"color": "C0"}, style))
        ax.bar_label(bars, [f"{share:.0%}" if share >= 0.005 else "" for share in self.shares], padding=3)
        ax.set_yticks(places, self.names)
        ax.margins(x=0.15)
        ax.set(xlabel="evidence of the component alone, −log₁₀ p (not corrected)", title=self.title)


_MAX_BARS = 15


class ResultWitnessDisplay(ElementDisplay):
    """The witness of a two-sample test over the rows of both samples, in one or two dimensions.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 40, 1))
    >>> display = mh.plotting.ResultWitnessDisplay.from_result(mh.mmd_test(X, 2 * Y, random_state=0))
    """

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, **style: Any) -> Self:
        """Draw the witness of the result of ``mmd_test``."""
        if getattr(result, "witness", None) is None:
            raise ValueError("this result has no witness, which needs a kernel and rows; use ComponentsDisplay")
        rows = result.witness.measures[0].points
        grid, n = grid_around(rows), result.sizes[0]
        return cls(grid, result.witness(grid), [("X", rows[:n]), ("Y", rows[n:])], diverging=True).plot(ax, **style)

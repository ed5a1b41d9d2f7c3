"""The result of group_distances: a table, a matrix, a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.extras import load_extra
from muhat._support.types import Array
from muhat.groups.estimates import GroupEstimates
from muhat.kernels.base import Kernel

SHOWN = 10
"""Groups in the table of a notebook."""

SIGNIFICANT = 0.05

_NUMBERS = ("distance", "low", "high", "unbiased", "pvalue", "adjusted")
_WIDTH = 150
_DOT = np.array([0.0, 1.0, 1.0])  # a line from 0 to the distance, and a dot there


class AgainstControl(NamedTuple):
    """Distances of groups to their control, with intervals and p-values."""

    distance: Array
    low: Array
    high: Array
    unbiased: Array
    pvalue: Array | None
    adjusted: Array | None
    level: float
    correction: str


def _of_control(name: str) -> property:
    def get(result: GroupDistances) -> Any:
        if result.against is None:
            raise AttributeError(f"{name} needs a control: group_distances(..., control=...); without one see matrix")
        return getattr(result.against, name)

    return property(get, doc=f"{name.capitalize()} of the distances to the control.")


@dataclass(frozen=True, eq=False, repr=False)
class GroupDistances:
    """Result of :func:`muhat.group_distances`: squared distances (MMD²) of many groups.

    Arrays ``distance`` to ``adjusted`` have one entry per group in the order of ``groups``; there are none of them
    without a control.

    Attributes
    ----------
    groups : array
        The labels of the groups, sorted; with a control, those of the others.
    sizes : array of int
        Rows (or clusters) of each of ``groups``.
    control : label or None
        The control.
    distance, unbiased : array
        The empirical-Bayes estimate of the squared distance to the control, and the unbiased one.
    low, high : array
        The interval of the squared distance.
    pvalue, adjusted : array or None
        P-values, as they are and corrected for the number of groups; None without permutations.
    global_pvalue : float
        P-value of "all groups have one distribution", by permutation of all labels; NaN without permutations.
    kernel : Kernel
        With its bandwidth as a number.
    all_groups : array
        The labels of rows and columns of ``matrix``: all groups, the control among them.
    against : AgainstControl or None
        The arrays above.
    estimates : GroupEstimates
        What distances of any pairs are computed from.
    """

    groups: NDArray[Any]
    sizes: NDArray[np.intp]
    control: Any
    against: AgainstControl | None
    global_pvalue: float
    kernel: Kernel
    all_groups: NDArray[Any]
    estimates: GroupEstimates

    distance, low, high, unbiased, pvalue, adjusted, level, correction = map(_of_control, AgainstControl._fields)

    @cached_property
    def matrix(self) -> Array:
        """Empirical-Bayes distances of all pairs of ``all_groups``, computed when first asked for.

        Each is shrunk toward the mean over all pairs, whereas ``distance`` is shrunk toward the mean distance to the
        control; so the two differ a little for the same pair.
        """
        return self.estimates.matrix()

    @cached_property
    def unbiased_matrix(self) -> Array:
        """Unbiased estimates of all pairs of ``all_groups``; some may be negative."""
        return self.estimates.matrix(unbiased=True)

    @property
    def order(self) -> NDArray[np.intp]:
        """Numbers of ``groups``, those at the largest distance first; without a control in the order of a tree."""
        if self.against is not None:
            return np.argsort(-self.against.distance, kind="stable")
        if len(self.groups) < 3:
            return np.arange(len(self.groups))
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        return np.asarray(leaves_list(linkage(np.sqrt(squareform(self.matrix.clip(0.0), checks=False)), "average")))

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Whether the adjusted p-value of each group is at most 0.05."""
        found = None if self.against is None else self.against.adjusted
        return np.zeros(len(self.groups), bool) if found is None else found <= SIGNIFICANT

    def to_frame(self) -> Any:
        """The groups as a pandas data frame, the largest distance first; without a control, the square of distances.

        Returns
        -------
        pandas.DataFrame
            The columns are group, n, distance, low, high, unbiased, pvalue and adjusted.
        """
        pandas = load_extra("pandas", "data", "to_frame()")
        if self.against is None:
            return pandas.DataFrame(self.matrix, index=self.groups, columns=self.groups)
        return pandas.DataFrame({name: values[self.order] for name, values in self._columns(self.against).items()})

    def _columns(self, against: AgainstControl) -> dict[str, NDArray[Any]]:
        nothing = np.full(len(self.groups), np.nan)
        columns = {
            name: nothing if values is None else values for name, values in zip(_NUMBERS, against[:6], strict=True)
        }
        return {"group": self.groups, "n": self.sizes, **columns}

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw dots with intervals, or a heat map where there is no control; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: those of a new figure.
        **style
            Options of the dots, or of the image.

        Returns
        -------
        muhat.plotting.GroupDistancesDisplay
            The display, drawn.
        """
        return import_module("muhat.plotting").GroupDistancesDisplay.from_result(self, ax=ax, **style)

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        against, found = self.against, f"{len(self.all_groups):,} groups"
        if against is not None:
            found = f"{len(self.groups):,} group{'s' * (len(self.groups) > 1)} against {self.control}"
        if against is not None and against.adjusted is not None:
            error = {"bh": "false discovery rate", "holm": "familywise error"}[against.correction]
            found += f": {self.significant.sum():,} differ ({error} {100 * SIGNIFICANT:g} %)"
        tested = "" if np.isnan(self.global_pvalue) else f"; p = {self.global_pvalue:.2g} that all are alike"
        return found + tested

    def __repr__(self) -> str:
        lines, against = [f"GroupDistances({self.summary})"], self.against
        if against is None:
            return lines[0]
        for g in self.order[:3]:
            tested = "" if against.adjusted is None else f", adjusted p = {against.adjusted[g]:.2g}"
            interval = f"{against.distance[g]:.3g} [{against.low[g]:.3g}, {against.high[g]:.3g}]"
            lines.append(f"  {self.groups[g]}: {interval}, n = {self.sizes[g]:,}{tested}")
        if len(self.groups) > 3:
            lines.append(f"  and {len(self.groups) - 3:,} more: to_frame()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, and a table with drawings of the largest distances, or of extreme pairs."""
        if self.against is None:
            i, j = np.triu_indices(len(self.groups), 1)
            values = self.matrix[i, j]
            order = np.argsort(values, kind="stable")
            chosen = order if len(order) <= SHOWN else np.r_[order[: SHOWN // 2], order[-SHOWN // 2 :]]
            head, unit = "nearest and farthest||distance|", float(values.max()) or 1.0
            rows = [_row(self.groups[[i[p], j[p]]], values[[p]], values[p] / unit * _DOT, "#1f77b4") for p in chosen]
        else:
            order, columns = self.order[:SHOWN], self._columns(self.against)
            head, unit = "|".join([*columns, ""]), float(self.against.high[order].max()) or 1.0
            rows = []
            for g in order:
                label, *numbers, low, high = (columns[name][g] for name in (*columns, "low", "high"))
                places = np.array([low, columns["distance"][g], high]) / unit
                rows.append(_row([label], numbers, places, "#d62728" if self.significant[g] else "#1f77b4"))
            if len(self.groups) > SHOWN:
                rows.append(f"<tr><td>and {len(self.groups) - SHOWN:,} more: to_frame()</td></tr>")
        heads = "".join(f"<th>{name}</th>" for name in head.split("|"))
        return f"<p>{escape(self.summary)}</p><table><tr>{heads}</tr>{''.join(rows)}</table>"


def _row(labels: Iterable[Any], numbers: Iterable[Any], places: Array, colour: str) -> str:
    """A row of a table, with an interval and a dot at three places between 0 and 1."""
    cells = "".join(f"<th>{escape(str(label))}</th>" for label in labels)
    cells += "".join(f"<td>{x:,}</td>" if isinstance(x, np.integer) else f"<td>{x:.3g}</td>" for x in numbers)
    low, x, high = 5.0 + _WIDTH * places
    line = f'<line x1="{low:.1f}" x2="{high:.1f}" y1="6" y2="6" stroke="#999"/>'
    dot = f'<circle cx="{x:.1f}" cy="6" r="4" fill="{colour}"/>'
    return f'<tr>{cells}<td><svg width="{_WIDTH + 10}" height="12">{line}{dot}</svg></td></tr>'

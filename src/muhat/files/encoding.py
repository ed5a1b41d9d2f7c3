"""Encoding of rows of mixed columns as points, with an equal share of the distance for every column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.files.tables import Kind
from muhat.types import Array

MOST_CATEGORIES = 20
"""Of one column; rarer ones are taken together."""

_GAP = np.sqrt(2.0)
_LEAST_DIFFERING = 0.1


@dataclass(frozen=True, eq=False)
class Encoded:
    """``points[i]`` are the rows of table i; coordinate k comes from the column number ``sources[k]``.

    ``parts[k]`` says what of that column it holds: its "values", where values are "missing", or a category, "=red".
    """

    points: tuple[Array, ...]
    sources: NDArray[np.int64]
    parts: tuple[str, ...]


def encoded(columns: Sequence[tuple[Kind, Sequence[NDArray[Any]]]], raw: bool = False) -> Encoded:
    """Points for rows whose columns are numbers, dates or categories, with gaps.

    Numbers get the pooled mean 0 and standard deviation 1, so two rows differ by 2 in the mean square. A category is a
    coordinate of its own, scaled so that the same holds. A gap in a column of numbers is its mean, and a further
    coordinate tells gaps from values: their squared distance is 2 plus the number's own. Gaps among categories are a
    category.

    Parameters
    ----------
    columns : sequence of (kind, values of each table)
        Numbers with NaN for gaps, texts with None.
    raw : bool
        Leave numbers as they are.

    Returns
    -------
    Encoded
        A column that holds a single value has no coordinates.
    """
    blocks, sources, parts = [], [], []
    for j, (kind, values) in enumerate(columns):
        pooled = np.concatenate(list(values))
        block, names = _categories(pooled) if kind == "category" else _numbers(pooled, raw)
        blocks.append(block)
        sources += [j] * len(names)
        parts += names
    rows = [len(values) for values in columns[0][1]]
    pooled_points = np.column_stack(blocks) if blocks else np.empty((sum(rows), 0))
    points = tuple(np.split(pooled_points, np.cumsum(rows)[:-1]))
    return Encoded(points, np.array(sources, dtype=np.int64), tuple(parts))


def _numbers(pooled: Array, raw: bool) -> tuple[Array, list[str]]:
    gaps = np.isnan(pooled)
    kept = pooled[~gaps]
    values = np.zeros(len(pooled))
    varies = bool(len(kept)) and bool((kept != kept[0]).any())
    if varies:
        values[~gaps] = kept if raw else standardised(kept)
        if raw:
            values[gaps] = kept.mean()
    found = {"values": values} if varies else {}
    if gaps.any() and not gaps.all():
        found["missing"] = _GAP * gaps
    return np.column_stack(list(found.values())) if found else np.empty((len(pooled), 0)), list(found)


def standardised(values: Array) -> Array:
    """Mean 0 and standard deviation 1, for values at any scale that are not all equal.

    >>> standardised(np.array([1e200, 3e200]))
    array([-1.,  1.])
    """
    values = values / np.abs(values).max()  # squares of huge values would overflow, those of tiny ones vanish
    values = values - values.mean()
    return values / values.std()


def _categories(pooled: NDArray[Any]) -> tuple[Array, list[str]]:
    texts = np.array(["" if text is None else f"={text}" for text in pooled])
    names, places, counts = np.unique(texts, return_inverse=True, return_counts=True)
    if len(names) < 2:
        return np.empty((len(pooled), 0)), []
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    codes = np.minimum(rank[places], MOST_CATEGORIES - 1)
    indicators = np.eye(codes.max() + 1)[codes]
    shares = indicators.mean(axis=0)
    differing = max(1.0 - float(shares @ shares), _LEAST_DIFFERING)
    found = [str(names[k]) or "missing" for k in order[: indicators.shape[1]]]
    if len(names) > MOST_CATEGORIES:
        found[-1] = "=(others)"
    return (indicators - shares) / np.sqrt(differing), found

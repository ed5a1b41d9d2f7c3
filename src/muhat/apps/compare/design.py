"""What a comparison permutes: strata, clusters, units and their splits, and the rows that are compared as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.apps.compare.sources import column_of_all
from muhat.apps.compare.text_report import plural
from muhat.apps.files.tables import Source
from muhat.apps.files.told import told
from muhat.inference.permutations import (
    Bins,
    ClustersError,
    Splits,
    Units,
    centred_splits,
    check_clusters,
    draw_units,
    smallest_pvalue,
)
from muhat.inference.two_sample import BINS, MAX_SINGLE_ROWS

TOGETHER = 6000
"""About how many rows of both tables are compared as a whole: a random part of each bin or cluster."""

MOST_STRATA = 500


class Design(NamedTuple):
    """Units and their splits; labels of the pooled rows; the sampled rows of each table, and as bins of all of them."""

    sizes: tuple[int, int]
    units: Units
    splits: Splits
    strata: Any
    clusters: Any
    picked: list[NDArray[np.intp]]
    bins: Bins
    labels_equal: bool
    smallest: float
    drawn: bool

    def of_table(self, which: int, labels: Any) -> Any:
        """The labels of the rows of one table."""
        return labels[: self.sizes[0]] if which == 0 else labels[self.sizes[0] :]

    @property
    def largest_clusters(self) -> tuple[int, int] | None:
        """The number of rows of the largest cluster of each table."""
        if self.clusters is None:
            return None
        first, second = (int(np.bincount(self.of_table(which, self.clusters)).max()) for which in (0, 1))
        return first, second

    @property
    def sampled_strata(self) -> Any:
        """The strata of the sampled rows of both tables, one below the other."""
        return None if self.strata is None else self.strata[_pooled(self.picked, self.sizes)]


def draw_design(
    sources: list[Source],
    strata: str | None,
    clusters: str | None,
    missing: Sequence[Any],
    n_resamples: int,
    rng: np.random.Generator,
) -> Design:
    sizes = sources[0].n_rows, sources[1].n_rows
    of_strata = of_clusters = None
    if strata is not None:
        of_strata, levels = _labels(sources, "strata", strata, missing)
        shared = np.intersect1d(of_strata[: sizes[0]], of_strata[sizes[0] :])
        if len(levels) > MOST_STRATA:
            few = f"has {len(levels):,} values; name a column of up to {MOST_STRATA} groups"
            raise ValueError(told(lambda write: f"{write('strata', strata)} {few}"))
        if not (shared < len(levels)).any():
            apart = "has no value in common; strata need rows of both tables"
            raise ValueError(told(lambda write: f"{write('strata', strata)} {apart}"))
    if clusters is not None:
        of_clusters = _checked_clusters(sources, clusters, missing, of_strata)
    equal = all(
        labels is None or np.array_equal(labels[: sizes[0]], labels[sizes[0] :]) for labels in (of_strata, of_clusters)
    )
    units = draw_units(sizes, of_strata, of_clusters, MAX_SINGLE_ROWS, BINS, rng)
    splits = centred_splits(units.of_first, n_resamples, rng, units.strata)
    mean_size = -(-int((units.numbers >= 0).sum()) // len(units.of_first))
    members = _members(units, max(1, min(mean_size, TOGETHER // len(units.of_first))), rng)
    rows, places = np.unique(members, return_inverse=True)
    bins = Bins(places.reshape(members.shape), units.of_first, units.strata, len(units.numbers) - len(rows), units.kind)
    split = int(np.searchsorted(rows, sizes[0]))
    drawn = splits.centred.shape[1] == n_resamples + 1
    smallest = smallest_pvalue(units.of_first, n_resamples, units.strata)
    picked = [rows[:split], rows[split:] - sizes[0]]
    return Design(sizes, units, splits, of_strata, of_clusters, picked, bins, equal, smallest, drawn)


def _labels(sources: list[Source], parameter: str, name: str, missing: Sequence[Any]) -> tuple[Any, Any]:
    """The number of the label of each pooled row, and the labels; a missing one has the number after the last."""
    for source in sources:
        if name not in source.names:
            lost = f"{source.name} has no such column; it has {list(source.names)[:8]}"
            raise ValueError(told(lambda write: f"{write(parameter, name)}: {lost}"))  # noqa: B023 - called now
    return column_of_all(sources, name, missing)


def _checked_clusters(sources: list[Source], name: str, missing: Sequence[Any], strata: Any) -> Any:
    labels, levels = _labels(sources, "clusters", name, missing)
    lost = int((labels == len(levels)).sum())
    if lost:
        text = f"is missing in {plural(lost, 'row')}; give each row a cluster, or leave these rows out"
        raise ValueError(told(lambda write: f"{write('clusters', name)} {text}"))
    try:
        return check_clusters(labels, np.repeat([1.0, 0.0], [source.n_rows for source in sources]), strata)
    except ClustersError as error:
        text, label = (
            error.args[0].replace("samples", "tables"),
            "" if error.label is None else f" ({levels[error.label]!r})",
        )
        raise ValueError(told(lambda write: f"{write('clusters', name)}: {text}{label}")) from None


def _members(units: Units, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Some rows of each unit; of long tables in bins they are looked for among a part of the rows."""
    enough = 64 * size * len(units.of_first)
    if units.kind != "bins" or len(units.numbers) <= enough:
        return units.members(size, rng)
    rows = np.sort(rng.choice(len(units.numbers), enough, replace=False, shuffle=False))
    return np.asarray(rows[units._replace(numbers=units.numbers[rows]).members(size, rng)])


def _pooled(picked: Sequence[NDArray[np.intp]], sizes: tuple[int, int]) -> NDArray[np.intp]:
    return np.concatenate([picked[0], picked[1] + sizes[0]])

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
    """Units and their splits, labels of the pooled rows, and the sampled rows as numbers and in bins of all of them."""

    sizes: tuple[int, int]
    units: Units
    splits: Splits
    strata: Any
    clusters: Any
    picked: NDArray[np.intp]
    bins: Bins
    smallest: float
    drawn: bool

    def of_table(self, which: int, labels: Any) -> Any:
        """The labels of the rows of one table."""
        return labels[self.sizes[0] :] if which else labels[: self.sizes[0]]

    def picked_of(self, which: int) -> NDArray[np.intp]:
        """The sampled rows of one table."""
        return self.picked[(self.picked >= self.sizes[0]) == which] - which * self.sizes[0]

    @property
    def largest_clusters(self) -> tuple[int, int] | None:
        """The number of rows of the largest cluster of each table."""
        if self.clusters is None:
            return None
        first, second = (int(np.bincount(self.of_table(which, self.clusters)).max()) for which in (0, 1))
        return first, second

    @property
    def labels_equal(self) -> bool:
        """Whether strata and clusters are the same in both tables, row by row."""
        every = [labels for labels in (self.strata, self.clusters) if labels is not None]
        return all(np.array_equal(self.of_table(0, labels), self.of_table(1, labels)) for labels in every)

    @property
    def sampled_strata(self) -> Any:
        """The strata of the sampled rows of both tables, one below the other."""
        return None if self.strata is None else self.strata[self.picked]


def draw_design(
    sources: list[Source],
    strata: str | None,
    clusters: str | None,
    missing: Sequence[Any],
    n_resamples: int,
    rng: np.random.Generator,
) -> Design:
    """The design of a comparison; names of columns that cannot be strata or clusters are ValueErrors."""
    sizes = sources[0].n_rows, sources[1].n_rows
    of_strata = of_clusters = None
    if strata is not None:
        of_strata, levels = _labels(sources, "strata", strata, missing)
        if len(levels) > MOST_STRATA:
            _refuse("strata", strata, f" has {len(levels):,} values; name a column of up to {MOST_STRATA} groups")
        if not (np.intersect1d(of_strata[: sizes[0]], of_strata[sizes[0] :]) < len(levels)).any():
            _refuse("strata", strata, " has no value in common; strata need rows of both tables")
    if clusters is not None:
        of_clusters, levels = _labels(sources, "clusters", clusters, missing)
        if lost := int((of_clusters == len(levels)).sum()):
            remedy = "give each row a cluster, or leave these rows out"
            _refuse("clusters", clusters, f" is missing in {plural(lost, 'row')}; {remedy}")
        try:
            of_clusters = check_clusters(of_clusters, np.repeat([1.0, 0.0], sizes), of_strata)
        except ClustersError as error:
            label = "" if error.label is None else f" ({levels[error.label]!r})"
            _refuse("clusters", clusters, f": {error.args[0].replace('samples', 'tables')}{label}")
    units = draw_units(sizes, of_strata, of_clusters, MAX_SINGLE_ROWS, BINS, rng)
    splits = centred_splits(units.of_first, n_resamples, rng, units.strata)
    mean_size = -(-int((units.numbers >= 0).sum()) // len(units.of_first))
    members = _members(units, max(1, min(mean_size, TOGETHER // len(units.of_first))), rng)
    picked, places = np.unique(members, return_inverse=True)
    unused = sum(sizes) - len(picked)
    bins = Bins(places.reshape(members.shape), units.of_first, units.strata, unused, units.kind)
    smallest = smallest_pvalue(units.of_first, n_resamples, units.strata)
    drawn = splits.centred.shape[1] == n_resamples + 1  # and not all that there are
    return Design(sizes, units, splits, of_strata, of_clusters, picked, bins, smallest, drawn)


def _labels(sources: list[Source], parameter: str, name: str, missing: Sequence[Any]) -> tuple[Any, Any]:
    """The number of the label of each pooled row, and the labels; a missing one has the number after the last."""
    for source in sources:
        if name not in source.names:
            _refuse(parameter, name, f": {source.name} has no such column; it has {list(source.names)[:8]}")
    return column_of_all(sources, name, missing)


def _refuse(parameter: str, name: str, why: str) -> None:
    raise ValueError(told(lambda write: f"{write(parameter, name)}{why}"))


def _members(units: Units, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Some rows of each unit; of long tables in bins they are looked for among a part of the rows."""
    enough = 64 * size * len(units.of_first)
    if units.kind != "bins" or len(units.numbers) <= enough:
        return units.members(size, rng)
    rows = np.sort(rng.choice(len(units.numbers), enough, replace=False, shuffle=False))
    return np.asarray(rows[units._replace(numbers=units.numbers[rows]).members(size, rng)])

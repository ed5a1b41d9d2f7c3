"""What a sketch knows of its rows: sums of features, kept rows and bins, as a value that merges with ``+``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from muhat.features.feature_sums import FeatureSums, check_sums
from muhat.features.reservoir import Reservoir
from muhat.features.row_bins import RowBins


class SketchSettings(NamedTuple):
    """The parameters of a :class:`MeanSketch` that decide what it keeps."""

    second_moment: bool = False
    reservoir_size: int = 0
    random_state: int = 0
    bins: int = 0


@dataclass(frozen=True, eq=False)
class SketchState:
    """The state of a :class:`MeanSketch` without its features: small, never changed, and all that has to be moved.

    ``a + b`` is the state of the rows of both, and ``sum(states)`` that of all. ``MeanSketch(features) + state`` is a
    sketch again; ``fingerprint`` says which features the state belongs to.
    """

    fingerprint: str
    settings: SketchSettings
    sums: FeatureSums
    kept: Reservoir
    bins: RowBins | None = None

    @classmethod
    def empty(cls, fingerprint: str, settings: SketchSettings, n_columns: int, n_features: int) -> SketchState:
        """The state of no rows."""
        moment = np.zeros((n_features, n_features)) if settings.second_moment else None
        sums = FeatureSums(0, np.zeros(n_features), 0.0, moment)
        no_rows, no_keys, no_counts = np.empty((0, n_columns)), np.empty(0, np.uint64), np.empty(0, np.int64)
        kept = Reservoir(settings.reservoir_size, no_rows, no_keys, no_counts)
        bins = RowBins.of_rows(settings.bins, np.empty((0, n_features)), np.empty(0)) if settings.bins else None
        return cls(fingerprint, settings, sums, kept, bins)

    def __add__(self, other: Any) -> SketchState:
        if not isinstance(other, SketchState):
            return NotImplemented
        self.check_mergeable(other)
        return self.plus(other)

    def __radd__(self, other: Any) -> SketchState:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts at 0

    def plus(self, other: SketchState, sign: int = 1) -> SketchState:
        """The state of both, or of the rows of this one without those of the other."""
        kept = self.kept.plus(other.kept, sign)
        sums = check_sums(self.sums.plus(other.sums, sign))
        bins = None if self.bins is None or other.bins is None else self.bins.plus(other.bins)
        return replace(self, sums=sums, kept=kept, bins=bins)

    def check_same_features(self, other: SketchState) -> None:
        """Raise a ValueError unless both states are sums of the same features."""
        if other.fingerprint != self.fingerprint:
            raise ValueError(
                f"the two sketches have different features (fingerprints {self.fingerprint} and "
                f"{other.fingerprint}); fit the features once, and use them for both"
            )

    def check_mergeable(self, other: SketchState) -> None:
        """Raise a ValueError unless both states keep the same things of the same features."""
        self.check_same_features(other)
        for name, mine, theirs in zip(SketchSettings._fields, self.settings, other.settings, strict=True):
            if mine != theirs:
                raise ValueError(
                    f"{name}={theirs!r} of the other sketch must be {mine!r}; make both sketches with the same settings"
                )

    def __repr__(self) -> str:
        return f"SketchState(n={self.sums.n:,}, features {self.fingerprint})"

"""Small histograms of a column of two tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat.files.rows import shown_date
from muhat.files.summaries import Summary
from muhat.progress import printable
from muhat.types import Array

BINS = 20
MOST_CATEGORIES = 8
WIDTH, HEIGHT = 120.0, 32.0


@dataclass(frozen=True)
class Histogram:
    """``heights[i][k]`` is the bar of table i in bin k, relative to the largest one; ``ends`` name both sides."""

    heights: tuple[tuple[float, ...], ...]
    ends: tuple[str, str]

    def paths(self) -> list[str]:
        """The bars of each table as one path in a box of 120 by 32, those of two tables side by side."""
        tables, bins = len(self.heights), len(self.heights[0])
        step = WIDTH / bins
        bar = 0.86 * step / tables
        return [
            "".join(
                f"M{k * step + i * bar:.1f} {HEIGHT:g}v-{height:.1f}h{bar:.1f}V{HEIGHT:g}z"
                for k, height in enumerate(heights)
                if height
            )
            for i, heights in enumerate(self.heights)
        ]


def histogram(summary: Summary) -> Histogram:
    """Of the commonest categories, or of numbers between the first and the last hundredth."""
    shares = summary.counts / np.maximum(summary.counts.sum(axis=1, keepdims=True), 1)
    if summary.kind == "category":
        shown, names = shares[:, :MOST_CATEGORIES], [str(text) for text in summary.values[:MOST_CATEGORIES]]
        if shares.shape[1] > MOST_CATEGORIES:
            shown, names = np.column_stack([shown, shares[:, MOST_CATEGORIES:].sum(axis=1)]), [*names, "(others)"]
        return _scaled(shown, (printable(names[0])[:20], printable(names[-1])[:20]))
    values = summary.values
    if len(values) <= BINS:
        return _scaled(shares, _ends(summary, values))
    pooled = shares.sum(axis=0).cumsum() / shares.sum()
    low, high = (values[min(int(np.searchsorted(pooled, level)), len(values) - 1)] for level in (0.01, 0.99))
    edges = low * (1 - np.linspace(0, 1, BINS + 1)) + high * np.linspace(0, 1, BINS + 1)
    places = np.searchsorted(edges[1:-1], values, side="left")
    binned = np.array([np.bincount(places, weights=row, minlength=BINS) for row in shares])
    return _scaled(binned, _ends(summary, edges))


def histogram_of_numbers(*tables: Array) -> Histogram:
    """Of the values of each table, between the first and the last hundredth of all."""
    low, high = np.quantile(np.concatenate(tables), [0.01, 0.99])
    edges = np.linspace(low, high, BINS + 1) if high > low else np.linspace(low - 1.0, high + 1.0, BINS + 1)
    counts = np.array([np.histogram(values.clip(low, high), edges)[0] / len(values) for values in tables])
    return _scaled(counts, (f"{edges[0]:.4g}", f"{edges[-1]:.4g}"))


def _scaled(shares: Array, ends: tuple[str, str]) -> Histogram:
    heights = HEIGHT * shares / (shares.max() or 1.0)
    return Histogram(tuple(tuple(float(h) for h in row.round(1)) for row in heights), ends)


def _ends(summary: Summary, places: Array) -> tuple[str, str]:
    shown = shown_date if summary.kind == "date" else "{:.4g}".format
    return shown(float(places[0])), shown(float(places[-1]))

"""What a picture says, whatever it looks like: the numbers and words that were given to matplotlib."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure


def numbers_of(ax):
    """Titles, scales, and the data of lines, bars, points and areas."""
    said = [ax.get_title(), ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()]
    lines = [np.asarray(line.get_xydata(), dtype=float) for line in ax.lines]
    for collection in ax.collections:
        if isinstance(collection, ContourSet):
            lines += [collection.levels]
        elif isinstance(collection, LineCollection):
            lines += [np.concatenate(collection.get_segments() or [np.empty((0, 2))])]
        elif isinstance(collection, PathCollection):
            lines += [np.asarray(collection.get_offsets(), dtype=float)]
        else:
            lines += [path.vertices for path in collection.get_paths()]
    boxes = [patch.get_patch_transform().transform(patch.get_path().vertices) for patch in ax.patches]
    legend = ax.get_legend()
    words = [text.get_text() for text in (*ax.texts, *(legend.get_texts() if legend else ()))]
    images = [np.asarray(image.get_array(), dtype=float) for image in ax.images]
    numbers = np.concatenate([np.ravel(part) for part in (*lines, *boxes, *images)] or [np.empty(0)])
    return [said, words, np.nan_to_num(numbers)]


@contextmanager
def recorded():
    """A list that takes the numbers of every figure that is written within the block."""
    found, write = [], Figure.savefig

    def written(figure, *arguments, **options):
        write(figure, *arguments, **options)
        found.append([numbers_of(ax) for ax in figure.axes])

    Figure.savefig = written
    try:
        yield found
    finally:
        Figure.savefig = write

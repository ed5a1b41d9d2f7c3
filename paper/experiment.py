"""Experiments: the cells that they consist of, and the section of the report made from the rows of their cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from paper.page import Picture, ReportTable

Array = NDArray[np.float64]

Setting = dict[str, Any]
"""All that the result of a cell depends on, as JSON values; ``seed`` and ``repetition`` are always among them."""

Row = dict[str, Any]
"""One measurement: its setting and the value of each estimator, so that estimators are paired within a row."""

RunCell = Callable[[Setting, str | None], list[Row]]
"""Rows of the cell with this setting, from the data in this folder."""


@dataclass(frozen=True)
class Plan:
    """Options of the command: full or quick form, seed, and number of repetitions."""

    quick: bool = False
    seed: int = 0
    repetitions: int | None = None

    def repeated(self, full: int, quick: int) -> list[Setting]:
        """Seed and number of each repetition: as many as asked for, else those of the full or of the quick form."""
        times = self.repetitions or (quick if self.quick else full)
        return [{"seed": self.seed, "repetition": i} for i in range(times)]


@dataclass(frozen=True)
class PaperTable:
    """A table in the paper's own layout, with several lines per cell: the paper's number, and ours below it.

    ``groups`` are the headings above the columns with the number of columns of each. A line of a cell is a text and a
    mark: "better" or "worse" where the difference from KME is significant, else nothing.
    """

    caption: str
    lines: Sequence[str]
    groups: Sequence[tuple[str, int]]
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Sequence[tuple[str, str]]]]]


Item = Picture | ReportTable | PaperTable


@dataclass(frozen=True)
class Section:
    """Part of the report on one experiment: what is shown at once, and details that are folded.

    ``results.json`` keeps the summary and the notes.
    """

    summary: list[Row]
    shown: Sequence[Item] = ()
    folded: Sequence[Item] = ()
    notes: Sequence[str] = ()


class Headline(NamedTuple):
    """A sentence of the conclusion, made from the summary of an experiment."""

    experiment: str
    kind: Literal["replicates", "does not", "unchecked"]
    sentence: Callable[[list[Row]], str]


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper, or a check of ours.

    ``cells`` lists the settings of a plan, and ``data_sets`` the tables and bags that it needs. ``run(setting, data)``
    returns the rows of one cell and depends on nothing else (``data`` is the folder of the tables, whose content is
    checked); ``seconds`` estimates how long that takes on one core. ``section`` makes the report's part from all rows.
    ``protocol`` holds one paragraph per entry.
    """

    name: str
    title: str
    protocol: Sequence[str]
    cells: Callable[[Plan], list[Setting]]
    run: RunCell
    seconds: Callable[[Setting], float]
    section: Callable[[list[Row]], Section]
    data_sets: Callable[[Plan], Sequence[str]] = lambda plan: ()


def cell_key(experiment: str, setting: Setting) -> str:
    """Name of a cell in the store."""
    return json.dumps([experiment, setting], sort_keys=True, separators=(",", ":"))


def generator(experiment: str, setting: Setting, *stream: int) -> np.random.Generator:
    """Random numbers of a repetition: a child of the one seed, identified by experiment, repetition and stream.

    Settings that share a repetition share its numbers, which pairs them.
    """
    child = (crc32(experiment.encode()), setting["repetition"], *stream)
    return np.random.default_rng(np.random.SeedSequence(setting["seed"], spawn_key=child))

"""What an experiment is: cells that run apart from each other, and a section of the report made from their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from muhat.report.page import Picture, Table

Setting = dict[str, Any]
"""What the result of a cell depends on, as JSON has it; ``seed`` and ``repetition`` are always in it."""


Row = dict[str, Any]
"""One measurement: its setting and the value of each estimator, so that estimators are paired within a row."""


@dataclass(frozen=True)
class Plan:
    """What the command asks for."""

    quick: bool = False
    seed: int = 0
    repetitions: int | None = None

    def times(self, full: int, quick: int) -> int:
        """Number of repetitions: the one asked for, else that of the full or of the quick form."""
        return self.repetitions or (quick if self.quick else full)


@dataclass(frozen=True)
class Section:
    """What the report and ``results.json`` say of one experiment; ``summary`` is what the file keeps of the rows."""

    summary: list[Row]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = field(default=())


def _no_data(plan: Plan) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper, or a check of ours.

    ``data_sets`` names the tables and bags that a plan needs, and ``cells`` lists its settings. ``run(setting, data)``
    gives the rows of one cell, and depends on nothing else (``data`` is the folder of the tables, whose content is
    checked); ``seconds`` says about how long that takes on one core. ``section`` makes the report's part of all rows.
    ``protocol`` is text, a paragraph each.
    """

    name: str
    title: str
    protocol: Sequence[str]
    cells: Callable[[Plan], list[Setting]]
    run: Callable[[Setting, str | None], list[Row]]
    seconds: Callable[[Setting], float]
    section: Callable[[list[Row]], Section]
    data_sets: Callable[[Plan], Sequence[str]] = _no_data


def cell_key(experiment: str, setting: Setting) -> str:
    """The name of a cell in the store."""
    return json.dumps([experiment, setting], sort_keys=True, separators=(",", ":"))


def generator(experiment: str, setting: Setting, *stream: int) -> np.random.Generator:
    """Random numbers of a repetition: a child of the one seed, known by experiment, repetition and stream.

    Settings that share a repetition share its numbers, which pairs them.
    """
    child = (crc32(experiment.encode()), setting["repetition"], *stream)
    return np.random.default_rng(np.random.SeedSequence(setting["seed"], spawn_key=child))

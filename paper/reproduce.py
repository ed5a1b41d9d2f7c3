"""Runs of the experiments: run what is missing, judge the claims, write the report."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from paper.claim import MARGINS, REASON, RULE, Claim, Judgement, judge
from paper.experiment import Experiment, Plan, Row, Section
from paper.protocol import load_data
from paper.registry import CLAIMS, EXPERIMENTS
from paper.results_page import Results, claims_text, write_report
from paper.runner import Cell, CellStore, missing_cells, open_store, run

_PAUSE = 10.0  # seconds between two lines that say how far the run is
_PACKAGES = ("muhat", "numpy", "scipy", "scikit-learn")

Files = dict[str, dict[str, Any]]
"""Data that were read: rows, checksum, and whether it is the file of the published run, by name."""


def reproduce(names: Sequence[str], plan: Plan, out: str, data: str | None = None, workers: int = 1) -> int:
    """Run the experiments named, by default all; 0 when the report is written. See ``python -m paper --help``."""
    experiments = _chosen(names)
    _check_packages()
    files = _check_data(experiments, plan, data)
    with open_store(out, version("muhat")) as store:
        missing = missing_cells(experiments, plan, store, data)
        _say_what_was_found(store, sum(len(experiment.cells(plan)) for experiment in experiments), missing, workers)
        try:
            _follow(run(missing, store, workers), missing, workers)
        except KeyboardInterrupt:
            print(f"stopped; finished cells are in {store.path}, and the same command goes on")
            raise
        page = write_all(plan, store, Path(out), files)
    print(f"report: {page}")
    return 0


def write_all(plan: Plan, store: CellStore, folder: Path, files: Files | None = None) -> Path:
    """Report on every experiment whose cells are all there, with the data files that were read."""
    rows = {name: store.collected(experiment, plan) for name, experiment in EXPERIMENTS.items()}
    complete = {name: found for name, found in rows.items() if found is not None}
    known = files or {}
    sections = {name: noted_section(EXPERIMENTS[name], plan, found, known) for name, found in complete.items()}
    return write_report(folder, _results(plan, store, complete, sections, known), sections)


def show_claims(out: str) -> int:
    """Print the verdicts of a finished run."""
    path = Path(out) / "results.json"
    if not path.exists():
        raise ValueError(f"{path} does not exist; make it by `python -m paper --out {out}`")
    print(claims_text(json.loads(path.read_text(encoding="utf-8"))))
    return 0


def noted_section(experiment: Experiment, plan: Plan, rows: list[Row], files: Files) -> Section:
    """Section of an experiment, with a note for each data set that is not the file of the published run."""
    section = experiment.section(rows)
    notes = [
        f"The numbers of {name} come from a file made by `python -m paper prepare`, not from that of the published run."
        for name in experiment.data_sets(plan)
        if not files.get(name, {}).get("original", True)
    ]
    return replace(section, notes=[*section.notes, *notes])


def _chosen(names: Sequence[str]) -> list[Experiment]:
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not an experiment; choose from {', '.join(EXPERIMENTS)}")
    return [experiment for name, experiment in EXPERIMENTS.items() if not names or name in names]


def _check_packages() -> None:
    """Say before the first cell runs that the report cannot be made."""
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise ValueError(f'the report needs {" and ".join(missing)}; in a clone: pip install -e ".[reproduce]"')


def _check_data(experiments: list[Experiment], plan: Plan, data: str | None) -> Files:
    """Load every table and all bags before the first cell runs, and return the checksum of each.

    All that is missing is named at once, with the way to get each.
    """
    files: Files = {}
    missing = []
    for name in dict.fromkeys(name for experiment in experiments for name in experiment.data_sets(plan)):
        try:
            loaded = load_data(name, data)
            rows = loaded.data if "data" in loaded else loaded.get("events", loaded.get("bags"))
            files[name] = {"rows": len(rows), "checksum": checksum(loaded), "original": loaded.get("original", True)}
        except ValueError as error:
            users = [experiment.name for experiment in experiments if name in experiment.data_sets(plan)]
            missing.append(f"{' and '.join(users)} cannot run: {error}.")
    if missing:
        remedy = "Name the folder by --data, choose other experiments, or add --quick, which needs no data folder."
        raise ValueError("\n".join([*missing, remedy]))
    return files


def checksum(loaded: Bunch) -> str:
    """First 12 digits of the SHA-256 of a table's sorted values, or of the events or bags as they are."""
    if "data" in loaded:
        values = loaded.data[np.lexsort(loaded.data.T)]
    else:
        values = np.concatenate(loaded.bags) if "bags" in loaded else loaded.events
    return sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()[:12]


def _say_what_was_found(store: CellStore, cells: int, missing: list[Cell], workers: int) -> None:
    if store.dropped:
        print(f"{store.path}: {store.dropped} damaged line(s) dropped; their cells run again")
    if store.outdated:
        print(f"{store.path}: {store.outdated} cell(s) of another version; they run again")
    found = f", {cells - len(missing):,} of them found in {store.path}" if len(missing) < cells else ""
    print(f"{cells:,} cells{found}; about {duration(sum(cell.seconds for cell in missing) / workers)}", flush=True)


def _follow(finished: Iterable[tuple[Cell, float]], cells: list[Cell], workers: int) -> None:
    """Say now and then how long the other cells will take.

    They are assumed to differ from their estimates as the finished ones do, by the speed and the load of the machine.
    """
    last, planned, done, elapsed = monotonic(), sum(cell.seconds for cell in cells), 0.0, 0.0
    for count, (cell, seconds) in enumerate(finished, start=1):
        done, elapsed = done + cell.seconds, elapsed + seconds
        if monotonic() - last >= _PAUSE:
            last = monotonic()
            left = duration((planned - done) * elapsed / done / workers)
            print(f"{count:,} of {len(cells):,} cells, about {left} left", flush=True)


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(20), duration(170), duration(9000)
    ('20 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _results(
    plan: Plan, store: CellStore, rows: dict[str, list[Row]], sections: dict[str, Section], data: Files
) -> Results:
    costs = {name: store.cost(EXPERIMENTS[name], plan) for name in rows}
    return {
        "claims": [_judged(claim, judge(claim, rows)) for claim in CLAIMS],
        "experiments": {
            name: {**_described(name, rows[name], section), "seconds": round(costs[name][0], 1)}
            for name, section in sections.items()
        },
        "meta": {
            "seed": plan.seed,
            "quick": plan.quick,
            "repetitions": plan.repetitions,
            "rule": RULE,
            "reason": REASON,
            "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
            "data": data,
            "run": {
                "date": max((day for _, day in costs.values()), default=""),
                "cpu_seconds": round(sum(seconds for seconds, _ in costs.values())),
                "processor": _processor(),
                "system": f"{platform.system()} {platform.machine()}",
            },
        },
    }


def _judged(claim: Claim, found: Judgement) -> Row:
    return {
        "id": claim.id,
        "text": claim.text,
        "where": claim.where,
        "experiments": list(claim.needs),
        "verdict": found.verdict(),
        "number": found.number,
        "evidence": found.evidence,
        "note": found.note,
        "parts": [
            {"label": part.label, "verdict": part.verdict(), **part.count()._asdict(), "judged": part.judged}
            for part in found.parts
        ],
        "margins": {f"{margin:g}": found.verdict(margin) for margin in MARGINS},
    }


def _described(name: str, rows: list[Row], section: Section) -> dict[str, Any]:
    experiment = EXPERIMENTS[name]
    return {
        "title": experiment.title,
        "protocol": list(experiment.protocol),
        "repetitions": len({row["repetition"] for row in rows}),
        "notes": list(section.notes),
        "summary": section.summary,
    }


def _processor() -> str:
    """Name of the processor, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()

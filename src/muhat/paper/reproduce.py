"""Commands ``muhat reproduce`` and ``muhat claims``: run what is missing, judge the claims, write the report."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from muhat.paper.claim import RULE, judge
from muhat.paper.experiment import Experiment, Plan, Row, Section
from muhat.paper.protocol import load_data
from muhat.paper.registry import CLAIMS, EXPERIMENTS
from muhat.paper.results_page import Results, claims_text, write_report
from muhat.paper.runner import Cell, CellStore, StoreError, missing_cells, open_store, run
from muhat.progress import progress

_PAUSE = 60.0  # seconds between two lines of a log
_PACKAGES = ("muhat", "numpy", "scipy", "scikit-learn")


def reproduce(
    names: Sequence[str], plan: Plan, out: str, data: str | None = None, workers: int = 1, dask: str | None = None
) -> int:
    """Run the experiments named, by default all; 0 when the report is written. See ``muhat reproduce --help``."""
    experiments = _chosen(names)
    prepared = _check_data(experiments, plan, data)
    with open_store(out, version("muhat")) as store:
        missing = missing_cells(experiments, plan, store, data)
        _say_what_was_found(store, sum(len(experiment.cells(plan)) for experiment in experiments), missing, workers)
        try:
            _follow(run(missing, store, workers, dask), missing)
        except KeyboardInterrupt:
            print(f"stopped; finished cells are in {store.path}, and the same command goes on")
            raise
        page = write_all(plan, store, Path(out), prepared)
    print(f"report: {page}")
    return 0


def write_all(plan: Plan, store: CellStore, folder: Path, prepared: Sequence[str] = ()) -> Path:
    """Report on every experiment whose cells are all there; it names data files that are not those of our run."""
    rows = {name: store.collected(experiment, plan) for name, experiment in EXPERIMENTS.items()}
    complete = {name: found for name, found in rows.items() if found is not None}
    try:
        sections = {name: noted_section(EXPERIMENTS[name], plan, found, prepared) for name, found in complete.items()}
        results = _results(plan, complete, sections)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise StoreError(
            f"{store.path} holds cells that cannot be read ({type(error).__name__}: {error}); delete this file, and "
            "run the same command"
        ) from error
    return write_report(folder, results, sections)


def show_claims(out: str) -> int:
    """Print the verdicts of a finished run."""
    path = Path(out) / "results.json"
    try:
        text = claims_text(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist; make it by `muhat reproduce --out {out}`") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} is damaged ({reason}); `muhat reproduce --out {out}` writes it again") from error
    print(text)
    return 0


def noted_section(experiment: Experiment, plan: Plan, rows: list[Row], prepared: Sequence[str]) -> Section:
    """Section of an experiment, with a note for each data set that is not the file of the published run."""
    section = experiment.section(rows)
    notes = [
        f"The numbers of {name} come from a file made by `muhat prepare`, not from the file of the published run."
        for name in prepared
        if name in experiment.data_sets(plan)
    ]
    return replace(section, notes=[*section.notes, *notes])


def _chosen(names: Sequence[str]) -> list[Experiment]:
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not an experiment; choose from {', '.join(EXPERIMENTS)}")
    return [experiment for name, experiment in EXPERIMENTS.items() if not names or name in names]


def _check_data(experiments: list[Experiment], plan: Plan, data: str | None) -> list[str]:
    """Load every table and all bags before the first cell runs, and name the bags made by ``muhat prepare``.

    All that is missing is named at once, with the way to get each.
    """
    prepared, missing = [], []
    for name in dict.fromkeys(name for experiment in experiments for name in experiment.data_sets(plan)):
        try:
            if not load_data(name, data).get("original", True):
                prepared.append(name)
        except ValueError as error:
            users = [experiment.name for experiment in experiments if name in experiment.data_sets(plan)]
            missing.append(f"{' and '.join(users)} cannot run: {error}.")
    if missing:
        remedy = "Name the folder by --data, choose other experiments, or add --quick, which needs no data folder."
        raise ValueError("\n".join([*missing, remedy]))
    return prepared


def _say_what_was_found(store: CellStore, cells: int, missing: list[Cell], workers: int) -> None:
    if store.dropped:
        print(f"{store.path}: {store.dropped} damaged line(s) dropped; their cells run again")
    if store.outdated:
        print(f"{store.path}: {store.outdated} cell(s) of another version; they run again")
    found = f", {cells - len(missing):,} of them found in {store.path}" if len(missing) < cells else ""
    print(f"{cells:,} cells{found}; about {duration(sum(cell.seconds for cell in missing) / workers)}", flush=True)


def _follow(finished: Iterable[Cell], cells: list[Cell]) -> None:
    """Say how long the other cells will take: always in a terminal, once a minute in a log."""
    start = last = monotonic()
    done, whole = 0.0, sum(cell.seconds for cell in cells)
    with progress() as say:
        for count, cell in enumerate(finished, start=1):
            done, now = done + cell.seconds, monotonic()
            left = (now - start) * (whole - done) / done
            line = f"{count:,} of {len(cells):,} cells, about {duration(left)} left"
            say(line)
            if now - last >= _PAUSE and not sys.stderr.isatty():
                last = now
                print(line, flush=True)


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(20), duration(170), duration(9000)
    ('20 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _results(plan: Plan, rows: dict[str, list[Row]], sections: dict[str, Section]) -> Results:
    claims = []
    for claim in CLAIMS:
        finding = judge(claim, rows)
        about = {"id": claim.id, "text": claim.text, "where": claim.where, "experiments": list(claim.needs)}
        claims.append({**about, "verdict": finding.verdict, "evidence": finding.evidence})
    return {
        "claims": claims,
        "experiments": {name: _described(name, rows[name], section) for name, section in sections.items()},
        "meta": {
            "seed": plan.seed,
            "quick": plan.quick,
            "repetitions": plan.repetitions,
            "rule": RULE,
            "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        },
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

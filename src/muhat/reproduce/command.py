"""``muhat reproduce`` and ``muhat claims``: run what is missing, judge the claims, write the report."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from muhat.datasets import load_set
from muhat.reproduce.claims.base import RULE, judge
from muhat.reproduce.experiment import Experiment, Plan, Row, Section
from muhat.reproduce.progress import duration, progress
from muhat.reproduce.registry import CLAIMS, EXPERIMENTS
from muhat.reproduce.report import claims_table, write_report
from muhat.reproduce.runner import all_jobs, collected_rows, expected_seconds, missing_jobs, run
from muhat.reproduce.store import Store, StoreError

_PACKAGES = ("muhat", "numpy", "scipy", "scikit-learn")


def reproduce(
    names: Sequence[str], plan: Plan, out: str, data: str | None = None, workers: int = 1, dask: str | None = None
) -> int:
    """Run the experiments named, by default all; 0 when the report is written. See ``muhat reproduce --help``."""
    console = Console(soft_wrap=True)
    experiments = _chosen(names)
    prepared = _check_data(experiments, plan, data)
    jobs = all_jobs(experiments, plan, data)
    with Store(out, version("muhat")) as store:
        _say_what_was_dropped(console, store)
        missing = missing_jobs(jobs, store)
        expected = expected_seconds(jobs, store, workers)
        found = f", {len(jobs) - len(missing):,} of them found in {store.path}" if len(missing) < len(jobs) else ""
        console.print(f"{len(jobs):,} cells{found}; about {duration(expected)}", highlight=False)
        try:
            with progress(console, missing) as finished:
                run(missing, store, workers, dask, finished)
        except KeyboardInterrupt:
            console.print(f"stopped; finished cells are in {store.path}, and the same command goes on", highlight=False)
            raise
        page = write_all(plan, store, Path(out), prepared)
    console.print(f"report: {page}", highlight=False)
    return 0


def write_all(plan: Plan, store: Store, folder: Path, prepared: Sequence[str] = ()) -> Path:
    """The report on every experiment of which all cells are there; it names the data that are not those of our run."""
    rows = {name: collected_rows(experiment, plan, store) for name, experiment in EXPERIMENTS.items()}
    complete = {name: found for name, found in rows.items() if found is not None}
    try:
        sections = {name: _noted(EXPERIMENTS[name], plan, found, prepared) for name, found in complete.items()}
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
        results = json.loads(path.read_text(encoding="utf-8"))
        table = claims_table(results)
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist; make it by `muhat reproduce --out {out}`") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} is damaged ({reason}); `muhat reproduce --out {out}` writes it again") from error
    print(table)
    return 0


def _chosen(names: Sequence[str]) -> list[Experiment]:
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not an experiment; choose from {', '.join(EXPERIMENTS)}")
    return [experiment for name, experiment in EXPERIMENTS.items() if not names or name in names]


def _noted(experiment: Experiment, plan: Plan, rows: list[Row], prepared: Sequence[str]) -> Section:
    section = experiment.section(rows)
    notes = [
        f"The numbers of {name} come from a file made by `muhat prepare`, not from the file of the published run."
        for name in prepared
        if name in experiment.data_sets(plan)
    ]
    return replace(section, notes=[*section.notes, *notes])


def _check_data(experiments: list[Experiment], plan: Plan, data: str | None) -> list[str]:
    """Load every table and all bags before the first cell runs, and name the bags that a recipe made.

    All that is missing is named at once, with the way to get each.
    """
    prepared, missing = [], []
    for name in dict.fromkeys(name for experiment in experiments for name in experiment.data_sets(plan)):
        try:
            if not load_set(name, data=data).get("original", True):
                prepared.append(name)
        except ValueError as error:
            users = [experiment.name for experiment in experiments if name in experiment.data_sets(plan)]
            missing.append(f"{' and '.join(users)} cannot run: {error}.")
    if missing:
        raise ValueError(
            "\n".join(missing)
            + "\nName the folder by --data, choose other experiments, or add --quick, which needs no "
            "data folder."
        )
    return prepared


def _say_what_was_dropped(console: Console, store: Store) -> None:
    if store.dropped:
        console.print(f"{store.path}: {store.dropped} damaged line(s) dropped; their cells run again", highlight=False)
    if store.outdated:
        console.print(f"{store.path}: {store.outdated} cell(s) of another version; they run again", highlight=False)


def _results(plan: Plan, rows: dict[str, list[Row]], sections: dict[str, Section]) -> dict[str, Any]:
    claims = []
    for claim in CLAIMS:
        finding = judge(claim, rows)
        claims.append(
            {
                "id": claim.id,
                "text": claim.text,
                "where": claim.where,
                "experiments": list(claim.needs),
                "verdict": finding.verdict,
                "evidence": finding.evidence,
            }
        )
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

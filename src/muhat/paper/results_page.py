"""Results of a run: ``results.json`` for programs, ``index.html`` for readers, and the claims as text."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any, NamedTuple

from muhat.paper.claim import VERDICTS
from muhat.paper.experiment import Section
from muhat.paper.registry import HEADLINES
from muhat.paper.runner import StoreError
from muhat.report.page import page_template, write_whole

Results = dict[str, Any]
"""Content of ``results.json``: ``{"claims": […], "experiments": {name: …}, "meta": {…}}``.

A claim has ``id``, ``text``, ``where``, ``verdict``, ``evidence`` and ``experiments``, the names of those that the
verdict rests on; an experiment has ``title``, ``protocol``, ``repetitions``, ``notes`` and ``summary``.
"""

SYMBOLS: dict[str, str] = dict(zip(VERDICTS, "✓½✗?", strict=True))


class Line(NamedTuple):
    """A line of the report's opening: the experiment that it rests on, its subject, and a sentence."""

    experiment: str
    subject: str
    words: str


def summary_lines(experiments: dict[str, Any]) -> list[Line]:
    """The headlines of the experiments that were run, in the order of the README."""
    known = [headline for headline in HEADLINES if headline.experiment in experiments]
    return [Line(name, subject, sentence(experiments[name]["summary"])) for name, subject, sentence in known]


def write_report(folder: Path, results: Results, sections: dict[str, Section]) -> Path:
    """Write ``results.json`` and ``index.html``, each whole or not at all, and return the path of the page.

    The same input gives the same bytes. The page is one file that loads nothing: it can be sent, stored and printed.
    ``sections`` holds pictures, tables and notes by the name of the experiment.
    """
    _write(folder / "results.json", json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    page = folder / "index.html"
    _write(page, render(results, sections))
    return page


def render(results: Results, sections: dict[str, Section]) -> str:
    """The page as text."""
    experiments, meta = results["experiments"], results["meta"]
    claims = [{**claim, "link": _link(claim, experiments)} for claim in results["claims"]]
    return page_template("report.html", "muhat.paper").render(
        lines=[] if meta["repetitions"] == 1 else summary_lines(experiments),  # one has no standard error to count by
        claims=claims,
        folded=_folded(claims, experiments),
        counts=[(verdict, sum(claim["verdict"] == verdict for claim in claims)) for verdict in VERDICTS],
        symbols=SYMBOLS,
        slugs={verdict: verdict.replace(" ", "-") for verdict in VERDICTS},
        experiments=experiments,
        sections=sections,
        meta=meta,
        maker="reproduce",
        command=_command(meta),
    )


def claims_text(results: Results, width: int | None = None) -> str:
    """Verdict, claim and evidence, wrapped to the width of the terminal.

    >>> claim = {"id": "a", "text": "S-KMSE improves on KME.", "where": "Section 5",
    ...          "verdict": "holds in part", "evidence": "7 for, 0 against, of 9"}
    >>> print(claims_text({"claims": [claim]}, width=80))
    ½ holds in part
      S-KMSE improves on KME. (Section 5)
      7 for, 0 against, of 9
    <BLANKLINE>
    0 holds, 1 holds in part, 0 does not hold, 0 cannot be checked
    """
    width = width or get_terminal_size().columns
    lines = []
    for claim in results["claims"]:
        lines.append(f"{SYMBOLS[claim['verdict']]} {claim['verdict']}")
        for text in (f"{claim['text']} ({claim['where']})", claim["evidence"]):
            lines += wrap(text, max(width, 20), initial_indent="  ", subsequent_indent="  ")
    verdicts = [claim["verdict"] for claim in results["claims"]]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)
    return "\n".join([*lines, "", *wrap(counts, width)])


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(
            f"cannot write {path} ({reason}); all finished cells are kept: make room and run the same command, or "
            "choose another folder with --out"
        ) from error


def _link(claim: dict[str, Any], experiments: dict[str, Any]) -> str | None:
    """Name of the first section that the verdict rests on; None where none of them was run."""
    return next((name for name in claim["experiments"] if name in experiments), None)


def _folded(claims: list[dict[str, Any]], experiments: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Claims by the title of the section that judges them, in the order of the page; those without one come last."""
    titles = {name: experiment["title"] for name, experiment in experiments.items()} | {None: "Not run"}
    found = {title: [claim for claim in claims if claim["link"] == name] for name, title in titles.items()}
    return {title: judged for title, judged in found.items() if judged}


def _command(meta: dict[str, Any]) -> str:
    parts = ["muhat reproduce", "--quick" if meta["quick"] else "", f"--seed {meta['seed']}"]
    parts.append(f"--repetitions {meta['repetitions']}" if meta["repetitions"] else "")
    return " ".join(filter(None, parts))

"""Results of a run: ``results.json`` for programs, ``index.html`` for readers, and the claims as text."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from paper.claim import MARGINS, VERDICTS
from paper.experiment import PaperTable, Section
from paper.page import Picture, page_template
from paper.registry import HEADLINES

Results = dict[str, Any]
"""Content of ``results.json``: ``{"claims": […], "experiments": {name: …}, "meta": {…}}``.

A claim has ``id``, ``text``, ``where``, ``verdict``, ``number``, ``evidence``, ``note``, ``parts``, ``margins`` (the
verdict by the number of standard errors) and ``experiments``, the names of those that the verdict rests on; an
experiment has ``title``, ``protocol``, ``repetitions``, ``seconds``, ``notes`` and ``summary``. ``meta["run"]`` alone
differs between two runs of the same plan on the same data.
"""

SYMBOLS: dict[str, str] = dict(zip(VERDICTS, "✓½✗?–", strict=True))

HEADINGS = {
    "replicates": "What replicates.",
    "does not": "What does not, and why.",
    "unchecked": "What cannot be checked.",
}

_DIGITS = 7


def conclusion(experiments: dict[str, Any]) -> dict[str, str]:
    """Paragraphs on what replicates, what does not and what cannot be checked, by their headings."""
    paragraphs = {}
    for kind, heading in HEADINGS.items():
        known = [line for line in HEADLINES if line.kind == kind and line.experiment in experiments]
        if known:
            sentences = [line.sentence(experiments[line.experiment]["summary"]) for line in known]
            paragraphs[heading] = " ".join(sentences)
    return paragraphs


def write_report(folder: Path, results: Results, sections: dict[str, Section]) -> Path:
    """Write ``results.json`` and ``index.html``, and return the path of the page.

    The page is one file that loads nothing: it can be sent, stored and printed. ``sections`` holds pictures, tables
    and notes by the name of the experiment.
    """
    text = json.dumps(_rounded(results), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("results.json", text + "\n"), ("index.html", render(results, sections))):
        (folder / name).write_text(content, encoding="utf-8", newline="\n")
    return folder / "index.html"


def _rounded(value: Any) -> Any:
    """The same with numbers of seven digits, which is more than any of them means."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def render(results: Results, sections: dict[str, Section]) -> str:
    """The page as text."""
    experiments, meta = results["experiments"], results["meta"]
    claims = [{**claim, "link": _link(claim, experiments)} for claim in results["claims"]]
    judged = [claim for claim in claims if claim["verdict"] != "not run"]
    return page_template("report.html").render(
        conclusion={} if meta["repetitions"] == 1 else conclusion(experiments),  # one has no standard error to count by
        claims=judged,
        total=len(claims),
        counts=_counts(claims),
        changed=[claim for claim in claims if len(set(claim["margins"].values())) > 1],
        margins=[f"{margin:g}" for margin in MARGINS],
        verdicts=_shown_verdicts(claims),
        symbols=SYMBOLS,
        slugs={verdict: verdict.replace(" ", "-") for verdict in VERDICTS},
        experiments=experiments,
        sections=sections,
        kind=_kind,
        meta=meta,
        command=_command(meta),
    )


def _judged_first(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(claims, key=lambda claim: claim["verdict"] == "not run")


def _shown_verdicts(claims: list[dict[str, Any]]) -> list[str]:
    """All verdicts; "not run" where a claim has it."""
    return [name for name in VERDICTS if name != "not run" or any(claim["verdict"] == name for claim in claims)]


def _kind(item: Any) -> str:
    return "picture" if isinstance(item, Picture) else "paper" if isinstance(item, PaperTable) else "table"


def _counts(claims: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How many claims have each verdict, by the margin."""
    return {
        f"{margin:g}": {
            verdict: [claim["margins"][f"{margin:g}"] for claim in claims].count(verdict) for verdict in VERDICTS
        }
        for margin in MARGINS
    }


def claims_text(results: Results, width: int | None = None) -> str:
    """Verdict, claim and evidence, wrapped to the width of the terminal.

    >>> claim = {"id": "a", "text": "S-KMSE improves on KME.", "where": "Section 5",
    ...          "verdict": "holds in part", "number": "7 of 9", "evidence": "7 of 9 for, none against"}
    >>> print(claims_text({"claims": [claim]}, width=80))
    ½ holds in part: 7 of 9
      S-KMSE improves on KME. (Section 5)
      7 of 9 for, none against
    <BLANKLINE>
    0 holds, 1 holds in part, 0 does not hold, 0 cannot be checked
    """
    width = width or get_terminal_size().columns
    lines = []
    for claim in _judged_first(results["claims"]):
        lines += wrap(f"{SYMBOLS[claim['verdict']]} {claim['verdict']}: {claim['number']}", max(width, 20))
        for text in (f"{claim['text']} ({claim['where']})", claim["evidence"]):
            lines += wrap(text, max(width, 20), initial_indent="  ", subsequent_indent="  ")
    verdicts = [claim["verdict"] for claim in results["claims"]]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in _shown_verdicts(results["claims"]))
    return "\n".join([*lines, "", *wrap(counts, width)])


def _link(claim: dict[str, Any], experiments: dict[str, Any]) -> str | None:
    """Name of the first section that the verdict rests on; None where none of them was run."""
    return next((name for name in claim["experiments"] if name in experiments), None)


def _command(meta: dict[str, Any]) -> str:
    parts = ["python -m paper", "--quick" if meta["quick"] else "--data DIR", f"--seed {meta['seed']}"]
    parts.append(f"--repetitions {meta['repetitions']}" if meta["repetitions"] else "")
    return " ".join(filter(None, parts))

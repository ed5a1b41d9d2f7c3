"""Selection of the columns that take part in a comparison, with their summaries."""

from __future__ import annotations

from collections.abc import Callable

from muhat.files.matching import Matched, NotCompared, listed
from muhat.files.summaries import Summary, summaries
from muhat.files.tables import Reading

MOST_TEXTS = 100
"""A column of more different texts, where they are most rows, holds names or sentences, not categories."""

_SHARE_OF_TEXTS = 0.1


def used_columns(matched: Matched, reading: Reading, say: Callable[[str], None]) -> tuple[list[Summary], list[str]]:
    """Summaries of the columns that take part, and notes on the others; ``matched.columns`` shrinks to the former."""
    _check_rows(matched)
    kept = []
    used: list[Summary] = []
    left_out: dict[str, list[str]] = {"count": [], "one": [], "empty": []}
    notes: list[str] = []
    for column, summary in zip(matched.columns, summaries(matched.tables, matched.columns), strict=True):
        say(f"column {len(used) + 1} of {len(matched.columns)}: {summary.name}")
        if not sum(summary.present):
            left_out["empty"].append(summary.name)
        elif summary.distinct == 1 and len(set(summary.missing_shares)) == 1:
            left_out["one"].append(summary.name)
        elif all(summary.counting) and reading.columns is None:
            left_out["count"].append(summary.name)
        elif _is_free_text(summary):
            hint = next((table.hints[summary.name] for table in matched.tables if summary.name in table.hints), "")
            reason = f"it holds {summary.distinct:,} different texts"
            if hint and len(matched.tables) > 1:
                matched.not_compared.append(NotCompared(summary.name, f"{reason}; {hint}"))
            else:
                notes.append(f"column {summary.name!r} is left out: {reason}")
        else:
            kept.append(column)
            used.append(summary)
    reasons = {
        "empty": "left out, because all their values are missing",
        "one": "left out, because they hold one value only",
        "count": "left out, because they count the rows (name them by --columns to use them)",
    }
    notes += [f"{reasons[why]}: {listed(names)}" for why, names in left_out.items() if names]
    if not used:
        paths = " and ".join(table.path for table in matched.tables)
        why = notes[-1] if notes else "all rows are equal"
        raise ValueError(f"{paths}: nothing is left to tell rows apart by; {why}")
    matched.columns[:] = kept
    return used, notes


def _is_free_text(summary: Summary) -> bool:
    return (
        summary.kind == "category"
        and summary.distinct > MOST_TEXTS
        and summary.distinct > _SHARE_OF_TEXTS * sum(summary.present)
    )


def _check_rows(matched: Matched) -> None:
    for table in matched.tables:
        if table.total < 2:
            raise ValueError(f"{table.path} has 1 row; at least 2 are needed")

"""Numbers, dates, shares and p-values as readers expect them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from muhat.progress import printable
from muhat.tables.frames import Kind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = 5


def readable(value: float) -> str:
    """A number with four significant digits, and commas between thousands.

    >>> [readable(value) for value in (11680.4, 3.14159, -0.5, 1e-9, 2e15, 120.0)]
    ['11,680', '3.142', '−0.5', '1e-09', '2e+15', '120']
    """
    if np.isnan(value):
        return "–"
    size = abs(value)
    text = f"{value:,.0f}" if 1000 <= size < 1e12 else f"{value:.4g}"
    return f"−{text[1:]}" if text.startswith("-") else text


def shown(kind: Kind, value: Any, longest: int = 24) -> str:
    """A value of a column: dates as dates, durations with their unit, text without signs that would move the cursor.

    >>> shown("date", 1.0), shown("date", 0.5), shown("duration", 0.25), shown("category", None)
    ('1970-01-02', '1970-01-01 12:00:00', '6 hours', 'missing')
    """
    if value is None:
        return "missing"
    if kind in ("category", "boolean"):
        text = printable(str(value))
        return text if len(text) <= longest else f"{text[: longest - 1]}…"
    if kind == "date":
        return _date(float(value))
    if kind == "duration":
        unit, size = next((u, s) for u, s in _UNITS if abs(value) >= s or s == _UNITS[-1][1])
        return f"{readable(value / size)} {unit}"
    return readable(float(value))


_UNITS = (("days", 1.0), ("hours", 1 / 24), ("minutes", 1 / 1440), ("seconds", 1 / 86400))


def _date(days: float) -> str:
    try:
        return (_EPOCH + timedelta(seconds=round(86400 * days))).strftime("%Y-%m-%d %H:%M:%S").removesuffix(" 00:00:00")
    except OverflowError:
        return f"{readable(days)} days after 1970"


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.1234), percent(0.0), percent(0.0004), percent(0.996)
    ('12 %', '0 %', '0.04 %', '99.6 %')
    """
    text = f"{100 * share:.1f}" if share > 0.99 else f"{100 * share:.2g}"
    return f"{text.removesuffix('.0')} %"


def pvalue_text(pvalue: float, sign: bool = False) -> str:
    """A p-value, with "p = " where ``sign``; below what numbers can hold, a bound.

    >>> pvalue_text(0.0123456), pvalue_text(0.0), pvalue_text(0.5, sign=True), pvalue_text(0.0, sign=True)
    ('0.0123', '< 1e-300', 'p = 0.5', 'p < 1e-300')
    """
    text = f"{pvalue:.3g}" if pvalue > 1e-300 else "< 1e-300"
    return text if not sign else f"p {text}" if text.startswith("<") else f"p = {text}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_of(names: Sequence[str]) -> str:
    """Up to five names in a row, and how many more there are.

    >>> first_of("abcdefg")
    'a, b, c, d, e and 2 more'
    """
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")

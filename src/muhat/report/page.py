"""HTML page made of pictures, tables and templates, written as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muhat.features.archive import whole_file

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup


@dataclass(frozen=True)
class Picture:
    """A drawing for the report: SVG text, and in words what it shows and what one finds."""

    svg: str
    caption: str
    finding: str


@dataclass(frozen=True)
class Table:
    """A table for the report. Values are numbers, text or None; ``bold`` holds (row, column) of those to stress."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bold: frozenset[tuple[int, int]] = frozenset()


_BEGINS_WITH_NUMBER = re.compile(r"[<>≤≥≈~]?\s*[-−+]?(\d|\.\d)[\d.]*(e[-+]?\d+)?($|[\s%±×(/,;*])", re.IGNORECASE)


_LONG = 30  # characters that a cell holds in one line


_HYPHEN = re.compile(r"(?<![\w.])-(?=\.?\d)")


_WHOLE = re.compile(r"\b[SF]-(?:KMSE|COSE)\b|\b\d[\d.]*e-\d+|\b\w = [\d.]*\d")


def page_template(name: str, package: str) -> Template:
    """A template of a package, built on those of the report: ``base.html`` and ``parts.html``."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("muhat.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown, prose=prose, unbroken=unbroken, inline=inline_svg, classes=column_classes)
    environment.globals["version"] = version("muhat")
    return environment.get_template(name)


def write_whole(path: Path, text: str) -> None:
    """Write all of the text, or nothing."""
    with whole_file(path) as file:
        file.write(text.encode())


def inline_svg(svg: str, prefix: str) -> Markup:
    """A picture for the page: no size of its own, no id that another picture has, no digits that a screen cannot show.

    >>> print(inline_svg('<svg width="9pt" height="7pt" viewBox="0 0 9 7"><path id="a" d="M 1.23456 2"/></svg>', "p"))
    <svg class="p" aria-hidden="true" focusable="false" viewBox="0 0 9 7"><path id="p-a" d="M 1.23 2"/></svg>
    """
    from markupsafe import Markup

    start, _, rest = svg.partition(">")
    box = re.search(r'viewBox="[^"]*"', start)
    text = f'<svg class="{prefix}" aria-hidden="true" focusable="false" {box[0] if box else ""}>{rest}'
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'xlink:href="', 'href="', text)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"\.\d{3,}(?=[^\d])", lambda digits: digits[0][:3], text)
    return Markup(re.sub(r">\s+<", "><", text))


def shown(value: Any) -> str:
    """A cell as text; numbers have a minus for a hyphen.

    >>> shown(0.123456), shown(-2.0), shown(None), shown("-0.95 ± 1e-9"), shown("column -3")
    ('0.1235', '−2', '–', '−0.95 ± 1e-9', 'column -3')
    """
    if value is None:
        return "–"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return _HYPHEN.sub("−", text) if _BEGINS_WITH_NUMBER.match(text) else text


def unbroken(text: str) -> Markup:
    """Text in which no line ends within a name, a number or an equation.

    >>> print(unbroken("F-KMSE < S-KMSE by 1e-9 at n = 10"))
    <span>F-KMSE</span> &lt; <span>S-KMSE</span> by <span>1e-9</span> at <span>n = 10</span>
    """
    from markupsafe import Markup, escape

    return Markup(_WHOLE.sub(r"<span>\g<0></span>", str(escape(text))))


def prose(text: str) -> Markup:
    """A sentence of the report: unbroken, and with a minus before negative numbers."""
    return unbroken(_HYPHEN.sub("−", text))


def column_classes(table: Table) -> list[str]:
    """A class for each column: "number" for numbers, perhaps with more behind them, "words" for sentences, else none.

    >>> rows = [["x", "−.5 ± 1", "short"], ["2-fold", "< 3 %", "a sentence that has to be wrapped"]]
    >>> column_classes(Table("", ["a", "b", "c"], rows))
    ['', 'number', 'words']
    """
    columns = ([str(row[j]) for row in table.rows if row[j] is not None] for j in range(len(table.columns)))
    return [_column_class(texts) for texts in columns]


def _column_class(texts: list[str]) -> str:
    if texts and all(map(_BEGINS_WITH_NUMBER.match, texts)):
        return "number"
    return "words" if max(map(len, texts), default=0) > _LONG else ""

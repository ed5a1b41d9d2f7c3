"""HTML page made of pictures, tables and templates, written as a whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
class ReportTable:
    """A table for the report. Values are numbers, text or None."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


_BEGINS_WITH_NUMBER = re.compile(r"[<>≤≥≈~]?\s*[-−+]?(\d|\.\d)[\d.]*(e[-+]?\d+)?($|[\s%±×(/,;*])", re.IGNORECASE)

_LONG = 30  # characters that a cell holds in one line

_HYPHEN = re.compile(r"(?<![\w.])-(?=\.?\d)")

_WHOLE = re.compile(r"\b[SF]-(?:KMSE|COSE)\b|\b\d[\d.]*e-\d+|\b\w = [\d.]*\d")


def page_template(name: str) -> Template:
    """A template of the report."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown, prose=prose, unbroken=unbroken, inline=inline_svg, classes=column_classes)
    environment.globals["version"] = version("muhat")
    return environment.get_template(name)


def inline_svg(svg: str, prefix: str) -> Markup:
    """A picture for the page: no size of its own, no id that another picture has, no digits that a screen cannot show.

    >>> print(inline_svg('<svg width="9pt" height="7pt" viewBox="0 0 9 7"><path id="a" d="M 1.23456 2"/></svg>', "p"))
    <svg class="p" aria-hidden="true" focusable="false" viewBox="0 0 9 7"><path d="M 1.2 2"/></svg>
    """
    from markupsafe import Markup

    start, _, rest = svg.partition(">")
    box = re.search(r'viewBox="[^"]*"', start)
    text = f'<svg class="{prefix}" aria-hidden="true" focusable="false" {box[0] if box else ""}>{rest}'
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'xlink:href="', 'href="', text)
    text = re.sub(r"<[^>]+>", _with_fewer_digits, text)
    text = re.sub(r' transform="rotate\(-0[^"]*"', "", re.sub(r"\s*\n\s*(?=[A-Za-z])", " ", text))
    return Markup(_styles_as_classes(_short_ids(re.sub(r">\s+<", "><", text), prefix), prefix))


def _with_fewer_digits(tag: re.Match[str]) -> str:
    """A tag with one digit after the point; texts, such as the labels of an axis, keep theirs."""
    return re.sub(r"\.\d{2,}(?=[^\d])", lambda digits: digits[0][:2], tag[0])


def _short_ids(svg: str, prefix: str) -> str:
    """The same with ids that no other picture has, and without those that nothing refers to."""
    used = dict.fromkeys(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    names = {name: f"{prefix}-{i}" for i, name in enumerate(used)}
    svg = re.sub(r' id="([^"]*)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", svg)
    return re.sub(r'(url\(#|href="#)([^")]+)', lambda found: found[1] + names[found[2]], svg)


def _styles_as_classes(svg: str, prefix: str) -> str:
    """The same with every style that occurs more than twice as a class, which halves the picture."""
    counts = Counter(re.findall(r' style="([^"]*)"', svg))
    names = {style: f"{prefix}-s{i}" for i, (style, count) in enumerate(counts.most_common()) if count > 2}
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())

    def replaced(found: re.Match[str]) -> str:
        return f' class="{names[found[1]]}"' if found[1] in names else found[0]

    body = re.sub(r' style="([^"]*)"', replaced, svg)
    return body.replace(">", f"><style>{rules}</style>", 1) if rules else body


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


def column_classes(table: ReportTable) -> list[str]:
    """A class for each column: "number" for numbers, perhaps with more behind them, "words" for sentences, else none.

    >>> rows = [["x", "−.5 ± 1", "short"], ["2-fold", "< 3 %", "a sentence that has to be wrapped"]]
    >>> column_classes(ReportTable("", ["a", "b", "c"], rows))
    ['', 'number', 'words']
    """
    columns = ([str(row[j]) for row in table.rows if row[j] is not None] for j in range(len(table.columns)))
    return [_column_class(texts) for texts in columns]


def _column_class(texts: list[str]) -> str:
    if texts and all(map(_BEGINS_WITH_NUMBER.match, texts)):
        return "number"
    return "words" if max(map(len, texts), default=0) > _LONG else ""

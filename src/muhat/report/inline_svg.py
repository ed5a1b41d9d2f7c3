"""Pictures of matplotlib as a page holds them: the same to the eye, in a tenth of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

if TYPE_CHECKING:
    from markupsafe import Markup


Node = ElementTree.Element


Style = dict[str, str]


_DIGITS = 1  # a tenth of a point is more than a screen shows


_SYMBOL_DIGITS = 2  # but a dot is only a few points wide


_NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


_STEP = re.compile(rf"[MLQCz]|{_NUMBER.pattern}")


_UPRIGHT = re.compile(r"rotate\(-?0 .*\)")


def inline_svg(svg: str, prefix: str) -> Markup:
    """An SVG for the page: small, no size of its own, nothing outside named, and no id that another picture has.

    A style is written once, as a class. Lines of one style in a row become one path, and equal marks in a row one
    path that draws the mark at each of its points. Digits that no screen shows are left out.

    Parameters
    ----------
    svg : str
        An ``<svg>`` element of matplotlib, see :func:`muhat.reproduce.drawing.svg`.
    prefix : str
        A name that only this picture has on the page.

    Returns
    -------
    Markup
        The element, for a template.
    """
    from markupsafe import Markup

    return Markup(_Rewritten(svg, prefix).text())


class _Shape(NamedTuple):
    """Something that is drawn, and the name of the box that cuts it off, or no name."""

    clip: str
    node: Node

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """Shapes of one kind differ in their place only."""
        return self.clip, self.node.tag, self.node.get("href", ""), self.node.get("style", "")


class _Rewritten:
    """One picture; while it is written, the classes and definitions that it needs are gathered."""

    def __init__(self, svg: str, prefix: str):
        self.root, self.prefix = ElementTree.fromstring(svg), prefix
        for node in self.root.iter():
            node.tag = _local(node.tag)
            node.attrib = {_local(name): value for name, value in node.attrib.items()}
        self.given = {node.get("id", ""): node for defs in self.root.iter("defs") for node in defs}
        self.classes: dict[str, str] = {}
        self.definitions: dict[str, Node] = {}

    def text(self) -> str:
        """The picture as text."""
        drawn = [self._clipped(clip, list(shapes)) for clip, shapes in groupby(_shapes(self.root), lambda s: s.clip)]
        head = {"class": self.prefix, "viewBox": self.root.get("viewBox", ""), "aria-hidden": "true"}
        picture = ElementTree.Element("svg", head, focusable="false")
        rules = [f".{self.prefix} .{name}{{{style}}}" for style, name in self.classes.items()]
        ElementTree.SubElement(picture, "style").text = "".join(rules)
        ElementTree.SubElement(picture, "defs").extend(self.definitions.values())
        for nodes in drawn:
            picture.extend(nodes)
        return ElementTree.tostring(picture, encoding="unicode")

    def _clipped(self, clip: str, shapes: list[_Shape]) -> list[Node]:
        runs = [[shape.node for shape in run] for _, run in groupby(shapes, lambda shape: shape.kind)]
        nodes = [node for run in runs for node in self._joined(run)]
        if not clip or not nodes:
            return nodes
        group = ElementTree.Element("g", {"clip-path": f"url(#{self._clip(clip)})"})
        group.extend(nodes)
        return [group]

    def _clip(self, name: str) -> str:
        (box,) = self.given[name]
        sides = {side: _short(box.attrib[side], _DIGITS) for side in ("x", "y", "width", "height")}
        clip = ElementTree.Element("clipPath")
        ElementTree.SubElement(clip, "rect", sides)
        return self._defined(f"clip {sides}", clip)

    def _joined(self, run: list[Node]) -> list[Node]:
        """What is drawn in place of shapes of one kind that follow each other."""
        style = _style(run[0])
        if run[0].tag == "use":
            return [self._marks(run, style)]
        if run[0].tag != "path" or style.get("fill") != "none":
            return [self._copied(node) for node in run]
        path = "".join(_short_path(node.attrib["d"], _DIGITS) for node in run)
        return [self._node("path", style, d=path)] if "stroke" in style else []

    def _marks(self, run: list[Node], style: Style) -> Node:
        """A symbol at its place; or at many, the points of a path that is not seen itself."""
        symbol = self.given[run[0].attrib["href"][1:]]
        style |= _style(symbol)
        path = _short_path(symbol.attrib["d"], _SYMBOL_DIGITS)
        places = [(_short(node.get("x", "0"), _DIGITS), _short(node.get("y", "0"), _DIGITS)) for node in run]
        if len(places) == 1:
            name = self._defined(path, ElementTree.Element("path", d=path))
            return self._node("use", style, href=f"#{name}", x=places[0][0], y=places[0][1])
        marker = ElementTree.Element("marker", markerUnits="userSpaceOnUse", overflow="visible")
        marker.append(self._node("path", style, d=path))
        name = self._defined(f"{path} {style}", marker)
        points = " ".join(f"{x} {y}" for x, y in places)
        return self._node("path", {"fill": "none", "marker": f"url(#{name})"}, d=f"M{points}")

    def _copied(self, node: Node) -> Node:
        """The node and what is in it, with a class for its style, and short numbers."""
        kept = {name: text for name, text in node.attrib.items() if name in ("x", "y", "transform")}
        short = {name: _NUMBER.sub(lambda number: _short(number[0], _DIGITS), text) for name, text in kept.items()}
        if _UPRIGHT.fullmatch(kept.get("transform", "")):
            del short["transform"]
        if "d" in node.attrib:
            short["d"] = _short_path(node.attrib["d"], _DIGITS)
        copy = self._node(node.tag, _style(node), **short)
        copy.text = node.text if node.text and node.text.strip() else None
        copy.extend(map(self._copied, node))
        return copy

    def _node(self, tag: str, style: Style, **attributes: str) -> Node:
        text = ";".join(f"{name}:{value}" for name, value in style.items())
        named = {"class": self.classes.setdefault(text, f"c{len(self.classes)}")} if text else {}
        return ElementTree.Element(tag, named, **attributes)

    def _defined(self, key: str, node: Node) -> str:
        """Id of a definition, made once for each key."""
        node = self.definitions.setdefault(key, node)
        node.attrib.setdefault("id", f"{self.prefix}-{len(self.definitions)}")
        return node.attrib["id"]


def _shapes(node: Node, clip: str = "") -> Iterator[_Shape]:
    """What is drawn, in the order of drawing, without the groups that only give a name.

    Of an axis the grid comes first, then its labels and its ticks: they do not cover each other, and so stand in rows.
    """
    for child in node:
        inner = child.get("clip-path", f"url(#{clip})")[5:-1]
        if child.tag == "g" and not {"style", "transform"} & set(child.attrib):
            shapes = list(_shapes(child, inner))
            is_axis = child.get("id", "").startswith("matplotlib.axis")
            yield from sorted(shapes, key=lambda shape: shape.kind[1:]) if is_axis else shapes
        elif child.tag not in ("defs", "metadata", "style"):
            yield _Shape(inner, child)


def _style(node: Node) -> Style:
    """Without the names of fonts, which are the page's."""
    parts = (part.partition(":") for part in node.get("style", "").split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in parts if name.strip() != "font-family"}


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def _short(number: str, digits: int) -> str:
    """A number without digits that cannot be seen.

    >>> _short("12.04", 1), _short("-0.03", 1), _short("120", 1)
    ('12', '0', '120')
    """
    return f"{round(float(number), digits) + 0.0:.{digits}f}".rstrip("0").rstrip(".")


def _short_path(path: str, digits: int) -> str:
    """A path of matplotlib; one number suffices for a line along an axis.

    >>> _short_path("M 0 1.04 L 0 3.5 L 2.26 3.5 z", 1)
    'M0 1V3.5H2.3z'
    """
    words = _STEP.findall(path)
    starts = [i for i, word in enumerate(words) if word.isalpha()]
    written, x, y = [], "", ""
    for start, end in pairwise([*starts, len(words)]):
        step, numbers = words[start], [_short(word, digits) for word in words[start + 1 : end]]
        if step == "L" and numbers[0] == x:
            written.append(f"V{numbers[1]}")
        elif step == "L" and numbers[1] == y:
            written.append(f"H{numbers[0]}")
        else:
            written.append(step + " ".join(numbers))
        x, y = numbers[-2:] or ("", "")
    return "".join(written)

"""The subpackages of muhat in their import order; a test enforces it, and the drawing and the docs are made from it."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "muhat"

SUBPACKAGES = [
    "_support/types",
    "_support/extras",
    "_support/progress",
    "_support/validation",
    "_support/parameters",
    "linalg",
    "_support/archives",
    "tables",
    "shrinkage",
    "rkhs/measures",
    "kernels",
    "rkhs/elements",
    "grams",
    "rkhs/oas_gaussian",
    "features",
    "means",
    "conditional",
    "operators",
    "density",
    "bags",
    "inference",
    "groups",
    "apps/monitor",
    "apps/files",
    "apps/compare",
    "testing",
    "datasets",
    "plotting",
    "apps/cli",
    "__main__",
]


def subpackage_of(module: str) -> str | None:
    """The subpackage that a module is part of, both as paths below the package."""
    return next((name for name in SUBPACKAGES if f"{module}/".startswith(f"{name}/")), None)


def modules(subpackage: str) -> list[str]:
    """The files of a subpackage, without the package's own."""
    folder = PACKAGE / subpackage
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def sentence(subpackage: str) -> str:
    """The sentence that a subpackage or a file opens with."""
    path = PACKAGE / subpackage / "__init__.py" if (PACKAGE / subpackage).is_dir() else PACKAGE / f"{subpackage}.py"
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


def table() -> str:
    """The subpackages and their sentences, as a table for the page on architecture."""
    lines = [f"| `{subpackage}` | {sentence(subpackage)} |" for subpackage in SUBPACKAGES if subpackage != "__main__"]
    return "\n".join(["| subpackage | what it is |", "|---|---|", *lines])


def with_table(page: str) -> str:
    """The page with the table between its two comments."""
    before, start, rest = page.partition("this table -->\n")
    _, end, after = rest.partition("<!-- end of subpackages -->")
    return f"{before}{start}\n{table()}\n\n{end}{after}"


if __name__ == "__main__":
    architecture = Path(__file__).parent / "architecture.md"
    architecture.write_text(with_table(architecture.read_text(encoding="utf-8")), encoding="utf-8")
    import draw

    (draw.IMAGES / "modules.svg").write_text(draw.modules(), encoding="utf-8")

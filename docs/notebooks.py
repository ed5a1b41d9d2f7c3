"""Notebooks from pages: text becomes Markdown cells, and doctest blocks become code cells without their output.

python docs/notebooks.py tutorial.md tutorial.ipynb
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.M | re.S)


def notebook(page: str) -> dict[str, Any]:
    """The page as a notebook in Jupyter's format."""
    pieces = _BLOCK.split(page)  # text, code, text, ...
    cells = [_cell(k, piece) for k, piece in enumerate(pieces) if piece.strip()]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(k: int, piece: str) -> dict[str, Any]:
    if k % 2 == 0:
        return {"cell_type": "markdown", "id": f"cell{k}", "metadata": {}, "source": piece.strip()}
    lines = [line[4:] for line in piece.splitlines() if line.startswith((">>> ", "... "))]
    raises = "\nTraceback (most recent call last):\n" in piece
    return {
        "cell_type": "code",
        "id": f"cell{k}",
        "metadata": {"tags": ["raises-exception"]} if raises else {},
        "source": "\n".join(lines),
        "execution_count": None,
        "outputs": [],
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(notebook(Path(sys.argv[1]).read_text(encoding="utf-8")), indent=1))

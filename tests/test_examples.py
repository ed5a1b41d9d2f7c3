"""Every example runs without a warning, says something, and draws."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_example(example, capsys):
    plt.close("all")
    with mpl.rc_context():
        runpy.run_path(str(example))
    assert len(capsys.readouterr().out.splitlines()) > 2
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()  # warns where labels find no place
        assert all(ax.has_data() for ax in figure.axes)
    plt.close("all")

"""Shared pictures and tables: panels, curves that do not cover each other, and tables from columns."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from paper.panels import draw_panels, draw_ratios, mark_positions, ratio_table, table_of_columns

POINT = {"ratio": 0.9, "error": 0.1, "improved": 0.75}
UNKNOWN = {"ratio": None, "error": None, "improved": None}


def test_every_panel_is_filled_once_and_in_order():
    filled = []
    text = draw_panels(lambda ax, panel: filled.append(panel), "abcdef", "loss", rows=2)
    assert filled == list("abcdef")
    assert text.startswith("<svg")


def test_curves_are_moved_apart_and_keep_their_values():
    ax = Figure().subplots()
    draw_ratios(ax, [1.0, 2.0], [{"S": POINT, "oracle": UNKNOWN}, {"S": POINT, "oracle": UNKNOWN}], ("S", "oracle"))
    first, second = (container.lines[0] for container in ax.containers)
    np.testing.assert_array_equal(first.get_ydata(), [0.9, 0.9])
    assert np.isnan(second.get_ydata()).all()
    places = [line.get_transform().transform((1.0, 1.0))[0] for line in (first, second)]
    assert places[1] - places[0] == pytest.approx(2.0 / 72 * ax.figure.dpi)


def test_labels_stand_at_the_positions_alone():
    ax = Figure().subplots()
    mark_positions(ax, [0.1, 1.0, 10.0])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "1", "10"]


def test_tables_are_made_of_columns():
    table = table_of_columns("caption", [("a", [1, 2]), ("b", ["x", "y"])])
    assert [list(row) for row in table.rows] == [[1, "x"], [2, "y"]]
    ratios = ratio_table("caption", [{"n": 5, "S": POINT}, {"n": 6, "S": UNKNOWN}], {"n": "rows"}, {"S": "S-KMSE"})
    assert list(ratios.columns) == ["rows", "S-KMSE"]
    assert [list(row) for row in ratios.rows] == [[5, "0.900 ± 0.100, 75 %"], [6, "–"]]

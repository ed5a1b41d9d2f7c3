"""Cells and columns of the tables of a report."""

import pytest

from paper.page import ReportTable, column_classes, shown


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "−2.5 ± 3", "< 3 %", "1e-9", None], "number"),
        ([1, 2.5, None], "number"),
        (["1", "2", "none"], ""),
        (["none", "2"], ""),
        (["2-fold", "3-fold"], ""),
        ([None, None], ""),
        (["x" * 30, "1"], ""),
        (["x" * 31, "1"], "words"),
        (["1 " + "x" * 40], "number"),
    ],
)
def test_a_column_of_numbers_is_one_whose_every_cell_begins_with_a_number(cells, expected):
    assert column_classes(ReportTable("", ["a", "b"], [["", cell] for cell in cells]))[1] == expected


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1"), (-1, "−1"), (0.000123456, "0.0001235"), (True, "True"), ("-x", "-x"), ("", "")]
)
def test_cells_as_they_are_shown(value, text):
    assert shown(value) == text

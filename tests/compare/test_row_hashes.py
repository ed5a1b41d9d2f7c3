"""Hashes of rows: equal for equal rows, other ones for swapped values, and sums over groups of rows."""

import numpy as np

from muhat.apps.compare.row_hashes import column_hashes, count_different
from muhat.tables.frames import as_table


def hashes(table, group=1):
    columns = as_table(table).columns
    return sum(column_hashes(column, j, group) for j, column in enumerate(columns))


def test_equal_rows_have_equal_hashes_and_no_others():
    table = {"x": [0.0, -0.0, 1.0, np.nan, None], "y": [1.0, 1.0, 0.0, 0.0, 0.0], "t": ["a", "a", "b", None, None]}
    found = hashes(table)
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert count_different(found) == 3
    pairs = np.random.default_rng(0).integers(100, size=(5000, 2))
    assert count_different(hashes(pairs)) == len(np.unique(pairs, axis=0))


def test_groups_know_the_order_of_their_rows():
    rows = np.random.default_rng(0).normal(size=(10, 2))
    whole = hashes(rows, 4)
    assert len(whole) == 3
    swapped = rows.copy()
    swapped[[0, 1], 0] = rows[[1, 0], 0]
    assert (hashes(swapped, 4) == whole).tolist() == [False, True, True]

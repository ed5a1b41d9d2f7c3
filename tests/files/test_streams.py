"""Rows as they arrive: CSV and JSON lines, kinds of a known table, and lines that are refused."""

import io

import numpy as np
import pytest

from muhat.apps.files.streams import StreamReader
from muhat.apps.files.tables import Reading

KINDS = {"x": "number", "who": "category", "ok": "boolean", "day": "date"}


def tables(text, size=2, kinds=KINDS, json_lines=None, **reading):
    reader = StreamReader(io.StringIO(text), "stream", kinds, Reading(**reading), json_lines)
    return list(reader.tables(size))


CSV = "day,x,other,who,ok\n2024-01-01,1.5,9,a,true\n2024-01-01T12:00:00Z,,9,b,FALSE\n\nNA,2,9,NA,\n"
GERMAN = CSV.replace(",", ";").replace("1.5", "1,5")
JSON = (
    '{"x": 1.5, "who": "a", "ok": true, "day": "2024-01-01", "more": []}\n'
    '{"day": "2024-01-01 13:00+01:00", "who": "b", "ok": false}\n\n{"x": 2}\n'
)


@pytest.mark.parametrize("text", [CSV, GERMAN, "\ufeff" + CSV, JSON, "\n" + CSV])
def test_all_forms_hold_the_same_rows(text):
    found = tables(text)
    assert [table.n_rows for table, _ in found] == [2, 1]
    x, who, ok, day = found[0][0].columns
    np.testing.assert_array_equal(x.values, [1.5, np.nan])
    assert [who.levels[code] for code in who.values] == ["a", "b"]
    assert ok.values.tolist() == [1.0, 0.0]
    assert day.values.tolist() == [19723.0, 19723.5]
    assert [column.missing.tolist() for column in found[1][0].columns] == [[False], [True], [True], [True]]
    shift = text.startswith("\n") + (text is not JSON)
    assert [line for _, lines in found for line in lines] == [1 + shift, 2 + shift, 4 + shift]


def test_rows_without_names_are_those_of_the_reference_in_order():
    (table, lines), *_ = tables("1,2\n3,4\n", kinds={"a": "number", "b": "number"})
    assert (table.names, lines, table.columns[1].values.tolist()) == (["a", "b"], [1, 2], [2.0, 4.0])


def test_no_more_is_read_than_asked():
    class Slow(io.StringIO):
        def readline(self, *size):
            line = super().readline(*size)
            assert "never" not in line
            return line

    reader = StreamReader(Slow("x\n1\n2\nnever\n"), "stream", {"x": "number"}, Reading())
    rows = reader.tables(1)
    assert [next(rows)[0].columns[0].values[0] for _ in range(2)] == [1.0, 2.0]


WRONG = {
    "empty": ("", {}, "stream is empty"),
    "a missing column": ("x,who\n1,a\n", {}, "has no column 'ok', which the reference has; its columns are 'x', 'who'"),
    "a name twice": ("x,x\n1,2\n", {}, "the column 'x' twice"),
    "widths": (CSV + "1,2\n", {}, "line 6: 2 cells, and 5 in the first line"),
    "no number": ("x,who,ok,day\nabc,a,true,\n", {}, "line 2: 'abc' in the column 'x' is not a number; .*missing="),
    "no date": ("x,who,ok,day\n1,a,true,soon\n", {}, "'soon' in the column 'day' is not a date"),
    "an underscore": ("x,who,ok,day\n1_0,a,true,\n", {}, "'1_0' in the column 'x' is not a number"),
    "a quotation mark": ('x,who,ok,day\n1,"a,true,\n2,b,true,\n', {}, "line 2: is a quotation mark not closed"),
    "a long line": ("x" * 2**20, {}, "line 1: more than 1,048,576 characters"),
    "no JSON": (JSON + "{\n", {}, "line 5: could not parse as JSON"),
    "no object": ("[1]\n", {"json_lines": True}, "is no JSON object"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_streams_are_refused_by_line(name):
    text, options, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        tables(text, **options)
    assert tables("x,who,ok,day\nabc,a,true,\n", missing=["ABC"])[0][0].columns[0].missing.all()


def test_bytes_that_are_no_text():
    with pytest.raises(ValueError, match="not text in UTF-8"):
        StreamReader(io.TextIOWrapper(io.BytesIO(b"x\xff\n"), encoding="utf-8"), "s", {"x": "number"}, Reading())

"""Helpers of the tests of files: small tables on disk, and the command as a function."""

from contextlib import contextmanager

import numpy as np

from muhat.apps.cli.command_line import main
from muhat.apps.files.database import open_database
from muhat.apps.files.opening import read_table
from muhat.apps.files.tables import Reading


def write(path, rows, names=(), delimiter=","):
    """A CSV file; its path as text."""
    lines = [delimiter.join(names)] if names else []
    lines += [delimiter.join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def run(capsys, *arguments):
    """Exit code, standard output and standard error."""
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@contextmanager
def opened(path, **reading):
    """The table in a file."""
    with open_database() as database:
        yield read_table(str(path), database, Reading(**reading))


def contents(path, **reading):
    """Names of the columns and their values."""
    with opened(path, **reading) as table:
        return values_of(table)


def values_of(table):
    """Names of the columns and their values: numbers, or texts with None where a value is missing."""
    return {name: plain(table.column(name)) for name in table.names}


def plain(column):
    """The values of a column as numbers or texts."""
    if column.kind != "category":
        return column.values
    return np.array([*column.levels, None], dtype=object)[column.values]


def kinds_of(table):
    """What the columns hold, by their names."""
    return {name: table.column(name).kind for name in table.names if name not in table.flaws}

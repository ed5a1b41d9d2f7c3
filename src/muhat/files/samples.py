"""From sheets to samples: columns that can be used together, and rows without gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.files.sheets import Sheet
from muhat.kernels.base import Kernel
from muhat.types import Array


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows without gaps: ``rows[i]`` stands in line ``lines[i]`` of the file, and ``total`` rows are in the file.

    Of the rows that were read, ``dropped`` had gaps. ``name`` is what people call the file.
    """

    name: str
    path: str
    columns: tuple[str, ...]
    rows: Array
    lines: NDArray[np.int64]
    place: str
    total: int
    dropped: int


def as_samples(sheets: Sequence[Sheet], wanted: Sequence[str] | None) -> tuple[list[Sample], list[str]]:
    """A sample of each sheet, in the columns that all of them have, and notes on what was left out.

    Parameters
    ----------
    sheets : one or two Sheets
    wanted : names of columns, or None for all that hold numbers
        Of a file without names a column may be called by its number, from 1.

    Returns
    -------
    samples : list of Sample
        With the same columns in the same order.
    notes : list of str
    """
    notes: list[str] = []
    columns = _common(sheets, notes) if wanted is None else _named(sheets, wanted)
    columns = _filled(sheets, columns, notes)
    for sheet in sheets:
        for name in columns:
            if name in sheet.flaws:
                raise ValueError(sheet.flaws[name])
    names = _short_names(sheets)
    samples = [_complete(sheet, name, columns, notes) for sheet, name in zip(sheets, names, strict=True)]
    samples = _varied(samples, notes)
    notes += [note for sample in samples for note in _row_numbers(sample)]
    return samples, list(dict.fromkeys(notes))


def _short_names(sheets: Sequence[Sheet]) -> list[str]:
    """The last parts of the paths, or the paths where those are equal."""
    short = [Path(sheet.path).name for sheet in sheets]
    return short if len(set(short)) == len(short) else [sheet.path for sheet in sheets]


def _listed(names: Sequence[str], most: int = 8) -> str:
    quoted = [repr(name) for name in names[:most]]
    return ", ".join(quoted) + (f" and {len(names) - most} more" if len(names) > most else "")


def _common(sheets: Sequence[Sheet], notes: list[str]) -> list[str]:
    _check_alike(sheets)
    for sheet in sheets:
        for name, what in sheet.text.items():
            notes.append(f"{sheet.path}: column {name!r} is left out: it holds {what}")
        others = [set(other.names) | set(other.text) for other in sheets]
        alone = [name for name in sheet.names if not all(name in other for other in others)]
        if alone:
            notes.append(f"{sheet.path}: left out, since only this file has them: {_listed(alone)}")
    common = [name for name in sheets[0].names if all(name in sheet.names for sheet in sheets)]
    if not common and len(sheets) == 1:
        why = "; ".join(f"{name!r} holds {what}" for name, what in list(sheets[0].text.items())[:3])
        raise ValueError(
            f"{sheets[0].path} has no column of numbers: {why or 'it has no columns'}. "
            "Columns are separated by commas, semicolons or tabs"
        )
    if not common:
        found = " and ".join(f"{sheet.path} has {_listed(sheet.names) or 'none'}" for sheet in sheets)
        raise ValueError(f"no column of numbers in common: {found}; give columns of one meaning one name")
    return common


def _check_alike(sheets: Sequence[Sheet]) -> None:
    named = [sheet for sheet in sheets if sheet.has_names]
    unnamed = [sheet for sheet in sheets if not sheet.has_names]
    if named and unnamed:
        raise ValueError(
            f"{named[0].path} names its columns and {unnamed[0].path} does not; give both a header or neither, "
            "or say --header or --no-header if the first rows were misread"
        )
    widths = [len(sheet.names) + len(sheet.text) for sheet in unnamed]
    if len(set(widths)) > 1:
        paths, counts = (" and ".join(map(str, words)) for words in ([sheet.path for sheet in unnamed], widths))
        raise ValueError(
            f"{paths} have {counts} columns; without names they cannot be matched: give both files a header"
        )


def _named(sheets: Sequence[Sheet], wanted: Sequence[str]) -> list[str]:
    columns = []
    for name in dict.fromkeys(wanted):
        by_number = name.isdecimal() and not any(sheet.has_names for sheet in sheets)
        name = f"column {name}" if by_number else name
        for sheet in sheets:
            if name in sheet.text:
                raise ValueError(
                    f"--columns {name}: in {sheet.path} it holds {sheet.text[name]}; name columns of numbers, "
                    "or turn this one into numbers first"
                )
            if name not in sheet.names:
                raise ValueError(f"--columns {name}: {sheet.path} has no such column; it has {_listed(sheet.names)}")
        columns.append(name)
    return columns


def _values(sheet: Sheet, columns: Sequence[str]) -> Array:
    places = {name: j for j, name in enumerate(sheet.names)}
    return sheet.values[:, [places[name] for name in columns]]


def _filled(sheets: Sequence[Sheet], columns: list[str], notes: list[str]) -> list[str]:
    """Without the columns that one of the files leaves empty."""
    for sheet in sheets:
        empty = np.asarray(np.isnan(_values(sheet, columns)).all(axis=0))
        if empty.any():
            names = [name for name, is_empty in zip(columns, empty, strict=True) if is_empty]
            notes.append(f"{sheet.path}: left out, since all their values are missing: {_listed(names)}")
            columns = [name for name in columns if name not in names]
    if not columns:
        raise ValueError(f"{' and '.join(sheet.path for sheet in sheets)}: all values are missing")
    return columns


def _varied(samples: list[Sample], notes: list[str]) -> list[Sample]:
    """Without the columns that hold one value, the same in all files."""
    pooled = np.concatenate([sample.rows for sample in samples])
    varies = (pooled != pooled[0]).any(axis=0)
    if not varies.any():
        paths = " and ".join(sample.path for sample in samples)
        raise ValueError(f"{paths}: all rows are equal, so there is nothing to tell them apart by")
    if varies.all():
        return samples
    names = samples[0].columns
    notes.append(f"left out, since they hold one value only: {_listed([names[j] for j in np.flatnonzero(~varies)])}")
    left = tuple(names[j] for j in np.flatnonzero(varies))
    return [replace(sample, columns=left, rows=sample.rows[:, varies]) for sample in samples]


def _complete(sheet: Sheet, name: str, columns: Sequence[str], notes: list[str]) -> Sample:
    values = _values(sheet, columns)
    gaps = np.isnan(values)
    whole = ~gaps.any(axis=1)
    read, kept = len(values), int(whole.sum())
    if read < sheet.total:
        notes.append(f"{sheet.path}: {read:,} of {sheet.total:,} rows, drawn at random; --rows N takes more")
    if kept < read:
        share = f"{100 * (read - kept) / read:.2g} %"
        notes.append(f"{sheet.path}: {read - kept:,} of {read:,} rows ({share}) left out, for missing values")
    if kept < 2:
        worst = int(gaps.sum(axis=0).argmax())
        gap = (
            f"column {columns[worst]!r} is missing in {int(gaps[:, worst].sum())} of {read}: leave it out by --columns"
        )
        found = f"{kept} row{'' if kept == 1 else 's'}{' without missing values' if kept < read else ''}"
        raise ValueError(f"{sheet.path} has {found}; {gap if kept < read else 'at least 2 are needed'}")
    lines, dropped = sheet.lines[whole], read - kept
    return Sample(name, sheet.path, tuple(columns), values[whole], lines, sheet.place, sheet.total, dropped)


def _row_numbers(sample: Sample) -> list[str]:
    steps, lines = np.diff(sample.rows, axis=0), np.diff(sample.lines)[:, None]
    counting = ((steps == lines).all(axis=0)) & (len(sample.rows) > 2)
    names = [name for name, counts in zip(sample.columns, counting, strict=True) if counts]
    return [f"{sample.path}: column {name!r} counts the rows; leave it out by --columns" for name in names]


def standardised(*samples: Array) -> list[Array]:
    """The samples with pooled columns of mean 0 and standard deviation 1; none may be constant.

    >>> import numpy as np
    >>> standardised(np.array([[1e200], [3e200]]))[0].ravel()
    array([-1.,  1.])
    """
    pooled = np.concatenate(samples)
    pooled = pooled / np.abs(pooled).max(axis=0)  # squares of huge values would overflow, those of tiny ones vanish
    pooled = pooled - pooled.mean(axis=0)
    pooled = pooled / np.abs(pooled).max(axis=0)
    pooled /= pooled.std(axis=0)
    return np.split(pooled, np.cumsum([len(sample) for sample in samples])[:-1])


def moments(values: Array) -> tuple[float, float]:
    """Mean and standard deviation, of values at any scale.

    >>> moments(np.array([1e200, 3e200]))
    (2e+200, 1.414...e+200)
    """
    unit = float(np.abs(values).max()) or 1.0
    return unit * float((values / unit).mean()), unit * float((values / unit).std(ddof=1))


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """Name and bandwidth of a kernel that has one.

    >>> import muhat as mh
    >>> kernel_json(mh.Gaussian(bandwidth=2.0))
    {'kernel': 'gaussian', 'bandwidth': 2.0}
    """
    return {"kernel": type(kernel).__name__.lower(), "bandwidth": kernel.get_params()["bandwidth"]}

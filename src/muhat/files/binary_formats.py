"""NPY by numpy, and Parquet where polars or pandas is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from muhat.files.sheets import Sheet, sampled_numbers
from muhat.types import Array


def read_npy(path: str, limit: int, rng: np.random.Generator) -> Sheet:
    """A sample of the rows of an array, of which no more is read."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{path} holds no array of numbers ({error}); save one by numpy.save") from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"{path} holds values of type {array.dtype}; save real numbers by numpy.save")
    if array.ndim not in (1, 2):
        raise ValueError(f"{path} holds an array of shape {array.shape}; save one of two dimensions, rows and columns")
    array = array.reshape(len(array), -1) if array.size else np.empty((0, 0))
    names = tuple(f"column {j}" for j in range(1, array.shape[1] + 1))
    chosen = sampled_numbers(len(array), limit, rng)
    return _sheet(path, names, array[chosen].astype(np.float64), chosen, len(array), has_names=False)


def read_parquet(path: str, limit: int, rng: np.random.Generator) -> Sheet:
    """A sample of the rows of the numeric columns."""
    if find_spec("polars"):
        return _by_polars(import_module("polars"), path, limit, rng)
    if find_spec("pandas"):
        return _by_pandas(import_module("pandas"), path, limit, rng)
    raise ValueError(
        f"{path} is a Parquet file, which polars or pandas can read; pip install polars, or save it as CSV"
    )


def _by_polars(polars: Any, path: str, limit: int, rng: np.random.Generator) -> Sheet:
    try:
        frame = polars.scan_parquet(path)
        types = frame.collect_schema()
        total = frame.select(polars.len()).collect().item()
        numeric = [name for name, kind in types.items() if kind.is_numeric() or kind == polars.Boolean]
        chosen = sampled_numbers(total, limit, rng)
        number = "".join(types)  # longer than any name of a column
        picked = frame.select(polars.col(numeric).cast(polars.Float64)).with_row_index(f"{number} row")
        rows = picked.filter(polars.col(f"{number} row").is_in(chosen.tolist())).collect()
    except polars.exceptions.PolarsError as error:
        raise ValueError(f"{path} is a damaged Parquet file ({error}); write it anew") from error
    text = {name: f"values of type {kind}" for name, kind in types.items() if name not in numeric}
    return _sheet(path, tuple(numeric), rows.select(numeric).to_numpy(), chosen, total, True, text)


def _by_pandas(pandas: Any, path: str, limit: int, rng: np.random.Generator) -> Sheet:
    frame = pandas.read_parquet(path)
    numeric = frame.select_dtypes(["number", "bool"])
    chosen = sampled_numbers(len(frame), limit, rng)
    text = {str(name): f"values of type {frame[name].dtype}" for name in frame.columns if name not in numeric.columns}
    values = numeric.iloc[chosen].to_numpy(dtype=np.float64, na_value=np.nan)
    return _sheet(path, tuple(map(str, numeric.columns)), values, chosen, len(frame), True, text)


def _sheet(
    path: str,
    names: tuple[str, ...],
    values: Array,
    chosen: Any,
    total: int,
    has_names: bool,
    text: dict[str, str] | None = None,
) -> Sheet:
    if not total:
        raise ValueError(f"{path} has no rows")
    values = np.array(values, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return Sheet(path, names, values, chosen + 1, total, has_names, "row", text or {})

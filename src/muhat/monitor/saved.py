"""Saving and loading of monitors as ``.npz`` files with a checksum and without pickle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from muhat.features.archive import finite_array, read_archive, write_archive
from muhat.features.sketch import MeanSketch
from muhat.kernels.base import Kernel
from muhat.kernels.mixed import rescaled
from muhat.kernels.serialization import decode_kernel, encode_kernel
from muhat.monitor.calibration import Calibration
from muhat.monitor.drift_monitor import FEWEST_ROWS, Drift, DriftMonitor, witness
from muhat.monitor.reference import FeatureReference, Reference, RowReference
from muhat.monitor.tail_scale import TailScale
from muhat.validation import check_count, check_number

_FORMAT = "muhat.DriftMonitor.1"
_SCALE = tuple(field.name for field in fields(TailScale))
_SETTINGS = ("run_length", "scale", "windows", "block_length", "n_simulations")


def save_monitor(monitor: DriftMonitor, path: str | Path) -> None:
    """Write a fitted monitor to a file.

    Parameters
    ----------
    monitor : DriftMonitor
    path : str or Path
    """
    with monitor._lock:
        header, arrays = _header(monitor), _arrays(monitor)
    write_archive(path, _FORMAT, header, arrays)


def load_monitor(path: str | Path, kernels: Iterable[type[Kernel]] = ()) -> DriftMonitor:
    """Read what ``save_monitor`` wrote.

    Parameters
    ----------
    path : str or Path
    kernels : classes of kernels, optional
    """
    known, what = tuple(kernels), "a monitor that DriftMonitor.save of this version wrote"
    return read_archive(path, _FORMAT, what, lambda header, arrays: _restored(header, arrays, known))


def _header(monitor: DriftMonitor) -> dict[str, Any]:
    settings = {name: getattr(monitor, name) for name in _SETTINGS}
    settings["windows"] = None if monitor.windows is None else [int(length) for length in monitor.windows]
    for name in ("run_length", "scale", "block_length", "n_simulations"):
        settings[name] = np.asarray(settings[name]).item()
    seed = monitor.random_state
    settings["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    result = monitor.result_
    return {
        "settings": settings,
        "kernel": None if monitor.kernel is None else [_encoded(kernel) for kernel in _listed(monitor.kernel)],
        "kernels": [_encoded(kernel) for kernel in monitor.kernels_],
        "names": [str(name) for name in monitor.feature_names_in_] if hasattr(monitor, "feature_names_in_") else None,
        "threshold": monitor.threshold_,
        "seen": monitor.rows_seen_,
        "result": None if result is None else _result(result, monitor),
    }


def _listed(kernel: Any) -> list[Kernel]:
    return [kernel] if isinstance(kernel, Kernel) else list(kernel)


def _encoded(kernel: Kernel) -> dict[str, Any]:
    encoded = encode_kernel(kernel)
    if encoded is None:
        raise ValueError(f"{kernel!r} holds more than numbers and cannot be saved; pickle the monitor instead")
    return encoded


def _result(result: Drift, monitor: DriftMonitor) -> dict[str, Any]:
    values = {field.name: getattr(result, field.name) for field in fields(Drift)}
    return values | {"kernel": monitor.kernels_.index(result.kernel)}


def _arrays(monitor: DriftMonitor) -> dict[str, Any]:
    calibration, sums = monitor._calibration, monitor._sums
    arrays = {f"scale_{name}": getattr(calibration.scale, name) for name in _SCALE}
    arrays |= {"start": calibration.start, "windows": monitor.windows_, "pairs": sums.pairs, "sums": sums.sums}
    arrays |= {"recent": monitor._recent, "history": np.array(monitor._history, dtype=np.float64)}
    arrays |= {"reference": monitor._reference.rows}
    if monitor._reference.units is not None:
        arrays["units"] = monitor._reference.units
    if monitor._alarm_rows is not None:
        arrays["alarm_rows"] = monitor._alarm_rows
    if isinstance(monitor._reference, FeatureReference):
        arrays["sketch"] = np.frombuffer(monitor._reference.sketch.to_bytes(), np.uint8)
    return arrays


def _reference(header: dict[str, Any], arrays: dict[str, Any], kernels: tuple[type[Kernel], ...]) -> Reference:
    rows = finite_array(arrays, "reference", None, None)
    if len(rows) < FEWEST_ROWS:
        raise ValueError(f"its reference has {len(rows)} rows")
    units = finite_array(arrays, "units", rows.shape[1]) if "units" in arrays else None
    if units is not None and (units <= 0.0).any():
        raise ValueError("its units are not positive")
    found = tuple(decode_kernel(kernel, kernels) for kernel in header["kernels"])
    if "sketch" not in arrays:
        return RowReference(rows, found, units)
    sketch = MeanSketch.from_bytes(finite_array(arrays, "sketch", None, dtype="u1").tobytes(), kernels)
    reference = FeatureReference(sketch, rows, units)
    if reference.kernels != found or reference.width != rows.shape[1] or reference.n < FEWEST_ROWS:
        raise ValueError("its sketch does not fit its reference")
    return reference


def _calibration(header: dict[str, Any], arrays: dict[str, Any], statistics: int, longest: int) -> Calibration:
    """Thresholds and scores, of which every number decides on alarms."""
    knots = finite_array(arrays, "scale_quantiles", statistics, None).shape[1]
    table = {
        name: finite_array(arrays, f"scale_{name}", statistics, knots) for name in ("quantiles", "scores", "slopes")
    }
    growing = all((np.diff(table[name], axis=1) >= 0.0).all() for name in ("quantiles", "scores"))
    if not (knots and growing and (table["slopes"] >= 0.0).all() and (table["slopes"][:, -1] > 0.0).all()):
        raise ValueError("its scores do not grow with its statistics")
    scale = TailScale(**table, handicaps=finite_array(arrays, "scale_handicaps", statistics))
    start = finite_array(arrays, "start", longest - 1)
    return Calibration(scale, start, check_number("threshold", header["threshold"]))


def _drift(header: dict[str, Any], monitor: DriftMonitor) -> Drift:
    found, width = header["result"], monitor.n_features_in_
    columns = tuple((str(name), check_number("change", number, finite=False)) for name, number in found["columns"])
    if sorted(name for name, _ in columns) != sorted(monitor.column_names_):
        raise ValueError(f"its result does not have the {width} columns of the reference")
    row, window = check_count("row", found["row"]), check_count("window", found["window"])
    if row != monitor.rows_seen_ or window not in monitor.windows_ or window > row:
        raise ValueError("its result does not fit the rows that it has seen")
    score, threshold = check_number("score", found["score"], finite=False), check_number("bound", found["threshold"])
    kernel = monitor.kernels_[check_count("kernel", found["kernel"], low=0)]
    return Drift(row, row - window + 1, window, score, threshold, columns, kernel)


def _restored(header: dict[str, Any], arrays: dict[str, Any], kernels: tuple[type[Kernel], ...]) -> DriftMonitor:
    """The monitor, after a check of every number that its alarms rest on: a file may be forged, checksum and all."""
    reference = _reference(header, arrays, kernels)
    given = None if header["kernel"] is None else tuple(decode_kernel(kernel, kernels) for kernel in header["kernel"])
    kernel = given[0] if given is not None and len(given) == 1 else given
    features = reference.sketch.features if isinstance(reference, FeatureReference) else None
    monitor = DriftMonitor(kernel=kernel, features=features, **header["settings"])
    monitor._checked_settings()
    width, m = reference.width, len(reference.kernels)
    if header["names"] is not None:
        names = [str(name) for name in header["names"]]
        if len(names) != width:
            raise ValueError(f"its {len(names)} names do not fit {width} columns")
        monitor.feature_names_in_ = np.array(names, dtype=object)
    windows = finite_array(arrays, "windows", None, dtype="i8")
    if not len(windows) or windows[0] < 1 or (np.diff(windows) <= 0).any() or windows[-1] > reference.n:
        raise ValueError(f"its windows {windows.tolist()} are not growing lengths within the reference")
    longest = int(windows[-1])
    monitor._set(reference, windows, _calibration(header, arrays, len(windows) * m, longest))
    if not np.isfinite(monitor._sums.constants).all():
        raise ValueError("its kernels overflow on its reference")
    seen = check_count("seen", header["seen"], low=0)
    if seen > np.iinfo(np.int64).max:
        raise ValueError(f"seen={seen} is more than can be counted")
    monitor._sums.pairs, monitor._sums.sums = (finite_array(arrays, name, 1, m, longest) for name in ("pairs", "sums"))
    monitor._sums.seen = monitor.rows_seen_ = seen
    monitor._recent = finite_array(arrays, "recent", longest - 1, width)
    history = arrays["history"]  # −inf before the shortest window is full
    if history.dtype != np.float64 or history.ndim != 1 or np.isnan(history).any() or len(history) > seen:
        raise ValueError("its last scores are not numbers of its rows")
    monitor._history.extend(history)
    if header["result"] is not None:
        monitor.result_ = _drift(header, monitor)
        monitor._alarm_rows = rows = finite_array(arrays, "alarm_rows", monitor.result_.window, width)
        monitor.witness_ = witness(rescaled(monitor.result_.kernel, reference.units), reference.rows, rows)
    return monitor

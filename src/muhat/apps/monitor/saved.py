"""Saving and loading of monitors as ``.npz`` files with a checksum and without pickle.

A file holds the settings, the rows of the reference, the calibration and the place in the stream. All that follows from
these, such as metrics, kernels' bandwidths and the columns that changed, is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from muhat._support.archives import finite_array, read_archive, write_archive
from muhat._support.validation import check_count, check_number
from muhat.apps.monitor.autoregression import Autoregression
from muhat.apps.monitor.backtest import Backtest
from muhat.apps.monitor.calibration import Calibration, TailScale
from muhat.apps.monitor.reference import Reference
from muhat.apps.monitor.stream import HISTORY, Alarm, MonitorModel, StreamState
from muhat.apps.monitor.windows import WindowSums
from muhat.kernels.base import Kernel
from muhat.kernels.serialization import decode_kernel, encode_kernel
from muhat.tables.encoder import TableEncoder
from muhat.tables.scales import ColumnScales

_FORMAT = "muhat.DriftMonitor.4"
_SCALE = tuple(field.name for field in fields(TailScale))
_NUMBERS = ("run_length", "n_simulations")
_FEWEST_ROWS = 4

Restored = TypeVar("Restored")


def save_monitor(
    path: str | Path,
    params: dict[str, Any],
    model: MonitorModel,
    tested: Backtest | None,
    left_out: Sequence[str],
    stream: StreamState,
) -> None:
    """Write a fitted monitor with the parameters of its constructor to a file."""
    header = _settings(params) | {
        "encoder": model.encoder.to_dict(),
        "left_out": [*left_out],
        "threshold": model.calibration.threshold,
        "backtest": None if tested is None else asdict(tested),
        "rows": stream.rows,
        "alarm": None if stream.alarm is None else stream.alarm._asdict(),
    }
    write_archive(path, _FORMAT, header, _arrays(model, stream))


def load_monitor(path: str | Path, kernels: Iterable[type[Kernel]], make: Callable[..., Restored]) -> Restored:
    """Read what ``save_monitor`` wrote, after a check of every number that alarms rest on: a file may be forged."""
    known, what = tuple(kernels), "a monitor that DriftMonitor.save of this version wrote"
    return read_archive(path, _FORMAT, what, lambda header, arrays: make(*_restored(header, arrays, known)))


def _settings(params: dict[str, Any]) -> dict[str, Any]:
    settings = {name: np.asarray(params[name]).item() for name in _NUMBERS}
    settings["block_length"] = params["block_length"] if params["block_length"] == "auto" else 1
    settings["windows"] = None if params["windows"] is None else [int(length) for length in params["windows"]]
    seed, kernel = params["random_state"], params["kernel"]
    settings["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    listed = None if kernel is None else [kernel] if isinstance(kernel, Kernel) else list(kernel)
    return {"settings": settings, "kernel": None if listed is None else [_encoded(one) for one in listed]}


def _encoded(kernel: Kernel) -> dict[str, Any]:
    encoded = encode_kernel(kernel)
    if encoded is None:
        raise ValueError(f"{kernel!r} holds more than numbers and cannot be saved; pickle the monitor instead")
    return encoded


def _arrays(model: MonitorModel, stream: StreamState) -> dict[str, Any]:
    calibration, sums = model.calibration, stream.sums
    arrays = {f"scale_{name}": getattr(calibration.scale, name) for name in _SCALE}
    arrays |= {"start": calibration.start, "windows": model.windows, "reference": model.reference.rows}
    arrays |= {"pairs": sums.pairs, "singles": sums.singles, "recent": stream.recent, "scores": stream.scores}
    if model.autoregression is not None:
        fitted = model.autoregression
        arrays |= {"coefficients": fitted.coefficients, "spread": fitted.spread}
        arrays |= {"centre": fitted.scales.centre, "unit": fitted.scales.scale}
    return arrays


def _restored(header: dict[str, Any], arrays: dict[str, Any], classes: tuple[type[Kernel], ...]) -> tuple[Any, ...]:
    """Parameters, model, backtest, columns that are left out, and place in the stream."""
    rows = finite_array(arrays, "reference", None, None)
    if len(rows) < _FEWEST_ROWS:
        raise ValueError(f"its reference has {len(rows)} rows")
    encoder = TableEncoder.from_dict(header["encoder"])
    if len(encoder.features) != rows.shape[1]:
        raise ValueError(f"its {len(encoder.features)} features do not fit {rows.shape[1]} columns")
    given = None if header["kernel"] is None else tuple(decode_kernel(kernel, classes) for kernel in header["kernel"])
    settings = header["settings"]
    reference = Reference.of(rows, given)
    windows = finite_array(arrays, "windows", None, dtype="i8")
    if not len(windows) or windows[0] < 1 or (np.diff(windows) <= 0).any() or windows[-1] > len(rows):
        raise ValueError(f"its windows {windows.tolist()} are not growing lengths within the reference")
    constants = reference.window_constants(windows)
    if np.isnan(constants).any() or (constants == np.inf).any():
        raise ValueError("its kernels overflow on its reference")
    model = MonitorModel(
        encoder,
        reference,
        _autoregression(arrays, rows.shape[1]),
        windows,
        constants,
        _calibration(header, arrays, constants.size, int(windows[-1])),
    )
    kernel = given[0] if given is not None and len(given) == 1 else given
    left_out = [str(name) for name in header["left_out"]]
    return settings | {"kernel": kernel}, model, _backtest(header["backtest"]), left_out, _stream(header, arrays, model)


def _backtest(stored: dict[str, Any] | None) -> Backtest | None:
    if stored is None:
        return None
    numbers = [check_number(name, stored[name], low=1) for name in ("run_length", "factor")]
    rows, alarms = check_count("rows", stored["rows"]), check_count("alarms", stored["alarms"], low=0)
    return Backtest(rows, numbers[0], alarms, numbers[1])


def _autoregression(arrays: dict[str, Any], width: int) -> Autoregression | None:
    if "coefficients" not in arrays:
        return None
    coefficients = finite_array(arrays, "coefficients", None, width)
    centre, unit, spread = (finite_array(arrays, name, width) for name in ("centre", "unit", "spread"))
    if not len(coefficients) or len(coefficients) % width or (unit <= 0.0).any():
        raise ValueError("its autoregression has no order, or scales that are not positive")
    return Autoregression(ColumnScales(centre, unit), coefficients, spread)


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


def _stream(header: dict[str, Any], arrays: dict[str, Any], model: MonitorModel) -> StreamState:
    """The place in the stream."""
    longest, (_, components) = int(model.windows[-1]), model.constants.shape
    width, m = model.reference.rows.shape[1], model.reference.paired
    rows = check_count("rows", header["rows"], low=0)
    if rows > np.iinfo(np.int64).max:
        raise ValueError(f"rows={rows} is more than can be counted")
    sums = WindowSums(
        model.windows,
        model.constants,
        finite_array(arrays, "pairs", 1, longest, m),
        finite_array(arrays, "singles", 1, longest, components),
        rows,
    )
    recent = finite_array(arrays, "recent", model.order + longest, width)
    scores = arrays["scores"]  # −inf before the shortest window is full
    if scores.dtype != np.float64 or scores.ndim != 1 or np.isnan(scores).any() or len(scores) > min(rows, HISTORY):
        raise ValueError("its last scores are not numbers of its rows")
    views = model.reference.view(model.seen_as(recent, rows - longest)[1:])
    return StreamState(sums, recent, views, scores, _alarm(header["alarm"], rows, model))


def _alarm(stored: dict[str, Any] | None, rows: int, model: MonitorModel) -> Alarm | None:
    if stored is None:
        return None
    component, window = check_count("component", stored["component"], low=0), check_count("window", stored["window"])
    if window not in model.windows or window > rows or component >= model.constants.shape[1]:
        raise ValueError("its alarm does not fit the rows that it has seen")
    score = check_number("score", stored["score"], finite=False)
    return Alarm(component, window, score, check_number("threshold", stored["threshold"]))

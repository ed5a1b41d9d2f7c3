"""Saving and loading of monitors as ``.npz`` files with a checksum and without pickle.

A file holds the settings, the rows of the reference, the calibration and the last rows of the stream. All that follows
from these, such as metrics, kernels' bandwidths, sums and the columns that changed, is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from muhat._support.archives import finite_array, read_archive, write_archive
from muhat._support.validation import check_count, check_number
from muhat.apps.monitor.autoregression import Autoregression
from muhat.apps.monitor.backtest import Backtest
from muhat.apps.monitor.calibration import Calibration, TailScale
from muhat.apps.monitor.reference import Reference
from muhat.apps.monitor.stream import HISTORY, MonitorModel, StreamState
from muhat.kernels.base import Kernel
from muhat.kernels.serialization import decode_kernel, encode_kernel
from muhat.tables.encoder import TableEncoder
from muhat.tables.scales import ColumnScales

_FORMAT = "muhat.DriftMonitor.5"

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
    kernel, seed, scale = params["kernel"], params["random_state"], model.calibration.scale
    settings = {
        name: np.asarray(params[name]).tolist() for name in ("run_length", "block_length", "n_simulations", "windows")
    }
    header = {
        "settings": settings | {"random_state": int(seed) if isinstance(seed, int | np.integer) else None},
        "kernel": None if kernel is None else _encoded(kernel),
        "encoder": model.encoder.to_dict(),
        "left_out": [*left_out],
        "threshold": model.calibration.threshold,
        "backtest": None if tested is None else asdict(tested),
        "rows": stream.rows,
        "alarmed": stream.alarm is not None,
    }
    arrays: dict[str, Any] = {"quantiles": scale.quantiles, "scores": scale.scores, "handicaps": scale.handicaps}
    arrays |= {"windows": model.windows, "reference": model.reference.rows}
    if (fitted := model.autoregression) is not None:
        arrays |= {"coefficients": fitted.coefficients, "spread": fitted.spread}
        arrays |= {"centre": fitted.scales.centre, "unit": fitted.scales.scale}
    write_archive(path, _FORMAT, header, arrays | {"recent": stream.recent, "last_scores": stream.scores})


def _encoded(kernel: Kernel) -> dict[str, Any]:
    encoded = encode_kernel(kernel)
    if encoded is None:
        raise ValueError(f"{kernel!r} holds more than numbers and cannot be saved; pickle the monitor instead")
    return encoded


def load_monitor(path: str | Path, kernels: Iterable[type[Kernel]], make: Callable[..., Restored]) -> Restored:
    """Read what ``save_monitor`` wrote, after a check of the numbers that alarms rest on."""
    known, what = tuple(kernels), "a monitor that DriftMonitor.save of this version wrote"
    return read_archive(path, _FORMAT, what, lambda header, arrays: make(*_restored(header, arrays, known)))


def _restored(header: dict[str, Any], arrays: dict[str, Any], classes: tuple[type[Kernel], ...]) -> tuple[Any, ...]:
    """Parameters, model, backtest, columns that are left out, and place in the stream."""
    encoder = TableEncoder.from_dict(header["encoder"])
    rows = finite_array(arrays, "reference", None, len(encoder.features))
    windows = finite_array(arrays, "windows", None, dtype="i8")
    if not len(windows) or windows[0] < 1 or (np.diff(windows) <= 0).any() or windows[-1] > len(rows):
        raise ValueError(f"its windows {windows.tolist()} are not growing lengths within the reference")
    kernel = None if header["kernel"] is None else decode_kernel(header["kernel"], classes)
    reference = Reference.of(rows, kernel)
    constants = reference.window_constants(windows)
    quantiles = finite_array(arrays, "quantiles", constants.size, None)
    scores = finite_array(arrays, "scores", *quantiles.shape)
    if (np.diff(quantiles) < 0.0).any() or (np.diff(scores) < 0.0).any():
        raise ValueError("its scores do not grow with its statistics")
    scale = TailScale(quantiles, scores, finite_array(arrays, "handicaps", constants.size))
    calibration = Calibration(scale, check_number("threshold", header["threshold"]))
    model = MonitorModel(encoder, reference, _autoregression(arrays, rows.shape[1]), windows, constants, calibration)
    seen = check_count("rows", header["rows"], low=0)
    recent, last = finite_array(arrays, "recent", model.order + int(windows[-1]), rows.shape[1]), arrays["last_scores"]
    if last.dtype != np.float64 or last.shape != (min(seen, HISTORY),) or np.isnan(last).any():
        raise ValueError(f"its last scores are not those of {seen} rows")
    stream = model.restored(seen, recent, last, bool(header["alarmed"]))
    tested = None if header["backtest"] is None else Backtest(**header["backtest"])
    return header["settings"] | {"kernel": kernel}, model, tested, header["left_out"], stream


def _autoregression(arrays: dict[str, Any], width: int) -> Autoregression | None:
    if "coefficients" not in arrays:
        return None
    centre, unit, spread = (finite_array(arrays, name, width) for name in ("centre", "unit", "spread"))
    return Autoregression(ColumnScales(centre, unit), finite_array(arrays, "coefficients", width, width), spread)

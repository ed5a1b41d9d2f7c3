"""Monitors in files: numbers and text in an ``.npz``, with a checksum over all of it, and no pickle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from muhat.features.archive import read_archive, write_archive
from muhat.features.sketch import MeanSketch
from muhat.inference.samples import in_units
from muhat.kernels.base import Kernel
from muhat.kernels.encoding import decode_kernel, encode_kernel
from muhat.monitor.calibration import Calibration
from muhat.monitor.drift_monitor import Drift, DriftMonitor, witness
from muhat.monitor.reference import FeatureReference, Reference, RowReference
from muhat.monitor.tail_scale import TailScale

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
        with TemporaryDirectory() as folder:
            monitor._reference.sketch.save(Path(folder) / "sketch.npz")
            arrays["sketch"] = np.frombuffer((Path(folder) / "sketch.npz").read_bytes(), np.uint8)
    return arrays


def _reference(header: dict[str, Any], arrays: dict[str, Any], kernels: tuple[type[Kernel], ...]) -> Reference:
    if "sketch" not in arrays:
        found = [decode_kernel(kernel, kernels) for kernel in header["kernels"]]
        return RowReference(arrays["reference"], found, arrays.get("units"))
    with TemporaryDirectory() as folder:
        (Path(folder) / "sketch.npz").write_bytes(arrays["sketch"].tobytes())
        return FeatureReference(
            MeanSketch.load(Path(folder) / "sketch.npz", kernels), arrays["reference"], arrays.get("units")
        )


def _restored(header: dict[str, Any], arrays: dict[str, Any], kernels: tuple[type[Kernel], ...]) -> DriftMonitor:
    wrong = [name for name, array in arrays.items() if array.dtype.str not in ("<f8", "<i8", "|u1")]
    if wrong:
        raise ValueError(f"{wrong[0]} holds {arrays[wrong[0]].dtype}")
    reference = _reference(header, arrays, kernels)
    given = None if header["kernel"] is None else tuple(decode_kernel(kernel, kernels) for kernel in header["kernel"])
    kernel = given[0] if given is not None and len(given) == 1 else given
    features = reference.sketch.features if isinstance(reference, FeatureReference) else None
    monitor = DriftMonitor(kernel=kernel, features=features, **header["settings"])
    if header["names"] is not None:
        monitor.feature_names_in_ = np.array(header["names"], dtype=object)
    scale = TailScale(*(arrays[f"scale_{name}"] for name in _SCALE))
    monitor._set(reference, arrays["windows"], Calibration(scale, arrays["start"], float(header["threshold"])))
    monitor._sums.pairs, monitor._sums.sums, monitor._sums.seen = arrays["pairs"], arrays["sums"], header["seen"]
    monitor._recent, monitor.rows_seen_ = arrays["recent"], header["seen"]
    monitor._history.extend(arrays["history"])
    if header["result"] is not None:
        found = header["result"]
        columns = tuple((str(name), float(number)) for name, number in found["columns"])
        kernel_found = monitor.kernels_[found["kernel"]]
        monitor.result_ = Drift(**{**found, "columns": columns, "kernel": kernel_found})
        monitor._alarm_rows = arrays["alarm_rows"]
        monitor.witness_ = witness(in_units(kernel_found, reference.units), reference.rows, arrays["alarm_rows"])
    return monitor

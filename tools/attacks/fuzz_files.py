"""Damaged files: tables, sketches and monitors, with bytes changed, cut, doubled or inserted.

python tools/attacks/fuzz_files.py [--files N] [--seed S] [--only csv]

A file must be read, or refused by an error of words that names it and says what to do. Sketches and monitors carry a
checksum, so a changed byte must be refused, or leave what is read as it was. Forged ones have other contents and a
checksum that fits: they must be refused, or give an object that works.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import muhat as mh
from muhat._support.archives import write_archive
from muhat.apps.cli.command_line import main
from muhat.features.base import BaseFeatures

ROWS = np.random.default_rng(0).normal(size=(60, 3))


class Kind(NamedTuple):
    """How a file is made, and how it is read: the reader returns what must not change, or None."""

    write: Callable[[Path], None]
    read: Callable[[Path], Any]


def table(path: Path) -> None:
    lines = ["a,b,c", *(",".join(f"{x:.4f}" for x in row) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n")


def npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, ROWS)


def parquet(path: Path) -> None:
    import polars

    polars.DataFrame(ROWS, schema=["a", "b", "c"]).write_parquet(path)


def compared(path: Path) -> None:
    """Compare the table with its whole self; the status 2 comes with a message."""
    whole, words = path.with_name(f"whole{path.suffix}"), io.StringIO()
    KINDS[path.suffix[1:]].write(whole)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(words):
        status = main(["compare", str(whole), str(path), "--resamples", "19"])
    if status == 2:
        raise ValueError(words.getvalue())
    if status not in (0, 1):
        raise AssertionError(f"status {status}: {words.getvalue()}")


def sketch(path: Path) -> None:
    features = mh.Nystroem(mh.Gaussian(1.0), n_components=5, random_state=0).fit(ROWS)
    mh.MeanSketch(features, second_moment=True).update(ROWS).save(path)


def read_sketch(path: Path) -> Any:
    return mh.MeanSketch.load(path).mean_element()(ROWS[:5]).tobytes()


def monitor(path: Path) -> None:
    mh.DriftMonitor(run_length=30, block_length=1, random_state=0).fit(ROWS).save(path)


def read_monitor(path: Path) -> Any:
    loaded = mh.DriftMonitor.load(path)
    loaded.update(ROWS[:3])
    return loaded.threshold_.tobytes() if hasattr(loaded.threshold_, "tobytes") else loaded.threshold_


KINDS = {
    "csv": Kind(table, compared),
    "npy": Kind(npy, compared),
    "parquet": Kind(parquet, compared),
    "sketch": Kind(sketch, read_sketch),
    "monitor": Kind(monitor, read_monitor),
}
SUFFIXES = {"csv": ".csv", "npy": ".npy", "parquet": ".parquet"}
CHECKED = {"sketch", "monitor"}


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one or a few random wounds."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data) or 1))
        wound = int(rng.integers(6))
        if wound == 0 and data:
            data[at] ^= 1 << int(rng.integers(8))
        elif wound == 1:
            del data[at:]
        elif wound == 2:
            data[at:at] = rng.bytes(int(rng.integers(1, 20)))
        elif wound == 3:
            del data[at : at + int(rng.integers(1, 50))]
        elif wound == 4:
            data[at:at] = data[at : at + int(rng.integers(1, 200))]
        else:
            data[at : at + 8] = bytes([int(rng.integers(256))]) * 8
    return bytes(data)


def judged(kind: str, path: Path, whole: Any) -> tuple[str, str]:
    """("read" or "refused" or "failed", why it failed)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = KINDS[kind].read(path)
    except (ValueError, TypeError, OSError, MemoryError) as error:
        words = str(error)
        plain = "Traceback" not in words and len(words.split()) >= 5
        return ("refused", "") if path.name in words and plain else ("failed", f"{type(error).__name__}: {words[:200]}")
    except BaseException as error:
        return "failed", f"{type(error).__name__}: {str(error)[:200]}"
    if kind in CHECKED and found != whole:
        return "failed", "a damaged file was read, and gave other numbers"
    return "read", ""


def fuzz(kind: str, files: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Damage a file of a kind this many times."""
    rng, counts, faults = np.random.default_rng(seed), Counter[str](), list[str]()
    path = folder / f"damaged{SUFFIXES.get(kind, '.bin')}"
    KINDS[kind].write(path)
    content, whole = path.read_bytes(), KINDS[kind].read(path)
    for number in range(files):
        path.write_bytes(damaged(content, rng))
        outcome, why = judged(kind, path, whole)
        counts[outcome] += 1
        if why:
            faults.append(f"{kind} {number} (seed {seed}): {why}")
    return counts, faults


def alarmed_monitor(path: Path) -> None:
    monitor = mh.DriftMonitor(run_length=30, block_length=1, kernel=mh.Laplace(), random_state=0).fit(ROWS)
    monitor.update(np.concatenate([ROWS[:5], ROWS[5:20] + 9.0]))
    monitor.save(path)


def fourier_sketch(path: Path) -> None:
    features = mh.Fourier(mh.Gaussian(1.0), n_components=6, random_state=0).fit(ROWS)
    mh.MeanSketch(features, reservoir_size=9, bins=20).update(ROWS).save(path)


def working_sketch(path: Path) -> None:
    """Raise an AssertionError unless a sketch that could be loaded works."""
    loaded = mh.MeanSketch.load(path)
    try:
        assert loaded.n_ == 0 or np.isfinite(loaded.mean_features()).all(), "its mean is not finite"
        assert loaded.update(ROWS).n_ >= len(ROWS)
        assert np.isfinite(loaded(ROWS)).all(), "its values are not finite"
        if loaded.bins:
            assert np.isfinite(mh.mmd_test(loaded, loaded, n_resamples=9).statistic), "its bins are not finite"
        loaded.save(path)
    except Exception as error:
        raise AssertionError(f"loaded, and then: {error!r}") from error


def working_monitor(path: Path) -> None:
    """Raise an AssertionError unless a monitor that could be loaded works."""
    loaded = mh.DriftMonitor.load(path)
    try:
        for rows in (ROWS[:3], ROWS[3:] + 1e3):
            loaded.update(rows)
            _, scores, thresholds = loaded.recent_scores()
            assert np.isfinite(loaded.threshold_), "its threshold is not finite"
            assert np.isfinite(thresholds).all(), "its thresholds are not finite"
            assert not np.isnan(scores).any(), "its scores are not numbers"
            assert str(loaded.result_)
            assert loaded.witness_ is None or np.isfinite(loaded.witness_(ROWS)).all(), "its witness is not finite"
            loaded.save(path)
            loaded.reset()
    except Exception as error:
        raise AssertionError(f"loaded, and then: {error!r}") from error


FORGED = {
    "forged sketch": Kind(sketch, working_sketch),
    "forged Fourier sketch": Kind(fourier_sketch, working_sketch),
    "forged monitor": Kind(monitor, working_monitor),
    "forged alarmed monitor": Kind(alarmed_monitor, working_monitor),
}
STRANGE = [None, np.nan, np.inf, -np.inf, -1, 0, 1, 2.5, 1e308, 10**30, "x", [], {}, True]


def forged_array(array: Any, rng: np.random.Generator) -> Any:
    """The array with other entries, another type or another shape; None for no array at all."""
    array = array.copy()
    strange = rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308])
    way = int(rng.integers(8))
    if way < 3 and array.dtype.kind == "f" and array.size:
        entry = tuple(int(rng.integers(size)) for size in array.shape)
        array[entry if way < 2 else ...] = strange
        return array
    if way < 3:
        return np.full_like(array, 7) if array.dtype.kind in "iu" else array.astype("S")
    changes = [lambda: array.astype(np.float32), lambda: array[None], lambda: array[:-1], lambda: array[::-1]]
    return None if way == 3 or array.ndim == 0 else changes[way - 4]()


def forged_header(header: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The header with a strange value somewhere inside."""
    header = copy.deepcopy(header)
    place: Any = header
    while True:
        keys = [key for key in (place if isinstance(place, dict) else range(len(place))) if key != "format"]
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
            place = place[key]
            continue
        place[key] = STRANGE[int(rng.integers(len(STRANGE)))]
        return header


def forge(kind: str, files: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Forge a file of a kind this many times; fingerprints of features fit their contents, as a forger's would."""
    rng, counts, faults = np.random.default_rng(seed), Counter[str](), list[str]()
    path = folder / "forged.npz"
    FORGED[kind].write(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays.pop("header")))
    del header["checksum"]
    FORGED[kind].read(path)
    for number in range(files):
        other, contents = header, dict(arrays)
        if rng.random() < 0.4:
            other = forged_header(header, rng)
        else:
            name = str(rng.choice(sorted(arrays)))
            contents[name] = forged_array(arrays[name], rng)
            contents = {key: array for key, array in contents.items() if array is not None}
        write_archive(path, header["format"], other, contents)
        fits = mock.patch.object(BaseFeatures, "_fingerprint", return_value=other.get("fingerprint"))
        with fits if "fingerprint" in other else contextlib.nullcontext(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                FORGED[kind].read(path)
                counts["read"] += 1
            except ValueError as error:
                named = path.name in str(error)
                counts["refused" if named else "failed"] += 1
                faults += [] if named else [f"{kind} {number} (seed {seed}): {error}"]
            except BaseException as error:
                counts["failed"] += 1
                faults.append(f"{kind} {number} (seed {seed}): {type(error).__name__}: {str(error)[:200]}")
    return counts, faults


def run() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200, help="damaged files of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[*KINDS, *FORGED])
    args = parser.parse_args()
    failed = 0
    for kind in [args.only] if args.only else [*KINDS, *FORGED]:
        with tempfile.TemporaryDirectory() as folder:
            counts, faults = (forge if kind in FORGED else fuzz)(kind, args.files, args.seed, Path(folder))
        print(f"{kind:22} {counts['read']:5} read, {counts['refused']:5} refused, {counts['failed']:5} failed")
        print("\n".join(faults[:10]), end="\n" if faults else "")
        failed += counts["failed"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run())

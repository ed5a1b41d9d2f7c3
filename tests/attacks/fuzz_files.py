"""Damaged files: tables, sketches, monitors, bags, cells and results, with bytes changed, cut, doubled or inserted.

python tests/attacks/fuzz_files.py [--files N] [--seed S] [--only csv]

A file must be read, or refused by an error of words that names it and says what to do. Sketches and monitors carry a
checksum, so a changed byte must be refused, or leave what is read as it was.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import muhat as mh
from muhat.command_line import main as muhat
from muhat.reproduce.store import Store

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


def run(*command: str) -> None:
    """Run a command; the status 2 comes with a message."""
    words = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(words):
        status = muhat([*command])
    if status == 2:
        raise ValueError(words.getvalue())
    if status not in (0, 1):
        raise AssertionError(f"status {status}: {words.getvalue()}")


def described(path: Path) -> None:
    run("describe", str(path))


def compared(path: Path) -> None:
    whole = path.with_name("whole.csv")
    table(whole)
    run("compare", str(whole), str(path), "--resamples", "19")


def watched(path: Path) -> None:
    whole = path.with_name("whole.csv")
    table(whole)
    run("watch", str(whole), str(path), "--run-length", "100")


def sketch(path: Path) -> None:
    features = mh.Nystroem(mh.Gaussian(1.0), n_components=5, random_state=0).fit(ROWS)
    mh.MeanSketch(features, second_moment=True).update(ROWS).save(path)


def read_sketch(path: Path) -> Any:
    return mh.MeanSketch.load(path).mean_element()(ROWS[:5]).tobytes()


def monitor(path: Path) -> None:
    mh.DriftMonitor(run_length=200, random_state=0).fit(ROWS).save(path)


def read_monitor(path: Path) -> Any:
    loaded = mh.DriftMonitor.load(path)
    loaded.update(ROWS[:3])
    return loaded.threshold_.tobytes() if hasattr(loaded.threshold_, "tobytes") else loaded.threshold_


def bags(path: Path) -> None:
    offsets = np.arange(0, 61, 6)
    with path.open("wb") as file:
        np.savez(file, X=ROWS, bag=offsets, y=np.arange(10) % 2, split=np.zeros(10, int), class_names=["a", "b"])


def read_bags(path: Path) -> None:
    folder = path.parent / "groups"
    folder.mkdir(exist_ok=True)
    (folder / "scenes15.npz").write_bytes(path.read_bytes())
    mh.load_bags("scenes15", data=path.parent)


def cells(path: Path) -> None:
    path.unlink(missing_ok=True)
    folder = path.parent / "run"
    folder.mkdir(exist_ok=True)
    (folder / "cells.jsonl").unlink(missing_ok=True)
    with Store(folder, "0") as store:
        for seed in range(8):
            store.add("figure1", {"seed": seed}, [{"loss": 0.5 * seed}], 0.1)
    path.write_bytes((folder / "cells.jsonl").read_bytes())


def read_cells(path: Path) -> None:
    """A damaged line is dropped, and its cell runs again: nothing is refused."""
    folder = path.parent / "run"
    folder.mkdir(exist_ok=True)
    (folder / "cells.jsonl").write_bytes(path.read_bytes())
    with Store(folder, "0") as store:
        for key in list(store._rows):
            experiment, setting = json.loads(key)
            assert all(isinstance(row, dict) for row in store.rows(experiment, setting))


def results(path: Path) -> None:
    claim = {"id": "a", "text": "b", "where": "c", "verdict": "holds", "evidence": "d", "experiments": ["figure1"]}
    path.write_text(json.dumps({"claims": [claim] * 3, "experiments": {}, "meta": {"quick": True, "seed": 0}}))


def read_results(path: Path) -> None:
    (path.parent / "results.json").write_bytes(path.read_bytes())
    run("claims", "--out", str(path.parent))


KINDS = {
    "csv": Kind(table, described),
    "npy": Kind(npy, described),
    "parquet": Kind(parquet, described),
    "compared": Kind(table, compared),
    "stream": Kind(table, watched),
    "sketch": Kind(sketch, read_sketch),
    "monitor": Kind(monitor, read_monitor),
    "bags": Kind(bags, read_bags),
    "cells": Kind(cells, read_cells),
    "results": Kind(results, read_results),
}
SUFFIXES = {"csv": ".csv", "npy": ".npy", "parquet": ".parquet", "compared": ".csv", "stream": ".csv"}
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
        named = path.name in words or "results.json" in words or "scenes15" in words
        plain = "Traceback" not in words and len(words.split()) >= 5
        return ("refused", "") if named and plain else ("failed", f"{type(error).__name__}: {words[:200]}")
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200, help="damaged files of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(KINDS))
    args = parser.parse_args()
    failed = 0
    for kind in [args.only] if args.only else KINDS:
        with tempfile.TemporaryDirectory() as folder:
            counts, faults = fuzz(kind, args.files, args.seed, Path(folder))
        print(f"{kind:8} {counts['read']:5} read, {counts['refused']:5} refused, {counts['failed']:5} failed")
        print("\n".join(faults[:10]), end="\n" if faults else "")
        failed += counts["failed"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

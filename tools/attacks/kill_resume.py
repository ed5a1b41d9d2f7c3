"""Kill and resume: runs of the paper and monitors of a stream, killed at random moments, go on where they were.

python tools/attacks/kill_resume.py [--kills N] [--seed S] [--only monitor]

What they come to must be the same, byte for byte, as without a kill. On systems with SIGKILL.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

WATCH = """
import sys
import numpy as np
import muhat as mh
path, rows = sys.argv[1], np.load(sys.argv[2])
monitor = mh.DriftMonitor.load(path)
while monitor.rows_seen_ < len(rows) and not monitor.drift_detected:
    monitor.update(rows[monitor.rows_seen_ : monitor.rows_seen_ + 5])
    monitor.save(path)
"""


def killed_until_done(command: list[str], progress: Callable[[], int], kills: int, rng: np.random.Generator) -> int:
    """Start the command again and again, and kill it after a random amount of progress; how often that was."""
    done = 0
    while True:
        begun, growth = progress(), int(rng.integers(1, 40_000)) if done < kills else None
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, start_new_session=True, **quiet) as run:
            while run.poll() is None and (growth is None or progress() <= begun + growth):
                sleep(0.002)
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                done += 1
            elif run.returncode == 0:
                return done
            else:
                raise SystemExit(f"the command ended with status {run.returncode}: {' '.join(command)}")


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def reproduction(kills: int, rng: np.random.Generator, folder: Path) -> tuple[int, bool]:
    def command(out: Path) -> list[str]:
        options = ["figure1", "--quick", "--repetitions", "40", "--jobs", "2", "--out", str(out)]
        return [sys.executable, "-m", "paper", *options]

    whole, broken = folder / "whole", folder / "broken"
    subprocess.run(command(whole), check=True, capture_output=True)
    done = killed_until_done(command(broken), lambda: size(broken / "cells.jsonl"), kills, rng)
    return done, lasting(whole) == lasting(broken)


def lasting(folder: Path) -> dict[str, Any]:
    """Results without the time that they took, which differs from run to run."""
    results = json.loads((folder / "results.json").read_bytes())
    del results["meta"]["run"]
    for experiment in results["experiments"].values():
        del experiment["seconds"]
    return results


def monitoring(kills: int, rng: np.random.Generator, folder: Path) -> tuple[int, bool]:
    import muhat as mh

    draws = np.random.default_rng(1)  # whose stream raises no early alarm
    stream = folder / "rows.npy"
    np.save(stream, draws.normal(size=(1500, 3)) + np.repeat([0.0, 0.6], [1400, 100])[:, None])
    whole, broken = folder / "whole.npz", folder / "broken.npz"
    fitted = mh.DriftMonitor(run_length=3_000, block_length=1, random_state=0).fit(draws.normal(size=(600, 3)))
    for path in (whole, broken):
        fitted.save(path)
    subprocess.run([sys.executable, "-c", WATCH, str(whole), str(stream)], check=True)
    written = Counter(broken)
    done = killed_until_done([sys.executable, "-c", WATCH, str(broken), str(stream)], written, kills, rng)
    return done, whole.read_bytes() == broken.read_bytes()


class Counter:
    """How often a file was seen to change, in steps of the progress that a kill waits for."""

    def __init__(self, path: Path) -> None:
        self.path, self.last, self.seen = path, 0, 0

    def __call__(self) -> int:
        now = self.path.stat().st_mtime_ns
        self.seen += 1000 * (now != self.last)
        self.last = now
        return self.seen


ATTACKS = {"reproduce": reproduction, "monitor": monitoring}


def attack(name: str, kills: int, seed: int) -> tuple[int, bool]:
    """How often the command was killed, and whether it came to the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        return ATTACKS[name](kills, np.random.default_rng(seed), Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(ATTACKS))
    args = parser.parse_args()
    equal = True
    for name in [args.only] if args.only else ATTACKS:
        kills, same = attack(name, args.kills, args.seed)
        print(f"{name}: killed {kills} times, {'the same bytes' if same else 'OTHER BYTES'}")
        equal &= same
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

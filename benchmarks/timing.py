"""Times of rival calls, taken in turn so that a noisy machine treats them alike, and the peak memory of a process."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter


def best_times(
    *calls: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = perf_counter
) -> list[float]:
    """Best time of each call over ``repeats`` rounds, after one round to warm up.

    ``clock=time.process_time`` counts CPU seconds, which a busy machine disturbs less.
    """
    times = [[] for _ in calls]
    for _ in range(repeats + 1):
        for call, seen in zip(calls, times, strict=True):
            start = clock()
            call()
            seen.append(clock() - start)
    return [min(seen[1:]) for seen in times]


def report(what: str, ratio: float, target: str, met: bool, digits: int = 2) -> bool:
    """Print one line of a benchmark; return whether the target is met."""
    print(f"{what:<78} {ratio:8.{digits}f}   target {target:<8} {'met' if met else 'MISSED'}", flush=True)
    return met


def peak_memory() -> float:
    """Peak of this process in MB. Linux keeps the parent's in ``getrusage`` over exec, but not in ``VmHWM``."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

"""Times of rival calls, taken in turn so that a noisy machine treats them alike."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


def best_times(*calls: Callable[[], object], repeats: int = 5) -> list[float]:
    """Best time of each call over ``repeats`` rounds, after one round to warm up."""
    times = [[] for _ in calls]
    for _ in range(repeats + 1):
        for call, seen in zip(calls, times, strict=True):
            start = perf_counter()
            call()
            seen.append(perf_counter() - start)
    return [min(seen[1:]) for seen in times]


def report(what: str, ratio: float, target: str, met: bool) -> bool:
    """Print one line of a benchmark; return whether the target is met."""
    print(f"{what:<78} {ratio:8.2f}   target {target:<8} {'met' if met else 'MISSED'}", flush=True)
    return met

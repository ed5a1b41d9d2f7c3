"""Times of rival calls, taken in turn so that a noisy machine treats them alike."""

from __future__ import annotations

from collections.abc import Callable
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


def report(what: str, ratio: float, target: str, met: bool) -> bool:
    """Print one line of a benchmark; return whether the target is met."""
    print(f"{what:<78} {ratio:8.2f}   target {target:<8} {'met' if met else 'MISSED'}", flush=True)
    return met

"""The monitor beside its promise and beside other detectors: ``python benchmarks/monitor.py PART [--quick]``.

Parts: run_lengths, delays, speed, calibration, references, autocorrelation, memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import muhat as mh

Draw = Callable[[int], NDArray]

CENTRES = 3.0 * np.random.default_rng(5).normal(size=(5, 5))


def normal(d: int) -> Callable[[np.random.Generator], Draw]:
    return lambda rng: lambda n: rng.normal(size=(n, d))


def mixture(rng: np.random.Generator) -> Draw:
    return lambda n: CENTRES[rng.integers(0, 5, n)] + rng.normal(size=(n, 5))


def heavy_tails(rng: np.random.Generator) -> Draw:
    return lambda n: rng.standard_t(3, size=(n, 5))


NULLS = {
    "normal, d = 2": normal(2),
    "normal, d = 20": normal(20),
    "mixture, d = 5": mixture,
    "t(3), d = 5": heavy_tails,
}


def runs(monitor: mh.DriftMonitor, draw: Draw, rows: int) -> tuple[list[int], int]:
    """Run lengths of a monitor over so many rows without drift, reset at each alarm, and the rows of the last run."""
    found, left = [], rows
    monitor.reset()
    while left > 0:
        block = draw(min(2000, left))
        left -= len(block)
        while len(block):
            before = monitor.rows_seen_
            if not monitor.update(block):
                break
            found.append(monitor.result_.row)
            block = block[monitor.result_.row - before :]
            monitor.reset()
    return found, monitor.rows_seen_


def realised(name: str, n: int, run_length: int, references: int, alarms: float, seed: int = 0) -> list[tuple]:
    """For each of some references: run lengths, and rows of an unfinished run."""
    out = []
    for k in range(references):
        rng = np.random.default_rng([seed, k, n])
        draw = NULLS[name](rng)
        monitor = mh.DriftMonitor(run_length, random_state=k).fit(draw(n))
        out.append(runs(monitor, draw, int(alarms * run_length)))
    return out


def mean_runs(found: list[tuple]) -> NDArray:
    """The mean run length of each reference: all rows over the number of alarms plus one.

    The number of alarms N in a given number of rows is about Poisson, and E 1/(N + 1) is the inverse of its mean.
    """
    return np.array([(sum(lengths) + rest) / (len(lengths) + 1) for lengths, rest in found])


def run_lengths(options: argparse.Namespace) -> None:
    """Realised run lengths beside the promise, averaged over references, and whether they are geometric."""
    from scipy.stats import kstest

    print("realised run length, 1,000 reference rows: mean over references ± standard error; quartiles of references;")
    print("p of Kolmogorov and Smirnov's test that the runs of each reference, over their mean, are exponential")
    for run_length in options.run_length:
        references, alarms = (options.references or {1000: 100, 10_000: 40}.get(run_length, 20)), 25
        for name in options.null or NULLS:
            found = realised(name, 1000 if not options.quick else 200, run_length, references, alarms)
            means = mean_runs(found)
            relative = np.concatenate([np.array(lengths) / m for (lengths, _), m in zip(found, means, strict=True)])
            error = means.std(ddof=1) / np.sqrt(len(means))
            low, middle, high = np.quantile(means, [0.25, 0.5, 0.75])
            p = kstest(relative + 0.0, "expon").pvalue
            print(
                f"{name:<16} promised {run_length:>6,}  realised {means.mean():8,.0f} ± {error:5,.0f} "
                f"({means.mean() / run_length - 1:+.1%})  quartiles {low:,.0f} {middle:,.0f} {high:,.0f}  "
                f"alarms {len(relative):,}  p = {p:.2f}",
                flush=True,
            )


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {"run_lengths": run_lengths}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="the smallest form")
    parser.add_argument("--run-length", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--references", type=int)
    parser.add_argument("--null", nargs="+", choices=NULLS)
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()

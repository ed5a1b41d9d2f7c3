"""Does the order of groups, rows or columns change an answer? Periodic and sorted orders must do as random ones do.

python tools/attacks/orders.py                   # every subject on every order, and what fails
python tools/attacks/orders.py --only BagPrior   # subjects whose names contain this

A subject that draws groups or rows by their place with a seed has a loss, which on each order may be at most 1.1 times
the mean loss on three random orders. The answer of any other subject may differ from that on a random order by rounding
alone. The tables are open: add a line for a new estimator.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import muhat as mh

PERIODS = (2, 5, 7, 10)
MOST_RATIO, MOST_DISTANCE = 1.1, 1e-6
RANDOM_ORDERS = 5

Order = Any  # places of groups or rows
Groups = tuple[list[Any], Any, Any]
Loss = Callable[[Groups, Groups], float]
Measured = Callable[[int], dict[str, float]]


# ---------------------------------------------------------------- data


def groups(kinds: int, n: int = 140, seed: int = 0) -> Groups:
    """Groups of several kinds in turn, around a circle; a target that depends on kind and location; a class."""
    rng = np.random.default_rng(seed)
    kind, shift = np.arange(n) % kinds, rng.uniform(-1, 1, size=n)
    angles = 2.0 * np.pi * kind / kinds
    places = 4.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    places[:, 0] += shift
    bags = [rng.normal(size=(rng.integers(5, 30), 2)) + place for place in places]
    return bags, 2.0 * np.cos(angles) + shift, kind % 5


def rows_of(kinds: int, n: int = 420) -> Any:
    """Rows of several kinds in turn."""
    kind = np.arange(n) % kinds
    return np.random.default_rng(0).normal(size=(n, 2)) + 3.0 * np.column_stack([np.cos(kind), np.sin(kind)])


def in_order(data: Groups, order: Order) -> Groups:
    bags, y, kind = data
    return [bags[i] for i in order], y[order], kind[order]


def orders(key: Any) -> dict[str, Order]:
    """The order of the data, which is periodic, and those sorted by a number up and down."""
    up = np.argsort(key, kind="stable")
    return {"periodic": np.arange(len(key)), "sorted": up, "sorted down": up[::-1]}


def random_orders(n: int) -> list[Order]:
    return [np.random.default_rng(seed).permutation(n) for seed in range(RANDOM_ORDERS)]


# ---------------------------------------------------------------- subjects


def regression(machine: Any) -> Loss:
    """Mean squared error on new groups."""
    return lambda train, new: float(np.mean((machine.fit(train[0], train[1]).predict(new[0]) - new[1]) ** 2))


def classification(machine: Any) -> Loss:
    """Share of new groups in a wrong class; a hundredth is added, since all may be right."""
    return lambda train, new: 0.01 + float(np.mean(machine.fit(train[0], train[2]).predict(new[0]) != new[2]))


def probabilities(machine: Any) -> Loss:
    """Mean negative log-likelihood of the classes of new groups."""

    def loss(train: Groups, new: Groups) -> float:
        p = machine.fit(train[0], train[2]).predict_proba(new[0])
        return 0.01 - float(np.mean(np.log(p[np.arange(len(p)), new[2]].clip(1e-6))))

    return loss


def detection(machine: Any, rows: int | None = None) -> Loss:
    """Share of pairs of a normal and an odd group in which the normal one looks odder; of all or the first rows."""

    def loss(train: Groups, new: Groups) -> float:
        machine.fit([bag[:rows] for bag in train[0]])
        normal, odd = (machine.score_samples(bags) for bags in (new[0], [0.5 * bag for bag in new[0]]))
        return 0.01 + float(np.mean(odd[:, None] > normal))

    return loss


def pooling(train: Groups, new: Groups) -> float:
    """Squared distance of pooled means of a few rows from the means of their groups."""
    pooled = mh.pooled_means([bag[:4] for bag in train[0]], mh.Gaussian(2.0))
    return float(np.mean([f.distance(mh.embed(f.kernel, bag)) ** 2 for f, bag in zip(pooled, train[0], strict=True)]))


def likeness(train: Groups, new: Groups) -> float:
    """Share of halves of new groups that are more like a half of another group than like their own."""
    halves = [[bag[start::2] for bag in new[0]] for start in (0, 1)]
    odds = mh.BagPrior().fit(train[0]).log_odds(*halves)
    return float(np.mean(np.argmax(odds, axis=1) != np.arange(len(odds))))


def group_losses() -> dict[str, Loss]:
    """Estimators that learn from groups, by name."""
    classifier = mh.SupportMeasureClassifier
    return {
        "DistributionRidge": regression(mh.DistributionRidge()),
        "DistributionRidge(pool=False)": regression(mh.DistributionRidge(pool=False)),
        "DistributionRidgeClassifier": classification(mh.DistributionRidgeClassifier()),
        "DistributionRidgeClassifier: probabilities": probabilities(mh.DistributionRidgeClassifier()),
        "SupportMeasureClassifier": classification(classifier(C=10.0)),
        "SupportMeasureClassifier(whiten=True, pool=True)": classification(classifier(C=10.0, whiten=True, pool=True)),
        "OneClassSupportMeasureMachine": detection(mh.OneClassSupportMeasureMachine(), rows=5),
        "GroupAnomalyDetector": detection(mh.GroupAnomalyDetector()),
        "BagPrior": likeness,
        "pooled_means": pooling,
    }


def row_losses() -> dict[str, Callable[[Any], float]]:
    """Estimators that learn from rows of which a seed draws some, by name."""

    def missed(kind: str, X: Any) -> float:
        features = [mh.Nystroem(mh.Gaussian(0.5), 100, kind, random_state=seed).fit(X) for seed in range(20)]
        return float(np.mean([each.approximation_error_ for each in features]))

    return {
        **{f"Nystroem({kind})": partial(missed, kind) for kind in ("uniform", "k-means++", "pivoted")},
        "MatchedGaussianMixture": lambda X: mh.MatchedGaussianMixture(3, random_state=0).fit(X).objective_,
    }


AT = np.random.default_rng(1).normal(size=(20, 2))


def group_answers() -> dict[str, Callable[[Any], Any]]:
    """Numbers that do not depend on the order of groups, but for rounding, by name."""
    whitened = mh.DistributionKernel(whiten=True, pool=True)
    return {
        "BagScaler": lambda bags: mh.BagScaler().fit(bags).transform([AT])[0],
        "DistributionKernel": lambda bags: np.sort(mh.DistributionKernel().fit(bags).transform([AT])),
        "DistributionKernel(whiten=True, pool=True)": lambda bags: np.sort(whitened.fit(bags).transform([AT])),
    }


def row_answers() -> dict[str, Callable[[Any], Any]]:
    """The same of rows."""
    fourier = mh.Fourier(mh.Gaussian(2.0), random_state=0).fit(AT)
    plain = (mh.KernelMean, mh.ShrunkKernelMean, mh.SpectralKernelMean, mh.AdaptiveKernelMean, mh.RobustKernelMean)
    means = (*(mean() for mean in plain), mh.ConstrainedKernelMean(), mh.MedianOfMeans(random_state=0))
    return {
        **{type(mean).__name__: lambda X, mean=mean: mean.fit(X).mean_(AT) for mean in means},
        "KernelPCA": lambda X: np.abs(mh.KernelPCA(3).fit(X).transform(AT)),
        "KernelCovariance": lambda X: [mh.KernelCovariance().fit(X).operator_.norm()],
        "BlendedSample": lambda X: [mh.BlendedSample(n_resamples=5, random_state=0).fit(X).share_],
        "MeanSketch": lambda X: mh.MeanSketch(fourier).update(X).mean_features(),
    }


Turn = Callable[[Any], Any]
"""Puts the columns of rows in another order."""


def column_answers() -> dict[str, Callable[[Turn], Any]]:
    """Numbers that do not depend on the order of columns, but for rounding, by name."""
    rng = np.random.default_rng(2)
    rows, new = rng.normal(size=(2, 240, 3)) * [1.0, 2.0, 0.5]
    many, labels, options = rng.normal(size=(2500, 3)), np.arange(240) % 4, {"n_resamples": 99, "random_state": 0}
    bags = [rng.normal(size=(10, 3)) + 0.5 * rng.normal(size=3) for _ in range(40)]
    y = np.array([bag.mean() for bag in bags])
    regression, classifier = mh.DistributionRidge(), mh.DistributionRidgeClassifier()

    def of_bags(fit: Callable[[Any], Any]) -> Callable[[Turn], Any]:
        return lambda turn: fit([turn(bag) for bag in bags])

    return {
        "mmd_test": lambda turn: [mh.mmd_test(turn(rows), turn(new + 0.1), **options).pvalue],
        "hsic_test": lambda turn: [mh.hsic_test(turn(rows[:99]), turn(new[:99]), **options).pvalue],
        "group_distances": lambda turn: mh.group_distances(turn(rows), labels, control=0, **options).pvalue,
        "ConditionalKernelMean": lambda turn: mh.ConditionalKernelMean().fit(turn(rows), rows[:, 0]).predict(turn(new)),
        "KernelMean of many rows": lambda turn: mh.KernelMean().fit(turn(many)).mean_(turn(new)),
        "stack of DistributionRidge": of_bags(lambda turned: regression.fit(turned, y).predict(turned)),
        "stack of its classifier": of_bags(lambda turned: classifier.fit(turned, y > 0).predict_proba(turned)),
        "GroupAnomalyDetector: p-values": of_bags(lambda turned: mh.GroupAnomalyDetector().fit(turned).p_values_),
    }


# ---------------------------------------------------------------- measuring


def ratios(loss: Callable[[Order], float], key: Any) -> dict[str, float]:
    """Loss on each order over the largest loss on random orders, which differ where folds and landmarks are drawn."""
    base = max(loss(order) for order in random_orders(len(key)))
    return {name: float(loss(order) / base) for name, order in orders(key).items()}


def distances(answer: Callable[[Order], Any], key: Any) -> dict[str, float]:
    """Largest distance of the answer on each order from that on a random order, in units of the answer."""
    base = np.asarray(answer(random_orders(len(key))[0]))
    apart = {name: np.abs(np.asarray(answer(order)) - base).max() for name, order in orders(key).items()}
    return {name: float(value / np.abs(base).max()) for name, value in apart.items()}


def loss_of_groups(loss: Loss, period: int) -> dict[str, float]:
    data, new = groups(period), groups(period, seed=1)
    return ratios(lambda order: loss(in_order(data, order), new), data[1])


def answer_of_groups(answer: Any, period: int) -> dict[str, float]:
    data = groups(period, n=20)  # so few rows that all are landmarks
    return distances(lambda order: answer(in_order(data, order)[0]), data[1])


def of_rows(measure: Any, call: Any, period: int) -> dict[str, float]:
    X = rows_of(period)
    return measure(lambda order: call(X[order]), X[:, 0])


def of_columns(answer: Callable[[Turn], Any], period: int) -> dict[str, float]:
    """Largest distance of the answer from that with the columns as they were; there is no period."""
    base = np.asarray(answer(lambda rows: rows))
    turned = {"reversed": answer(lambda rows: rows[:, ::-1]), "moved": answer(lambda rows: rows[:, [2, 0, 1]])}
    return {name: float(np.abs(np.asarray(found) - base).max() / np.abs(base).max()) for name, found in turned.items()}


def subjects() -> dict[str, tuple[Measured, float]]:
    """What is measured at a period, and the most that it may be, by name."""
    tables: list[tuple[dict[str, Any], Any, float]] = [
        (group_losses(), loss_of_groups, MOST_RATIO),
        (row_losses(), partial(of_rows, ratios), MOST_RATIO),
        (group_answers(), answer_of_groups, MOST_DISTANCE),
        (row_answers(), partial(of_rows, distances), MOST_DISTANCE),
        (column_answers(), of_columns, MOST_DISTANCE),
    ]
    return {name: (partial(measure, call), most) for table, measure, most in tables for name, call in table.items()}


def worst(measured: Measured, periods: tuple[int, ...] = PERIODS) -> tuple[float, str]:
    """The largest number at any period, and the order that it belongs to."""
    return max((value, f"{name}, period {period}") for period in periods for name, value in measured(period).items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="subjects whose names contain this")
    only, failed = parser.parse_args().only, []
    warnings.simplefilter("ignore")
    for name, (measured, most) in subjects().items():
        if only in name:
            value, order = worst(measured)
            failed += [] if value <= most else [name]
            print(f"{name:<50} {value:>9.3g} of {most:<6g} {order:<24} {'' if value <= most else 'FAILS'}", flush=True)
    print(f"the order changes {failed}" if failed else "the order changes nothing")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The bags of table 2, and the two machines on them: a measurement of all estimators on one split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC, OneClassSVM

from muhat.datasets import draw_bags, load_bags, paper_mixture
from muhat.measures import GaussianMixture
from muhat.reproduce.experiments.table2_grams import Bags, inner_products, level2_grams
from muhat.types import Array

FOLDS = 10


SCENES = (100, 100)
"""Images of each class to train on, and to test on."""


GROUPS, MADE_GROUPS, SHARE = (150, 100), (60, 50), 0.5
"""Bags of events: normal ones to train on; normal and as many anomalous ones to test on; signal in those."""


MADE = "made"


MADE_CLASSES, MADE_BAGS, MADE_COLUMNS, MADE_EVENTS = 4, (20, 30), 10, 4000


_CONCENTRATION = 5.0  # of a bag's shares about those of its class


@dataclass(frozen=True)
class Grid:
    """Parameters to choose from: the embedding's σ² is median/2^doubling, the level-2 bandwidth a multiple."""

    doublings: Sequence[int] = (0, 1, 2)
    multiples: Sequence[float] = (0.5, 1.0, 2.0)
    C: Sequence[float] = (1.0, 10.0, 100.0, 1e3, 1e4)
    nu: Sequence[float] = (0.05, 0.1, 0.5)


FULL = Grid()


QUICK = Grid(doublings=(0, 2), multiples=(1.0,), C=(1.0, 30.0, 1e3), nu=(0.1,))


def labelled_bags(name: str, size: int, rng: np.random.Generator, data: str | None) -> Bags:
    """The first rows of each bag; training and test bags drawn at random, as many of each class."""
    if name == MADE:
        return _made_bags(size, rng)
    scenes = load_bags(name, data=data)
    bags = np.stack(scenes.bags)[:, :size].astype(np.float64)
    n_train, n_test = SCENES
    drawn = np.stack([rng.permutation(members)[: n_train + n_test] for members in _members(scenes.target)])
    train, test = drawn[:, :n_train].ravel(), drawn[:, n_train:].ravel()
    return Bags(bags[train], scenes.target[train], bags[test], scenes.target[test])


def _members(labels: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def _made_bags(size: int, rng: np.random.Generator) -> Bags:
    """Bags from one mixture, its shares drawn for each bag about those of the bag's class."""
    P = paper_mixture(MADE_COLUMNS, random_state=rng)
    classes = rng.dirichlet(np.ones(len(P.weights)), size=MADE_CLASSES)

    def drawn(count: int) -> tuple[Array, NDArray[np.intp]]:
        labels = np.repeat(np.arange(MADE_CLASSES), count)
        shares = [rng.dirichlet(_CONCENTRATION * classes[label] + 0.01) for label in labels]
        bags = [GaussianMixture(share, P.means, P.covariances).sample(size, random_state=rng) for share in shares]
        return np.stack(bags), labels

    return Bags(*drawn(MADE_BAGS[0]), *drawn(MADE_BAGS[1]))


def anomaly_bags(name: str, size: int, rng: np.random.Generator, data: str | None) -> Bags:
    """Normal bags to train on; the test bags are drawn from other background events, half of them with signal."""
    background, signal = _made_events(rng) if name == MADE else _events(name, data)
    background = rng.permutation(background)
    half = len(background) // 2
    n_train, n_test = MADE_GROUPS if name == MADE else GROUPS
    train, labels = draw_bags(background[:half], signal, n_normal=n_train, n_anomalous=0, size=size, random_state=rng)
    test, test_labels = draw_bags(
        background[half:], signal, n_normal=n_test, n_anomalous=n_test, size=size, share=SHARE, random_state=rng
    )
    return Bags(np.stack(train), labels, np.stack(test), test_labels)


def _events(name: str, data: str | None) -> tuple[Array, Array]:
    events = load_bags(name, data=data)
    return events.events[events.target == 0], events.events[events.target == 1]


def _made_events(rng: np.random.Generator) -> tuple[Array, Array]:
    """Events of a mixture, and of one with its shares reversed."""
    P = paper_mixture(MADE_COLUMNS, random_state=rng)
    odd = GaussianMixture(P.weights[::-1], P.means, P.covariances)
    return P.sample(MADE_EVENTS, random_state=rng), odd.sample(MADE_EVENTS, random_state=rng)


def accuracies(bags: Bags, grid: Grid, seed: int) -> dict[str, dict[str, float]]:
    """Accuracy on the test bags by level-2 kernel and estimator, all parameters by cross-validation on the others."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": list(grid.C)}, cv=folds)
    scores: dict[tuple[str, str], float] = {}
    accuracy: dict[str, dict[str, float]] = {"linear": {}, "gaussian": {}}
    for _, estimator, inner in inner_products(bags, grid.doublings):
        for gram in level2_grams(inner, grid.multiples):
            search.fit(gram.train, bags.train_labels)
            if search.best_score_ > scores.get((gram.kind, estimator), -inf):
                scores[gram.kind, estimator] = search.best_score_
                accuracy[gram.kind][estimator] = search.score(gram.test, bags.test_labels)
    return accuracy


def areas(bags: Bags, grid: Grid) -> dict[tuple[str, str], dict[str, float]]:
    """Area under the ROC curve by (level-2 kernel, parameters) and estimator."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for doubling, estimator, inner in inner_products(bags, grid.doublings):
        for gram in level2_grams(inner, grid.multiples):
            for nu in grid.nu:
                machine = OneClassSVM(kernel="precomputed", nu=nu).fit(gram.train)
                level2 = "" if gram.multiple is None else f", τ = {gram.multiple:g}·median"
                parameters = f"σ² = median/{2**doubling}{level2}, ν = {nu:g}"
                area = roc_auc_score(bags.test_labels, machine.score_samples(gram.test))
                found.setdefault((gram.kind, parameters), {})[estimator] = float(area)
    return found

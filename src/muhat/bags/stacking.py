"""Stacking of regressions on bags: ridge on kernel means, ridge and extra-trees on summary statistics.

Where a target depends on a threshold or an extreme within the bag, trees on summary statistics do better than a linear
function of a smooth mean. The three learners are combined by weights that minimise the error of left-out predictions.

Constants that are not derived were chosen on the halves of ``benchmarks/groups.py`` and ``natural_groups.py`` that are
there for it (``--set chosen`` and ``--set choose``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, softmax

from muhat._support.types import Array
from muhat.bags.data import Bags
from muhat.bags.weighted_ridge import BagVectors, RidgeLearner, fit_ridges
from muhat.features.nystroem import Nystroem
from muhat.kernels.radial import Gaussian
from muhat.linalg.distances import positive_median_distance
from muhat.linalg.simplex import simplex_minimiser
from muhat.tables.scales import ColumnScales

LEARNERS = ("kernel means", "summaries", "trees")

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of each column of a bag, which few rows determine

FARTHEST = 5.0
"""Standardised summaries are cut here, so that one bag with an extreme value does not stretch the kernel."""

SUMMARY_WIDTHS = (0.5, 1.0, 2.0, 4.0)
"""Multiples of the median that are tried as bandwidths of the kernel between summaries."""

SUMMARY_LANDMARKS = 300  # bags that span the kernel between summaries; up to as many it is exact

COMPONENTS = 5
"""Principal components of the pooled means that trees see beside the summaries; more of them hide the summaries."""

FOLDS = 3  # of bags, from which the weights of the learners come

TREES, TREES_OF_FOLD = 200, 100  # of the whole, and where a fold is left out, for the weights alone

FEWEST_TO_STACK = 40
"""With fewer bags the ridge on kernel means stands alone: left-out predictions would not tell learners apart."""

SMALLEST_PROBABILITY = 1e-4
"""Of a class in one learner, so that a single mistake does not decide the weights."""

EM_ROUNDS = 200  # of three weights, which settle long before


def bag_summaries(bags: Bags, columns: NDArray[np.intp]) -> Array:
    """Mean, standard deviation and five quantiles of each column, in this order, and log n: one row per bag."""
    rows = []
    for bag in bags.parts(bags.rows[:, columns]):
        quantiles = np.quantile(bag, QUANTILES, axis=0).ravel()
        rows.append(np.concatenate([bag.mean(axis=0), bag.std(axis=0), quantiles, [np.log(len(bag))]]))
    return np.array(rows)


def standardised(summaries: Array, scales: ColumnScales) -> Array:
    """Summaries in the scales of the training bags, cut at FARTHEST."""
    return scales.divide(summaries).clip(-FARTHEST, FARTHEST)


def fit_summary_ridge(S: Array, targets: Array, sizes: NDArray[Any], weights: Array) -> tuple[Nystroem, RidgeLearner]:
    """Ridge regression with a Gaussian kernel between standardised summaries, its width by leave-one-out likelihood."""
    median = positive_median_distance(S, SUMMARY_LANDMARKS)
    found = []
    for factor in SUMMARY_WIDTHS:
        features = Nystroem(Gaussian(factor * median), min(len(S), SUMMARY_LANDMARKS), random_state=0).fit(S)
        found.append((features, fit_ridges(features.evaluate(S), targets, sizes, weights)))
    return min(found, key=lambda pair: pair[1].score)


def class_probabilities(means: Array, variances: Array) -> Array:
    r"""Probabilities of classes whose targets are ±1: :math:`\Phi(m/s)` of each, in proportion.

    One column stands for two classes, the second and, with the opposite sign, the first.
    """
    scores = means / np.sqrt(variances)
    return np.asarray(softmax(log_ndtr(np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores), axis=1))


def fit_trees(X: Array, targets: Array, labels: Any, weights: Array, count: int, seed: int) -> Any:
    """Extremely randomised trees, for numbers or, where labels are given, for classes; in whatever order bags come.

    Each tree sees a bootstrap sample of the bags where targets are numbers, which are noisy, and all bags for classes.
    """
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # take long to import

    order = np.lexsort(X.T)
    X, targets, weights = X[order], targets[order], weights[order]
    options: dict[str, Any] = {"min_samples_leaf": 2, "max_features": 0.5, "random_state": seed}
    if labels is not None:
        return ExtraTreesClassifier(count, **options).fit(X, labels[order], weights)
    targets = targets[:, 0] if targets.shape[1] == 1 else targets
    return ExtraTreesRegressor(count, bootstrap=True, **options).fit(X, targets, weights)


def tree_predictions(trees: Any, X: Array, n_classes: int | None) -> Array:
    """Predictions of shape (n, outputs), or probabilities of classes 0, 1, ...; a class not seen has probability 0."""
    if n_classes is None:
        return np.asarray(trees.predict(X)).reshape(len(X), -1)
    probabilities = np.zeros((len(X), n_classes))
    probabilities[:, trees.classes_] = trees.predict_proba(X)
    return probabilities


class Stack(NamedTuple):
    """The learners beside the ridge on kernel means, and the weights of all."""

    weights: Array  # of LEARNERS, 0 or more, with the sum 1
    inflation: Array  # squared error of the stack over the variance that the first ridge predicts, by output
    scales: ColumnScales  # of the summaries of the training bags
    summary_features: Nystroem
    summary_ridge: RidgeLearner
    trees: Any
    n_classes: int | None

    def predictions(self, ridge: RidgeLearner, vectors: BagVectors) -> Array:
        """Of each learner: shape (learners, n, outputs or classes)."""
        S = standardised(vectors.summaries, self.scales)
        Z = self.summary_features.evaluate(S)
        found = [ridge.predict(vectors.means), self.summary_ridge.predict(Z)]
        if self.n_classes is not None:
            missed = (self.summary_features.kernel_.diagonal(S) - np.square(Z).sum(axis=1)).clip(0.0)
            variances = (
                ridge.variances(vectors.means, vectors.sizes, vectors.outside),
                self.summary_ridge.variances(Z, vectors.sizes, missed),
            )
            found = [class_probabilities(mean, variance) for mean, variance in zip(found, variances, strict=True)]
        return np.array([*found, tree_predictions(self.trees, np.hstack([S, vectors.components]), self.n_classes)])

    def combined(self, ridge: RidgeLearner, vectors: BagVectors) -> Array:
        """Predictions of the stack."""
        return np.tensordot(self.weights, self.predictions(ridge, vectors), axes=1)


def fit_stack(
    ridge: RidgeLearner,
    vectors: BagVectors,
    targets: Array,
    labels: NDArray[np.intp] | None,
    weights: Array,
    folds: NDArray[np.intp],
    seed: int,
) -> Stack:
    """Fit the learners, and find their weights from predictions for bags that they have not seen.

    ``ridge`` was fitted to the vectors of all bags. Targets are standardised; ``labels`` numbers the classes, and is
    None where targets are numbers. ``folds`` says with which others a bag is left out, and ``seed`` is that of the
    trees.
    """
    n_classes = None if labels is None else int(labels.max()) + 1
    scales = ColumnScales.of(vectors.summaries)
    S = standardised(vectors.summaries, scales)
    features, summary_ridge = fit_summary_ridge(S, targets, vectors.sizes, weights)
    X = np.hstack([S, vectors.components])
    trees = fit_trees(X, targets, labels, weights, TREES, seed)
    whole = Stack(
        np.array([1.0, 0.0, 0.0]), np.ones(targets.shape[1]), scales, features, summary_ridge, trees, n_classes
    )
    left_out = np.empty((len(LEARNERS), len(S), targets.shape[1] if n_classes is None else n_classes))
    variances = np.empty(targets.shape)
    for fold in np.unique(folds):
        out = folds == fold
        ridges = [each.without(out, targets, vectors.sizes, weights) for each in (ridge, summary_ridge)]
        known = None if labels is None else labels[~out]
        some = fit_trees(X[~out], targets[~out], known, weights[~out], TREES_OF_FOLD, seed)
        part = whole._replace(summary_ridge=ridges[1], trees=some)
        left_out[:, out] = part.predictions(ridges[0], vectors.part(out))
        variances[out] = ridges[0].variances(vectors.means[out], vectors.sizes[out], vectors.outside[out])
    if labels is not None:
        return whole._replace(weights=mixing_weights(left_out, labels, weights))
    found = stacking_weights(left_out, targets, weights)
    errors = np.square(targets - np.tensordot(found, left_out, axes=1))
    return whole._replace(weights=found, inflation=weights @ (errors / variances) / weights.sum())


def stacking_weights(left_out: Array, targets: Array, weights: Array) -> Array:
    """Weights on the simplex that minimise the squared error of left-out predictions."""
    # With weights that sum to one, the error of the combination is the combination of the errors: uᵀMu.
    errors = (np.sqrt(weights)[:, None] * (left_out - targets)).reshape(len(left_out), -1)
    M = errors @ errors.T
    return simplex_minimiser(M / max(float(np.trace(M)), np.finfo(float).tiny), np.ones(len(M)), floor=1e-12)


def mixing_weights(left_out: Array, labels: NDArray[np.intp], weights: Array) -> Array:
    """Weights on the simplex that maximise the log-likelihood of the mixture of left-out probabilities, by EM."""
    likelihoods = left_out[:, np.arange(len(labels)), labels].clip(SMALLEST_PROBABILITY)
    found = np.full(len(left_out), 1.0 / len(left_out))
    for _ in range(EM_ROUNDS):
        responsibilities = found[:, None] * likelihoods
        found = (responsibilities / responsibilities.sum(axis=0)) @ weights / weights.sum()
    return found

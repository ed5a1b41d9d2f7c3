"""Kernels between bags for all estimators and bandwidths at once, each pair of rows compared once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from muhat.bags.distribution_kernel import evaluate_level2, resolve_level2
from muhat.kernels.base import Kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks
from muhat.linalg.gram import evaluate_fast
from muhat.means.nested import mean_weights
from muhat.reproduce.experiments.synthetic import ESTIMATORS
from muhat.types import Array

_RECIPES = {**ESTIMATORS, "KME": None}  # the plain average needs no fit


_ROW_TILE, _COLUMN_TILE = 256, 2048


class Bags(NamedTuple):
    """Bags of one size, shape (bags, size, columns), with the label of each, to train and to test on."""

    train: Array
    train_labels: NDArray[np.intp]
    test: Array
    test_labels: NDArray[np.intp]


class Inner(NamedTuple):
    """Inner products of mean elements: of training bags, of test bags with those, and squared norms of test bags."""

    train: Array
    test: Array
    test_norms: Array


class Level2(NamedTuple):
    """Kernel values between bags of fit, and of test bags with those."""

    kind: str
    multiple: float | None
    train: Array
    test: Array


def inner_products(bags: Bags, doublings: Sequence[int]) -> Iterator[tuple[int, str, Inner]]:
    """Inner products by the bandwidth σ² = median/2^doubling and by the estimator.

    The median is that of the pooled training rows. Halving σ² squares a Gaussian kernel, so that one evaluation of
    the kernel serves all bandwidths.
    """
    n, size, d = bags.train.shape
    kernel = Gaussian().resolve(bags.train.reshape(n * size, d))
    rows = np.concatenate([bags.train, bags.test])
    weights, norms = _weights(kernel, rows, doublings)
    G = np.zeros((len(doublings), len(ESTIMATORS), len(rows), n))
    for left in _tiles(len(rows), size, _ROW_TILE):
        for right in _tiles(n, size, _COLUMN_TILE):
            if right.start < left.stop:  # the triangle above is that below
                K = evaluate_fast(kernel, rows[left].reshape(-1, d), rows[right].reshape(-1, d))
                for i, power in enumerate(_powers(K, doublings)):
                    G[i, :, left, right] = _sums(power, weights[i][left], weights[i][right])
    for i, doubling in enumerate(doublings):
        for j, name in enumerate(ESTIMATORS):
            lower = np.tril(G[i, j, :n])
            yield doubling, name, Inner(lower + np.tril(lower, -1).T, G[i, j, n:], norms[i, j, n:])


def level2_grams(inner: Inner, multiples: Sequence[float]) -> Iterator[Level2]:
    """The linear kernel, and Gaussian ones whose bandwidths are multiples of the median distance of bags of fit."""
    yield Level2("linear", None, inner.train, inner.test)
    median = cast(Gaussian, resolve_level2(Gaussian(), inner.train))
    norms = np.diag(inner.train)
    for multiple in multiples:
        kernel = median.with_params(bandwidth=multiple * median.width)
        train = evaluate_level2(kernel, inner.train, norms, norms)
        yield Level2("gaussian", multiple, train, evaluate_level2(kernel, inner.test, inner.test_norms, norms))


def _tiles(n: int, size: int, rows: int) -> list[slice]:
    return list(blocks(n, max(1, rows // size)))


def _powers(K: Array, doublings: Sequence[int]) -> Iterator[Array]:
    """K to the power 2^doubling elementwise, doublings ascending; K is overwritten."""
    done = 0
    for doubling in doublings:
        for _ in range(doubling - done):
            K *= K
        done = doubling
        yield K


def _weights(kernel: Kernel, rows: Array, doublings: Sequence[int]) -> tuple[Array, Array]:
    """Weights of each bag's rows, (bandwidths, bags, estimators, size), and norms (bandwidths, estimators, bags)."""
    weights = np.empty((len(doublings), len(rows), len(ESTIMATORS), rows.shape[1]))
    norms = np.empty((len(doublings), len(ESTIMATORS), len(rows)))
    for b, bag in enumerate(rows):
        for i, K in enumerate(_powers(kernel.evaluate(bag, bag), doublings)):
            W = np.stack([mean_weights(recipe, K) for recipe in _RECIPES.values()])
            weights[i, b], norms[i, :, b] = W, ((W @ K) * W).sum(axis=1)
    return weights, norms


def _sums(K: Array, left: Array, right: Array) -> Array:
    """βᵀKγ for all pairs of bags and all estimators, from weights (bags, estimators, size)."""
    halfway = left @ K.reshape(len(left), left.shape[2], -1)
    return np.einsum("aebt,bet->eab", halfway.reshape(*left.shape[:2], len(right), -1), right)

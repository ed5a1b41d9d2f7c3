"""Bags of rows: conversion from lists, arrays and data frames, validation, storage and scaling of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from muhat._support.types import Array
from muhat._support.validation import (
    check_not_masked,
    check_not_path,
    check_not_query,
    check_rows,
    check_weights,
    first_missing,
    unchanged_on_error,
)
from muhat.linalg.blocks import blocks
from muhat.tables.encoder import TableEncoder, fit_encoder
from muhat.tables.frames import as_table, without_column
from muhat.tables.scales import ColumnScales

BLOCK = 1024
"""Rows and columns of a tile: 8 MB of float64. Products of 512 took a fifth longer, and those of 2,048 no less."""


class TakesBagsMixin(BaseEstimator):
    """For estimators whose samples are bags: scikit-learn is told that they take no matrix."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class BagTile(NamedTuple):
    rows: slice
    bags: slice
    weights: csr_array  # (bags, rows): maps rows to weighted sums over bags


@dataclass(frozen=True, eq=False)
class Bags:
    """Bags of rows, one below the other: bag i is ``rows[offsets[i]:offsets[i + 1]]``."""

    rows: Array
    offsets: NDArray[np.intp]

    @classmethod
    def of(cls, parts: Sequence[Array]) -> Self:
        """Bags from the rows of each."""
        return cls(np.concatenate(parts, dtype=np.float64), np.cumsum([0, *map(len, parts)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Rows of each bag."""
        return np.diff(self.offsets)

    def parts(self, values: Array) -> list[Array]:
        """Cut an array with one entry a row into one part a bag."""
        return np.split(values, self.offsets[1:-1])

    def tiles(self, weights: Array) -> Iterator[BagTile]:
        """Blocks of rows, with what sums them over the bags that they meet; a long bag spans several tiles."""
        for rows in blocks(len(self.rows), BLOCK):
            first = int(np.searchsorted(self.offsets, rows.start, "right")) - 1
            last = int(np.searchsorted(self.offsets, rows.stop, "left"))
            bounds = self.offsets[first : last + 1].clip(rows.start, rows.stop) - rows.start
            size = rows.stop - rows.start
            sums = csr_array((weights[rows], np.arange(size), bounds), shape=(last - first, size))
            yield BagTile(rows, slice(first, last), sums)


class EncodedBags(list[Array]):
    """Bags of an encoded table, with the labels of its features, by which models tell bags of another encoding.

    A slice keeps the labels. Other lists of the same bags are without them, and are compared by their width alone.
    """

    def __init__(self, bags: Iterable[Array], features: tuple[str, ...]) -> None:
        super().__init__(bags)
        self.features = features

    def __getitem__(self, index: Any) -> Any:
        chosen = super().__getitem__(index)
        return EncodedBags(chosen, self.features) if isinstance(index, slice) else chosen


def bags_from_groups(
    X: Any, groups: Any, *, encoder: TableEncoder | None = None, return_encoder: bool = False
) -> tuple[Any, ...]:
    """Cut a table into bags, one for each label.

    Parameters
    ----------
    X : array or data frame of shape (n, d), or array of shape (n,)
        A table, as a data frame of any library or an array; a vector is a table of one column. Categories, dates and
        missing values become numbers as in :func:`mmd_test`.
    groups : array of shape (n,), or str
        The label of each row; or the name of a column of a data frame, which the bags are then without.
    encoder : TableEncoder, optional
        That of an earlier call, so that bags of new tables have the same columns; default one of the rows of X.
    return_encoder : bool, default False
        Whether to return the encoder too, whose ``features`` name the columns of the bags.

    Returns
    -------
    bags : list of arrays of shape (n_i, d)
        The rows of each label, in their order in X. The list and its slices know the features of a table whose columns
        have names, and models refuse bags whose features differ from the features in ``fit``.
    labels : array
        The label of each bag, sorted.
    encoder : TableEncoder
        With ``return_encoder``.

    See Also
    --------
    BagScaler : Standardises the columns of bags.
    DistributionRidge, SupportMeasureClassifier, GroupAnomalyDetector : Models of bags.

    Examples
    --------
    >>> import muhat as mh
    >>> bags, labels = mh.bags_from_groups([[1.0], [2.0], [3.0]], ["b", "a", "b"])
    >>> labels.tolist(), [bag.ravel().tolist() for bag in bags]
    (['a', 'b'], [[2.0], [1.0, 3.0]])

    Put targets into the order of the labels: ``y = outcome.loc[labels]`` for a Series with the labels as its index.
    Tables with categories and missing values have an encoder, which later tables need too:

    >>> orders = {"shop": ["b", "a", "b"], "price": [3.0, None, 4.0], "paid": ["cash", "card", "card"]}
    >>> bags, labels, encoder = mh.bags_from_groups(orders, "shop", return_encoder=True)
    >>> [feature.label for feature in encoder.features]
    ['price', 'price = (missing)', 'paid = card', 'paid = cash']
    >>> bags[0].tolist()
    [[3.5, 1.0, 1.0, 0.0]]
    """
    check_not_path("X", X)
    if isinstance(groups, str):
        groups, X = without_column(X, groups)
    table = as_table(X)
    encoder = fit_encoder([table]) if encoder is None else encoder
    rows = encoder.transform(table)
    labels, codes = check_row_labels("groups", groups, len(rows))
    order = np.argsort(codes, kind="stable")
    bags = np.split(rows[order], np.cumsum(np.bincount(codes))[:-1])
    if encoder.named:
        bags = EncodedBags(bags, tuple(feature.label for feature in encoder.features))
    return (bags, labels, encoder) if return_encoder else (bags, labels)


def check_row_labels(name: str, given: Any, n: int, of: str = "row") -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The distinct labels, sorted, and the number of the label of each of n rows (or bags); or a ValueError."""
    if np.ndim(given) == 0:
        raise ValueError(f"{name}={given!r} must be the labels of {of}s, one per {of}")
    if np.ndim(given) > 1 and np.shape(given)[1:] != (1,):
        raise ValueError(f"{name} has shape {np.shape(given)}; pass one label per {of}, several joined into a text")
    values = column_or_1d(given)
    missing = first_missing(given if np.ma.is_masked(given) else values)
    if missing is not None:
        raise ValueError(f"{name}[{missing}] is missing; leave {of}s without a label out, or give them one")
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} labels for {n} {of}s; pass one label per {of}")
    try:
        return np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise ValueError(f"{name} mixes labels of the types {', '.join(kinds)}; make all of them texts") from error


def check_bag_weights(sample_weight: Any, n: int) -> Array:
    """Weights of bags, none of them negative and not all zero; ones by default."""
    if sample_weight is None:
        return np.ones(n)
    weights = check_weights("sample_weight", sample_weight, n, of="bag")
    if (weights < 0).any() or not weights.any():
        raise ValueError(
            f"sample_weight must not be negative, and not all zero; its entries reach from {weights.min():g} to "
            f"{weights.max():g}. Pass one weight a bag"
        )
    return weights


def check_labels(estimator: Any, bags: Any, y: Any) -> NDArray[Any]:
    """The class of each bag, of two classes or more, or a ValueError."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    check_not_masked("y", y)
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    if hasattr(bags, "__len__") and len(bags) != len(labels):
        raise ValueError(f"y has {len(labels)} entries for {len(bags)} bags; pass one entry per bag")
    check_classification_targets(labels)
    if len(np.unique(labels)) == 1:
        raise ValueError(
            f"y holds one class only, {labels.tolist()[0]!r}, and a classifier needs two; bags of one class are for "
            f"GroupAnomalyDetector"
        )
    return labels


def check_bags(bags: Any, estimator: Any, *, reset: bool) -> Bags:
    """Return bags of finite float64 rows of one width, or raise a ValueError which names the bag."""
    if not isinstance(bags, str):
        check_not_path("bags", bags)
        check_not_query("bags", bags)
    wrong = ""
    if len(getattr(bags, "shape", ())) == 2:
        labelled = "rows with a column of labels become bags by bags_from_groups(X, groups)"
        wrong = f", and not one matrix of shape {tuple(bags.shape)}; for one bag pass [bag], and {labelled}"
    elif isinstance(bags, dict):
        wrong = ", and is a dict; pass list(bags.values())"
    elif hasattr(bags, "ngroups"):
        wrong = ", and is a grouped data frame; pass [rows for _, rows in bags], or use bags_from_groups"
    elif isinstance(bags, str | bytes) or not hasattr(bags, "__len__") or not hasattr(bags, "__iter__"):
        wrong = f", and is {bags!r}"
    if wrong:
        raise ValueError(f"bags must be a list of matrices, one of shape (n_i, d) for each bag{wrong}")
    _check_encoding(getattr(bags, "features", None), estimator, reset)
    given = list(bags)
    if not given:
        raise ValueError("bags is empty; pass a list with at least one matrix of shape (n_i, d)")
    matrices = []
    for i, bag in enumerate(given):
        with _naming_bag(i):
            if _is_plain(bag):
                matrices.append(bag)
                continue
            given[i] = _as_table(bag)
            matrices.append(check_rows(given[i], name=f"bags[{i}]"))
    width, source = matrices[0].shape[1], "bags[0] has"
    if not reset:
        width, source = estimator.n_features_in_, "the bags of fit have"
    for i, matrix in enumerate(matrices):
        if (own := matrix.shape[1]) != width:
            raise ValueError(
                f"bags[{i}] has {own} column{'s' * (own != 1)} and {source} {width}; all bags must share their columns"
            )
    for i, table in enumerate(given):
        if i == 0 or not isinstance(table, np.ndarray):
            with _naming_bag(i):  # the names of columns, where bags are data frames
                validate_data(estimator, table, reset=reset and i == 0, skip_check_array=True)
    return Bags.of(matrices)


def _check_encoding(features: tuple[str, ...] | None, estimator: Any, reset: bool) -> None:
    """Remember the features of the bags of fit, and raise a ValueError where later bags are known to have others."""
    if reset:
        estimator._bag_features = features
    fitted = getattr(estimator, "_bag_features", None)
    if features is None or fitted is None or features == fitted:
        return
    pairs = zip_longest(features, fitted)
    i, (found, expected) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
    raise ValueError(
        f"bags has the feature {found!r} where the bags of fit had {expected!r} (feature {i}), because its table was "
        f"encoded by itself; encode it as the first one: bags, labels, encoder = bags_from_groups(X, groups, "
        f"return_encoder=True) for fit, then bags_from_groups(X_new, groups, encoder=encoder)"
    )


def _as_table(bag: Any) -> Any:
    """A vector (a one-dimensional array, a column of a data frame) as a table of one column."""
    vector = len(getattr(bag, "shape", ())) == 1 and len(bag) > 0
    return np.asarray(bag)[:, None] if vector else bag


def _is_plain(bag: Any) -> bool:
    """A finite matrix that needs no conversion; scikit-learn's check of a small bag takes longer than its use."""
    matrix = type(bag) is np.ndarray and bag.ndim == 2 and bag.size > 0
    return matrix and bag.dtype in (np.float64, np.float32) and bool(np.isfinite(bag).all())


@contextmanager
def _naming_bag(i: int) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        named = message.startswith((f"bags[{i}]", f"Input bags[{i}]"))
        raise ValueError(message if named else f"bags[{i}]: {message}") from error


class BagScaler(TakesBagsMixin, TransformerMixin, BaseEstimator):
    """Standardise the columns of bags: mean 0 and variance 1 over all rows of the bags of fit.

    scikit-learn's ``StandardScaler`` on the pooled rows, for pipelines whose samples are bags.

    Attributes
    ----------
    mean_, scale_ : arrays of shape (d,)
        Of the pooled rows; the scale of a constant column is 1.
    n_features_in_ : int
        Columns of the bags.

    See Also
    --------
    bags_from_groups : Bags from the rows of a table.
    DistributionRidge : Regression on bags.
    sklearn.preprocessing.StandardScaler : The same for rows.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(30) % 2
    >>> bags = [rng.normal(scale=1 + label, size=(20, 2)) * [1, 1000] for label in y]
    >>> make_pipeline(mh.BagScaler(), mh.SupportMeasureClassifier()).fit(bags, y).score(bags, y)
    1.0
    """

    @unchanged_on_error
    def fit(self, bags: Any, y: Any = None) -> Self:
        """Learn mean and scale of the columns."""
        units = ColumnScales.of(check_bags(bags, self, reset=True).rows)
        self.mean_, self.scale_ = units.centre, units.scale
        return self

    def transform(self, bags: Any) -> list[Array]:
        """Standardise bags."""
        check_is_fitted(self, "mean_")
        data = check_bags(bags, self, reset=False)
        return data.parts(ColumnScales(self.mean_, self.scale_).divide(data.rows))

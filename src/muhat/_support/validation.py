"""Validation of input, with messages that name the parameter, the value and the remedy."""

from __future__ import annotations

import contextlib
import numbers
import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar, cast

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.utils import _set_output, gen_batches
from sklearn.utils.validation import check_array, validate_data

from muhat._support.types import Array, RandomState

GRAM_TOLERANCE = 1e-8
"""Largest asymmetry and negative eigenvalue, relative to the trace, that counts as rounding."""

INDEFINITE_GRAM = (
    "{name} is not positive semi-definite beyond rounding, so it is no Gram matrix of a kernel; "
    "use a positive definite kernel, or clip the negative eigenvalues first"
)

_OWN_FILES = (f"{Path(__file__).parents[1]}{os.sep}", contextlib.__file__, _set_output.__file__)
"""Frames of the package, and of the decorators that it wraps functions in."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line outside of this package from which it was called, however deep inside the warning arises."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_FILES):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def shown(value: Any) -> str:
    """What a message shows of a wrong value: its repr on one line, the beginning where it is a table."""
    return shorten(repr(value), 80)


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    finite: bool = True,
    or_else: str = "",
) -> float:
    """Return ``value`` as a float inside [low, high] (or (low, high]), or raise a ValueError."""
    interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if finite and np.isinf(high) else ']'}"
    alternative = f" or be {or_else}" if or_else else ""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    inside = is_number and low <= value <= high and not (open_low and value == low) and not (finite and np.isinf(value))
    if not inside:
        raise ValueError(f"{name}={shown(value)} must be a number in {interval}{alternative}")
    return float(value)


def check_number_or(name: str, value: Any, *words: str, or_else: str = "", **bounds: Any) -> float | None:
    """Return a number as :func:`check_number` does, or None for a word such as "loo": the data will choose it."""
    if isinstance(value, str) and value in words:
        return None
    return check_number(name, value, or_else=or_else or " or ".join(f'"{word}"' for word in words), **bounds)


def check_count(name: str, value: Any, *, low: int = 1) -> int:
    """Return ``value`` as an int of at least ``low``, or raise a ValueError."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name}={shown(value)} must be a whole number of at least {low}")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` as a bool, or raise a ValueError."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={shown(value)} must be True or False")
    return bool(value)


def check_rows(
    X: Any,
    *,
    estimator: Any = None,
    name: str = "X",
    reset: bool = True,
    min_rows: int = 1,
    copy: bool | None = None,
) -> Array:
    """Return a finite float64 matrix; with an estimator, check or record its feature names and width too.

    What an estimator learns from, and so may keep, is copied by default.
    """
    copy = estimator is not None and reset if copy is None else copy
    plain = type(X) is np.ndarray and X.dtype == np.float64
    if plain and X.ndim == 2 and X.flags.c_contiguous and len(X) >= min_rows and X.shape[1]:
        # Most arrays pass all checks as they are, and to see that takes a twentieth of the time of the checks.
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(X.sum())
        if finite and (estimator is None or _records_width(estimator, X.shape[1], reset)):
            return X.copy() if copy else X
    options = {"dtype": np.float64, "ensure_min_samples": min_rows, "order": "C", "copy": copy}
    if not plain:
        _check_kind(name, X)
    try:
        with np.errstate(invalid="ignore"):  # scikit-learn adds up all entries, of which some may be very large
            if estimator is None:
                return check_array(X, input_name=name, **options)
            return validate_data(estimator, X, reset=reset, **options)
    except (ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0].removesuffix(".")
        message = next((message for sign, message in _MESSAGES.items() if sign in reason), None)
        if message is None:
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(message.format(name=name, reason=reason)) from error


def _records_width(estimator: Any, width: int, reset: bool) -> bool:
    """Record or check the number of columns of an array without names; False where scikit-learn has to say more."""
    if hasattr(estimator, "feature_names_in_"):
        return False
    if reset:
        estimator.n_features_in_ = width
        return True
    return bool(getattr(estimator, "n_features_in_", None) == width)


def column_names(X: Any) -> list[str] | None:
    """The names of the columns of a table, where all of them are text."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def in_column_order(X: Any, names: Any) -> Any:
    """A table with its columns in the order of ``names``, or a ValueError; anything without names as it is."""
    if names is None:
        return X
    found = column_names(X)
    if found is None or found == list(names):
        return X
    check_columns(found, list(names), "X", remedy="fit to these columns")
    return X[list(names)]


def first_missing(labels: Any) -> int | None:
    """The number of the first label that is masked, None, NaN, NaT or NA; None where no label is missing."""
    if np.ma.is_masked(labels):
        return int(np.ma.getmaskarray(labels).argmax())
    values = np.asarray(labels)
    if values.dtype.kind in "mM":
        absent = np.isnat(values)
    else:  # as objects: a list of texts and NaN becomes an array of texts otherwise
        absent = np.array([v is None or not equals_itself(v) for v in np.asarray(labels, dtype=object)], dtype=bool)
    return int(absent.argmax()) if absent.any() else None


def equals_itself(value: Any) -> bool:
    """False for NaN and NaT, which differ from themselves, and for NA, whose comparison is NA."""
    same = value == value
    return isinstance(same, bool | np.bool_) and bool(same)


def check_columns(found: list[Any], names: list[Any], table: str, remedy: str) -> None:
    """Raise a ValueError where the columns that were found are not those that are asked for, in any order."""
    present, asked = set(found), set(names)
    missing, unknown = [name for name in names if name not in present], [name for name in found if name not in asked]
    if missing or unknown or len(found) != len(names):
        parts = [
            f"is missing the columns {_first_of(missing)}" if missing else "",
            f"has the unexpected columns {_first_of(unknown)}" if unknown else "",
        ]
        what = " and ".join(part for part in parts if part) or "has a column twice"
        raise ValueError(f"{table} {what}; pass the columns {_first_of(names)}, rename them, or {remedy}")


def _first_of(names: list[Any], most: int = 20) -> str:
    """A list of names, the first of many."""
    return str(names) if len(names) <= most else f"{str(names[:most])[:-1]}, ... {len(names) - most} more]"


def check_not_path(name: str, X: Any) -> None:
    """Raise a ValueError where the name of a file stands for its rows."""
    if isinstance(X, str | PathLike):
        raise ValueError(f"{name}={X!r} is not a matrix; read the file first, for example by pandas.read_csv")


def check_not_query(name: str, X: Any) -> None:
    """Raise a ValueError where a query that has not run stands for its rows."""
    if type(X).__name__ in _QUERIES:
        raise ValueError(
            f"{name} is a {type(X).__name__}, which holds no rows yet; pass {name}{_QUERIES[type(X).__name__]}"
        )


_QUERIES = {"LazyFrame": ".collect()", "DuckDBPyRelation": ".df()"}
"""Types of queries, of polars and DuckDB, and what runs them."""


def check_not_masked(name: str, values: Any, remedy: str = "") -> None:
    """Raise a ValueError where entries are masked, which numpy would read as they stand below the mask."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; drop such rows first{remedy}")


def _check_kind(name: str, X: Any) -> None:
    """Refuse what numpy would take for numbers, or for a table: dates, masked entries, the name of a file."""
    check_not_path(name, X)
    check_not_query(name, X)
    check_not_masked(name, X, f", np.ma.compress_rows({name})")
    columns = getattr(X, "columns", [""])
    types = [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", [])
    dates = [f"{column} {kind}".strip() for column, kind in zip(columns, types, strict=False) if _is_temporal(kind)]
    if dates:
        raise ValueError(
            f"{name} holds dates or durations ({dates[0]}); drop such columns, or turn them into numbers first, such "
            f"as days since the earliest"
        )


def _is_temporal(kind: Any) -> bool:
    """Whether a type of columns, of numpy, pandas or polars, is one of dates, times or durations."""
    return getattr(kind, "kind", None) in ("m", "M") or (hasattr(kind, "is_temporal") and kind.is_temporal())


_MESSAGES = {
    "could not convert": "{name} holds values that are not numbers ({reason}); encode or drop such columns first, for "
    "example with sklearn.preprocessing.OneHotEncoder",
    "contains NaN": "{reason}; drop such rows, {name}[np.isfinite({name}).all(axis=1)], or fill in missing values by "
    "sklearn.impute.SimpleImputer",
    "argument must be": "{name} holds values that are not numbers ({reason}); pass a matrix: an array, a data frame or "
    "a list of rows",
    "Cannot cast": "{name} is an array of records; make it a matrix, pandas.DataFrame({name})",
    "at least one array or dtype": "{name} has no columns; pass one or more",
    "inhomogeneous": "the rows of {name} have different lengths; give each row the same columns, and pass bags of rows "
    "to DistributionKernel or a support measure machine",
    "Complex data": "{reason}; pass real and imaginary parts as columns, np.hstack([{name}.real, {name}.imag])",
    "got scalar array": "{name} is not a matrix; pass rows and columns, such as [[1.0, 2.0], [3.0, 4.0]]",
    "contains infinity": "{reason}; drop such rows, {name}[np.isfinite({name}).all(axis=1)], or rescale {name}",
    "array with dim": "{reason}; bags of rows go as a list of matrices to DistributionKernel or a support measure "
    "machine, and {name}.reshape(len({name}), -1) makes one row of each",
    "sample(s)": "{reason}; rows are observations and columns are features, so that n numbers have shape (n, 1)",
}
"""Phrases of scikit-learn's messages, and the remedy that is added to each."""


def check_weights(name: str, weights: Any, n: int, of: str = "row") -> Array:
    """Return ``n`` finite weights of any sign, one ``of`` each thing."""
    check_not_masked(name, weights)
    try:
        weights = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, one per {of} ({error})") from error
    if weights.shape != (n,):
        raise ValueError(f"{name} has shape {weights.shape} and must have one entry per {of}: ({n},)")
    if not np.isfinite(weights).all():
        raise ValueError(f"{name} must be finite; entry {np.flatnonzero(~np.isfinite(weights))[0]} is not")
    return weights


def check_counts(sample_weight: Any, n: int) -> Array | None:
    """Return how often each of ``n`` rows counts: weight 2 is the row twice, 0 the row absent; None is once each."""
    if sample_weight is None:
        return None
    weights = check_weights("sample_weight", sample_weight, n)
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative; its smallest entry is {weights.min():g}")
    total = weights.sum()
    if total == 0:
        raise ValueError("sample_weight is zero for every row; at least two rows must be present")
    if not total > 1:
        raise ValueError(
            f"sample_weight sums to {total:g} and must sum to more than 1: it counts repetitions of rows "
            f"(weight 2 is the row twice), so multiply it by the number of rows that it stands for"
        )
    return weights


def is_precomputed(kernel: Any) -> bool:
    """Whether a parameter ``kernel`` says that Gram matrices stand for the data."""
    return isinstance(kernel, str) and kernel == "precomputed"


def check_precomputed(kernel: Any, name: str = "kernel") -> None:
    """Raise a ValueError unless ``kernel`` is "precomputed", the one word that may stand for a kernel object."""
    if not is_precomputed(kernel):
        raise ValueError(
            f"{name}={shown(kernel)} must be a kernel object such as muhat.Gaussian(), or 'precomputed' "
            f"with a Gram matrix in place of X; wrap other kernels by muhat.as_kernel"
        )


def check_gram(K: Any, *, name: str = "K", definite: bool = True) -> Array:
    """Return a Gram matrix, symmetric to the last bit, or raise a ValueError.

    Whether it is positive semi-definite costs a Cholesky decomposition; ``definite=False`` leaves that out. The
    matrix is copied only where it has to be made symmetric.
    """
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} has shape {K.shape}; kernel='precomputed' needs a square Gram matrix k(X, X)")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.trace(K) * len(K)):
            raise ValueError(f"{name} has entries up to {np.abs(K).max():.3g}, whose sums overflow; rescale it first")
    asymmetry = _asymmetry(K)
    if asymmetry > GRAM_TOLERANCE * np.abs(np.diag(K)).max() and asymmetry > GRAM_TOLERANCE * np.abs(K).max():
        raise ValueError(
            f"{name} is not symmetric (entries differ by up to {asymmetry:.3g}); "
            f"pass the Gram matrix k(X, X) of the training rows"
        )
    if asymmetry > 0:
        K = 0.5 * (K + K.T)
    if definite and K.any() and not _is_positive_semidefinite(K, GRAM_TOLERANCE * np.trace(K)):
        raise ValueError(INDEFINITE_GRAM.format(name=name))
    return K


def _asymmetry(K: Array) -> float:
    """The largest |K_ij − K_ji|, a pair of tiles at a time."""
    tiles = list(gen_batches(len(K), _TILE))
    pairs = [(rows, columns) for i, rows in enumerate(tiles) for columns in tiles[i:]]
    return max(float(np.abs(K[rows, columns] - K[columns, rows].T).max()) for rows, columns in pairs)


_TILE = 256
"""Rows of a strip of the matrix that is compared with its transpose: it stays in the cache."""


def _is_positive_semidefinite(K: Array, tolerance: float) -> bool:
    if not tolerance > 0:
        return False
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += tolerance
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def check_overflow(kernel: Any, diagonal: Array) -> None:
    """Raise a ValueError where sums over the Gram matrix, bounded by its diagonal, would overflow."""
    with np.errstate(over="ignore"):
        if not np.isfinite(diagonal.max() * float(len(diagonal)) ** 2):
            raise ValueError(f"{kernel} overflows on X: its values reach {diagonal.max():.3g}. Rescale X first")


def check_rng(random_state: RandomState) -> np.random.Generator:
    """Return a Generator from anything that scikit-learn or numpy takes as a seed."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r} must be None, a non-negative whole number, a numpy Generator, "
            f"SeedSequence or RandomState"
        ) from error


_Method = TypeVar("_Method", bound=Callable[..., Any])


def unchanged_on_error(method: _Method) -> _Method:
    """Decorator for ``fit``: a call that raises leaves the estimator, and the names of its columns, as they were.

    Attributes that the call set are removed and all others get their earlier values, by the state that an estimator
    pickles. Objects that an attribute holds are not copied, so ``fit`` must replace them and never change them.
    """

    @wraps(method)
    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(self.__getstate__())
        try:
            return method(self, *args, **options)
        except BaseException:
            for name in self.__getstate__().keys() - before.keys():
                delattr(self, name)
            for name, value in before.items():
                setattr(self, name, value)
            raise

    return cast(_Method, wrapped)

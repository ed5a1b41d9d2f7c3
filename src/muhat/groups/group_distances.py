"""Distances between many groups of rows, to a control or between all pairs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_number, check_rng, warn_caller
from muhat.bags.data import check_row_labels
from muhat.features.nystroem import Nystroem
from muhat.groups.estimates import GroupEstimates
from muhat.groups.group_results import AgainstControl, GroupDistances
from muhat.groups.group_tests import (
    COORDINATES,
    Map,
    Screen,
    adjusted_pvalues,
    column_coordinates,
    global_pvalue,
    join,
)
from muhat.groups.sums import GroupSums, sums_of_sorted, sums_of_units, unit_means
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.radial import Gaussian
from muhat.linalg.blocks import blocks, rows_by_value
from muhat.linalg.resources import check_memory, one_blas_thread
from muhat.tables.encoder import encode_samples
from muhat.tables.frames import without_column

LANDMARKS = 300
"""Landmarks of the features; more change U by a twentieth of its standard error (``benchmarks/group_distances.py``)."""

LANDMARK_ROWS = 20_000
"""Rows, drawn by value, from which a bandwidth "median" comes."""

_GROUPS = 256


class _Units(NamedTuple):
    """Rows in the order of their groups, and of their clusters within groups; a unit is a row or a cluster."""

    rows: Array
    firsts: NDArray[np.intp]  # where each unit begins
    offsets: NDArray[np.intp]  # where each group begins, in units
    labels: NDArray[Any]
    strata: NDArray[np.intp] | None  # of the units

    def means(self, function: Callable[[Array], Array], group: int) -> Array:
        """Averages of a function of rows over each unit of a group."""
        firsts = self.firsts[slice(*self.offsets[group : group + 2])]
        end = self.firsts[self.offsets[group + 1]] if group + 1 < len(self.labels) else len(self.rows)
        return unit_means(function, self.rows[firsts[0] : end], firsts - firsts[0])


@one_blas_thread()
def group_distances(
    X: Any,
    groups: Any = None,
    *,
    control: Any = None,
    kernel: Kernel = Gaussian(),
    n_resamples: int = 999,
    correction: str = "bh",
    level: float = 0.9,
    strata: Any = None,
    clusters: Any = None,
    scale: Any = "auto",
    random_state: RandomState = None,
) -> GroupDistances:
    r"""Squared distances (MMD²) between many groups of rows, with intervals and p-values.

    Perturbations against a control, patients, sensors, schools: each group is a sample, most are small, and the plain
    estimates of their distances are mostly noise. Distances are estimated by empirical Bayes: what all groups say of
    their spread tells how far each estimate is to be trusted. With ``control`` each group has its distance from it,
    with a score interval and a permutation p-value; without, ``matrix`` has the distances of all pairs.

    Parameters
    ----------
    X : array or data frame of shape (n, d), or GroupSums
        A table, as a data frame of any library or an array. Categories, dates and missing values become numbers as in
        :func:`mmd_test`. Sums of the parts of a table give estimates and intervals, without p-values.
    groups : array of shape (n,), or str
        The label of each row, or the name of a column of a data frame. Each group needs two rows.
    control : label, optional
        The group that others are compared with.
    kernel : Kernel, default Gaussian()
        The kernel between rows; "median" is resolved once, on all rows.
    n_resamples : int, default 999
        Permutations for each group; 0 leaves the p-values out. Groups with small p-values are permuted more often.
    correction : "bh" or "holm", default "bh"
        Adjusted p-values control the false discovery rate (Benjamini and Hochberg) or the familywise error (Holm).
    level : float, default 0.9
        The coverage of each interval.
    strata : array of shape (n,), or str, optional
        Labels within which rows are permuted: donors, plates, batches. They concern p-values, not distances.
    clusters : array of shape (n,), or str, optional
        Labels of rows that depend on each other, such as the wells or the donors that rows come from, each in one
        group. A cluster then counts as one observation, everywhere.
    scale : "auto", "columns", None or array of d positive numbers, default "auto"
        What columns are divided by. "columns" is the mean absolute deviation from the median; "auto" leaves columns as
        they are, with a warning where one column makes up nearly all of the distance.
    random_state : None, int, Generator, SeedSequence or RandomState
        Seed of the permutations. Distances and intervals do not depend on it.

    Returns
    -------
    GroupDistances
        ``to_frame()``, ``matrix``, ``global_pvalue`` and ``plot()``.

    See Also
    --------
    mmd_test : Two samples, with more statistics.
    BagPrior : ``log_odds``, for finding groups of one distribution.
    GroupAnomalyDetector : Groups that are unlike all others.

    Notes
    -----
    All is computed in 300 Nyström features, in O(N m²) for N rows and O(G² m) for G groups; permutations cost
    O(N m) each. Landmarks are drawn by the values of rows and never by their number, so that the order of the rows
    does not tell the groups.

    References
    ----------
    B. Efron, C. Morris. Stein's estimation rule and its competitors: an empirical Bayes approach. JASA 1973.

    C. Morris. Parametric empirical Bayes inference. JASA 1983.

    Y. Benjamini, Y. Hochberg. Controlling the false discovery rate. JRSS B 1995.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["control", "a", "b", "c", "d", "e"], [200, 30, 30, 30, 30, 30])
    >>> X = rng.normal(size=(350, 5))
    >>> X[groups == "b"] += 1.0
    >>> result = mh.group_distances(X, groups, control="control", random_state=0)
    >>> result.groups[result.adjusted < 0.05].tolist()
    ['b']
    """
    n_resamples = check_count("n_resamples", n_resamples, low=0)
    level = check_number("level", level, low=0, high=0.9999, open_low=True)
    rng = check_rng(random_state)
    if correction not in ("bh", "holm"):
        raise ValueError(f'correction={correction!r} must be "bh" or "holm"')
    if isinstance(X, GroupSums):
        for name, value in (("groups", groups), ("strata", strata), ("clusters", clusters)):
            if value is not None:
                raise ValueError(f"{name} is part of sums of groups already; leave it out")
        if kernel not in (Gaussian(), X.kernel):
            raise ValueError(f"kernel={kernel!r}, and the sums have {X.kernel!r}; leave kernel out")
        units, sums = None, X
    else:
        check_kernel("kernel", kernel)
        units = _units(X, groups, strata, clusters, scale)
        sums = _sums(units, kernel)
    labels, c = sums.labels, _check_groups(sums, control)
    estimates = GroupEstimates.of(sums)
    tests = _Tests() if units is None or n_resamples == 0 else _tests(units, sums, c, n_resamples, rng)
    if c is None:
        return GroupDistances(labels, sums.sizes, None, None, tests.together, sums.kernel, labels, estimates)
    others = np.delete(np.arange(len(labels)), c)
    distance = estimates.to_one(c, others)
    own = None if units is None else _witness_squares(units, sums.features, estimates, c)
    low, high = estimates.interval(c, others, level, own)
    against = AgainstControl(
        distance,
        np.minimum(low, distance),  # rarely, an estimate is shrunk beyond its interval, which then reaches to it
        np.maximum(high, distance),
        estimates.unbiased(np.array([c]), others)[0],
        tests.each,
        None if tests.each is None else adjusted_pvalues(tests.each, correction),
        level,
        correction,
    )
    name = labels.tolist()[c]
    return GroupDistances(
        labels[others], sums.sizes[others], name, against, tests.together, sums.kernel, labels, estimates
    )


def _units(X: Any, groups: Any, strata: Any, clusters: Any, scale: Any) -> _Units:
    """Checked rows in the order of groups and clusters."""
    given = {"groups": groups, "strata": strata, "clusters": clusters}
    if groups is None:
        raise ValueError("groups=None must be the label of each row, or the name of a column of X")
    for name, value in given.items():
        if isinstance(value, str):
            given[name], X = without_column(X, value, parameter=name)
    rows = encode_samples({"X": X}, scale).scaled
    n = len(rows)
    labels, codes = check_row_labels("groups", given["groups"], n)
    of_strata = None if strata is None else check_row_labels("strata", given["strata"], n)[1]
    if clusters is None:
        order = np.argsort(codes, kind="stable")
        firsts = np.arange(n)
    else:
        names, of_clusters = check_row_labels("clusters", given["clusters"], n)
        _check_constant(of_clusters, codes, names, "groups", "use strata= for labels that several groups share")
        if of_strata is not None:
            _check_constant(of_clusters, of_strata, names, "strata", "clusters must lie within strata")
        order = np.lexsort((of_clusters, codes))
        sorted_clusters = of_clusters[order]
        firsts = np.flatnonzero(np.r_[True, sorted_clusters[1:] != sorted_clusters[:-1]])
    offsets = np.searchsorted(codes[order][firsts], np.arange(len(labels) + 1))
    return _Units(rows[order], firsts, offsets, labels, None if of_strata is None else of_strata[order][firsts])


def _check_constant(inner: Any, outer: Any, names: Any, of: str, remedy: str) -> None:
    """Raise a ValueError where rows with one inner label have several outer ones."""
    outers = np.bincount(np.unique(np.column_stack([inner, outer]), axis=0)[:, 0])
    if (outers > 1).any():
        raise ValueError(f"the cluster {names[int(np.argmax(outers > 1))]!r} has rows in several {of}; {remedy}")


def _sums(units: _Units, kernel: Kernel) -> GroupSums:
    """Sums of the groups in features whose landmarks know nothing of the groups."""
    # By row number, a group in the order of rows would have a fixed number of landmarks, and its test a wrong level.
    rows, rng = units.rows, np.random.default_rng(0)
    sample = rows[rows_by_value(rows, LANDMARK_ROWS, rng)]
    landmarks = rows[rows_by_value(rows, LANDMARKS, rng)]
    features = Nystroem(kernel.resolve(sample), landmarks=landmarks).fit(landmarks)
    if len(units.firsts) == len(rows):
        return sums_of_sorted(rows, np.diff(units.offsets), units.labels, features)
    need = 2 * 8.0 * len(units.firsts) * features.n_features_out_
    check_memory(need, None, f"features of {len(units.firsts):,} clusters", "use fewer clusters")
    means = unit_means(features.evaluate, rows, units.firsts)
    return sums_of_units(means, units.offsets, units.labels, features)


def _witness_squares(units: _Units, features: Any, estimates: GroupEstimates, c: int) -> tuple[Array, Array]:
    """Sums of squares of (z − x_i)ᵀδ, the witness of each group and the control, over both; δ = x_i − x_c."""
    others = np.delete(np.arange(len(units.labels)), c)
    apart = (estimates.x[others] - estimates.x[c]) / np.sqrt(estimates.unit)

    def squares(group: int, some: Array) -> Array:
        values = units.means(lambda part: features.evaluate(part) @ some.T, group)
        return np.asarray(np.square(values - values.mean(axis=0)).sum(axis=0))

    theirs = [squares(int(g), apart[[k]]) for k, g in enumerate(others)]
    return np.concatenate(theirs), np.concatenate([squares(c, apart[part]) for part in blocks(len(apart), _GROUPS)])


def _check_groups(sums: GroupSums, control: Any) -> int | None:
    """The number of the control, if there is one; or a ValueError where groups have no distances."""
    labels, sizes = sums.labels, sums.sizes
    if len(labels) < 2:
        raise ValueError(f"groups holds one label, {labels.tolist()[0]!r}, and distances need two groups or more")
    if sizes.min() < 2:
        alone = labels[sizes < 2].tolist()
        raise ValueError(
            f"{len(alone):,} of {len(labels):,} groups have a single row (or cluster), such as {alone[0]!r}, which "
            f"says nothing of its own spread; leave them out"
        )
    if control is None:
        return None
    at = np.flatnonzero([label == control for label in labels.tolist()])
    if len(at) != 1:
        shown = ", ".join(repr(label) for label in labels[:5].tolist())
        raise ValueError(f"control={control!r} is none of the {len(labels):,} groups, such as {shown}")
    return int(at[0])


class _Tests(NamedTuple):
    """P-values of all groups together, and of each group against the control."""

    together: float = float("nan")
    each: Array | None = None


def _tests(units: _Units, sums: GroupSums, c: int | None, n_resamples: int, rng: np.random.Generator) -> _Tests:
    rows, firsts, offsets, labels, strata = units
    columns = rows if len(firsts) == len(rows) else unit_means(lambda part: part, rows, firsts)
    mapped = Map.of(sums.sizes @ sums.means / sums.sizes.sum(), sums.covariance)
    need = 3 * 8.0 * len(firsts) * (columns.shape[1] + 2 * COORDINATES)
    check_memory(need, None, f"coordinates of {len(firsts):,} rows", "use n_resamples=0, or fewer rows")
    coordinates = join(
        unit_means(lambda part: (sums.features.evaluate(part) - mapped.centre) @ mapped.axes, rows, firsts),
        mapped,
        column_coordinates(columns),
    )
    together = global_pvalue(coordinates, offsets, strata, n_resamples, rng)
    if c is None:
        return _Tests(together)
    members = [np.arange(*pair) for pair in pairwise(offsets)]
    others = np.delete(np.arange(len(labels)), c)
    screen = Screen.of(coordinates, members[c], [members[g] for g in others], strata)
    apart = [labels[g] for g, cells in zip(others, screen.groups, strict=True) if not cells]
    if apart:
        warn_caller(f"{len(apart):,} groups share no stratum with the control, such as {apart[0]}; their p-value is 1")
    return _Tests(together, screen.two_stages(n_resamples, rng))

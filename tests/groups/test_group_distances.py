"""Distances of many groups: the whole function, by properties."""

import html
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from errors import refused
from numpy.testing import assert_allclose, assert_array_equal
from workers import processes

import muhat as mh
from muhat.groups import GroupSums
from muhat.groups import sums as sums_of_groups
from muhat.groups.estimates import GroupEstimates
from muhat.groups.group_distances import _sums, _units, _witness_squares


def screen(seed, sizes=(60, 2, 5, 9, 14, 20, 30), d=3, shift=0.0):
    """Groups of normal rows, the first the control; the last is shifted."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
    X = rng.normal(size=(len(labels), d))
    X[labels == f"g{len(sizes) - 1}", 0] += shift
    return X, labels


def unbiased_mmd(K, a, b):
    """U by its loops: means of kernel values over pairs of different rows."""

    def within(rows):
        return np.mean([K[i, j] for i in rows for j in rows if i != j])

    return within(a) + within(b) - 2 * np.mean([K[i, j] for i in a for j in b])


@pytest.mark.parametrize("kernel", [mh.Gaussian(1.3), mh.Laplace(2.0), mh.Linear()])
def test_unbiased_distances_are_those_of_loops(kernel):
    """With as many landmarks as rows the features are exact; the tolerance is that of directions left out."""
    X, labels = screen(0, shift=1.0)
    result = mh.group_distances(X, labels, control="g0", kernel=kernel, n_resamples=0)
    K, rows = kernel(X), {label: np.flatnonzero(labels == label) for label in np.unique(labels)}
    expected = [[0.0 if a is b else unbiased_mmd(K, a, b) for b in rows.values()] for a in rows.values()]
    assert_allclose(result.unbiased_matrix, expected, atol=1e-7)
    assert_allclose(result.unbiased, expected[0][1:], atol=1e-7)


def test_frame_matrix_and_displays():
    X, labels = screen(1, shift=2.0)
    result = mh.group_distances(X, labels, control="g0", random_state=0)
    frame = result.to_frame()
    assert list(frame) == ["group", "n", "distance", "low", "high", "unbiased", "pvalue", "adjusted"]
    assert frame["group"][0] == "g6"
    assert frame["distance"].is_monotonic_decreasing
    assert frame["pvalue"].min() >= 1 / 1000
    assert (frame["adjusted"] >= frame["pvalue"]).all()
    assert ((frame["low"] <= frame["distance"]) & (frame["distance"] <= frame["high"])).all()
    assert result.matrix.shape == (7, 7)
    assert_array_equal(result.matrix, result.matrix.T)
    assert re.search(r"^GroupDistances\(6 groups against g0: 1 differ", repr(result))
    assert len(repr(result).splitlines()) == 5
    assert repr(result).endswith("and 3 more: to_frame()")
    three = mh.group_distances(*(part[labels < "g4"] for part in (X, labels)), control="g0", n_resamples=0)
    assert [line.split(":")[0].strip() for line in repr(three).splitlines()[1:]] == three.groups[three.order].tolist()
    assert "<svg" in result._repr_html_()
    assert "GroupEstimates" not in result._repr_html_()
    assert f"<td>30</td><td>{result.distance.max():.3g}</td>" in result._repr_html_()
    pairs = mh.group_distances(X, labels, n_resamples=99, random_state=0)
    assert_array_equal(pairs.to_frame().to_numpy(), pairs.matrix)
    assert pairs._repr_html_().count("<svg") == 10
    assert pairs.global_pvalue == 0.01
    with pytest.raises(AttributeError, match="needs a control"):
        pairs.distance  # noqa: B018 - it raises
    assert_allclose(pickle.loads(pickle.dumps(result)).distance, result.distance)


def test_labels_are_escaped_in_notebooks():
    X, labels = screen(2)
    named = np.where(labels == "g1", "<b>", labels)
    for control in ("g0", None):
        shown = mh.group_distances(X, named, control=control, n_resamples=0)._repr_html_()
        assert html.escape("<b>") in shown
        assert "<b>" not in shown


def test_pictures():
    X, labels = screen(3)
    display = mh.group_distances(X, labels, control="g0", n_resamples=99).plot()
    assert display.ax_.get_yticklabels()[0].get_text() in labels
    assert mh.group_distances(X, labels, n_resamples=0).plot().ax_.images


def test_frames_series_and_columns_are_taken():
    X, labels = screen(4)
    frame = pd.DataFrame(X, columns=list("abc")).assign(drug=pd.Categorical(labels))
    plain = mh.group_distances(X, labels, control="g0", random_state=0).to_frame()
    for given in ((frame, "drug"), (frame[list("abc")], frame["drug"])):
        pd.testing.assert_frame_equal(mh.group_distances(*given, control="g0", random_state=0).to_frame(), plain)
    mixed = frame.assign(kind=np.where(np.arange(len(X)) % 3, "x", None), a=frame["a"].where(frame["a"] < 2))
    assert np.isfinite(mh.group_distances(mixed, "drug", control="g0", n_resamples=99).distance).all()


def test_estimates_do_not_depend_on_the_order_of_rows_the_seed_or_names():
    X, labels = screen(5, shift=1.0)
    order = np.random.default_rng(0).permutation(len(X))
    one = mh.group_distances(X, labels, control="g0", random_state=0)
    other = mh.group_distances(X[order], labels[order], control="g0", random_state=1)
    for name in ("distance", "low", "high", "unbiased", "matrix"):
        assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-6, atol=1e-9)
    again = mh.group_distances(X, labels, control="g0", random_state=0)
    assert_array_equal(again.pvalue, one.pvalue)


def test_sums_of_parts_give_the_estimates_of_the_table():
    X, labels = screen(6, shift=1.0)
    features = mh.Nystroem(mh.Gaussian(1.5), 40, random_state=0).fit(X[::2])
    order = np.random.default_rng(0).permutation(len(X))
    whole = GroupSums.of(X, labels, features)
    parts = sum(GroupSums.of(X[part], labels[part], features) for part in np.array_split(order, 5))
    for name in ("sizes", "means", "spreads", "scatter"):
        assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-12)
    one, other = (mh.group_distances(sums, control="g0") for sums in (whole, parts))
    for name in ("distance", "low", "high", "matrix"):
        assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-8, atol=1e-12)
    assert np.isnan(one.global_pvalue)
    assert one.pvalue is None
    with pytest.raises(ValueError, match="different features"):
        whole + GroupSums.of(X, labels, mh.Nystroem(n_components=9, random_state=0).fit(X[:50]))
    with pytest.raises(ValueError, match="groups is part of sums"):
        mh.group_distances(whole, labels)


@pytest.mark.slow
def test_parts_on_workers_give_the_estimates_of_the_table():
    X, labels = screen(6, shift=1.0)
    features = mh.Nystroem(mh.Gaussian(1.5), 40, random_state=0).fit(X[::2])
    with processes(2) as client:
        cuts = np.array_split(np.random.default_rng(0).permutation(len(X)), 5)
        parts = client.map(lambda part: GroupSums.of(*part, features), [(X[rows], labels[rows]) for rows in cuts])
        found = mh.group_distances(client.submit(sum, parts).result(), control="g0")
    expected = mh.group_distances(GroupSums.of(X, labels, features), control="g0")
    for name in ("distance", "low", "high", "matrix"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-12)


def test_clusters_count_once():
    """Rows repeated within clusters are the clusters; p-values, sizes and distances are those without repetition."""
    X, labels = screen(7, shift=1.0)
    once = mh.group_distances(X, labels, control="g0", kernel=mh.Gaussian(2.0), random_state=0)
    clusters = np.repeat(np.arange(len(X)), 3)
    thrice = mh.group_distances(
        np.repeat(X, 3, axis=0),
        np.repeat(labels, 3),
        control="g0",
        kernel=mh.Gaussian(2.0),
        clusters=clusters,
        random_state=0,
    )
    assert_array_equal(thrice.sizes, once.sizes)
    assert_allclose(thrice.unbiased, once.unbiased, atol=1e-6)
    assert_allclose(thrice.distance, once.distance, atol=1e-4)
    # Rows of clusters are in the order of their numbers, so that the same permutations are drawn.
    assert_allclose(thrice.pvalue, once.pvalue, atol=0.01)


def test_a_shift_of_strata_is_no_difference_within_them():
    rng = np.random.default_rng(8)
    donors = rng.integers(0, 3, 300)
    groups = np.where(rng.random(300) < np.array([0.2, 0.5, 0.8])[donors], "drug", "control")
    X = rng.normal(size=(300, 2)) + 3.0 * donors[:, None]
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(donor=donors, group=groups)
    with_strata = mh.group_distances(frame, "group", control="control", strata="donor", n_resamples=199, random_state=0)
    without = mh.group_distances(X, groups, control="control", n_resamples=199, random_state=0)
    assert without.pvalue[0] < 0.02
    assert without.global_pvalue < 0.02
    assert with_strata.pvalue[0] > 0.05
    assert with_strata.global_pvalue > 0.05


def test_groups_that_share_no_stratum_have_pvalue_one():
    X, labels = screen(9)
    strata = np.where(labels == "g3", "elsewhere", "here")
    with pytest.warns(UserWarning, match="share no stratum"):
        result = mh.group_distances(X, labels, control="g0", strata=strata, n_resamples=99)
    assert result.pvalue[2] == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e6, 1e150])
def test_the_unit_of_the_rows_does_not_matter(scale):
    X, labels = screen(10, shift=1.0)
    X = np.round(X * 2**20) / 2**20  # so that scaling by powers of two is exact
    factor = 2.0 ** np.round(np.log2(scale))
    one, other = (mh.group_distances(rows, labels, control="g0", random_state=0) for rows in (X, factor * X))
    assert_allclose(other.distance, one.distance, rtol=1e-6, atol=1e-9)
    assert_allclose(other.pvalue, one.pvalue, atol=1e-12)


def test_degenerate_tables_give_no_nonsense():
    labels = np.repeat(["a", "b", "c"], [2, 2, 3])
    for X in (
        np.zeros((7, 2)),
        np.repeat([[0.0], [0.0], [1.0]], [2, 2, 3], axis=0),
        np.column_stack([np.arange(7.0), np.ones(7)]),
        np.r_[np.zeros((4, 1)), np.arange(3.0)[:, None]],
    ):
        result = mh.group_distances(X, labels, control="a", kernel=mh.Gaussian(1.0), scale=None, n_resamples=99)
        for name in ("distance", "low", "high", "unbiased", "pvalue", "adjusted", "matrix"):
            assert np.isfinite(getattr(result, name)).all()
        assert (result.pvalue >= 0.01).all()
        assert (result.low <= result.high).all()
        assert repr(result)
        assert result._repr_html_()
        assert not result.to_frame().isna().any(axis=None)
    alike = mh.group_distances(np.zeros((7, 2)), labels, control="a", kernel=mh.Gaussian(1.0))
    assert_array_equal(alike.pvalue, 1.0)
    assert_array_equal(alike.distance, 0.0)


def test_groups_of_two_values_in_turn_are_shrunk_onto_one_another():
    """All pooled distances are 0, and there is no factor by which they would be those of the sample."""
    X, labels = np.arange(10.0)[:, None] % 2, np.arange(10) % 3
    result = mh.group_distances(X, labels, control=0, n_resamples=99, random_state=0)
    assert np.isfinite([result.distance, result.low, result.high, result.pvalue]).all()
    assert result.pvalue.min() > 0.1


def test_equal_constant_groups_do_not_differ_though_others_vary():
    """Sums of equal rows differ by rounding alone, which no p-value may see."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["control", "same", "other"], [300, 500, 1500])
    X = np.where(labels == "other", 1.0, 0.0)[:, None] * rng.normal(size=(2300, 4)) + np.pi
    result = mh.group_distances(X, labels, control="control", n_resamples=99, random_state=0)
    assert result.pvalue[result.groups.tolist().index("same")] == 1.0
    assert abs(result.unbiased[result.groups.tolist().index("same")]) < 1e-12


def test_averages_over_units_do_not_depend_on_blocks(monkeypatch):
    rows, firsts = np.arange(22.0).reshape(11, 2), np.array([0, 1, 4, 9])
    expected = [np.square(rows[a:b]).mean(axis=0) for a, b in [(0, 1), (1, 4), (4, 9), (9, 11)]]
    for block in (3, 4096):
        monkeypatch.setattr(sums_of_groups, "_ROWS", block)
        assert_allclose(sums_of_groups.unit_means(np.square, rows, firsts), expected)


@pytest.mark.parametrize("each", [1, 3])
def test_the_noise_along_a_difference_is_that_of_loops(each):
    """For every group, the last ones too; units are rows, or clusters of three rows."""
    X, labels = screen(12, shift=1.0)
    rows = np.repeat(X, each, axis=0) + np.random.default_rng(0).normal(size=(each * len(X), 3)) * (each > 1)
    units = _units(rows, np.repeat(labels, each), None, None if each == 1 else np.repeat(np.arange(len(X)), each), None)
    sums = _sums(units, mh.Gaussian(1.5))
    estimates = GroupEstimates.of(sums)
    theirs, mine = (estimates.unit**2 * part for part in _witness_squares(units, sums.features, estimates, 0))
    Z = sums.features.transform(rows).reshape(len(X), each, -1).mean(axis=1)
    groups = [Z[labels == f"g{g}"] for g in range(7)]
    centres = [z.mean(axis=0) for z in groups]
    for g in range(1, 7):
        apart = centres[g] - centres[0]
        assert_allclose(theirs[g - 1], np.square((groups[g] - centres[g]) @ apart).sum(), rtol=1e-8, atol=1e-12)
        assert_allclose(mine[g - 1], np.square((groups[0] - centres[0]) @ apart).sum(), rtol=1e-8, atol=1e-12)


_X, _LABELS = screen(11)


def _of(*given, **options):
    return lambda: mh.group_distances(*given, **options)


test_faults_are_named = refused(
    [
        ("control", _of(_X, _LABELS, control="g9"), "control='g9' is none of the 7 groups"),
        ("correction", _of(_X, _LABELS, correction="fdr"), "correction='fdr'"),
        ("level", _of(_X, _LABELS, level=1), "level=1"),
        ("n_resamples", _of(_X, _LABELS, n_resamples=-1), "n_resamples=-1"),
        ("strata", _of(_X, _LABELS, strata=[1, 2, 3]), "strata has 3 labels"),
        ("clusters", _of(_X, _LABELS, clusters=np.arange(len(_X)) % 30), "has rows in several groups; use strata="),
        ("no groups", _of(_X), "groups=None"),
        (
            "mixed labels",
            _of(_X, np.where(_LABELS == "g0", 1, _LABELS.astype(object))),
            "groups mixes labels of the types int, str",
        ),
        ("pairs as labels", _of(_X, [(label, 1) for label in _LABELS]), "pass one label per row"),
        ("one group", _of(_X, np.zeros(len(_X))), "groups holds one label"),
        ("one row", _of(_X[:-29], _LABELS[:-29]), "1 of 7 groups have a single row"),
    ]
)

"""Mergeable states: bins of rows as binary addition, and sums over the workers of Dask, one of them killed."""

import pickle
from functools import partial
from operator import add

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sketches import BINNED, FEATURES, X, assert_equal_sketches
from workers import BAGS, Y, killed_in_the_middle, no_kill, pause_once, processes, threads

import muhat as mh
from muhat.features.sketch import MeanSketch
from muhat.features.sketch_state import RowBins, last_level

Z = np.random.default_rng(0).integers(-9, 10, size=(1000, 3)).astype(float)  # sums of whole numbers are exact


def of_rows(rows):
    return RowBins.of_rows(20, rows, 2.0 * rows[:, 0])


def parts_of(cuts):
    return [of_rows(part) for part in np.split(Z, cuts)]


@pytest.mark.parametrize("n", [0, 1, 19, 20, 21, 40, 41, 639, 640, 1000])
def test_the_number_of_rows_decides_on_the_bins(n):
    bins = of_rows(Z[:n])
    assert bins.n == n
    assert bins.size == 1 << last_level(n, 20)
    assert len(bins.levels[-1]) == n // bins.size <= 20
    assert n < 20 or len(bins.levels[-1]) >= 10
    assert [len(sums) for sums in bins.levels[:-1]] == [n >> level & 1 for level in range(len(bins.levels) - 1)]


def test_bins_hold_neighbouring_rows():
    bins = of_rows(Z)
    expected = Z[: 15 * 64].reshape(15, 64, 3)
    assert bins.size == 64
    assert_array_equal(bins.levels[-1][:, :-1], expected.sum(axis=1))
    assert_array_equal(bins.levels[-1][:, -1], 2.0 * expected[:, :, 0].sum(axis=1))
    assert_allclose(bins.means(64)[:, :-1], expected.mean(axis=1))
    assert_allclose(bins.means(128)[:, :-1], Z[: 7 * 128].reshape(7, 128, 3).mean(axis=1))


@pytest.mark.parametrize("cuts", [[500], [1, 2, 3], [7, 300, 301, 999], list(range(0, 1000, 13))], ids=str)
def test_merged_bins_have_the_sums_of_all_rows_in_bins_of_equal_size(cuts):
    """Whatever the parts: only which rows share a bin depends on them."""
    parts, whole = parts_of(cuts), of_rows(Z)
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.plus(part)
    backwards = parts[-1]
    for part in parts[-2::-1]:
        backwards = part.plus(backwards)
    for found in (merged, backwards):
        assert found.n == 1000
        assert [len(sums) for sums in found.levels] == [len(sums) for sums in whole.levels]
        assert_array_equal(sum(sums.sum(axis=0) for sums in found.levels), [*Z.sum(axis=0), 2.0 * Z[:, 0].sum()])


def test_every_bin_of_a_merge_has_its_number_of_rows():
    """With a feature that is 1 for all rows, each sum counts its rows."""
    ones = [RowBins.of_rows(20, np.ones((n, 1)), np.ones(n)) for n in (3, 77, 21, 640, 1, 258)]
    merged = ones[0]
    for part in ones[1:]:
        merged = merged.plus(part)
    assert merged.n == 1000
    for level, sums in enumerate(merged.levels):
        assert_array_equal(sums, np.full((len(sums), 2), 2.0**level))


def test_memory_is_bounded():
    sketch = MeanSketch(FEATURES["nystroem"], bins=20)
    for _ in range(30):
        sketch.update(X)
    held = sketch.state_.bins
    assert held.n == 9000
    assert sum(map(len, held.levels)) <= 20 + 10
    assert all(sums.base is None or sums.base.nbytes <= 2 * 20 * 21 * 8 for sums in held.levels)


def test_bins_of_a_sketch_are_sums_of_features():
    Z = FEATURES["nystroem"].transform(X)
    bins = MeanSketch(FEATURES["nystroem"], bins=50).update(X).state_.bins
    assert bins.size == 8
    assert_allclose(bins.means(8)[:, :-1], Z[:296].reshape(37, 8, 20).mean(axis=1), atol=1e-12)
    assert_allclose(sum(sums[:, :-1].sum(axis=0) for sums in bins.levels), Z.sum(axis=0), atol=1e-10)


# ---------------------------------------------------------------- sums over workers


@pytest.fixture(scope="module")
def client():
    with processes(2) as made:
        yield made


def sketch(rows, features=FEATURES["nystroem"], **settings):
    return MeanSketch(features, **settings).update(rows)


def state(rows, features=FEATURES["nystroem"], **settings):
    return sketch(rows, features, **settings).state_


def over(client, function, parts):
    """The sum, in a tree, of what a function makes of the parts on the workers: only one sketch comes back."""
    from dask.bag import from_sequence

    return client.compute(from_sequence(parts).map(function).fold(add)).result()


@pytest.mark.parametrize("settings", [{}, BINNED], ids=str)
@pytest.mark.parametrize("name", ["nystroem", "fourier"])
def test_a_sum_of_sketches_is_that_of_one_machine(client, name, settings):
    features, parts = FEATURES[name], np.array_split(X, 7)
    expected = sketch(X, features, **settings)
    found = over(client, partial(sketch, features=features, **settings), parts)
    states = over(client, partial(state, features=features, **settings), parts)
    assert_equal_sketches(found, expected)
    assert_equal_sketches(MeanSketch(features, **settings) + states, expected)
    assert_array_equal((MeanSketch(features, **settings) + states).mean_features(), found.mean_features())


def test_states_travel_without_features():
    features = mh.Nystroem(mh.Gaussian(1.0), 100, random_state=0).fit(X)
    assert len(pickle.dumps(state(X, features))) < len(pickle.dumps(sketch(X, features))) / 20


def results(client):
    """A p-value with its null distribution, and a mean, from parts on workers."""
    x, y = (over(client, partial(sketch, bins=40), np.array_split(rows, 7)) for rows in (X, Y))
    tested = mh.mmd_test(x, y, n_resamples=99, random_state=0)
    return tested.pvalue, tested.null_distribution, x.mean_features()


def test_numbers_do_not_depend_on_the_workers(client):
    """To the last bit: two processes, one thread in this process, and three."""
    expected = results(client)
    for count in (1, 3):
        with threads(count, set_as_default=False) as other:
            for found, same in zip(results(other), expected, strict=True):
                assert_array_equal(found, same)


def test_models_of_bags_are_applied_on_workers(client):
    parts = [BAGS[:3], BAGS[3:4], BAGS[4:]]
    for model in (mh.BagPrior().fit(BAGS), mh.DistributionKernel(mean=mh.ShrunkKernelMean()).fit(BAGS)):
        vectors = np.vstack(client.gather(client.map(model.transform, parts)))
        assert_allclose(vectors, model.transform(BAGS), rtol=0, atol=1e-10)


def paused_sketch(part, folder):
    number, rows = part
    pause_once(folder, number == 6)
    return sketch(rows, second_moment=True, bins=40)


@pytest.mark.slow
@no_kill
def test_a_worker_that_is_killed_does_not_change_a_sum_of_sketches(tmp_path):
    """Bins included: the sum has the order of the parts, whoever sketched them."""
    run, parts = partial(paused_sketch, folder=str(tmp_path)), list(enumerate(np.array_split(X, 12)))
    with processes(2, set_as_default=False) as two_workers:
        found = killed_in_the_middle(lambda: over(two_workers, run, parts), tmp_path)
    expected = sum(run(part) for part in parts)  # it pauses once only
    assert_equal_sketches(found, expected, tol=1e-12)
    for mine, theirs in zip(found.state_.bins.levels, expected.state_.bins.levels, strict=True):
        assert_allclose(mine, theirs, rtol=0, atol=1e-12)

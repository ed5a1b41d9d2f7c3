"""Over workers: the numbers of one machine, whatever the blocks and the workers."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import KERNELS, sample
from workers import (
    BAGS,
    CELLS,
    FEATURES,
    X,
    Y,
    chunked,
    delayed_blocks,
    processes,
    shrinkage_of_cell,
    squared_mmd,
    threads,
)

import muhat as mh
from muhat.distributed import cluster as over_workers
from muhat.distributed.cluster import (
    bag_gram,
    bag_prior,
    bag_vectors,
    map_cells,
    mmd_distance,
    sketch_collection,
)
from muhat.distributed.tasks import sketch_block

SETTINGS = {"plain": {}, "full": {"second_moment": True, "reservoir_size": 40}}


@pytest.fixture(scope="module")
def client():
    with processes(2) as made:
        yield made


FORMS = {
    "array": lambda client, rows: chunked(rows),
    "one chunk": lambda client, rows: chunked(rows, -1),
    "uneven": lambda client, rows: chunked(rows, (1, 99, 0, len(rows) - 100)),
    "float32": lambda client, rows: chunked(rows.astype(np.float32)),
    "delayed": lambda client, rows: delayed_blocks(rows),
    "generator": lambda client, rows: (block for block in delayed_blocks(rows, 20)),
    "futures": lambda client, rows: client.scatter(np.array_split(rows, 4), hash=False),
    "persisted": lambda client, rows: client.persist(chunked(rows)),
    "arrays": lambda client, rows: np.array_split(rows, 4),
    "empty block": lambda client, rows: [rows[:100], rows[:0], rows[100:]],
    "lists": lambda client, rows: [part.tolist() for part in np.array_split(rows, 3)],
    "arrays of arrays": lambda client, rows: [chunked(rows[:100]), chunked(rows[100:])],
}


def assert_same_sketch(found, expected):
    assert found.n_ == expected.n_
    assert_allclose(found.state_.sums.total, expected.state_.sums.total, rtol=0, atol=1e-10)
    assert_allclose(found.state_.sums.squares, expected.state_.sums.squares, rtol=1e-10)
    assert (found.state_.sums.moment is None) == (expected.state_.sums.moment is None)
    if found.state_.sums.moment is not None:
        assert_allclose(found.state_.sums.moment, expected.state_.sums.moment, rtol=0, atol=1e-10)
    assert_array_equal(found.state_.kept.rows, expected.state_.kept.rows)
    assert_array_equal(found.state_.kept.counts, expected.state_.kept.counts)
    assert found.state_.kept.limit == expected.state_.kept.limit


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", FEATURES)
def test_sketch_is_that_of_one_machine(client, name, settings):
    features, options = FEATURES[name], SETTINGS[settings]
    found = sketch_collection(features, chunked(X), client=client, **options)
    expected = mh.MeanSketch(features, **options).update(X)
    assert_same_sketch(found, expected)
    assert found.features is features
    if options:
        assert_allclose(found.mean_features("loo"), expected.mean_features("loo"), rtol=0, atol=1e-10)
    assert (found + mh.MeanSketch(features, **options).update(Y)).n_ == len(X) + len(Y)


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_the_data(client, form):
    rows = X.astype(np.float32).astype(float) if form == "float32" else X
    found = sketch_collection(FEATURES["nystroem"], FORMS[form](client, rows), **SETTINGS["full"])
    assert_same_sketch(found, mh.MeanSketch(FEATURES["nystroem"], **SETTINGS["full"]).update(rows))
    mmd = mmd_distance(FORMS[form](client, rows), chunked(Y), mh.Gaussian(1.0))
    assert_allclose(mmd.squared, squared_mmd(mh.Gaussian(1.0), rows, Y, False), rtol=0, atol=1e-10)
    assert (mmd.n_x, mmd.n_y) == (len(X), len(Y))


@pytest.mark.parametrize("name", KERNELS)
def test_exact_mmd(client, name):
    kernel, found = KERNELS[name], {}
    for unbiased in (False, True):
        found[unbiased] = mmd_distance(chunked(X, 120), chunked(Y, 80), kernel, unbiased, client)
        assert_allclose(found[unbiased].squared, squared_mmd(kernel, X, Y, unbiased), rtol=1e-10, atol=1e-10)
    assert_allclose(found[False].distance, mh.embed(kernel, X).distance(mh.embed(kernel, Y)), rtol=1e-10)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("name", FEATURES)
def test_mmd_in_features(client, name, unbiased):
    features = FEATURES[name]
    found = mmd_distance(chunked(X), delayed_blocks(Y), features, unbiased, client)
    expected = squared_mmd(mh.Linear(), features.transform(X), features.transform(Y), unbiased)
    assert_allclose(found.squared, expected, rtol=0, atol=1e-10)
    assert (found.n_x, found.n_y) == (len(X), len(Y))


def test_mmd_of_a_collection_with_itself(client):
    assert mmd_distance(chunked(X), chunked(X, 100), FEATURES["nystroem"]).distance < 1e-12
    assert mmd_distance(chunked(X), chunked(X, 100), mh.Gaussian(1.0)).squared < 1e-14
    unbiased = mmd_distance(chunked(X), chunked(X), mh.Gaussian(1.0), unbiased=True)
    assert unbiased.squared < 0 == unbiased.distance


@pytest.mark.parametrize("level2", ["linear", mh.Gaussian(), mh.Laplace(0.7), mh.Polynomial(2)], ids=repr)
@pytest.mark.parametrize("mean", [None, mh.ShrunkKernelMean(), mh.SpectralKernelMean()], ids=repr)
def test_bags(client, monkeypatch, mean, level2):
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 30)
    expected = mh.DistributionKernel(mh.Gaussian(), mean, level2).fit_transform(BAGS)
    found = bag_gram(BAGS, mh.Gaussian(), mean, level2, client)
    assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert_array_equal(found, found.T)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_any_form_of_bags(client, monkeypatch, count):
    import dask

    monkeypatch.setattr(over_workers, "GROUPS", 3)
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 1)
    kernel, bags = mh.Laplace(1.2), BAGS[:count]
    expected = mh.DistributionKernel(kernel).fit_transform(bags)
    forms = {
        "delayed": [dask.delayed(np.array)(bag) for bag in bags],
        "dask arrays": [chunked(bag, 4) for bag in bags],
        "futures": client.scatter(bags, hash=False),
        "some delayed": [dask.delayed(np.array)(bags[0]), *bags[1:]],
        "tuple": tuple(bags),
    }
    for form, given in forms.items():
        assert_allclose(bag_gram(given, kernel), expected, rtol=0, atol=1e-10, err_msg=form)
    cube = np.stack([bag[:1] for bag in bags])
    assert_allclose(bag_gram(cube, kernel), mh.DistributionKernel(kernel).fit_transform(cube), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "features", [mh.Nystroem(mh.Laplace(1.2), 20, random_state=0), mh.Fourier(mh.Gaussian(1.0), 30, random_state=0)]
)
def test_prior_over_bags(client, monkeypatch, features):
    """Workers add up what one machine knows: the same prior, vectors and pooled means."""
    import dask

    monkeypatch.setattr(over_workers, "GROUP_ROWS", 30)
    features.fit(np.concatenate(BAGS))
    expected = mh.BagPrior(features.kernel, features).fit(BAGS)
    for given in (BAGS, [dask.delayed(np.array)(bag) for bag in BAGS]):
        prior = bag_prior(given, features, client=client)
        assert prior.blend_ == expected.blend_
        assert_allclose(prior.ratios_, expected.ratios_, rtol=0, atol=1e-8 * expected.ratios_[0])
        assert_allclose(prior.log_odds(BAGS), expected.log_odds(BAGS), rtol=1e-6, atol=1e-6)
        assert_allclose(bag_vectors(prior, given, client=client), prior.transform(BAGS), rtol=0, atol=1e-10)
        if isinstance(features, mh.Nystroem):
            pairs = zip(prior.means(BAGS), expected.means(BAGS), strict=True)
            assert max(f.distance(g) for f, g in pairs) < 1e-6
            assert_allclose(prior._outside, expected._outside, rtol=1e-8)


def test_cells(client):
    results = dict(map_cells(shrinkage_of_cell, iter(CELLS), client))
    assert sorted(results) == list(range(len(CELLS)))
    for i, cell in enumerate(CELLS):
        assert_allclose(results[i], shrinkage_of_cell(cell), rtol=1e-10)
    assert list(map_cells(shrinkage_of_cell, [], client)) == []


def test_numbers_do_not_depend_on_the_workers(client, monkeypatch):
    """To the last bit: two processes, one thread in this process, and three."""

    monkeypatch.setattr(over_workers, "GROUP_ROWS", 30)

    def all_of(chosen):
        sketch = sketch_collection(FEATURES["nystroem"], chunked(X, 20), second_moment=True, client=chosen)
        mmd = mmd_distance(chunked(X), chunked(Y), mh.Gaussian(1.0), client=chosen)
        cells = dict(map_cells(shrinkage_of_cell, CELLS, chosen))
        gram = bag_gram(BAGS, mean=mh.ShrunkKernelMean(), client=chosen)
        vectors = bag_vectors(bag_prior(BAGS, FEATURES["nystroem"], client=chosen), BAGS, client=chosen)
        return [
            sketch.state_.sums.total,
            sketch.state_.sums.moment,
            mmd.squared,
            gram,
            vectors,
            [cells[i] for i in range(len(CELLS))],
        ]

    expected = all_of(client)
    for count in (1, 3):
        with threads(count, set_as_default=False) as other:
            for found, same in zip(all_of(other), expected, strict=True):
                assert_array_equal(found, same)


def test_sums_travel_without_features():
    sketch = mh.MeanSketch(FEATURES["nystroem"])
    part = sketch_block(sketch, "data[0]", X)
    assert len(pickle.dumps(part)) < len(pickle.dumps(sketch.features)) / 3


def test_large_features_travel_without_a_warning(client):
    features = mh.Fourier(mh.Gaussian(5.0), 16_000, random_state=0).fit(sample(10, 200, seed=2))
    assert features.frequencies_.nbytes > 10_000_000
    rows = sample(20, 200, seed=3)
    found = sketch_collection(features, delayed_blocks(rows, 2), client=client)
    assert_allclose(found.mean_features(), features.transform(rows).mean(axis=0), rtol=0, atol=1e-10)

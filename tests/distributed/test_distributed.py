"""Bags and cells over workers: the numbers of one machine, whatever the blocks and the workers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from workers import BAGS, CELLS, X, Y, chunked, delayed_blocks, processes, shrinkage_of_cell, squared_mmd, threads

import muhat as mh
from muhat.distributed import cluster as over_workers
from muhat.distributed.cluster import bag_gram, map_cells


@pytest.fixture(scope="module")
def client():
    with processes(2) as made:
        yield made


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


def test_the_exact_distance_of_two_collections_is_a_form_of_the_gram_matrix(client):
    """As the notes say: blocks are bags, weighted by their rows."""
    blocks = delayed_blocks(X, 4) + delayed_blocks(Y, 3)
    sizes = np.array([len(part) for rows, count in ((X, 4), (Y, 3)) for part in np.array_split(rows, count)])
    weights = sizes * np.repeat([1.0 / len(X), -1.0 / len(Y)], [4, 3])
    G = bag_gram(blocks, mh.Gaussian(1.0), client=client)
    assert_allclose(weights @ G @ weights, squared_mmd(mh.Gaussian(1.0), X, Y, False), rtol=1e-10)


def test_cells(client):
    results = dict(map_cells(shrinkage_of_cell, iter(CELLS), client))
    assert sorted(results) == list(range(len(CELLS)))
    for i, cell in enumerate(CELLS):
        assert_allclose(results[i], shrinkage_of_cell(cell), rtol=1e-10)
    assert list(map_cells(shrinkage_of_cell, [], client)) == []


def test_numbers_do_not_depend_on_the_workers(client, monkeypatch):
    """To the last bit: two processes, one thread in this process, and three."""
    monkeypatch.setattr(over_workers, "GROUP_ROWS", 30)

    def both(chosen):
        cells = dict(map_cells(shrinkage_of_cell, CELLS, chosen))
        return bag_gram(BAGS, mean=mh.ShrunkKernelMean(), client=chosen), [cells[i] for i in range(len(CELLS))]

    expected = both(client)
    for count in (1, 3):
        with threads(count, set_as_default=False) as other:
            for found, same in zip(both(other), expected, strict=True):
                assert_array_equal(found, same)

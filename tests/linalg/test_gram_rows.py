"""Rows that are read a block at a time: memory maps, data sets in files, Dask arrays."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from tables import KERNELS

import muhat as mh
from muhat.kernels.foreign import Precomputed
from muhat.linalg import gram


class DataSet:
    """Rows in a file, as HDF5 has them: a shape, a type, and slices that are read."""

    def __init__(self, rows):
        self._rows = rows
        self.shape, self.dtype, self.largest = rows.shape, rows.dtype, 0

    def __getitem__(self, rows):
        part = np.array(self._rows[rows])
        self.largest = max(self.largest, len(part))
        return part


def sample(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def mapped(folder, X):
    file = np.memmap(folder / "rows", X.dtype, "w+", shape=X.shape)
    file[:] = X
    file.flush()
    return np.memmap(folder / "rows", X.dtype, "r", shape=X.shape)


def dask_array(_, X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(13, 2))


SOURCES = {"memmap": mapped, "data set": lambda _, X: DataSet(X), "Dask": dask_array, "list": lambda _, X: X.tolist()}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_sums_of_the_array(source, kernel, tmp_path):
    X, beta, W = sample(50), sample(50, 1, 1)[:, 0], sample(50, 2, 2)
    rows, K = gram.LazyRows(kernel, source(tmp_path, X)), kernel(X)
    tolerance = 1e-12 * 2500 * np.abs(K).max()
    assert_allclose(gram.quadratic_form(kernel, rows, beta, block=16), beta @ K @ beta, rtol=0, atol=tolerance)
    assert_allclose(gram.product(kernel, rows, X, W, block=7), K @ W, rtol=0, atol=tolerance)
    assert_allclose(gram.bilinear_form(kernel, X, rows, beta, beta, block=7), beta @ K @ beta, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_other_types_are_summed_in_float64(dtype):
    X = (100 * sample(60)).clip(0, 120).astype(dtype)
    for kernel in (mh.Linear(), mh.Gaussian(200.0), mh.Laplace(200.0)):
        K = kernel(X.astype(np.float64))
        for rows in (X, DataSet(X)):
            lazy = gram.LazyRows(kernel, rows)
            assert_allclose(gram.quadratic_form(kernel, lazy, np.ones(60), block=16), K.sum(), rtol=1e-12)


@pytest.mark.parametrize("kernel", [mh.Gaussian(20.0), mh.Linear(), mh.Polynomial(3)], ids=repr)
def test_a_file_is_never_in_memory_as_a_whole(kernel, tmp_path):
    X = mapped(tmp_path, sample(2000, 300).astype(np.float32))
    beta = np.ones(2000)
    rows = DataSet(X)
    for source in (X, rows):
        tracemalloc.start()
        gram.quadratic_form(kernel, gram.LazyRows(kernel, source), beta, block=64)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * X.nbytes
    assert rows.largest <= 64


def test_numbers_of_training_rows():
    K = mh.Gaussian(1.0)(sample(30))
    kernel, beta = Precomputed(K), sample(30, 1, 1)[:, 0]
    assert_allclose(gram.quadratic_form(kernel, kernel.training_points(), beta, block=7), beta @ K @ beta, rtol=1e-12)


@pytest.mark.parametrize("block", [0, -3, 2.5, True, "all"])
def test_block_must_be_a_count(block):
    X, beta = sample(5), np.ones(5)
    for call in (
        lambda: gram.quadratic_form(mh.Linear(), X, beta, block=block),
        lambda: gram.product(mh.Linear(), X, X, beta, block=block),
        lambda: gram.bilinear_form(mh.Linear(), X, X, beta, beta, block=block),
    ):
        with pytest.raises(ValueError, match=f"block={block!r} must be a whole number of at least 1"):
            call()


def test_a_dask_array_of_unknown_size():
    X = pytest.importorskip("dask.array").from_array(sample(20), chunks=(5, 4))
    unknown = X[X[:, 0] > 0]
    with pytest.raises(ValueError, match=r"X has chunks of unknown sizes; call X\.compute_chunk_sizes\(\) first"):
        gram.LazyRows(mh.Linear(), unknown)
    unknown.compute_chunk_sizes()
    values = unknown.compute()
    total = gram.quadratic_form(mh.Gaussian(1.0), gram.LazyRows(mh.Gaussian(1.0), unknown), np.ones(len(values)))
    assert_allclose(total, mh.Gaussian(1.0)(values).sum(), rtol=1e-12)


def test_bad_rows_are_named():
    X = sample(40)
    X[33, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        gram.quadratic_form(mh.Gaussian(1.0), gram.LazyRows(mh.Gaussian(1.0), DataSet(X)), np.ones(40), block=8)
    with pytest.raises(ValueError, match=r"beta has 39 entries and must have one for each of the 40 rows"):
        gram.quadratic_form(mh.Gaussian(1.0), X, np.ones(39))
    with pytest.raises(ValueError, match=r"X has shape \(40,\) and must have two dimensions"):
        gram.LazyRows(mh.Gaussian(1.0), X[:, 0])
    with pytest.raises(ValueError, match="Y has 3 columns and X has 4; they must agree"):
        gram.product(mh.Gaussian(1.0), sample(5), gram.LazyRows(mh.Gaussian(1.0), sample(5)[:, :3]), np.ones(5))
    with pytest.raises((TypeError, ValueError), match="dense"):
        gram.quadratic_form(mh.Gaussian(1.0), gram.LazyRows(mh.Gaussian(1.0), csr_array(sample(5))), np.ones(5))

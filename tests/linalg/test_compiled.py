"""Compiled sums against the numpy tiles, on all shapes and on data where digits are easily lost."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.kernels import evaluate_fast, tiles
from muhat.linalg import compiled
from muhat.linalg.distances import EXPANDABLE

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is missing: pip install 'muhat[fast]'")


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def assert_same_sums(X, Y, W, width):
    """Equal to the numpy tile, to 1e-13 of the sum of absolute terms."""
    kernel = mh.Gaussian(width)
    ours, tile = compiled.gaussian_sums()(X, Y, W, width), evaluate_fast(kernel, X.astype(float), Y.astype(float))
    assert ours is not None
    assert ours.shape == (len(X), *W.shape[1:])
    assert ours.dtype == np.float64
    assert (np.abs(ours - tile @ W) <= 1e-13 * (tile @ np.abs(W)) + 1e-300).all()


@needs_numba
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 8, 10, 31, 50])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (5, 1), (1, 64), (255, 257), (256, 256), (300, 7), (513, 100)])
def test_all_shapes(n, m, d):
    assert_same_sums(rows(n, d), rows(m, d, 1), rows(m, 1, 2)[:, 0], np.sqrt(2 * d))


@needs_numba
@pytest.mark.parametrize("columns", range(1, compiled.FEW + 1))
def test_columns(columns):
    assert_same_sums(rows(70, 6), rows(90, 6, 1), rows(90, columns, 2), 2.0)


@needs_numba
@pytest.mark.parametrize("width", [0.45, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 100.0, -1e8])
def test_shifted_data_and_all_widths(width, shift):
    X, Y = 0.9 * rows(100, 3).clip(-2, 2) + shift, 0.9 * rows(80, 3, 1).clip(-2, 2) + shift
    assert_same_sums(X, Y, rows(80, 2, 2), width)


@needs_numba
def test_the_exponential_over_all_exponents_that_occur():
    furthest = np.sqrt(1.999 * EXPANDABLE)  # half squares to the limit, on either side of the mean
    x = np.sqrt(np.linspace(0.0, furthest**2, 4001))[:, None]
    X, Y = np.concatenate([x, -x]), np.array([[furthest], [-furthest], [0.0]])
    for j in range(3):
        weights = np.eye(3)[j]
        expected = np.exp(-0.5 * (X - Y[j])[:, 0] ** 2)
        assert_allclose(
            compiled.gaussian_sums()(X, Y, weights, 1.0), expected, rtol=1e-13
        )  # terms of 100, a few roundings


@needs_numba
def test_equal_rows_and_no_weight():
    X = np.repeat(rows(3, 5), 40, axis=0)
    assert_same_sums(X, X, rows(120, 1)[:, 0], 1.5)
    assert_array_equal(compiled.gaussian_sums()(X, X, np.zeros((120, 2)), 1.5), np.zeros((120, 2)))


@needs_numba
@pytest.mark.parametrize("far", [11.0, 1e8, 1e200, 1.7e308])
def test_far_rows_are_refused(far):
    X = rows(20, 4)
    Y = X.copy()
    Y[7, 2] = far
    weights = np.ones(20)
    assert compiled.gaussian_sums()(X, Y, weights, 1.0) is None
    assert compiled.gaussian_sums()(Y, X, weights, 1.0) is None


@needs_numba
def test_layouts_and_types():
    X, Y, W = rows(60, 4), rows(50, 4, 1), rows(50, 2, 2)
    expected = compiled.gaussian_sums()(X, Y, W, 2.0)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((60, 8))
    wide[:, ::2] = X
    shifted = np.frombuffer(b"x" + X.tobytes(), np.float64, offset=1).reshape(X.shape)
    for same in (frozen, np.asfortranarray(X), wide[:, ::2], shifted):
        assert_array_equal(compiled.gaussian_sums()(same, Y, np.asfortranarray(W), 2.0), expected)
    assert_same_sums(X.astype(np.float32), Y.astype(np.float32), W, 2.0)


@pytest.fixture
def everything_compiled(monkeypatch):
    monkeypatch.setattr(tiles, "COMPILED", 0)
    monkeypatch.setattr(tiles, "BLOCK", 64)
    monkeypatch.setattr(compiled, "BLOCK", 64)
    monkeypatch.setattr(tiles, "THREADED", 0)


def by_numpy(monkeypatch, function, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(tiles, "COMPILED", np.inf)
        return function(*arguments)


@pytest.mark.usefixtures("everything_compiled")
@pytest.mark.parametrize("far", [0.0, 30.0, 1e9])
@pytest.mark.parametrize("n", [2, 63, 64, 65, 200])
def test_tiles(n, far, monkeypatch):
    """With a far row some tiles are refused, and computed by numpy."""
    X, W = rows(n, 5), rows(n, 3, 1)
    X[n // 2, 0] += far
    kernel = mh.Gaussian(1.3)
    forms, products = (
        (tiles.quadratic_form, kernel, X, W[:, 0]),
        (tiles.product, kernel, X, X, W),
    )
    magnitude = np.abs(W[:, 0]) @ kernel(X) @ np.abs(W[:, 0])
    assert abs(forms[0](*forms[1:]) - by_numpy(monkeypatch, *forms)) <= 1e-13 * magnitude
    difference = np.abs(products[0](*products[1:]) - by_numpy(monkeypatch, *products))
    assert (difference <= 1e-13 * (kernel(X) @ np.abs(W))).all()


@needs_numba
@pytest.mark.usefixtures("everything_compiled")
def test_who_is_compiled(monkeypatch):
    """Tiles of the Gaussian kernel and few columns, and nothing else."""
    calls = []
    monkeypatch.setattr(compiled, "gaussian_sums", lambda: lambda *arguments: calls.append(arguments))
    X, kernel = rows(10, 2), mh.Gaussian(1.0)
    tiles.dense(kernel, X)
    tiles.quadratic_form(mh.Laplace(1.0), X, np.ones(10))
    tiles.quadratic_form(kernel + kernel, X, np.ones(10))
    tiles.quadratic_form(mh.as_kernel(lambda X, Y: X @ Y.T), X, np.ones(10))
    tiles.product(kernel, X, X, np.ones((10, compiled.FEW + 1)))
    assert not calls
    tiles.product(kernel, X, X, np.ones((10, compiled.FEW)))
    assert len(calls) == 1
    monkeypatch.setattr(tiles, "COMPILED", 101)
    tiles.product(kernel, X, X, np.ones(10))
    assert len(calls) == 1


@needs_numba
@pytest.mark.usefixtures("everything_compiled")
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_threads(workers, monkeypatch):
    X, W, kernel = rows(300, 6), rows(300, 2, 1), mh.Gaussian(2.0)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: 1)
    expected = tiles.quadratic_form(kernel, X, W[:, 0]), tiles.product(kernel, X, X, W)
    monkeypatch.setattr(tiles, "effective_n_jobs", lambda _: workers)
    assert tiles.quadratic_form(kernel, X, W[:, 0]) == expected[0]
    assert_array_equal(tiles.product(kernel, X, X, W), expected[1])


@pytest.mark.usefixtures("everything_compiled")
def test_an_estimator(monkeypatch):
    X, mean = rows(150, 4) + 0.3, mh.ShrunkKernelMean(mh.Gaussian(1.0))
    expected = by_numpy(monkeypatch, lambda: mean.fit(X).shrinkage_)
    assert_allclose(mean.fit(X).shrinkage_, expected, rtol=1e-12)


def run(code, **environment):
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment or None).stdout.split()


SUMS = """
import sys, numpy as np, muhat as mh
from muhat.kernels import tiles
from muhat.linalg import compiled
X, kernel = np.random.default_rng(0).normal(size=(40, 3)), mh.Gaussian(1.0)
small = tiles.quadratic_form(kernel, X, np.ones(40))
before = "numba" in sys.modules
tiles.COMPILED = 0
large = tiles.quadratic_form(kernel, X, np.ones(40))
print(before, "numba" in sys.modules, compiled.gaussian_sums() is None, abs(large / small - 1) < 1e-13)
"""


@pytest.mark.slow
@needs_numba
def test_numba_is_imported_at_the_first_large_sum():
    assert run(SUMS) == ["False", "True", "False", "True"]


HIDDEN = ["import sys; sys.modules['numba'] = None", "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'"]


@pytest.mark.slow
@pytest.mark.parametrize("hidden", HIDDEN, ids=["not installed", "not compiling"])
def test_without_numba_the_tiles_are_numpys(hidden):
    assert run(f"{hidden}\n{SUMS}")[2:] == ["True", "True"]


@needs_numba
def test_without_a_folder_for_compiled_code(monkeypatch):
    import numba

    original, asked = numba.njit, []

    def njit(*arguments, cache, **options):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return original(*arguments, **options)

    monkeypatch.setattr(numba, "njit", njit)
    increment = compiled.compile_loop(lambda x: x + 1.0, (numba.float64,))
    assert (increment(1.0), asked) == (2.0, [True, False])

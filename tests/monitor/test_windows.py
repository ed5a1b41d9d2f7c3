"""The statistic of all windows: fast sums against the definition, compiled loops against numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import KERNELS, sample

import muhat as mh
from muhat.features.sketch import MeanSketch
from muhat.linalg import compiled as compiled_tiles
from muhat.monitor import compiled_windows
from muhat.monitor.reference import FeatureReference, RowReference, population_grams
from muhat.monitor.windows import WindowSums, simulated_statistics

LENGTHS = np.array([1, 2, 5, 9])
X, Y = sample(40, 3, seed=1), sample(25, 3, seed=2, shift=0.9)


def slow_statistic(k, x, y):
    """Unbiased MMD² by its definition; for a single row only the cross term."""
    within, inside = (K[~np.eye(len(K), dtype=bool)] for K in (k(x, x), k(y, y)))
    return within.mean() + (inside.mean() if len(inside) else 0.0) - 2 * k(x, y).mean()


def slow_statistics(k, x, y, t):
    return [slow_statistic(k, x, y[t + 1 - L : t + 1]) if t + 1 >= L else -np.inf for L in LENGTHS]


def statistics(reference, rows, cuts=()):
    """Statistics of a stream that comes in blocks."""
    sums = WindowSums.empty(LENGTHS, reference.constants())
    recent, out = np.zeros((sums.longest - 1, rows.shape[1])), []
    for block in np.split(rows, cuts):
        stretch = np.concatenate([recent, block])
        out.append(sums.advance(reference.recent(stretch, sums.seen, sums.longest), reference.cross(block)))
        recent = stretch[len(block) :]
    return np.concatenate(out)


@pytest.fixture
def without_numba(monkeypatch):
    """What runs where numba is not installed."""
    for module in (compiled_tiles, compiled_windows):
        monkeypatch.setattr(module, "numba_or_none", lambda: None)
    cached = (compiled_tiles.row_values, compiled_windows.loops, compiled_tiles.gaussian_sums)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.mark.parametrize("name", ["gaussian", "laplace", "matern", "polynomial2", "sum"])
def test_all_windows_are_the_definition(name):
    found = statistics(RowReference(X, [KERNELS[name]]), Y)
    for t in (0, 1, 4, 8, 9, 24):
        expected = slow_statistics(KERNELS[name], X, Y, t)
        assert_allclose(found[t, :, 0], expected, rtol=1e-10, atol=1e-12)


def test_several_kernels_are_each_by_itself():
    kernels = [mh.Gaussian(0.7), mh.Gaussian(1.5), mh.Gaussian(4.0)]
    together = statistics(RowReference(X, kernels), Y)
    for j, kernel in enumerate(kernels):
        assert_allclose(together[..., j], statistics(RowReference(X, [kernel]), Y)[..., 0], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "kernels", [[mh.Gaussian(1.5), mh.Gaussian(0.4)], [mh.Laplace(1.2)]], ids=["gaussian", "laplace"]
)
def test_compiled_loops_are_the_numpy_ones(kernels, request):
    fast = statistics(RowReference(X, kernels), Y)
    request.getfixturevalue("without_numba")
    assert_allclose(fast, statistics(RowReference(X, kernels), Y), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-200, 1e-5, 1e5, 1e200])
def test_units_do_not_matter(scale):
    base = statistics(RowReference(X, [mh.Gaussian(1.5)]), Y)
    assert_allclose(
        statistics(RowReference(scale * X, [mh.Gaussian(1.5 * scale)]), scale * Y), base, rtol=1e-9, atol=1e-12
    )


CUTS = {"single rows": range(1, 25), "one and the rest": [1], "uneven": [2, 3, 11, 12, 23], "the middle": [12]}


def reference_by_name(name):
    if name != "features":
        return RowReference(X, [KERNELS[name]])
    sketch = MeanSketch(mh.Nystroem(mh.Gaussian(1.5), 15, random_state=0).fit(X), reservoir_size=40).update(X)
    return FeatureReference(sketch, X)


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("name", ["gaussian", "laplace", "matern", "linear", "features"])
def test_cuts_change_no_bit(name, cuts):
    reference = reference_by_name(name)
    assert_array_equal(statistics(reference, Y, list(CUTS[cuts])), statistics(reference, Y))


@pytest.mark.parametrize("cuts", CUTS)
def test_cuts_change_no_bit_without_numba(cuts, without_numba):
    for kernels in ([mh.Gaussian(1.5)], [mh.Laplace(1.2), mh.Matern(bandwidth=1.0)]):
        reference = RowReference(X, kernels)
        assert_array_equal(statistics(reference, Y, list(CUTS[cuts])), statistics(reference, Y))


def test_features_are_their_kernel():
    """With all rows as landmarks the features are exact on the reference, and the statistic is that of ZZᵀ."""
    features = mh.Nystroem(mh.Gaussian(1.5), landmarks=X).fit(X)
    found = statistics(FeatureReference(MeanSketch(features).update(X), X), Y)

    def kernel(a, b):
        return features.transform(a) @ features.transform(b).T

    for t in (0, 9, 24):
        assert_allclose(found[t, :, 0], slow_statistics(kernel, X, Y, t), rtol=1e-9, atol=1e-12)


def test_simulated_streams_are_streams_of_the_rows_drawn(request):
    """A lookup in the Gram matrix gives what the rows themselves give, but for a row that is drawn twice."""
    reference = RowReference(X, [mh.Gaussian(1.5), mh.Gaussian(0.8)])
    K = population_grams(reference, X)
    draws = np.random.default_rng(0).permuted(np.tile(np.arange(40, dtype=np.int32), (3, 1)), axis=1)
    before = np.zeros((3, 8), np.int32)
    cross = np.stack([np.diag(part) for part in K])

    def simulated():
        sums = WindowSums.empty(LENGTHS, reference.constants(), 3)
        return simulated_statistics(sums, K, cross, np.concatenate([before, draws], axis=1), 40)

    found = simulated()
    for b in range(3):
        real = statistics(reference, X[draws[b]])
        own = np.stack([kernel.diagonal(X) for kernel in reference.kernels])
        gap = (40 * np.stack([k(X).mean(axis=1) for k in reference.kernels]) - own) / 39  # r without the row itself
        difference = np.stack([k(X).mean(axis=1) for k in reference.kernels]) - gap
        running = np.cumsum(np.concatenate([np.zeros((2, 1)), difference[:, draws[b]]], axis=1), axis=1)
        for w, L in enumerate(LENGTHS):
            moved = 2 * (running[:, L:] - running[:, :-L]).T / L
            assert_allclose(found[b, L - 1 :, w], real[L - 1 :, w] + moved, rtol=1e-10, atol=1e-12)
    request.getfixturevalue("without_numba")
    assert_allclose(simulated(), found, rtol=1e-12, atol=1e-13)

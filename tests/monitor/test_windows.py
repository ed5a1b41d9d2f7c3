"""Statistics of all windows: fast sums against the definition, compiled loops against numpy, cuts of a stream."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tables import KERNELS, sample

import muhat as mh
from muhat.apps.monitor import windows
from muhat.apps.monitor.reference import COMPONENTS, Reference, Views, population
from muhat.apps.monitor.windows import WindowSums

LENGTHS = np.array([1, 2, 5, 9])
X, Y = sample(40, 3, seed=1), sample(25, 3, seed=2, shift=0.9)


def statistics(reference, rows, cuts=()):
    """Statistics of a stream that comes in blocks: shape (w, c, T)."""
    constants = reference.window_constants(LENGTHS)
    sums, out = WindowSums.empty(LENGTHS, constants, reference.paired), []
    before = sums.longest - 1
    held = reference.view(np.zeros((before, rows.shape[1])))
    for block in np.split(rows, cuts):
        new = reference.view(block)
        views = Views(*(np.concatenate(pair) for pair in zip(held, new, strict=True)))
        sums, found = sums.after(reference.pairs(views, before), reference.singles(new))
        held = Views(*(view[len(block) :] for view in views))
        out.append(found[:, 0])
    return np.concatenate(out, axis=1).reshape(*constants.shape, -1)


def unbiased_mmd(k, x, y):
    """By its definition; for a single row only the cross term."""
    within, inside = (K[~np.eye(len(K), dtype=bool)] for K in (k(x, x), k(y, y)))
    return within.mean() + (inside.mean() if len(inside) else 0.0) - 2 * k(x, y).mean()


def mean_product(z):
    products = z @ z.T
    return products[~np.eye(len(z), dtype=bool)].mean() if len(z) > 1 else -np.inf


def slow_statistics(reference, rows):
    """All components of one window by their definitions."""
    x, y, d = reference.views, reference.view(rows), rows.shape[1]
    kernels = [unbiased_mmd(kernel, x.scaled, y.scaled) for kernel in reference.plain]
    if not reference.whitens:
        return kernels
    kernels.append(unbiased_mmd(reference.whitened[0], x.whitened, y.whitened))
    held = [
        np.array([row * min(1.0, metric.farthest / np.linalg.norm(row)) for row in z])
        for metric, z in ((reference.metric, y.whitened), (reference.rank_metric, y.ranked))
    ]
    whitened, ranked = (np.log1p((z**2).sum(axis=1) / d).mean() for z in held)
    far = np.log1p((y.whitened**2).sum() / d) if len(rows) == 1 else -np.inf
    return [*kernels, *map(mean_product, held), whitened, -whitened, ranked, -ranked, far]


@pytest.fixture
def without_numba(monkeypatch):
    """What runs where numba is not installed."""
    monkeypatch.setattr(windows, "numba_or_none", lambda: None)
    windows.compiled_loop.cache_clear()
    yield
    windows.compiled_loop.cache_clear()


@pytest.mark.parametrize("name", ["all", "gaussian", "laplace", "matern", "polynomial2", "sum"])
def test_all_windows_are_the_definition(name):
    reference = Reference.of(X, None if name == "all" else KERNELS[name])
    found = statistics(reference, Y)
    assert found.shape[1] == (len(COMPONENTS) if name == "all" else 1)
    for t in (0, 1, 4, 8, 9, 24):
        for w, length in enumerate(LENGTHS):
            expected = slow_statistics(reference, Y[t + 1 - length : t + 1]) if t + 1 >= length else -np.inf
            assert_allclose(found[w, :, t], expected, rtol=1e-10, atol=1e-11)


REFERENCES = {"all": None, "gaussian": mh.Gaussian(1.5), "laplace": mh.Laplace(1.2)}


@pytest.mark.parametrize("name", REFERENCES)
def test_compiled_loops_are_the_numpy_ones(name, request):
    reference = Reference.of(X, REFERENCES[name])
    fast = statistics(reference, Y)
    request.getfixturevalue("without_numba")
    assert_allclose(fast, statistics(reference, Y), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-200, 1e-5, 1e5, 1e200])
def test_units_do_not_matter(scale):
    base = statistics(Reference.of(X), Y)
    assert_allclose(statistics(Reference.of(scale * X), scale * Y), base, rtol=1e-9, atol=1e-11)


CUTS = {"single rows": range(1, 25), "one and the rest": [1], "uneven": [2, 3, 11, 12, 23], "the middle": [12]}


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", REFERENCES)
def test_cuts_change_no_bit(name, compiled, cuts, request):
    if not compiled:
        request.getfixturevalue("without_numba")
    reference = Reference.of(X, REFERENCES[name])
    assert_array_equal(statistics(reference, Y, list(CUTS[cuts])), statistics(reference, Y))


@pytest.mark.parametrize("compiled", [True, False])
def test_sums_do_not_change_when_rows_come(compiled, request):
    if not compiled:
        request.getfixturevalue("without_numba")
    start = WindowSums.empty(LENGTHS, np.zeros((4, 2)), 1)
    moved, _ = start.after(np.ones((3, 11, 1)), np.ones((3, 2)))
    assert moved.singles.any()
    assert not start.pairs.any()
    assert not start.singles.any()


@pytest.mark.parametrize("name", REFERENCES)
def test_simulated_streams_are_sums_of_the_table(name, request):
    """A lookup in the table gives the sums of its values, in compiled loops and in numpy."""
    reference = Reference.of(X, REFERENCES[name])
    rows = population(reference)
    draws = np.random.default_rng(0).integers(0, 40, (3, 8 + 30)).astype(np.int32)
    constants = reference.window_constants(LENGTHS)
    m = reference.paired

    def simulated():
        sums = WindowSums.empty(LENGTHS, constants, m, 3)
        sums, first = sums.after(rows.values, rows.singles, np.ascontiguousarray(draws[:, :20]))
        _, second = sums.after(rows.values, rows.singles, np.ascontiguousarray(draws[:, 12:]))
        return np.concatenate([first, second], axis=2).reshape(*constants.shape, 3, 30)

    found = simulated()
    for w, length in enumerate(LENGTHS):
        for t in (length - 1, 20, 29):
            chosen = draws[1, 8 + t + 1 - length : 8 + t + 1]
            pairs = rows.values[chosen[:, None], chosen].astype(float)[np.triu_indices(length, 1)]
            expected = constants[w] + rows.singles[chosen].mean(axis=0)
            expected[:m] += pairs.mean(axis=0) if length > 1 else 0.0
            assert_allclose(found[w, :, 1, t], expected, rtol=1e-6, atol=1e-7)
    request.getfixturevalue("without_numba")
    assert_allclose(simulated(), found, rtol=1e-12, atol=1e-12)

"""Components of a reference: whitening, ranks, and values that rows have under metrics fitted without them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata

import muhat as mh
from muhat.apps.monitor.reference import Metric, Ranks, Reference, population
from muhat.linalg.whitening import leave_one_out, leave_two_out

RNG = np.random.default_rng(0)
ROWS = {
    "few columns": RNG.normal(size=(20, 3)) @ RNG.normal(size=(3, 3)),
    "many columns": RNG.normal(size=(12, 15)),
    "a constant column": np.column_stack([RNG.normal(size=(15, 2)), np.full(15, 4.0)]),
    "few values": RNG.integers(0, 3, size=(25, 3)).astype(float),
}


@pytest.mark.parametrize("name", ROWS)
def test_whitened_rows_have_the_metric_of_their_ridge(name):
    reference = Reference.of(ROWS[name])
    y = reference.metric.rows
    n, d = y.shape
    P = np.linalg.inv(y.T @ y / n + 0.1 * d / n * np.eye(d))
    assert_allclose(reference.views.whitened @ reference.views.whitened.T, y @ P @ y.T, rtol=1e-8, atol=1e-9)
    assert_allclose(reference.view(ROWS[name]).whitened, reference.views.whitened, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ROWS)
def test_closed_forms_are_refits_without_the_rows(name):
    """Brute force: mean and covariance of the other rows, without every row and without some pairs."""
    metric = Metric.of(ROWS[name] - ROWS[name].mean(axis=0))
    n, d = metric.rows.shape
    pairs, rows = leave_two_out(metric.rows, metric.ridge), leave_one_out(metric.rows, metric.ridge)
    for i in range(n):
        for j in (i, (i + 5) % n):
            kept = np.delete(metric.rows, [i, j], axis=0)
            centre = kept.mean(axis=0)
            P = np.linalg.inv((kept - centre).T @ (kept - centre) / len(kept) + metric.ridge * np.eye(d))
            one, other = metric.rows[i] - centre, metric.rows[j] - centre
            if i == j:
                assert_allclose(rows.squared_norms[i], one @ P @ one, rtol=1e-7, atol=1e-8)
                gaps = metric.rows - metric.rows[i]
                assert_allclose(
                    rows.squared_distances[:, i], np.einsum("kj,jl,kl->k", gaps, P, gaps), rtol=1e-7, atol=1e-8
                )
            else:
                assert_allclose(pairs.products[i, j], one @ P @ other, rtol=1e-7, atol=1e-8)
                assert_allclose(pairs.squared_distances[i, j], (one - other) @ P @ (one - other), rtol=1e-7, atol=1e-8)


def test_ranks_are_normal_scores_among_the_other_rows():
    rows = RNG.integers(0, 9, size=(30, 2)).astype(float)
    ranks, own = Ranks.of(rows)
    for i in range(30):
        others = np.delete(rows[:, 0], i)
        position = rankdata(np.append(others, rows[i, 0]))[-1] / 31.0
        expected = norm.ppf((2 * position * 31 - 1) / 60)
        assert_allclose(own[i, 0] * ranks.scale[0] + ranks.centre[0], expected, rtol=1e-9, atol=1e-9)
    new = np.array([[-1.0, 4.0], [99.0, 4.0], [4.5, 4.0]])
    below = (rows[:, 0, None] < new[:, 0]).sum(axis=0) + (rows[:, 0, None] <= new[:, 0]).sum(axis=0)
    expected = norm.ppf((below + 1) / 62)
    assert_allclose(ranks(new)[:, 0] * ranks.scale[0] + ranks.centre[0], expected, rtol=1e-9)
    # The share of N values that are less, ties counted half: N is n for new rows, and n − 1 for those of the reference.
    scores = own[:, 0] * ranks.scale[0] + ranks.centre[0]
    for rows_below, n, score in (
        ((rows[:, 0] < rows[7, 0]).sum() + ((rows[:, 0] == rows[7, 0]).sum() - 1) / 2, 29, scores[7]),
        (
            (rows[:, 0] < 4.0).sum() + (rows[:, 0] == 4.0).sum() / 2,
            30,
            (ranks(np.full((1, 2), 4.0)) * ranks.scale)[0, 0] + ranks.centre[0],
        ),
    ):
        assert_allclose(norm.cdf(score), (rows_below + 0.5) / (n + 1), rtol=1e-9)
    assert_allclose(ranks(new), np.concatenate([ranks(row[None]) for row in new]), rtol=0, atol=0)


def test_the_population_has_no_value_of_a_row_with_itself():
    reference = Reference.of(ROWS["few columns"])
    rows = population(reference)
    for j in range(reference.paired):
        K = rows.values[..., j].astype(float)
        expected = (K.sum(axis=1) - np.diag(K)) / 19
        assert_allclose(np.diag(K), expected, rtol=1e-4, atol=1e-5)
        assert_allclose(K, K.T, rtol=1e-4, atol=1e-5)
    assert rows.singles.shape == (20, 10)
    assert np.isfinite(rows.singles).all()


def test_the_population_of_kernels_is_their_gram_matrix():
    reference = Reference.of(ROWS["few columns"], mh.Laplace(1.0))
    rows = population(reference)
    K = mh.Laplace(1.0)(ROWS["few columns"] / ROWS["few columns"].std(axis=0))
    off = ~np.eye(20, dtype=bool)
    assert_allclose(rows.values[off, 0], K[off], rtol=1e-6)
    assert_allclose(rows.singles[:, 0], -2 * (K.sum(axis=1) - 1) / 19, rtol=1e-12)
    with pytest.raises(ValueError, match="not finite"):
        population(Reference.of(ROWS["few columns"], mh.Polynomial(1000)))


def test_huge_rows_are_held_where_their_squares_are_finite():
    reference = Reference.of(ROWS["few columns"])
    views = reference.view(np.array([[1e300, -1e300, 0.0]]))
    assert np.isfinite(reference.singles(views)).all()
    assert all(np.isfinite(view).all() for view in views)


@pytest.mark.parametrize("store", [lambda x: x.astype(np.float32), lambda x: x * 3 / 3], ids=["single", "computed"])
@pytest.mark.parametrize("one", [True, False], ids=["a row", "many rows"])
def test_rounding_is_no_difference(store, one):
    rng = np.random.default_rng(0)
    reference, rows = (rng.integers(1, 10, size=(n, 2)) / 10 for n in (60, 1 if one else 50))
    assert_array_equal(Ranks.of(reference)[0](store(rows).astype(float)), Ranks.of(reference)[0](rows))
    assert_array_equal(Ranks.of(store(reference).astype(float))[0](rows), Ranks.of(reference)[0](rows))

"""Conditional kernel means: leave-one-out against refits, distributions that are ones, and every kind of input."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import muhat as mh
from muhat.conditional import conditional_mean
from muhat.conditional.blend import energy_share
from muhat.conditional.centred_ridge import (
    DIRECTIONS,
    RIDGES,
    CentredRidge,
    NewRows,
    fit_embedding,
    last_lowest,
    output_directions,
)
from muhat.conditional.target import _log_sizes, fit_location_scale


def pairs(n=40, d=2, seed=0, q=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noise = rng.normal(size=(n, q or 1)) * (0.2 + 0.3 * np.abs(X[:, :1]))
    Y = np.sin(2 * X[:, :1]) + noise
    return X, Y[:, 0] if q is None else Y


@parametrize_with_checks([mh.ConditionalKernelMean()])
def test_rules_of_estimators(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- leave-one-out


def refitted(K, Z, i, ridges, unit):
    """Row i of Z by regression on the other rows: every column by the normal equations, with an intercept."""
    kept = np.delete(np.arange(len(K)), i)
    n, found = len(kept), []
    for z, ridge in zip(Z.T, ridges, strict=True):
        if np.isinf(ridge):
            found.append(z[kept].mean())
            continue
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = K[np.ix_(kept, kept)] + ridge * unit * np.eye(n)
        system[:n, n] = system[n, :n] = 1.0
        solved = np.linalg.solve(system, np.append(z[kept], 0.0))
        found.append(K[i, kept] @ solved[:n] + solved[n])
    return np.array(found)


CASES = {
    "generic": pairs(),
    "duplicates": tuple(np.concatenate([part[:12], part[:12], part[:3]]) for part in pairs()),
    "two rows": pairs(2),
    "ties in y": (pairs()[0], np.round(pairs()[1])),
    "wide": pairs(15, 40),
}


@pytest.mark.parametrize("case", CASES)
def test_leave_one_out_is_n_refits(case):
    X, y = CASES[case]
    kernel = mh.Gaussian(1.5)
    K, L = kernel(X), mh.Gaussian(0.7)(y[:, None])
    ridge = CentredRidge(K)
    ridges = np.array([RIDGES[9], RIDGES[15], RIDGES[-1]])
    Z = np.column_stack([y, y**2, np.sin(y)])
    want = np.array([refitted(K, Z, i, ridges, ridge.unit) for i in range(len(K))])
    assert_allclose(Z - ridge.left_out(Z, ridges), want, atol=1e-10)
    # The element that is fitted without row i, and its loss, from the refits of every direction of the features of y.
    fit = fit_embedding([ridge], L)
    coordinates, back, _ = fit.directions
    refits = np.array([refitted(K, coordinates, i, fit.ridges, ridge.unit) for i in range(len(K))])
    average = (1.0 - np.eye(len(K))) / (len(K) - 1)
    elements = average + (refits - average @ coordinates) @ back
    W = fit.left_out_weights()
    assert_allclose(np.einsum("ij,jk,ik->i", W - elements, L, W - elements), 0, atol=1e-10)
    errors = np.eye(len(K)) - elements
    assert_allclose(fit.score, np.einsum("ij,jk,ik->i", errors, L, errors).mean(), atol=1e-10)


def test_new_rows_are_predicted_as_by_the_normal_equations():
    X, y = pairs()
    ridge = CentredRidge(mh.Gaussian(1.0)(X[:-1]))
    K = mh.Gaussian(1.0)(X)
    want = refitted(K, y[:, None], len(X) - 1, RIDGES[[12]], ridge.unit)
    assert_allclose(ridge.predicted(K[-1:, :-1], y[:-1, None], RIDGES[[12]])[0], want, atol=1e-10)


def test_weights_at_new_rows_are_those_of_the_normal_equations():
    X, y = pairs()
    K = mh.Gaussian(1.0)(X)
    fit = fit_embedding([CentredRidge(K[:-1, :-1])], mh.Gaussian(0.7)(y[:-1, None]))
    Z, back, _ = fit.directions
    want = refitted(K, np.append(Z, np.zeros((1, Z.shape[1])), axis=0), len(Z), fit.ridges, fit.ridge.unit)
    assert_allclose(fit.weights(K[-1:, :-1])[0], 1 / len(Z) + want @ back, atol=1e-10)


@pytest.mark.parametrize("number", [3, 12, -1])
def test_variances_are_those_of_the_normal_equations(number):
    """Of a row given the others, by leave-one-out and as a new row; the intercept is estimated."""
    X, _ = pairs(20)
    K = mh.Gaussian(1.0)(X) * np.outer(1 + X[:, 0] ** 2, 1 + X[:, 0] ** 2)  # its diagonal is not constant
    ridge, kept = CentredRidge(K), slice(0, 19)
    fewer = CentredRidge(K[kept, kept])
    chosen = float(RIDGES[number])
    lam = chosen * fewer.unit
    if np.isinf(chosen):
        want = 1 + 1 / 19
    else:
        system = np.block([[K[kept, kept] + lam * np.eye(19), np.ones((19, 1))], [np.ones((1, 19)), np.zeros((1, 1))]])
        side = np.append(K[19, kept], 1.0)
        want = 1 + (K[19, 19] - side @ np.linalg.solve(system, side)) / lam
    new = NewRows(K[19:, kept], K[19:, 19])
    assert_allclose(fewer.variances(new, chosen), want, rtol=1e-8)
    assert_allclose(ridge.left_out_variances(lam / ridge.unit)[19], want, rtol=1e-8)


def test_evidence_is_the_restricted_likelihood():
    """Up to a constant, that of n − 1 orthonormal contrasts of y."""
    X, y = pairs(20)
    K = mh.Gaussian(1.0)(X)
    ridge = CentredRidge(K)
    contrasts = np.linalg.svd(np.eye(20) - 1 / 20)[0][:, :19]
    z = contrasts.T @ y
    want = []
    for lam in RIDGES[:-1] * ridge.unit:
        S = contrasts.T @ K @ contrasts + lam * np.eye(19)
        want.append(19 * np.log(z @ np.linalg.solve(S, z) / 19) + np.linalg.slogdet(S)[1])
    assert_allclose(ridge.evidences(y)[:-1], want, rtol=1e-8)
    assert_allclose(ridge.evidences(y)[-1], 19 * np.log(z @ z / 19))


def test_shares_minimise_the_leave_one_out_loss():
    X, y = pairs()
    model = mh.ConditionalKernelMean().fit(X, y)
    W, L = model._embedding.left_out_weights(), model.kernel_y_(y[:, None])
    atoms = model._units.restore(model._target.left_out_atoms(slice(None)))
    left_out = [
        (mh.embed(model.kernel_y_, y[:, None], w), mh.embed(model.kernel_y_, a)) for w, a in zip(W, atoms, strict=True)
    ]
    own = [mh.embed(model.kernel_y_, y[i : i + 1, None]) for i in range(len(y))]

    def loss(a, b):
        return np.mean([(a * f + b * g - h).norm() ** 2 for (f, g), h in zip(left_out, own, strict=True)])

    best = loss(*model.shares_)
    assert_allclose(model.loo_score_, best, atol=1e-10)
    assert np.shape(L) == (len(y), len(y))
    a, b = model.shares_
    for da, db in [(0.02, 0), (-0.02, 0), (0, 0.02), (0, -0.02), (0.02, -0.02), (-0.02, 0.02)]:
        assert loss(*np.clip([a + da, b + db], 0, 1)) >= best - 1e-12


@pytest.mark.parametrize("q", [1, 2])
def test_the_share_of_quantiles_minimises_the_energy_score(q):
    X, Y = pairs(25, q=q)
    target = fit_location_scale([CentredRidge(mh.Gaussian(1.0)(X))], Y)
    P = np.random.default_rng(1).dirichlet(np.ones(25), size=25)
    atoms = target.left_out_atoms(slice(None))

    def score(share):
        found = []
        for i, y in enumerate(Y):
            points = np.concatenate([Y, atoms[i]])
            weights = np.concatenate([(1 - share) * P[i], np.full(len(atoms[i]), share / len(atoms[i]))])
            apart = np.linalg.norm(points[:, None] - points, axis=2)
            found.append(weights @ np.linalg.norm(points - y, axis=1) - 0.5 * weights @ apart @ weights)
        return np.mean(found)

    share = energy_share(P, target, Y)
    assert score(share) <= min(score(s) for s in np.linspace(0, 1, 101)) + 1e-12


def test_logarithms_of_residuals_are_raised_by_a_share_of_the_median():
    errors = np.array([0.0, -1.0, 2.0, 3.0, 100.0])
    assert_allclose(_log_sizes(errors), 0.5 * np.log(errors**2 + 0.05 * 4.0))
    mostly_exact = np.array([0.0, 0.0, 0.0, 2.0])
    assert_allclose(_log_sizes(mostly_exact), 0.5 * np.log(mostly_exact**2 + 0.05 * 1e-6))
    assert_array_equal(_log_sizes(np.zeros(3)), 0.0)


@pytest.mark.parametrize("q", [1, 2])
def test_the_shape_is_that_of_residuals(q):
    """As many left-out rows lie below each atom as its level says; of several columns the atoms are residuals."""
    X, Y = pairs(60, q=q)
    target = fit_location_scale([CentredRidge(mh.Gaussian(1.0)(X))], Y)
    residuals = (Y - target.centres) / target.spreads
    if q == 2:
        assert all(np.isclose(residuals, each).all(axis=1).any() for each in target.shape)
        assert {residuals[:, 0].min(), residuals[:, 0].max()} <= set(target.shape[:, 0])
    else:
        below = (target.left_out_atoms(slice(None))[:, :, 0] >= Y).mean(axis=0)
        assert_allclose(below, (np.arange(40) + 0.5) / 40, atol=1.1 / 60)


def test_the_last_of_the_lowest_scores_wins_ties():
    assert last_lowest(np.array([1.0, 0.0, 0.0, 2.0]), 0.0) == 2
    assert last_lowest(np.array([1.0, 0.0, 0.5, 2.0]), 0.5) == 2


def test_directions_do_not_depend_on_the_basis():
    """Equal variances, as of many categories of equal size, are never cut apart."""
    L = np.kron(np.eye(DIRECTIONS + 20), np.ones((2, 2)))
    found = output_directions(L)
    assert found.coordinates.shape[1] == DIRECTIONS + 19
    X = np.random.default_rng(0).normal(size=(len(L), 3))
    fit = fit_embedding([CentredRidge(mh.Gaussian(1.0)(X))], L)
    assert len(set(fit.ridges)) == 1
    order = np.random.default_rng(1).permutation(len(L))
    again = fit_embedding([CentredRidge(mh.Gaussian(1.0)(X[order]))], L[np.ix_(order, order)])
    assert_allclose(again.left_out_weights(), fit.left_out_weights()[np.ix_(order, order)], atol=1e-10)


# ---------------------------------------------------------------- means and distributions


@pytest.mark.parametrize("target", ["gaussian", None])
@pytest.mark.parametrize("q", [None, 3])
def test_means_weights_and_score_agree(target, q):
    X, Y = pairs(q=q)
    model = mh.ConditionalKernelMean(target=target).fit(X, Y)
    a, b = model.shares_
    new, wanted = pairs(10, seed=5, q=q)
    means = model.means(new)
    assert {mean.kernel for mean in means} == {model.kernel_y_}
    assert_allclose(model.weights(new).sum(axis=1), a, atol=1e-8)
    if target is None:
        assert (a, b, model.quantile_share_) == (1.0, 0.0, 0.0)
        assert_allclose(model.loo_score_, model._embedding.score, atol=1e-10)
        points = np.reshape(Y, (len(X), -1))
        assert_allclose([f(points) for f in means], model.weights(new) @ model.kernel_y_(points), atol=1e-10)
    rows = np.reshape(wanted, (10, -1))
    losses = [f.distance(mh.embed(model.kernel_y_, rows[[i]])) ** 2 for i, f in enumerate(means)]
    assert_allclose(model.score(new, wanted), -np.mean(losses), atol=1e-10)
    assert (model.lam_ >= 0).all()
    assert np.isfinite(model.loo_score_)


@pytest.mark.parametrize("target", ["gaussian", None])
def test_quantiles_means_and_draws_are_of_one_distribution(target):
    X, y = pairs(80)
    model = mh.ConditionalKernelMean(target=target, random_state=0).fit(X, y)
    at = X[:3]
    levels = np.linspace(0.05, 0.95, 19)
    Q = model.quantile(at, levels)
    assert (np.diff(Q, axis=1) >= 0).all()
    assert_array_equal(model.quantile(at, 0.5), Q[:, 9])
    drawn = model.sample(at, 20_000)
    assert drawn.shape == (3, 20_000)
    assert_array_equal(drawn, model.sample(at, 20_000, random_state=0))
    assert_allclose(drawn.mean(axis=1), model.predict(at), atol=5 * drawn.std() / 20_000**0.5)
    shares = (drawn[:, :, None] <= Q[:, None, :]).mean(axis=1)
    jumps = 2.0 / 40 + model._weights(model._new(at)).clip(0).max()
    assert (np.abs(shares - levels) <= jumps + 0.02).all()


def test_intervals_cover_left_out_and_new_rows():
    inside = []
    for seed in range(10):
        X, y = pairs(300, seed=seed)
        model = mh.ConditionalKernelMean().fit(X[:60], y[:60])
        low, high = model.interval(X[60:], coverage=0.8).T
        inside.append(((low <= y[60:]) & (y[60:] <= high)).mean())
        quantiles = model.quantile(X[60:], [0.1, 0.9])
        assert (low <= quantiles[:, 0]).all()
        assert (high >= quantiles[:, 1]).all()
    assert 0.77 < np.mean(inside) < 0.92


WORLDS = {
    "discrete": lambda rng, x: rng.poisson(np.exp(x[:, 0])).astype(float),
    "sparse": lambda rng, x: np.where(rng.random(len(x)) < 0.2, np.exp(x[:, 0] + rng.normal(size=len(x))), 0.0),
    "growing noise": lambda rng, x: x[:, 0] + np.exp(x[:, 1]) * rng.normal(size=len(x)),
    "heavy tails": lambda rng, x: x[:, 0] + rng.standard_t(2, size=len(x)),
}


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_cover_targets_of_every_kind(world):
    """90 % intervals of 40 rows, with a discrete column of x."""
    covered = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=240), rng.integers(0, 3, 240) / 2])
        y = WORLDS[world](rng, X)
        low, high = mh.ConditionalKernelMean().fit(X[:40], y[:40]).interval(X[40:], coverage=0.9).T
        covered.append(np.mean((low <= y[40:]) & (y[40:] <= high)))
    assert np.mean(covered) > 0.87


def test_too_few_rows_for_intervals_are_named():
    model = mh.ConditionalKernelMean().fit(*pairs(8))
    with pytest.warns(UserWarning, match="8 rows are too few for 90% intervals: at least 9"):
        model.interval([[0.0, 0.0]])


def test_intervals_are_wider_far_from_the_rows():
    """The location is known less there, though residuals do not tell."""
    X, _ = pairs(60)
    model = mh.ConditionalKernelMean().fit(X, np.sin(2 * X[:, 0]))
    near, far = np.diff(model.interval([[0.0, 0.0], [0.0, 8.0]]), axis=1)[:, 0]
    assert far > 3 * near


def test_a_nonlinear_signal_with_growing_noise_is_found():
    X, y = pairs(300, d=1)
    model = mh.ConditionalKernelMean().fit(X, y)
    grid = np.linspace(-1.2, 1.2, 31)[:, None]
    assert np.abs(model.predict(grid) - np.sin(2 * grid[:, 0])).max() < 0.3
    widths = np.diff(model.interval(grid), axis=1)[:, 0]
    assert widths[[0, -1]].min() > 1.3 * widths[15]


# ---------------------------------------------------------------- input


def told(model, X):
    return [model.predict(X), model.quantile(X, [0.2, 0.7]), model.interval(X), model.weights(X)]


def assert_close(one, other, X, others=None, tolerance=1e-8):
    for left, right in zip(told(one, X), told(other, X if others is None else others), strict=True):
        assert_allclose(left, right, atol=tolerance, rtol=tolerance)


def test_sample_weights_are_repetitions():
    X, y = pairs(20)
    counts = np.arange(20) % 3
    weighted = mh.ConditionalKernelMean().fit(X, y, sample_weight=counts)
    repeated = mh.ConditionalKernelMean().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    for method in ("predict", "interval"):
        assert_allclose(getattr(weighted, method)(X), getattr(repeated, method)(X), atol=1e-10)
    assert weighted.weights(X).shape == (20, 20)
    assert (weighted.weights(X)[:, counts == 0] == 0).all()
    with pytest.raises(ValueError, match="whole numbers"):
        mh.ConditionalKernelMean().fit(X, y, sample_weight=np.full(20, 1.5))


def test_a_gram_matrix_stands_for_the_rows():
    X, y = pairs(30)
    kernel = mh.Gaussian(1.2)
    model = mh.ConditionalKernelMean(kernel).fit(X, y)
    given = mh.ConditionalKernelMean("precomputed").fit(kernel(X), y)
    assert given.kernel_x_ == "precomputed"
    assert_close(given, model, kernel(X[:7], X), X[:7])
    counts = np.arange(30) % 2 + 1
    again = mh.ConditionalKernelMean("precomputed").fit(kernel(X), y, sample_weight=counts)
    same = mh.ConditionalKernelMean(kernel).fit(X, y, sample_weight=counts)
    assert_close(again, same, kernel(X[:7], X), X[:7])


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**-60, 2.0**60, 2.0**900])
def test_units_do_not_matter(unit):
    X, y = pairs(25)
    want = mh.ConditionalKernelMean(scale=True).fit(X, y)
    model = mh.ConditionalKernelMean(scale=True).fit(X * [1.0, unit], y * unit)
    new = X[:5] * [1.0, unit]
    assert_allclose(model.predict(new) / unit, want.predict(X[:5]), rtol=1e-8)
    assert_allclose(model.interval(new) / unit, want.interval(X[:5]), rtol=1e-8)


def test_the_scale_of_columns_is_chosen():
    """Columns of one unit are left alone where one of them says nothing, and scaled where units differ."""
    X, y = pairs(80)
    wide = mh.ConditionalKernelMean().fit(X * [1e-3, 1.0], y)
    assert isinstance(wide.kernel_x_, mh.kernels.Rescaled)
    quiet = mh.ConditionalKernelMean().fit(X * [1.0, 0.01], y)
    assert not isinstance(quiet.kernel_x_, mh.kernels.Rescaled)
    given = mh.ConditionalKernelMean(mh.Gaussian(2.0)).fit(X * [1.0, 1e3], y)
    assert given.kernel_x_ == mh.Gaussian(2.0)


def test_order_of_rows_and_precision():
    X, y = pairs(40)
    X, y = X.astype(np.float32).astype(float), y.astype(np.float32).astype(float)
    want = mh.ConditionalKernelMean().fit(X, y)
    order = np.random.default_rng(0).permutation(40)
    again = mh.ConditionalKernelMean().fit(X[order], y[order])
    for left, right in zip(told(want, X)[:3], told(again, X)[:3], strict=True):
        assert_allclose(left, right, atol=1e-8)
    assert_close(mh.ConditionalKernelMean().fit(X.astype(np.float32), y.astype(np.float32)), want, X)


CONSTANT = {
    "equal rows of x": (np.ones((6, 2)), pairs(6)[1]),
    "constant y": (pairs(8)[0], np.full(8, 3.0)),
    "two rows": pairs(2),
    "three rows": pairs(3),
    "a constant column": (np.column_stack([pairs(9)[0], np.full(9, 7.0)]), pairs(9)[1]),
    "two values of y": (pairs(30)[0], (pairs(30)[1] > 0).astype(float)),
    "one outlier": (pairs(20)[0], np.append(np.zeros(19), 1e6)),
    "subnormal y": (pairs(20)[0], 5e-324 * (np.arange(20) % 4)),
}


@pytest.mark.filterwarnings("ignore:.*rows are too few")
@pytest.mark.parametrize("case", CONSTANT)
@pytest.mark.parametrize("target", ["gaussian", None])
def test_awkward_rows(case, target):
    X, y = CONSTANT[case]
    model = mh.ConditionalKernelMean(target=target).fit(X, y)
    assert all(np.isfinite(part).all() for part in told(model, X))
    assert np.isfinite([mean.norm() for mean in model.means(X)]).all()
    if case == "equal rows of x":
        assert np.ptp(model.predict(X)) < 1e-10
    if case == "constant y":
        assert_allclose(model.predict(X), 3.0)
        assert_allclose(model.interval(X), 3.0)


def test_mixed_columns():
    X, y = pairs(60)
    plan = np.where(np.arange(60) % 3 == 0, "a", "b")
    y = y + 3.0 * (plan == "a")
    frame = pd.DataFrame({"size": X[:, 0], "plan": plan})
    frame.loc[3, "size"] = np.nan
    model = mh.ConditionalKernelMean().fit(frame, y)
    assert list(model.feature_names_in_) == ["size", "plan"]
    a, b = model.predict(pd.DataFrame({"plan": ["a", "b"], "size": [0.1, 0.1]}))
    assert 1.5 < a - b < 4.5
    with pytest.raises(ValueError, match="plan"):
        model.predict(frame[["size"]])
    targets = pd.DataFrame({"first": y, "second": X[:, 1]})
    both = mh.ConditionalKernelMean().fit(frame[["plan"]], targets)
    assert list(both.predict(frame[["plan"]]).columns) == ["first", "second"]
    assert both.means(frame[["plan"]][:1])[0].feature_names == ("first", "second")
    assert both.sample(frame[["plan"]][:4], 3).shape == (4, 3, 2)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"kernel_x": "gaussian"}, "kernel"),
        ({"kernel_y": "gaussian"}, "kernel_y"),
        ({"target": "normal"}, "target='normal'"),
        ({"scale": "auto"}, "scale"),
    ],
)
def test_wrong_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        mh.ConditionalKernelMean(**params).fit(*pairs(5))


def test_wrong_calls():
    X, y = pairs(20)
    model = mh.ConditionalKernelMean().fit(X, y)
    for q in (0, 1, 1.2, [0.5, np.nan], [], [[0.5]]):
        with pytest.raises(ValueError, match="q="):
            model.quantile(X, q)
    for coverage in (0, 1, 1.5, "0.9"):
        with pytest.raises(ValueError, match="coverage"):
            model.interval(X, coverage)
    with pytest.raises(ValueError, match="10"):
        model.fit(X, y[:10])
    assert_array_equal(model.predict(X), clone(model).fit(X, y).predict(X))
    both = mh.ConditionalKernelMean().fit(X, np.column_stack([y, y**2]))
    with pytest.raises(ValueError, match="2 columns"):
        both.quantile(X, 0.5)
    with pytest.raises(ValueError, match="columns"):
        both.score(X, y[:, None])


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(conditional_mean, "MAX_ROWS", 30)
    with pytest.raises(ValueError, match=r"31 rows.*GB"):
        mh.ConditionalKernelMean().fit(*pairs(31))

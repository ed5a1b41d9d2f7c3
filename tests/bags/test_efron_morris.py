"""Pooled means of bags: against the formula written out, and where they must help or do nothing."""

import numpy as np
import pytest
from bag_samples import moments_in_rows, random_bags
from numpy.testing import assert_allclose, assert_array_equal

import muhat as mh
from muhat.bags import efron_morris
from muhat.bags.moments import BagMoments
from muhat.bags.prior import pooled_means


def written_out(bags, ridge, blend, population=np.inf):
    """The rule in the space of the rows, where the kernel is linear, a bag at a time."""
    share = 1 / np.array([len(bag) for bag in bags]) - 1 / np.asarray(population, dtype=float)
    means, centre, regular, B = moments_in_rows(bags, ridge, share)
    B = (1 - blend) * B + blend * np.trace(B) / (np.trace(regular) / (1 + ridge)) * regular
    rows = zip(share, means, strict=True)
    return np.array([centre + B @ np.linalg.solve(B + part * regular, mean - centre) for part, mean in rows])


def pool_of(centre, within, between, noise):
    """A prior with given moments."""
    g, V = noise
    root = np.sqrt(g)
    ratios, E = np.linalg.eigh((V.T @ between @ V) / np.outer(root, root))
    common = np.trace(between) / np.trace(within)
    into, back = (V / root) @ E, E.T @ (V * root).T
    return efron_morris.Pool(
        1.0, centre, within, noise, np.linalg.cholesky(between), ratios.clip(0.0), common, into, back
    )


def as_rows(elements):
    """Elements of a linear kernel as the vectors that they are."""
    return np.array([element(np.eye(element.n_features)) for element in elements])


@pytest.mark.parametrize("sizes", [(4,) * 12, (1, 4, 9, 2, 30, 1, 3, 17)])
@pytest.mark.parametrize(("ridge", "blend"), [(0.01, 0.0), (1.0, 0.0), (0.3, 0.2), (0.3, 1.0)])
@pytest.mark.parametrize("population", [np.inf, 31, "a half", "all but one"])
def test_the_rule_in_the_space_of_the_rows(sizes, ridge, blend, population):
    bags = random_bags(sizes)
    known = {"a half": 2 * np.array(sizes), "all but one": [n + 1 for n in sizes]}.get(population, population)
    got = as_rows(pooled_means(bags, mh.Linear(), ridge=ridge, blend=blend, kinds=1, population=known))
    assert_allclose(got, written_out(bags, ridge, blend, known), rtol=1e-7, atol=1e-9)


def loss_over_plain(pooled, bags, populations):
    """Squared distances of pooled means from those of populations, over those of plain averages."""
    truth, plain = ([mh.embed(pooled[0].kernel, each) for each in some] for some in (populations, bags))
    losses = [sum(f.distance(g) ** 2 for f, g in zip(each, truth, strict=True)) for each in (pooled, plain)]
    return losses[0] / losses[1]


def finite_loss(n, of, **told):
    """Loss of pooled means over that of averages, of n rows without replacement out of so many."""
    rng = np.random.default_rng(0)
    whole = [rng.normal(size=(of, 3)) + 0.3 * rng.normal(size=3) for _ in range(60)]
    bags = [rng.choice(rows, n, replace=False) for rows in whole]
    return loss_over_plain(pooled_means(bags, **told), bags, whole)


@pytest.mark.slow
def test_a_population_that_is_almost_seen_is_left_alone_when_told():
    blind, told = finite_loss(15, 20), finite_loss(15, 20, population=20)
    assert blind > 1.2  # shrunk as if the rest of the population were unknown
    assert told < 1.0


def test_a_large_population_is_one_without_end():
    bags = random_bags()
    want = as_rows(pooled_means(bags, mh.Linear()))
    assert_allclose(as_rows(pooled_means(bags, mh.Linear(), population=1e12)), want, rtol=1e-8)


def test_the_covariance_of_bags_of_any_size_is_unbiased():
    """Where B and W are known: the mean of many estimates, before the positive part, is B."""
    rng = np.random.default_rng(0)
    sizes = np.tile([1, 2, 5, 40], 5)
    B, W = np.diag([4.0, 2.0]), np.array([[1.0, 0.3], [0.3, 0.5]])
    estimates = []
    for _ in range(500):
        truth = rng.multivariate_normal(np.zeros(2), B, size=20)
        noise = rng.multivariate_normal(np.zeros(2), W, size=20) / np.sqrt(sizes)[:, None]
        root = efron_morris.estimate_between(truth + noise, sizes, W)[1]
        estimates.append(root @ root.T)
    errors = np.std(estimates, axis=0) / np.sqrt(500)
    assert (np.abs(np.mean(estimates, axis=0) - B) < 4 * errors).all()


@pytest.mark.parametrize("blend", [0.0, 0.3, 1.0])
def test_the_estimate_of_the_risk_is_that_of_the_loss(blend):
    rng = np.random.default_rng(0)
    B, W, sizes = np.diag([1.0, 0.2, 0.0]), np.diag([0.5, 2.0, 1.0]), np.array([3, 8])
    known = {"between": 0.7 * B + 0.1, "within": W, "centre": np.zeros(3)}
    pool = pool_of(**known, noise=(np.diag(W) + 0.5 * np.diag(W).mean(), np.eye(3)))
    gaps = []
    for _ in range(1000):
        truth = rng.normal(size=(2, 3)) * np.sqrt(np.diag(B))
        X = truth + rng.normal(size=(2, 3)) * np.sqrt(np.diag(W)) / np.sqrt(sizes)[:, None]
        residuals, optimism = pool.left_out(X, sizes, blend)
        risk = np.square(residuals).sum() + (2.0 * optimism - np.trace(W) / sizes).sum()
        gaps.append(risk - np.square(X - residuals - truth).sum())
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(1000)


@pytest.mark.parametrize("ridge", [0.3, 10.0])
def test_the_estimate_of_the_risk_of_its_own_bags_is_that_of_their_loss(ridge):
    """Where B has full rank; without what B follows of their noise the estimate would be too low."""
    rng = np.random.default_rng(0)
    W, sizes = np.diag([0.2, 0.3, 0.3, 0.2]), rng.integers(3, 12, size=20)
    found = []
    for _ in range(300):
        truth = 0.5 * rng.normal(size=(20, 4))
        X = truth + rng.normal(size=(20, 4)) * np.sqrt(np.diag(W)) / np.sqrt(sizes)[:, None]
        pool = efron_morris.fit_pools(BagMoments(X, W, 100), sizes, [ridge])[0]
        loss = np.square(pool.means(X, sizes) - truth).sum(axis=1).mean()
        residuals, optimism = pool.left_out(X, sizes, 0.0)
        naive = (np.square(residuals).sum(axis=1) + 2.0 * optimism - 1.0 / sizes).mean()
        found.append((pool.own_risk(X, sizes, 0.0, pool.weights(X, sizes)) - loss, naive - loss))
    gap, naive = np.mean(found, axis=0)
    error = np.std(found, axis=0)[0] / np.sqrt(300)
    assert naive < -5 * error
    assert abs(gap) < 0.3 * abs(naive) + 4 * error  # the smaller term is left out


@pytest.mark.parametrize("kernel", [mh.Gaussian(), mh.Laplace(), mh.Polynomial(2)])
@pytest.mark.parametrize("n", [3, 6])
def test_risk_is_below_that_of_the_plain_average(kernel, n):
    rng = np.random.default_rng(0)
    population = [rng.normal(size=(60, 3)) + 0.3 * rng.normal(size=3) for _ in range(30)]
    bags = [rng.choice(rows, n) for rows in population]
    assert loss_over_plain(pooled_means(bags, kernel), bags, population) < 0.6


def relative_loss(centres, sizes, **options):
    """Loss of pooled means over that of the plain averages, of normal bags with given centres."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(centre, size=(n, len(centre))) for centre, n in zip(centres, sizes, strict=True)]
    populations = [mh.GaussianMixture([1.0], [centre], [1.0]) for centre in centres]
    return loss_over_plain(pooled_means(bags, **options), bags, populations)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "bound"), [(3.0, 0.97), (20.0, 1.001)])
@pytest.mark.parametrize("n", [3, 8])
def test_bags_with_little_in_common_lose_nothing(scale, bound, n):
    """Centres in more directions than 40 bags can tell: by the covariance of their means alone 0.98 to 1.002."""
    centres = scale * np.random.default_rng(1).normal(size=(40, 10))
    assert relative_loss(centres, [n] * 40) < bound


def test_bags_of_very_unequal_sizes():
    centres = 0.3 * np.random.default_rng(1).normal(size=(12, 2))
    sizes = [1, 2000, 1, 1, 2, 1, 300, 1, 1, 3, 1, 1]
    assert relative_loss(centres, sizes) < 0.3


def test_large_bags_keep_averages_that_too_few_landmarks_would_spoil():
    centres = 0.3 * np.random.default_rng(1).normal(size=(20, 2))
    few, narrow = mh.Nystroem(n_components=20, random_state=0), mh.Gaussian(0.3)
    assert relative_loss(centres, [100] * 20, kernel=narrow, features=few) == 1.0  # 1.75 in their span
    mixed = relative_loss(centres, [3] * 10 + [100] * 10, kernel=narrow, features=few, kinds=1)
    assert mixed < 0.1  # 0.12 in their span; small bags gain more than they lose


def test_one_direction_is_found_where_one_factor_would_not_do():
    """Four centres, shared by many bags: three directions of 5 matter, and the others are noise."""
    centres = np.repeat(4.0 * np.eye(4, 5), 10, axis=0)
    assert relative_loss(centres, [6] * 40) < 0.5


def test_large_bags_keep_their_means():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(2000, 1)) + 3 * i for i in range(4)]
    pooled = as_rows(pooled_means(bags, mh.Linear()))
    assert_allclose(pooled, [bag.mean(axis=0) for bag in bags], atol=2e-3)
    small = as_rows(pooled_means([*bags[:3], bags[3][:1]], mh.Linear()))
    assert_allclose(small[:3], pooled[:3], atol=2e-2)


def test_bags_of_one_distribution_share_a_mean():
    rng = np.random.default_rng(0)
    pooled = pooled_means([rng.normal(size=(8, 2)) for _ in range(60)])
    plain = [mh.embed(pooled[0].kernel, rng.normal(size=(8, 2))) for _ in range(60)]
    apart = [np.mean([f.distance(each[0]) for f in each[1:]]) for each in (pooled, plain)]
    assert apart[0] < 0.3 * apart[1]


HARD = {
    "one bag": random_bags((5,)),
    "one bag of one row": random_bags((1,)),
    "two bags": random_bags((5, 2)),
    "one row in a bag": random_bags((1, 4, 3)),
    "equal bags": random_bags((5,)) * 4,
    "no noise": [np.ones((3, 2)), np.zeros((2, 2))],
    "equal rows": [np.ones((3, 2))] * 3,
    "duplicates": [np.repeat(bag, 3, axis=0) for bag in random_bags((2, 3, 4))],
    "float32": [bag.astype(np.float32) for bag in random_bags((3, 4, 5))],
}


@pytest.mark.parametrize("case", HARD)
def test_hard_bags(case):
    bags = HARD[case]
    pooled = pooled_means(bags, mh.Gaussian(1.0))
    assert len(pooled) == len(bags)
    assert all(np.isfinite(f.norm()) for f in pooled)
    if case in ("one bag", "one bag of one row", "equal bags", "no noise", "equal rows"):
        for f, bag in zip(pooled, bags, strict=True):
            assert_allclose(f.distance(mh.embed(f.kernel, bag)), 0, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_do_not_matter(scale):
    bags = random_bags()
    want = as_rows(pooled_means(bags, mh.Linear()))
    assert_allclose(as_rows(pooled_means([scale * bag for bag in bags], mh.Linear())) / scale**1, want, rtol=1e-6)


def test_elements_meet_others_of_the_space():
    bags = random_bags()
    f, g = pooled_means(bags)[:2]
    assert f.measures[0].points is g.measures[0].points
    assert f.kernel == mh.Gaussian().resolve(np.concatenate(bags))
    assert f.distance(g) > 0
    assert f.distance(mh.embed(f.kernel, bags[0])) > 0


def test_fewer_landmarks_on_request():
    pooled = pooled_means(random_bags(), features=mh.Nystroem(n_components=10, random_state=0))
    assert len(pooled[0].measures[0]) == 10


@pytest.mark.parametrize("n", [2, 4, 5, 23, 100])
def test_folds_follow_the_bags_in_every_order_and_basis(n):
    rng = np.random.default_rng(0)
    means, sizes, within = rng.normal(size=(n, 3)), rng.integers(2, 30, size=n), np.diag([1.0, 2.0, 3.0])

    def folds_of(means, within, sizes):
        pool = efron_morris.fit_pools(BagMoments(means, within, 50), sizes, [0.05])[0]
        return [out for out, _ in efron_morris.fold_pools(pool, means, sizes)]

    folds = folds_of(means, within, sizes)
    assert_array_equal(np.sum(folds, axis=0), 1)  # every bag is left out once
    counts = [out.sum() for out in folds]
    assert len(folds) == min(n, efron_morris.FOLDS)
    assert max(counts) - min(counts) <= 1
    order, turned = rng.permutation(n), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    again = folds_of(means[order] @ turned, turned.T @ within @ turned, sizes[order])
    assert_array_equal(again, [out[order] for out in folds])


@pytest.mark.parametrize("period", [2, 5, 7, 10])
def test_no_fold_holds_all_bags_of_a_kind(period):
    """Else the prior of the others would know nothing of that kind."""
    rng = np.random.default_rng(0)
    kinds = np.arange(20 * period) % period
    means = 10.0 * kinds[:, None] + rng.normal(size=(len(kinds), 2))
    for order in (np.arange(len(kinds)), np.argsort(kinds, kind="stable")):
        moments, sizes = BagMoments(means[order], np.eye(2), 50), np.full(len(kinds), 5)
        for out, _ in efron_morris.fold_pools(efron_morris.fit_pools(moments, sizes, [0.05])[0], means[order], sizes):
            assert np.bincount(kinds[order][out], minlength=period).max() <= 10  # of 20

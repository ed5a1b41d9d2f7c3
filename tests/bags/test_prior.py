"""The prior over bags: against its formulas written out, for bags of the training set and for new ones."""

import numpy as np
from bag_samples import moments_in_rows, random_bags
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.cluster import AgglomerativeClustering
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import muhat as mh

NEW = random_bags((2, 40, 1, 7), seed=1)


def fitted(bags=None, **options):
    return mh.BagPrior(mh.Linear(), **options).fit(random_bags((4, 9, 2, 30, 3, 17) * 2) if bags is None else bags)


def test_new_bags_are_mapped_by_their_size():
    train = random_bags((4, 9, 2, 30, 3, 17) * 2)
    prior = fitted(train, ridge=0.2, blend=0.0)
    _, centre, W, B = moments_in_rows(train, 0.2)
    for bag, element in zip(NEW, prior.means(NEW), strict=True):
        want = centre + B @ np.linalg.solve(B + W / len(bag), bag.mean(axis=0) - centre)
        assert_allclose(element(np.eye(3)), want, rtol=1e-7)


def test_inner_products_of_vectors_are_those_of_pooled_means_in_units_of_the_noise():
    train = random_bags((4, 9, 2, 30, 3, 17) * 2)
    prior = fitted(train, ridge=0.2)
    _, centre, W, B = moments_in_rows(train, 0.2)
    pooled = [B @ np.linalg.solve(B + W / len(bag), bag.mean(axis=0) - centre) for bag in NEW]
    want = [[f @ np.linalg.solve(W, g) for g in pooled] for f in pooled]
    vectors = prior.transform(NEW)
    assert_allclose(vectors @ vectors.T, want, rtol=1e-7)
    assert_allclose(np.sort(prior.ratios_), np.sort(np.linalg.eigvals(np.linalg.solve(W, B)).real), atol=1e-9)


def test_log_odds_are_those_of_two_normal_distributions():
    train = random_bags((4, 9, 2, 30, 3, 17) * 2)
    prior = fitted(train, ridge=0.2)
    _, centre, W, B = moments_in_rows(train, 0.2)

    def odds(one, other):
        x, y = one.mean(axis=0) - centre, other.mean(axis=0) - centre
        left, right = B + W / len(one), B + W / len(other)
        together = multivariate_normal(np.zeros(6), np.block([[left, B], [B, right]]))
        apart = multivariate_normal(np.zeros(3), left).logpdf(x) + multivariate_normal(np.zeros(3), right).logpdf(y)
        return together.logpdf(np.concatenate([x, y])) - apart

    want = [[odds(one, other) for other in train] for one in NEW]
    assert_allclose(prior.log_odds(NEW, train), want, rtol=1e-6, atol=1e-9)
    assert_allclose(prior.log_odds(train, NEW), np.transpose(want), rtol=1e-6, atol=1e-9)
    assert_allclose(prior.log_odds(train), prior.log_odds(train).T, atol=1e-10)
    assert_allclose(prior.log_odds(train), prior.log_odds(train, train), atol=1e-12)


def test_means_of_training_bags_are_pooled_means():
    bags = random_bags()
    for options in ({}, {"blend": 0.3, "ridge": 1.0}, {"features": mh.Nystroem(n_components=20, random_state=3)}):
        one, other = mh.pooled_means(bags, **options), mh.BagPrior(**options).fit(bags).means(bags)
        assert [f.distance(g) for f, g in zip(one, other, strict=True)] == [0.0] * len(bags)


def test_small_bags_stay_near_the_centre():
    prior = mh.BagPrior().fit(random_bags((20,) * 30))
    bag = np.random.default_rng(0).normal(size=(400, 3)) + 1.0
    lengths = [np.linalg.norm(prior.transform([np.tile(bag[:1], (n, 1))])) for n in (1, 3, 10, 100)]
    assert (np.diff(lengths) > 0).all()  # the same mean, known better and better


def test_populations_are_told_apart_whatever_the_sizes():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 2))
    owners = np.repeat(np.arange(6), 8)
    bags = [rng.normal(centres[k], size=(rng.integers(3, 200), 2)) for k in owners]
    prior = mh.BagPrior(random_state=0).fit(bags)
    odds = prior.log_odds(bags)
    np.fill_diagonal(odds, -np.inf)
    assert np.mean(owners[odds.argmax(axis=1)] == owners) > 0.8
    np.fill_diagonal(odds, 0.0)
    clustering = AgglomerativeClustering(6, metric="precomputed", linkage="average").fit(odds.max() - odds)
    assert len(np.unique(clustering.labels_)) == 6


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    bags = [rng.normal(scale=1.0 + label, size=(rng.integers(3, 60), 2)) for label in y]
    pipeline = make_pipeline(mh.BagPrior(random_state=0), LogisticRegression())
    assert pipeline.fit(bags[:60], y[:60]).score(bags[60:], y[60:]) > 0.8
    names = pipeline[0].get_feature_names_out()
    assert names[0] == "bagprior0"
    assert len(names) == pipeline[0].transform(bags).shape[1]
    frame = mh.BagPrior().set_output(transform="pandas").fit_transform(bags)
    assert list(frame.columns) == list(mh.BagPrior().fit(bags).get_feature_names_out())


def test_bags_that_do_not_differ():
    bag = random_bags((6,))[0]
    prior = mh.BagPrior(mh.Gaussian(1.0)).fit([bag] * 4)
    assert_array_equal(prior.transform([bag]), [[0.0]])
    assert_allclose(prior.log_odds([bag, NEW[0]]), 0.0, atol=1e-15)
    assert all(f.distance(mh.embed(f.kernel, bag)) < 1e-7 for f in prior.means([bag, NEW[0]]))

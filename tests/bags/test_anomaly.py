"""Odd groups: scores against their formula, and false alarms that do not depend on size."""

import numpy as np
import pytest
from bag_samples import random_bags
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

import muhat as mh
from muhat.bags.anomaly import (
    FARTHEST,
    MOST_COLUMNS,
    SIZE_LEVEL,
    Form,
    MomentFeatures,
    Surprise,
    View,
    calibrating,
    cut_means,
    landmark_rows,
    shuffled_rows,
    size_dependence,
    size_grid,
)
from muhat.bags.data import Bags, check_bags
from muhat.bags.efron_morris import Pool, fit_pools
from muhat.bags.moments import bag_moments
from muhat.linalg.whitening import Whitening


def normal_bags(n, seed, low=3, high=300):
    """Bags of uneven sizes that differ in location."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(np.log(low), np.log(high), n)).astype(int)
    return [rng.normal(size=(size, 2)) + 0.5 * rng.normal(size=2) for size in sizes]


def correlated(bags):
    """The same rows with another correlation."""
    return [bag @ np.array([[1.0, 0.8], [0.0, 0.6]]) for bag in bags]


@pytest.fixture(scope="module")
def detector():
    return mh.GroupAnomalyDetector(random_state=0).fit(normal_bags(150, 0))


@pytest.mark.parametrize("weighted", [False, True])
def test_surprise_has_mean_zero_and_variance_one(weighted):
    rng = np.random.default_rng(0)
    A, C = rng.normal(size=(2, 5, 5))
    B, W, root = A @ A.T, C @ C.T, rng.normal(size=(5, 5)) if weighted else None
    for n in (1, 10, 1000):
        X = rng.multivariate_normal(np.zeros(5), B + W / n, size=20_000)
        pool = Pool.with_moments(np.zeros(5), np.linalg.cholesky(B), W, (np.ones(5), np.eye(5)))
        z = Form.of(pool, root).surprise(X, np.full(len(X), n))
        assert abs(z.mean()) < 4 / np.sqrt(len(X))
        assert_allclose(z.var(), 1, atol=4 * np.sqrt(np.var(z**2) / len(X)))


def test_the_score_is_the_sum_of_the_forms_written_out():
    data = check_bags(normal_bags(30, 0, high=30), mh.BagPrior(), reset=True)
    features = mh.Nystroem(mh.Gaussian(1.0), 15, random_state=0).fit(data.rows)
    moments = bag_moments(features, data)
    pool = fit_pools(moments, data.sizes, [0.1])[0]
    surprise = Surprise.of(View("kernel", [features], (0.0, 0.5, 1.0), 0.1), moments, data.sizes, np.array([4, 9]))
    got = surprise(moments.means[:3], np.array([8, 9, 12]), 1)
    regular = pool.within + 0.1 * np.trace(pool.within) / len(pool.within) * np.eye(len(pool.within))
    g, V = np.linalg.eigh(pool.between + regular / 9)
    for mean, n, score in zip(moments.means, (8, 9, 12), got, strict=False):
        x, covariance, want = mean / pool.unit - pool.centre, pool.between + pool.within / n, 0.0
        for M in (np.eye(len(x)), (V / np.sqrt(g)) @ V.T, (V / g) @ V.T):
            want += (x @ M @ x - np.trace(M @ covariance)) / np.sqrt(2 * np.trace(M @ covariance @ M @ covariance))
        assert_allclose(score, want, rtol=1e-8)


@pytest.mark.parametrize(("columns", "features"), [(1, 2), (3, 9), (MOST_COLUMNS + 5, 2 * MOST_COLUMNS)])
def test_moments_of_tables_of_any_width(columns, features):
    rows = np.random.default_rng(0).standard_t(2, size=(300, columns))
    moments = MomentFeatures(Whitening.of(rows))
    values = moments.evaluate(rows)
    assert values.shape == (300, features) == (300, moments.n_features_out_)
    assert np.abs(values).max() == FARTHEST  # heavy tails are cut
    if columns == 3:
        assert_allclose(values[:, 3:6], np.abs(values[:, :3]))


def test_cuts_are_means_of_rows_without_replacement():
    data = check_bags(random_bags((5, 1, 12)), mh.BagPrior(), reset=True)
    features = mh.Nystroem(mh.Linear(), landmarks=np.eye(3)).fit(data.rows)
    sizes = size_grid(12)
    cuts = cut_means(features, shuffled_rows(data, np.random.default_rng(0)), sizes)
    whole = bag_moments(features, data, within=False).means
    assert_allclose(cuts[-1], whole, atol=1e-12)
    assert_allclose(cuts[:, 1], np.tile(whole[1], (len(sizes), 1)), atol=1e-12)
    rows = features.transform(data.parts(data.rows)[2])
    assert np.abs(rows - cuts[0, 2]).sum(axis=1).min() < 1e-10  # of size 1: a row
    pairs = (rows[:, None] + rows) / 2
    assert np.abs(pairs - cuts[1, 2]).sum(axis=2).min() < 1e-10
    assert_array_equal(size_grid(1), [1])
    assert isinstance(data, Bags)


@pytest.mark.slow
def test_false_alarms_are_level_in_size(detector):
    test = normal_bags(1200, 1)
    sizes = np.array([len(bag) for bag in test])
    alarms = detector.predict(test) == -1
    assert_array_equal(alarms, detector.p_values(test) <= 0.1)
    for low, high in ((3, 10), (10, 30), (30, 100), (100, 301)):
        assert 0.02 < alarms[(sizes >= low) & (sizes < high)].mean() < 0.2  # 150 bags to calibrate with
    machine = mh.OneClassSupportMeasureMachine()
    with pytest.warns(UserWarning, match="Use GroupAnomalyDetector"):
        machine.fit(normal_bags(150, 0))
    small = machine.predict(test)[sizes < 10] == -1
    assert small.mean() > 0.3


def test_odd_groups_are_found_at_every_size(detector):
    normal, odd = normal_bags(200, 2, low=20), correlated(normal_bags(200, 3, low=20))
    scores = detector.score_samples([*normal, *odd])
    assert roc_auc_score(np.repeat([1, 0], 200), scores) > 0.8
    assert abs(scores[:200].mean()) < 0.3
    assert detector.p_values(odd).min() >= 1 / 151
    assert roc_auc_score(np.repeat([1, 0], 200), detector.p_values([*normal, *odd])) > 0.8


def test_bags_of_other_sizes_than_any_of_fit():
    bags = normal_bags(40, 0, high=30)
    detector = mh.GroupAnomalyDetector(alpha=0.2)
    assert set(detector.fit_predict(bags)) <= {-1, 1}
    assert np.isfinite(detector.score_samples([bags[0][:1], np.concatenate(bags)])).all()


def test_all_bags_equal_are_normal():
    bag = random_bags((6,))[0]
    fitted = mh.GroupAnomalyDetector().fit([bag] * 12)
    assert np.isfinite(fitted.score_samples([bag, bag + 3.0])).all()


def test_p_values_of_the_bags_of_fit_are_level(detector):
    """Bags judged by others: the rate of false alarms is alpha, which in-sample p-values do not reach."""
    bags = normal_bags(150, 0)
    assert 0.03 < np.mean(detector.p_values_ <= 0.1) < 0.18
    assert abs(detector.p_values_.mean() - 0.5) < 0.08
    assert detector.p_values(bags).mean() > detector.p_values_.mean()
    assert_array_equal(detector.fit_predict(bags) == -1, detector.p_values_ <= 0.1)


def test_the_odd_groups_at_hand_are_found():
    """In bags of one size, so that the p-value is a rank among the scores of bags left out."""
    odd = correlated(normal_bags(3, 5, low=80, high=81))
    bags = [*normal_bags(60, 4, low=80, high=81), *odd]
    fitted = mh.GroupAnomalyDetector(random_state=0).fit(bags)
    p = fitted.p_values_
    assert p.min() >= 1 / len(bags)
    assert_array_equal(np.sort(p) * len(bags), np.arange(1, len(bags) + 1))
    assert p[-3:].mean() < 0.2  # they are among those that calibrate, so they hide each other
    assert p[-3:].mean() < fitted.p_values(odd).mean()  # which have shaped the prior


@pytest.mark.parametrize("size", [1, 5, 20, 50])
def test_bags_of_the_calibration_do_not_depend_on_their_order(size):
    sizes = np.random.default_rng(0).permutation(np.repeat([3, 20, 100], [50, 190, 10]))
    chosen = np.sort(sizes[calibrating(sizes, size, 80)])
    assert_array_equal(chosen, np.sort(np.sort(sizes)[calibrating(np.sort(sizes), size, 80)]))
    assert (sizes[calibrating(sizes, size, 80)] >= min(size, 20)).sum() == (sizes >= min(size, 20)).sum()


def growing_bags(n, seed, slope=0.5):
    """Bags whose location grows with their size."""
    bags = normal_bags(n, seed, high=60)
    return [bag + slope * np.log(len(bag)) for bag in bags]


def test_content_that_depends_on_size_gets_a_word():
    with pytest.warns(
        UserWarning, match="what a bag contains depends on its size .* Fit one detector per range"
    ) as seen:
        detector = mh.GroupAnomalyDetector().fit(growing_bags(60, 0))
    sizes = np.array([len(bag) for bag in growing_bags(60, 0)])
    low, high = np.quantile(sizes, [0.25, 0.75])
    small, large = (np.mean(detector.p_values_[which] <= 0.1) for which in (sizes <= low, sizes >= high))
    assert f"{100 * small:.0f} % of those with at most {low:g} rows and {100 * large:.0f} %" in str(seen[0].message)


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 40])
def test_content_that_does_not_depend_on_size_seldom_gets_a_word(n):
    """At the level 1 %, although means of small bags vary more."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        sizes = rng.integers(1, 50, size=n)
        found.append(size_dependence(rng.normal(size=(n, 3)) / np.sqrt(sizes)[:, None], sizes, rng))
    assert np.mean(np.array(found) <= SIZE_LEVEL) <= 0.03
    assert size_dependence(rng.normal(size=(n, 3)), np.full(n, 7), rng) == 1.0


@pytest.mark.parametrize("alpha", [0.1, 0.008])
def test_bags_of_every_size_can_raise_an_alarm(alpha):
    """Also where few training bags are as large."""
    sizes = np.repeat([3, 50], [140, 10])
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, 2)) for n in rng.permutation(sizes)]
    detector = mh.GroupAnomalyDetector(alpha=alpha).fit(bags)
    assert_array_equal(detector.predict([np.full((n, 2), 30.0) for n in (3, 10, 50, 80)]), -1)
    assert detector.fit_predict([*bags, np.full((50, 2), 30.0)])[-1] == -1


def test_landmarks_leave_the_bags():
    data = check_bags(random_bags((40, 3, 25, 1, 60) * 3), mh.BagPrior(), reset=True)
    landmarks, kept = landmark_rows(data, np.random.default_rng(0))
    assert len(landmarks) + len(kept.rows) == len(data.rows)
    assert (kept.sizes >= np.ceil(0.75 * data.sizes)).all()
    assert not {row.tobytes() for row in landmarks} & {row.tobytes() for row in kept.rows}
    few = check_bags(random_bags((3,) * 12), mh.BagPrior(), reset=True)
    landmarks, kept = landmark_rows(few, np.random.default_rng(0))
    assert (len(landmarks), kept) == (36, few)  # bags that can spare no row keep theirs


def test_relations_of_correlated_columns_are_seen():
    """Anomalous bags have a column from other rows: each column by itself, and its mean, are as before."""
    rng = np.random.default_rng(0)

    def drawn(n, broken):
        common = rng.normal(size=(30, 1))
        bag = common + 0.2 * rng.normal(size=(30, 3))
        if broken:
            bag[:, 2] = rng.permutation(bag[:, 2])
        return bag

    detector = mh.GroupAnomalyDetector(random_state=0).fit([drawn(30, False) for _ in range(80)])
    found = detector.explain([drawn(30, True) for _ in range(20)])
    assert np.mean([each.p_value <= 0.1 for each in found]) > 0.9
    assert np.mean([each.views["moments"] > each.views["kernel"] for each in found]) > 0.9


def test_no_decision_depends_on_the_order_of_bags_of_their_rows_or_columns():
    rng = np.random.default_rng(0)
    bags, new, order = normal_bags(60, 0, high=60), normal_bags(60, 1, high=60), rng.permutation(60)
    bags = [np.column_stack([np.rint(bag[:, 0]), bag[:, 1]]) for bag in bags]  # many rows are alike in one column
    one = mh.GroupAnomalyDetector(random_state=0).fit(bags)
    for columns in ([0, 1], [1, 0]):
        turned = [rng.permutation(bags[i])[:, columns] for i in order]
        other = mh.GroupAnomalyDetector(random_state=0).fit(turned)
        assert_array_equal(other.p_values_, one.p_values_[order])
        assert_allclose(other.p_values([bag[:, columns] for bag in new]), one.p_values(new))
        assert_array_equal([each.p_value for each in other.explain(turned)], other.p_values_)


def test_explanations_say_the_p_value_of_the_bags_of_fit(detector):
    bags = normal_bags(150, 0)
    assert_array_equal([each.p_value for each in detector.explain(bags)], detector.p_values_)
    new = normal_bags(20, 1)
    assert_array_equal([each.p_value for each in detector.explain(new)], detector.p_values(new))


@pytest.mark.parametrize("scale", [1e-300, 1e300, 1e307])
def test_bags_of_any_scale_are_judged_alike(scale):
    bags, new = normal_bags(40, 0, high=20), normal_bags(5, 1, high=20)
    shifted = [bag + 4.0 for bag in new]
    p = mh.GroupAnomalyDetector(random_state=0).fit([scale * bag for bag in bags]).p_values
    assert p([scale * bag for bag in shifted]).max() < 0.1 < p([scale * bag for bag in new]).max()


def test_one_entry_out_of_all_bounds_does_no_harm():
    bags, new = normal_bags(40, 0, high=20), normal_bags(5, 1, high=20)
    bags[0][0, 0] = 1e200
    p = mh.GroupAnomalyDetector(random_state=0).fit(bags).p_values
    assert p([bag + 4.0 for bag in new]).max() < 0.1 < p(new).max()


def test_explanations_name_the_columns_of_an_encoded_table():
    rng = np.random.default_rng(0)
    table = {"height": rng.normal(size=600), "weight": rng.normal(size=600)}
    bags, _ = mh.bags_from_groups(table, np.repeat(np.arange(30), 20))
    said = mh.GroupAnomalyDetector().fit(bags).explain(bags)[0]
    assert {name for each in said.deviations for name in each.columns} == {"height", "weight"}

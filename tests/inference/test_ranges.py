"""P-values of columns of any dynamic range: shares of permutations, at the promised level."""

import numpy as np
import pytest
from scipy import stats

import muhat as mh
from muhat.inference.permutations import permutation_pvalue


def signs(rng, n):
    return rng.choice([-1.0, 1.0], (n, 1))


def near_one(rng, n):
    return 1.0 + rng.random((n, 1))


RANGES = {
    "forty orders": lambda rng, n: 10.0 ** (-40 * rng.random((n, 1))),
    "six hundred orders": lambda rng, n: 10.0 ** (600 * rng.random((n, 1)) - 300) * signs(rng, n),
    "single precision": lambda rng, n: (10.0 ** (82 * rng.random((n, 1)) - 44)).astype(np.float32),
    "huge": lambda rng, n: 1e300 * near_one(rng, n) * signs(rng, n),
    "largest": lambda rng, n: 0.89e308 * near_one(rng, n) * signs(rng, n),
    "tiny": lambda rng, n: 1e-300 * near_one(rng, n),
    "subnormal": lambda rng, n: 5e-324 * rng.integers(50, size=(n, 1)),
    "both ends": lambda rng, n: np.where(rng.random((n, 1)) < 0.5, 5e-324, 1e300) * near_one(rng, n),
    "rare and huge": lambda rng, n: np.where(rng.random((n, 1)) < 0.05, 1e300, 0.0),
    "one outlier": lambda rng, n: np.concatenate([rng.random((n - 1, 1)), [[1e300]]]),
    "heavy tails": lambda rng, n: rng.standard_cauchy((n, 1)) ** 9,
    "almost equal": lambda rng, n: 1.0 + 2.0**-52 * rng.integers(3, size=(n, 1)),
    "constant": lambda rng, n: np.full((n, 2), 3.3),
    "mixed": lambda rng, n: np.column_stack(
        [10.0 ** (-200 * rng.random(n)), rng.normal(size=n), 10.0 ** (300 * rng.random(n)), np.zeros(n)]
    ),
}

SIZES = {"double precision": (8, 30), "single precision": (150, 130), "bins": (1100, 1000), "unequal": (1000, 16)}

every_range = pytest.mark.parametrize("name", RANGES)


def pair(name, sizes, seed):
    """Two samples of one distribution."""
    return [RANGES[name](np.random.default_rng([seed, side]), n) for side, n in enumerate(sizes)]


@every_range
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_mmd_pvalues_are_shares(name, sizes):
    result = mh.mmd_test(*pair(name, sizes, 0), n_resamples=19, random_state=0)
    for each in (result, *result.components):
        assert 1 / 20 <= each.pvalue <= 1
    assert np.isfinite(result.null_distribution).all()


@every_range
def test_hsic_pvalues_are_shares(name):
    x, y = pair(name, (40, 40), 0)
    result = mh.hsic_test(x, y, n_resamples=19, random_state=0)
    for each in (result, *result.components):
        assert 1 / 20 <= each.pvalue <= 1


def sketch_pvalues(name, n, seed):
    X, Y = pair(name, (n, n), seed)
    features = mh.Nystroem(mh.Gaussian(), 10, random_state=0).fit(X)
    sketches = [mh.MeanSketch(features, bins=20).update(rows) for rows in (X, Y)]
    return [mh.mmd_test(*sketches, n_resamples=19, random_state=seed).pvalue]


def group_pvalues(name, n, seed):
    (rows, _), groups = pair(name, (3 * n, 1), seed), np.repeat(["a", "b", "c"], n)
    found = mh.group_distances(rows, groups, control="a", n_resamples=19, random_state=seed)
    assert np.isfinite([found.distance, found.low, found.high]).all()
    return [found.global_pvalue, *found.pvalue, *found.adjusted]


def table_pvalues(name, n, seed):
    found = mh.compare(*pair(name, (n, 2 * n), seed), categorical=["0"], n_resamples=19, random_state=seed)
    parts = [*found.columns, *found.pairs, *found.missing.values()]
    return [found.pvalue, found.joint_pvalue, *(p for part in parts for p in (part.pvalue, part.adjusted_pvalue))]


def bag_pvalues(name, n, seed):
    (rows, new), rng = pair(name, (20 * n, 4 * n), seed), np.random.default_rng(seed)
    found = mh.GroupAnomalyDetector(random_state=0).fit(np.split(rng.permutation(rows), 20))
    return [*found.p_values_, *found.p_values(np.split(new, 4))]


OTHERS = {
    "sketches": (sketch_pvalues, 40),
    "group_distances": (group_pvalues, 12),
    "compare": (table_pvalues, 30),
    "GroupAnomalyDetector": (bag_pvalues, 6),
}
"""P-values that others print, and rows of a part."""

REFUSED = {(other, name) for other in OTHERS for name in ("largest", "constant", "almost equal")}
REFUSED -= {("compare", "largest"), ("compare", "almost equal"), ("sketches", "almost equal")}
"""Their distances are beyond all numbers, or none."""


@every_range
@pytest.mark.filterwarnings("ignore::UserWarning")  # words about such columns
@pytest.mark.parametrize("other", OTHERS)
def test_other_pvalues_are_shares(other, name):
    pvalues, n = OTHERS[other]
    if (other, name) in REFUSED:
        with pytest.raises(
            ValueError, match=r"Rescale|and all rows of X are equal|hold a single value|no bag has two rows"
        ):
            pvalues(name, n, 0)
        return
    found = np.array(pvalues(name, n, 0))
    assert (found >= (1 / 20 if other != "GroupAnomalyDetector" else 1 / 21)).all()
    assert (found <= 1).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["six hundred orders", "both ends", "heavy tails", "mixed"])
@pytest.mark.parametrize("other", ["mmd_test", "hsic_test", "group_distances", "compare", "sketches"])
def test_level(other, name):
    """Of 40 true hypotheses at level 0.1, more than 13 or so rejections have a chance of 1e-4."""
    tests = {
        "mmd_test": lambda seed: mh.mmd_test(*pair(name, (150, 130), seed), n_resamples=9, random_state=seed).pvalue,
        "hsic_test": lambda seed: mh.hsic_test(*pair(name, (40, 40), seed), n_resamples=9, random_state=seed).pvalue,
        **{key: lambda seed, f=f, n=n: f(name, n, seed)[0] for key, (f, n) in OTHERS.items()},
    }
    pvalues = np.array([tests[other](seed) for seed in range(40)])
    assert np.count_nonzero(pvalues <= 0.1) <= stats.binom.ppf(1 - 1e-4, 40, 0.1)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_constant_tables_do_not_differ(sizes):
    """In single precision the observed split, whose rows are in order, rounded otherwise than random ones."""
    assert mh.mmd_test(*pair("constant", sizes, 0), n_resamples=19, random_state=0).pvalue == 1


def test_values_whose_squares_overflow_are_refused_without_scales():
    with pytest.raises(ValueError, match="column 0 has values as far as 5e\\+299"):
        mh.mmd_test([[0.0], [1e300]], [[1.0], [1e300]], scale=None)


def test_permutation_pvalues():
    rows = np.array([[2.0, 1.0, 3.0, 2.0], [np.inf, np.inf, 0.0, 0.0], [9.0, 1.0, 1.0, 1.0], [-np.inf, 0, 0, 0]])
    assert permutation_pvalue(rows).tolist() == [0.75, 0.5, 0.25, 1.0]
    assert permutation_pvalue(rows[0], 1.0) == 1
    rows[1, 2] = np.nan
    with pytest.raises(RuntimeError, match="1 of 16 permutation statistics are not numbers"):
        permutation_pvalue(rows)

"""Mistakes with bags: every error names the bag or the parameter, the value and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from bag_samples import SIZES, labelled_bags, random_bags
from errors import refused

import muhat as mh
from muhat.bags.data import bags_from_groups

EIGHT, SINGLE = random_bags(), random_bags((1,) * 12)
BAGS, Y = labelled_bags()
FRAMES = [pd.DataFrame(bag, columns=list("abc")) for bag in EIGHT]
KERNEL, PRIOR, RIDGE, DETECTOR = mh.DistributionKernel, mh.BagPrior, mh.DistributionRidge, mh.GroupAnomalyDetector
SIGNS = mh.DistributionRidgeClassifier
CLASSIFIER, ONE = mh.SupportMeasureClassifier, mh.OneClassSupportMeasureMachine
FITTED = KERNEL(mh.Gaussian(1.0)).fit(EIGHT)
WITH_FOURIER = PRIOR(features=mh.Fourier(n_components=20, random_state=0)).fit(EIGHT)
ORDER = np.arange(8)
TABLE_OF_GROUPS = pd.DataFrame({"a": ORDER + 0.5, "g": ORDER % 2})
LAZY, ARROW = pl.from_pandas(TABLE_OF_GROUPS).lazy(), pa.Table.from_pandas(TABLE_OF_GROUPS)


class DuckDBPyRelation:
    """Stands for a query of DuckDB, which is known by the name of its type."""


UNREADABLE = {
    "one matrix": (np.zeros((5, 2)), r"list of matrices.*not one matrix of shape \(5, 2\); for one bag pass \[bag\]"),
    "one frame": (pd.DataFrame(np.zeros((5, 2))), r"list of matrices.*bags_from_groups"),
    "none": (None, "must be a list of matrices"),
    "number": (3.0, "must be a list of matrices"),
    "text": ("bags", "must be a list of matrices"),
    "mapping": ({0: np.zeros((3, 2))}, "must be a list of matrices"),
    "no bags": ([], "bags is empty"),
    "empty bag": ([np.ones((2, 3)), np.ones((0, 3))], r"bags\[1\].*0 sample"),
    "no columns": ([np.ones((2, 0))], r"bags\[0\].*0 feature"),
    "nan": ([np.ones((2, 3)), np.ones((2, 3)), np.full((2, 3), np.nan)], r"bags\[2\].*NaN"),
    "infinite": ([np.ones((2, 3)), np.full((2, 3), np.inf)], r"bags\[1\].*infinity"),
    "rows and groups": ((np.ones((3, 2)), [0, 1, 0]), r"bags\[1\].*2D"),
    "numbers": ([[1.0, 2.0], [3.0]], r"bags\[0\].*2D"),
    "an empty vector": ([np.ones(3), np.ones(0)], r"bags\[1\].*2D"),
    "strings": ([np.array([["a", "b"]])], r"bags\[0\].*not numbers"),
    "ragged": ([[[1.0, 2.0], [3.0]]], r"bags\[0\]"),
    "complex": ([np.ones((2, 2)) * 1j], r"bags\[0\].*[Cc]omplex"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_not_a_list_of_bags(case):
    bags, message = UNREADABLE[case]
    for call in (KERNEL(mh.Gaussian(1.0)).fit, FITTED.transform):
        with pytest.raises(ValueError, match=message):
            call(bags)


def fit(estimator, bags=EIGHT, y=None, sample_weight=None, **settings):
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    targets = () if y is None and estimator not in (RIDGE, CLASSIFIER) else (y,)
    return lambda: estimator(**settings).fit(bags, *targets, **weights)


def pooled(**settings):
    return lambda: PRIOR(random_state=0).fit(EIGHT, **settings).means(EIGHT, **settings)


TABLE = [
    ("widths", fit(KERNEL, [*EIGHT[:2], np.ones((2, 4))]), r"bags\[2\] has 4 columns and bags\[0\] has 3"),
    ("names of columns", fit(KERNEL, [*FRAMES[:2], FRAMES[2][list("bac")]]), r"bags\[2\].*feature names"),
    ("labels of groups", lambda: bags_from_groups(np.ones((3, 2)), [0, 1]), "groups has 2 labels for 3 rows"),
    (
        "a name of groups",
        lambda: bags_from_groups(np.ones((3, 2)), "a"),
        "groups='a' must be the name of a column",
    ),
    ("a missing label", lambda: bags_from_groups(np.ones((3, 2)), ["a", None, "b"]), r"groups\[1\] is missing; leave"),
    ("a NaN label", lambda: bags_from_groups(np.ones((2, 2)), [1.0, np.nan]), r"groups\[1\] is missing; leave"),
    ("grouped frame", fit(KERNEL, FRAMES[0].groupby("a")), r"pass \[rows for _, rows in bags\]"),
    ("no labels of groups", lambda: bags_from_groups(np.ones((3, 2)), None), "groups=None must be the labels"),
    *(
        (
            f"overflow {settings}",
            fit(KERNEL, [1e200 * bag for bag in EIGHT], kernel=mh.Linear(), **settings),
            "[Rr]escale",
        )
        for settings in ({}, {"whiten": True}, {"pool": True})
    ),
    # parameters of the kernel between bags
    *(
        (f"kernel {kernel}", fit(KERNEL, kernel=kernel), r"kernel=.* must be a kernel object")
        for kernel in ("precomputed", None, mh.Gaussian)
    ),
    ("mean", fit(KERNEL, mean="shrunk"), r"mean=.* must be None"),
    ("mean with pool", fit(KERNEL, mean=mh.ShrunkKernelMean(), pool=True), "must be None with pool=True"),
    *(
        (f"level2 {type(level2).__name__}", fit(KERNEL, level2=level2), r'level2=.* must be "linear", or a kernel')
        for level2 in ("gaussian", None, 1.0, mh.as_kernel(np.dot), mh.Gaussian)
    ),
    ("equal bags", fit(KERNEL, EIGHT[4:5] * 5, level2=mh.Gaussian()), "all bags of X are equal; pass"),
    ("one bag, median", fit(KERNEL, EIGHT[4:5], level2=mh.Gaussian()), "needs two bags"),
    *(
        (f"ridge {ridge}", fit(KERNEL, whiten=True, ridge=ridge), r"ridge=.* must be a number in \(0, inf\)")
        for ridge in (0.0, -1.0, np.inf, np.nan, "yes", None, True)
    ),
    *(
        (f"{name} {value}", fit(KERNEL, **{name: value}), f"{name}=.* must be True or False")
        for name in ("whiten", "pool")
        for value in (0.05, "yes", None)
    ),
    ("features", fit(KERNEL, features=500), r"features=500 must be None, or features such as Nystroem"),
    (
        "too many landmarks",
        fit(KERNEL, features=mh.Nystroem(n_components=500)),
        f"n_components=500 must be at most.*{sum(SIZES)}",
    ),
    # machines
    ("C 0", fit(CLASSIFIER, BAGS, Y, C=0.0), "C=0.0 must"),
    ("C text", fit(CLASSIFIER, BAGS, Y, C="1"), "C='1' must"),
    ("C < 0", fit(CLASSIFIER, BAGS, Y, C=-1.0), "C=-1.0 must"),
    ("nu 0", fit(ONE, BAGS, nu=0.0), "nu=0.0 must"),
    ("nu > 1", fit(ONE, BAGS, nu=1.5), "nu=1.5 must"),
    ("kernel of a machine", fit(CLASSIFIER, BAGS, Y, kernel="gaussian"), "kernel='gaussian' must"),
    ("mean of a machine", fit(CLASSIFIER, BAGS, Y, mean="shrunk"), "mean='shrunk' must"),
    ("level2 of a machine", fit(ONE, BAGS, level2="gaussian"), "level2='gaussian' must"),
    *(
        (f"{machine.__name__}: {what}", fit(machine, BAGS, y), message)
        for machine in (CLASSIFIER,)
        for what, y, message in [
            ("no y", None, "requires y to be passed"),
            ("length of y", Y[1:], "y has 23 entries for 24 bags"),
            ("nan in y", np.where(Y == 0, np.nan, Y), "NaN"),
            ("two columns of y", np.column_stack([Y, Y]), "1d"),
        ]
    ),
    ("one class", fit(CLASSIFIER, BAGS, np.zeros(24)), r"one class only, .*GroupAnomalyDetector"),
    ("classes that are numbers", fit(CLASSIFIER, BAGS, Y + np.linspace(0, 0.5, 24)), r"[Uu]nknown label type"),
    ("weights", fit(CLASSIFIER, BAGS, Y, [1, 2, 3]), r"sample_weight has shape \(3,\) and must have one entry per bag"),
    ("weights < 0", fit(CLASSIFIER, BAGS, Y, -np.ones(24)), "sample_weight must not be negative"),
    # tables that are not data frames
    ("query of polars as bags", fit(PRIOR, LAZY), r"bags is a LazyFrame, .* pass bags\.collect\(\)"),
    ("query of polars as a bag", fit(PRIOR, [FRAMES[1], LAZY]), r"bags\[1\] is a LazyFrame, .*\.collect\(\)"),
    ("query for a mean", lambda: mh.KernelMean().fit(LAZY), r"X is a LazyFrame, .* pass X\.collect\(\)"),
    # prior
    ("prior: one bag", fit(PRIOR, EIGHT[:1]), "needs two or more"),
    ("prior: single rows", fit(PRIOR, SINGLE), "all bags have one row"),
    ("prior: no noise", fit(PRIOR, [np.ones((3, 2)), np.zeros((2, 2))]), "no bag has two rows that differ"),
    ("prior: ridge", fit(PRIOR, ridge=0), r"ridge=0 must be a number in \(0, inf\)"),
    ("prior: blend word", fit(PRIOR, blend="loo"), r'blend=\'loo\' must be a number in \[0, 1\] or be "cv"'),
    ("prior: blend", fit(PRIOR, blend=2), r'blend=2 must be a number in \[0, 1\] or be "cv"'),
    ("prior: features", fit(PRIOR, features=50), "features=50 must be None, or features"),
    ("prior: kernel", fit(PRIOR, kernel="precomputed"), "kernel='precomputed' must be a kernel object"),
    ("prior: nan", lambda: WITH_FOURIER.log_odds([*EIGHT, *EIGHT, np.full((2, 3), np.nan)]), r"bags\[16\].*NaN"),
    ("prior: means", lambda: WITH_FOURIER.means(EIGHT), r"features=.* not elements of the space"),
    ("prior: population", pooled(population=5), r"population=5 must be larger than .* bag 2 has 9 rows"),
    ("prior: population nan", pooled(population=np.nan), r"population=nan must be larger than"),
    ("prior: populations", pooled(population=[40, 50]), r"population=\[40, 50\] must be .*, or one for each of 8 bags"),
    # ridge
    ("ridge: classes", fit(RIDGE, y=list("abababab")), "y holds labels .* use DistributionRidgeClassifier for classes"),
    ("ridge: length of y", fit(RIDGE, y=np.ones(3)), "y has 3 entries for 8 bags"),
    ("ridge: constant y", fit(RIDGE, y=np.ones(8)), "y is 1 for every bag .* pass targets that differ"),
    ("ridge: no y", fit(RIDGE), "requires y"),
    ("ridge: nan in y", fit(RIDGE, y=[np.nan] * 8), "NaN"),
    ("ridge: one bag", fit(RIDGE, EIGHT[:1], [1.0]), "too few bags to regress on, 1; pass"),
    ("ridge: level2", fit(RIDGE, y=ORDER, level2="cubic"), "level2='cubic' must be"),
    ("ridge: one class", fit(SIGNS, y=np.ones(8)), "y holds one class only, .*1.*, and a classifier needs two"),
    ("ridge: no class", lambda: SIGNS().fit(EIGHT, None), "requires y to be passed"),
    ("ridge: labels", fit(SIGNS, y=[0, 1]), "y has 2 entries for 8 bags"),
    ("ridge: numbers", fit(SIGNS, y=ORDER + 0.5), "Unknown label type"),
    (
        "ridge: class without weight",
        fit(SIGNS, y=ORDER > 5, sample_weight=ORDER <= 5),
        "all bags of class .*True.* have sample_weight 0; leave them out",
    ),
    ("ridge: pool", fit(RIDGE, y=ORDER, pool="yes"), "pool='yes' must be"),
    ("ridge: weights", fit(RIDGE, y=ORDER, sample_weight=-np.ones(8)), "sample_weight must not be negative"),
    ("ridge: single rows", fit(RIDGE, SINGLE, np.arange(12)), "all bags have one row"),
    (
        "pooled: features",
        lambda: mh.pooled_means(EIGHT, features=mh.Fourier()),
        r"features=Fourier\(\) are not elements of the space of the kernel; use Nystroem\(\)",
    ),
    # detector
    ("detector: few bags", fit(DETECTOR), "too few bags to calibrate with, 8; pass 10 or more, and 20 or more"),
    (
        "detector: no alarm",
        fit(DETECTOR, BAGS, alpha=0.001),
        r"alpha=0.001 is below every p-value of 24 bags, .*; pass 1,000 bags or more, or alpha=0.0417 or more",
    ),
    ("detector: alpha 0", fit(DETECTOR, alpha=0), "alpha=0 must lie between 0 and 1"),
    ("detector: alpha 1", fit(DETECTOR, alpha=1.0), "alpha=1.0 must lie between 0 and 1"),
    ("detector: alpha 5", fit(DETECTOR, alpha=5), r"alpha=5 must be a number in \[0, 1\]"),
    ("detector: ridge", fit(DETECTOR, ridge=-1), "ridge=-1 must be a number"),
    ("detector: single rows", fit(DETECTOR, SINGLE), "all bags have one row"),
]

test_mistakes = refused(TABLE)

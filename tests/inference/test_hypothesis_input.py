"""Bad input to the tests between samples: every message names the parameter, the value and the remedy."""

import numpy as np
import pandas as pd
import pytest
from tables import sample

import muhat as mh
from muhat.inference.independence import hsic_test
from muhat.inference.two_sample import mmd_test

GOOD = sample(6, 2, seed=0)
HOLED = np.where(np.arange(12).reshape(6, 2) == 3, np.nan, GOOD)
NOT_FINITE = mh.as_kernel(lambda A, B: np.where(A[:, :1] == B[:, 0], 1.0, np.nan))

INFINITE = np.where(np.isnan(HOLED), np.inf, GOOD)
TARGETED = mh.ShrunkKernelMean(target=mh.embed(mh.Gaussian(1.0), GOOD))
EQUAL = GOOD[:1].repeat(3, axis=0)

BAD_FOR_BOTH = [
    ((INFINITE, GOOD), {}, "X contains infinity"),
    ((GOOD, np.empty((0, 2))), {}, "Y has no rows"),
    ((GOOD[:1], GOOD[:1]), {}, "X has 1 row"),
    ((GOOD, GOOD), {"n_resamples": 0}, "n_resamples=0 must be a whole number of at least 1"),
    ((GOOD, GOOD), {"n_resamples": 9.5}, "n_resamples=9.5"),
    ((GOOD, GOOD), {"random_state": "seed"}, "random_state='seed'"),
    ((GOOD, GOOD), {"mean": "shrunk"}, "mean='shrunk' must be None"),
    ((GOOD, GOOD), {"mean": mh.ShrunkKernelMean(), "unbiased": True}, "unbiased=True"),
    ((GOOD, GOOD), {"mean": mh.ShrunkKernelMean(shrinkage=1.4)}, "shrinkage=1.4"),
    ((GOOD, GOOD), {"mean": mh.SpectralKernelMean(lam=-1)}, "lam=-1"),
    ((GOOD, GOOD), {"mean": TARGETED}, "target=None"),
]
BAD_FOR_MMD = [
    ((GOOD, GOOD[:, 0]), {}, r"X has 2 columns and Y has 1.*Y.reshape\(1, -1\)"),
    ((EQUAL, EQUAL), {"kernel": mh.Gaussian()}, "two rows that differ"),
    ((GOOD, GOOD), {"kernel": []}, "has no kernels"),
    ((GOOD, GOOD), {"kernel": [mh.Gaussian(), "rbf"]}, r"kernel\[1\]='rbf' must be a kernel object"),
    ((GOOD, GOOD), {"kernel": [mh.Gaussian(), mh.Linear()], "unbiased": True}, "pass a single kernel"),
    ((GOOD, GOOD + 1), {"kernel": [mh.Gaussian(), NOT_FINITE]}, "not finite"),
    ((GOOD, GOOD), {"statistic": "fisher"}, "statistic='fisher' must be"),
    ((GOOD, GOOD), {"strata": [0, 1] * 5}, r"strata has shape \(10,\).* 12 n \+ m rows"),
    ((GOOD, GOOD), {"strata": [0] * 11 + [7]}, "label .*7.* on one row only.*drop that row"),
    ((GOOD, GOOD), {"strata": [0] * 6 + [1] * 6}, "no stratum holds rows of both"),
    ((GOOD, GOOD), {"scale": "std"}, "scale='std' must be"),
    ((GOOD, GOOD), {"scale": [1.0, 0.0]}, "one positive number per column"),
    ((GOOD, GOOD), {"scale": [1.0]}, "scale has shape"),
    ((GOOD, GOOD), {"kernel": "precomputed"}, "square Gram matrix"),
    (
        (np.eye(6), np.arange(6) > 2),
        {"kernel": "precomputed", "scale": "columns"},
        "scale='columns' .* leave scale out",
    ),
    ((np.eye(6), np.arange(6) > 2), {"kernel": "precomputed", "scale": [1.0]}, r"scale=\[1.0\] divides columns"),
    ((GOOD, GOOD), {"statistic": "spectral", "unbiased": True}, "unbiased=True is of .*; leave it out"),
    ((GOOD, GOOD), {"statistic": "spectral", "mean": mh.ShrunkKernelMean()}, "mean=ShrunkKernelMean.* leave it out"),
    ((np.eye(6), np.arange(5) > 2), {"kernel": "precomputed"}, "truth value for each"),
    ((np.eye(6), np.arange(6)), {"kernel": "precomputed"}, "truth value for each"),
    ((np.eye(6), np.arange(6) > 4), {"kernel": "precomputed"}, "at least two"),
    ((np.eye(6) + 1e3 * np.triu(np.ones((6, 6)), 1), np.arange(6) > 2), {"kernel": "precomputed"}, "not symmetric"),
    ((GOOD, GOOD[:1]), {}, "Y has 1 row"),
    ((GOOD, GOOD[:, :1]), {}, "X has 2 columns and Y has 1"),
    ((GOOD, GOOD), {"kernel": "rbf"}, "kernel='rbf' must be a kernel object"),
    ((GOOD, GOOD), {"kernel": mh.Gaussian}, "must be a kernel object"),
    ((GOOD, GOOD + 1), {"kernel": NOT_FINITE}, "not finite"),
]
BAD_FOR_HSIC = [
    ((GOOD, GOOD[:5]), {}, "X has 6 rows and Y has 5"),
    ((GOOD, GOOD), {"kernel_x": "rbf"}, "kernel_x='rbf' must be a kernel object"),
    ((EQUAL, EQUAL), {"kernel_x": mh.Gaussian()}, "two rows that differ"),
    ((GOOD, GOOD), {"strata": [0] * 5}, r"strata has shape \(5,\).* 6 rows"),
    ((GOOD, GOOD), {"strata": [0] * 5 + [1]}, "on one row only"),
    ((GOOD, GOOD), {"scale": [1.0, 2.0]}, "divide the columns first"),
    ((GOOD, GOOD), {"kernel_y": np.dot}, "kernel_y=.* must be a kernel object"),
    ((GOOD, GOOD), {"kernel_y": NOT_FINITE}, "not finite"),
    ((GOOD, GOOD), {"mean": mh.AdaptiveKernelMean(target=TARGETED.target)}, "target=None"),
    ((GOOD[:3], GOOD[:3]), {"unbiased": True}, "X has 3 row.* at least 4"),
]
BAD = {mmd_test: BAD_FOR_BOTH + BAD_FOR_MMD, hsic_test: BAD_FOR_BOTH + BAD_FOR_HSIC}


@pytest.mark.parametrize(("test", "case"), [(test, case) for test in BAD for case in BAD[test]])
def test_bad_input(test, case):
    arguments, settings, message = case
    with pytest.raises(ValueError, match=message):
        test(*arguments, **settings)


def test_columns_of_data_frames_are_matched_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    Y = pd.DataFrame({"a": rng.normal(size=20), "b": rng.normal(size=20) + 2.0})
    plain, turned = (mmd_test(X, other, random_state=0) for other in (Y, Y[["b", "a"]]))
    assert plain.pvalue == turned.pvalue == 0.001
    assert plain.column == turned.column == ("b", "location")
    with pytest.raises(
        ValueError,
        match=r"Y is missing the columns \['b'\] and has the unexpected .*'a', 'b'",
    ):
        mmd_test(X, Y.rename(columns={"b": "c"}))


def test_a_column_that_makes_up_the_distance_is_named():
    X = sample(20, 3, seed=0) * [1.0, 1000.0, 1.0]
    with pytest.warns(UserWarning, match="column 1 makes up .* of the squared distances"):
        mmd_test(X, X + 1, mh.Gaussian(), 9)
    with pytest.warns(UserWarning, match="column 'b' makes up"):
        mmd_test(pd.DataFrame(X, columns=[*"abc"]), pd.DataFrame(X + 1, columns=[*"abc"]), mh.Gaussian(), 9)
    for settings in ({}, {"kernel": mh.Gaussian(), "scale": None}, {"kernel": mh.Gaussian(), "scale": "columns"}):
        mmd_test(X, X + 1, n_resamples=9, **settings)


def test_the_warning_of_a_dominant_column_points_to_the_caller():
    X = np.random.default_rng(0).normal(size=(12, 2)) * [1.0, 1e6]
    for call in (lambda: mh.mmd_test(X, X, mh.Gaussian(), 9), lambda: mh.hsic_test(X, X, mh.Gaussian(), n_resamples=9)):
        with pytest.warns(UserWarning, match="makes up") as caught:
            call()
        assert caught[0].filename == __file__

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
    ((GOOD, HOLED), {}, "Y contains NaN"),
    ((INFINITE, GOOD), {}, "X contains infinity"),
    ((GOOD, GOOD[:, 0]), {}, "2D"),
    ((GOOD, [["a", "b"]] * 6), {}, "not numbers"),
    ((GOOD, np.empty((0, 2))), {}, "0 sample"),
    ((GOOD[:1], GOOD[:1]), {}, "X has 1 row"),
    ((EQUAL, EQUAL), {}, "two rows that differ"),
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
    ((GOOD, GOOD[:1]), {}, "Y has 1 row"),
    ((GOOD, GOOD[:, :1]), {}, "X has 2 columns and Y has 1"),
    ((GOOD, GOOD), {"kernel": "rbf"}, "kernel='rbf' must be a kernel object"),
    ((GOOD, GOOD), {"kernel": mh.Gaussian}, "must be a kernel object"),
    ((GOOD, GOOD + 1), {"kernel": NOT_FINITE}, "not finite"),
]
BAD_FOR_HSIC = [
    ((GOOD, GOOD[:5]), {}, "X has 6 rows and Y has 5"),
    ((GOOD, GOOD), {"kernel_x": None}, "kernel_x=None must be a kernel object"),
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
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["a", "b"])
    assert mmd_test(X, X.iloc[:5], random_state=0).pvalue > 0.5
    with pytest.raises(ValueError, match=r"\['a', 'b'\] and Y has \['b', 'a'\]"):
        mmd_test(X, X[["b", "a"]])

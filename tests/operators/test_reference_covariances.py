"""Reference cases of centred kernels and covariance operators."""

import numpy as np
import pytest
from reference_cases import CASES, assert_close, assert_weights, every_case, kernel_of

import muhat as mh

every_cose = pytest.mark.parametrize("case", [c for c in CASES if "cose" in c], ids=lambda c: c["name"])
every_mean = pytest.mark.parametrize("index", range(3), ids=["KME", "S", "F"])


def fitted_mean(case, stated):
    kernel = kernel_of(case)
    estimator = {
        "KME": mh.KernelMean(kernel=kernel),
        "S": mh.ShrunkKernelMean(kernel=kernel),
        "F": mh.SpectralKernelMean(kernel=kernel, lam=stated["lam"] or 0.0),
    }[stated["weights_of"]]
    return estimator.fit(np.array(case["X"]))


@every_mean
@every_case
def test_centered_kernel(case, index):
    stated = case["centred"][index]
    fitted = fitted_mean(case, stated)
    assert_weights(fitted.weights_, stated["weights"])
    centred = mh.Centered(fitted.kernel_, fitted.mean_)
    size = 10 * np.abs(case["L"]).max() + 10 * case["varrho"]
    assert_close(centred(np.array(case["X"])), stated["Kc"], size)
    assert_close(centred(np.array(case["X_test"]), np.array(case["X"])), stated["Lc"], size)


@every_cose
def test_kernel_covariance(case):
    stated, X = case["cose"], np.array(case["X"])
    simple = mh.KernelCovariance(kernel_of(case), mean=mh.ShrunkKernelMean()).fit(X)
    # Two centred points have one constant product: alpha* is a difference of equal numbers there.
    assert_close(simple.mean_fit_.chosen["shrinkage"], stated["alpha_star"], 1.0)
    assert_weights(simple.weights_, stated["s_weights"])
    flexible = mh.KernelCovariance(kernel_of(case), mean=mh.SpectralKernelMean(lam=stated["lam"])).fit(X)
    assert_weights(flexible.weights_, stated["f_weights"])

"""Reference cases of covariance operators, first without the covariance classes.

Centred Gram matrices are inner products of elements, and shrinkage of a covariance operator is a mean estimator on an
elementwise product of them.
"""

import numpy as np
import oracles
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


def centred_points(case, rows, mean):
    return [mh.embed(kernel_of(case), np.array([row])) - mean for row in rows]


def gram_of(rows, columns):
    return np.array([[f.inner(g) for g in columns] for f in rows])


@every_mean
@every_case
def test_centred_gram(case, index):
    stated = case["centred"][index]
    fitted = fitted_mean(case, stated)
    assert_weights(fitted.weights_, stated["weights"])
    columns = centred_points(case, case["X"], fitted.mean_)
    rows = centred_points(case, case["X_test"], fitted.mean_)
    size = 10 * np.abs(case["L"]).max() + 10 * case["varrho"]
    assert_close(gram_of(columns, columns), stated["Kc"], size)
    assert_close(gram_of(rows, columns), stated["Lc"], size)


def cose_gram(case):
    K = np.array(case["K"])
    centred = oracles.centred_gram(K, K, oracles.uniform(case["n"]))
    return centred * centred


@every_cose
def test_cose_gram(case):
    stated, gram = case["cose"], cose_gram(case)
    assert_close(np.trace(gram) / case["n"], stated["gram_varrho"], 0)
    fitted = mh.KernelMean(kernel="precomputed").fit(gram)
    assert_close(fitted.weights_ @ gram @ fitted.weights_, stated["gram_rho"], 0)


@every_cose
def test_cose_shrinkage(case):
    stated = case["cose"]
    fitted = mh.ShrunkKernelMean(kernel="precomputed").fit(cose_gram(case))
    # Two centred points have one constant product: alpha* is a difference of equal numbers there.
    assert_close(fitted.shrinkage_, stated["alpha_star"], 1.0)
    assert_weights(fitted.weights_, stated["s_weights"])


@every_cose
def test_cose_spectral_weights(case):
    stated = case["cose"]
    fitted = mh.SpectralKernelMean(kernel="precomputed", lam=stated["lam"]).fit(cose_gram(case))
    assert_weights(fitted.weights_, stated["f_weights"])


@every_mean
@every_case
def test_centered_kernel(case, index):
    stated = case["centred"][index]
    fitted = fitted_mean(case, stated)
    centred = mh.Centered(fitted.kernel_, fitted.mean_)
    size = 10 * np.abs(case["L"]).max() + 10 * case["varrho"]
    assert_close(centred(np.array(case["X"])), stated["Kc"], size)
    assert_close(centred(np.array(case["X_test"]), np.array(case["X"])), stated["Lc"], size)


@every_cose
def test_kernel_covariance(case):
    stated, X = case["cose"], np.array(case["X"])
    simple = mh.KernelCovariance(kernel_of(case), mean=mh.ShrunkKernelMean()).fit(X)
    assert_weights(simple.weights_, stated["s_weights"])
    flexible = mh.KernelCovariance(kernel_of(case), mean=mh.SpectralKernelMean(lam=stated["lam"])).fit(X)
    assert_weights(flexible.weights_, stated["f_weights"])

"""Nested means: what the mean of another estimator chose is shown, and its Gram matrix is not kept."""

import pickle

import numpy as np
import pytest

import muhat as mh

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
KERNEL = mh.Gaussian(1.5)


def fitted_outer(mean, rows, kernel):
    """Outer estimators that fit a mean once, and the Gram matrix that each fits it to."""
    K = kernel(rows)
    squared = mh.ShrunkKernelCenterer().fit_transform(K) ** 2
    pca = mh.KernelPCA(2, kernel, covariance=mean).fit(rows)
    return [
        (mh.ShrunkKernelCenterer(mean).fit(K), "mean_fit_", K),
        (mh.KernelPCA(2, kernel, mean=mean).fit(rows), "mean_fit_", K),
        (pca, "covariance_fit_", squared),
        (mh.KernelCovariance(kernel, mean=mean).fit(rows), "mean_fit_", squared),
    ]


CHOICES = {
    mh.KernelMean: (),
    mh.ShrunkKernelMean: ("shrinkage",),
    mh.SpectralKernelMean: ("lam", "scale"),
    mh.AdaptiveKernelMean: ("lam", "shares", "target_kind"),
    mh.RobustKernelMean: ("threshold", "n_iter"),
    mh.ConstrainedKernelMean: ("shrinkage",),
}


@pytest.mark.parametrize("mean_class", CHOICES)
def test_outer_estimators_show_what_the_mean_chose(mean_class):
    for outer, name, K in fitted_outer(mean_class(), X, KERNEL):
        shown, own = getattr(outer, name), mean_class("precomputed").fit(K)
        np.testing.assert_allclose(shown.weights, own.weights_, rtol=0, atol=1e-9)
        for choice in CHOICES[mean_class]:
            value = getattr(own, f"{choice}_")
            # At its flat minimum λ follows the last digits of the Gram matrix, which was centred another way.
            assert shown.chosen[choice] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-5))
        assert shown.gram is None


@pytest.mark.parametrize("mean_class", CHOICES)
def test_an_outer_estimator_holds_no_gram_matrix_for_its_mean(mean_class):
    rows = RNG.normal(size=(150, 2))
    outer_estimators, plain = (fitted_outer(mean, rows, KERNEL) for mean in (mean_class(), None))
    for (outer, name, _), (other, _, _) in zip(outer_estimators, plain, strict=True):
        assert len(pickle.dumps(outer)) - len(pickle.dumps(other)) < 8 * len(rows) ** 2 / 4
        assert getattr(other, name) is None

"""Nested means: ``sample_weight`` reaches the mean estimators that request it, as scikit-learn routes metadata."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import muhat as mh

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
COUNTS = np.array([1.0, 2.0, 0.0, 3.0, 1.0, 1.0, 0.0, 1.0, 4.0, 1.0, 2.0, 1.0])
KERNEL = mh.Gaussian(1.5)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(estimator):
    return estimator.set_fit_request(sample_weight=True)


MEANS = [mh.KernelMean, mh.ShrunkKernelMean, mh.SpectralKernelMean, mh.AdaptiveKernelMean, mh.RobustKernelMean]


@pytest.mark.parametrize("mean_class", MEANS)
@pytest.mark.usefixtures("routing")
def test_weights_reach_the_mean(mean_class):
    own = mean_class("precomputed").fit(KERNEL(X), sample_weight=COUNTS).weights_
    pca = mh.KernelPCA(2, KERNEL, mean=asking(mean_class())).fit(X, sample_weight=COUNTS)
    np.testing.assert_allclose(pca.mean_weights_, own, rtol=0, atol=1e-12)
    centred = mh.ShrunkKernelCenterer(asking(mean_class())).fit(KERNEL(X), sample_weight=COUNTS)
    np.testing.assert_allclose(centred.weights_, own, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("routing")
def test_each_nested_mean_requests_for_itself():
    mean, plain = asking(mh.ShrunkKernelMean()), mh.ShrunkKernelMean().set_fit_request(sample_weight=False)
    pca = mh.KernelPCA(2, KERNEL, mean=plain, covariance=mean).fit(X, sample_weight=COUNTS)
    without = mh.KernelPCA(2, KERNEL, mean=plain, covariance=mean).fit(X)
    np.testing.assert_array_equal(pca.mean_weights_, without.mean_weights_)
    assert np.abs(pca.covariance_weights_ - without.covariance_weights_).max() > 0.01
    operator = mh.KernelCovariance(KERNEL, centering=asking(mh.KernelMean())).fit(X, sample_weight=COUNTS).operator_
    np.testing.assert_allclose(operator.mean_x.measures[0].weights, COUNTS / COUNTS.sum(), atol=1e-15)


@pytest.mark.usefixtures("routing")
def test_weights_count_repetitions():
    matched = mh.MatchedGaussianMixture(2, KERNEL, asking(mh.ShrunkKernelMean()), n_init=1, random_state=0)
    repeated = np.repeat(X, COUNTS.astype(int), axis=0)
    mean = mh.ShrunkKernelMean(KERNEL).fit(repeated).mean_
    assert matched.fit(X, sample_weight=COUNTS).mean_.distance(mean) <= 1e-7


@pytest.mark.usefixtures("routing")
def test_weights_pass_through_a_pipeline():
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pca = mh.KernelPCA(2, KERNEL, mean=asking(mh.KernelMean()))
    make_pipeline(scaler, pca).fit(X, sample_weight=COUNTS)
    np.testing.assert_allclose(pca.mean_weights_, COUNTS / COUNTS.sum(), atol=1e-15)
    scores = mh.KernelPCA(2, KERNEL, mean=asking(mh.KernelMean())).fit_transform(X, sample_weight=COUNTS)
    other = mh.KernelPCA(2, KERNEL, mean=asking(mh.KernelMean())).fit(X, sample_weight=COUNTS).transform(X)
    np.testing.assert_allclose(scores, other, atol=1e-12)


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


OUTER = [
    mh.KernelPCA(2, mean=mh.KernelMean()),
    mh.KernelCovariance(mean=mh.KernelMean()),
    mh.MatchedGaussianMixture(2, mean=mh.KernelMean()),
]


@pytest.mark.parametrize("outer", OUTER)
def test_without_routing_the_message_says_what_to_do(outer):
    with pytest.raises(ValueError, match=r"sample_weight .*enable_metadata_routing=True.*set_fit_request"):
        outer.fit(X, sample_weight=COUNTS)


@pytest.mark.usefixtures("routing")
def test_nobody_asked():
    with pytest.raises(TypeError, match="sample_weight"):
        mh.KernelPCA(2).fit(X, sample_weight=COUNTS)

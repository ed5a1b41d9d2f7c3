"""Numerical snapshots: calls whose numbers come from a search, a draw or a long formula.

``python tests/helpers/snapshots.py`` computes them and writes ``tests/data/snapshots.json``, which
``test_snapshots.py`` compares with what the library gives.
Properties say what an answer must be like, whereas a snapshot shows that it has not changed, so that every change of
numbers is deliberate and stands in the changelog. Only numbers are stored; sentences and pictures are not.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import muhat as mh

STORED = Path(__file__).parents[1] / "data" / "snapshots.json"


def rows(n, d=3, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1) + shift


X, Y, AT = rows(24), rows(18, seed=1, shift=0.7), rows(3, seed=2)
KERNELS = [mh.Gaussian(), mh.Linear(), mh.Polynomial(2), mh.Polynomial(3), mh.Laplace(), mh.Matern(2.5)]
BAGS = [rows(n, 2, seed=n, shift=n % 3) for n in range(2, 26)]
TARGETS = np.array([len(bag) + bag.mean() for bag in BAGS])


# ---------------------------------------------------------------- calls


def of_means():
    """Weights, scores and values of every estimator of a mean."""
    estimators = [
        *(mean(kernel) for kernel in KERNELS for mean in (mh.ShrunkKernelMean, mh.SpectralKernelMean)),
        *(mh.AdaptiveKernelMean(kernel) for kernel in KERNELS),
        *(mh.SpectralKernelMean(filter=f()) for f in (mh.Landweber, mh.TruncatedSVD, mh.NuMethod, mh.IteratedTikhonov)),
        mh.SpectralKernelMean(lam="theorem4"),
        mh.RobustKernelMean(),
        mh.RobustKernelMean(loss="hampel", shrinkage="loo"),
        mh.MedianOfMeans(random_state=0, shrinkage="loo"),
        mh.ConstrainedKernelMean(),
        mh.ConstrainedKernelMean(shrinkage=0.5, nonnegative=False),
    ]
    for estimator in estimators:
        fitted = estimator.fit(X)
        yield repr(estimator), [fitted.weights_, fitted.mean_(AT), fitted.mean_.norm(), fitted.loo_score_]
    for name, scale in (("BlendedSample", False), ("BlendedSample(scale=True)", True)):
        blended = mh.BlendedSample(scale=scale, n_resamples=5, random_state=0).fit(X)
        yield name, [blended.share_, blended.quantile(0.3)]
        drawn = blended.sample(40, random_state=0), blended.expect(lambda Z: np.exp(Z.sum(axis=1) / 9))
        yield f"{name}: draws", [*drawn, blended.probability(lambda Z: Z[:, 0] > 0.5, return_std=True)]
    wide = mh.BlendedSample(n_resamples=5, random_state=0).fit(rows(6, 30))
    yield "BlendedSample of few rows: draws", [wide.sample(9, random_state=0), wide.expect(lambda Z: np.abs(Z))]
    yield "james_stein", mh.james_stein(AT, 0.5)
    P = mh.paper_mixture(3, random_state=0)
    yield "paper_mixture", [P.sample(4, random_state=0), P.log_density(AT)]
    yield "oracle_shrinkage", list(mh.oracle_shrinkage(mh.Gaussian(2.0), P, 20))


def of_inference():
    """Tests, intervals and bands."""
    strata = np.arange(len(X) + len(Y)) % 2
    options = {
        "": {},
        "unbiased": {"unbiased": True, "kernel": mh.Gaussian()},
        "strata": {"strata": strata},
        "scale": {"scale": "columns", "kernel": mh.Matern()},
    }
    for name, chosen in options.items():
        found = mh.mmd_test(X, Y, n_resamples=39, random_state=0, **chosen)
        yield f"mmd_test {name}", [found.statistic, found.pvalue, found.null_distribution, found.witness(AT)]
    for name, chosen in {"": {}, "unbiased": {"unbiased": True, "kernel_x": mh.Gaussian()}}.items():
        found = mh.hsic_test(X[:, :2], X[:, 2:] ** 2 + X[:, :1], n_resamples=39, random_state=0, **chosen)
        yield f"hsic_test {name}", [found.statistic, found.pvalue, found.null_distribution]
    found = mh.mmd_interval(X, Y)
    yield "mmd_interval", [found.low, found.high, found.estimate, found.standard_error]
    bands = mh.mean_bands(mh.ShrunkKernelMean().fit(X), AT)
    yield "mean_bands", [bands.low, bands.high]
    found = mh.mmd_difference_interval(X, Y, rows(20, seed=3))
    yield "mmd_difference_interval", [found.low, found.high, found.estimate]
    for method in ("bernstein", "bootstrap"):
        ball = mh.confidence_ball(mh.KernelMean().fit(X), method=method, n_resamples=39, random_state=0)
        yield f"confidence_ball {method}", ball.radius
    yield "mean_error", mh.mean_error(mh.SpectralKernelMean().fit(X))


def default_tests():
    """Default tests: of few and of many rows, of numbers and of categories."""
    rng = np.random.default_rng(7)
    many = rng.normal(size=(6001, 2)), 1.03 * rng.normal(size=(6000, 2))
    pairs = rng.normal(size=(3001, 2))
    frames = [
        pd.DataFrame({"x": rng.normal(size=n) + shift, "y": rng.gamma(2.0, size=n), "kind": rng.choice(kinds, n)})
        for n, shift, kinds in ((50, 0.0, list("abc")), (40, 0.9, list("abd")))
    ]
    strata = np.arange(90) % 3
    options = {"n_resamples": 39, "random_state": 0}
    return {
        "mmd_test of many rows": mh.mmd_test(*many, **options),
        "mmd_test of spread": mh.mmd_test(X, 3 * Y, **options),
        "mmd_test of frames": mh.mmd_test(*frames, **options),
        "mmd_test of frames in strata": mh.mmd_test(*frames, strata=strata, **options),
        "hsic_test of many pairs": mh.hsic_test(pairs, pairs[:, :1] ** 2 + rng.normal(size=(3001, 1)), **options),
        "hsic_test of a line": mh.hsic_test(X[:, :1], X + rng.normal(size=X.shape), **options),
        "hsic_test of frames": mh.hsic_test(frames[0][["x", "y"]], frames[0][["kind"]], **options),
        "hsic_test in strata": mh.hsic_test(pairs[:90], pairs[:90] ** 2, strata=strata, **options),
    }


def of_default_tests():
    """Statistics, p-values and components of the default tests."""
    for name, found in default_tests().items():
        parts = [[part.pvalue, part.share, part.evidence] for part in found.components]
        yield name, [found.statistic, found.pvalue, found.null_distribution, parts]


def of_bags():
    """Groups: kernels between them, priors, predictions and p-values."""
    for name, chosen in {
        "": {},
        "pool": {"pool": True, "level2": mh.Gaussian()},
        "whiten": {"whiten": True},
        "mean": {"mean": mh.ShrunkKernelMean()},
        "features": {"features": mh.Nystroem(n_components=8, random_state=0)},
    }.items():
        kernel = mh.DistributionKernel(**chosen)
        yield f"DistributionKernel {name}", [kernel.fit_transform(BAGS), kernel.transform(BAGS[:3])]
    prior = mh.BagPrior(random_state=0).fit(BAGS)
    means = [mean(AT[:, :2]) for mean in prior.means(BAGS[:3])]
    yield "BagPrior", [prior.transform(BAGS), prior.log_odds(BAGS), prior.log_odds(BAGS[:4], BAGS[4:8]), *means]
    for weighted in (True, False):
        ridge = mh.DistributionRidge(random_state=0, pool=weighted).fit(BAGS, TARGETS)
        yield f"DistributionRidge {weighted}", list(ridge.predict(BAGS[:5], return_std=True))
    detector = mh.GroupAnomalyDetector(random_state=0).fit(BAGS)
    yield "GroupAnomalyDetector", [detector.score_samples(BAGS), detector.p_values([3 * bag for bag in BAGS])]
    yield "SupportMeasureClassifier", mh.SupportMeasureClassifier().fit(BAGS, TARGETS > 14).decision_function(BAGS)
    yield "OneClass", mh.OneClassSupportMeasureMachine(nu=0.3).fit(BAGS).decision_function(BAGS)
    yield "pooled_means", [mean(AT[:, :2]) for mean in mh.pooled_means(BAGS[:4])]


def of_operators_and_features():
    """Kernel PCA, covariance operators, matched mixtures, features and sketches."""
    for name, chosen in {"": {}, "fixed-point": {"pre_image": "fixed-point", "mean": mh.ShrunkKernelMean()}}.items():
        pca = mh.KernelPCA(2, **chosen).fit(X)
        scores = pca.transform(AT)
        yield (
            f"KernelPCA {name}",
            [pca.eigenvalues_, scores, pca.reconstruction_error(AT), pca.inverse_transform(scores)],
        )
    covariance = mh.KernelCovariance(mean=mh.ShrunkKernelMean()).fit(X, Y=X**2)
    yield "KernelCovariance", [covariance.weights_, covariance.operator_.norm()]
    for kind in ("spherical", "diag"):
        matched = mh.MatchedGaussianMixture(2, n_init=2, random_state=0, covariance_type=kind).fit(X)
        yield f"MatchedGaussianMixture {kind}", [matched.objective_, matched.score(X)]
    for landmarks in ("uniform", "k-means++", "pivoted"):
        features = mh.Nystroem(n_components=6, landmarks=landmarks, random_state=0)
        sketch = mh.MeanSketch(features.fit(X), second_moment=True, reservoir_size=1000).update(X)
        fit = mh.SpectralKernelMean().estimate(sketch.gram())
        yield f"Nystroem {landmarks}", [fit.mean(AT), features.approximation_error_]
    yield "Fourier", mh.Fourier(mh.Matern(), n_components=16, random_state=0).fit(X).transform(AT)
    sketch = mh.MeanSketch(mh.Nystroem(n_components=5, random_state=0).fit(X), True, reservoir_size=4)
    yield "MeanSketch", sketch.update(X).update(Y).mean_element()(AT)


def of_monitors():
    """Thresholds, and the alarm of a stream that changes."""
    stream = np.concatenate([rows(40, seed=5), rows(40, seed=6, shift=3.0)])
    for block, length in ((1, 32), ("auto", 12)):
        monitor = mh.DriftMonitor(length, n_simulations=100, block_length=block, random_state=0).fit(rows(60, seed=4))
        monitor.update(stream)
        found = monitor.result_
        yield (
            f"DriftMonitor {block}",
            [found.row, found.since, found.window, found.score, found.threshold, dict(found.columns)],
        )
        yield f"DriftMonitor {block}: witness", monitor.witness_(AT)
    settings = {
        "windows": {"windows": [1, 4, 9]},
        "one kernel": {"kernel": mh.Laplace(2.0)},
        "a long reference": {"run_length": 600, "windows": [1, 5], "kernel": mh.Gaussian()},
    }
    for name, chosen in settings.items():
        n = 2050 if "run_length" in chosen else 60
        monitor = mh.DriftMonitor(
            **{"run_length": 36, "n_simulations": 100, "block_length": 1, "random_state": 0} | chosen
        )
        monitor.fit(rows(n, seed=4)).update(rows(90, seed=5))
        yield f"scores and thresholds, {name}", [monitor.windows_, monitor.threshold_, *monitor.recent_scores()]


CALLS = {name[3:]: call for name, call in globals().items() if name.startswith("of_")}


# ---------------------------------------------------------------- storing and comparing


def plain(value):
    """JSON of a few numbers: of a long array, its size, its sum and a sum with uneven weights."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.size > 6:
        flat = value.astype(float).ravel()
        return [len(flat), float(flat.sum()), float(flat @ np.cos(np.arange(len(flat))))]
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def answers(name):
    """The answers of one group of calls, as JSON has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return json.loads(json.dumps({call: plain(found) for call, found in CALLS[name]()}))


def written(stored):
    """JSON with one line per call, so that a diff names the calls whose numbers changed."""
    groups = []
    for group, calls in stored.items():
        lines = ",\n".join(f"  {json.dumps(call)}: {json.dumps(found)}" for call, found in calls.items())
        groups.append(f" {json.dumps(group)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(groups) + "\n}\n"


if __name__ == "__main__":
    STORED.write_text(written({name: answers(name) for name in CALLS}), encoding="utf-8")

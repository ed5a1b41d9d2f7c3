"""Awkward data for every public estimator and test: finite numbers, or a ValueError that leads on.

python tools/attacks/awkward.py                      # every subject on every kind of data once
python tools/attacks/awkward.py --calls 2000 --seed 7   # random mixtures of kinds, shapes and subjects
python tools/attacks/awkward.py --only mmd_test

A call fails if it returns NaN or infinity, warns from the inside (a RuntimeWarning, say), or raises what is not a plain
ValueError, TypeError or MemoryError of words. Wide tables of 20,000 columns are left to the first form.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import muhat as mh

Rows = Any
Calls = dict[str, Callable[[Rows], Any]]


# ---------------------------------------------------------------- kinds of data


def outlier(X: Rows, size: float) -> Rows:
    X = X.copy()
    X[0, -1] = size
    return X


KINDS: dict[str, Callable[[Rows], Rows]] = {
    "plain": lambda X: X,
    "duplicate rows": lambda X: X[np.arange(len(X)) % max(len(X) // 3, 1)],
    "all rows equal": lambda X: np.tile(X[:1], (len(X), 1)),
    "a constant column": lambda X: np.column_stack([X[:, :-1], np.full(len(X), 7.0)]),
    "zeros": np.zeros_like,
    "an outlier of 1e12": lambda X: outlier(X, 1e12),
    "an outlier of 1e300": lambda X: outlier(X, 1e300),
    "an outlier of -1e308": lambda X: outlier(X, -1e308),
    "both ends": lambda X: outlier(-outlier(X, 1e308), 1e308),
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.rint(5 * X.clip(-1e15, 1e15)).astype(int),
    "rank one": lambda X: X[:, :1] * np.arange(1.0, X.shape[1] + 1),
    "far from zero": lambda X: X + 1e8,
    "columns of different scales": lambda X: X * np.logspace(-100, 100, X.shape[1]),
    "two values": lambda X: (X > 0).astype(float),
    "heavy tails": lambda X: np.sign(X) * np.exp(20 * np.abs(X)),
    "six hundred orders": lambda X: np.sign(X) * 10.0 ** (600 * np.modf(7 * np.abs(X))[0] - 300),
    "subnormal": lambda X: 5e-324 * np.rint(20 * np.tanh(X)),
    "mixed ranges": lambda X: X * np.resize([1e-320, 1e-200, 1.0, 1e200, 1e307], X.shape[1]) / 4,
    "mostly zeros": lambda X: np.where(X > 0.7, X, 0.0),
    "counts": lambda X: np.floor(np.abs(X)),
    "half in single precision": lambda X: np.concatenate([_single(X[: len(X) // 2]), X[len(X) // 2 :]]),
    "half by thirds": lambda X: np.concatenate([X[: len(X) // 2] / 3 * 3, X[len(X) // 2 :]]),
    "decimals by thirds": lambda X: np.rint(5 * X.clip(-1e9, 1e9)) / 10 * 3 / 3,
    "six digits": lambda X: np.vectorize(lambda x: float(f"{x:.6g}"))(X),
    "Fortran order": np.asfortranarray,
    "not writable": lambda X: _frozen(X),
    **{f"scale {scale:g}": lambda X, s=scale: X * s for scale in (1e-308, 1e-300, 1e-163, 1e-150, 1e150, 1e300, 1e307)},
}

TYPES = {"float32", "integers", "Fortran order", "not writable"}
"""Kinds that change the array and not its values; they come last."""


def _single(X: Rows) -> Rows:
    most = float(np.finfo(np.float32).max)
    return X.clip(-most, most).astype(np.float32).astype(float)


def _frozen(X: Rows) -> Rows:
    X = X.copy()
    X.setflags(write=False)
    return X


SHAPES = [(20, 3), (2, 3), (3, 1), (2, 1), (12, 60), (60, 2)]
WIDE = (6, 20_000)


# ---------------------------------------------------------------- subjects


class Subject(NamedTuple):
    """What is done with rows, and the numbers that come back; ``wide`` if 20,000 columns are within its reach."""

    call: Callable[[Rows], list[Any]]
    wide: bool = True


def of_mean(estimator: Any) -> Callable[[Rows], list[Any]]:
    def call(X: Rows) -> list[Any]:
        fitted = estimator.fit(X)
        mean = fitted.mean_
        return [fitted.weights_, fitted.loo_score_, mean(X), mean.norm(), fitted.score(X)]

    return call


def halves(X: Rows) -> tuple[Rows, Rows]:
    middle = max(len(X) // 2, 1)
    return X[:middle], X[middle:]


def of_test(
    function: Callable[..., Any], *args: Any, pairs: bool = False, **params: Any
) -> Callable[[Rows], list[Any]]:
    def call(X: Rows) -> list[Any]:
        first, second = (X, X[::-1]) if pairs else (X, halves(X)[1][:, ::-1])
        result = function(first, second, *args, n_resamples=19, random_state=0, **params)
        numbers = [result.statistic, share(result.pvalue), result.null_distribution]
        str(result.summary if hasattr(result, "summary") else result)
        witness = getattr(result, "witness", None)
        return numbers if witness is None else [*numbers, witness(X)]

    return call


def in_clusters(X: Rows) -> list[Any]:
    """Each row is observed twice, so that clusters are rows."""
    rows = np.concatenate([X] * -(-4 // len(X)))  # two clusters in each sample
    first, second = (np.repeat(part, 2, axis=0) for part in halves(rows))
    clusters = np.arange(len(first) + len(second)) // 2
    result = mh.mmd_test(first, second, clusters=clusters, n_resamples=19, random_state=0)
    return [result.statistic, share(result.pvalue), result.null_distribution, result.witness(X)]


def as_frame(X: Rows) -> Any:
    """A column of numbers as it is, its signs as categories, days, and one of texts with gaps."""
    import pandas as pd

    days = np.datetime64("2026-01-01") + np.clip(X[:, 0], -1e4, 1e4).astype("m8[D]")
    texts = [None if x > 1 else f"{x:.0g}" for x in X[:, -1]]
    return pd.DataFrame(
        {"x": X[:, 0], "sign": pd.Categorical(np.sign(X[:, 0]).astype(str)), "day": days, "text": texts}
    )


def on_frames(function: Callable[..., Any], pairs: bool = False) -> Callable[[Rows], list[Any]]:
    def call(X: Rows) -> list[Any]:
        first, second = (X, X[::-1]) if pairs else (X, halves(X)[1])
        result = function(as_frame(first), as_frame(second), n_resamples=19, random_state=0)
        str(result.summary)
        return [result.statistic, share(result.pvalue), result.null_distribution]

    return call


def tables(X: Rows) -> list[Any]:
    found = mh.compare(*map(as_frame, halves(X)), n_resamples=19, random_state=0)
    str(found), found._repr_html_(), found.to_frame()
    columns = [number for each in found.columns for number in (each.effect, *each.interval, share(each.pvalue))]
    return [*map(share, (found.pvalue, found.joint_pvalue)), *columns]


def group_distances(X: Rows) -> list[Any]:
    rows = np.concatenate([X] * -(-9 // len(X)))
    groups = np.arange(len(rows)) % 3
    found = mh.group_distances(rows, groups, control=0, n_resamples=19, random_state=0)
    shares = [share(p, 20_000) for p in (found.global_pvalue, *found.pvalue, *found.adjusted)]  # a second stage
    return [found.distance, found.low, found.high, found.unbiased, found.matrix, *shares]


def conditional(X: Rows) -> list[Any]:
    rows = np.concatenate([X] * -(-20 // len(X)))
    fitted = mh.ConditionalKernelMean().fit(rows, rows[:, :1])
    return [fitted.weights(X), fitted.predict(X), *np.transpose(fitted.interval(X))]


def share(pvalue: float, n_resamples: int = 19) -> float:
    """The p-value, which must be a share of the permutations."""
    assert 1 / (n_resamples + 1) <= pvalue <= 1, f"p = {pvalue}"
    return pvalue


def as_bags(X: Rows) -> list[Rows]:
    """Bags of uneven sizes, one of a single row, and a few of ordinary rows so that there are enough of them."""
    rng = np.random.default_rng(1)
    cuts = [X[:1], X, X[1:], X[::2], *(X[rng.integers(len(X), size=int(n))] for n in rng.integers(1, 9, size=24))]
    return [cut for cut in cuts if len(cut)]


def targets(bags: list[Rows]) -> Any:
    return np.arange(len(bags), dtype=float)


def blended(X: Rows) -> list[Any]:
    fitted = mh.BlendedSample(n_resamples=3, random_state=0).fit(X)
    return [
        fitted.share_,
        fitted.expect(lambda rows: (rows > 0).mean(axis=1)),
        fitted.probability(lambda rows: rows[:, 0] > 0),
        fitted.sample(5, random_state=0),
    ]


def pca(**params: Any) -> Callable[[Rows], list[Any]]:
    def call(X: Rows) -> list[Any]:
        fitted = mh.KernelPCA(1, **params).fit(X)
        return [
            fitted.eigenvalues_,
            fitted.transform(X),
            fitted.reconstruction_error(X),
            fitted.inverse_transform(fitted.transform(X)),
        ]

    return call


def covariance(X: Rows) -> list[Any]:
    fitted = mh.KernelCovariance(mean=mh.ShrunkKernelMean()).fit(X)
    return [fitted.weights_, fitted.operator_.norm()]


def mixture(X: Rows) -> list[Any]:
    fitted = mh.MatchedGaussianMixture(2, n_init=2, random_state=0, max_iter=20).fit(X)
    return [fitted.weights_, fitted.means_, fitted.variances_, fitted.objective_]


def sketch(X: Rows) -> list[Any]:
    features = mh.Nystroem(n_components=5, random_state=0).fit(X)
    fit = mh.SpectralKernelMean().estimate(mh.MeanSketch(features, True, reservoir_size=1000).update(X).gram())
    return [fit.weights, fit.mean(X), features.approximation_error_]


def monitor(X: Rows) -> list[Any]:
    rows = np.concatenate([X] * -(-60 // len(X)))
    watch = mh.DriftMonitor(run_length=30, block_length=1, random_state=0).fit(rows)
    watch.update(rows[:7])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "monitor.npz"
        watch.save(path)
        again = mh.DriftMonitor.load(path)
    watch.update(rows[7:])
    again.update(rows[7:])
    assert watch.drift_detected == again.drift_detected
    found = watch.result_
    return [] if found is None else [found.row, found.since, found.window, found.score, found.threshold]


def error_bars(X: Rows) -> list[Any]:
    fitted = mh.KernelMean().fit(X)
    bands = mh.mean_bands(fitted, X)
    ball = mh.confidence_ball(fitted, method="bootstrap", n_resamples=20, random_state=0)
    return [mh.mean_error(fitted), ball.radius, bands.low, bands.high]


def interval(X: Rows) -> list[Any]:
    found = mh.mmd_interval(*halves(X))
    return [found.low, found.high, found.estimate, found.standard_error]


def prior(X: Rows) -> list[Any]:
    bags = as_bags(X)
    fitted = mh.BagPrior(random_state=0).fit(bags)
    means = [mean(X[:3]) for mean in fitted.means(bags[:3])]
    return [fitted.transform(bags), fitted.log_odds(bags), *means]


def ridge(X: Rows) -> list[Any]:
    bags = as_bags(X)
    order = np.argsort(targets(bags)) > len(bags) // 2
    classes = mh.DistributionRidgeClassifier().fit(bags, order).predict_proba(bags)
    return [*mh.DistributionRidge().fit(bags, targets(bags)).predict(bags, return_std=True), classes]


def anomalies(X: Rows) -> list[Any]:
    bags = as_bags(X)
    fitted = mh.GroupAnomalyDetector(random_state=0).fit(bags)
    return [fitted.score_samples(bags), fitted.p_values(bags)]


def distribution_kernel(**params: Any) -> Callable[[Rows], list[Any]]:
    def call(X: Rows) -> list[Any]:
        bags = as_bags(X)
        fitted = mh.DistributionKernel(**params)
        return [fitted.fit_transform(bags), fitted.transform(bags[:3])]

    return call


def support_measures(X: Rows) -> list[Any]:
    bags = as_bags(X)
    labels = targets(bags) > len(bags) / 2
    machine = mh.SupportMeasureClassifier().fit(bags, labels)
    one_class = mh.OneClassSupportMeasureMachine().fit(bags)
    return [machine.decision_function(bags), one_class.decision_function(bags)]


def subjects() -> dict[str, Subject]:
    """Every public estimator and test."""
    kernels = [mh.Gaussian(), mh.Linear(), mh.Polynomial(2), mh.Polynomial(3), mh.Laplace(), mh.Matern()]
    mixed = mh.OnColumns(mh.Gaussian(), (0,)) * mh.OnColumns(mh.Categorical(), (0,)) + mh.Laplace()
    found: dict[str, Subject] = {}
    for kernel in [*kernels, mixed, mh.Categorical()]:
        name = (
            "OnColumns and Categorical"
            if kernel is mixed
            else type(kernel).__name__ + str(getattr(kernel, "degree", ""))
        )
        for mean in (mh.KernelMean, mh.ShrunkKernelMean, mh.SpectralKernelMean, mh.AdaptiveKernelMean):
            cheap = mean is not mh.AdaptiveKernelMean or isinstance(kernel, mh.Gaussian | mh.Linear)
            found[f"{mean.__name__}({name})"] = Subject(of_mean(mean(kernel)), wide=cheap)
        found[f"mmd_test({name})"] = Subject(of_test(mh.mmd_test, kernel))
    for mean in (
        mh.RobustKernelMean(),
        mh.RobustKernelMean(loss="hampel"),
        mh.ConstrainedKernelMean(),
        mh.MedianOfMeans(random_state=0),
        mh.SpectralKernelMean(filter=mh.Landweber()),
        mh.SpectralKernelMean(filter=mh.TruncatedSVD()),
    ):
        found[f"{mean!r}"] = Subject(of_mean(mean))
    found |= {
        "mmd_test": Subject(of_test(mh.mmd_test), wide=False),
        "mmd_test(frames)": Subject(on_frames(mh.mmd_test), wide=False),
        "hsic_test(frames)": Subject(on_frames(mh.hsic_test, pairs=True), wide=False),
        "mmd_test(unbiased)": Subject(of_test(mh.mmd_test, unbiased=True)),
        "mmd_test(clusters)": Subject(in_clusters, wide=False),
        "hsic_test": Subject(of_test(mh.hsic_test, pairs=True), wide=False),
        "hsic_test(Gaussian)": Subject(of_test(mh.hsic_test, mh.Gaussian(), pairs=True)),
        "compare": Subject(tables, wide=False),
        "group_distances": Subject(group_distances, wide=False),
        "ConditionalKernelMean": Subject(conditional, wide=False),
        "mmd_interval": Subject(interval),
        "error bars": Subject(error_bars),
        "BlendedSample": Subject(blended),
        "KernelPCA": Subject(pca()),
        "KernelPCA(fixed-point)": Subject(pca(pre_image="fixed-point", mean=mh.ShrunkKernelMean())),
        "KernelCovariance": Subject(covariance),
        "MatchedGaussianMixture": Subject(mixture, wide=False),
        "Nystroem": Subject(sketch),
        "DriftMonitor": Subject(monitor, wide=False),
        "BagPrior": Subject(prior),
        "DistributionRidge": Subject(ridge, wide=False),
        "GroupAnomalyDetector": Subject(anomalies, wide=False),
        "DistributionKernel": Subject(distribution_kernel()),
        "DistributionKernel(pool)": Subject(distribution_kernel(pool=True, level2=mh.Gaussian())),
        "DistributionKernel(whiten)": Subject(distribution_kernel(whiten=True)),
        "support measure machines": Subject(support_measures),
    }
    return found


# ---------------------------------------------------------------- the attack


class Outcome(NamedTuple):
    """What a call came to; ``fault`` is None where that is fine."""

    kind: str
    fault: str | None = None
    words: str = ""


REFUSALS = {ValueError, TypeError, MemoryError}
"""Errors that may be raised; subclasses such as ``LinAlgError`` come from the inside."""


def judged(call: Callable[[Rows], list[Any]], X: Rows) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # words for the caller
        try:
            numbers = call(X)
        except BaseException as error:
            if type(error) in REFUSALS and len(str(error).split()) >= 5:
                return Outcome("refused", words=str(error))
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome("failed", f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")
    bad = [i for i, part in enumerate(numbers) if not np.isfinite(np.asarray(part, dtype=float)).all()]
    return Outcome("failed", f"number {bad[0]} of the result is not finite") if bad else Outcome("answered")


def attacks(names: list[str], calls: int | None, rng: np.random.Generator) -> Iterator[tuple[str, str, Rows]]:
    """Subject, description of the data, data."""
    table, kinds = subjects(), list(KINDS)
    if calls is None:
        for name in names:
            for kind in KINDS:
                yield name, kind, KINDS[kind](rng.normal(size=SHAPES[0]))
            for shape in SHAPES[1:]:
                yield name, f"{shape}", rng.normal(size=shape)
            if table[name].wide:
                yield name, f"{WIDE}", rng.normal(size=WIDE)
        return
    for _ in range(calls):
        name, shape = names[rng.integers(len(names))], SHAPES[rng.integers(len(SHAPES))]
        chosen = sorted((kinds[i] for i in rng.integers(len(kinds), size=rng.integers(1, 3))), key=TYPES.__contains__)
        X = rng.normal(size=shape)
        with np.errstate(all="ignore"):
            for kind in chosen:
                X = KINDS[kind](np.nan_to_num(X).astype(float))
            X = np.nan_to_num(X)
        yield name, f"{shape}, {', '.join(chosen)}", X


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, help="random calls; default every subject on every kind of data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--refusals", action="store_true", help="print the messages of what was refused too")
    parser.add_argument("--only", default="", help="subjects whose names contain this")
    args = parser.parse_args()
    table = subjects()
    names = [name for name in table if args.only in name]
    counts: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data, X in attacks(names, args.calls, np.random.default_rng(args.seed)):
            outcome = judged(table[name].call, X)
            counts[outcome.kind] += 1
            if outcome.fault:
                print(f"{name} on {data}: {outcome.fault[:300]}")
            if outcome.words and args.refusals:
                print(f"{name} on {data}: refused. {outcome.words[:200]}")
    print(
        f"{counts.total()} calls: {counts['answered']} answered, {counts['refused']} refused, {counts['failed']} failed"
    )
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

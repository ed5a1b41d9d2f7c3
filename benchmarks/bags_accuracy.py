"""Bags of image patches (``load_bags("scenes4_indoor")``): accuracy of whitened kernels, and risk of pooled means.

Accuracy: 100 training images a class, the others are for the test; patches of an image are drawn without replacement.
Embedding bandwidth (half, once the median of the training rows), level-2 bandwidth (half, once, twice the median of the
training bags) and C are chosen by 10-fold cross-validation on the training bags, everything else learnt inside of the
folds. All methods share splits and patches; differences are paired. Risk: the 100 patches of an image are the
population, n rows are drawn from it with replacement, and squared distances are those of the space of the kernel.

    python benchmarks/bags_accuracy.py                 # 3 splits of bags of 20 and 100, 5 folds
    python benchmarks/bags_accuracy.py --full --jobs 2 # 8 splits of bags of 10, 20, 50, 100, 10 folds
    python benchmarks/bags_accuracy.py --strengths     # accuracy over the ridge of the whitening
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import muhat as mh
from muhat.bags import DistributionKernel
from muhat.pooling import pooled_means

Bags = list[np.ndarray]
WIDTHS = (0.5, 1.0)
LEVEL2_WIDTHS = (0.5, 1.0, 2.0)
FEATURES_SCALE = [10.0**k for k in range(-3, 2)]  # whitened inner products are of the order of 500 / size
COSTS = {"linear": [10.0**k for k in range(5)], "Gaussian": [10.0**k for k in range(-1, 4)], "whitened": FEATURES_SCALE}
METHODS: dict[str, dict[str, Any]] = {
    "KME": {},
    "S-KMSE, each bag": {"mean": mh.ShrunkKernelMean()},
    "whitened": {"whiten": True},
}
SHRUNK_UP_TO = 20  # rows a bag; beyond, a recipe for each bag changes its mean by little
STRENGTHS = (0.002, 0.01, 0.05, 0.2, 1.0)


def split(scenes: Any, size: int, seed: int) -> tuple[Bags, np.ndarray, Bags, np.ndarray]:
    """Training and test bags with their classes."""
    rng = np.random.default_rng([seed, size])
    y = scenes.target
    chosen = [rng.choice(np.flatnonzero(y == label), 100, replace=False) for label in np.unique(y)]
    train = rng.permutation(np.concatenate(chosen))
    test = np.setdiff1d(np.arange(len(y)), train)
    bags = [rng.choice(bag, size, replace=False) for bag in scenes.bags]
    return [bags[i] for i in train], y[train], [bags[i] for i in test], y[test]


def level2_kernels(kind: str, kernel: DistributionKernel, bags: Bags) -> list[Any]:
    """The candidates; the median is that of the bags of the fold."""
    if kind == "linear":
        return ["linear"]
    median = kernel.set_params(level2=mh.Gaussian()).fit(bags).level2_.bandwidth
    return [mh.Gaussian(width * median) for width in LEVEL2_WIDTHS]


def fold_scores(kernel: DistributionKernel, kind: str, train: Bags, y: np.ndarray, test: Bags, z: np.ndarray) -> Any:
    """Accuracy on held-out bags: an array (level-2 kernels, costs)."""
    scores = []
    for level2 in level2_kernels(kind, kernel, train):
        K = kernel.set_params(level2=level2).fit_transform(train)
        L = kernel.transform(test)
        costs = COSTS["whitened" if kind == "linear" else kind]
        scores.append([SVC(kernel="precomputed", C=C).fit(K, y).score(L, z) for C in costs])
    return np.array(scores)


def gram_scores(G: np.ndarray, kind: str, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> Any:
    """The same from the inner products of all bags, for kernels which learn nothing from bags."""
    if kind == "linear":
        grams = [G]
    else:
        norms = np.diag(G)
        squared = np.maximum(norms[:, None] + norms - 2 * G, 0)
        median = np.median(squared[np.ix_(a, a)][np.triu_indices(len(a), 1)])
        grams = [np.exp(-squared / (2 * width**2 * median)) for width in LEVEL2_WIDTHS]
    return np.array(
        [
            [
                SVC(kernel="precomputed", C=C).fit(K[np.ix_(a, a)], y[a]).score(K[np.ix_(b, a)], y[b])
                for C in COSTS[kind]
            ]
            for K in grams
        ]
    )


def accuracy(options: dict[str, Any], kind: str, data: tuple[Bags, np.ndarray, Bags, np.ndarray], folds: int) -> float:
    """Accuracy on the test bags, of the parameters that cross-validation chose."""
    train, y, test, z = data
    cut = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(y, y))
    median = mh.Gaussian().resolve(np.concatenate(train)).bandwidth
    results = []
    for width in WIDTHS:
        kernel = DistributionKernel(mh.Gaussian(width * median), **options)
        if "whiten" in options:
            parts = [
                fold_scores(kernel, kind, [train[i] for i in a], y[a], [train[i] for i in b], y[b]) for a, b in cut
            ]
            final = fold_scores(kernel, kind, train, y, test, z)
        else:
            G = kernel.fit_transform(train + test)
            parts = [gram_scores(G, kind, y, a, b) for a, b in cut]
            everything = np.concatenate([y, z])
            final = gram_scores(G, kind, everything, np.arange(len(y)), np.arange(len(y), len(everything)))
        results.append((np.mean(parts, axis=0), final))
    validated, tested = (np.array(part) for part in zip(*results, strict=True))
    return float(tested.flat[np.argmax(validated)])


def accuracies(scenes: Any, methods: dict[str, Any], size: int, seed: int, folds: int) -> list[list[float]]:
    """Accuracy of each method, linear and Gaussian, on one split."""
    data = split(scenes, size, seed)
    with threadpool_limits(1):
        return [
            [
                accuracy(options, kind, data, folds) if "mean" not in options or size <= SHRUNK_UP_TO else np.nan
                for kind in ("linear", "Gaussian")
            ]
            for options in methods.values()
        ]


def with_error(values: np.ndarray) -> str:
    """Mean and standard error, in points."""
    if np.isnan(values).any():
        return f"{'':>12}"
    return f"{100 * values.mean():6.1f} ({100 * values.std(ddof=1) / np.sqrt(len(values)):3.1f})"


def print_accuracies(
    scenes: Any, methods: dict[str, Any], sizes: list[int], splits: int, folds: int, jobs: int
) -> None:
    """Print a table for each size: accuracies, and paired differences from the first method."""
    print(f"Accuracy in %, mean of {splits} splits (standard error); gain over {next(iter(methods))!r}, paired")
    print(f"{'':<28}{'linear':>12}{'Gaussian':>14}{'gain, linear':>16}{'gain, Gaussian':>16}")
    for size in sizes:
        tasks = (delayed(accuracies)(scenes, methods, size, seed, folds) for seed in range(splits))
        values = np.array(Parallel(n_jobs=jobs)(tasks))
        for j, name in enumerate(methods):
            gains = values[:, j] - values[:, 0]
            cells = [with_error(values[:, j, 0]), with_error(values[:, j, 1])]
            cells += [with_error(gains[:, 0]), with_error(gains[:, 1])] if j else []
            print(f"{size:>3} patches, {name:<15}" + "    ".join(cells), flush=True)


def risks(bags: Bags, size: int, seed: int, replace: bool) -> dict[str, float]:
    """Mean squared distance from the means of the whole bags."""
    rng = np.random.default_rng([seed, size])
    drawn = [rng.choice(bag, size, replace=replace) for bag in bags]
    pooled = pooled_means(drawn)
    kernel = pooled[0].kernel
    losses: dict[str, list[float]] = {"KME": [], "S-KMSE, each bag": [], "pooled": []}
    for bag, rows, shared in zip(bags, drawn, pooled, strict=True):
        truth = mh.embed(kernel, bag)
        shrunk = mh.ShrunkKernelMean(kernel).fit(rows).mean_
        for name, mean in zip(losses, (mh.embed(kernel, rows), shrunk, shared), strict=True):
            losses[name].append(mean.distance(truth) ** 2)
    return {name: float(np.mean(values)) for name, values in losses.items()}


def print_risks(scenes: Any, sizes: list[int], draws: int, jobs: int) -> None:
    """Print risks relative to the plain average."""
    for replace in (True, False):
        print(f"\nRisk / KME's, {len(scenes.bags)} bags, n of 100 patches with{'' if replace else 'out'} replacement")
        for size in sizes:
            tasks = (delayed(risks)(scenes.bags, size, seed, replace) for seed in range(draws))
            ratios = [{name: r / each["KME"] for name, r in each.items()} for each in Parallel(n_jobs=jobs)(tasks)]
            cells = []
            for name in list(ratios[0])[1:]:
                values = np.array([ratio[name] for ratio in ratios])
                cells.append(f"{name} {values.mean():.3f} ({values.std(ddof=1) / np.sqrt(draws):.3f})")
            print(f"{size:>3} patches   " + "    ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="more splits, sizes and folds")
    parser.add_argument("--strengths", action="store_true", help="accuracy over the ridge of the whitening")
    parser.add_argument("--sizes", type=int, nargs="+", help="patches of a bag; default 20 100, or 10 20 50 100")
    parser.add_argument("--no-risk", action="store_true", help="accuracies alone")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    scenes = mh.load_bags("scenes4_indoor")
    scenes.bags = [bag.astype(float) for bag in scenes.bags]
    splits, folds, sizes = (8, 10, [10, 20, 50, 100]) if arguments.full else (3, 5, [20, 100])
    sizes = arguments.sizes or sizes
    if arguments.strengths:
        ridges = {f"ridge {ridge:g}": {"whiten": ridge} for ridge in STRENGTHS}
        print_accuracies(scenes, ridges, [20], splits, folds, arguments.jobs)
        return
    if not arguments.no_risk:
        print_risks(scenes, [5, 10, 20, 50] if arguments.full else [20], 3, arguments.jobs)
    print_accuracies(scenes, METHODS, sizes, splits, folds, arguments.jobs)


if __name__ == "__main__":
    main()

"""Bags of image patches (``load_bags``): accuracy of whitened kernels, and risk of pooled means.

Accuracy: a share of the images of each class for training, the others are for the test; patches of an image are drawn
without replacement. Embedding bandwidth (half, once the median of the training rows, to two digits), level-2 bandwidth
(half, once, twice the median of the training bags) and C are chosen by 10-fold cross-validation on the training bags.
Landmarks come from the training bags, all that whitening learns from the training part of each fold. All methods share
splits and patches; differences are paired. Risk: the 100 patches of an image are the population, n rows are drawn from
it with and without replacement, and squared distances are those of the space of the kernel.

    python benchmarks/bags_accuracy.py                  # 3 splits of bags of 20 and 100, 5 folds
    python benchmarks/bags_accuracy.py --full --jobs 2  # 8 splits of bags of 10, 20, 50, 100, 10 folds
    python benchmarks/bags_accuracy.py --part ridges    # accuracy over the ridge of the whitening
    python benchmarks/bags_accuracy.py --set scenes15   # other images, of 11 classes that are not rooms
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import muhat as mh
from muhat.bags.data import Bags
from muhat.bags.distribution_kernel import RIDGE, BagWhitening, DistributionKernel
from muhat.bags.moments import BagMoments, bag_moments, fit_features
from muhat.bags.prior import pooled_means
from paper.data import load_bags

BagList = list[np.ndarray]
Gram = tuple[str, list[np.ndarray]]  # of all bags for each pair of index sets, with the name of what made it
Methods = dict[str, tuple[str, ...]]  # the Gram matrices that cross-validation may choose from

TRAINING = {"scenes4_indoor": 100, "scenes15": 50}  # images of a class
WIDTHS = (0.5, 1.0)
LEVEL2_WIDTHS = (0.5, 1.0, 2.0)
SHRUNK_UP_TO = 20  # rows a bag; beyond, a recipe for each bag changes its mean by little
STRENGTHS = (0.002, 0.01, 0.05, 0.2, 1.0)
SEARCHED = ("0.01", "0.05", "0.2")
METHODS: Methods = {
    "KME": ("KME",),
    "S-KMSE, each bag": ("S-KMSE",),
    "KME in the features": ("features",),
    "whitened": (f"{RIDGE:g}",),
    "whitened, ridge by CV": SEARCHED,
}


def load(name: str) -> Any:
    """Images and classes; of scenes15 those that are not rooms, which the other set has."""
    scenes = load_bags(name)
    known = load_bags("scenes4_indoor").class_names if name == "scenes15" else []
    kept = [i for i, label in enumerate(scenes.target) if scenes.class_names[label] not in known]
    scenes.bags, scenes.target = [scenes.bags[i].astype(float) for i in kept], scenes.target[kept]
    return scenes


class Split(NamedTuple):
    """Bags with their classes, and pairs of index sets, learnt from and predicted: the folds, then train and test."""

    bags: BagList
    y: np.ndarray
    pairs: list[tuple[np.ndarray, np.ndarray]]


def split(scenes: Any, size: int, seed: int, folds: int) -> Split:
    """A split of the images, and ``size`` patches of each."""
    rng, y = np.random.default_rng([seed, size]), scenes.target
    n = TRAINING[scenes.name]
    chosen = [rng.choice(np.flatnonzero(y == label), n, replace=False) for label in np.unique(y)]
    train = rng.permutation(np.concatenate(chosen))
    test = np.setdiff1d(np.arange(len(y)), train)
    # Whole images are kept as they are, so that their Gram matrix is recalled in the next split.
    bags = [bag if size == len(bag) else rng.choice(bag, size, replace=False) for bag in scenes.bags]
    cut = StratifiedKFold(folds, shuffle=True, random_state=0).split(train, y[train])
    return Split(bags, y, [*((train[a], train[b]) for a, b in cut), (train, test)])


def moments_of(features: Any, bags: BagList, *, within: bool) -> BagMoments:
    """Plain means of bags in features, and the covariance within them."""
    sizes = np.array([len(bag) for bag in bags])
    weights = np.repeat(1.0 / sizes, sizes)
    return bag_moments(features, Bags(np.concatenate(bags), np.cumsum([0, *sizes])), weights, within=within)


def feature_grams(data: Split, kernel: Any, strengths: tuple[str, ...], landmarks: int | None) -> Iterator[Gram]:
    """Plain, and whitened by the bags that each pair learns from; a training bag is looked at once."""
    train = data.pairs[-1][0]
    asked = None if landmarks is None else mh.Nystroem(n_components=landmarks, random_state=0)
    features = fit_features(asked, kernel, np.concatenate([data.bags[i] for i in train]))
    parts = [moments_of(features, [data.bags[i] for i in b], within=b is not data.pairs[-1][1]) for _, b in data.pairs]
    means = np.empty((len(data.bags), features._n_features_out))
    for (_, b), part in zip(data.pairs, parts, strict=True):
        means[b] = part.means
    yield "features", [means @ means.T] * len(parts)
    within = []
    for k, (a, _) in enumerate(data.pairs):
        known = [part for j, part in enumerate(parts[:-1]) if j != k]
        degrees = sum(part.degrees for part in known)
        within.append(BagMoments(means[a], sum(p.degrees * p.within for p in known) / degrees, degrees))
    for strength in strengths:
        whitened = [BagWhitening.of(moments, float(strength))(means) for moments in within]
        yield strength, [U @ U.T for U in whitened]


def grams(data: Split, kernel: Any, names: set[str], landmarks: int | None) -> Iterator[Gram]:
    """Inner products of mean elements, by each of the named rules."""
    for name, mean in {"KME": None, "S-KMSE": mh.ShrunkKernelMean()}.items():
        if name in names:
            yield name, [DistributionKernel(kernel, mean).fit_transform(data.bags)] * len(data.pairs)
    if others := names - {"KME", "S-KMSE"}:
        found = feature_grams(data, kernel, tuple(sorted(others - {"features"}, key=float)), landmarks)
        yield from (gram for gram in found if gram[0] in names)


def costs(name: str, kind: str) -> np.ndarray:
    """Values of C, around the scale of the kernel: inner products of whitened means are of the order of 500 / size."""
    if kind == "Gaussian":
        return 10.0 ** np.arange(-1, 4)
    low = 0.0 if name in ("KME", "S-KMSE", "features") else -3.0
    return 10.0 ** np.arange(low, low + 4.1, 0.5)


def scores(G: np.ndarray, name: str, kind: str, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Accuracy on the bags b after training on a: an array (level-2 kernels, costs)."""
    kernels = [G]
    if kind == "Gaussian":
        squared = np.maximum(np.add.outer(np.diag(G), np.diag(G)) - 2 * G, 0)
        median = np.median(squared[np.ix_(a, a)][np.triu_indices(len(a), 1)])
        kernels = [np.exp(-squared / (2 * width**2 * median)) for width in LEVEL2_WIDTHS]
    pairs = [(K[np.ix_(a, a)], K[np.ix_(b, a)]) for K in kernels]
    return np.array(
        [[SVC(kernel="precomputed", C=C).fit(K, y[a]).score(L, y[b]) for C in costs(name, kind)] for K, L in pairs]
    )


def accuracies(
    scenes: Any, methods: Methods, size: int, seed: int, folds: int, landmarks: int | None = None
) -> list[list[float]]:
    """Accuracy of each method, linear and Gaussian, on the test bags of a split, of what cross-validation chose."""
    data = split(scenes, size, seed, folds)
    names = {name for method in methods.values() for name in method}
    names -= {"S-KMSE"} if size > SHRUNK_UP_TO else set()
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    median = mh.Gaussian().resolve(np.concatenate([data.bags[i] for i in data.pairs[-1][0]])).bandwidth
    with threadpool_limits(1):
        for width in WIDTHS:
            for name, matrices in grams(data, mh.Gaussian(float(f"{width * median:.2g}")), names, landmarks):
                for kind in ("linear", "Gaussian"):
                    each = [scores(G, name, kind, data.y, *pair) for G, pair in zip(matrices, data.pairs, strict=True)]
                    validated, tested = np.mean(each[:-1], axis=0), each[-1]
                    best = np.argmax(validated)
                    found.setdefault((name, kind), []).append((validated.flat[best], tested.flat[best]))

    def chosen(method: tuple[str, ...], kind: str) -> float:
        pairs = [pair for name in method for pair in found.get((name, kind), [])]
        return max(pairs, key=lambda pair: pair[0])[1] if pairs else np.nan

    return [[chosen(method, kind) for kind in ("linear", "Gaussian")] for method in methods.values()]


def with_error(values: np.ndarray) -> str:
    """Mean and standard error, in points."""
    if np.isnan(values).any():
        return f"{'':>12}"
    return f"{100 * values.mean():6.1f} ({100 * values.std(ddof=1) / np.sqrt(len(values)):3.1f})"


def print_gains(methods: Methods, size: int, values: np.ndarray) -> None:
    """Print the accuracies (splits, methods, kinds) of a size, and paired differences from the first method."""
    for j, name in enumerate(methods):
        gains = values[:, j] - values[:, 0]
        cells = [with_error(values[:, j, 0]), with_error(values[:, j, 1])]
        cells += [with_error(gains[:, 0]), with_error(gains[:, 1])] if j else []
        print(f"{size:>3} patches, {name:<22}" + "    ".join(cells), flush=True)


def print_accuracies(scenes: Any, methods: Methods, sizes: list[int], seeds: range, jobs: int, **protocol: Any) -> None:
    """Print a table for each size; ``protocol`` are the last parameters of ``accuracies``."""
    print(f"Accuracy in %, mean of {len(seeds)} splits (standard error); gain over {next(iter(methods))!r}, paired")
    print(f"{'':<35}{'linear':>12}{'Gaussian':>14}{'gain, linear':>16}{'gain, Gaussian':>16}")
    for size in sizes:
        tasks = (delayed(accuracies)(scenes, methods, size, seed, **protocol) for seed in seeds)
        print_gains(methods, size, np.array(Parallel(n_jobs=jobs)(tasks)))


def risks(bags: BagList, size: int, seed: int, replace: bool) -> dict[str, float]:
    """Mean squared distance from the means of the whole bags."""
    rng = np.random.default_rng([seed, size])
    drawn = [rng.choice(bag, size, replace=replace) for bag in bags]
    means = {"pooled": pooled_means(drawn)}
    kernel = means["pooled"][0].kernel
    if not replace:
        means["pooled, population told"] = pooled_means(drawn, population=[len(bag) for bag in bags])
    means["KME"] = [mh.embed(kernel, rows) for rows in drawn]
    means["S-KMSE, each bag"] = [mh.ShrunkKernelMean(kernel).fit(rows).mean_ for rows in drawn]
    truth = [mh.embed(kernel, bag) for bag in bags]
    return {
        name: float(np.mean([f.distance(g) ** 2 for f, g in zip(each, truth, strict=True)]))
        for name, each in means.items()
    }


def print_risks(scenes: Any, sizes: list[int], draws: int, jobs: int) -> None:
    """Print risks relative to the plain average."""
    for replace in (True, False):
        print(f"\nRisk / KME's, {len(scenes.bags)} bags, n of 100 patches with{'' if replace else 'out'} replacement")
        for size in sizes:
            tasks = (delayed(risks)(scenes.bags, size, seed, replace) for seed in range(draws))
            ratios = [{name: r / each["KME"] for name, r in each.items()} for each in Parallel(n_jobs=jobs)(tasks)]
            cells = []
            for name in sorted(ratios[0].keys() - {"KME"}):
                values = np.array([ratio[name] for ratio in ratios])
                cells.append(f"{name} {values.mean():.3f} ({values.std(ddof=1) / np.sqrt(draws):.3f})")
            print(f"{size:>3} patches   " + "    ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="more splits, sizes and folds")
    parser.add_argument("--part", choices=("risk", "accuracy", "ridges"), nargs="+", default=("risk", "accuracy"))
    parser.add_argument("--set", choices=TRAINING, default="scenes4_indoor")
    parser.add_argument("--sizes", type=int, nargs="+", help="patches of a bag; default 20 100, or 10 20 50 100")
    parser.add_argument("--splits", type=int, help="default 3, or 8")
    parser.add_argument("--seed", type=int, default=0, help="of the first split")
    parser.add_argument("--landmarks", type=int, help="of the features; default that of the library, by the rows")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    scenes = load(arguments.set)
    splits, folds, sizes = (8, 10, [10, 20, 50, 100]) if arguments.full else (3, 5, [20, 100])
    seeds = range(arguments.seed, arguments.seed + (arguments.splits or splits))
    if "risk" in arguments.part:
        print_risks(scenes, [5, 10, 20, 50] if arguments.full else [20], 3, arguments.jobs)
    tables = {"accuracy": METHODS, "ridges": {f"ridge {ridge:g}": (f"{ridge:g}",) for ridge in STRENGTHS}}
    for part in arguments.part:
        if part in tables:
            protocol = {"jobs": arguments.jobs, "folds": folds, "landmarks": arguments.landmarks}
            print_accuracies(scenes, tables[part], arguments.sizes or sizes, seeds, **protocol)


if __name__ == "__main__":
    main()

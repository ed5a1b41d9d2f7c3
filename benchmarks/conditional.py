"""Conditional kernel means: exact losses on mixtures, and predictive distributions on real tables beside their rivals.

    python benchmarks/conditional.py mixtures [--draws 20]
    MUHAT_DATA=FOLDER python benchmarks/conditional.py tables [--half both] [--sizes 60 200] [--draws 8]

"mixtures" prints squared distances to the true conditional embedding, of closed form, relative to kernel ridge with λ
by leave-one-out at the median bandwidth. "tables" prints the pinball loss over 19 levels relative to a Gaussian process
(RBF and noise, by marginal likelihood) and the coverage of 90 % intervals. Settings of the estimator were chosen on the
"choose" half of the tables, and a mean is printed for either half. Tables other than scikit-learn's come from
FOLDER/uci, one CSV file each.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import muhat as mh

MIXTURES = [(30, 2, 1), (100, 2, 1), (300, 2, 1), (100, 1, 1), (100, 5, 1), (100, 2, 2)]
"""Rows, columns of x, columns of y."""

LEVELS = np.arange(1, 20) / 20
"""Levels of the quantiles: the outer two are a 90 % interval."""

HALVES = {
    "choose": [
        ("abalone", "target", []),
        ("wine", "alcohol", ["target"]),
        ("vowel", "F0", ["target"]),
        ("vehicle", "compactness", ["target"]),
        ("segment", "hue_mean", ["target", "region_pixel_count"]),
        ("australian", "A2", ["target"]),
        ("sonar", "band20", ["target"]),
    ],
    "report": [
        ("diabetes", "target", []),
        ("housing", "target", []),
        ("bodyfat", "target", ["density"]),  # of which the target is a function
        ("glass", "RI", ["target"]),
        ("wdbc", "mean_smoothness", ["target"]),
        ("ionosphere", "a05", ["target", "a02"]),
        ("specft", "F5R", ["target"]),
        ("satimage", "px5_band1", ["target"]),
    ],
}
"""Tables with their target, and columns that are left out."""

TESTED = 300
"""Rows of a table that are predicted, of those that are not fitted."""


# ---------------------------------------------------------------- mixtures


class Truth:
    """A mixture of three Gaussians of (x, y) and its conditional embeddings, in the space of a Gaussian kernel."""

    def __init__(self, seed, columns_x, columns_y):
        self.rng, self.columns_x = np.random.default_rng(seed), columns_x
        d = columns_x + columns_y
        weights, means = self.rng.dirichlet(np.full(3, 3.0)), 1.5 * self.rng.normal(size=(3, d))
        roots = 0.6 * self.rng.normal(size=(3, d, d))
        self.mixture = mh.GaussianMixture(weights, means, roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(d))

    def draw(self, n):
        """Rows of x and of y."""
        rows = self.mixture.sample(n, random_state=self.rng)
        return rows[:, : self.columns_x], rows[:, self.columns_x :]

    def conditional(self, x):
        """The distribution of y at x."""
        P, k = self.mixture, self.columns_x
        logs, means, covariances = [], [], []
        for weight, mean, covariance in zip(P.weights, P.means, P.covariances, strict=True):
            gain = np.linalg.solve(covariance[:k, :k], covariance[:k, k:])
            marginal = mh.GaussianMixture([1.0], mean[None, :k], covariance[None, :k, :k])
            logs.append(np.log(weight) + marginal.log_density(x[None])[0])
            means.append(mean[k:] + (x - mean[:k]) @ gain)
            covariances.append(covariance[k:, k:] - covariance[k:, :k] @ gain)
        shares = np.exp(np.array(logs) - max(logs))
        return mh.GaussianMixture(shares / shares.sum(), np.array(means), np.array(covariances))


def plain_ridge(X, Y, kernel_y, at, lams=None):
    """Weights of kernel ridge at the median bandwidth: λ is the best of these by leave-one-out, and no intercept."""
    kernel = mh.Gaussian().resolve(X)
    K, L = kernel(X), kernel_y(Y)
    found = []
    for lam in np.logspace(-3, 2, 11) if lams is None else lams:
        hat = K @ np.linalg.inv(K + lam * np.eye(len(K)))
        residual = np.eye(len(K)) - hat
        found.append((((residual @ L) * residual).sum(axis=1) / (1 - np.diag(hat)) ** 2).mean())
    lam = (np.logspace(-3, 2, 11) if lams is None else lams)[int(np.argmin(found))]
    return kernel(at, X) @ np.linalg.inv(K + lam * np.eye(len(K)))


def mixture_losses(seed, n, columns_x, columns_y, tested=30):
    """Mean squared distances to the true conditional embeddings, by method."""
    truth = Truth(seed, columns_x, columns_y)
    X, Y = truth.draw(n)
    at, _ = truth.draw(tested)
    kernel = mh.Gaussian().resolve(Y)
    wanted = [mh.embed(kernel, truth.conditional(x)) for x in at]
    estimates = {
        "λ by leave-one-out": [mh.embed(kernel, Y, w) for w in plain_ridge(X, Y, kernel, at)],
        "λ = 0.001": [mh.embed(kernel, Y, w) for w in plain_ridge(X, Y, kernel, at, [1e-3])],
        "target=None": mh.ConditionalKernelMean(kernel_y=kernel, target=None).fit(X, Y).means(at),
        "ConditionalKernelMean": mh.ConditionalKernelMean(kernel_y=kernel).fit(X, Y).means(at),
    }
    return {
        name: np.mean([f.distance(g) ** 2 for f, g in zip(found, wanted, strict=True)])
        for name, found in estimates.items()
    }


def mixtures(draws):
    """Print the table of losses."""
    print("Loss relative to kernel ridge with λ by leave-one-out (standard errors); rows, columns of x → of y\n")
    columns = [f"{n}, {p} → {q}" for n, p, q in MIXTURES]
    print(f"| mixtures of Gaussians | {' | '.join(columns)} | mean |\n|{'---|' * (len(columns) + 2)}")
    logs = []
    for setting in MIXTURES:
        losses = [mixture_losses(seed, *setting) for seed in range(draws)]
        logs.append({name: [np.log(each[name] / each["λ by leave-one-out"]) for each in losses] for name in losses[0]})
    for name in logs[0]:
        ratios = [np.exp(np.mean(each[name])) for each in logs]
        errors = [np.std(each[name], ddof=1) / np.sqrt(draws) for each in logs]
        cells = [f"{ratio:.3f} ({error:.3f})" for ratio, error in zip(ratios, errors, strict=True)]
        print(f"| {name} | {' | '.join(cells)} | {np.mean(ratios):.3f} |", flush=True)
    print()


# ---------------------------------------------------------------- tables


def load(name, target, left_out):
    """Columns and target of a table, or None where there is no such file."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    path = Path(os.environ.get("MUHAT_DATA", "")) / "uci" / f"{name}.csv"
    if not path.is_file():
        return None
    with path.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
    kept = [j for j, column in enumerate(names) if column not in (target, *left_out)]
    rows = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=[*kept, names.index(target)])
    return rows[:, :-1], rows[:, -1]


def weighted_quantiles(values, weights, levels):
    """Quantiles of weighted values, row by row."""
    order = np.argsort(values, axis=1)
    values, cumulated = (np.take_along_axis(each, order, axis=1) for each in (values, weights))
    cumulated = np.cumsum(cumulated, axis=1)
    places = [np.searchsorted(each, levels * each[-1] * (1 - 1e-12)) for each in cumulated]
    return np.take_along_axis(values, np.minimum(places, values.shape[1] - 1), axis=1)


def gaussian_process(X, y, at, levels):
    """Quantiles of a Gaussian process with noise, and nothing else."""
    from scipy.special import ndtri

    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.sqrt(X.shape[1]), (1e-2, 1e3)) + WhiteKernel(0.3, (1e-5, 1e1))
    machine = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(X, y)
    mean, std = machine.predict(at, return_std=True)
    return mean[:, None] + std[:, None] * ndtri(levels)


def quantile_forest(X, y, at, levels):
    """Quantiles of the weights that the leaves of a forest give (Meinshausen 2006)."""
    forest = RandomForestRegressor(200, min_samples_leaf=5, max_features=1 / 3, random_state=0).fit(X, y)
    weights = np.zeros((len(at), len(X)))
    for own, new in zip(forest.apply(X).T, forest.apply(at).T, strict=True):
        same = new[:, None] == own
        weights += same / same.sum(axis=1, keepdims=True)
    return weighted_quantiles(np.broadcast_to(y, weights.shape), weights, levels)


def quantile_boosting(X, y, at, levels):
    """One boosted model per level, without tuning, sorted."""
    settings = {"loss": "quantile", "max_iter": 50, "max_leaf_nodes": 8, "min_samples_leaf": 5}
    machines = [HistGradientBoostingRegressor(quantile=q, **settings).fit(X, y) for q in levels]
    return np.sort(np.column_stack([machine.predict(at) for machine in machines]), axis=1)


FINE = (np.arange(40) + 0.5) / 40


def crps_share(first, second, y):
    """The share of the second of two sets of atoms in the blend with the lowest CRPS."""

    def cross(A, B):
        return np.abs(A[:, :, None] - B[:, None, :]).mean()

    gain = np.abs(first - y[:, None]).mean() - np.abs(second - y[:, None]).mean()
    gain += cross(first, second) - cross(first, first)
    apart = 2 * cross(first, second) - cross(first, first) - cross(second, second)
    return float(np.clip(gain / max(apart, 1e-12), 0, 1))


def stack(X, y, at, levels):
    """A Gaussian process and a quantile forest, blended by the CRPS of five folds."""
    held, parts = [], ([], [])
    for fitted, left in KFold(5, shuffle=True, random_state=0).split(X):
        held.append(y[left])
        for part, rival in zip(parts, (gaussian_process, quantile_forest), strict=True):
            part.append(rival(X[fitted], y[fitted], X[left], FINE))
    share = crps_share(*map(np.vstack, parts), np.concatenate(held))
    atoms = np.hstack([rival(X, y, at, FINE) for rival in (gaussian_process, quantile_forest)])
    weights = np.broadcast_to(np.repeat([1 - share, share], len(FINE)), atoms.shape)
    return weighted_quantiles(atoms, weights, levels)


def plain_embedding(X, y, at, levels):
    """The weights of kernel ridge with λ by leave-one-out, negative ones dropped."""
    Y = y[:, None]
    weights = plain_ridge(X, Y, mh.Gaussian().resolve(Y), at).clip(0)
    return weighted_quantiles(np.broadcast_to(y, weights.shape), weights, levels)


class Predicted(NamedTuple):
    """Quantiles, and an interval that is not made of the outer two."""

    quantiles: np.ndarray
    interval: np.ndarray


def conditional_kernel_mean(X, y, at, levels, **settings):
    """The estimator with its defaults, and its own interval."""
    model = mh.ConditionalKernelMean(**settings).fit(X, y)
    return Predicted(model.quantile(at, levels), model.interval(at, 0.9))


def without_target(X, y, at, levels):
    """The estimator without its target."""
    return conditional_kernel_mean(X, y, at, levels, target=None)


METHODS = {
    "Gaussian process": gaussian_process,
    "ConditionalKernelMean": conditional_kernel_mean,
    "target=None": without_target,
    "plain embedding": plain_embedding,
    "quantile forest": quantile_forest,
    "quantile boosting": quantile_boosting,
    "stack": stack,
}


def pinball(Q, y, levels=LEVELS):
    """Mean pinball loss of quantiles, a column per level."""
    error = y[:, None] - Q
    return float(np.maximum(levels * error, (levels - 1) * error).mean())


def draws_of(table, n, draws, methods):
    """Pinball losses (draws, methods) and coverages of one table."""
    X, y = table
    losses, coverage = np.empty((draws, len(methods))), np.empty((draws, len(methods)))
    for draw in range(draws):
        order = np.random.default_rng([draw, n]).permutation(len(X))
        fitted, tested = order[:n], order[n:][:TESTED]
        scaler = StandardScaler().fit(X[fitted])
        rows, at = scaler.transform(X[fitted]), scaler.transform(X[tested])
        for j, method in enumerate(methods):
            found = METHODS[method](rows, y[fitted], at, LEVELS)
            found = found if isinstance(found, Predicted) else Predicted(found, found[:, [0, -1]])
            losses[draw, j] = pinball(found.quantiles, y[tested])
            coverage[draw, j] = ((found.interval[:, 0] <= y[tested]) & (y[tested] <= found.interval[:, 1])).mean()
    return losses, coverage


def tables(half, draws, sizes, methods):
    """Print the tables of losses and coverages."""
    found = {spec[0]: load(*spec) for name in HALVES for spec in HALVES[name] if half in (name, "both")}
    for name in [name for name, table in found.items() if table is None]:
        print(f"{name}: no file; set MUHAT_DATA", file=sys.stderr)
    for n in sizes:
        print(f"Pinball loss relative to the Gaussian process's; coverage of 90 % intervals ({draws} draws)\n")
        print(f"| {n} rows | {' | '.join(methods)} |\n|{'---|' * (len(methods) + 1)}")
        logs, covered, used = [], [], []
        for name, table in found.items():
            if table is None or len(table[1]) < n + 40:
                continue
            losses, coverage = draws_of(table, n, draws, methods)
            logs.append(np.log(losses / losses[:, :1]))
            covered.append(coverage.mean(axis=0))
            used.append(name)
            pairs = zip(np.exp(logs[-1].mean(axis=0)), covered[-1], strict=True)
            cells = [f"{ratio:.3f}; {100 * inside:.0f} %" for ratio, inside in pairs]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        for half_name, specs in HALVES.items():
            part = [log for log, name in zip(logs, used, strict=True) if name in [spec[0] for spec in specs]]
            if part:
                cells = [f"{ratio:.3f}" for ratio in np.exp(np.mean(part, axis=(0, 1)))]
                print(f"| mean, {len(part)} tables to {half_name} | {' | '.join(cells)} |")
        means, errors = np.mean(logs, axis=(0, 1)), np.mean(np.var(logs, axis=1, ddof=1), axis=0) / draws / len(logs)
        worst = np.exp(np.mean(logs, axis=1)).max(axis=0)
        cells = [f"{np.exp(mean):.3f} ({np.sqrt(error):.3f})" for mean, error in zip(means, errors, strict=True)]
        print(f"| mean, all (standard error) | {' | '.join(cells)} |")
        pairs = zip(worst, np.min(covered, axis=0), strict=True)
        cells = [f"{ratio:.3f}; {100 * inside:.0f} %" for ratio, inside in pairs]
        print(f"| largest; least coverage | {' | '.join(cells)} |\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["mixtures", "tables"], nargs="*", default=["mixtures", "tables"])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--half", choices=["choose", "report", "both"], default="report")
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 200])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    with threadpool_limits(1):
        if "mixtures" in options.part:
            mixtures(options.draws)
        if "tables" in options.part:
            methods = list(dict.fromkeys(["Gaussian process", *options.methods]))
            tables(options.half, options.draws, options.sizes, methods)


if __name__ == "__main__":
    main()

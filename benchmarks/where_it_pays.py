"""Where Stein's effect pays: shrunken kernel means in the systems that rest on the average, a short run of each.

    MUHAT_DATA=FOLDER python benchmarks/where_it_pays.py [PART ...] [--draws 10]

Parts are "one", "many", "conditional", "classes", "clusters", "matching" and "herding"; without names all are run, in
some minutes. "one" takes the UCI tables of FOLDER/uci as finite populations, up to 2,000 rows of each, standardised.
Errors in brackets are standard errors over tables or draws.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from conditional import mixture_losses
from scipy.optimize import nnls
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import muhat as mh

TABLES = "ionosphere sonar australian specft wdbc wine satimage segment vehicle vowel housing bodyfat abalone glass"
POPULATION = 2000
KERNELS = {"Gaussian": mh.Gaussian(), "Matérn": mh.Matern(), "Laplace": mh.Laplace()}
SHRUNK = {"S-KMSE": mh.ShrunkKernelMean, "F-KMSE": mh.SpectralKernelMean, "adaptive": mh.AdaptiveKernelMean}


def standardised(rows):
    """Columns that vary, in units of their standard deviations."""
    rows = rows[:, rows.std(axis=0) > 0]
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def table(name):
    """A table as a population, or None where it is not there."""
    path = Path(os.environ.get("MUHAT_DATA", "")) / "uci" / f"{name}.csv"
    if not path.is_file():
        return None
    rows = np.genfromtxt(path, delimiter=",", skip_header=1)[:, :-1]
    chosen = np.random.default_rng(0).permutation(len(rows))[:POPULATION]
    return standardised(rows[chosen])


def pm(values, digits=3):
    """A mean with its standard error."""
    return f"{np.mean(values):.{digits}f} ({np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f})"


def ratio(logs, digits=2):
    """A geometric mean from logarithms, with its standard error."""
    mean, error = np.exp(np.mean(logs)), np.std(logs, ddof=1) / np.sqrt(len(logs))
    return f"{mean:.{digits}f} ({mean * error:.{digits}f})"


def report(system, measure, shrunken, rival):
    """A row of the table of systems."""
    print(f"| {system} | {measure} | {shrunken} | {rival} |", flush=True)


# ---------------------------------------------------------------- one mean, many means


def one(draws):
    """Squared error of one mean from few rows of a table, relative to that of the average."""
    populations = {name: rows for name in TABLES.split() if (rows := table(name)) is not None}
    print(
        f"Squared error relative to the average's, {len(populations)} UCI tables (geometric means, standard errors)\n"
    )
    print("| one mean | n = 10 | n = 20 | n = 50 |\n|---|---|---|---|")
    ten_rows = {name: [] for name in SHRUNK}
    worse = cells_seen = 0
    worst = 0.0
    for label, kernel in KERNELS.items():
        found = {(name, n): [] for name in SHRUNK for n in (10, 20, 50)}
        for rows in populations.values():
            resolved = kernel.resolve(rows)
            truth = mh.embed(resolved, rows)
            square, at_rows = truth.norm() ** 2, truth(rows)

            def loss(mean, square=square, truth=truth):
                return mean.norm() ** 2 - 2 * mean.inner(truth) + square

            for n in (10, 20, 50):
                losses = {name: [] for name in ("average", *SHRUNK)}
                for draw in range(draws):
                    chosen = np.random.default_rng([draw, n]).integers(len(rows), size=n)
                    for name, estimator in SHRUNK.items():
                        losses[name].append(loss(estimator(resolved).fit(rows[chosen]).mean_))
                    plain = mh.embed(resolved, rows[chosen])
                    losses["average"].append(plain.norm() ** 2 - 2 * at_rows[chosen].mean() + square)
                for name in SHRUNK:
                    found[name, n].append(np.log(np.mean(losses[name]) / np.mean(losses["average"])))
                difference = np.subtract(losses["adaptive"], losses["average"])
                cells_seen += 1
                worse += difference.mean() > 2 * difference.std(ddof=1) / np.sqrt(draws)
                worst = max(worst, np.mean(losses["adaptive"]) / np.mean(losses["average"]))
        for name in SHRUNK:
            cells = [ratio(found[name, n]) for n in (10, 20, 50)]
            print(f"| {label} kernel, {name} | {' | '.join(cells)} |", flush=True)
            ten_rows[name].append(f"{label} {cells[0].partition(' ')[0]}")
    print(f"\nadaptive: above the average by two errors in {worse} of {cells_seen} cells; the worst is {worst:.3f}")
    for name, cells in ten_rows.items():
        print(f"ten rows, {name}: {', '.join(reversed(cells))}")
    print()


def many(draws):
    """Means of 40 groups of ten rows, and squared distances of groups to a control."""
    alone, pooled, distances = [], [], []
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        centres = rng.normal(size=(40, 5)) * rng.choice([0.0, 0.7], size=(40, 1))
        bags = [centre + rng.normal(size=(10, 5)) for centre in centres]
        kernel = mh.Gaussian().resolve(np.concatenate(bags))
        truths = [mh.embed(kernel, mh.GaussianMixture([1.0], centre[None], [1.0])) for centre in centres]

        def loss(means, truths=truths):
            return np.mean([mean.distance(truth) ** 2 for mean, truth in zip(means, truths, strict=True)])

        plain = loss([mh.embed(kernel, bag) for bag in bags])
        alone.append(np.log(loss([mh.AdaptiveKernelMean(kernel).fit(bag).mean_ for bag in bags]) / plain))
        pooled.append(np.log(loss(mh.pooled_means(bags, kernel)) / plain))
        control = mh.GaussianMixture([1.0], np.zeros((1, 5)), [1.0])
        wanted = np.array([truth.distance(mh.embed(kernel, control)) ** 2 for truth in truths])
        rows, labels = [control.sample(60, random_state=rng)], ["control"] * 60
        for number, bag in enumerate(bags):
            rows.append(bag)
            labels += [f"group {number:02}"] * len(bag)
        found = mh.group_distances(np.concatenate(rows), labels, control="control", kernel=kernel, n_resamples=0)
        frame = found.to_frame()
        order = np.argsort(np.asarray(frame["group"]))
        errors = [((np.asarray(frame[name])[order] - wanted) ** 2).mean() for name in ("distance", "unbiased")]
        distances.append(np.log(errors[0] / errors[1]))
    measure = "squared error, relative to averages"
    report("forty means of ten rows", measure, f"`pooled_means` {ratio(pooled)}", f"each alone {ratio(alone)}")
    measure = "squared error, relative to the U-statistic"
    report("forty distances to a control", measure, f"`group_distances` {ratio(distances)}", "")


def conditional(draws):
    """Conditional means of a mixture."""
    for n, p, q in ((30, 2, 1), (100, 2, 1), (100, 5, 1)):
        losses = [mixture_losses(seed, n, p, q, tested=40) for seed in range(4 * draws)]
        logs = [np.log(each["ConditionalKernelMean"] / each["λ by leave-one-out"]) for each in losses]
        plain = [np.log(each["target=None"] / each["λ by leave-one-out"]) for each in losses]
        system = f"conditional means, {n} rows, {p} columns"
        report(system, "squared error, relative to ridge", ratio(logs), f"without a target {ratio(plain)}")


# ---------------------------------------------------------------- what does not gain


def labelled():
    """Labelled tables of scikit-learn."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        rows, y = load(return_X_y=True)
        yield load.__name__.removeprefix("load_"), standardised(rows), y


def classes(draws):
    """Nearest kernel mean with few rows per class: points of accuracy gained over averages."""
    for n in (5, 20):
        gains = {"adaptive": [], "pooled_means": [], "SVC(C=10)": []}
        for _, rows, y in labelled():
            for draw in range(draws):
                rng = np.random.default_rng([draw, n])
                train = np.concatenate([rng.choice(np.flatnonzero(y == c), n, replace=False) for c in np.unique(y)])
                test = np.setdiff1d(rng.permutation(len(y))[:400], train)
                kernel = mh.Gaussian().resolve(rows[train])
                parts = [rows[train][y[train] == c] for c in np.unique(y)]

                def accuracy(means, rows=rows, y=y, test=test):
                    scores = np.array([2 * mean(rows[test]) - mean.norm() ** 2 for mean in means])
                    return 100 * (np.unique(y)[scores.argmax(axis=0)] == y[test]).mean()

                plain = accuracy([mh.embed(kernel, part) for part in parts])
                gains["adaptive"].append(accuracy([mh.AdaptiveKernelMean(kernel).fit(p).mean_ for p in parts]) - plain)
                gains["pooled_means"].append(accuracy(mh.pooled_means(parts, kernel)) - plain)
                machine = SVC(C=10).fit(rows[train], y[train])
                gains["SVC(C=10)"].append(100 * machine.score(rows[test], y[test]) - plain)
        rivals = ", ".join(f"{name} {pm(gains[name], 1)}" for name in ("pooled_means", "SVC(C=10)"))
        report(f"nearest class mean, {n} rows each", "points of accuracy gained", pm(gains["adaptive"], 1), rivals)


def clustered(K, k, shrunk, rng, restarts=5):
    """Kernel k-means; cluster means are averages, or shrunk by Theorem 3. The labels with the lowest objective."""
    best = (np.inf, None)
    for _ in range(restarts):
        labels = rng.integers(k, size=len(K))
        for _ in range(50):
            members = np.eye(k)[labels]
            sizes = np.maximum(members.sum(axis=0), 1)
            inner, squares = K @ members / sizes, np.einsum("ij,ik,kj->j", members, K, members) / sizes**2
            if shrunk:
                apart = (sizes * squares - 1) / np.maximum(sizes - 1, 1)  # the mean of k(x, x') over pairs
                alpha = np.clip((1 - apart) / np.maximum(1 + (sizes - 2) * apart, 1e-12), 0, 1)
                inner, squares = inner * (1 - alpha), squares * (1 - alpha) ** 2
            costs = squares - 2 * inner
            new = costs.argmin(axis=1)
            if (new == labels).all():
                break
            labels = new
        objective = costs.min(axis=1).sum()
        if objective < best[0]:
            best = objective, labels
    return best[1]


def clusters(draws):
    """Kernel k-means on 100 rows: gain in the adjusted Rand index."""
    gains = {"shrunk means": [], "10 restarts": []}
    for name, rows, y in labelled():
        if name == "digits":
            continue
        for draw in range(draws):
            chosen = np.random.default_rng(draw).permutation(len(y))[:100]
            K, k = mh.Gaussian().resolve(rows[chosen])(rows[chosen]), len(np.unique(y))
            index = {
                label: adjusted_rand_score(y[chosen], clustered(K, k, shrunk, np.random.default_rng(draw), restarts))
                for label, shrunk, restarts in (("plain", 0, 5), ("shrunk means", 1, 5), ("10 restarts", 0, 10))
            }
            for label, found in gains.items():
                found.append(index[label] - index["plain"])
    rival = f"ten restarts {pm(gains['10 restarts'])}"
    report("kernel k-means of 100 rows", "adjusted Rand index gained", pm(gains["shrunk means"]), rival)


def matching(draws):
    """Covariate shift: rows weighted so that their kernel mean is that of the target."""
    logs = {"shrunk target mean": [], "ridge weights": []}
    for draw in range(20 * draws):
        rng = np.random.default_rng(draw)
        source, target = rng.normal(size=(100, 3)), 0.5 * rng.normal(size=(30, 3)) + 0.7
        kernel = mh.Gaussian().resolve(np.vstack([source, target]))
        K = kernel(source)
        root = np.linalg.cholesky(K + 1e-8 * np.eye(100))
        truth = np.sin(0.7) * np.exp(-0.125) + 0.25 + 0.49  # of sin x₁ + x₂² under the target
        values = np.sin(source[:, 0]) + source[:, 1] ** 2

        def error(weights, values=values, truth=truth):
            return (weights @ values / weights.sum() - truth) ** 2

        def matched(mean, source=source, root=root):
            return nnls(root.T, np.linalg.solve(root, mean(source)))[0]

        plain = mh.embed(kernel, target)
        base = error(matched(plain))
        logs["shrunk target mean"].append((error(matched(mh.AdaptiveKernelMean(kernel).fit(target).mean_)), base))
        logs["ridge weights"].append((error(np.linalg.solve(K + 0.1 * np.eye(100), plain(source))), base))
    mean, ridge = (share_of(pairs) for pairs in logs.values())
    report("kernel mean matching", "squared error, relative to the average", mean, f"ridge weights {ridge}")


def share_of(pairs):
    """The ratio of two mean errors, with its standard error."""
    new, base = np.array(pairs).T
    share = new.mean() / base.mean()
    return f"{share:.2f} ({np.std(new - share * base, ddof=1) / np.sqrt(len(base)) / base.mean():.2f})"


def herded(mean, candidates, count):
    """Greedy points whose average approaches a mean, with repetitions."""
    at, K = mean(candidates), mean.kernel(candidates)
    chosen, total = [], np.zeros(len(candidates))
    for t in range(count):
        chosen.append(int(np.argmax(at - total / (t + 1))))
        total += K[chosen[-1]]
    return candidates[chosen]


def herding(draws):
    """Twenty points herded from the adaptive mean of twenty rows, beside the rows themselves."""
    found = {"half-spaces": [], "local functions": []}
    for draw in range(4 * draws):
        rng = np.random.default_rng(draw)
        P = mh.paper_mixture(3, random_state=draw)
        rows, big = P.sample(20, random_state=rng), P.sample(4000, random_state=rng)
        mean = mh.AdaptiveKernelMean().fit(rows).mean_
        spread = np.linalg.cholesky(np.cov(rows.T))
        candidates = np.vstack([rows, rows.mean(axis=0) + rng.normal(size=(300, 3)) @ spread.T])
        points = herded(mean, candidates, 20)
        normals = rng.normal(size=(50, 3))
        scale = np.std(big @ normals.T, axis=0)
        middles = big[rng.integers(len(big), size=50)]
        width = np.median(np.linalg.norm(big[:500, None] - big[:500], axis=2)) / 4
        edges = (big @ normals.T).mean(axis=0) + scale

        def beyond(X, normals=normals, edges=edges):
            return (edges < X @ normals.T).mean(axis=0)

        def near(X, middles=middles, width=width):
            return np.exp(-((X[:, None] - middles) ** 2).sum(axis=2) / (2 * width**2)).mean(axis=0)

        for name, function in (("half-spaces", beyond), ("local functions", near)):
            truth = function(big)
            found[name].append([((function(each) - truth) ** 2).mean() for each in (points, rows)])
    for name, pairs in found.items():
        report(f"20 herded points, {name}", "squared error, relative to the rows", share_of(pairs), "")


PARTS = {part.__name__: part for part in (one, many, conditional, classes, clusters, matching, herding)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], metavar="PART")
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    chosen = options.parts or list(PARTS)
    with threadpool_limits(1):
        if "one" in chosen:
            one(options.draws)
        print("| system | measure | with shrunken means | in the same run |\n|---|---|---|---|")
        for part in [part for part in chosen if part != "one"]:
            PARTS[part](options.draws)


if __name__ == "__main__":
    main()

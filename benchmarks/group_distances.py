"""Distances of many groups: squared errors, ranks, coverage, levels, powers, time and memory.

python benchmarks/group_distances.py simulated real
python benchmarks/group_distances.py level power
python benchmarks/group_distances.py speed large
python benchmarks/group_distances.py simulated --draws 2 --only own
MUHAT_DATA=/path python benchmarks/group_distances.py real      # vowel, segment, satimage and abalone too

"V" is the plain squared distance of kernel means, "U" its unbiased version, both from all kernel values, and "EB" is
what ``mh.group_distances`` returns. Errors are mean squared errors over pairs and draws relative to those of U (of V in
brackets). Simulated truths are exact; for real tables the population of a group is all its rows, and draws are made
with replacement. Rows come in the order of their groups, and all calls have the same seed.
"""

from __future__ import annotations

import argparse
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

import muhat as mh
from muhat.groups.group_distances import _sums, _tests, _units

CONTROL = "control"


class Mixture(NamedTuple):
    """A mixture of isotropic normal distributions."""

    weights: np.ndarray
    centres: np.ndarray
    deviations: np.ndarray

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        part = rng.choice(len(self.weights), n, p=self.weights)
        return self.centres[part] + self.deviations[part, None] * rng.normal(size=(n, self.centres.shape[1]))


class Screen(NamedTuple):
    """Rows in the order of groups, the kernel, and the true squared distances; group 0 is the control."""

    X: np.ndarray
    labels: np.ndarray
    kernel: mh.Gaussian
    truth: np.ndarray


def plain(centre: np.ndarray, deviation: float = 1.0) -> Mixture:
    return Mixture(np.ones(1), centre[None], np.array([deviation]))


def true_distances(groups: list[Mixture], bandwidth: float) -> np.ndarray:
    """Squared MMD of mixtures under a Gaussian kernel, in closed form."""
    weights = np.concatenate([m.weights for m in groups])
    owners = np.repeat(np.arange(len(groups)), [len(m.weights) for m in groups])
    centres, variances = (
        np.concatenate([m.centres for m in groups]),
        np.concatenate([m.deviations for m in groups]) ** 2,
    )
    total = bandwidth**2 + variances[:, None] + variances
    squares = np.square(centres[:, None] - centres).sum(axis=2)
    inner = (bandwidth**2 / total) ** (centres.shape[1] / 2) * np.exp(-squares / (2 * total))
    A = np.zeros((len(groups), len(weights)))
    A[owners, np.arange(len(weights))] = weights
    return distances(A @ inner @ A.T)


def distances(G: np.ndarray) -> np.ndarray:
    return np.diag(G)[:, None] + np.diag(G) - 2 * G


def simulated(
    populations: Callable[[int, np.random.Generator], list[Mixture]],
    groups: int = 40,
    sizes: tuple[int, int] = (8, 200),
    control: int = 300,
    d: int = 10,
) -> Callable[[np.random.Generator], Screen]:
    """A screen: a control, and groups of sizes that are uniform on a logarithmic scale."""

    def draw(rng: np.random.Generator) -> Screen:
        own_control = populations is composition
        mixtures = (
            populations(groups + own_control, rng) if own_control else [plain(np.zeros(d)), *populations(groups, rng)]
        )
        n = [control, *np.exp(rng.uniform(*np.log(sizes), groups)).astype(int)]
        X = np.concatenate([m.sample(k, rng) for m, k in zip(mixtures, n, strict=True)])
        bandwidth = np.sqrt(2.0 * d)  # the median distance of standard normal rows
        labels = np.repeat([CONTROL, *(f"group {g:04d}" for g in range(groups))], n)
        return Screen(X, labels, mh.Gaussian(float(bandwidth)), true_distances(mixtures, bandwidth))

    return draw


def direction(d: int, rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=d)
    return v / np.linalg.norm(v)


def own(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """A quarter of the groups is shifted, each in a direction of its own."""
    return [
        plain(rng.choice([0.0, 1.0], p=[0.75, 0.25]) * rng.uniform(0.5, 2) * direction(d, rng)) for _ in range(groups)
    ]


def kinds(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """Four kinds of groups."""
    centres = [np.zeros(d), *(1.2 * direction(d, rng) for _ in range(3))]
    return [plain(centres[rng.integers(4)]) for _ in range(groups)]


def composition(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """Shares of five types of rows."""
    types = 1.5 * rng.normal(size=(5, d))
    return [Mixture(rng.dirichlet(10 * np.ones(5)), types, np.ones(5)) for _ in range(groups)]


def tails(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """A tenth of the rows has three times the spread; half of the groups is shifted."""
    shifts = [rng.integers(2) * 0.8 * direction(d, rng) for _ in range(groups)]
    return [Mixture(np.array([0.9, 0.1]), np.array([v, v]), np.array([1.0, 3.0])) for v in shifts]


def dispersion(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """Groups differ in their spread."""
    return [plain(np.zeros(d), float(np.exp(0.15 * rng.normal()))) for _ in range(groups)]


def dense(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """All groups are shifted by much."""
    return [plain(0.5 * rng.normal(size=d)) for _ in range(groups)]


def three(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """All groups are shifted along three common directions."""
    return [plain(np.r_[0.4 * rng.normal(size=3), np.zeros(d - 3)]) for _ in range(groups)]


def none(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """No group differs."""
    return [plain(np.zeros(d)) for _ in range(groups)]


def far(groups: int, rng: np.random.Generator, d: int = 10) -> list[Mixture]:
    """Groups far apart, with nothing in common."""
    return [plain(1.5 * rng.normal(size=d), rng.uniform(0.5, 1.5)) for _ in range(groups)]


SIMULATED: dict[str, Callable[[np.random.Generator], Screen]] = {
    "own": simulated(own),
    "own, 5-50 rows": simulated(own, sizes=(5, 50)),
    "own, 30-500 rows": simulated(own, sizes=(30, 500)),
    "own, 150 groups of 5-50": simulated(own, 150, (5, 50)),
    "kinds": simulated(kinds),
    "composition": simulated(composition),
    "composition, 5-50": simulated(composition, sizes=(5, 50)),
    "tails": simulated(tails),
    "dispersion": simulated(dispersion),
    "dense": simulated(dense),
    "three directions": simulated(three),
    "none": simulated(none),
}
FAR = {
    "far, 6 groups": simulated(far, 6, (10, 100), 50),
    "far, 12 groups": simulated(far, 12, (10, 100), 50),
}


# ---------------------------------------------------------------- real tables


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Standardised rows, and the class of each."""
    digits, wine = load_digits(), load_wine()
    yield "digits", digits.data / 16.0 * 4.0, digits.target
    yield "wine", scale(wine.data), wine.target
    hours = mh.load_nyc_hours()
    some = hours.sample(4000, random_state=0)
    columns = some.select_dtypes("number")
    yield "hours", scale(columns.fillna(columns.median()).to_numpy(float)), some["origin"].to_numpy()
    with suppress(ImportError):
        import scanpy

        cells = scanpy.datasets.pbmc68k_reduced()
        yield "pbmc68k", np.asarray(cells.obsm["X_pca"][:, :30], float), np.asarray(cells.obs["bulk_labels"], str)
    root = os.environ.get("MUHAT_DATA")
    for name in ("vowel", "segment", "satimage", "abalone") if root else ():
        table = np.genfromtxt(Path(root) / "uci" / f"{name}.csv", delimiter=",", dtype=str, skip_header=1)
        rows, target = table[:4000, :-1].astype(float), table[:4000, -1]
        yield name, scale(rows[:, rows.std(axis=0) > 0]), target


def population_screen(rows: np.ndarray, groups: list[np.ndarray], kernel: mh.Gaussian) -> np.ndarray:
    """True distances of groups that are weights of rows."""
    K, A = kernel(rows), np.array(groups)
    return distances(A @ K @ A.T)


def classes_screen(
    rows: np.ndarray, target: np.ndarray, sizes: tuple[int, int]
) -> Callable[[np.random.Generator], Screen]:
    """The classes themselves, drawn with replacement; the largest is the control."""
    codes, counts = np.unique(target, return_inverse=True, return_counts=True)[1:]
    order = np.argsort(-counts)[:20]
    weights = [(codes == g) / counts[g] for g in order]
    kernel = mh.Gaussian().resolve(rows)
    truth = population_screen(rows, weights, kernel)

    def draw(rng: np.random.Generator) -> Screen:
        n = np.exp(rng.uniform(*np.log(sizes), len(order))).astype(int)
        return drawn(rows, weights, [sizes[1], *n[1:]], kernel, truth, rng)

    return draw


def weak_screen(
    rows: np.ndarray, target: np.ndarray, sizes: tuple[int, int]
) -> Callable[[np.random.Generator], Screen]:
    """(1 − e) of the control, and e of another class, e = 0 in half of the groups."""
    names, codes, counts = np.unique(target, return_inverse=True, return_counts=True)
    kernel = mh.Gaussian().resolve(rows)
    K = kernel(rows)

    def draw(rng: np.random.Generator) -> Screen:
        parts = np.array([(codes == g) / counts[g] for g in range(len(names))])
        control = int(counts.argmax())
        others = rng.choice(np.delete(np.arange(len(names)), control), 40)
        shares = rng.uniform(0.05, 0.5, 40) * (np.arange(40) % 2)
        weights = [
            parts[control],
            *((1 - e) * parts[control] + e * parts[g] for e, g in zip(shares, others, strict=True)),
        ]
        n = [300, *np.exp(rng.uniform(*np.log(sizes), 40)).astype(int)]
        A = np.array(weights)
        return drawn(rows, weights, n, kernel, distances(A @ K @ A.T), rng)

    return draw


def drawn(rows, weights, n, kernel, truth, rng) -> Screen:
    chosen = [rng.choice(len(rows), k, p=w) for w, k in zip(weights, n, strict=True)]
    labels = np.repeat([CONTROL, *(f"group {g:04d}" for g in range(len(n) - 1))], n)
    return Screen(rows[np.concatenate(chosen)], labels, kernel, truth)


# ---------------------------------------------------------------- errors, ranks and coverage


def plain_estimates(screen: Screen) -> tuple[np.ndarray, np.ndarray]:
    """V and U of all pairs, from all kernel values."""
    starts = np.flatnonzero(np.r_[True, screen.labels[1:] != screen.labels[:-1]])
    n = np.diff(np.append(starts, len(screen.X)))
    K = screen.kernel(screen.X)
    G = np.add.reduceat(np.add.reduceat(K, starts), starts, axis=1) / np.outer(n, n)
    V = distances(G)
    np.fill_diagonal(G, (np.diag(G) * n - 1.0) / (n - 1.0))
    U = distances(G)
    np.fill_diagonal(U, 0.0)
    return V, U


class Errors(NamedTuple):
    """Of one draw: squared errors and ranks of V, U and EB, to the control and of pairs; coverage."""

    squares: np.ndarray  # (2, 3)
    ranks: np.ndarray
    inside: np.ndarray  # all, null, largest fifth
    bias: float
    outside: float  # EB estimates that were outside of their interval before it was widened


def one_draw(draw: Callable[[np.random.Generator], Screen], seed: int) -> Errors:
    screen = draw(np.random.default_rng([39, seed]))
    result = mh.group_distances(
        screen.X, screen.labels, control=CONTROL, kernel=screen.kernel, n_resamples=0, scale=None
    )
    V, U = plain_estimates(screen)
    names = np.unique(screen.labels)
    order = [int(np.flatnonzero(names == CONTROL)[0]), *np.flatnonzero(names != CONTROL)]
    pairs = result.matrix[np.ix_(order, order)]
    i, j = np.triu_indices(len(V), 1)
    theta = screen.truth[0, 1:]
    values = [(V[0, 1:], U[0, 1:], result.distance, theta), (V[i, j], U[i, j], pairs[i, j], screen.truth[i, j])]
    squares = np.array([[np.mean((each - truth) ** 2) for each in found] for *found, truth in values])
    varies = np.ptp(theta) > 1e-12
    ranks = np.array([[spearmanr(each, truth)[0] if varies else np.nan for each in found] for *found, truth in values])
    inside = (result.low <= theta + 1e-12) & (theta <= result.high + 1e-12)
    null = theta < 1e-12
    largest = theta >= np.quantile(theta, 0.8) if varies else np.zeros(len(theta), bool)
    covered = [inside[part].mean() if part.any() else np.nan for part in (np.ones_like(null), null, largest)]
    ends = (result.low == result.distance) & (result.low > 0) | (result.high == result.distance)
    outside = np.mean(ends)  # intervals are widened up to the estimate
    bias = float(np.mean(result.distance - theta) / np.mean(V[0, 1:] - theta))
    return Errors(squares, ranks, np.array(covered), bias, float(outside))


def show_errors(name: str, draws: list[Errors]) -> tuple[float, float]:
    squares = np.array([each.squares for each in draws])
    sums = squares.sum(axis=0)
    ratios = sums[:, 2] / sums[:, 1]
    # The standard error of a ratio of sums, by the linear part of it.
    rest = squares[:, :, 2] - ratios * squares[:, :, 1]
    errors = np.sqrt(len(draws)) * rest.std(axis=0, ddof=1) / sums[:, 1]
    V = sums[:, 2] / sums[:, 0]
    ranks = np.mean([each.ranks for each in draws], axis=0)
    inside = np.mean([each.inside for each in draws], axis=0)
    more = [f"{np.mean([getattr(each, field) for each in draws]):.2f}" for field in ("bias", "outside")]
    cells = [f"{ratio:.2f} ± {error:.2f} ({v:.2f})" for ratio, error, v in zip(ratios, errors, V, strict=True)]
    cells += [f"{r[1]:.2f}, {r[2]:.2f}".replace("nan, nan", "–") for r in ranks]
    cells.append(", ".join(f"{x:.2f}" for x in inside).replace("nan", "–"))
    print(f"| {name} | {' | '.join(cells + more)} |", flush=True)
    return float(ratios[0]), float(ratios[1])


def errors_of(
    what: str, screens: dict[str, Callable[[np.random.Generator], Screen]], draws: int, only: list[str]
) -> None:
    """A table: EB's squared error over U's (over V's), ranks of U and of EB, coverage, and what is out of intervals."""
    print(f"\n{draws} draws")
    print(
        f"| {what} | error, to control (of V's) | error, pairs (of V's) | ranks of U, EB: control | pairs | coverage: "
        "all, null, largest fifth | bias of V's | beyond interval |\n|---|---|---|---|---|---|---|---|"
    )
    found = []
    for name, draw in screens.items():
        if not only or any(each in name for each in only):
            found.append(show_errors(name, [one_draw(draw, seed) for seed in range(draws)]))
    if found:
        mean = np.mean(found, axis=0)
        print(f"| mean | {mean[0]:.2f} | {mean[1]:.2f} | | | | | |", flush=True)


def show_simulated(args: argparse.Namespace) -> None:
    errors_of("simulated screen", SIMULATED, args.draws, args.only)
    errors_of("groups far apart", FAR, 5 * args.draws, args.only)  # few pairs each


def show_real(args: argparse.Namespace) -> None:
    screens = {}
    for name, rows, target in tables():
        screens[f"{name}: classes"] = classes_screen(rows, target, (10, 60))
        screens[f"{name}: weak, 8-200"] = weak_screen(rows, target, (8, 200))
        screens[f"{name}: weak, 5-50"] = weak_screen(rows, target, (5, 50))
    errors_of("real rows", screens, args.draws, args.only)


# ---------------------------------------------------------------- p-values

G_NULL, N_CONTROL, N_GROUP = 10, 100, 15
NULL_LABELS = np.repeat([CONTROL, *(f"group {g:04d}" for g in range(G_NULL))], [N_CONTROL, *[N_GROUP] * G_NULL])


def donors(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, None]:
    """Three donors that differ by much, with other shares in every group; labels are strata."""
    shares = np.repeat(rng.dirichlet(3 * np.ones(3), G_NULL + 1), [N_CONTROL, *[N_GROUP] * G_NULL], axis=0)
    donor = (rng.random((len(shares), 1)) > np.cumsum(shares, axis=1)).sum(axis=1).clip(max=2)
    return rng.normal(size=(len(donor), 10)) + 2.0 * np.eye(3, 10)[donor], donor, None


def wells(rng: np.random.Generator) -> tuple[np.ndarray, None, np.ndarray]:
    """Wells of five rows, which have much in common; labels are clusters."""
    well = np.arange(len(NULL_LABELS)) // 5
    return rng.normal(size=(len(well), 10)) + rng.normal(size=(well[-1] + 1, 10))[well], None, well


NULLS: dict[str, Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray | None, np.ndarray | None]]] = {
    "normal": lambda rng: (rng.normal(size=(len(NULL_LABELS), 10)), None, None),
    "lognormal": lambda rng: (np.exp(rng.normal(size=(len(NULL_LABELS), 10))), None, None),
    "counts of .15": lambda rng: (rng.poisson(0.15, size=(len(NULL_LABELS), 10)).astype(float), None, None),
    "donors, strata=": donors,
    "wells, clusters=": wells,
}


def show_level(args: argparse.Namespace) -> None:
    """Groups of 15 rows against 100, rows in the order of groups, seed 0 in each call; tests in two stages."""
    print("share of p-values at most .05, .01; by group at .05: least, most; global test at .05")
    for name, rows in NULLS.items():
        rng, found, together = np.random.default_rng(1939), [], []
        for _ in range(-(-args.tests // G_NULL)):
            X, strata, clusters = rows(rng)
            units = _units(X, NULL_LABELS, strata, clusters, None)
            tests = _tests(units, _sums(units, mh.Gaussian()), 0, 199, np.random.default_rng(0))
            found.append(tests.each)
            together.append(tests.together)
        p = np.array(found)
        by_group = (p <= 0.05).mean(axis=0)
        error, level = np.sqrt(0.05 * 0.95 / len(p)), np.mean(np.array(together) <= 0.05)
        shares = f"{(p <= 0.05).mean():.3f} {(p <= 0.01).mean():.3f}   {by_group.min():.3f} {by_group.max():.3f}"
        print(f"{name:<18}{shares} (± {error:.3f} each)   {level:.3f}   {p.size:,} tests", flush=True)


def show_power(args: argparse.Namespace) -> None:
    """Screens of 100 groups of 10 to 100 rows, a quarter active, control 300: what BH and Holm find."""

    def shifts(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rows + 0.8 * direction(rows.shape[1], rng)

    def responders(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rows + 2.5 * direction(rows.shape[1], rng) * (rng.random((len(rows), 1)) < 0.2)

    def spread(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return 1.15 * rows

    print("share of active groups that are found, and the false discovery proportion: BH, Holm")
    for name, change in {"shifts": shifts, "20 % responders": responders, "scale": spread}.items():
        found = []
        for seed in range(args.draws):
            rng = np.random.default_rng([7, seed])
            sizes = np.exp(rng.uniform(np.log(10), np.log(100), 100)).astype(int)
            root = np.linalg.qr(rng.normal(size=(20, 20)))[0] * np.arange(1, 21) ** -0.5
            parts = [rng.normal(size=(n, 20)) @ root * 2 for n in (300, *sizes)]
            active = np.arange(100) < 25
            X = np.concatenate(
                [parts[0], *(change(p, rng) if on else p for p, on in zip(parts[1:], active, strict=True))]
            )
            labels = np.repeat([CONTROL, *(f"group {g:04d}" for g in range(100))], [300, *sizes])
            result = mh.group_distances(X, labels, control=CONTROL, random_state=0, scale=None)
            order = np.argsort(result.groups)
            for adjusted in (result.adjusted, mh.groups.group_tests.adjusted_pvalues(result.pvalue, "holm")):
                hits = adjusted[order] <= 0.05
                found.append((hits[active].mean(), (hits & ~active).sum() / max(hits.sum(), 1)))
        bh, holm = np.array(found[::2]), np.array(found[1::2])
        shown = [f"{x[:, 0].mean():.2f} ({x[:, 1].mean():.3f})" for x in (bh, holm)]
        print(f"{name:<18}" + "   ".join(shown), flush=True)


def show_speed(args: argparse.Namespace) -> None:
    """CPU seconds: 300 groups of 100 rows, 50 columns, control 500, 999 permutations; one in ten is shifted."""
    rng, groups = np.random.default_rng(0), args.groups
    labels = np.repeat([CONTROL, *(f"group {g:04d}" for g in range(groups))], [500, *[100] * groups])
    X = rng.normal(size=(len(labels), 50))
    for g in range(0, groups, 10):
        X[labels == f"group {g:04d}", 0] += 1.0

    def timed(name: str, call: Callable[[], object], times: float = 1.0) -> None:
        begin = process_time()
        call()
        print(f"{name:<60}{times * (process_time() - begin):8.1f} s", flush=True)

    timed("estimates and intervals", lambda: mh.group_distances(X, labels, control=CONTROL, n_resamples=0))
    timed("with p-values, a second stage, a global test", lambda: mh.group_distances(X, labels, control=CONTROL))
    timed("matrix of all pairs", lambda: mh.group_distances(X, labels, n_resamples=0).matrix)
    some = min(10, groups)

    def one_by_one() -> None:
        for g in range(some):
            mh.mmd_test(X[labels == f"group {g:04d}"], X[:500], random_state=0)

    timed(f"mmd_test for each group (from {some})", one_by_one, groups / some)
    try:
        import anndata
        import pandas as pd
        import pertpy
    except ImportError:
        print("pertpy is not installed")
        return
    few, permutations = min(30, groups), 20
    kept = np.arange(500 + 100 * few)
    obs = pd.DataFrame({"group": labels[kept]}, index=kept.astype(str))
    adata = anndata.AnnData(X=np.zeros((len(kept), 1), np.float32), obs=obs, obsm={"X_pca": X[kept]})
    test = pertpy.tl.DistanceTest("edistance", n_perms=permutations, obsm_key="X_pca")
    pertpy.tl.DistanceTest("edistance", n_perms=1, obsm_key="X_pca")(  # compiles
        adata[:600], groupby="group", contrast=CONTROL, show_progressbar=False
    )
    # Its work is in proportion to groups and permutations.
    timed(
        f"pertpy {pertpy.__version__} (from {few} groups and {permutations} permutations)",
        lambda: test(adata, groupby="group", contrast=CONTROL, show_progressbar=False),
        groups / few * 1000 / (permutations + 1),
    )


def show_large(args: argparse.Namespace) -> None:
    """Memory and CPU seconds of 5,000 groups of 60 rows, 50 columns, control 2,000."""
    G = args.large
    labels = np.repeat(np.arange(G + 1), [2000, *[60] * G])
    X = np.random.default_rng(0).normal(size=(len(labels), 50))
    X[labels % 50 == 1] += 0.5

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

    print(f"{len(X):,} rows; {peak():.2f} GB with the rows")
    for name, call in {
        "estimates and intervals": lambda: mh.group_distances(X, labels, control=0, n_resamples=0),
        "matrix of all pairs": lambda: mh.group_distances(X, labels, n_resamples=0).matrix,
        "with p-values": lambda: mh.group_distances(X, labels, control=0, random_state=0),
    }.items():
        begin = process_time()
        call()
        print(f"{name:<26}{process_time() - begin:8.1f} s, peak {peak():.2f} GB", flush=True)


PARTS = {
    "simulated": show_simulated,
    "real": show_real,
    "level": show_level,
    "power": show_power,
    "speed": show_speed,
    "large": show_large,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=["simulated", "real", "level"])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tests", type=int, default=5000)
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--large", type=int, default=5000)
    args = parser.parse_args()
    for part in args.parts:
        print(f"\n{part}: {PARTS[part].__doc__ or ''}".rstrip(": "))
        PARTS[part](args)

"""How the adaptive mean may choose λ and its shares: rules compared on the same samples, Gaussian kernel.

All take a·F(λ) + b·f* with λ on a grid and (a, b) in the unit square, and differ in the estimate of the risk: with the
norms of the refits (leave-one-out as other estimators have it), or with the known norms and λ times ((n−1)/n)^power in
the refits. Two average it with E, the weights (K + λI)⁻¹1 over their sum, λ by moments. Losses are relative to the
first rule's, geometric means over a group; "worse" counts cells worse than the plain average by two standard errors.

The groups: the paper's mixtures, clusters (eight times the samples), the UCI tables, the other populations of
accuracy.py with eight more, and twelve that played no part in the choice.

    python benchmarks/adaptive_rules.py                      # 40 samples a cell, some 25 minutes
    python benchmarks/adaptive_rules.py --repetitions 5 --groups clusters "kept back"
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import accuracy
import numpy as np
from accuracy import POPULATION_ROWS as N
from accuracy import Cell, Rows, ratios_of, worse
from threadpoolctl import threadpool_limits

import muhat as mh
from muhat.means.adaptive import _Quadratic
from muhat.means.targets import gaussian_target
from muhat.shrinkage.leave_one_out import LooMoments

LAMS = np.logspace(-3, 2, 16)  # in units of the largest eigenvalue
SIZES = (10, 20, 50, 100)


class Base(NamedTuple):
    """Weights of all rows, and in column i those without row i."""

    weights: Rows
    refits: Rows


class Estimate(NamedTuple):
    weights: Rows
    share: float


class Sample(NamedTuple):
    """A Gram matrix, and the target of all rows and of the refits, at the rows and squared."""

    K: Rows
    at_rows: Rows
    square: float
    refits_at_rows: Rows
    refit_square: float

    def cross(self, base: Base) -> float:
        return float(np.einsum("ij,ji->", self.K, base.refits) / len(self.K))

    def lowest(self, base: Base, cross: float, *, known: bool) -> tuple[float, Estimate]:
        """The lowest risk over (a, b), and the estimate there."""
        if known:
            squares = (base.weights @ self.K @ base.weights, base.weights @ self.at_rows, self.square)
        else:
            n, B = len(self.K), base.refits
            products = np.vdot(B, self.K @ B) / n, np.vdot(B, self.refits_at_rows.T) / n
            squares = (*products, self.refit_square)
        Q, mixed, T = squares
        means = LooMoments(np.array([cross]), np.array([Q]))
        risk = _Quadratic(means, np.array([mixed]), float(np.diag(self.refits_at_rows).mean()), float(T))
        a, b = risk.lowest(0.0)
        return float(risk.values(a, b)[0]), Estimate(a * base.weights, float(b[0]))


def plain(K: Rows) -> Base:
    n = len(K)
    return Base(np.full(n, 1 / n), (1 - np.eye(n)) / (n - 1))


def flexible(K: Rows, lam: float) -> Base:
    n = len(K)
    A = np.linalg.inv(K + lam * np.eye(n))
    c = A.sum(axis=1)
    refits = (1 - lam * (c[:, None] - A * c / np.diag(A))) / (n - 1)
    np.fill_diagonal(refits, 0)
    return Base((1 - lam * c) / n, refits)


def summing_to_one(K: Rows, factor: float) -> Base:
    """E with λ = factor·n(n−1)·var(r)/((ϱ − ρ)(1 − 2δ)), δ the share of noise in the squared norm of the covariance."""
    n, r = len(K), K.mean(axis=1)
    centred = K - r[:, None] - r + r.mean()
    square = np.vdot(centred, centred) / n**2
    noise = min(1.0, (np.mean(np.diag(centred) ** 2) - square) / (n * square))
    lam = factor * n * (n - 1) * r.var() / ((np.diag(K).mean() - r.mean()) * max(1 - 2 * noise, 0.02))
    A = np.linalg.inv(K + lam * np.eye(n))
    c = A.sum(axis=1)
    refits = c[:, None] - A * c / np.diag(A)
    np.fill_diagonal(refits, 0)
    return Base(c / c.sum(), refits / refits.sum(axis=0))


def average(one: Estimate, other: Estimate) -> Estimate:
    return Estimate((one.weights + other.weights) / 2, (one.share + other.share) / 2)


def estimates(sample: Sample) -> dict[str, Estimate]:
    """What each rule makes of a sample."""
    K, n = sample.K, len(sample.K)
    lams = LAMS * np.linalg.eigvalsh(K)[-1]
    bases = [plain(K), *(flexible(K, lam) for lam in lams)]
    by_refits = [sample.lowest(base, sample.cross(base), known=False) for base in bases]
    best = int(np.argmin([risk for risk, _ in by_refits]))
    found = {"KME": Estimate(bases[0].weights, 0.0), "norms of the refits": by_refits[best][1]}
    for power in (1.0, 0.5, 0.0):
        shorter = [bases[0], *(flexible(K, lam * ((n - 1) / n) ** power) for lam in lams)]
        known = [sample.lowest(b, sample.cross(s), known=True) for b, s in zip(bases, shorter, strict=True)]
        found[f"known norms, power {power:g}"] = min(known, key=lambda pair: pair[0])[1]
        if power == 0:
            found["known norms for (a, b) alone"] = known[best][1]
    for factor in (2.0, 1.0):
        E = summing_to_one(K, factor)
        other = sample.lowest(E, sample.cross(E), known=True)[1]
        found[f"power 1, averaged with E({factor:g})"] = average(found["known norms, power 1"], other)
    return found


def losses_of(kernel: Any, X: Rows, truth: mh.Element, at_rows: Rows) -> dict[str, float]:
    refits = gaussian_target(kernel, X)
    target, K = refits.target, kernel(X)
    sample = Sample(K, target(X), target.norm() ** 2, refits.values, float(refits.squared_norms.mean()))
    inner, squared, losses = target.inner(truth), truth.norm() ** 2, {}
    for rule, (weights, share) in estimates(sample).items():
        norm = weights @ K @ weights + 2 * share * weights @ sample.at_rows + share**2 * sample.square
        losses[rule] = norm - 2 * (weights @ at_rows + share * inner) + squared
    return losses


# ---------------------------------------------------------------- populations


def chosen_on() -> dict[str, Rows]:
    """Populations that the rule was chosen on, besides those of accuracy.py."""
    rng = np.random.default_rng(2024)
    angle, height, side = rng.uniform(0, 2 * np.pi, N), rng.uniform(0, np.pi, N), rng.random(N) < 0.5
    ring = 3 * np.column_stack([np.cos(angle), np.sin(angle)]) * (rng.random((N, 1)) < 0.5)
    arc = np.column_stack([np.cos(height), np.sin(height)])
    moons = np.where(side[:, None], arc, [1, 0.5] - arc)
    centres = rng.normal(size=(4, 6)) * 4
    unequal = centres[rng.choice(4, N, p=[0.6, 0.25, 0.1, 0.05])]
    return {
        "ring and blob": ring + 0.3 * rng.normal(size=(N, 2)),
        "moons": moons + 0.1 * rng.normal(size=(N, 2)),
        "mixture of t": np.where(rng.random((N, 1)) < 0.5, -3, 3) + rng.standard_t(3, size=(N, 4)),
        "two factors": rng.normal(size=(N, 2)) @ rng.normal(size=(2, 10)) + 0.5 * rng.normal(size=(N, 10)),
        "unequal clusters": unequal + rng.normal(size=(N, 6)) * rng.choice([0.3, 1.5], size=(N, 1)),
        "grid": rng.integers(3, size=(N, 2)) * 4.0 + 0.4 * rng.normal(size=(N, 2)),
        "gamma": rng.gamma(1.5, size=(N, 5)),
        "outliers": np.where(rng.random((N, 1)) < 0.05, 20, 1) * rng.normal(size=(N, 5)),
    }


def kept_back() -> dict[str, Rows]:
    """Populations that played no part in the choice."""
    rng = np.random.default_rng(777)
    wide, tall = rng.normal(size=(N, 2)) * [4, 0.3], rng.normal(size=(N, 2)) * [0.3, 4]
    sphere, z, along = rng.normal(size=(N, 6)), rng.normal(size=(N, 2)), np.linspace(0, 10, N)
    seven = (rng.normal(size=(7, 3)) * 3)[rng.choice(7, N, p=np.arange(1, 8) / 28)]
    return {
        "cross": np.where(rng.random((N, 1)) < 0.5, wide, tall),
        "shell": sphere / np.linalg.norm(sphere, axis=1, keepdims=True) + 0.1 * rng.normal(size=(N, 6)),
        "Weibull": rng.weibull(0.8, size=(N, 3)),
        "beta": rng.beta(0.5, 0.5, size=(N, 4)),
        "parabola": np.column_stack([z, z**2 + 0.5 * rng.normal(size=(N, 2)), np.abs(z)]),
        "seven unequal clusters": seven + rng.normal(size=(N, 3)) * rng.uniform(0.2, 1, size=(N, 1)),
        "ordinal": rng.integers(1, 6, size=(N, 6)).astype(float),
        "many zeros": rng.gamma(2, size=(N, 5)) * (rng.random((N, 5)) < 0.4),
        "Cauchy": rng.standard_cauchy(size=(N, 3)).clip(-200, 200),
        "two unequal clusters": np.where(rng.random((N, 1)) < 0.3, 6, 0) + rng.normal(size=(N, 4)),
        "curve": np.column_stack([along, np.sin(along)]) + 0.05 * rng.normal(size=(N, 2)),
        "40 columns": rng.normal(size=(N, 40)) * np.logspace(0, -1.5, 40),
    }


def finite(rows: Rows, cell: Cell, seeds: list[np.random.SeedSequence]) -> list[dict[str, float]]:
    kernel = accuracy.narrowed(mh.Gaussian().resolve(rows), cell.kernel)
    truth = mh.embed(kernel, rows)
    values = truth(rows)
    drawn = [np.random.default_rng(seed).integers(len(rows), size=cell.n) for seed in seeds]
    return [losses_of(kernel, rows[rows_drawn], truth, values[rows_drawn]) for rows_drawn in drawn]


def mixtures(cell: Cell, seeds: list[np.random.SeedSequence]) -> list[dict[str, float]]:
    found = []
    for rng in map(np.random.default_rng, seeds):
        P = mh.paper_mixture(cell.d, random_state=rng)
        X = P.sample(cell.n, random_state=rng)
        truth = mh.embed(mh.Gaussian().resolve(X), P)
        found.append(losses_of(truth.kernel, X, truth, truth(X)))
    return found


Runner = Callable[[list[np.random.SeedSequence]], list[dict[str, float]]]


def cells_of(populations: dict[str, Rows], kernel: str) -> list[Runner]:
    cells = [(rows, Cell("", kernel, name, n, rows.shape[1])) for name, rows in populations.items() for n in SIZES]
    return [lambda seeds, rows=rows, cell=cell: finite(rows, cell, seeds) for rows, cell in cells]


def groups() -> dict[str, list[Runner]]:
    tables = {name: rows for name in accuracy.TABLES.split() if (rows := accuracy.table_rows(name)) is not None}
    named = {
        name: make(np.random.default_rng(number)) for number, (name, make) in enumerate(accuracy.POPULATIONS.items())
    }
    chosen, kept = named | chosen_on(), kept_back()
    paper = [Cell("paper", "RBF", "", n, d) for d in (2, 10, 30, 100) for n in SIZES]
    found: dict[str, list[Runner]] = {"paper": [lambda seeds, cell=cell: mixtures(cell, seeds) for cell in paper]}
    found["clusters"] = cells_of({"clusters": named["clusters"]}, "RBF")
    for name, populations in {"UCI": tables, "chosen on": chosen, "kept back": kept}.items():
        found |= {name: cells_of(populations, "RBF"), f"{name} / 10": cells_of(populations, "RBF / 10")}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=40, help="samples a cell")
    parser.add_argument("--groups", nargs="+", help="groups by name; all by default")
    arguments = parser.parse_args()
    for number, (group, cells) in enumerate(groups().items()):
        if arguments.groups and group not in arguments.groups:
            continue
        results = []
        for k, cell in enumerate(cells):
            seeds = np.random.SeedSequence([30, number, k]).spawn(
                arguments.repetitions * (8 if group == "clusters" else 1)
            )
            with threadpool_limits(1), np.errstate(under="ignore"):
                found = cell(seeds)
            results.append(np.array([list(losses.values()) for losses in found]))
        print_group(group, list(found[0]), results)


def print_group(group: str, rules: list[str], results: list[Rows]) -> None:
    ratios = np.array([ratios_of(losses)[0] for losses in results])
    relative = ratios / ratios[:, [rules.index("norms of the refits")]]
    bad = np.sum([worse(losses, 0) for losses in results], axis=0)
    print(f"\n{group}, {len(results)} cells{'':<14}  loss / KME's  / first rule's  worse  largest")
    for j, rule in enumerate(rules):
        means = np.exp(np.log([ratios[:, j], relative[:, j]]).mean(axis=1))
        print(f"  {rule:<32}{means[0]:12.3f}{means[1]:17.3f}{bad[j]:7d}{ratios[:, j].max():9.3f}", flush=True)


if __name__ == "__main__":
    main()

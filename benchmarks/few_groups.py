"""How many groups does a prior need? Errors with the prior over those of plain means, by the number of groups.

python benchmarks/few_groups.py
python benchmarks/few_groups.py --draws 4

Groups have 3 to 60 rows. In regression the target is their spread, their location or their degrees of freedom, and the
error is the RMSE on 200 new groups; for pooled means it is the squared distance from the true means. Standard errors
are in brackets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import muhat as mh

Bags = list[np.ndarray]
COUNTS = (5, 10, 20, 40, 80)
NEW = 200


def sizes(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(np.log(3), np.log(60), n)).astype(int)


def spreads(n: int, rng: np.random.Generator) -> tuple[Bags, np.ndarray]:
    """Groups around 0; the target is their spread."""
    y = rng.uniform(1, 3, size=n)
    return [rng.normal(scale=s, size=(k, 2)) for s, k in zip(y, sizes(n, rng), strict=True)], y


def locations(n: int, rng: np.random.Generator) -> tuple[Bags, np.ndarray]:
    """Groups in five columns; the target is the location in the first."""
    centres = 0.5 * rng.normal(size=(n, 5))
    return [rng.normal(c, size=(k, 5)) for c, k in zip(centres, sizes(n, rng), strict=True)], centres[:, 0]


def freedoms(n: int, rng: np.random.Generator) -> tuple[Bags, np.ndarray]:
    """The toy of Law et al.: χ² in five columns; the target is the number of degrees of freedom."""
    y = rng.uniform(4, 8, size=n)
    return [rng.chisquare(v, size=(k, 5)) / v for v, k in zip(y, sizes(n, rng), strict=True)], y


def regression(population: Callable[..., tuple[Bags, np.ndarray]], n: int, rng: np.random.Generator) -> float:
    """RMSE with the prior over that of plain means."""
    (bags, y), (new, truth) = population(n, rng), population(NEW, rng)
    machines = mh.DistributionRidge(), mh.DistributionRidge(pool=False, stack=False)
    errors = [np.sqrt(np.mean((machine.fit(bags, y).predict(new) - truth) ** 2)) for machine in machines]
    return float(errors[0] / errors[1])


def pooled(n: int, rng: np.random.Generator) -> float:
    """Squared error of pooled means over that of plain ones, of normal groups."""
    centres = 0.5 * rng.normal(size=(n, 5))
    bags = [rng.normal(centre, size=(k, 5)) for centre, k in zip(centres, sizes(n, rng), strict=True)]
    means = mh.pooled_means(bags)
    kernel = means[0].kernel
    truth = [mh.embed(kernel, mh.GaussianMixture([1.0], [centre], [1.0])) for centre in centres]
    plain = [mh.embed(kernel, bag) for bag in bags]
    losses = [sum(f.distance(g) ** 2 for f, g in zip(each, truth, strict=True)) for each in (means, plain)]
    return losses[0] / losses[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS, help="numbers of groups")
    args = parser.parse_args()
    draws, counts = args.draws, args.counts
    questions: dict[str, Callable[[int, np.random.Generator], float]] = {
        **{each.__name__: lambda n, rng, p=each: regression(p, n, rng) for each in (spreads, locations, freedoms)},
        "pooled means": pooled,
    }
    print(f"{'groups':<14}" + "".join(f"{n:>15}" for n in counts))
    for name, question in questions.items():
        cells = []
        for n in counts:
            # Errors vary by factors, so that ratios are averaged as logarithms.
            logs = np.log([question(n, np.random.default_rng([draw, n])) for draw in range(draws)])
            centre, error = np.exp(logs.mean()), logs.std(ddof=1) / np.sqrt(draws)
            cells.append(f"{centre:>8.2f} ({centre * error:.2f})")
        print(f"{name:<14}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

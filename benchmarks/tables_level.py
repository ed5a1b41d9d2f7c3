"""``mh.compare``: false alarms where nothing differs, errors at the edge of ``at_least``, and power.

    python benchmarks/tables_level.py level     24 nulls: how often anything is named at level .05
    python benchmarks/tables_level.py edge      true effects equal to at_least: how often one is said to exceed it
    python benchmarks/tables_level.py power     one change in 300 + 300 rows, 10 numbers and a category

Permutations are exact at every number of them, so that the nulls take 99, which saves time and changes no level. With
``--without-joint`` the statistic of all columns together is replaced by noise, which has the same null distribution of
ranks: its own level has a benchmark and tests of its own, and it takes most of the time. The part ``power`` also runs
with version 0.3 on the path; it takes 999 permutations in both.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd

import muhat as mh

LEVEL = 0.05


def frame(values, prefix="x"):
    return pd.DataFrame(values).add_prefix(prefix)


def two(rng, sizes, draw):
    """Two tables that a function of a generator and a number of rows draws."""
    return tuple(draw(rng, n) for n in sizes)


def sparse(rng, n, columns=15, share=0.8):
    return frame(rng.normal(size=(n, columns)) * (rng.random((n, columns)) > share))


def mixed(rng, n):
    table = frame(np.column_stack([rng.normal(size=(n, 3)), rng.lognormal(size=(n, 2)), rng.poisson(0.5, n)]))
    table["plan"] = rng.choice(list("abcde"), n, p=[0.5, 0.3, 0.1, 0.07, 0.03])
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, n), "D")
    table.loc[rng.random(n) < 0.1, "x1"] = np.nan
    return table


def zipf(rng, n):
    return pd.DataFrame({name: (rng.zipf(1.5, n) % 1000).astype(str) for name in "abc"})


def gaps(rng, n, share, columns=6):
    return frame(np.where(rng.random((n, columns)) < share, np.nan, rng.normal(size=(n, columns))))


def sites(rng, n, p, columns=10):
    """Values and rare missing values that depend on the site, and shares of the sites that differ by table."""
    site = rng.choice(list("uvw"), n, p=p)
    table = frame(rng.normal(size=(n, columns)) + 2 * (site == "u")[:, None])
    table = table.mask(rng.random(table.shape) < 0.002)
    table["rare"] = np.where(rng.random(n) < 0.01 + 0.02 * (site == "v"), "yes", "no")
    return table.assign(site=site)


def decimals(rng, n, dtype):
    return frame((rng.integers(0, 20, size=(n, 5)) / 10).astype(dtype))


def weeks(rng, sizes, prefix, site=False):
    """Clusters of these sizes: each has an effect of its own, which is larger than what its rows vary by."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rows = 2 * rng.normal(size=(len(sizes), 4))[labels] + rng.normal(size=(len(labels), 4))
    table = frame(rows).assign(week=[f"{prefix}{k}" for k in labels])
    return table.assign(site=np.where(labels % 2, "u", "v")) if site else table


def unequal(rng, count):
    return 1 + rng.geometric(0.15, count)


def correlated(rng, n, columns=10):
    return frame(rng.normal(size=(n, 1)) * 3 + rng.normal(size=(n, columns)))


NULLS = {
    "80 % zeros, 15 columns, 100 v 1,000": (lambda r: two(r, (100, 1000), sparse), {}),
    "80 % zeros, 15 columns, 60 v 600": (lambda r: two(r, (60, 600), sparse), {}),
    "80 % zeros, 15 columns, 100 v 100": (lambda r: two(r, (100, 100), sparse), {}),
    "counts, Poisson(.3), 80 v 300": (lambda r: two(r, (80, 300), lambda g, n: frame(g.poisson(0.3, (n, 6)))), {}),
    "rare truth values, 50 v 500": (lambda r: two(r, (50, 500), lambda g, n: frame(g.random((n, 8)) < 0.05)), {}),
    "90 categories, 60 v 1,000": (
        lambda r: two(r, (60, 1000), lambda g, n: pd.DataFrame({"c": g.integers(90, size=n).astype(str)})),
        {},
    ),
    "Zipf's categories, 100 v 300": (lambda r: two(r, (100, 300), zipf), {}),
    "normal, 5 v 500": (lambda r: two(r, (5, 500), lambda g, n: frame(g.normal(size=(n, 6)))), {}),
    "mixed, 5 v 500": (lambda r: two(r, (5, 500), mixed), {}),
    "mixed, 100 v 300": (lambda r: two(r, (100, 300), mixed), {}),
    "mixed, 8 v 8": (lambda r: two(r, (8, 8), mixed), {}),
    "mixed, 3 v 40": (lambda r: two(r, (3, 40), mixed), {}),
    "mixed, 100 v 5,000, in bins": (lambda r: two(r, (100, 5000), mixed), {}),
    "strata, missing in .2 %, 50 v 800": (
        lambda r: (sites(r, 50, [0.4, 0.3, 0.3]), sites(r, 800, [0.4, 0.3, 0.3])),
        {"strata": "site"},
    ),
    "strata of other shares, 150 v 90": (
        lambda r: (sites(r, 150, [0.6, 0.3, 0.1]), sites(r, 90, [0.1, 0.3, 0.6])),
        {"strata": "site"},
    ),
    "90 % missing, 200 v 200": (lambda r: two(r, (200, 200), lambda g, n: gaps(g, n, 0.9)), {}),
    "10 % missing, 100 v 300": (lambda r: two(r, (100, 300), lambda g, n: gaps(g, n, 0.1)), {}),
    "ties, one decimal, 150 v 150": (
        lambda r: two(r, (150, 150), lambda g, n: frame(g.normal(size=(n, 6)).round(1))),
        {},
    ),
    "float32 v float64, 150 v 150": (
        lambda r: (decimals(r, 150, np.float32), decimals(r, 150, np.float64)),
        {},
    ),
    "heavy tails, 60 v 600": (lambda r: two(r, (60, 600), lambda g, n: frame(g.standard_cauchy((n, 6)))), {}),
    "correlated, 50 v 500": (lambda r: two(r, (50, 500), correlated), {}),
    "clusters of 10 rows, 12 v 12": (
        lambda r: (weeks(r, [10] * 12, "a"), weeks(r, [10] * 12, "b")),
        {"clusters": "week"},
    ),
    "clusters of any size, 10 v 25": (
        lambda r: (weeks(r, unequal(r, 10), "a"), weeks(r, unequal(r, 25), "b")),
        {"clusters": "week"},
    ),
    "clusters in strata, 14 v 14": (
        lambda r: (weeks(r, [6] * 14, "a", True), weeks(r, [6] * 14, "b", True)),
        {"clusters": "week", "strata": "site"},
    ),
}

FEWER = {"mixed, 100 v 5,000, in bins": 5, "80 % zeros, 15 columns, 100 v 1,000": 2, "90 categories, 60 v 1,000": 2}
"""Nulls that take long, and the part of the draws that they get."""


def level(draws, names):
    """Print the share of draws in which anything is named, for every null."""
    shares, beyond = [], 0
    print(f"{'null':40} {'draws':>6} {'named anything':>15} {'limit':>7} {'CPU s':>7}")
    for number, (name, (make, options)) in enumerate(NULLS.items()):
        if names and not any(wanted in name for wanted in names):
            continue
        count, started, found = draws // FEWER.get(name, 1), time.process_time(), 0
        for seed in range(count):
            a, b = make(np.random.default_rng([21, number, seed]))
            result = mh.compare(a, b, level=LEVEL, n_resamples=99, random_state=seed, **options)
            parts = [*result.columns, *result.missing.values(), *result.pairs]
            found += result.differs or any(part.adjusted_pvalue <= LEVEL for part in parts)
        limit = LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / count)
        shares.append(found / count)
        beyond += shares[-1] > limit
        spent = time.process_time() - started
        print(f"{name:40} {count:6} {shares[-1]:15.3f} {limit:7.3f} {spent:7.0f}", flush=True)
    print(f"{len(shares)} nulls: mean {np.mean(shares):.3f}, largest {max(shares):.3f}")
    print(f"beyond .05 + 2 standard errors: {beyond} nulls")


def replace_joint_test():
    """Let noise stand for the statistic of all columns together."""
    from muhat.apps.compare import two_tables
    from muhat.inference.two_sample import MMDResult

    def noise(samples, bins, splits, n_resamples, rng):
        statistic, *null = rng.gamma(2.0, size=splits.centred.shape[1])
        return MMDResult(statistic, 1.0, np.array(null))

    two_tables.default_test_of = noise


def edges(rng):
    """Tables whose largest effect is exactly the bound, and the bound."""
    n, m = 400, 250
    yield "shift of a uniform column by .1", {"x": rng.random(n)}, {"x": rng.random(m) + 0.1}, 0.1
    shares = np.array([0.5, 0.3, 0.1, 0.1]), np.array([0.4, 0.3, 0.2, 0.1])
    a, b = ({"c": rng.choice(list("abcd"), k, p=p)} for k, p in zip((n, m), shares, strict=True))
    yield "total variation of .1", a, b, 0.1
    lost = [np.where(rng.random(k) < p, np.nan, rng.normal(size=k)) for k, p in ((n, 0.05), (m, 0.15))]
    yield "shares of missing values apart by .1", {"x": lost[0]}, {"x": lost[1]}, 0.1
    yield "8 columns shifted by .1", frame(rng.random((n, 8))), frame(rng.random((m, 8)) + 0.1), 0.1
    few = [{"c": rng.integers(90, size=k).astype(str)} for k in (60, 2000)]
    yield "90 equal categories, no effect, bound .01", *few, 0.01


def edge(draws, _):
    """Print how often an effect that equals the bound is said to exceed it."""
    found = {}
    for seed in range(draws):
        for name, a, b, bound in edges(np.random.default_rng([22, seed])):
            result = mh.compare(a, b, bound, level=LEVEL, n_resamples=19, random_state=seed)
            effects = [*result.columns, *result.missing.values()]
            low = any(effect.interval.low > bound for effect in effects)
            found.setdefault(name, []).append(result.differs or low)
    for name, said in found.items():
        print(f"{name:45} said to exceed it in {np.mean(said):.3f} of {len(said)} draws")


def change(rng, what, n=300):
    """Two tables with 10 numbers in correlated pairs and a category, and one change in the second."""

    def table(r):
        x = rng.normal(size=(n, 10))
        x[:, 1] = r * x[:, 0] + np.sqrt(1 - r**2) * x[:, 1]
        return frame(x).assign(c=rng.choice(list("abcde"), n, p=[0.4, 0.3, 0.15, 0.1, 0.05]))

    a, b = table(0.6), table(0.25 if what == "correlation .6 to .25" else 0.6)
    if what == "one column + .25 sd":
        b["x5"] += 0.25
    if what == "one column 1.3 times as wide":
        b["x5"] *= 1.3
    if what == "15 % of a category moved":
        b.loc[rng.random(n) < 0.15, "c"] = "b"
    if what == "a category of 5 % renamed":
        b["c"] = b["c"].replace("e", "f")
    if what == "4 % far outliers in a column":
        b.loc[rng.random(n) < 0.04, "x5"] += 6
    if what == "8 % missing in a column":
        b.loc[rng.random(n) < 0.08, "x5"] = np.nan
    if what == "three columns + .15 sd":
        b[["x5", "x6", "x7"]] += 0.15
    return a, b


CHANGES = (
    "one column + .25 sd",
    "one column 1.3 times as wide",
    "correlation .6 to .25",
    "15 % of a category moved",
    "a category of 5 % renamed",
    "4 % far outliers in a column",
    "8 % missing in a column",
    "three columns + .15 sd",
)


def power(draws, names):
    """Print how often the tables are said to differ, and how often the right thing is named."""
    print(f"{'change':34} {'differs':>8} {'named':>8} (of {draws} draws)")
    total = []
    for number, what in enumerate(CHANGES):
        if names and what not in names:
            continue
        differs = named = 0
        for seed in range(draws):
            a, b = change(np.random.default_rng([23, number, seed]), what)
            result = mh.compare(a, b, random_state=seed)
            differs += result.differs
            columns = {column.name for column in result.columns if result.named(column.parts)}
            pairs = {pair.names for pair in result.named(result.pairs)}
            wanted = {"x5", "x6", "x7"} if "three" in what else {"c"} if "category" in what else {"x5"}
            named += ("x0", "x1") in pairs if "correlation" in what else bool(wanted & columns)
        total.append([differs / draws, named / draws])
        print(f"{what:34} {total[-1][0]:8.2f} {total[-1][1]:8.2f}", flush=True)
    print(f"{'mean':34} {np.mean(total, axis=0)[0]:8.2f} {np.mean(total, axis=0)[1]:8.2f}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=".*bandwidth.*")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("level", "edge", "power"))
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--without-joint", action="store_true")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    if options.without_joint:
        replace_joint_test()
    {"level": level, "edge": edge, "power": power}[options.part](options.draws, options.only)

"""``muhat compare`` on twenty awkward pairs of tables, beside the tests that people use.

    python benchmarks/tables.py            the twenty pairs: what each test says
    python benchmarks/tables.py level      small pairs that do not differ, drawn again and again: false alarms
    python benchmarks/tables.py timings    200,000 x 12 rows, digits, and a CSV file of 1 GB

The tables are made from scikit-learn's data. Ten pairs differ and ten do not. Each line has the p-value of ``compare``,
of a Kolmogorov-Smirnov test a column with Holm's correction, of chi-squared tests of the categories with Holm's
correction, and of a random forest that tells the tables apart on held-out rows.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier

from muhat.cli.command_line import main
from muhat.comparison.effects import holm

LEVEL = 0.05
MOST_ROWS_OF_FOREST = 4000


def halves(frame, rng):
    """A table in two random halves."""
    order = rng.permutation(len(frame))
    middle = len(frame) // 2
    return tuple(frame.iloc[np.sort(part)].reset_index(drop=True) for part in (order[:middle], order[middle:]))


def with_colour(rng, whites=(24, 24)):
    a, b = halves(load_wine(as_frame=True).data, rng)
    for table, count in zip((a, b), whites, strict=True):
        table["colour"] = rng.permutation(["white"] * count + ["red"] * (len(table) - count))
    return a, b


def with_gaps(rng, shares, column="mean texture"):
    a, b = halves(load_breast_cancer(as_frame=True).data, rng)
    for table, share in zip((a, b), shares, strict=True):
        table.loc[rng.random(len(table)) < share, column] = np.nan
    return a, b


def mostly_missing(rng, shift=0.0):
    """Every column is missing in 90 % of the rows."""
    a, b = halves(pd.concat([load_breast_cancer(as_frame=True).data.iloc[:, :10]] * 2), rng)
    b = b + shift * b.std()
    return a.mask(rng.random(a.shape) < 0.9), b.mask(rng.random(b.shape) < 0.9)


def shuffled(rng, columns=2):
    a, b = halves(load_breast_cancer(as_frame=True).data, rng)
    for name in b.columns[:columns]:
        b[name] = rng.permutation(b[name].to_numpy())
    return a, b


def many_rows(rng, shift=0.0, rows=200_000):
    wine = load_wine().data[:, :12]
    tables = [
        wine[rng.integers(len(wine), size=rows)] + 0.3 * wine.std(axis=0) * rng.normal(size=(rows, 12)) for _ in "ab"
    ]
    tables[1][:, 3] += shift * wine[:, 3].std()
    return tuple(pd.DataFrame(table.round(4)).add_prefix("x") for table in tables)


def many_columns(rng, changed=0):
    """The first components of the digits with noise, in 100 mixed columns."""
    digits = load_digits().data @ rng.normal(size=(64, 100))
    a, b = halves(pd.DataFrame(digits + digits.std() * rng.normal(size=digits.shape)).add_prefix("c"), rng)
    b.iloc[:, :changed] += 0.4 * b.iloc[:, :changed].std()
    return a, b


def with_index(rng):
    a, b = halves(load_diabetes(as_frame=True).data, rng)
    a.insert(0, "index", np.arange(len(a)))
    b.insert(0, "index", np.arange(len(a), len(a) + len(b)))
    return a, b


def with_dates(rng, days=0):
    a, b = halves(load_wine(as_frame=True).data.iloc[:, :4], rng)
    for table, later in ((a, 0), (b, days)):
        offsets = pd.to_timedelta(rng.integers(60, size=len(table)) + later, unit="D")
        table["when"] = (pd.Timestamp("2024-01-01") + offsets).strftime("%Y-%m-%d")
    return a, b


def other_unit(rng):
    a, b = halves(load_breast_cancer(as_frame=True).data, rng)
    b["mean radius"] /= 2.54
    return a, b


def wider(rng):
    a, b = halves(load_wine(as_frame=True).data, rng)
    b["alcohol"] = b["alcohol"].mean() + 1.7 * (b["alcohol"] - b["alcohol"].mean())
    return a, b


def with_species(rng):
    iris = load_iris(as_frame=True)
    return halves(iris.data.assign(species=iris.target_names[iris.target]), rng)


PAIRS = {
    "colour from 24 to 53 of 89": (True, lambda rng: with_colour(rng, (24, 53))),
    "5 % missing in one": (True, lambda rng: with_gaps(rng, (0.0, 0.05))),
    "90 % missing, all shifted": (True, lambda rng: mostly_missing(rng, 0.8)),
    "two of 30 columns shuffled": (True, shuffled),
    "200,000 rows, shift of 0.05": (True, lambda rng: many_rows(rng, 0.05)),
    "3 of 100 columns shifted": (True, lambda rng: many_columns(rng, 3)),
    "dates a month later": (True, lambda rng: with_dates(rng, 30)),
    "a column in another unit": (True, other_unit),
    "a column 1.7 times as wide": (True, wider),
    "half of the categories renamed": (True, lambda rng: renamed(rng)),
    "nothing: colour": (False, with_colour),
    "nothing: 10 % missing in both": (False, lambda rng: with_gaps(rng, (0.1, 0.1))),
    "nothing: 90 % missing": (False, mostly_missing),
    "nothing: 30 columns": (False, lambda rng: shuffled(rng, 0)),
    "nothing: 200,000 rows": (False, many_rows),
    "nothing: 100 columns": (False, many_columns),
    "nothing: an index column": (False, with_index),
    "nothing: dates": (False, with_dates),
    "nothing: species": (False, with_species),
    "nothing: digits": (False, lambda rng: halves(pd.DataFrame(load_digits().data).add_prefix("pixel "), rng)),
}


def renamed(rng):
    a, b = with_species(rng)
    b["species"] = b["species"].mask((b["species"] == "setosa") & (rng.random(len(b)) < 0.5), "Setosa")
    return a, b


def by_compare(a, b, folder):
    """The answer of the command, as JSON."""
    paths = [str(Path(folder) / name) for name in ("a.csv", "b.csv")]
    for table, path in zip((a, b), paths, strict=True):
        table.to_csv(path, index=False)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main(["compare", *paths, "--json"])
    return json.loads(said.getvalue())


def by_smirnov(a, b):
    """The smallest p-value of a KS test a column of numbers, after Holm's correction."""
    pvalues = [stats.ks_2samp(a[c].dropna(), b[c].dropna()).pvalue for c in a if is_number(a[c])]
    return float(holm(pvalues).min()) if pvalues else 1.0


def by_chi_squared(a, b):
    """The smallest p-value of a chi-squared test a column of categories, after Holm's correction."""
    pvalues = []
    for name in a:
        if not is_number(a[name]) and name != "when":
            counts = pd.concat([a[name].value_counts(), b[name].value_counts()], axis=1).fillna(0).to_numpy()
            pvalues.append(stats.chi2_contingency(counts).pvalue)
    return float(holm(pvalues).min()) if pvalues else 1.0


def by_forest(a, b, rng):
    """Are held-out rows of the second table given higher probabilities? Mann and Whitney's test."""
    kept = [table.sample(min(len(table), MOST_ROWS_OF_FOREST), random_state=0) for table in (a, b)]
    pooled = pd.concat(kept)
    if "when" in pooled:
        pooled["when"] = pd.to_datetime(pooled["when"]).astype("int64")
    X = pd.get_dummies(pooled).to_numpy(float)
    y = np.repeat([0, 1], [len(table) for table in kept])
    order = rng.permutation(len(y))
    train, held = order[: len(y) // 2], order[len(y) // 2 :]
    forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0).fit(X[train], y[train])
    scores = forest.predict_proba(X[held])[:, 1]
    return float(stats.mannwhitneyu(scores[y[held] == 1], scores[y[held] == 0], alternative="greater").pvalue)


def is_number(column):
    return column.dtype.kind in "fiu"


def pairs():
    """Print what each test says on each pair, then the counts."""
    print(f"{'pair':32} {'compare':>9} {'KS':>9} {'chi2':>9} {'forest':>9}   compare names")
    found = []
    for number, (name, (differs, make)) in enumerate(PAIRS.items()):
        rng = np.random.default_rng([7, number])
        a, b = make(rng)
        with tempfile.TemporaryDirectory() as folder:
            said = by_compare(a, b, folder)
        others = (by_smirnov(a, b), by_chi_squared(a, b), by_forest(a, b, rng))
        found.append((differs, [said["pvalue"], *others]))
        pvalues = " ".join(f"{p:9.2g}" for p in found[-1][1])
        print(f"{name:32} {pvalues}   {'; '.join(findings(said)) or '-'}", flush=True)
    for k, test in enumerate(("compare", "KS with Holm", "chi-squared with Holm", "random forest")):
        hits, alarms = (sum(p[k] <= LEVEL for d, p in found if d == truth) for truth in (True, False))
        print(f"{test}: {hits} of 10 changes found, {alarms} of 10 false alarms")


SMALL = (
    "nothing: colour",
    "nothing: 10 % missing in both",
    "nothing: an index column",
    "nothing: dates",
    "nothing: species",
)


def level(repetitions):
    """Print how often ``compare`` finds a difference where there is none."""
    for name in SMALL:
        alarms = 0
        for seed in range(repetitions):
            with tempfile.TemporaryDirectory() as folder:
                alarms += by_compare(*PAIRS[name][1](np.random.default_rng([8, seed])), folder)["differs"]
        print(f"{name}: {alarms} false alarms in {repetitions} draws at level {LEVEL:g}", flush=True)


def findings(said):
    """What the command names."""
    columns = [column["name"] for column in said["columns"] if column["differs"]]
    gaps = [f"{c['name']} (missing)" for c in said["columns"] if c.get("missing", {}).get("differs")]
    named = [" ~ ".join(pair["names"]) for pair in said["pairs"] if pair["differs"]]
    return [*columns[:4], *gaps[:4], *named[:2], *(["…"] if len(columns) > 4 or len(named) > 2 else [])]


def timings(gigabyte):
    """Seconds and memory of three comparisons."""
    rng = np.random.default_rng(0)
    cases = {"digits, 1,797 x 64": halves(pd.DataFrame(load_digits().data).add_prefix("pixel "), rng)}
    cases["200,000 x 12, twice"] = many_rows(rng, 0.05)
    for name, (a, b) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            start, used = time.perf_counter(), time.process_time()
            by_compare(a, b, folder)
            print(
                f"{name}: {time.perf_counter() - start:.1f} s, CPU {time.process_time() - used:.1f} s (writing CSV too)"
            )
    if gigabyte:
        large_file()


def large_file():
    """One CSV file of 1 GB against a small one."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        columns = ", ".join(f"round(random() * {10 ** (i % 4)}, 5) AS c{i}" for i in range(11))
        for name, rows in (("a", 10_500_000), ("b", 200_000)):
            query = (
                f"SELECT {columns}, ['red', 'green', 'blue'][1 + (random() * 3)::INT % 3] AS colour FROM range({rows})"
            )
            duckdb.sql(f"COPY ({query}) TO '{folder}/{name}.csv'")
        size = (Path(folder) / "a.csv").stat().st_size
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            main(["compare", f"{folder}/a.csv", f"{folder}/b.csv"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"{size / 1e9:.2f} GB of CSV: {time.perf_counter() - start:.1f} s, peak memory {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("pairs", "level", "timings"), default="pairs")
    parser.add_argument("--repetitions", type=int, default=40, help="draws of each pair for the level; default 40")
    parser.add_argument("--no-large", action="store_true", help="leave out the file of 1 GB")
    options = parser.parse_args()
    if options.what == "pairs":
        pairs()
    elif options.what == "level":
        level(options.repetitions)
    else:
        timings(not options.no_large)

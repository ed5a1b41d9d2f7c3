"""``mh.compare`` on twenty awkward pairs of tables, beside the tests that people use.

    python benchmarks/tables.py            the twenty pairs: what each test says, through files and data frames
    python benchmarks/tables.py timings    3,000 x 20, 200,000 x 12 and 300,000 x 12 rows, and a CSV file of 1 GB
    python benchmarks/tables.py memory     peak memory on Parquet files with 4 and 16 million rows
    python benchmarks/tables.py wide       300 rows of 20,000 columns
    python benchmarks/tables.py rivals     evidently, deepchecks and pointblank on the same tables

``benchmarks/tables_level.py`` measures false alarms, errors at the bound of at_least, and power.

The rivals hardly go into one environment. ``--python PATH`` names a Python that has one or more of them, and may be
given several times, as may paths in the variable MUHAT_RIVALS; without either they are looked for beside muhat.

The tables are made from scikit-learn's data. Ten pairs differ and ten do not. Each line has the p-value of ``compare``,
of a Kolmogorov-Smirnov test per column with Holm's correction, of chi-squared tests of the categories with Holm's
correction, and of a random forest that tells the tables apart on held-out rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from tables_level import NULLS

import muhat as mh

LEVEL = 0.05

FORMS = 40
"""Tables in which nothing differs that rivals are shown, of the forms of ``tables_level.py``."""


def holm(pvalues):
    """P-values after Holm's correction, in ascending order."""
    ranked = np.sort(pvalues)
    return np.maximum.accumulate(ranked * np.arange(len(ranked), 0, -1)).clip(max=1.0)


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
        table["when"] = pd.Timestamp("2024-01-01") + offsets
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
    """The comparison of the tables in files."""
    paths = [Path(folder) / name for name in ("a.csv", "b.csv")]
    for table, path in zip((a, b), paths, strict=True):
        table.to_csv(path, index=False)
    return mh.compare(*paths, random_state=0)


def forms(a, b):
    """The same tables as frames of other libraries."""
    import duckdb
    import polars as pl
    import pyarrow as pa

    arrow = [pa.Table.from_pandas(table, preserve_index=False) for table in (a, b)]
    return {
        "pandas": (a, b),
        "polars": tuple(map(pl.from_pandas, (a, b))),
        "pyarrow": tuple(arrow),
        "duckdb": tuple(map(duckdb.from_arrow, arrow)),
    }


def answer(result):
    """What must be the same for all forms."""
    return (result.pvalue, result.joint.pvalue, [(c.name, c.pvalue, c.effect) for c in result.columns])


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
    found, identical = [], 0
    for number, (name, (differs, make)) in enumerate(PAIRS.items()):
        rng = np.random.default_rng([7, number])
        a, b = make(rng)
        with tempfile.TemporaryDirectory() as folder:
            said = by_compare(a, b, folder)
        frames = {form: mh.compare(*tables, random_state=0) for form, tables in forms(a, b).items()}
        different = [form for form, result in frames.items() if answer(result) != answer(said)]
        identical += not different
        if different:
            print(f"  other answers than files: {different}")
        others = (by_smirnov(a, b), by_chi_squared(a, b), by_forest(a, b, rng))
        found.append((differs, [said.pvalue, *others]))
        pvalues = " ".join(f"{p:9.2g}" for p in found[-1][1])
        print(f"{name:32} {pvalues}   {'; '.join(findings(said)) or '-'}", flush=True)
    print(f"identical answers through CSV files, pandas, polars, pyarrow and DuckDB: {identical} of {len(PAIRS)} pairs")
    for k, test in enumerate(("compare", "KS with Holm", "chi-squared with Holm", "random forest")):
        hits, alarms = (sum(p[k] <= LEVEL for d, p in found if d == truth) for truth in (True, False))
        print(f"{test}: {hits} of 10 changes found, {alarms} of 10 false alarms")


def mixed(rng, n):
    """Numbers, categories, dates and truth values, some missing."""
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "x": x,
            "y": x + rng.normal(size=n),
            "size": rng.lognormal(size=n).round(1),
            "kind": rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(90, size=n), unit="D"),
            "flag": rng.random(n) < 0.3,
        }
    )
    for name in ("y", "kind", "day"):
        table[name] = table[name].mask(rng.random(n) < 0.1)
    return table


def findings(result):
    """What the comparison names."""
    columns = [column.name for column in result.significant_columns]
    gaps = [f"{name} (missing)" for name, part in result.missing.items() if part in result.named([part])]
    named = [" ~ ".join(pair.names) for pair in result.significant_pairs]
    return [*columns[:4], *gaps[:4], *named[:2], *(["…"] if len(columns) > 4 or len(named) > 2 else [])]


def cpu(call):
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def timings(gigabyte):
    """CPU seconds of comparisons of frames and of files."""
    rng = np.random.default_rng(0)
    small = [pd.DataFrame(rng.normal(size=(3000, 20))).add_prefix("x") for _ in "ab"]
    many = [pd.DataFrame(rng.normal(size=(300_000, 12))).add_prefix("x") for _ in "ab"]
    cases = {"3,000 x 20": (small, 0.0), "200,000 x 12": (many_rows(rng, 0.05), 0.0)}
    cases["300,000 x 12, moved by .02 sd, at_least 5 %"] = ([many[0], many[1] + 0.02], 0.05)
    for name, ((a, b), at_least) in cases.items():
        frames, result = cpu(lambda a=a, b=b, at_least=at_least: mh.compare(a, b, at_least, random_state=0))
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / f"{name}.csv" for name in "ab"]
            for table, path in zip((a, b), paths, strict=True):
                table.to_csv(path, index=False)
            files, _ = cpu(lambda paths=paths, at_least=at_least: mh.compare(*paths, at_least, random_state=0))
        print(f"{name}: frames {frames:.1f} s, CSV files {files:.1f} s of CPU; differs: {result.differs}", flush=True)
    small_effect()
    if gigabyte:
        large_file()


def rivals(repetitions, pythons):
    """Verdicts of other libraries on the twenty pairs and on mixed tables, each in the Python that has it."""
    drawn = {name: make(np.random.default_rng([7, k])) for k, (name, (_, make)) in enumerate(PAIRS.items())}
    truth = {name: differs for name, (differs, _) in PAIRS.items()}
    for seed in range(repetitions):
        rng = np.random.default_rng([10, seed])
        a, b, c = (mixed(rng, 3000) for _ in "abc")
        c["y"] = rng.permutation(c["y"].to_numpy())
        drawn |= {f"null {seed}": (a, b), f"shuffled {seed}": (a, c)}
    plain = [make for make, options in NULLS.values() if not options]  # neither strata nor clusters
    for k, make in enumerate((3 * plain)[:FORMS]):
        drawn[f"form {k}"] = make(np.random.default_rng([11, k]))
    verdicts = [own_verdict(name, *tables) for name, tables in drawn.items()]
    with tempfile.TemporaryDirectory() as folder:
        write_pairs(drawn, Path(folder))
        for python in pythons:
            command = [python, str(Path(__file__).with_name("rival_tables.py")), folder]
            said = subprocess.run(command, capture_output=True, text=True, check=False)
            verdicts += [json.loads(line) for line in said.stdout.splitlines() if line.startswith('{"tool"')]
            if said.returncode:
                print(f"{python}: {said.stderr.strip().splitlines()[-1]}")
    print_verdicts(pd.DataFrame(verdicts), truth)


def own_verdict(name, a, b):
    """What ``compare`` says, in the form of the other libraries' verdicts."""
    seconds, result = cpu(lambda: mh.compare(a, b, random_state=0))
    return {"tool": "muhat", "pair": name, "differs": bool(result.differs), "seconds": seconds}


def write_pairs(drawn, folder):
    """The pairs as CSV files, and a list of them with their columns of dates and of categories."""
    listed = []
    for k, (name, tables) in enumerate(drawn.items()):
        files = [f"{k}{side}.csv" for side in "ab"]
        for table, file in zip(tables, files, strict=True):
            table.to_csv(folder / file, index=False)
        dates = [column for column in tables[0] if column in ("when", "day")]
        categories = [c for c in tables[0] if c not in dates and not is_number(tables[0][c])]
        listed.append([name, files, dates, categories])
    (folder / "pairs.json").write_text(json.dumps(listed))


def print_verdicts(verdicts, truth):
    """Right answers of each tool on the twenty pairs, and its counts over the mixed tables."""
    for tool, said in verdicts.groupby("tool", sort=False):
        differs = dict(zip(said["pair"], said["differs"], strict=True))
        missed = [name for name in truth if truth[name] and differs.get(name) is False]
        alarms = [name for name in truth if not truth[name] and differs.get(name) is True]
        counts = [
            [differs[name] is True for name in differs if name.startswith(start)]
            for start in ("null ", "shuffled ", "form ")
        ]
        seconds = said[said["pair"].str.startswith("null ")]["seconds"].mean()
        answered = sum(name in differs for name in truth)
        print(f"{tool}: {answered} of 20 pairs answered, missed {missed}, false alarms {alarms}")
        print(
            f"  mixed tables of 3,000 rows: {sum(counts[0])} false alarms of {len(counts[0])}, shuffled column found "
            f"in {sum(counts[1])} of {len(counts[1])}, {seconds:.2f} s of CPU each"
        )
        print(f"  sparse, unequal and other nulls: {sum(counts[2])} false alarms of {len(counts[2])}", flush=True)


def memory(sizes):
    """Peak memory and time of the command on folders of Parquet files of 12 columns, one of them text."""
    import duckdb

    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            for table, shift in (("a", 0.0), ("b", 0.01)):
                Path(folder, table).mkdir()
                columns = ", ".join(f"random() + {shift if i == 3 else 0} AS x{i}" for i in range(11))
                colour = "['red', 'green', 'blue'][1 + (random() * 3)::INT % 3] AS colour"
                for part in range(4):
                    target = f"{folder}/{table}/{part}.parquet"
                    duckdb.sql(f"COPY (SELECT {columns}, {colour} FROM range({rows // 4})) TO '{target}'")
            size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
            tables = [f"{folder}/{table}/*.parquet" for table in "ab"]
            with Path(folder, "said").open("w") as said:
                command = [sys.executable, "-m", "muhat", "compare", *tables]
                process = subprocess.Popen(command, stdout=said, stderr=subprocess.DEVNULL)
                _, status, used = os.wait4(process.pid, 0)
            answer = " ".join(Path(folder, "said").read_text().split()).replace(folder, "").partition(").")[0]
        print(
            f"2 x {rows:,} rows, {size / 1e9:.2f} GB of Parquet: exit code {os.waitstatus_to_exitcode(status)}, "
            f"peak memory {used.ru_maxrss / 1e6:.2f} GB, {used.ru_utime + used.ru_stime:.0f} s of CPU; {answer})",
            flush=True,
        )


def wide(rows=300, columns=20_000):
    """Time of a comparison of few rows and very many columns."""
    a, b = np.random.default_rng(0).normal(size=(2, rows, columns))
    seconds, result = cpu(lambda: mh.compare(a, b, random_state=0))
    print(f"2 x {rows} rows of {columns:,} columns: {seconds:.0f} s of CPU; differs: {result.differs}", flush=True)


def small_effect():
    """The command on 300,000 rows of 12 columns that moved by .02 standard deviations: exit code and sentences."""
    import duckdb
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        for name, moved in (("a", 0.0), ("b", 0.02)):
            rng = np.random.default_rng([12, round(100 * moved)])
            table = pa.table({f"x{i}": rng.normal(moved, 1, 300_000) for i in range(12)})
            duckdb.from_arrow(table).write_csv(f"{folder}/{name}.csv")
        for options in (["--at-least", "5%"], []):
            command = [sys.executable, "-m", "muhat", "compare", f"{folder}/a.csv", f"{folder}/b.csv", *options]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            said = subprocess.run(command, capture_output=True, text=True, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"muhat compare a.csv b.csv {' '.join(options)}: exit code {said.returncode}, {seconds:.1f} s of CPU")
            print("\n".join(f"    {line}" for line in said.stdout.splitlines()[:3]), flush=True)


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
        mh.compare(f"{folder}/a.csv", f"{folder}/b.csv", random_state=0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"{size / 1e9:.2f} GB of CSV: {time.perf_counter() - start:.1f} s, peak memory {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("pairs", "timings", "memory", "wide", "rivals"), default="pairs")
    parser.add_argument("--repetitions", type=int, default=40, help="draws of rivals; default 40")
    parser.add_argument("--rows", type=int, nargs="+", help="rows of the tables of memory")
    parser.add_argument("--python", action="append", metavar="PATH", help="a Python with rivals; may be repeated")
    parser.add_argument("--no-large", action="store_true", help="leave out the file of 1 GB")
    options = parser.parse_args()
    if options.what == "pairs":
        pairs()
    elif options.what == "rivals":
        pythons = os.environ.get("MUHAT_RIVALS", sys.executable).split(os.pathsep)
        rivals(options.repetitions, options.python or pythons)
    elif options.what == "memory":
        memory(options.rows or (4_000_000, 16_000_000))
    elif options.what == "wide":
        wide()
    else:
        timings(not options.no_large)

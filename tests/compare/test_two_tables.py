"""mh.compare: what it finds, effects that matter, strata, and the same answer for all forms of a table."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import muhat as mh

pytestmark = pytest.mark.filterwarnings("ignore:.*bandwidth.*:UserWarning")


def customers(rng, n, age=0.0, basic=0.4, lost=0.1, sign=1.0):
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "age": rng.normal(40 + age, 9, n).round(2),
            "plan": rng.choice(["basic", "plus", "pro"], n, p=[basic, 0.3, 0.7 - basic]),
            "usage": x,
            "cost": sign * x + rng.normal(size=n),
            "joined": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60 * 86400, n), unit="s"),
            "income": np.where(rng.random(n) < lost, np.nan, rng.lognormal(9, 1, n)),
            "active": rng.random(n) < 0.4,
        }
    )


def names(findings):
    return [finding.name for finding in findings]


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    return customers(rng, 400), customers(rng, 300, age=6.0, lost=0.4, sign=-1.0)


@pytest.fixture(scope="module")
def result(tables):
    return mh.compare(*tables, names=("may", "june"), random_state=0, n_resamples=199)


def test_columns_missing_values_and_pairs_are_named(result):
    assert result.differs
    assert names(result.significant_columns) == ["age"]
    age = result.columns[[c.name for c in result.columns].index("age")]
    assert (age.effect_name, age.kind) == ("KS distance", "number")
    assert 0 < age.interval.low < age.effect < age.interval.high < 1
    lost = result.missing["income"]
    assert lost.effect_name == "difference of shares"
    assert lost.adjusted_pvalue < 0.01
    assert lost.effect == pytest.approx(abs(lost.shares[0] - lost.shares[1]))
    (pair,) = result.significant_pairs
    assert pair.names == ("usage", "cost")
    assert pair.correlations[0] > 0.5 > -0.5 > pair.correlations[1]
    assert result.joint.pvalue == 1 / 200
    assert {c.name: c.effect_name for c in result.columns}["plan"] == "total variation"


def test_every_sentence_names_tables_and_columns_of_the_user(result):
    text = str(result)
    assert text.startswith("may and june differ (p = ")
    assert re.search(
        r"1 of 7 columns differs significantly: age \(KS distance 0\.\d+, 0\.\d+ to 0\.\d+; place: higher in june\)",
        " ".join(text.split()),
    )
    assert re.search(r"income is missing in \d+ % and \d+ % of the rows", text)
    assert "Rows of may most unlike june" in text
    for foreign in (" X ", " Y ", "column 0", "feature"):
        assert foreign not in text


def test_at_least_names_what_exceeds_it(tables):
    small, large = (mh.compare(*tables, at_least, random_state=0, n_resamples=99) for at_least in (0.05, 0.6))
    assert small.differs
    assert names(small.named(small.columns)) == ["age"]
    assert small["age"].interval.low > 0.05 >= max(c.interval.low for c in small.columns if c.name != "age")
    assert "for it the effect exceeds 5 %: age" in " ".join(str(small).split())
    assert not large.differs
    text = " ".join(str(large).split())
    assert text.startswith("No effect between a and b is shown to exceed 60 %")
    assert "1 of 7 columns differs significantly; for none of them the effect is shown to exceed 60 %: age" in text
    assert "changed, to which the bound does not apply: usage and cost" in text


def test_many_rows_make_small_effects_significant_and_not_important():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 60_000, 3))
    options = {"random_state": 0, "n_resamples": 59}
    plain, bounded = (mh.compare(a, b + 0.05, at_least, **options) for at_least in (0.0, 0.05))
    assert plain.differs
    assert not bounded.differs
    assert bounded.is_significant
    text = " ".join(str(bounded).split())
    assert "3 of 3 columns differ significantly; for none of them the effect is shown to exceed 5 %" in text


@pytest.mark.slow
def test_the_level_is_kept_as_a_whole():
    """Of 60 pairs at level 0.1, more than 14 findings have a chance below 0.1 %, with and without a bound."""
    rng = np.random.default_rng(2)
    found = np.zeros(2)
    for seed in range(60):
        a, b = (customers(rng, n) for n in (80, 60))
        for k, at_least in enumerate((0.0, 0.02)):
            found[k] += mh.compare(a, b, at_least, 0.1, random_state=seed, n_resamples=99).differs
    assert (found <= 14).all(), found


def forms(frame, folder, name):
    """The same table in all forms."""
    pl, pa, duckdb = (pytest.importorskip(library) for library in ("polars", "pyarrow", "duckdb"))
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for suffix in ("csv", "csv.gz"):
        frame.to_csv(folder / f"{name}.{suffix}", index=False)
    frame.to_csv(folder / f"{name}.txt", index=False, sep=";", decimal=",")
    frame.to_parquet(folder / f"{name}.parquet")
    rows = frame.assign(joined=frame["joined"].astype(str)).astype(object).where(frame.notna(), None)
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows.to_dict("records"))))
    for part in range(3):
        frame.iloc[100 * part : 100 * (part + 1) if part < 2 else None].to_parquet(folder / f"{name}-{part}.parquet")
    polars = pl.from_pandas(frame)
    return {
        "pandas": frame,
        "polars": polars,
        "lazy": polars.lazy(),
        "pyarrow": arrow,
        "duckdb": duckdb.from_arrow(arrow),
        **{suffix: folder / f"{name}.{suffix}" for suffix in ("csv", "csv.gz", "txt", "parquet", "jsonl")},
        "pattern": str(folder / f"{name}-*.parquet"),
    }


def test_all_forms_of_a_table_give_one_answer(tables, tmp_path):
    found = {}
    a, b = (forms(table, tmp_path, name) for table, name in zip(tables, "ab", strict=True))
    for form in a:
        result = mh.compare(a[form], b[form], random_state=0, n_resamples=99)
        found[form] = (
            result.pvalue,
            result.joint.pvalue,
            result.joint.statistic,
            [(c.name, c.kind, c.effect, c.pvalue, c.interval, c.counts.missing_shares) for c in result.columns],
            [(p.names, p.pvalue, p.correlations) for p in result.pairs],
            [row.values for row in result.rows],
        )
    for form, answer in found.items():
        assert answer == found["pandas"], form


def test_mixed_forms_and_order_of_columns(tables, tmp_path):
    tables[1].to_parquet(tmp_path / "b.parquet")
    mixed = mh.compare(tables[0][tables[0].columns[::-1]], tmp_path / "b.parquet", random_state=0, n_resamples=19)
    plain = mh.compare(*tables, random_state=0, n_resamples=19)
    assert mixed.names == ("a", "b.parquet")
    assert {c.name: c.pvalue for c in mixed.columns} == {c.name: c.pvalue for c in plain.columns}


def test_strata_take_out_what_they_explain():
    rng = np.random.default_rng(3)
    site = [rng.choice(["n", "s"], 600, p=p) for p in ([0.8, 0.2], [0.3, 0.7])]
    a, b = (
        pd.DataFrame({"site": s, "x": rng.normal(size=600) + 2 * (s == "s"), "y": rng.normal(size=600)}) for s in site
    )
    options = {"random_state": 0, "n_resamples": 199}
    assert mh.compare(a, b, exclude=["site"], **options).differs
    within = mh.compare(a, b, strata="site", **options)
    assert not within.differs
    assert [column.name for column in within.columns if column.name == "site"] == []
    assert "within strata" in "".join(within.notes)
    b["x"] += np.where(b["site"] == "s", 0.8, 0.0)
    moved = mh.compare(a, b, strata="site", **options)
    assert names(moved.significant_columns) == ["x"]
    assert 0.1 < moved.columns[0].effect < 0.4


def test_categories_that_strata_determine_are_no_difference():
    rng = np.random.default_rng(0)
    a, b = ({"x": rng.normal(size=60), "country": ["a"] * n + ["b"] * (60 - n)} for n in (20, 40))
    for table in (a, b):
        table["money"] = np.where(np.array(table["country"]) == "a", "euro", "pound")
    found = mh.compare(a, b, strata="country", random_state=0, n_resamples=99)
    assert found.pvalue > 0.05
    assert {each.name: each.effect for each in found.columns}["money"] == 0


@pytest.mark.slow
def test_strata_keep_the_level():
    """Of 60 pairs at level 0.1, more than 14 findings have a chance below 0.1 %."""
    rng = np.random.default_rng(4)
    found = 0
    for seed in range(60):
        sites = [rng.choice(list("abc"), n, p=p) for n, p in ((150, [0.6, 0.3, 0.1]), (90, [0.1, 0.3, 0.6]))]
        a, b = ({"s": s, "x": rng.exponential(size=len(s)) + (s == "a")} for s in sites)
        for table in (a, b):
            table["c"] = np.where(rng.random(len(table["s"])) < 0.2 + 0.5 * (table["s"] == "b"), "u", "v")
        found += mh.compare(a, b, level=0.1, strata="s", random_state=seed, n_resamples=99).differs
    assert found <= 14


def test_numbers_as_categories_and_marks_of_missing_values(tmp_path):
    rng = np.random.default_rng(5)
    a, b = ({"code": rng.integers(1, 4, 200), "dose": rng.normal(size=200).round(3).tolist()} for _ in "ab")
    b["dose"][:60] = ["n.d."] * 60
    for form in ("frames", "files"):
        tables = [pd.DataFrame(a), pd.DataFrame(b)]
        if form == "files":
            for name, table in zip("ab", tables, strict=True):
                table.to_csv(tmp_path / f"{name}.csv", index=False)
            tables = [tmp_path / "a.csv", tmp_path / "b.csv"]
        result = mh.compare(*tables, categorical=["co*"], missing=["n.d."], random_state=0, n_resamples=19)
        kinds = {column.name: column.kind for column in result.columns}
        assert kinds == {"code": "category", "dose": "number"}
        assert result.missing["dose"].shares == (0.0, 0.3)
    result = mh.compare(
        a, {**b, "dose": [-999.0 if x == "n.d." else x for x in b["dose"]]}, missing=[-999], n_resamples=9
    )
    assert result.missing["dose"].shares == (0.0, 0.3)
    with pytest.raises(ValueError, match=r"line 2, column 'dose': 'n.d.' is not a number; .*missing="):
        mh.compare(tmp_path / "a.csv", tmp_path / "b.csv")


def test_the_same_rows_are_recognised(tables):
    a = tables[0]
    for same in (a, a.copy()):
        result = mh.compare(a, same, level=0.9, random_state=0, n_resamples=19)
        assert (result.identical, result.differs, result.pvalue) == (True, False, 1.0)
        assert str(result).startswith("a and b hold the same 400 rows: all values")
        assert mh.compare(a, same, strata="plan", random_state=0, n_resamples=19).identical
    other = mh.compare(a, a.sample(frac=1, random_state=0), level=0.9, random_state=0, n_resamples=19)
    assert (other.identical, other.differs, other.pvalue) == (False, False, 1.0), "in another order"
    relabelled = a.assign(plan=a["plan"].to_numpy()[np.arange(400) ^ 1])
    swapped = a.assign(usage=a["usage"].to_numpy()[np.arange(400) ^ 1])
    assert not mh.compare(a, relabelled, strata="plan", random_state=0, n_resamples=19).identical
    assert not mh.compare(a, swapped, random_state=0, n_resamples=19).identical


def test_columns_that_are_left_out_get_a_word():
    rng = np.random.default_rng(6)
    n = 150
    a, b = (
        {
            "id": np.arange(n),
            "five": np.full(n, 5),
            "empty": np.full(n, np.nan),
            "who": [f"name {i}" for i in range(n)],
            "x": rng.normal(size=n),
            "list": [[1]] * n,
            "weight": [f"{70 + 0.1 * i:.1f} kg" for i in range(n)],
            "price": [f"{0.01 * i:.2f}" for i in range(n)],
            "kind": rng.normal(size=n) if first else ["a"] * n,
            f"only {first}": np.zeros(n),
        }
        for first in (True, False)
    )
    result = mh.compare(a, b, random_state=0, n_resamples=19)
    assert names(result.columns) == ["x"]
    notes = "\n".join(result.notes)
    assert "all their values are missing: 'empty'" in notes
    assert "a single value: 'five'" in notes
    assert "count the rows (name them in columns= to use them): 'id'" in notes
    assert "column 'who' is left out, because it holds 150 different texts" in notes
    reasons = {column.name: column.reason for column in result.not_compared}
    assert reasons["list"] == "it holds nested values"
    assert reasons["weight"] == (
        "it holds 150 different texts; texts such as '70.0 kg' look like numbers or dates: write these as 1234.5 and "
        "2025-12-31"
    )
    assert reasons["price"] == (
        "it holds 150 different texts; texts such as '0.00' look like numbers or dates: write these as 1234.5 and "
        "2025-12-31"
    )
    assert reasons["kind"] == "it holds numbers in a and text such as 'a' in b"
    assert reasons["only True"] == "only a has it"
    assert set(names(mh.compare(a, b, columns=["id", "x"], n_resamples=9).columns)) == {"id", "x"}


GOOD = {"x": [1.0, 2.0, 4.0], "y": [0.0, 1.0, 0.5]}
WRONG = {
    "no rows": (({"x": []}, GOOD), {}, "a has no rows"),
    "no columns": ((pd.DataFrame(index=range(4)), GOOD), {}, "has no columns"),
    "one row": ((GOOD, {"x": [1.0], "y": [2.0]}), {}, "b has 1 row, and a comparison needs at least 2"),
    "no common columns": ((GOOD, {"u": [1, 2]}), {}, r"no column in common: a has 'x', 'y' and b has 'u'; give"),
    "all missing": (
        ({"x": [None, None]}, {"x": [None, None]}),
        {},
        "no column is left .* all their values",
    ),
    "all equal": (({"x": [1, 1]}, {"x": [1, 1]}), {}, "no column is left .* a single value: 'x'"),
    "text against numbers": (({"x": ["a", "b"]}, {"x": [1, 2]}), {}, "'x': it holds text such as 'a' in a and numbers"),
    "a folder": ((".", GOOD), {}, "is a folder; name a file in it"),
    "no such file": (("none.csv", GOOD), {}, "none.csv cannot be read: No such file"),
    "no files of a pattern": (("none*.csv", GOOD), {}, "no file matches none"),
    "a name twice": ((pd.DataFrame([[1, 2]] * 3, columns=["x", "x"]), GOOD), {}, "'x' twice|column twice"),
    "widths of arrays": ((np.zeros((3, 2)), np.ones((3, 3))), {}, "2 and 3 columns; without names"),
    "array and frame": ((np.zeros((3, 2)), GOOD), {}, "b names its columns and a does not"),
    "columns": ((GOOD, GOOD), {"columns": ["z*"]}, r"columns='z\*': a has no such column; it has 'x', 'y'"),
    "exclude": ((GOOD, GOOD), {"exclude": ["q"]}, "exclude='q': a has no such column"),
    "exclude all": ((GOOD, GOOD), {"exclude": ["x", "y"]}, "no columns are left to use"),
    "strata": ((GOOD, GOOD), {"strata": "z"}, "strata='z': a has no such column"),
    "strata apart": ((GOOD, {"x": [7, 8], "y": [9, 9]}), {"strata": "x"}, "strata='x' has no value in common"),
    "names": ((GOOD, GOOD), {"names": ("u", "u")}, "must be 2 different names"),
    "names in one text": ((GOOD, GOOD), {"names": "ab"}, "names='ab' must be 2 different names"),
    "a misspelt name": (({"income": [1, 2]},) * 2, {"columns": ["incme"]}, r"such column \(did you mean 'income'\?\);"),
    "nothing": ((None, GOOD), {}, "a is None; pass a data frame"),
    "percent": ((GOOD, GOOD), {"at_least": "10%"}, "at_least='10%' must be a number"),
    "level": ((GOOD, GOOD), {"level": 0.0}, r"level=0.0 must be a number in \(0, 1\]"),
    "at_least": ((GOOD, GOOD), {"at_least": 1.5}, r"at_least=1.5 must be a number in \[0, 1\]"),
    "clusters": ((GOOD, GOOD), {"clusters": "z"}, "clusters='z': a has no such column"),
    "clusters in both": (
        ({"x": [1, 2, 3, 4], "w": [1, 1, 2, 2]}, {"x": [1, 2, 3, 4], "w": [2, 2, 3, 3]}),
        {"clusters": "w"},
        r"clusters='w': one label is in several tables.* \('2'\)",
    ),
    "clusters missing": ((GOOD, {**GOOD, "y": [0.3, None, 1]}), {"clusters": "y"}, "clusters='y' is missing in 1 row;"),
    "resamples": ((GOOD, GOOD), {"n_resamples": 0}, "n_resamples=0 must be a whole number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_with_its_name_and_a_remedy(name):
    tables, options, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        mh.compare(*tables, **options)


def test_columns_of_few_values_and_of_huge_scale():
    rng = np.random.default_rng(0)
    a, b = (
        {"few": rng.random(60) < p, "huge": 1e200 * rng.normal(size=60), "tiny": 1e-200 * rng.normal(size=60)}
        for p in (0.1, 0.9)
    )
    assert names(mh.compare(a, b, random_state=0, n_resamples=99).significant_columns) == ["few"]


def test_few_rows_and_columns_that_are_mostly_missing():
    rng = np.random.default_rng(0)
    few = mh.compare(rng.normal(size=(5, 60)), rng.normal(size=(5, 60)) + 9, random_state=0)
    assert len(few.significant_columns) == 60, "252 splits allow p-values of 2 / 252"
    a, b = (np.where(rng.random((300, 6)) < 0.9, np.nan, rng.normal(size=(300, 6)) + shift) for shift in (0, 2))
    a[:, 0][~np.isnan(a[:, 1])] = np.nan
    sparse = mh.compare(a, b, random_state=0, n_resamples=99)
    assert len(sparse.significant_columns) == 6
    assert sparse.pairs[-1].pvalue == 1.0


@pytest.mark.slow
def test_ten_thousand_columns_come_to_an_end():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30, 10_000))
    b[:, 7] += 9
    result = mh.compare(a, b, random_state=0, n_resamples=99)
    assert result.columns[0].name == "column 7"
    assert result.differs


def ring_and_its_shuffled_copy(rows=300):
    """Tables that differ in nothing but a dependence without rank correlation."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, rows)
    ring = np.c_[np.cos(angles), np.sin(angles)] + 0.05 * rng.normal(size=(rows, 2))
    return ring, np.c_[ring[:, 0], rng.permutation(ring[:, 1])]


def test_by_default_permutations_suffice_for_the_level():
    tables = ring_and_its_shuffled_copy()
    found = mh.compare(*tables, level=1e-3, random_state=0)
    assert found.differs
    assert not found.significant_columns
    assert not found.significant_pairs
    few = mh.compare(*tables, level=1e-3, random_state=0, n_resamples=499)
    assert not few.differs
    assert "no difference can be found at level 0.001" in few.notes[0]
    assert "below 0.002" in few.notes[0]
    assert "take more permutations (n_resamples=)" in few.notes[0]
    assert not any("permutations" in note for note in found.notes)
    tiny = mh.compare([[1.0], [2.0], [3.0]], [[4.0], [5.0]], random_state=0)
    assert any("so few rows" in note and "n_resamples" not in note for note in tiny.notes)


@pytest.mark.parametrize("path", ["none.csv", "none*.csv"])
def test_a_file_that_is_not_there_is_a_file_not_found_error(path):
    with pytest.raises(FileNotFoundError, match="none"):
        mh.compare(path, GOOD)


def test_a_note_says_that_few_rows_show_little():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    note = "b has 3 rows: with fewer than 20, large differences may go unseen too"
    assert note in mh.compare(rows[:50], rows[50:53], random_state=0).notes
    assert not any("fewer than" in note for note in mh.compare(rows[:30], rows[30:], random_state=0).notes)


# ------------------------------------------------------------------------------------------- tables longer than memory


@pytest.fixture
def in_parts(monkeypatch):
    """Tables of any length are read in parts of 64 rows, with thresholds at so many values of as many rows."""

    def set_probes(count):
        for name, value in {"LONG": 0, "BATCH": 64, "PROBES": count}.items():
            monkeypatch.setattr(f"muhat.apps.compare.scan.{name}", value)
        monkeypatch.setattr("muhat.apps.compare.column_counts.MOST_VALUES", count)

    return set_probes


def numbers_of(result):
    columns = [(c.name, c.kind, c.effect, c.interval, c.pvalue, c.counts.missing_shares) for c in result.columns]
    return result.pvalue, result.joint.pvalue, columns, [pair.pvalue for pair in result.pairs], result.identical


@pytest.mark.parametrize(
    "options", [{}, {"at_least": 0.02}, {"strata": "plan"}, {"missing": ["pro"], "categorical": ["age"]}]
)
@pytest.mark.slow
def test_tables_in_parts_have_the_same_answer(options, tables, in_parts, tmp_path):
    """With a threshold at each value nothing is rounded; folders of Parquet files are read across their ends."""
    a, b = tables
    for name, table in zip("ab", tables, strict=True):
        for k in range(3):
            table.iloc[k * 140 : (k + 1) * 140].to_parquet(tmp_path / f"{name}{k}.parquet")
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    whole = mh.compare(a, b, random_state=0, n_resamples=19, **options)
    in_parts(700)
    for pair in (tables, *([tmp_path / f"{name}{form}" for name in "ab"] for form in ("*.parquet", ".csv"))):
        found = mh.compare(*pair, random_state=0, n_resamples=19, **options)
        assert numbers_of(found) == numbers_of(whole)
        moments = [[c.counts.moments for c in result.columns if c.counts.moments] for result in (found, whole)]
        np.testing.assert_allclose(*moments, rtol=1e-12)


def test_few_thresholds_understate_an_effect_a_little(in_parts):
    rng = np.random.default_rng(0)
    a, b = {"x": rng.normal(size=4000)}, {"x": rng.normal(0.1, 1, size=3000)}
    exact = mh.compare(a, b, random_state=0, n_resamples=9)["x"]
    in_parts(64)
    found = mh.compare(a, b, random_state=0, n_resamples=9)["x"]
    assert exact.effect - 0.05 < found.effect <= exact.effect
    assert found.counts.present == exact.counts.present
    np.testing.assert_allclose(found.counts.moments, exact.counts.moments, rtol=1e-12)


def test_rare_values_and_counters_of_rows_in_parts(in_parts):
    in_parts(8)
    a, b = ({"n": np.arange(400.0) + k, "flag": np.arange(400) != 7 + k, "x": np.arange(400) % 7} for k in (0, 400))
    result = mh.compare(a, b, random_state=0, n_resamples=9)
    assert set(names(result.columns)) == {"flag", "x"}
    assert any("count the rows" in note for note in result.notes)
    rare = mh.compare({"x": np.repeat([0.0, 1.0], [1, 399])}, {"x": np.ones(400)}, n_resamples=9)
    assert rare["x"].counts.moments[0].smallest == 0.0, "also where no sampled row has the value"


def test_columns_of_very_many_texts_are_left_out_unread(tables, tmp_path, monkeypatch, in_parts):
    for name, table in zip("ab", tables, strict=True):
        table.assign(who=[f"{name} {i}" for i in range(len(table))]).to_parquet(tmp_path / f"{name}.parquet")
    monkeypatch.setattr("muhat.apps.files.tables.MOST_TEXTS_HELD", 100)
    found = mh.compare(tmp_path / "a.parquet", tmp_path / "b.parquet", random_state=0, n_resamples=9)
    assert "column 'who' is left out, because it holds 400 different texts" in found.notes
    assert set(names(found.columns)) == set(tables[0].columns)
    in_parts(400)
    codes = [{"code": np.arange(500) % 300, "x": np.arange(500) % 9} for _ in "ab"]
    found = mh.compare(*codes, categorical=["code"], random_state=0, n_resamples=9)
    assert "column 'code' is left out, because it holds 300 different texts" in found.notes

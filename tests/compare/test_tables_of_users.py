"""What users' tables bring: indices, ids, dates, clusters, years, rare values; each case was answered wrongly once."""

import numpy as np
import pandas as pd
import pytest
from table_files import write

import muhat as mh


def column_names(result):
    return {column.name for column in result.columns}


def noise(rng, n, **more):
    return pd.DataFrame({"x": rng.normal(size=n), "y": rng.normal(size=n), **more})


def as_file(table, path, **options):
    (table.to_csv if path.suffix == ".csv" else table.to_parquet)(path, **options)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_saved_index_makes_no_difference(tmp_path, suffix):
    """Also one that counts rows no longer, since some were dropped."""
    rng = np.random.default_rng(0)
    table = noise(rng, 240)
    table = table[rng.random(240) < 0.9]
    a, b = (as_file(part, tmp_path / f"{k}.{suffix}") for k, part in enumerate((table[:100], table[100:])))
    result = mh.compare(a, b, random_state=0, n_resamples=99)
    assert not result.differs
    assert column_names(result) == {"x", "y"}
    assert any("nobody named them and they increase with the rows" in note for note in result.notes)
    index = "column 1" if suffix == "csv" else "__index_level_0__"
    assert column_names(mh.compare(a, b, columns=["x", index], random_state=0, n_resamples=19)) == {"x", index}


@pytest.mark.parametrize(
    ("column", "shuffled", "counted"),
    [
        (np.repeat([1997, 2007], 150), False, False),
        (np.repeat(["before", "after"], 150), False, False),
        (np.cumsum(np.r_[0:300]), False, False),
        (pd.date_range("2024-01-01", periods=300), False, False),
        (pd.date_range("2024-01-01", periods=300), True, False),
        (np.r_[0:300.0] ** 1.5, True, True),  # numbers out of order may well be a measurement
        (np.repeat(["old", "old too", "new"], 100), False, True),
        (np.r_[0:149, 151, 150, 151:300] * 1.0, False, True),  # one value lies among the others
    ],
)
def test_columns_that_separate_the_tables_are_listed_and_not_counted(column, shuffled, counted):
    rng = np.random.default_rng(1)
    table = noise(rng, 300, part=column)
    a, b = table[:150], table[150:]
    if shuffled:
        a, b = a.sample(frac=1, random_state=0), b.sample(frac=1, random_state=1)
    for first, second in ((a, b), (b, a)):
        result = mh.compare(first, second, random_state=0, n_resamples=99)
        assert result.separating == (() if counted else ("part",))
        assert result.differs == counted
        assert ("part" in column_names(result)) == counted
        assert ("Not counted, because values of one table all lie above" in " ".join(str(result).split())) != counted
        asked = mh.compare(first, second, columns=["x", "part"], random_state=0, n_resamples=99)
        assert asked.differs


def test_a_column_that_separates_the_tables_counts_where_there_is_no_other():
    assert mh.compare({"x": np.arange(60) ** 2}, {"x": np.arange(60) ** 2 + 9999}, random_state=0).differs


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_ids_beyond_double_precision_are_no_equal_values(tmp_path, form):
    rng = np.random.default_rng(2)
    same = noise(rng, 80).round(6)
    tables = [same.assign(id=2**60 + shift + np.arange(80)) for shift in (0, 100)]
    if form != "frame":
        tables = [as_file(t, tmp_path / f"{k}.{form}", index=False) for k, t in enumerate(tables)]
    result = mh.compare(*tables, random_state=0, n_resamples=19)
    assert not result.identical
    assert [column.name for column in result.not_compared] == ["id"]
    assert result.not_compared[0].reason.startswith("it holds whole numbers beyond 2^53")


def test_labels_of_strata_are_data():
    table = {"x": np.arange(60) % 7, "y": np.arange(60) % 5}
    first, second = ({**table, "site": list(labels * 10)} for labels in ("uvuvuv", "uvvuuv"))
    assert mh.compare(first, dict(first), strata="site", random_state=0, n_resamples=19).identical
    assert not mh.compare(first, second, strata="site", random_state=0, n_resamples=19).identical


def test_a_category_that_is_constant_within_strata():
    rng = np.random.default_rng(3)
    a, b = (noise(rng, 80, country=["de", "ch"] * 40, currency=["eur", "chf"] * 40) for _ in "ab")
    result = mh.compare(a, b, strata="country", random_state=0, n_resamples=99)
    assert (result["currency"].effect, result["currency"].pvalue) == (0.0, 1.0)
    lonely = a.assign(country="us", currency="usd")
    result = mh.compare(pd.concat([a, lonely]), b, strata="country", random_state=0, n_resamples=99)
    assert result["currency"].pvalue == 1.0, "a stratum of one table tells nothing"


@pytest.mark.parametrize("n", [37, 61, 83])
def test_no_distance_is_beyond_one(n):
    rng = np.random.default_rng(n)
    a, b = (noise(rng, n, site=rng.choice(list("abc"), n)) for _ in "ab")
    found = mh.compare(a, b.assign(x=b["x"] + 50), strata="site", random_state=0, n_resamples=19)["x"]
    assert 1.0 - 1e-12 <= found.effect <= 1.0
    assert found.interval.high <= 1.0


def test_values_that_agree_to_the_precision_of_the_coarser_table_are_ties(tmp_path):
    rng = np.random.default_rng(4)
    a, b = (pd.DataFrame(rng.integers(0, 20, (300, 4)) / 10).add_prefix("x") for _ in "ab")
    exact = mh.compare(a, b, random_state=0, n_resamples=99)
    for other in (b.astype(np.float32), b * 3 / 3):
        found = mh.compare(a, other, random_state=0, n_resamples=99)
        assert [(c.name, c.effect, c.pvalue) for c in found.columns] == [
            (c.name, c.effect, c.pvalue) for c in exact.columns
        ]
        assert not found.differs
    as_file(a, tmp_path / "a.csv", index=False)
    as_file(b.astype(np.float32), tmp_path / "b.parquet")
    assert not mh.compare(tmp_path / "a.csv", tmp_path / "b.parquet", random_state=0, n_resamples=99).differs


def test_points_set_thousands_apart_in_a_german_file(tmp_path):
    def german(name, thousands):
        prices = [f"1.{i % 90:03d}" if thousands else f"{1000 + i % 90}" for i in range(180)]
        return write(tmp_path / name, [[p, f"{i % 7},5"] for i, p in enumerate(prices)], ("preis", "menge"), ";")

    found = mh.compare(german("a.csv", True), german("b.csv", False), random_state=0, n_resamples=19)["preis"]
    assert found.effect == 0.0
    assert found.counts.moments[0].mean == found.counts.moments[1].mean == 1044.5


def test_weeks_that_change_sides_together_and_a_note_where_they_do_not():
    rng = np.random.default_rng(5)
    found, noted = [0, 0], 0
    for seed in range(20):
        week = np.repeat(np.arange(24), 12)
        table = noise(rng, len(week), week=week)
        table["x"] += 3 * rng.normal(size=24)[week]
        of_first = np.isin(week, rng.permutation(24)[:12])
        a, b = table[of_first], table[~of_first]
        plain = mh.compare(a, b, exclude=["week"], random_state=seed, n_resamples=99)
        noted += any("name a column such as week or person by clusters=" in note for note in plain.notes)
        found[0] += plain.differs
        found[1] += mh.compare(a, b, clusters="week", random_state=seed, n_resamples=99).differs
    assert found[0] >= 10
    assert found[1] <= 4, "more have a probability below 1 in 300"
    assert noted == 20


def test_rows_at_random_get_no_note_of_their_order():
    rng = np.random.default_rng(6)
    for _ in range(10):
        result = mh.compare(noise(rng, 90), noise(rng, 90).sort_values("x"), random_state=0, n_resamples=19)
        assert not any("neighbouring rows of a " in note for note in result.notes)
        assert any("neighbouring rows of b " in note for note in result.notes) or "y" in result.separating


def test_the_report_writes_years_as_years_and_labels_alike_and_says_what_differs():
    rng = np.random.default_rng(7)
    a = noise(rng, 200, year=rng.integers(1990, 2010, 200)).set_index(np.arange(990, 1190))
    b = noise(rng, 200, year=rng.integers(1997, 2012, 200)).assign(x=lambda t: 2.5 * t["x"])
    result = mh.compare(a, b, random_state=0)
    assert {row.place for row in result.rows} == {"index"}
    text = " ".join(str(result).split())
    assert "1990 to 2009" in text
    assert "2,0" not in text
    assert "x (KS distance" in text
    assert "spread: wider in b" in text
    assert "place: higher in b" in text
    effects = [column.effect for column in result.significant_columns]
    assert effects == sorted(effects, reverse=True), "the largest effect first"
    for column in result.significant_columns:
        assert column.interval.low > 0 or f"{column.name} (KS distance {column.effect:.2g}, above 0 to" in text


@pytest.mark.parametrize("at_least", [0.0, 0.3])
def test_headline_p_values_and_intervals_agree(at_least):
    rng = np.random.default_rng(8)
    a, b = noise(rng, 150), noise(rng, 150).assign(x=lambda t: t["x"] + 0.9)
    result = mh.compare(a, b, at_least, random_state=0)
    findings = [part for column in result.columns for part in column.parts]
    if at_least:
        assert result.pvalue == min(found.exceeds_pvalue for found in findings)
        assert [f.exceeds_pvalue <= result.level for f in findings] == [f.interval.low > at_least for f in findings]
    else:
        every = [f.adjusted_pvalue for f in (*findings, *result.pairs)]
        assert result.pvalue == result.significance == min([*every, result.joint_pvalue])
        assert [f.exceeds_pvalue for f in findings] == [f.adjusted_pvalue for f in findings]
    assert result.differs == (result.pvalue <= result.level)
    assert all(f.pvalue <= f.adjusted_pvalue for f in findings)

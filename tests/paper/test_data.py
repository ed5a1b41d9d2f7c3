"""The loaders: what they find, what they check, and what they say where there is nothing."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from paper.data import DATA_VARIABLE, UCI_TABLES, draw_bags, load_bags, load_uci


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(("name", "load"), [("wine", "load_wine"), ("wdbc", "load_breast_cancer")])
def test_tables_of_scikit_learn(name, load):
    table, bundled = load_uci(name), getattr(sklearn_datasets, load)()
    assert_array_equal(table.data, bundled.data)
    assert_array_equal(np.array(table.target_names)[table.target], bundled.target_names[bundled.target])
    assert table.feature_names == list(bundled.feature_names)
    assert (table.name, table.constant) == (name, [])


@pytest.mark.parametrize("name", ["wine", "wdbc"])
def test_both_sources_agree(name, data_folder):
    bundled, read = load_uci(name), load_uci(name, data=data_folder)
    assert_array_equal(bundled.data, read.data)
    assert_array_equal(bundled.target, read.target)


@pytest.mark.parametrize("name", UCI_TABLES)
def test_tables_of_the_folder(name, data_folder, monkeypatch):
    stated = json.loads((data_folder / "uci" / "features.json").read_text())[name]
    monkeypatch.setenv(DATA_VARIABLE, str(data_folder))
    table = load_uci(name)
    assert table.data.shape == (stated["n"], stated["d_csv"])
    assert table.data.dtype == np.float64
    counts = stated["class_counts"]
    assert len(table.target_names) == (len(counts) if counts else 0)
    for features in ("all", "strict_real", "paper_plausible"):
        chosen = load_uci(name, data=data_folder, features=features)
        assert chosen.feature_names == stated[features]
        assert chosen.data.shape == (stated["n"], len(stated[features]))
        constant = [c for c, column in zip(chosen.feature_names, chosen.data.T, strict=True) if np.ptp(column) == 0]
        assert chosen.constant == constant
    assert load_uci(name, features="paper_plausible").constant == []


def test_classes_that_are_numbers_are_sorted_as_such(data_folder):
    vowel = load_uci("vowel", data=data_folder)
    assert vowel.target_names == [str(i) for i in range(11)]
    assert vowel.target[:3].tolist() == [0, 1, 2]


def test_a_table_that_is_not_there():
    with pytest.raises(ValueError, match=r"'glass' was not found: pass download=True .*41.*MUHAT_DATA.*uci/glass.csv"):
        load_uci("glass")
    with pytest.raises(ValueError, match=r"'satimage' was not found: get it from archive"):
        load_uci("satimage", download=True)


def test_unknown_names(tmp_path):
    with pytest.raises(ValueError, match=r"name='iris' must be one of .*wine"):
        load_uci("iris")
    with pytest.raises(ValueError, match=r"name='birds' must be one of .*scenes15"):
        load_bags("birds")
    with pytest.raises(ValueError, match=r"features='some' must be one of"):
        load_uci("wine", features="some")
    with pytest.raises(ValueError, match=r"data=.* must be a folder that holds uci/wine.csv"):
        load_uci("wine", data=tmp_path)


def written(folder, X, labels):
    (folder / "uci").mkdir(exist_ok=True)
    lines = [",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), labels, strict=True)]
    header = ",".join([*(f"c{j}" for j in range(X.shape[1])), "target"])
    (folder / "uci" / "wine.csv").write_text("\n".join([header, *lines]) + "\n")
    return folder


def test_values_are_checked(tmp_path):
    wine = load_uci("wine")
    labels = [wine.target_names[c] for c in wine.target]
    order = np.random.default_rng(0).permutation(len(labels))
    shuffled = load_uci("wine", data=written(tmp_path, wine.data[order], [labels[i] for i in order]))
    assert_array_equal(shuffled.data, wine.data[order])  # the order of rows is free
    changed = wine.data.copy()
    changed[3, 5] += 1e-9
    with pytest.raises(ValueError, match=r"values of the table 'wine' differ"):
        load_uci("wine", data=written(tmp_path, changed, labels))
    with pytest.raises(ValueError, match=r"values of the table 'wine' differ"):
        load_uci("wine", data=written(tmp_path, wine.data, ["class_0", *labels[:-1]]))
    with pytest.raises(ValueError, match=r"has shape \(177, 13\) and must have \(178, 13\)"):
        load_uci("wine", data=written(tmp_path, wine.data[1:], labels[1:]))


def openml_copy(folder, name, **changes):
    """The table as scikit-learn hands out OpenML's copy, categories by number. OpenML itself is out of reach here."""
    table = load_uci(name, data=folder)
    names = table.target_names
    target = np.array([names[c] for c in table.target]) if names else table.target.astype(str)
    bunch = Bunch(data=table.data, target=target, feature_names=list(table.feature_names), categories={})
    return Bunch(**{**bunch, **changes})


def test_openml(data_folder, monkeypatch):
    asked = []

    def fetch(**options):
        asked.append(options)
        return copies[options["data_id"]]

    copies = {41: openml_copy(data_folder, "glass")}
    vowel = openml_copy(data_folder, "vowel")
    leading = {"data": np.column_stack([np.zeros((990, 2)), vowel.data])}
    copies[307] = Bunch(**{**vowel, **leading, "feature_names": ["speaker", "sex", *vowel.feature_names]})
    abalone = openml_copy(data_folder, "abalone")
    coded, categories = abalone.data.copy(), {"sex_code": ["F", "I", "M"], "target": ["1"]}
    coded[:, 0] = [categories["sex_code"].index("?MFI"[int(code)]) for code in abalone.data[:, 0]]
    copies[183] = Bunch(**{**abalone, "data": coded, "categories": categories})
    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch)
    for name in ("glass", "vowel", "abalone"):
        fetched, read = load_uci(name, download=True), load_uci(name, data=data_folder)
        assert_array_equal(fetched.data, read.data)
        assert_array_equal(fetched.target, read.target)
    assert [options["data_id"] for options in asked] == [41, 307, 183]
    copies[41].data[0, 0] += 1
    with pytest.raises(ValueError, match="differ"):
        load_uci("glass", download=True)


# ---------------------------------------------------------------- bags


@pytest.mark.parametrize(("name", "n", "n_classes"), [("scenes4_indoor", 914, 4), ("scenes15", 1500, 15)])
def test_scenes(name, n, n_classes, data_folder):
    scenes = load_bags(name, data=data_folder)
    assert len(scenes.bags) == len(scenes.target) == len(scenes.split) == n
    assert {bag.shape for bag in scenes.bags} == {(100, 32)}
    assert len(scenes.class_names) == n_classes == len(set(scenes.target))
    assert set(scenes.split) == {0, 1}


@pytest.mark.parametrize(("name", "n", "d", "n_signal"), [("hep", 22889, 5, 7817), ("hep_wh", 25000, 6, 10000)])
def test_events(name, n, d, n_signal, data_folder, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(data_folder))
    events = load_bags(name)
    assert events.events.shape == (n, d)
    assert np.isfinite(events.events).all()
    assert np.bincount(events.target).tolist() == [n - n_signal, n_signal]
    assert events.class_names == ["background", "signal"]


def test_bags_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"'hep' were not found.*MUHAT_DATA.*groups/hep.npz"):
        load_bags("hep")
    with pytest.raises(ValueError, match=r"data=.* must be a folder that holds groups/hep.npz"):
        load_bags("hep", data=tmp_path)


@pytest.mark.parametrize(
    ("name", "held", "missing"), [("hep", {"P5": np.ones((3, 5))}, "y"), ("scenes15", {"X": np.ones((4, 2))}, "bag")]
)
def test_bags_are_checked(tmp_path, name, held, missing):
    (tmp_path / "groups").mkdir()
    np.savez(tmp_path / "groups" / f"{name}.npz", **held)
    with pytest.raises(ValueError, match=rf"{name}\.npz must hold {missing}; make it by `python -m paper prepare`"):
        load_bags(name, data=tmp_path)


def test_no_pickled_objects(tmp_path):
    (tmp_path / "groups").mkdir()
    np.savez(tmp_path / "groups" / "hep.npz", P5=np.array([{"a": 1}], dtype=object), y=np.zeros(3))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_bags("hep", data=tmp_path)


def test_another_file_is_accepted_and_known_as_such(tmp_path, data_folder):
    (tmp_path / "groups").mkdir()
    assert load_bags("hep", data=data_folder).original
    with np.load(data_folder / "groups" / "hep.npz") as file:
        arrays = {key: file[key] for key in file.files}
    arrays["P5"][7, 3] += 1e-3
    np.savez(tmp_path / "groups" / "hep.npz", **arrays)
    assert not load_bags("hep", data=tmp_path).original


# ---------------------------------------------------------------- drawing bags


def test_draw_bags():
    normal, odd = np.arange(50.0)[:, None], 100 + np.arange(20.0)[:, None]
    options = {"n_normal": 4, "n_anomalous": 3, "size": 10, "share": 0.3}
    bags, labels = draw_bags(normal, odd, **options, rng=np.random.default_rng(0))
    assert labels.tolist() == [1] * 4 + [-1] * 3
    assert [int((bag >= 100).sum()) for bag in bags] == [0] * 4 + [3] * 3
    assert all(bag.shape == (10, 1) and len(np.unique(bag)) == 10 for bag in bags)
    again, _ = draw_bags(normal, odd, **options, rng=np.random.default_rng(0))
    other, _ = draw_bags(normal, odd, **options, rng=np.random.default_rng(1))
    assert_array_equal(np.stack(again), np.stack(bags))
    assert (np.stack(other) != np.stack(bags)).any()
    whole, _ = draw_bags(normal, odd, n_normal=0, n_anomalous=1, size=10, share=1.0, rng=np.random.default_rng(0))
    assert (whole[0] >= 100).all()

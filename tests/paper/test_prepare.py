"""Recipes for data: what is made is what the loader takes, and what the text says."""

import csv

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paper.__main__ import main
from paper.data import load_bags
from paper.prepare import PATCHES, prepare_hep, prepare_scenes

FEATURES = [
    "DER_mass_MMC",
    "DER_mass_transverse_met_lep",
    "DER_mass_vis",
    "DER_deltar_tau_lep",
    "DER_sum_pt",
    "DER_pt_ratio_lep_tau",
]


def write_events(path, values, labels, names=FEATURES):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["EventId", *names, "Weight", "Label", "KaggleSet", "KaggleWeight"])
        for i, (row, label) in enumerate(zip(values, labels, strict=True)):
            writer.writerow([100000 + i, *row, 1.0, label, "t", 1.0])


@pytest.fixture
def events(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(300) < 0.3, "s", "b")
    values = rng.gamma(2.0, 20.0, size=(300, len(FEATURES)))
    values[::7, 0] = -999.0
    write_events(tmp_path / "events.csv", values, labels)
    return tmp_path / "events.csv", values, labels


def test_events_are_standardised_by_the_background_and_rotated_to_its_axes(events, tmp_path):
    file, values, labels = events
    prepare_hep(file, tmp_path / "data")
    made = load_bags("hep", data=tmp_path / "data")
    background = made.events[made.target == 0].astype(float)
    assert_allclose(background.mean(axis=0), 0, atol=1e-6)
    covariance = np.cov(background.T)
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-5)
    assert (np.diff(np.diag(covariance)) < 0).all()
    assert made.target.tolist() == (labels == "s").astype(int).tolist()
    plain = np.log1p(values[:, [2, 1, 5, 3, 4]])
    plain[:, 3] = values[:, 3]
    plain = (plain - plain[labels == "b"].mean(axis=0)) / plain[labels == "b"].std(axis=0)
    gaps = [np.linalg.norm(rows[:-1] - rows[1:], axis=1) for rows in (plain, made.events)]
    assert_allclose(*gaps, rtol=1e-5)  # stored as float32
    assert np.isnan(made.X[::7, 0]).all()
    assert not made.original


@pytest.mark.slow
def test_the_recipe_gives_the_events_of_the_published_run(data_folder, tmp_path):
    ours = load_bags("hep", data=data_folder)
    names = [str(name) for name in ours.feature_names]
    write_events(
        tmp_path / "e.csv", np.nan_to_num(ours.X.astype(float), nan=-999.0), np.array(["b", "s"])[ours.target], names
    )
    prepare_hep(tmp_path / "e.csv", tmp_path)
    made = load_bags("hep", data=tmp_path).events
    signs = np.sign((made * ours.events).sum(axis=0))
    assert_allclose(made * signs, ours.events, atol=1e-5)  # float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("DER_sum_pt", "other"), "lacks the column DER_sum_pt"),
        (lambda text: text.replace(",s,", ",b,"), "events of both labels"),
        (lambda text: text.replace("100003,", "100003,a"), "a line that is not an event"),
    ],
)
def test_other_files_are_refused(events, tmp_path, change, message):
    events[0].write_text(change(events[0].read_text()))
    with pytest.raises(ValueError, match=message):
        prepare_hep(events[0], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_the_command_prepares_events_too(events, tmp_path, capsys):
    prepare_hep(events[0], tmp_path / "a")
    assert main(["prepare", "hep", "--from", str(events[0]), "--out", str(tmp_path / "b")]) == 0
    assert "hep.npz is written" in capsys.readouterr().out
    made = [load_bags("hep", data=tmp_path / folder) for folder in "ab"]
    assert_allclose(made[0].events, made[1].events, rtol=0, atol=0)


def test_images_are_looked_for_in_a_folder(events, tmp_path):
    pytest.importorskip("cv2", reason="OpenCV is missing: pip install 'muhat[prepare]'")
    with pytest.raises(ValueError, match=r"events\.csv is not a folder; pass one that holds a folder of images"):
        prepare_scenes(events[0], tmp_path / "data")


@pytest.fixture
def images(tmp_path):
    cv2 = pytest.importorskip("cv2", reason="OpenCV is missing: pip install 'muhat[prepare]'")
    rng = np.random.default_rng(0)
    for label in ("Kitchen", "Living Room", "Coast"):
        (tmp_path / "images" / label).mkdir(parents=True)
        for i in range(3):
            image = cv2.GaussianBlur(rng.integers(0, 255, (128, 112), dtype=np.uint8), (0, 0), 2)
            cv2.imwrite(str(tmp_path / "images" / label / f"{i}.png"), image)
    return tmp_path / "images"


def test_images_become_bags(images, tmp_path):
    prepare_scenes(images, tmp_path / "data", seed=0)
    scenes = load_bags("scenes15", data=tmp_path / "data")
    assert scenes.class_names == ["Coast", "Kitchen", "Living Room"]
    assert [bag.shape for bag in scenes.bags] == [(PATCHES, 32)] * 9
    assert np.bincount(scenes.target).tolist() == [3, 3, 3]
    assert scenes.split.sum() == 3
    train = np.concatenate([bag for bag, test in zip(scenes.bags, scenes.split, strict=True) if not test])
    assert_allclose(train.mean(axis=0), 0, atol=1e-6)


def test_the_same_seed_gives_the_same_bags_and_the_command_does_it_too(images, tmp_path, capsys):
    prepare_scenes(images, tmp_path / "a", indoor=True, seed=3)
    assert main(["prepare", "scenes4", "--from", str(images), "--out", str(tmp_path / "b"), "--seed", "3"]) == 0
    assert "scenes4_indoor.npz is written" in capsys.readouterr().out
    made = [load_bags("scenes4_indoor", data=tmp_path / folder) for folder in "ab"]
    assert made[0].class_names == ["Kitchen", "Living Room"]
    for left, right in zip(made[0].bags, made[1].bags, strict=True):
        assert_allclose(left, right, rtol=0, atol=0)


def test_folders_of_training_and_test_images(images, tmp_path):
    (tmp_path / "both").mkdir()
    images.rename(tmp_path / "both" / "train")
    (tmp_path / "both" / "test" / "Coast").mkdir(parents=True)
    (tmp_path / "both" / "train" / "Coast" / "0.png").rename(tmp_path / "both" / "test" / "Coast" / "0.png")
    prepare_scenes(tmp_path / "both", tmp_path)
    assert load_bags("scenes15", data=tmp_path).split.tolist() == [0] * 8 + [1]


def test_images_that_cannot_be_used(images, tmp_path):
    cv2 = pytest.importorskip("cv2")
    with pytest.raises(ValueError, match="holds no images"):
        prepare_scenes(tmp_path, tmp_path / "data")
    cv2.imwrite(str(images / "Coast" / "small.png"), np.zeros((40, 40), dtype=np.uint8))
    with pytest.raises(ValueError, match=r"small\.png has 40 x 40 pixels.*Use larger images"):
        prepare_scenes(images, tmp_path / "data")
    (images / "Coast" / "small.png").write_text("not an image")
    with pytest.raises(ValueError, match="cannot be read as an image"):
        prepare_scenes(images, tmp_path / "data")

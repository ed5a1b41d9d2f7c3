"""Preparation of the bags of table 2 from public data: images of scenes, and events of the ATLAS Higgs challenge."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from paper.experiment import Array

PATCH, STEP = 32, 8
"""Pixels of a patch, and between two neighbouring patches."""

PATCHES, DIMENSIONS = 100, 32
"""Patches of an image, and columns that are left of a SIFT descriptor."""

INDOOR = ("bedroom", "kitchen", "livingroom", "office")
"""The classes of ``scenes4_indoor``, as letters alone."""

HEP_EVENTS = 22_889
"""The events of our run: the first of the public file."""

_LOGARITHMIC = ("DER_mass_vis", "DER_mass_transverse_met_lep", "DER_pt_ratio_lep_tau", None, "DER_sum_pt")
_COLUMNS = tuple(name or "DER_deltar_tau_lep" for name in _LOGARITHMIC)
_UNDEFINED = -999.0
_ENDINGS = {".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff"}


class _Image(NamedTuple):
    path: Path
    label: str
    test: bool


def prepare_scenes(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    indoor: bool = False,
    test_share: float = 0.4,
    seed: int = 0,
) -> Path:
    """Make ``groups/scenes15.npz`` (or ``scenes4_indoor.npz``) from a folder of images, one folder per class.

    Every image becomes a bag of 100 dense SIFT descriptors: patches of 32 pixels on a grid of 8 pixels, scaled to unit
    length, in random order, reduced to 32 columns by a PCA that is fitted to the training images. The classes may lie
    in folders ``train`` and ``test``; otherwise ``test_share`` of each class is held out. ``indoor`` keeps the classes
    bedroom, kitchen, living room and office alone. The file is written into ``groups`` below ``out``.
    """
    rng = np.random.default_rng(seed)
    images = list(_images(Path(folder), indoor, test_share, rng))
    descriptors = np.stack([_descriptors(image.path, rng) for image in images])
    train = np.array([not image.test for image in images])
    reduction = PCA(DIMENSIONS, svd_solver="covariance_eigh").fit(descriptors[train].reshape(-1, descriptors.shape[-1]))
    names = sorted({image.label for image in images})
    return _write(
        Path(out),
        "scenes4_indoor" if indoor else "scenes15",
        X=reduction.transform(descriptors.reshape(-1, descriptors.shape[-1])).astype(np.float32),
        bag=np.arange(len(images) + 1, dtype=np.int32) * PATCHES,
        y=np.array([names.index(image.label) for image in images], dtype=np.int32),
        split=(~train).astype(np.int8),
        class_names=np.array(names),
    )


def _images(folder: Path, indoor: bool, test_share: float, rng: np.random.Generator) -> Iterator[_Image]:
    """The images in the order of their names, each with its class and whether it is held out."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; pass one that holds a folder of images for each class")
    parts = [part for part in ("train", "test") if (folder / part).is_dir()]
    roots = [folder / part for part in parts] or [folder]
    found = False
    for root in roots:
        for class_folder in sorted(path for path in root.iterdir() if path.is_dir()):
            label = class_folder.name
            if indoor and "".join(filter(str.isalpha, label.lower())) not in INDOOR:
                continue
            paths = sorted(path for path in class_folder.iterdir() if path.suffix.lower() in _ENDINGS)
            drawn = rng.permutation(len(paths)) < round(test_share * len(paths))
            for path, chosen in zip(paths, drawn, strict=True):
                found = True
                yield _Image(path, label, root.name == "test" if parts else bool(chosen))
    if not found:
        wanted = f" of the classes {', '.join(INDOOR)}" if indoor else ""
        raise ValueError(f"{folder} holds no images{wanted}. Pass a folder that has one folder of images per class.")


def _descriptors(path: Path, rng: np.random.Generator) -> Array:
    """The SIFT descriptors, of unit length, of patches of an image, drawn at random."""
    cv2 = _opencv()
    image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if image is None:
        raise ValueError(f"{path} cannot be read as an image. Remove it, or save it again as PNG or JPEG.")
    rows, columns = (np.arange(PATCH // 2, size - PATCH // 2 + 1, STEP) for size in image.shape)
    places = [(x, y) for y in rows.tolist() for x in columns.tolist()]
    if len(places) < PATCHES:
        raise ValueError(
            f"{path} has {image.shape[1]} x {image.shape[0]} pixels, room for {len(places)} patches. "
            f"Use larger images: a bag needs {PATCHES} patches."
        )
    drawn = rng.permutation(len(places))[:PATCHES]
    width = PATCH / 6  # OpenCV's descriptor spans six times the diameter of a keypoint
    keypoints = [cv2.KeyPoint(float(places[i][0]), float(places[i][1]), width, 0.0) for i in drawn]
    kept, values = cv2.SIFT_create().compute(image, keypoints)
    if len(kept) != PATCHES:
        raise ValueError(f"{path}: OpenCV described {len(kept)} of {PATCHES} patches. Use another version of OpenCV.")
    values = values.astype(np.float64)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.finfo(np.float64).tiny)


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ValueError('SIFT descriptors need OpenCV. Install it: pip install -e ".[prepare]"') from error
    return cv2


def prepare_hep(file: str | os.PathLike[str], out: str | os.PathLike[str], *, n_events: int = HEP_EVENTS) -> Path:
    """Make ``groups/hep.npz`` from the public file of the ATLAS Higgs challenge 2014.

    Five features that are defined for every event are taken: log(1 + x) of four of them, all standardised by the
    background events, and rotated to the principal axes of the background. ``file`` is
    ``atlas-higgs-challenge-2014-v2.csv`` of the CERN Open Data portal, of which the first ``n_events`` are read; the
    default is what our run used. The file is written into ``groups`` below ``out``.
    """
    names, values, labels = _events(Path(file), n_events)
    background = labels == 0
    if background.sum() < 2 or background.all():
        raise ValueError(f"{file} must hold events of both labels, 's' and 'b', among its first {len(labels):,}.")
    chosen = values[:, [names.index(name) for name in _COLUMNS]]
    logarithmic = np.array([name is not None for name in _LOGARITHMIC])
    chosen[:, logarithmic] = np.log1p(chosen[:, logarithmic])
    standardised = (chosen - chosen[background].mean(axis=0)) / chosen[background].std(axis=0)
    rotation = PCA(svd_solver="covariance_eigh").fit(standardised[background])
    raw = np.where(values == _UNDEFINED, np.nan, values)
    return _write(
        Path(out),
        "hep",
        X=raw.astype(np.float32),
        P5=rotation.transform(standardised).astype(np.float32),
        y=labels.astype(np.int8),
        feature_names=np.array(names),
    )


def _events(file: Path, n_events: int) -> tuple[list[str], Array, NDArray[np.intp]]:
    """Names of the features, their values, and the labels (1 signal) of the first events."""
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.reader(lines)
        header = next(reader, [])
        names = [name for name in header if name.startswith(("DER_", "PRI_"))]
        missing = [name for name in (*_COLUMNS, "Label") if name not in header]
        if missing:
            raise ValueError(f"{file} lacks the column {missing[0]}. Pass atlas-higgs-challenge-2014-v2.csv.")
        places, label = [header.index(name) for name in names], header.index("Label")
        rows = [line for _, line in zip(range(n_events), reader, strict=False)]
    try:
        values = np.array([[row[j] for j in places] for row in rows], dtype=np.float64)
        signal = np.array([["b", "s"].index(row[label]) for row in rows], dtype=np.intp)
    except (ValueError, IndexError) as error:
        raise ValueError(f"{file} holds a line that is not an event ({error}). Fetch the file again.") from error
    return names, values.reshape(len(rows), len(names)), signal


def _write(out: Path, name: str, **arrays: NDArray[Any]) -> Path:
    folder = out / "groups"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{name}.npz", allow_pickle=False, **arrays)
    return folder / f"{name}.npz"

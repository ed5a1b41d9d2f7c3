"""Finding anomalous groups
========================

Every group is a bag of rows, and no row of it is odd: all lie where rows of normal groups lie. Normal groups have rows
in two clusters. The anomalous ones have the wrong mixture, another correlation, or rows that are too close together. A
one-class support measure machine learns from normal groups what a group looks like; an outlier detector for rows,
whose scores are averaged over each group, is there to compare, and so is a one-class machine on the averages of the
groups.

In a shell::

    python examples/anomalous_groups.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

import muhat as mh

SIZE = 40
KINDS = ["normal", "mixture", "correlation", "too close"]
COLOURS = {"normal": "#8c8c8c", "mixture": "#d55e00", "correlation": "#0072b2", "too close": "#009e73"}
CENTRES = np.array([[-1.6, 0.0], [1.6, 0.0]])


def group(kind: str, rng: np.random.Generator) -> np.ndarray:
    """One group of rows."""
    side = rng.random(SIZE) < (0.9 if kind == "mixture" else 0.5)
    correlation = 0.85 if kind == "correlation" else 0.0
    spread = 0.45 if kind == "too close" else 1.0
    noise = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=SIZE)
    return CENTRES[side.astype(int)] + 0.8 * spread * noise


def scores(
    machine: mh.OneClassSupportMeasureMachine, train: list[np.ndarray], test: list[np.ndarray], seed: int
) -> dict[str, np.ndarray]:
    """How anomalous each test group is to each method; larger is odder."""
    rows = IsolationForest(random_state=seed).fit(np.concatenate(train))
    averages = OneClassSVM(nu=0.1).fit([bag.mean(axis=0) for bag in train])
    return {
        "one-class support measure machine": -machine.score_samples(test),
        "isolation forest, averaged over rows": np.array([-rows.score_samples(bag).mean() for bag in test]),
        "one-class machine on averages": -averages.score_samples([bag.mean(axis=0) for bag in test]),
    }


def draw(test: list[np.ndarray], kinds: np.ndarray, found: np.ndarray, limit: float, path: Path) -> None:
    """Save a group of each kind over normal rows, and the scores of all test groups."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic(
        [KINDS, ["scores"] * len(KINDS)], figsize=(10, 5), height_ratios=[1, 1.1], layout="constrained"
    )
    normal = np.concatenate([bag for bag, kind in zip(test, kinds, strict=True) if kind == "normal"])
    for kind in KINDS:
        members = np.flatnonzero(kinds == kind)
        typical = members[np.argsort(found[members])[len(members) // 2]]
        axes[kind].scatter(*normal.T, s=3, color="#e4e4e4", linewidths=0)
        axes[kind].scatter(*test[typical].T, s=16, color=COLOURS[kind], linewidths=0)
        axes[kind].set(xticks=[], yticks=[], aspect="equal", xlim=(-4.5, 4.5), ylim=(-3.2, 3.2))
        axes[kind].set_title(kind, fontsize=10, color=COLOURS[kind])
        line = np.full(len(members), -KINDS.index(kind))
        axes["scores"].scatter(found[members], line, s=34, color=COLOURS[kind], alpha=0.6, linewidths=0)
    axes["scores"].axvline(limit, color="#444444", linewidth=1, linestyle="--")
    axes["scores"].text(limit, 0.55, " a tenth of the training groups lies beyond", fontsize=8, va="center")
    axes["scores"].set_yticks([-i for i in range(len(KINDS))], KINDS)
    axes["scores"].set(xlabel="how odd the group is to the one-class support measure machine", ylim=(-3.5, 0.9))
    axes["scores"].spines[["top", "right", "left"]].set_visible(False)
    axes["scores"].tick_params(axis="y", length=0)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="fewer groups")
    arguments = parser.parse_args()
    n_train, n_test = (80, 40) if arguments.quick else (300, 200)
    rng = np.random.default_rng(arguments.seed)
    train = [group("normal", rng) for _ in range(n_train)]
    kinds = np.repeat(KINDS, n_test)
    test = [group(kind, rng) for kind in kinds]
    machine = mh.OneClassSupportMeasureMachine(mh.Gaussian(0.7), mh.ShrunkKernelMean(), mh.Gaussian(), nu=0.1)
    found = scores(machine.fit(train), train, test, arguments.seed)
    print(f"Area under the curve, {n_train} normal training groups of {SIZE} rows, {n_test} test groups of each kind\n")
    print(f"{'':<38}" + "".join(f"{kind:>13}" for kind in KINDS[1:]))
    for name, values in found.items():
        areas = []
        for kind in KINDS[1:]:
            chosen = (kinds == "normal") | (kinds == kind)
            areas.append(roc_auc_score(kinds[chosen] == kind, values[chosen]))
        print(f"{name:<38}" + "".join(f"{area:13.3f}" for area in areas))
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "anomalous_groups.png"
    limit = float(np.quantile(-machine.score_samples(train), 0.9))
    draw(test, kinds, next(iter(found.values())), limit, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()

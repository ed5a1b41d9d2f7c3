"""Bags, whitened
==============

What a bag is noisy in, and what it is not: points of a spiral, drawn with a pen that leans inwards or outwards.

A bag is a few points of one spiral, anywhere along it. The classes differ in how far off the line the points lie, by
little; where along the line they lie is chance, and moves the mean of a bag much more. Whitening by the covariance
within bags, which is learnt without labels, makes the two alike in size.

In a shell::

    python examples/whitened_bags.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV

import muhat as mh
from muhat.bag_plotting import WhitenedBagsDisplay
from muhat.support_measure import SupportMeasureClassifier

Bags = list[np.ndarray]
OFFSETS = {"inwards": -0.2, "on the line": 0.0, "outwards": 0.2}
COLOURS = ["#0072b2", "#b9b3a5", "#d55e00"]
KERNEL = mh.Gaussian(bandwidth=0.8)


def make_bags(n: int, size: int, rng: np.random.Generator) -> tuple[Bags, np.ndarray]:
    """Bags of points of a spiral with two turns and a half."""
    y = np.arange(n) % len(OFFSETS)
    bags = []
    for label in y:
        angle = rng.uniform(1.5 * np.pi, 6.5 * np.pi, size)
        radius = angle / 4 + list(OFFSETS.values())[label] + 0.16 * rng.normal(size=size)
        bags.append(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
    return bags, y


def accuracies(size: int, seed: int, n_train: int, n_test: int) -> list[float]:
    """Accuracy on new bags: plain, shrunken and whitened mean elements, C by cross-validation."""
    rng = np.random.default_rng([seed, size])
    (train, y), (test, z) = make_bags(n_train, size, rng), make_bags(n_test, size, rng)
    found = []
    for options in ({}, {"mean": mh.ShrunkKernelMean()}, {"whiten": True}):
        machine = SupportMeasureClassifier(KERNEL, level2="linear", **options)
        search = GridSearchCV(machine, {"C": [10.0**k for k in range(-2, 5)]}, cv=3)
        found.append(search.fit(train, y).score(test, z))
    return found


def print_accuracies(sizes: list[int], draws: int, n_train: int, n_test: int, seed: int) -> None:
    """Print mean accuracies with their standard errors."""
    print(
        f"Accuracy on {n_test} new bags, {n_train} training bags, mean of {draws} draws (standard error); chance 0.33"
    )
    print(f"{'points of a bag':<18}{'plain':>16}{'shrunken':>16}{'whitened':>16}")
    for size in sizes:
        values = np.array([accuracies(size, seed + draw, n_train, n_test) for draw in range(draws)])
        errors = values.std(axis=0, ddof=1) / np.sqrt(draws)
        cells = [f"{mean:8.3f} ({error:.3f})" for mean, error in zip(values.mean(axis=0), errors, strict=True)]
        print(f"{size:<18}" + "".join(f"{cell:>16}" for cell in cells))


def draw(size: int, n: int, seed: int, path: Path) -> None:
    """Save three panels: the points of all bags, and the two maps of the bags."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    bags, y = make_bags(n, size, np.random.default_rng(seed))
    figure, axes = plt.subplots(1, 3, figsize=(12.6, 4.5), layout="constrained", facecolor="#fbfaf7")
    rows, owners = np.concatenate(bags), np.repeat(y, size)
    order = np.random.default_rng(0).permutation(len(rows))
    axes[0].scatter(*rows[order].T, c=np.array(COLOURS)[owners[order]], s=3, alpha=0.6, linewidths=0)
    axes[0].scatter(*bags[0].T, s=26, facecolors="none", edgecolors="black", linewidths=0.9)
    axes[0].set(title=f"the points of {n} bags; one bag ringed", aspect="equal")
    for ax in axes[1:]:
        ax.set_prop_cycle(color=COLOURS)
    WhitenedBagsDisplay.from_bags(bags, y, kernel=KERNEL, axes=axes[1:], s=30)
    axes[2].legend(OFFSETS, frameon=False, loc="best", fontsize=9)
    axes[1].set_title("a map of the bags: one dot a bag")
    axes[2].set_title("the same bags, whitened")
    for ax in axes:
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="", facecolor="#fbfaf7")
        ax.spines[:].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two draws of few bags only")
    arguments = parser.parse_args()
    draws, n_train, n_test, sizes = (2, 45, 60, [20, 40]) if arguments.quick else (8, 90, 300, [10, 20, 40, 80])
    print_accuracies(sizes, draws, n_train, n_test, arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "whitened_bags.png"
    draw(60, 240, arguments.seed, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()

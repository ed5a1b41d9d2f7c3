"""Why the paper's score shrinks too much
======================================

Flexible shrinkage has one parameter, λ, and its loss is a curve over λ. A score that is worth its name has its minimum
near that of the loss. True deletion takes row i out of the data and out of the span, and its curve follows the loss.
The score of the paper's Theorem 4 drops the loss of row i but leaves φ(xᵢ) in the span: the estimate may still place
weight on the row that it is tested on, so that strong shrinkage looks better than it is. Both curves are shown with
their constants taken off: what matters is where the minimum lies.

In a shell::

    python examples/leave_one_out_curves.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import muhat as mh
from muhat.selection import deletion_scores, theorem4_scores

RATIOS = np.logspace(-4, 1, 51)
"""λ, in units of the largest eigenvalue."""

SCORES = {"true deletion": deletion_scores, "Theorem 4": theorem4_scores}
COLOURS = {"true loss": "#444444", "true deletion": "#009e73", "Theorem 4": "#d55e00"}
SETTINGS = {"Gaussian kernel, 30 rows": (mh.Gaussian(), 30), "polynomial of degree 2, 30 rows": (mh.Polynomial(2), 30)}


def curves(kernel: mh.Gaussian | mh.Polynomial, n: int, seed: int) -> dict[str, np.ndarray]:
    """Loss and scores over λ for one sample, in units of the plain average's loss and without their values at λ → 0."""
    rng = np.random.default_rng([seed, n])
    P = mh.paper_mixture(30, random_state=rng)
    X = P.sample(n, random_state=rng)
    resolved = kernel.resolve(X)
    K, truth = resolved(X), mh.embed(resolved, P)
    eigenvalues, U = np.linalg.eigh(K)
    lams = RATIOS * eigenvalues[-1]
    kept = eigenvalues[:, None].clip(0) / (eigenvalues[:, None].clip(0) + lams)
    weights = U @ (kept * (U.T @ np.full(n, 1 / n))[:, None])
    squares = np.einsum("ik,ij,jk->k", weights, K, weights, optimize=True)
    loss = squares - 2 * truth(X) @ weights + truth.norm() ** 2
    plain = mh.embed(resolved, X).distance(truth) ** 2
    found = {"true loss": (loss - plain) / plain}
    for name, score in SCORES.items():
        found[name] = (score(K, lams) - score(K, [0.0])) / plain
    return found


def chosen(values: np.ndarray) -> int:
    return int(np.argmin(values))


def draw(results: dict[str, np.ndarray], path: Path) -> None:
    """Save mean curves; each minimum is marked, and so is the loss that it leads to."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(10.5, 4), layout="constrained")
    for axis, (setting, samples) in zip(axes, results.items(), strict=True):
        means = {name: np.mean([sample[name] for sample in samples], axis=0) for name in COLOURS}
        loss = means["true loss"]
        for name, colour in COLOURS.items():
            place = chosen(means[name])
            style = "-" if name == "true loss" else "--"
            axis.plot(RATIOS, means[name], style, color=colour, linewidth=2.5 if style == "-" else 1.8, label=name)
            axis.plot(RATIOS[place], loss[place], "o", color=colour, markersize=8, markeredgecolor="white", zorder=3)
        low = min(values.min() for values in means.values())
        axis.axhline(0, color="#999999", linewidth=0.8)
        axis.set(xscale="log", xlabel="λ / largest eigenvalue", ylim=(1.25 * low, -1.5 * low), title=setting)
        axis.title.set_fontsize(10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("change against the plain average, in its loss")
    axes[0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.suptitle("each dot: the loss at the λ that a curve would choose", fontsize=10)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="40 distributions in place of 300")
    arguments = parser.parse_args()
    repetitions = 40 if arguments.quick else 300
    results = {}
    print(f"Loss at the λ that each curve chooses, relative to the plain average's; {repetitions} distributions\n")
    print(f"{'':<34}" + "".join(f"{name:>16}" for name in COLOURS))
    for name, (kernel, n) in SETTINGS.items():
        results[name] = [curves(kernel, n, arguments.seed + i) for i in range(repetitions)]
        losses = {c: np.mean([1 + s["true loss"][chosen(s[c])] for s in results[name]]) for c in COLOURS}
        places = {c: np.median([RATIOS[chosen(s[c])] for s in results[name]]) for c in COLOURS}
        print(f"{name:<34}" + "".join(f"{losses[c]:16.3f}" for c in COLOURS))
        print(f"{'  median of λ / largest eigenvalue':<34}" + "".join(f"{places[c]:16.2g}" for c in COLOURS))
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "leave_one_out_curves.png"
    draw(results, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()

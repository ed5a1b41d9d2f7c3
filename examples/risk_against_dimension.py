"""Risk against dimension
======================

Stein's effect, seen. The mean θ of a Gaussian is estimated from three rows, in one dimension and in a hundred. In one
or two dimensions nothing beats the average whatever θ is; from three on, James and Stein's estimator does (its curve
is the exact risk), and the more dimensions there are the more it gains. The other curves are kernel means, shrunk by
leave-one-out: with the linear kernel, which is the same problem, and with a Gaussian kernel, whose space has many
dimensions from the start. Leave-one-out is not told the variance as James and Stein are. With three numbers to learn
it from, in one dimension, it does harm.

In a shell::

    python examples/risk_against_dimension.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import muhat as mh
from muhat.stein import james_stein_risk

ROWS = 3
NORM = 1.5  # of θ, the same in every dimension
DIMENSIONS = [1, 2, 3, 5, 8, 12, 20, 30, 50, 100]
COLOURS = {"linear": "#0072b2", "Gaussian": "#009e73", "James–Stein, exact": "#d55e00"}


def kernels(d: int) -> dict[str, mh.Gaussian | mh.Linear]:
    """The bandwidth grows as distances do, so that the kernel sees the same share of them in every dimension."""
    return {"linear": mh.Linear(), "Gaussian": mh.Gaussian(bandwidth=np.sqrt(d))}


def relative_risks(d: int, samples: int, seed: int) -> dict[str, tuple[float, float]]:
    """Loss of leave-one-out shrinkage over the plain average's, by kernel, with its standard error."""
    theta = np.full(d, NORM / np.sqrt(d))
    P = mh.GaussianMixture([1.0], [theta], [1.0])
    found = {}
    for name, kernel in kernels(d).items():
        truth = mh.embed(kernel, P)
        losses = []
        for sample in range(samples):
            X = P.sample(ROWS, random_state=np.random.default_rng([seed, d, sample]))
            means = mh.KernelMean(kernel).fit(X).mean_, mh.ShrunkKernelMean(kernel).fit(X).mean_
            losses.append([mean.distance(truth) ** 2 for mean in means])
        plain, shrunk = np.transpose(losses)
        ratio = shrunk.mean() / plain.mean()
        found[name] = ratio, float(np.std(shrunk - ratio * plain) / np.sqrt(samples) / plain.mean())
    return found


def exact_risk(d: int) -> float:
    """Risk of James and Stein's estimator over the average's, d/n; it exists from three dimensions on."""
    theta = np.full(d, NORM / np.sqrt(d))
    return james_stein_risk(theta, 1.0, ROWS) / (d / ROWS) if d > 2 else 1.0


def draw(results: dict[str, np.ndarray], path: Path) -> None:
    """Save the curves; each has its name beside it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
    axis.axhline(1.0, color="#444444", linewidth=1)
    axis.text(240, 1.015, "the plain average", fontsize=9, color="#444444", ha="right", va="bottom")
    axis.axvspan(0.9, 2.5, color="#f2efe9", zorder=0)
    axis.text(1.5, 0.1, "nothing beats the\naverage for all θ", ha="center", fontsize=8, color="#776f60")
    for name, values in results.items():
        ratios, errors = values.T
        axis.plot(DIMENSIONS, ratios, color=COLOURS[name], linewidth=2, marker="o", markersize=4)
        axis.fill_between(DIMENSIONS, ratios - 2 * errors, ratios + 2 * errors, color=COLOURS[name], alpha=0.15, lw=0)
        above = {"James–Stein, exact": 15, "linear": 1}.get(name, 0)  # their ends touch
        axis.annotate(name, (100, ratios[-1]), (8, above), textcoords="offset points", color=COLOURS[name], va="center")
    axis.set_xscale("log")
    axis.set_xticks(DIMENSIONS, [str(d) for d in DIMENSIONS])
    axis.minorticks_off()
    axis.set(xlim=(0.9, 260), ylim=(0, 2.2), xlabel="dimensions", ylabel="risk, relative to the average's")
    axis.set_title(f"three rows of N(θ, I), ‖θ‖ = {NORM}: what shrinkage leaves of the risk", fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="100 samples a dimension in place of 2,000")
    arguments = parser.parse_args()
    samples = 100 if arguments.quick else 2000
    rows = []
    print(f"Risk relative to the plain average's, {ROWS} rows, {samples} samples (standard error)\n")
    print(f"{'d':>4}" + "".join(f"{name:>20}" for name in COLOURS))
    for d in DIMENSIONS:
        rows.append({**relative_risks(d, samples, arguments.seed), "James–Stein, exact": (exact_risk(d), 0.0)})
        print(f"{d:4}" + "".join(f"{f'{rows[-1][name][0]:.3f} ({rows[-1][name][1]:.3f})':>20}" for name in COLOURS))
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "risk_against_dimension.png"
    draw({name: np.array([row[name] for row in rows]) for name in COLOURS}, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()

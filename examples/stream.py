"""A stream that drifts
====================

One small sketch an hour, merged into windows, tells when and where the data changed. Rows come hour by hour and are
never kept. From hour 36 on, a part of them moves onto a ring whose mean and covariance are those of all rows, so that
averages and correlations show nothing. The distance of two sketches does, the MMD in features; what chance alone would
make of it, the sketches tell too.

In a shell::

    python examples/stream.py --out report
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import muhat as mh
from muhat.features import Nystroem
from muhat.sketch import MeanSketch

HOURS, DRIFT, WINDOW, REFERENCE = 60, 36, 4, 12
COLOURS = {"distance": "#d55e00", "chance": "#999999", "more": "#d55e00", "less": "#0072b2"}


def rows_of_hour(hour: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian rows, of which a growing part lies on a ring with the same mean and covariance."""
    part = np.clip((hour - DRIFT + 1) / 12, 0.0, 1.0) * 0.5
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - 0.3**2)) * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(n, 2))
    return np.where(rng.random((n, 1)) < part, ring, rng.normal(size=(n, 2)))


def chance_level(a: MeanSketch, b: MeanSketch) -> float:
    """Root mean square of the distance of two samples of one distribution, of these sizes."""
    spread = 1 - np.linalg.norm(a.mean_features()) ** 2  # the Gaussian kernel has k(x, x) = 1
    return float(np.sqrt(spread * (1 / a.n_ + 1 / b.n_)))


def draw(hours: list[int], found: np.ndarray, reference: MeanSketch, last: MeanSketch, path: Path) -> None:
    """Save the distance over time, and the witness function of the last window."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=[1.7, 1])
    left.plot(hours, found[:, 0], color=COLOURS["distance"], linewidth=2)
    left.plot(hours, found[:, 1], color=COLOURS["chance"], linewidth=1.5, linestyle="--")
    left.text(hours[0], found[0, 1] + 0.003, "by chance", color="#666666", va="bottom", fontsize=9)
    left.axvline(DRIFT, color="#444444", linewidth=0.8)
    left.text(DRIFT, found[:, 0].max(), " drift begins", va="top", fontsize=9)
    left.set(xlabel="hour", ylabel="distance (MMD)", ylim=(0, None))
    left.set_title(f"last {WINDOW} hours against the first {REFERENCE}", fontsize=10)
    left.spines[["top", "right"]].set_visible(False)

    side = np.linspace(-3.2, 3.2, 81)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    values = (last(grid) - reference(grid)).reshape(81, 81)
    limit = np.abs(values).max()
    colours = LinearSegmentedColormap.from_list("witness", [COLOURS["less"], "white", COLOURS["more"]])
    shades = right.contourf(side, side, values, np.linspace(-limit, limit, 22), cmap=colours)
    bar = figure.colorbar(shades, ax=right, ticks=[-limit, 0.0, limit])
    bar.ax.set_yticklabels(["less now", "0", "more now"], fontsize=8)
    right.set(aspect="equal")
    right.set_title("where: the witness of the last window", fontsize=10)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="500 rows an hour in place of 5,000")
    arguments = parser.parse_args()
    n, rng = 500 if arguments.quick else 5000, np.random.default_rng(arguments.seed)
    features = Nystroem(mh.Gaussian(bandwidth=0.5), 150, "k-means++", random_state=0).fit(rows_of_hour(0, 2000, rng))
    count = len(features.get_feature_names_out())
    print(f"{count} features, mean squared error {features.approximation_error_:.1e} a row")

    sketches, moments = [], []
    for hour in range(HOURS):
        rows = rows_of_hour(hour, n, rng)
        sketches.append(MeanSketch(features).update(rows))
        moments.append((np.linalg.norm(rows.mean(axis=0)), np.linalg.norm(np.cov(rows.T) - np.eye(2))))
    reference = sum(sketches[:REFERENCE])

    print(f"\n{'hour':>4}{'rows':>9}{'|mean|':>9}{'|cov - I|':>11}{'distance':>10}{'by chance':>11}{'ratio':>7}")
    hours, found = list(range(REFERENCE + WINDOW - 1, HOURS)), []
    for hour in hours:
        window = sum(sketches[hour - WINDOW + 1 : hour + 1])
        found.append((reference.distance(window), chance_level(reference, window)))
        if hour % 4 == 3:
            distance, chance = found[-1]
            shown = f"{moments[hour][0]:9.3f}{moments[hour][1]:11.3f}{distance:10.4f}{chance:11.4f}"
            print(f"{hour:4}{window.n_:9,}{shown}{distance / chance:7.1f}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    day = sum(sketches[-24:])
    day.save(arguments.out / "last_day.npz")
    size = (arguments.out / "last_day.npz").stat().st_size
    print(f"\nThe last day: {day}")
    print(f"saved with its features in {size / 1e3:.0f} kB; its {day.n_:,} rows take {16 * day.n_ / 1e3:,.0f} kB")
    path = arguments.out / "stream.png"
    draw(hours, np.array(found), reference, window, path)
    print(f"Picture: {path}")


if __name__ == "__main__":
    main()

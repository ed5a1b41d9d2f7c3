"""The drawings of the pages: ``python docs/draw.py`` writes them into docs/images."""

from __future__ import annotations

import runpy
import warnings
from html import escape
from pathlib import Path
from textwrap import wrap

import numpy as np
from subpackages import SUBPACKAGES, sentence
from subpackages import modules as modules_of

import muhat as mh

IMAGES = Path(__file__).parent / "images"
EXAMPLES = Path(__file__).parents[1] / "examples"
INK, PAPER, LINE = "#1f2933", "#fbfaf7", "#c9c4b8"
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"

SHOWN = {
    "anomalous_groups": {1: "anomalous_groups"},
    "conditional_mean": {1: "conditional"},
    "error_bars": {1: "error_bars"},
    "failing_sensor": {1: "failing_sensor"},
    "independence": {1: "independence", 2: "covariance"},
    "kernel_pca": {1: "kernel_pca"},
    "large_sample": {1: "large_sample", 2: "stream"},
    "many_groups": {1: "many_groups", 2: "many_groups_truth"},
    "robust_mean": {1: "robust_mean", 3: "density_matching"},
    "shares_of_groups": {1: "shares_of_groups"},
    "similar_groups": {2: "kinds_of_groups"},
    "steins_effect": {1: "steins_effect"},
    "two_samples": {1: "two_samples", 3: "low_variance"},
}
"""Figures of examples that pages show: number of the figure, and name of the picture."""

COLOURS = {
    "#dcecf5": "_support/types _support/parameters _support/validation _support/progress linalg tables shrinkage",
    "#e1f1e6": "rkhs/measures kernels rkhs/elements rkhs/oas_gaussian features",
    "#fdf0d5": "means",
    "#f8e1d8": "operators density bags inference groups",
}
"""Fills of groups of subpackages; the others have OUTSIDE."""
OUTSIDE = "#ece4f3"


def text(x: float, y: float, words: str, size: int = 13, more: str = "") -> str:
    return f"<text x='{x}' y='{y}' font-size='{size}' fill='{INK}' {FONT} {more}>{escape(words)}</text>"


def box(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='8' fill='{fill}' stroke='{LINE}' {more}/>"


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    start = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' role='img'>"
    ground = f"<rect width='{width}' height='{height}' rx='12' fill='{PAPER}'/>"
    return "\n".join([start, f"<title>{escape(title)}</title>", ground, *parts, "</svg>", ""])


def modules() -> str:
    """The subpackages in their order of import, each with its sentence and its files."""
    fills = {subpackage: fill for fill, subpackages in COLOURS.items() for subpackage in subpackages.split()}
    parts, y = [], 16
    for subpackage in SUBPACKAGES:
        words = wrap(sentence(subpackage).replace("`", ""), 94)
        lines = [*words, *wrap("  ".join(modules_of(subpackage)), 88, replace_whitespace=False)]
        height = 22 + 20 * len(lines)
        parts += [box(16, y, 868, height, fills.get(subpackage, OUTSIDE))]
        parts.append(text(32, y + height / 2 + 6, subpackage, 16, "font-weight='700'"))
        for i, line in enumerate(lines):
            faint = "xml:space='preserve' opacity='0.75'" if i >= len(words) else ""
            parts.append(text(184, y + 26 + 20 * i, line, 14, faint))
        y += height + 8
    parts.append(text(32, y + 16, "imports go upwards only: a test keeps it so", 14, "opacity='0.75'"))
    return svg(900, y + 32, "Subpackages of muhat, in the order in which they may import", parts)


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f"<path d='M{x} {y} L{to_x} {to_y}' stroke='{INK}' stroke-width='1.6' marker-end='url(#tip)'/>"


def flow() -> str:
    """How a datum flows from rows to a mean, and on to what is built on it."""
    steps = [
        ("rows X", "check_rows"),
        ("kernel_", "kernel.resolve(X)"),
        ("K, or tiles", "gram"),
        ("spectrum", "eigenpairs"),
        ("λ", "score, search"),
        ("weights β", "filter"),
    ]
    uses = [
        ("loss, MMD, witness", "(mean_ − other).norm()"),
        ("kernel PCA", "Centered(kernel_, mean_)"),
        ("density", "nearest embed(Q)"),
        ("bags", "one mean each → SVM"),
    ]
    tip = (
        "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        f"<path d='M0 0 L8 4 L0 8 z' fill='{INK}'/></marker></defs>"
    )
    middle = "text-anchor='middle'"
    parts = [tip]
    for i, (name, how) in enumerate(steps):
        x = 16 + 147 * i
        parts += [box(x, 20, 125, 58, "#dcecf5"), text(x + 62, 45, name, 16, f"{middle} font-weight='700'")]
        parts.append(text(x + 62, 66, how, 13, f"{middle} opacity='0.75'"))
        if i:
            parts.append(arrow(x - 21, 49, x - 3, 49))
    parts += [arrow(813, 79, 640, 122), box(260, 124, 380, 56, "#fdf0d5")]
    parts += [text(450, 148, "mean_ = Element(kernel_, Atoms(X, β))", 16, f"{middle} font-weight='700'")]
    parts.append(text(450, 168, "adds, subtracts, has inner products and norms", 13, f"{middle} opacity='0.75'"))
    for i, (name, how) in enumerate(uses):
        x = 16 + 221 * i
        parts += [arrow(330 + 80 * i, 181, x + 101, 222), box(x, 224, 203, 58, "#f8e1d8")]
        parts.append(text(x + 101, 249, name, 16, f"{middle} font-weight='700'"))
        parts.append(text(x + 101, 270, how, 13, f"{middle} opacity='0.75'"))
    return svg(900, 300, "How a datum flows", parts)


def kernel_mean() -> None:
    """Six points, a bump on each, and their average; beside it the average of many, and the true mean."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    P = mh.GaussianMixture([0.6, 0.4], [[-1.2], [1.6]], [0.5, 0.3])
    kernel = mh.Gaussian(bandwidth=0.6)
    grid = np.linspace(-4, 4, 301)[:, None]
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    X = P.sample(6, random_state=3)
    for x in X:
        axes[0].plot(grid, kernel(grid, x[None]), color="#0072b2", linewidth=1, alpha=0.7)
    axes[0].plot(X, np.zeros(6), "o", color="#0072b2", clip_on=False)
    axes[0].set_title("a bump on every row: φ(x) = k(x, ·)", fontsize=10)
    for axis, n in zip(axes[1:], (6, 60), strict=True):
        rows = P.sample(n, random_state=3)
        axis.fill_between(grid[:, 0], mh.embed(kernel, P)(grid), color="#e6e2d8", label="the true kernel mean")
        axis.plot(grid, mh.embed(kernel, rows)(grid), color="#d55e00", linewidth=2, label="average of the bumps")
        axis.plot(rows, np.zeros(n), "|", color="#0072b2", clip_on=False)
        axis.set_title(f"their average, {n} rows", fontsize=10)
    axes[1].legend(frameon=False, fontsize=8, loc="upper right")
    for axis in axes:
        axis.set(xticks=[], ylim=(0, 1.05), xlabel="x")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "kernel_mean.png", dpi=140)
    plt.close(figure)


def constrained_weights() -> None:
    """Weights as areas: the plain average, simple shrinkage, and weights that sum to one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kernel, X = mh.Gaussian(bandwidth=10.0), mh.paper_mixture(n_features=2, random_state=0).sample(40, random_state=0)
    means = {
        "plain average": mh.KernelMean(kernel),
        "simple shrinkage": mh.ShrunkKernelMean(kernel),
        "Σβ = 1, β ≥ 0": mh.ConstrainedKernelMean(kernel),
    }
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained", sharex=True, sharey=True)
    for axis, (name, mean) in zip(axes, means.items(), strict=True):
        weights = mean.fit(X).weights_
        axis.scatter(*X.T, s=6, color="#999999", linewidths=0)
        axis.scatter(*X.T, s=4000 * weights, color="#0072b2", alpha=0.45, linewidths=0)
        axis.set(xticks=[], yticks=[], title=f"{name}\nsum {weights.sum():.2f}, {(weights == 0).sum()} zero")
    figure.savefig(IMAGES / "constrained_weights.png", dpi=120)
    plt.close(figure)


def displays() -> None:
    """Four displays, on small data."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from muhat import plotting

    rng = np.random.default_rng(0)
    ring = rng.uniform(0, 2 * np.pi, size=(150, 1))
    X, Y = rng.normal(size=(150, 2)), 1.4 * np.hstack([np.cos(ring), np.sin(ring)]) + 0.3 * rng.normal(size=(150, 2))
    kernel = mh.Gaussian(bandwidth=0.6)
    line = np.sort(np.concatenate([rng.normal(-2, 0.8, 25), rng.normal(1.5, 0.6, 15)]))[:, None]
    figure, axes = plt.subplots(2, 2, figsize=(7.6, 6), layout="constrained")
    places = axes.ravel()
    labels = np.repeat(list("ABCDEF"), 25)
    distances = mh.group_distances(X + 0.8 * (labels == "E")[:, None], labels, control="A", random_state=0)
    plotting.GroupDistancesDisplay.from_result(distances, ax=places[0])
    plotting.FunctionDisplay.from_bands(mh.KernelMean(kernel).fit(line), line, ax=places[1])
    plotting.FunctionDisplay.from_elements(mh.embed(kernel, X), mh.embed(kernel, Y), X, Y, ax=places[2])
    matched = mh.MatchedGaussianMixture(6, kernel, random_state=0).fit(Y)
    plotting.FunctionDisplay.from_estimator(matched, Y, ax=places[3])
    names = ("GroupDistances", "Function", "Function", "Function")
    for axis, name in zip(places, names, strict=True):
        axis.set_title(f"{name}Display", fontsize=11)
    figure.savefig(IMAGES / "displays.png", dpi=110)
    plt.close(figure)


def autocorrelation() -> None:
    """A stream without drift whose rows depend on each other: autocorrelation, and alarms."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2500, 3))
    for t in range(1, len(rows)):
        rows[t] = 0.8 * rows[t - 1] + 0.6 * rows[t]
    reference, stream = rows[:1000], rows[1000:]
    figure, axes = plt.subplot_mosaic("abb;acc", figsize=(9.5, 4.2), layout="constrained")
    lags, column = np.arange(21), reference[:, 0] - reference[:, 0].mean()
    correlations = [(column[k:] * column[: len(column) - k]).sum() / (column**2).sum() for k in lags]
    axes["a"].bar(lags, correlations, width=0.5, color="#0072b2")
    axes["a"].axhspan(-2 / 1000**0.5, 2 / 1000**0.5, color="#cccccc", zorder=0)
    axes["a"].set(xlabel="lag in rows", title="autocorrelation")
    for place, block_length, words in (("b", 1, "block_length=1"), ("c", "auto", 'block_length="auto", the default')):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what fit found is what the picture shows
            monitor = mh.DriftMonitor(150, block_length=block_length, random_state=0).fit(reference)
        alarms = []
        for t, row in enumerate(stream):
            if monitor.update(row):
                alarms.append(t)
                monitor.reset()
        axes[place].plot(stream[:, 0], linewidth=0.6, color="#999999")
        axes[place].vlines(alarms, *axes[place].get_ylim(), color="#d55e00", linewidth=0.7)
        axes[place].set(title=f"{words}: {len(alarms)} alarms in {len(stream):,} rows")
    axes["c"].set(xlabel="rows of a stream without drift")
    figure.savefig(IMAGES / "autocorrelation.png", dpi=130)
    plt.close(figure)


def figures(example: str, pictures: dict[int, str]) -> None:
    """Run an example, and keep the figures that pages show, by their number."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context():
        runpy.run_path(str(EXAMPLES / f"{example}.py"))
    for number, name in pictures.items():
        plt.figure(number).savefig(IMAGES / f"{name}.png", dpi=150)
    plt.close("all")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "modules.svg").write_text(modules(), encoding="utf-8")
    (IMAGES / "flow.svg").write_text(flow(), encoding="utf-8")
    kernel_mean()
    constrained_weights()
    displays()
    autocorrelation()
    for example, pictures in SHOWN.items():
        figures(example, pictures)


if __name__ == "__main__":
    main()

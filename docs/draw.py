"""The drawings of the pages: ``python docs/draw.py`` writes them into docs/images."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

import muhat as mh

IMAGES = Path(__file__).parent / "images"
INK, PAPER, LINE = "#1f2933", "#fbfaf7", "#c9c4b8"
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"

LAYERS = [
    ("#dcecf5", "ground", "types values validation memory threads", "names, frozen values, every input check"),
    ("#dcecf5", "arrays", "distances fast gram spectrum refits filters selection", "numerics that know no API"),
    ("#e1f1e6", "spaces", "measures kernel_algebra kernels adapters elements", "what a kernel is, what an element is"),
    ("#e1f1e6", "features", "features lowrank reservoir sketch streaming", "m numbers in place of a function"),
    ("#fdf0d5", "means", "mean spectral targets adaptive constrained robust stein recipes", "the estimators"),
    ("#f8e1d8", "operators", "memo components operators covariance preimages pca", "centring, kernel PCA"),
    ("#f8e1d8", "densities", "matching matching_setup matching_solvers density", "the nearest mixture"),
    ("#f8e1d8", "bags", "level2 bag_input whitening bags pooling support_measure", "distributions as data"),
    ("#f8e1d8", "questions", "hypothesis_tests errors mmd_intervals datasets", "tests, error bars, tables"),
    ("#ece4f3", "machines", "dask_input worker_tasks distributed", "the same on Dask"),
    (
        "#ece4f3",
        "outside",
        "plotting mean_plotting bag_plotting reproduce files command_line",
        "pictures, the paper, files, the command",
    ),
]


def text(x: float, y: float, words: str, size: int = 13, more: str = "") -> str:
    return f"<text x='{x}' y='{y}' font-size='{size}' fill='{INK}' {FONT} {more}>{escape(words)}</text>"


def box(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='8' fill='{fill}' stroke='{LINE}' {more}/>"


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    start = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' role='img'>"
    ground = f"<rect width='{width}' height='{height}' rx='12' fill='{PAPER}'/>"
    return "\n".join([start, f"<title>{escape(title)}</title>", ground, *parts, "</svg>", ""])


def modules() -> str:
    """The modules in layers; each may import from its own layer and from those above it."""
    parts = []
    for row, (fill, name, members, saying) in enumerate(LAYERS):
        y = 16 + 50 * row
        parts += [box(16, y, 868, 42, fill), text(30, y + 26, name, 14, "font-weight='700'")]
        parts.append(text(124, y + 26, members.replace(" ", "   "), 13, "xml:space='preserve'"))
        parts.append(text(870, y + 26, saying, 12, "text-anchor='end' opacity='0.65'"))
    y = 16 + 50 * len(LAYERS)
    parts.append(text(30, y + 14, "imports go upwards only: a test keeps it so", 12, "opacity='0.65'"))
    return svg(900, y + 30, "Modules of muhat, in the order in which they may import", parts)


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
        parts += [box(x, 20, 125, 58, "#dcecf5"), text(x + 62, 45, name, 14, f"{middle} font-weight='700'")]
        parts.append(text(x + 62, 65, how, 11, f"{middle} opacity='0.7'"))
        if i:
            parts.append(arrow(x - 21, 49, x - 3, 49))
    parts += [arrow(813, 79, 640, 122), box(260, 124, 380, 56, "#fdf0d5")]
    parts += [text(450, 148, "mean_ = Element(kernel_, Atoms(X, β))", 15, f"{middle} font-weight='700'")]
    parts.append(text(450, 168, "adds, subtracts, has inner products and norms", 11, f"{middle} opacity='0.7'"))
    for i, (name, how) in enumerate(uses):
        x = 16 + 221 * i
        parts += [arrow(330 + 80 * i, 181, x + 101, 222), box(x, 224, 203, 58, "#f8e1d8")]
        parts.append(text(x + 101, 249, name, 14, f"{middle} font-weight='700'"))
        parts.append(text(x + 101, 269, how, 11, f"{middle} opacity='0.7'"))
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


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "modules.svg").write_text(modules(), encoding="utf-8")
    (IMAGES / "flow.svg").write_text(flow(), encoding="utf-8")
    kernel_mean()


if __name__ == "__main__":
    main()

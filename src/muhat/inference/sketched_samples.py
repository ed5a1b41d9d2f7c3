"""Two-sample test of two sketches, by their bins of neighbouring rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch
from muhat.inference.combine import Component, combine_statistics
from muhat.inference.mmd import mean_similarities, sums_from_features
from muhat.inference.results import Explanation, observed_and_null, ranked_components
from muhat.inference.splits import centred_splits, smallest_pvalue
from muhat.inference.two_sample import MMDResult
from muhat.linalg.resources import check_memory
from muhat.types import Array

FEWEST_BINS = 10
"""Each of two sketches has at least this many bins of several rows, so that at most a tenth of its rows is in none."""


def test_of_sketches(
    X: Any,
    Y: Any,
    n_resamples: int,
    rng: np.random.Generator,
    memory_limit: float | None,
    given: dict[str, Any],
    scale: Any,
) -> MMDResult:
    """Permute the bins of two sketches; ``given`` and ``scale`` are options that a test of sketches does not have."""
    options = {name: value for name, value in given.items() if value is not None}
    if not (isinstance(scale, str) and scale == "auto"):
        options["scale"] = scale
    for name, value in options.items():
        raise ValueError(
            f"{name}={value!r} needs rows, and X or Y is a sketch, which holds sums of their features; leave "
            f"{name} out, or pass the rows of both samples"
        )
    bins = bins_of_sketches(X, Y)
    needed = 24.0 * (bins.means.size + len(bins.of_first) * (n_resamples + 1))
    name = f"{n_resamples:,} splits of {len(bins.of_first):,} bins"
    check_memory(needed, memory_limit, name, "use fewer resamples or bins, or a larger memory_limit")
    components = sketch_components(bins, n_resamples, rng)
    combined, kernel = combine_statistics(components), X.features.kernel_
    differ = f"X and Y differ under {kernel!r}, and sketches do not tell in which columns"
    texts = {"features": differ, "dispersion": f"{components[1].value} is more spread out"}
    found = ranked_components(components, combined, lambda part: Explanation(texts[part.name], kernel))
    witness = X.mean_element() - Y.mean_element() if isinstance(X.features, Nystroem) else None
    smallest = smallest_pvalue(bins.of_first, n_resamples)
    results = observed_and_null(combined)
    return MMDResult(*results, found, bins.method, kernel, witness, (X.n_, Y.n_), smallest_pvalue=smallest)


class SketchBins(NamedTuple):
    """Means of z(x) and k(x, x) in bins of ``size`` rows of two sketches; sample of each bin; rows in no bin."""

    means: Array
    diagonal: Array
    of_first: Array
    size: int
    unused: int

    @property
    def method(self) -> str:
        """How the test was done, in words."""
        return f"sketches of {len(self.of_first):,} bins of {self.size:,} rows; {self.unused:,} rows are in no bin"


def sketch_components(bins: SketchBins, n_resamples: int, rng: np.random.Generator) -> list[Component]:
    """The unbiased MMD² and the difference in dispersion, from means of z(x) and of k(x, x) in bins of equal size.

    The dispersion of a sample is E‖k(x, ·) − μ‖² = E k(x, x) − ‖μ‖², where ‖μ‖² is the mean inner product of two
    different bins. Both terms are taken about the pooled mean c, on which their difference does not depend.
    """
    splits = centred_splits(bins.of_first, n_resamples, rng)
    c = bins.means.mean(axis=0)
    found = mean_similarities(sums_from_features(bins.means - c, splits), splits)
    about_c = bins.diagonal - 2.0 * bins.means @ c  # E‖k(x, ·) − c‖² of each bin, up to the constant ‖c‖²
    dispersion = (about_c - about_c.mean()) @ splits.weights - found.within
    dispersion -= dispersion.mean()  # over all splits, so that both signs are as likely
    wider = "X" if dispersion[0] > 0 else "Y"
    return [
        Component("features", "features", found.mmd, found.rounding),
        Component("dispersion", "dispersion", np.abs(dispersion), found.rounding, value=wider),
    ]


def bins_of_sketches(X: Any, Y: Any) -> SketchBins:
    """Bins of equal size of two sketches of the same features, or a ValueError."""
    states = _binned_state("X", X), _binned_state("Y", Y)
    states[0].check_same_features(states[1])
    size = max(state.bins.size for state in states)
    first, second = (state.bins.means(size) for state in states)
    for name, state, means in (("X", states[0], first), ("Y", states[1], second)):
        if len(means) < (FEWEST_BINS if size > 1 else 2):
            raise ValueError(
                f"{name} is a sketch of {state.sums.n:,} rows, which fill {len(means)} bins of the {size:,} rows that "
                f"bins of the larger sample have; make both sketches with more bins=, sketch fewer rows of the larger "
                f"sample, or pass rows"
            )
    of_first = np.repeat([1.0, 0.0], [len(first), len(second)])
    rows = sum(state.sums.n for state in states)
    means = np.concatenate([first, second])
    return SketchBins(means[:, :-1], means[:, -1], of_first, size, rows - size * len(of_first))


def _binned_state(name: str, sketch: Any) -> Any:
    if not isinstance(sketch, MeanSketch):
        raise ValueError(
            f"{name} is of type {type(sketch).__name__} and the other sample is a MeanSketch; pass two sketches of the "
            f"same features, or the rows of both samples"
        )
    if sketch.state_.bins is None:
        raise ValueError(f"{name} is a sketch without bins of rows to permute; make it with MeanSketch(bins=1000)")
    return sketch.state_

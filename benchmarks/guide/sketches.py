"""Errors of kernel means from features, relative to the statistical error: the numbers of docs/scaling.md.

python benchmarks/guide/sketches.py
python benchmarks/guide/sketches.py --rows 1000
"""

from __future__ import annotations

import argparse

import numpy as np

import muhat as mh
from muhat.features.base import BaseFeatures
from muhat.features.fourier import Fourier
from muhat.features.nystroem import Nystroem
from muhat.features.sketch import MeanSketch

LANDMARKS = ("uniform", "k-means++", "pivoted")
SETTINGS = [(5, 1.0, 100), (5, 1.0, 400), (30, 1.0, 100), (30, 1.0, 400), (5, 0.2, 400), (30, 0.2, 400)]
"""Dimension, bandwidth in medians, number of features."""

NEW_ROWS = 1000


class Means:
    """The plain mean of a sample and the true one, in one space."""

    def __init__(self, d: int, width: float, rows: int) -> None:
        P = mh.paper_mixture(n_features=d, random_state=0)
        self.X, self.new = P.sample(rows, random_state=1), P.sample(NEW_ROWS, random_state=2)
        median = mh.Gaussian().resolve(self.X)
        self.kernel = median.with_params(bandwidth=width * median.bandwidth)
        self.plain, self.truth = mh.embed(self.kernel, self.X), mh.embed(self.kernel, P)

    def fitted(self, features: BaseFeatures) -> BaseFeatures:
        return features.fit(self.X[: 2 * len(self.X) // 5])

    def distance_ratio(self, features: Nystroem) -> float:
        """How far the mean of the features lies from the plain one, over how far that one lies from the truth."""
        mean = MeanSketch(self.fitted(features)).update(self.X).mean_element()
        return mean.distance(self.plain) / self.plain.distance(self.truth)

    def value_ratio(self, features: BaseFeatures) -> float:
        """The same for values at new rows, root mean squares; Fourier features make no element of the space."""
        sketch = MeanSketch(self.fitted(features)).update(self.X)
        values, plain = features.transform(self.new) @ sketch.mean_features(), self.plain(self.new)
        return float(np.linalg.norm(values - plain) / np.linalg.norm(plain - self.truth(self.new)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="of landmarks and frequencies")
    arguments = parser.parse_args()
    seed, columns = arguments.seed, (*LANDMARKS, "uniform, values", "Fourier, values")
    print(f"Error of a mean of {arguments.rows:,} rows in features, over its statistical error")
    print(f"{'d, bandwidth, features':<28}" + "".join(f"{name:>17}" for name in columns))
    for d, width, m in SETTINGS:
        means = Means(d, width, arguments.rows)
        ratios = [means.distance_ratio(Nystroem(means.kernel, m, kind, random_state=seed)) for kind in LANDMARKS]
        ratios.append(means.value_ratio(Nystroem(means.kernel, m, random_state=seed)))
        ratios.append(means.value_ratio(Fourier(means.kernel, m, random_state=seed)))
        print(f"{f'{d}, {width:g} of the median, {m}':<28}" + "".join(f"{ratio:>17.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()

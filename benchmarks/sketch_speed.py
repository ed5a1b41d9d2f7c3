"""Rows a second of a MeanSketch on 1,000 Fourier features: against scikit-learn's ``RBFSampler`` and a mean.

Run it: ``python benchmarks/sketch_speed.py``. Both sides read the same blocks of 1,024 rows in 10 columns in turn, use
one thread and end with the mean of 1,000 features in float64.
"""

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits
from timing import best_times, report

from muhat import Gaussian
from muhat.features.fourier import Fourier
from muhat.features.sketch import MeanSketch

BLOCKS, ROWS, WIDTH, FEATURES, BANDWIDTH = 8, 1024, 10, 1000, 3.0
TARGET = 1.5


def make_blocks():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(ROWS, WIDTH)) for _ in range(BLOCKS)]


def measure():
    """Seconds of the library and of scikit-learn, best of five rounds that alternate."""
    blocks = make_blocks()
    features = Fourier(Gaussian(BANDWIDTH), FEATURES, random_state=0).fit(blocks[0])
    sampler = RBFSampler(gamma=1 / (2 * BANDWIDTH**2), n_components=FEATURES, random_state=0).fit(blocks[0])

    def library():
        sketch = MeanSketch(features)
        for block in blocks:
            sketch.update(block)
        return sketch.mean_features()

    def rival():
        return sum(sampler.transform(block).sum(axis=0) for block in blocks) / (BLOCKS * ROWS)

    with threadpool_limits(1):
        difference = abs(np.linalg.norm(library()) - np.linalg.norm(rival()))
        assert difference < 0.1, f"the norms of the two means differ by {difference}"
        return best_times(library, rival)


if __name__ == "__main__":
    library, rival = measure()
    print(f"{BLOCKS} blocks x {ROWS} rows x {WIDTH} columns, {FEATURES} features, one thread")
    print(f"rows a second: muhat {BLOCKS * ROWS / library:,.0f}   RBFSampler {BLOCKS * ROWS / rival:,.0f}")
    report("MeanSketch.update, times as fast", rival / library, f"{TARGET}", rival / library >= TARGET)

"""Gram matrix of 300 bags of 50 rows in 32 columns, against a double loop over scikit-learn's ``rbf_kernel``; fits.

Run it: ``python benchmarks/bags_speed.py``. Both sides compute every pair of bags once and use one thread, and the
rounds of the two alternate, so that a busy machine slows both. Fits of models of bags are CPU seconds alone; run it
again with ``PYTHONPATH`` at the sources of another version to compare.
"""

from time import perf_counter, process_time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import muhat as mh
from muhat import Gaussian

N_BAGS, SIZE, WIDTH, ROUNDS = 300, 50, 32, 5
BANDWIDTH = 8.0


def make_bags():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(SIZE, WIDTH)) + rng.normal(size=WIDTH) for _ in range(N_BAGS)]


def library_gram(bags):
    return mh.DistributionKernel(Gaussian(bandwidth=BANDWIDTH)).fit_transform(bags)


def loop_rows(bags, rows):
    """Rows of the lower half of the Gram matrix, a pair of bags at a time."""
    gamma = 1 / (2 * BANDWIDTH**2)
    return {(i, j): rbf_kernel(bags[i], bags[j], gamma=gamma).mean() for i in rows for j in range(i + 1)}


def measure():
    """Seconds of the library (mean of the rounds) and of the loop (all rounds together)."""
    bags = make_bags()
    library, loop = [], 0.0
    entries = {}
    with threadpool_limits(1):
        library_gram(bags[:20])
        for r in range(ROUNDS):
            start = perf_counter()
            G = library_gram(bags)
            library.append(perf_counter() - start)
            start = perf_counter()
            entries |= loop_rows(bags, range(r, N_BAGS, ROUNDS))
            loop += perf_counter() - start
    difference = max(abs(G[pair] - value) for pair, value in entries.items())
    assert difference < 1e-12, f"the two sides differ by {difference}"
    return float(np.mean(library)), loop


def bag_gram_ratio() -> float:
    """How many times faster the library is."""
    library, loop = measure()
    return loop / library


def fits() -> dict[str, float]:
    """CPU seconds of fits to 150 bags of 3 to 99 rows in 10 columns, the better of two."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, 10)) + 0.3 * rng.normal(size=10) for n in rng.integers(3, 100, 150)]
    y = np.array([bag.mean() for bag in bags])
    jobs = {
        "pooled_means": lambda: mh.pooled_means(bags),
        "DistributionRidge": lambda: mh.DistributionRidge().fit(bags, y),
        "GroupAnomalyDetector": lambda: mh.GroupAnomalyDetector().fit(bags),
        "SupportMeasureClassifier": lambda: mh.SupportMeasureClassifier().fit(bags, y > 0),
    }
    found = {}
    for name, job in jobs.items():
        times = []
        for _ in range(2):
            start = process_time()
            job()
            times.append(process_time() - start)
        found[name] = min(times)
    return found


if __name__ == "__main__":
    library, loop = measure()
    print(f"{N_BAGS} bags x {SIZE} rows x {WIDTH} columns, each pair once, one thread")
    print(f"muhat {library:.2f} s   loop over rbf_kernel {loop:.2f} s   ratio {loop / library:.1f}")
    with threadpool_limits(1):
        print("fits: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in fits().items()))

"""Cost of the mean estimators against what anyone would do instead, as ratios of one run.

python benchmarks/mean.py
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
from scipy.linalg import eigh, solve
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits
from timing import best_times, report

import muhat as mh
from muhat.shrinkage.scores import deletion_scores


def spectral_fit(n: int = 2000, d: int = 10) -> float:
    """Fit with deletion, over the Gram matrix and one eigendecomposition."""
    X = np.random.default_rng(0).normal(size=(n, d))
    gamma = 0.5 / mh.Gaussian().resolve(X).bandwidth ** 2
    fit, rival = best_times(
        lambda: mh.SpectralKernelMean().fit(X),
        lambda: eigh(rbf_kernel(X, gamma=gamma)),
        repeats=3,
    )
    return fit / rival


def spectral_fit_fast_driver(n: int = 2000, d: int = 10) -> float:
    """The same over LAPACK's divide and conquer, the fastest driver."""
    X = np.random.default_rng(0).normal(size=(n, d))
    gamma = 0.5 / mh.Gaussian().resolve(X).bandwidth ** 2
    fit, rival = best_times(
        lambda: mh.SpectralKernelMean().fit(X),
        lambda: eigh(rbf_kernel(X, gamma=gamma), driver="evd"),
        repeats=3,
    )
    return fit / rival


def naive_deletion(K: np.ndarray, lams: np.ndarray) -> list[float]:
    """Leave-one-out scores of F-KMSE by n refits for each λ."""
    n = len(K)
    scores = []
    for lam in lams:
        losses = []
        for i in range(n):
            others = np.delete(np.arange(n), i)
            part = K[np.ix_(others, others)]
            b = solve(part + lam * np.eye(n - 1), part.mean(axis=1), assume_a="pos")
            losses.append(K[i, i] - 2 * b @ K[others, i] + b @ part @ b)
        scores.append(float(np.mean(losses)))
    return scores


def leave_one_out(n: int = 200) -> float:
    """Naive leave-one-out over ours, on the same Gram matrix and λ; in one thread, for small matrices gain by none."""
    X = np.random.default_rng(0).normal(size=(n, 10))
    K = mh.Gaussian().resolve(X)(X)
    lams = np.logspace(-3, 2, 33)
    with threadpool_limits(1):
        np.testing.assert_allclose(deletion_scores(K, lams), naive_deletion(K, lams), rtol=1e-9)
        naive, ours = best_times(lambda: naive_deletion(K, lams), lambda: deletion_scores(K, lams), repeats=2)
    return naive / ours


def shrunk_fit(n: int = 5000, d: int = 10) -> float:
    """Fit, the median bandwidth included, over computing and summing the Gram matrix."""
    X = np.random.default_rng(0).normal(size=(n, d))
    gamma = 0.5 / mh.Gaussian().resolve(X).bandwidth ** 2
    fit, rival = best_times(lambda: mh.ShrunkKernelMean().fit(X), lambda: rbf_kernel(X, gamma=gamma).sum())
    return fit / rival


def many_means(mean: mh.means.BaseKernelMean, bags: list[np.ndarray]) -> tuple[float, float]:
    """CPU milliseconds for each mean of many bags: a loop over fits, and ``bag_means``."""
    kernel = mh.Gaussian().resolve(np.concatenate(bags[:100]))
    mean = clone(mean).set_params(kernel=kernel)
    with threadpool_limits(1):
        times = best_times(
            lambda: [mean.fit(bag).mean_ for bag in bags],
            lambda: mh.bag_means(bags, kernel, mean),
            repeats=2,
            clock=process_time,
        )
    loop, together = (1e3 * seconds / len(bags) for seconds in times)
    return loop, together


def report_many_means() -> bool:
    """Means of bags of 20 rows each, and of 3 to 37 rows, against a loop."""
    rng, met = np.random.default_rng(0), True
    for sizes in (np.full(5000, 20), rng.integers(3, 38, 5000)):
        bags = [rng.normal(size=(n, 5)) for n in sizes]
        loop, together = many_means(mh.ShrunkKernelMean(), bags)
        what = f"bag_means, 5,000 bags of {sizes.min()} to {sizes.max()} rows (loop of fits {loop:.3f}), ms for each"
        met &= report(what, together, "<= .012", together <= 0.012, digits=4)
    for mean, goal in ((mh.SpectralKernelMean(), 0.06), (mh.AdaptiveKernelMean(), 0.1)):
        loop, together = many_means(mean, bags[:300])
        what = f"the same by {type(mean).__name__}, 300 bags (loop of fits {loop:.3f}), ms for each"
        met &= report(what, together, f"<= {goal}", together <= goal, digits=4)
    return met


def main() -> int:
    ratio = spectral_fit()
    met = report("SpectralKernelMean().fit, n = 2000 / (eigh + Gram matrix)", ratio, "<= 1.25", ratio <= 1.25)
    ratio = spectral_fit_fast_driver()
    report('SpectralKernelMean().fit, n = 2000 / (eigh(driver="evd") + Gram matrix)', ratio, "none", True)
    ratio = leave_one_out()
    met &= report("n refits for each of 33 lam, n = 200 / deletion_scores", ratio, ">= 300", ratio >= 300)
    ratio = shrunk_fit()
    met &= report("ShrunkKernelMean().fit, n = 5000 / rbf_kernel(X).sum()", ratio, "<= 1.1", ratio <= 1.1)
    met &= report_many_means()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

"""Cost of the applications against their peers, as ratios of one run.

python benchmarks/applications.py
"""

from __future__ import annotations

import sys

import numpy as np
from bags_speed import bag_gram_ratio
from density_speed import density_ratio
from sklearn.decomposition import KernelPCA
from timing import best_times, report

import muhat as mh

SOLVERS = ("arpack", "randomized", "dense")


def pca_ratio(n: int = 4000, d: int = 10, n_components: int = 20) -> tuple[float, str]:
    """KernelPCA over scikit-learn's fastest eigen-solver, on one precomputed Gram matrix."""
    X = np.random.default_rng(0).normal(size=(n, d))
    K = mh.Gaussian().resolve(X)(X)

    def theirs(solver: str) -> KernelPCA:
        return KernelPCA(n_components, kernel="precomputed", eigen_solver=solver, random_state=0).fit(K)

    calls = [lambda solver=solver: theirs(solver) for solver in SOLVERS]
    ours, *rivals = best_times(lambda: mh.KernelPCA(n_components, "precomputed").fit(K), *calls, repeats=3)
    fastest = int(np.argmin(rivals))
    return ours / rivals[fastest], SOLVERS[fastest]


def main() -> int:
    ratio, solver = pca_ratio()
    met = report(f"KernelPCA(20), n = 4000, precomputed / scikit-learn's ({solver})", ratio, "<= 1", ratio <= 1)
    ratio = bag_gram_ratio()
    met &= report("double loop of rbf_kernel / DistributionKernel, 300 bags of 50 x 32", ratio, ">= 5", ratio >= 5)
    ratio = density_ratio()
    met &= report("MatchedGaussianMixture on wdbc / GaussianMixture(10, n_init=50)", ratio, "<= 5", ratio <= 5)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

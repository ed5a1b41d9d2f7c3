"""Cost of the applications against their peers, as ratios of CPU seconds of one run.

python benchmarks/applications.py
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
from bags_speed import bag_gram_ratio
from density_speed import density_ratio
from sklearn.decomposition import KernelPCA
from timing import best_times, report

import muhat as mh

SOLVERS = ("arpack", "randomized")
SCENARIOS = {
    "plain": {},
    "shrinkage centring": {"mean": mh.ShrunkKernelMean()},
    "S-COSE": {"covariance": mh.ShrunkKernelMean()},
}


def gram_matrix(n: int, d: int) -> np.ndarray:
    """The Gram matrix of normal rows at the default bandwidth."""
    X = np.random.default_rng(0).normal(size=(n, d))
    return mh.Gaussian().resolve(X)(X)


def pca_ratios(K: np.ndarray, n_components: int = 20, repeats: int = 3) -> tuple[dict[str, float], float]:
    """CPU seconds of scikit-learn's solvers over ours, and the largest relative difference of eigenvalues to ARPACK."""

    def theirs(solver: str) -> KernelPCA:
        return KernelPCA(n_components, kernel="precomputed", eigen_solver=solver, random_state=0).fit(K)

    def ours() -> mh.KernelPCA:
        return mh.KernelPCA(n_components, "precomputed").fit(K)

    rivals = [lambda solver=solver: theirs(solver) for solver in SOLVERS]
    own, *others = best_times(ours, *rivals, repeats=repeats, clock=process_time)
    difference = np.abs(ours().eigenvalues_ / theirs("arpack").eigenvalues_ - 1.0).max()
    return dict(zip(SOLVERS, (seconds / own for seconds in others), strict=True)), float(difference)


def scenario_seconds(K: np.ndarray, n_components: int = 20) -> dict[str, float]:
    """CPU seconds of kernel PCA in the paper's scenarios."""
    calls = [
        lambda options=options: mh.KernelPCA(n_components, "precomputed", **options).fit(K)
        for options in SCENARIOS.values()
    ]
    return dict(zip(SCENARIOS, best_times(*calls, repeats=2, clock=process_time), strict=True))


def main() -> int:
    met = True
    for d in (10, 20):
        K = gram_matrix(4000, d)
        ratios, difference = pca_ratios(K)
        what = f"scikit-learn's ARPACK / KernelPCA(20), n = 4,000, {d} columns, precomputed"
        met &= report(what, ratios["arpack"], ">= 3", ratios["arpack"] >= 3)
        report(what.replace("ARPACK", "randomized"), ratios["randomized"], "", True)
        met &= difference <= 1e-10
        print(f"largest relative difference of the 20 eigenvalues: {difference:.0e} (target 1e-10)")
        for scenario, seconds in scenario_seconds(K).items():
            print(f"KernelPCA(20), {scenario}: {seconds:.2f} s of CPU")
    ratio = bag_gram_ratio()
    met &= report("double loop of rbf_kernel / DistributionKernel, 300 bags of 50 x 32", ratio, ">= 5", ratio >= 5)
    ratio = density_ratio()
    met &= report("MatchedGaussianMixture on wdbc / GaussianMixture(10, n_init=50)", ratio, "<= 5", ratio <= 5)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

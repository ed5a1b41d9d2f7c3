"""Time of a matched mixture against scikit-learn's EM on the breast-cancer table: same rows, components and starts.

Both run in one thread, in turn, so that a busy machine treats them alike.

    python benchmarks/density_speed.py
"""

from __future__ import annotations

import warnings

from sklearn.datasets import load_breast_cancer
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from timing import best_times, report

from muhat.density.matched_mixture import MatchedGaussianMixture

TARGET = 5.0


def density_ratio(solver: str = "slsqp") -> float:
    """Our time over scikit-learn's, 10 spherical components and 50 starts each; below 1 is faster."""
    X = StandardScaler().fit_transform(load_breast_cancer().data)
    ours = MatchedGaussianMixture(10, solver=solver, n_init=50, random_state=0)
    theirs = GaussianMixture(10, covariance_type="spherical", n_init=50, random_state=0)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # components on single rows: part of the work on this table
        matched, em = best_times(lambda: ours.fit(X), lambda: theirs.fit(X), repeats=3)
    return matched / em


if __name__ == "__main__":
    for solver in ("slsqp", "lbfgs"):
        ratio = density_ratio(solver)
        report(f'MatchedGaussianMixture(10, solver="{solver}") over EM, wdbc', ratio, f"<= {TARGET:g}", ratio <= TARGET)

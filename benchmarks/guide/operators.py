"""Errors of covariance operators from features, and their bounds: the numbers of docs/pca.md.

python benchmarks/guide/operators.py
python benchmarks/guide/operators.py --rows 500
"""

from __future__ import annotations

import argparse

import numpy as np

import muhat as mh


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--landmarks", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--draws", type=int, default=5, help="draws of the landmarks")
    arguments = parser.parse_args()
    X = np.random.default_rng(1).normal(size=(arguments.rows, 4))
    Y = X[:, :1] ** 2
    exact = mh.KernelCovariance().fit(X, Y).operator_
    print(f"The plain operator of {arguments.rows:,} pairs (x, x₁²) has norm {exact.norm():.3f}")
    print(f"{'landmarks':<12}{'distance':>12}{'its bound':>12}   (means of {arguments.draws} draws)")
    for r in arguments.landmarks:
        features = [mh.Nystroem(n_components=r, random_state=seed) for seed in range(arguments.draws)]
        found = [mh.KernelCovariance(features=each).fit(X, Y) for each in features]
        distance = np.mean([quick.operator_.distance(exact) for quick in found])
        bound = np.mean([np.sqrt(quick.approximation_error_) for quick in found])
        print(f"{r:<12,}{distance:>12.4f}{bound:>12.3f}")


if __name__ == "__main__":
    main()

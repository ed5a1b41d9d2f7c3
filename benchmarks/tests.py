"""What the default tests cost, and single kernels against hyppo's, on the same rows, as ratios of one run.

    pip install hyppo
    python benchmarks/tests.py            # some minutes
    python benchmarks/tests.py --own      # the default tests alone, without hyppo
    python benchmarks/tests.py --full     # hyppo's 1,000 permutations of MMD too: ten minutes and more

hyppo needs about ten minutes for 1,000 permutations of MMD. Without ``--full`` its time is measured at two smaller
numbers of permutations, which separates what it pays once from what it pays for each, and is scaled to 1,000. Ours is
always the whole test, the median bandwidth and the Gram matrix included.
"""

from __future__ import annotations

import argparse
import resource
import sys
import warnings
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

import numpy as np
from timing import report

from muhat.inference.independence import hsic_test
from muhat.inference.two_sample import mmd_test

PERMUTATIONS = 1000


def seconds(call: Callable[[], object]) -> float:
    """Time of one call."""
    start = perf_counter()
    call()
    return perf_counter() - start


def in_turn(*calls: Callable[[], object], repeats: int) -> list[list[float]]:
    """Times of each call over rounds in which each has its turn."""
    return [list(times) for times in zip(*([seconds(call) for call in calls] for _ in range(repeats)), strict=True)]


def fixed_and_each(few: list[float], many: list[float], n_few: int, n_many: int) -> tuple[float, float]:
    """What is paid once, and what for each permutation, from the median times at two numbers of permutations."""
    each = (median(many) - median(few)) / (n_many - n_few)
    return median(few) - n_few * each, each


def mmd(rival: Callable[..., object], full: bool, few: int = 1, many: int = 21, repeats: int = 3) -> float:
    """Two samples of 1,000 rows and 10 columns."""
    X, Y = np.random.default_rng(0).normal(size=(2, 1000, 10))
    calls = (
        lambda: mmd_test(X, Y, n_resamples=PERMUTATIONS, random_state=0, unbiased=True),
        lambda: rival(X, Y, few),
        lambda: rival(X, Y, many),
    )
    ours, at_few, at_many = in_turn(*calls, repeats=repeats)
    fixed, each = fixed_and_each(at_few, at_many, few, many)
    theirs = fixed + PERMUTATIONS * each
    print(f"MMD, 1,000 + 1,000 rows, 10 columns, {PERMUTATIONS:,} permutations (medians of {repeats} rounds)")
    print(f"  mmd_test               {median(ours):9.3f} s, measured whole")
    print(f"  hyppo.ksample.MMD      {theirs:9.1f} s, scaled from {few} and {many} permutations: ", end="")
    print(f"{fixed:.2f} s once and {each:.3f} s for each")
    if full:
        theirs = seconds(lambda: rival(X, Y, PERMUTATIONS))
        print(f"  hyppo.ksample.MMD      {theirs:9.1f} s, measured whole")
    return theirs / median(ours)


def default_tests() -> bool:
    """The combined tests: CPU seconds at 100, 500, 3,000 and 100,000 rows per sample, and the peak of the memory."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 500, 10))
    mmd_test(X[:50], Y[:50]), hsic_test(X[:50], Y[:50])
    met = True
    for name, test in (("mmd_test", mmd_test), ("hsic_test", hsic_test)):
        for n, goal in ((100, 0.03), (500, 0.5)):
            times = []
            for seed in range(5):
                start = process_time()
                test(X[:n, : n // 20], Y[:n, : n // 20], random_state=seed)
                times.append(process_time() - start)
            words = f"{name}(X, Y), {n} rows per sample, {min(10, n // 20)} columns, 999 permutations: CPU seconds"
            met &= report(words, median(times), f"<= {goal}", median(times) <= goal)
    for n, d, goal in ((3_000, 20, 1.0), (100_000, 10, 3.0)):
        X, Y = rng.normal(size=(2, n, d))
        start = process_time()
        method = mmd_test(X, Y, random_state=0).method
        time = process_time() - start
        words = f"mmd_test(X, Y), {n:,} + {n:,} rows, {d} columns ({method}): CPU seconds"
        met &= report(words, time, f"<= {goal:g}", time <= goal)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory of the process {peak:,.0f} MB")
    return met


def direct_hsic(K: np.ndarray, L: np.ndarray, orders: np.ndarray) -> list[float]:
    """The obvious way without a new Gram matrix: gather a permuted L for each permutation."""
    return [float(np.vdot(K, L[np.ix_(order, order)])) for order in orders]


def hsic(rival: Callable[..., object], few: int = 1, many: int = 41, repeats: int = 3) -> float:
    """Pairs of 1,000 rows and 10 columns; the cost of one permutation, what is paid once left out on both sides."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 1000, 10))
    K, L = X @ X.T, Y @ Y.T
    orders = rng.permuted(np.tile(np.arange(1000), (20, 1)), axis=1)
    own_few, own_many = PERMUTATIONS - 1, 20 * PERMUTATIONS - 1
    calls = (
        lambda: hsic_test(X, Y, n_resamples=own_few, random_state=0, unbiased=True),
        lambda: hsic_test(X, Y, n_resamples=own_many, random_state=0, unbiased=True),
        lambda: direct_hsic(K, L, orders),
        lambda: rival(X, Y, few),
        lambda: rival(X, Y, many),
    )
    at_own_few, at_own_many, direct, at_few, at_many = in_turn(*calls, repeats=repeats)
    own_fixed, own_each = fixed_and_each(at_own_few, at_own_many, own_few, own_many)
    fixed, each = fixed_and_each(at_few, at_many, few, many)
    print(f"HSIC, 1,000 rows, 10 columns each (medians of {repeats} rounds)")
    line = "  {:<24} {:8.1f} ms once, {:9.4f} ms for each permutation (from {:,} and {:,} permutations)"
    print(line.format("hsic_test", 1e3 * own_fixed, 1e3 * own_each, own_few, own_many))
    print(line.format("hyppo.independence.Hsic", 1e3 * fixed, 1e3 * each, few, many))
    print(f"  a gather of L for each: {1e3 * median(direct) / len(orders):.4f} ms for each permutation")
    whole = (fixed + own_few * each) / median(at_own_few)
    print(f"  whole test at {own_few} permutations, hyppo's scaled: {whole:.0f} times faster")
    return each / own_each


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="run hyppo's 1,000 permutations of MMD whole")
    parser.add_argument("--own", action="store_true", help="the default tests alone")
    arguments = parser.parse_args()
    met = default_tests()
    if arguments.own:
        return 0 if met else 1
    try:
        from hyppo.independence import Hsic
        from hyppo.ksample import MMD
    except ImportError:
        print("hyppo is not installed: pip install hyppo")
        return 1
    warnings.filterwarnings("ignore", message="The number of replications is low")
    # auto=False: permutations, not the chi-squared approximation.
    small = np.random.default_rng(0).normal(size=(2, 30, 10))
    rivals = [lambda X, Y, reps, test=test: test().test(X, Y, reps=reps, auto=False) for test in (MMD, Hsic)]
    for warm in rivals:
        warm(*small, 2)  # compiles, loads
    ratio = mmd(rivals[0], arguments.full)
    met &= report("hyppo.ksample.MMD / mmd_test", ratio, ">= 300", ratio >= 300)
    ratio = hsic(rivals[1])
    met &= report("hyppo.independence.Hsic / hsic_test, one permutation", ratio, ">= 15", ratio >= 15)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

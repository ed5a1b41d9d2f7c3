"""How cost grows: CPU seconds and peak memory of each main call at sizes a factor of ten apart, and what is refused.

    python benchmarks/growth.py                      # about four minutes of one core
    python benchmarks/growth.py --only mmd_test MeanSketch.update --most 60
    python benchmarks/growth.py --quick              # two small sizes in this process
    python benchmarks/growth.py --out docs           # and images/growth.png, and the table of scaling.md, of this run

Each size runs in a process of its own with one thread of BLAS; memory is the peak above what the process had with its
data. A call goes on to ten times the rows as long as its exponent predicts less than ``--most`` seconds. At the end it
is asked for more rows than it should take, in a process with 2 GB. The table is printed last.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from timing import peak_memory

import muhat as mh

COLUMNS, BAG = 10, 20
ROOM, PATIENCE = 2 * 10**9, 10
"""Bytes of the process that is asked for too much, and the seconds of CPU after which that counts as accepted."""

ACCEPTED = "accepted"

Call = Callable[[], object]


def rows(n: int, seed: int = 0) -> Any:
    """Normal rows."""
    return np.random.default_rng(seed).normal(size=(n, COLUMNS))


def kernel() -> mh.Gaussian:
    """A Gaussian kernel of about the median bandwidth of normal rows."""
    return mh.Gaussian(float(np.sqrt(2 * COLUMNS)))


def fit_of(estimator: Any) -> Callable[[int], Call]:
    """The fit of an estimator."""

    def prepare(n: int) -> Call:
        X = rows(n)
        return lambda: estimator.fit(X)

    return prepare


def two_samples(n: int) -> Call:
    X, Y = rows(n // 2), rows(n - n // 2, seed=1)
    return lambda: mh.mmd_test(X, Y, random_state=0)


def pairs(n: int) -> Call:
    X, Y = rows(n), rows(n, seed=1)
    return lambda: mh.hsic_test(X, Y, random_state=0)


def bags(n: int) -> Call:
    """Groups of twenty rows, so that there are n / 20 of them."""
    data = np.array_split(rows(n), max(n // BAG, 1))
    y = np.random.default_rng(2).normal(size=len(data))
    return lambda: mh.DistributionRidge().fit(data, y)


def reference(n: int) -> Call:
    X = rows(n)
    return lambda: mh.DriftMonitor(run_length=2000, block_length=1, random_state=0).fit(X)


def stream(n: int) -> Call:
    """Blocks of 1,000 rows; a false alarm ends with a reset, as in use."""
    monitor = mh.DriftMonitor(run_length=2000, block_length=1, random_state=0).fit(rows(500))
    X = rows(n, seed=1)

    def watch() -> None:
        for start in range(0, n, 1000):
            if monitor.update(X[start : start + 1000]):
                monitor.reset()

    return watch


def sketched(n: int) -> Call:
    """One million rows would be 80 MB: they come in blocks, as a file does."""
    sketch = mh.MeanSketch(mh.Nystroem(kernel(), 100, random_state=0).fit(rows(1000)), bins=1000)
    block = rows(min(n, 100_000))

    def read() -> None:
        for _ in range(max(n // len(block), 1)):
            sketch.update(block)

    return read


def tables(n: int) -> Call:
    a, b = rows(n // 2), rows(n - n // 2, seed=1)
    return lambda: mh.compare(a, b, random_state=0)


# Peers on the same work.


def gram_mean(n: int) -> Call:
    from sklearn.metrics.pairwise import rbf_kernel

    X = rows(n)
    return lambda: rbf_kernel(X, gamma=0.5 / kernel().bandwidth ** 2).mean()


def sklearn_pca(n: int) -> Call:
    from sklearn.decomposition import KernelPCA

    X = rows(n)
    gamma = 0.5 / kernel().bandwidth ** 2
    return lambda: KernelPCA(20, kernel="rbf", gamma=gamma, eigen_solver="arpack", random_state=0).fit(X)


def permuted_gram(n: int) -> Call:
    """The textbook test: one Gram matrix, one kernel, 999 permutations of its rows and columns as quadratic forms."""
    X = rows(n)

    def test() -> float:
        K, rng = kernel()(X), np.random.default_rng(0)
        signs = np.where(np.arange(n) < n // 2, 1.0, -1.0)
        splits = np.array([rng.permutation(signs) for _ in range(1000)])
        return float(np.einsum("ij,ij->i", splits @ K, splits).max())

    return test


def sampler_mean(n: int) -> Call:
    from sklearn.kernel_approximation import RBFSampler

    sampler = RBFSampler(gamma=0.5 / kernel().bandwidth ** 2, n_components=100, random_state=0).fit(rows(10))
    block = rows(min(n, 100_000))
    return lambda: sum(sampler.transform(block).mean(axis=0).sum() for _ in range(max(n // len(block), 1)))


class Job(NamedTuple):
    """A call as a function of the number of rows, its first size, a peer, and a size that is too much."""

    prepare: Callable[[int], Call]
    first: int = 100
    peer: str | None = None
    too_much: int = 10**6


JOBS = {
    "ShrunkKernelMean": Job(fit_of(mh.ShrunkKernelMean(kernel())), peer="rbf_kernel(X).mean()"),
    "SpectralKernelMean": Job(fit_of(mh.SpectralKernelMean(kernel()))),
    "AdaptiveKernelMean": Job(fit_of(mh.AdaptiveKernelMean(kernel()))),
    "RobustKernelMean": Job(fit_of(mh.RobustKernelMean(kernel()))),
    "KernelPCA(20)": Job(fit_of(mh.KernelPCA(20, kernel())), peer="scikit-learn's KernelPCA(20)", too_much=10**5),
    "mmd_test": Job(two_samples, peer="one Gram matrix, 999 splits"),
    "hsic_test": Job(pairs),
    "DistributionRidge": Job(bags),
    "DriftMonitor.fit": Job(reference, first=1000),
    "DriftMonitor.update": Job(stream, first=1000),
    "compare": Job(tables),
    "MeanSketch.update": Job(sketched, first=10_000, peer="RBFSampler(n_components=100) and a mean", too_much=10**8),
    "rbf_kernel(X).mean()": Job(gram_mean, too_much=0),
    "scikit-learn's KernelPCA(20)": Job(sklearn_pca, too_much=0),
    "one Gram matrix, 999 splits": Job(permuted_gram, too_much=0),
    "RBFSampler(n_components=100) and a mean": Job(sampler_mean, first=10_000, too_much=0),
}
PEERS = {job.peer for job in JOBS.values()} - {None}


class Cost(NamedTuple):
    """Rows, CPU seconds, and peak memory in MB above the data."""

    n: int
    seconds: float
    memory: float


def run_here(name: str, n: int) -> Cost:
    """Cost of one call, the best of several for short ones."""
    call = JOBS[name].prepare(n)
    before, times = peak_memory(), []
    while not times or (sum(times) < 0.5 and len(times) < 5):
        start = process_time()
        call()
        times.append(process_time() - start)
    return Cost(n, min(times), max(peak_memory() - before, 0.0))


def in_own_process(name: str, n: int, *options: str) -> Cost | str:
    """Cost of a call in a process of its own, or the words with which it ended."""
    command = [sys.executable, __file__, "--job", name, str(n), *options]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode < 0:
        return ACCEPTED
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
    return last if done.returncode else Cost(*json.loads(last))


def refusal(name: str, n: int) -> str:
    """What a call says of more rows than it should take, where a process has 2 GB."""
    answer = in_own_process(name, n, "--limited")
    return answer if isinstance(answer, str) else f"done in {answer.seconds:.1f} s"


def measure(name: str, most: float, largest: int) -> list[Cost]:
    """Costs of a call at sizes a factor of ten apart, as long as the next is expected to end in time."""
    found: list[Cost] = []
    n = JOBS[name].first
    while n <= largest:
        cost = in_own_process(name, n)
        if isinstance(cost, str):
            print(f"    n = {n:>10,}  {cost}", flush=True)
            break
        found.append(cost)
        show(cost)
        n *= 10
        if cost.seconds * 10 ** max(exponent(found), 1.0) > most:
            break
    return found


def show(cost: Cost) -> None:
    print(f"    n = {cost.n:>10,}  {cost.seconds:9.4f} s  {cost.memory:8.0f} MB", flush=True)


def exponent(found: list[Cost]) -> float:
    """Of the time between the two largest sizes; 1 where there is one size."""
    if len(found) < 2:
        return 1.0
    (n, before, _), (m, after, _) = found[-2:]
    return float(np.log(after / before) / np.log(m / n))


HEAD = "| call | 1,000 rows | 10,000 | 100,000 | 1,000,000 | exponent | too much in 2 GB |"


def table(found: dict[str, list[Cost]], refused: dict[str, str]) -> str:
    """CPU seconds, and peak memory in MB in brackets, as a table of Markdown; peers in italics.

    Of a refusal the words before the remedy are kept.
    """
    lines = [HEAD, "|---" * 7 + "|"]
    for name, costs in found.items():
        at = {cost.n: f"{cost.seconds:.2g} ({cost.memory:,.0f})" for cost in costs}
        growth = f"{exponent(costs):.1f}" if len(costs) > 1 else ""
        words = refused.get(name, "")
        if words.startswith(("MemoryError", "ValueError")):
            words = re.sub(r"( and [\d.]+ \w+ may be used)?;.*", " …", words.partition(": ")[2])
            words = f'refused: "{words}"'
        call = f"*{name}*" if name in PEERS else f"`{name}`"
        lines.append(" | ".join([f"| {call}", *(at.get(10**k, "") for k in range(3, 7)), growth, words, ""]).rstrip())
    return "\n".join(lines) + "\n"


def put_on_page(printed: str, page: Path) -> None:
    """Replace the table of the page."""
    text = page.read_text(encoding="utf-8")
    before, _, after = text.partition(HEAD)
    page.write_text(before + printed + "\n" + after.partition("\n\n")[2], encoding="utf-8")


def picture(found: dict[str, list[Cost]], path: Path) -> None:
    """Time and memory against rows on logarithmic axes; peers are dashed, in the colour of their rival."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharex=True)
    names = [name for name in found if name not in PEERS]
    colours = {name: f"C{k % 10}" for k, name in enumerate(names)}
    for name, costs in found.items():
        rival = next((job for job in JOBS if JOBS[job].peer == name and job in found), None)
        like = rival or name
        style: dict[str, Any] = {"color": colours.get(like, "0.5"), "linestyle": "--" if name in PEERS else "-"}
        marker = "s" if like in names[10:] else "o"
        for ax, values, least in zip(axes, zip(*[cost[1:] for cost in costs], strict=True), (1e-4, 1.0), strict=True):
            places = [cost.n for cost in costs]
            ax.loglog(places, np.maximum(values, least), marker=marker, markersize=4, label=name, **style)
    for ax, label in zip(axes, ("CPU time (s)", "peak memory above the data (MB)"), strict=True):
        ax.set(xlabel="rows", ylabel=label)
        ax.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--most", type=float, default=12.0, help="CPU seconds of one call")
    parser.add_argument("--largest", type=int, default=1_000_000, help="rows")
    parser.add_argument("--quick", action="store_true", help="two small sizes in this process, nothing refused")
    parser.add_argument("--out", type=Path, help="folder of scaling.md and images/growth.png, which are written anew")
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--limited", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        run_job(*options.job, options.limited)
        return
    warnings.simplefilter("ignore")  # few reference rows of a monitor
    found, refused = {}, {}
    for name in options.only:
        print(name, flush=True)
        if options.quick:
            sizes = [JOBS[name].first, 10 * JOBS[name].first]
            found[name] = [run_here(name, n) for n in sizes]
            for cost in found[name]:
                show(cost)
        else:
            found[name] = measure(name, options.most, options.largest)
        if len(found[name]) > 1:
            print(f"    time ~ n^{exponent(found[name]):.2f} between the two largest sizes", flush=True)
        if JOBS[name].too_much and not options.quick:
            refused[name] = refusal(name, JOBS[name].too_much)
            print(f"    {JOBS[name].too_much:,} rows: {refused[name]}", flush=True)
    printed = table(found, refused)
    print(printed)
    if options.out:
        picture({name: costs for name, costs in found.items() if costs}, options.out / "images" / "growth.png")
        put_on_page(printed, options.out / "scaling.md")


def run_job(name: str, n: str, limited: bool) -> None:
    """What a process of its own does: the cost as JSON, or the error in one line."""
    warnings.simplefilter("ignore")
    if limited:
        resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
    try:
        print(json.dumps(run_here(name, int(n))))
    except (MemoryError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()

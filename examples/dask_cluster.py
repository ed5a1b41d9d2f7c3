"""A cluster on one machine
========================

Days of data on two workers are sketched and compared, and one worker is killed.

Each day is a block that a worker makes for itself, as it would read a file. From day 7 on a part of the rows lies on a
ring with the mean and covariance of all rows. The same work is done here, in this process, and over the workers; then
once more while a worker dies. The numbers must not differ.

In a shell::

    python examples/dask_cluster.py --out report
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import time
from pathlib import Path

import numpy as np

import muhat as mh
from muhat.distributed import bag_gram, map_cells, mmd_distance, sketch_collection

DAYS, CHANGE, VICTIM = 12, 7, 5
COLOURS = {"work": "#0072b2", "again": "#009e73", "killed": "#d55e00"}
KERNEL = mh.Gaussian(bandwidth=0.5)


def rows_of_day(day: int, n: int) -> np.ndarray:
    """Gaussian rows, half of which lie on a ring after the change."""
    rng = np.random.default_rng([day, n])
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - 0.3**2)) * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(n, 2))
    return np.where(rng.random((n, 1)) < 0.5 * (day >= CHANGE), ring, rng.normal(size=(n, 2)))


def shrinkage_of_day(cell: tuple[int, int, str]) -> tuple[int, float, float, float]:
    """S-KMSE on one day; process, begin and end tell where and when. The first to take the victim's day dies."""
    day, n, folder = cell
    begin, log = time.time(), Path(folder)
    if day == VICTIM and not (log / "killed").exists():
        time.sleep(0.3)
        (log / "killed").write_text(f"{os.getpid()} {begin} {time.time()}", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
    amount = mh.ShrunkKernelMean(KERNEL).fit(rows_of_day(day, n)).shrinkage_
    return os.getpid(), begin, time.time(), amount


def timed(call):
    """Result and seconds."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def compare(features: mh.Nystroem, n: int, client) -> tuple[list[tuple], np.ndarray]:
    """The same four jobs here and over the workers: name, seconds of both, largest difference; and the Gram matrix."""
    import dask

    before, after = range(CHANGE), range(CHANGE, DAYS)
    few = n // 10  # rows a day, where all pairs of rows meet

    def blocks(days, size):
        return [dask.delayed(rows_of_day)(day, size) for day in days]

    def here(days, size):
        return np.concatenate([rows_of_day(day, size) for day in days])

    jobs = {
        f"sketch of {DAYS * n:,} rows": (
            lambda: mh.MeanSketch(features).update(here(range(DAYS), n)).mean_features(),
            lambda: sketch_collection(features, blocks(range(DAYS), n), client=client).mean_features(),
        ),
        "MMD in features": (
            lambda: (
                mh.MeanSketch(features).update(here(before, n)).distance(mh.MeanSketch(features).update(here(after, n)))
            ),
            lambda: mmd_distance(blocks(before, n), blocks(after, n), features, client=client).distance,
        ),
        f"MMD exact, {DAYS * few:,} rows": (
            lambda: mh.embed(KERNEL, here(before, few)).distance(mh.embed(KERNEL, here(after, few))),
            lambda: mmd_distance(blocks(before, few), blocks(after, few), KERNEL, client=client).distance,
        ),
        f"Gram matrix of {DAYS} bags": (
            lambda: mh.DistributionKernel(KERNEL).fit_transform([rows_of_day(day, few) for day in range(DAYS)]),
            lambda: bag_gram(blocks(range(DAYS), few), KERNEL, client=client),
        ),
    }
    table = []
    for name, (local, remote) in jobs.items():
        (expected, alone), (found, together) = timed(local), timed(remote)
        table.append((name, alone, together, float(np.abs(np.subtract(found, expected)).max())))
    return table, np.asarray(found)


def draw(lanes: list[tuple], killed: tuple[int, float, float], gram: np.ndarray, path: Path) -> None:
    """Save which process worked when, and the distances between the days."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=[1.7, 1])
    victim, begin, end = killed
    processes = sorted({lane[1] for lane in lanes} | {victim})
    zero = min([lane[2] for lane in lanes] + [begin])
    for day, pid, start, stop, _ in lanes:
        colour = COLOURS["again"] if day == VICTIM else COLOURS["work"]
        left.barh(processes.index(pid), stop - start, left=start - zero, color=colour, edgecolor="white", linewidth=0.8)
    left.barh(processes.index(victim), end - begin, left=begin - zero, color=COLOURS["killed"])
    left.text(end - zero, processes.index(victim), "  killed", va="center", color=COLOURS["killed"], fontsize=9)
    again = next(lane for lane in lanes if lane[0] == VICTIM)
    note = {"ha": "center", "color": COLOURS["again"], "fontsize": 9}
    left.text((again[2] + again[3]) / 2 - zero, processes.index(again[1]) + 0.47, "its day, again", **note)
    left.set(
        xlabel="seconds", yticks=range(len(processes)), yticklabels=[f"process {i + 1}" for i in range(len(processes))]
    )
    left.set_ylim(-0.6, len(processes) - 0.2)
    left.set_title("one bar a day: cells on two workers, one of which dies", fontsize=10)
    left.spines[["top", "right"]].set_visible(False)

    norms = np.diag(gram)
    distances = np.sqrt(np.maximum(np.add.outer(norms, norms) - 2 * gram, 0.0))
    shown = right.imshow(distances, cmap="cividis")
    figure.colorbar(shown, ax=right, label="distance (MMD)")
    right.set(xlabel="day", ylabel="day", xticks=range(0, DAYS, 4), yticks=range(0, DAYS, 4))
    right.set_title(f"distances of the days; change on day {CHANGE}", fontsize=10)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    parser.add_argument("--quick", action="store_true", help="1,000 rows a day in place of 20,000")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    n = 1000 if arguments.quick else 20_000

    from distributed import Client, LocalCluster

    features = mh.Nystroem(KERNEL, 150, "k-means++", random_state=0).fit(rows_of_day(0, 2000))
    address = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}  # nobody else can connect
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=logging.CRITICAL, **address) as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: mh.__version__)  # workers import the library, which is not to be timed
        table, gram = compare(features, n, client)
        print(f"{'job':<28}{'here':>9}{'2 workers':>12}{'difference':>13}")
        for name, alone, together, difference in table:
            print(f"{name:<28}{alone:>7.2f} s{together:>10.2f} s{difference:>13.1e}")

        (arguments.out / "killed").unlink(missing_ok=True)
        cells = [(day, n // 2, str(arguments.out)) for day in range(DAYS)]
        found, seconds = timed(lambda: dict(map_cells(shrinkage_of_day, cells, client)))
    pid, begin, end = (arguments.out / "killed").read_text(encoding="utf-8").split()
    expected = [shrinkage_of_day(cell)[3] for cell in cells]
    difference = max(abs(found[day][3] - expected[day]) for day in range(DAYS))
    print(f"\n{DAYS} cells in {seconds:.2f} s, process {pid} killed in day {VICTIM}: difference {difference:.1e}")
    (arguments.out / "killed").unlink()

    path = arguments.out / "dask_cluster.png"
    draw([(day, *found[day]) for day in range(DAYS)], (int(pid), float(begin), float(end)), gram, path)
    print(f"Picture: {path}")


if __name__ == "__main__":
    main()

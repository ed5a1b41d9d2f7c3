"""Large samples in bounded memory
===============================

What a kernel mean costs as rows are added. The plain way holds the Gram matrix, n² numbers. muhat's tiles do the same
sum in a few megabytes (:class:`~muhat.KernelMean`), and a sketch of Nyström features (:class:`~muhat.MeanSketch`,
:class:`~muhat.Nystroem`) passes once over the rows: its time grows with n, not with n².
"""

import tracemalloc
from functools import partial
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

kernel = mh.Gaussian(bandwidth=3.0)
X = np.random.default_rng(0).normal(size=(100_000, 10)) * np.linspace(0.5, 1.5, 10)

# %%
# Three ways to the same number
# -----------------------------
# The squared norm of the mean, ‖μ̂‖², is the average of the Gram matrix.


def by_gram_matrix(X):
    return kernel(X).mean()


def by_tiles(X):
    return mh.KernelMean(kernel).fit(X).mean_.norm() ** 2


def by_sketch(X):
    features = mh.Nystroem(kernel, 200, "k-means++", random_state=0).fit(X[:1000])
    return np.linalg.norm(mh.MeanSketch(features).update(X).mean_features()) ** 2


for method in (by_gram_matrix, by_tiles, by_sketch):
    print(f"{method.__name__:<16}{method(X[:1000]):.6f}")

# %%
# Estimators take the sums of a sketch as they take rows: simple shrinkage at the leave-one-out optimum, for example.

sketch = mh.MeanSketch(mh.Nystroem(kernel, 200, "k-means++", random_state=0).fit(X[:1000])).update(X)
fit = mh.ShrunkKernelMean().estimate(sketch.gram())
print(f"amount of shrinkage {fit.chosen['shrinkage']:.1e}, squared norm {fit.mean.norm() ** 2:.4f}")

# %%
# What they cost
# --------------
# Time is the better of two runs. Memory is what Python allocates at most beyond the data, in a run of its own, as
# tracing slows it down.

LARGEST = {by_gram_matrix: 3_000, by_tiles: 10_000, by_sketch: 100_000}
costs = {}
print(f"{'method':<16}{'rows':>9}{'seconds':>10}{'megabytes':>11}")
for method, largest in LARGEST.items():
    for n in (1_000, 3_000, 10_000, 30_000, 100_000):
        if n <= largest:
            seconds = min(repeat(partial(method, X[:n]), number=1, repeat=2))
            tracemalloc.start()
            method(X[:n])
            megabytes = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            costs.setdefault(method.__name__, []).append((n, seconds, megabytes))
            print(f"{method.__name__:<16}{n:9,}{seconds:10.3f}{megabytes:11.1f}")

figure, axes = plt.subplots(2, 1, figsize=(6.4, 6), sharex=True, layout="constrained")
for ax, column, label in zip(axes, (1, 2), ("seconds", "megabytes beyond the data"), strict=True):
    for (name, rows), colour, marker in zip(costs.items(), ("#777777", "#0072b2", "#d55e00"), "so^", strict=True):
        rows = np.array(rows)
        ax.plot(rows[:, 0], rows[:, column], color=colour, marker=marker, label=name.replace("_", " "))
    ax.set(xscale="log", yscale="log", ylabel=label)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
    ax.grid(color="#eeeeee")
axes[0].legend(frameon=False)
axes[1].set(xlabel="rows", ylim=(1, 200))
plt.show()

# %%
# More than there is
# ------------------
# A whole spectrum needs the Gram matrix. Asked for more memory than it may have, an estimator refuses before it
# allocates, and says what to do instead.

try:
    mh.SpectralKernelMean(kernel, solver="dense", memory_limit=1e9).fit(X[:20_000])
except MemoryError as refusal:
    print(refusal)

# %%
# A stream that is never kept
# ---------------------------
# Rows come hour by hour, and one small sketch per hour remembers their kernel mean. Sketches add up, so that any window
# of hours can be compared with any other. From hour 36 on a part of the rows moves onto a ring whose mean and
# covariance are those of all rows: averages and correlations show nothing, whereas the distance of two sketches does.

HOURS, DRIFT, WINDOW, REFERENCE = 60, 36, 4, 12


def rows_of_hour(hour, n, rng):
    """Gaussian rows, of which a growing part lies on a ring with the same mean and covariance."""
    part = np.clip((hour - DRIFT + 1) / 12, 0.0, 1.0) * 0.5
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - 0.3**2)) * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(n, 2))
    return np.where(rng.random((n, 1)) < part, ring, rng.normal(size=(n, 2)))


rng = np.random.default_rng(0)
early = rows_of_hour(0, 2000, rng)
features = mh.Nystroem(mh.Gaussian(bandwidth=0.5), 150, "k-means++", random_state=0).fit(early)
sketches, means, covariances = [], [], []
for hour in range(HOURS):
    rows = rows_of_hour(hour, 1000, rng)
    sketches.append(mh.MeanSketch(features).update(rows))
    means.append(np.linalg.norm(rows.mean(axis=0)))
    covariances.append(np.linalg.norm(np.cov(rows.T) - np.eye(2)))

# %%
# The distance of two sketches is the MMD in features. Two samples of one distribution are not at distance 0 either:
# what chance makes of it follows from the dispersion of the features, 1 − ‖μ‖² with a Gaussian kernel, and the numbers
# of rows. It is a mean and no test; :class:`~muhat.DriftMonitor` has thresholds.

reference = sum(sketches[:REFERENCE])
spread = 1 - np.linalg.norm(reference.mean_features()) ** 2
hours = np.arange(REFERENCE + WINDOW - 1, HOURS)
windows = [sum(sketches[hour - WINDOW + 1 : hour + 1]) for hour in hours]
distances = np.array([reference.distance(window) for window in windows])
chance = np.sqrt(spread * (1 / reference.n_ + 1 / windows[0].n_))
print("hour   |mean|   |cov − I|   distance / chance")
for hour, distance in zip(hours[::6], distances[::6], strict=True):
    print(f"{hour:4}{means[hour]:9.3f}{covariances[hour]:12.3f}{distance / chance:20.1f}")

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(hours, distances, color="#d55e00", linewidth=2, label=f"last {WINDOW} hours against the first {REFERENCE}")
ax.axhline(chance, color="#666666", linestyle="--", label="by chance")
ax.axvline(DRIFT, color="#444444", linewidth=0.8)
ax.text(DRIFT, 0, " drift begins", va="bottom")
ax.set(xlabel="hour", ylabel="distance (MMD)", ylim=(0, None))
ax.legend(frameon=False, loc="upper left")
plt.show()

# %%
# When it does not help
# ---------------------
# A sketch is as good as its features: with a narrow kernel, or in many dimensions, it takes more landmarks, and
# ``approximation_error_`` says whether there are enough. Up to some thousand rows use the exact estimators. Times and
# memory against other libraries, to a million rows: :doc:`/scaling`.

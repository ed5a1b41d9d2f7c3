"""A stream that drifts
====================

Rows come hour by hour and are never kept: one small sketch an hour (:class:`~muhat.MeanSketch`) remembers their kernel
mean. Sketches add up, so that any window of hours can be compared with any other. From hour 36 on a part of the rows
moves onto a ring whose mean and covariance are those of all rows: averages and correlations show nothing, the distance
of two sketches does.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

ROWS_AN_HOUR = 1000
HOURS, DRIFT, WINDOW, REFERENCE = 60, 36, 4, 12


def rows_of_hour(hour, n, rng):
    """Gaussian rows, of which a growing part lies on a ring with the same mean and covariance."""
    part = np.clip((hour - DRIFT + 1) / 12, 0.0, 1.0) * 0.5
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - 0.3**2)) * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(n, 2))
    return np.where(rng.random((n, 1)) < part, ring, rng.normal(size=(n, 2)))


# %%
# One sketch an hour
# ------------------
# All sketches share one set of features (:class:`~muhat.Nystroem`), fitted to some early rows. Its error says what the
# features lose of a row.

rng = np.random.default_rng(0)
early = rows_of_hour(0, 2000, rng)
features = mh.Nystroem(mh.Gaussian(bandwidth=0.5), 150, "k-means++", random_state=0).fit(early)
print(f"mean squared error of a row's features: {features.approximation_error_:.1e}")

sketches, means, covariances = [], [], []
for hour in range(HOURS):
    rows = rows_of_hour(hour, ROWS_AN_HOUR, rng)
    sketches.append(mh.MeanSketch(features).update(rows))
    means.append(np.linalg.norm(rows.mean(axis=0)))
    covariances.append(np.linalg.norm(np.cov(rows.T) - np.eye(2)))

# %%
# The last hours against the first
# --------------------------------
# The distance of two sketches is the MMD in features. Two samples of one distribution are not at distance 0 either:
# what chance makes of it follows from the spread of the features, 1 − ‖μ‖² with a Gaussian kernel, and the numbers of
# rows.

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
# Where the rows went
# -------------------
# A sketch is a function too. The difference of the last window and the reference is the witness: rows have left the
# middle and the outside, and gone to the ring.

side = np.linspace(-3.2, 3.2, 81)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
values = (windows[-1](grid) - reference(grid)).reshape(81, 81)
levels = np.linspace(-1, 1, 22) * np.abs(values).max()
figure, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
bar = figure.colorbar(ax.contourf(side, side, values, levels, cmap="PuOr_r"), ticks=levels[[0, -1]])
bar.ax.set_yticklabels(["less now", "more now"])
ax.set(aspect="equal", title="the last window, less the first hours")
plt.show()

# %%
# What is kept
# ------------
# A sketch is saved with its features, and read with ``MeanSketch.load``. The level of chance is a mean and no test:
# where rows follow each other, or the features are fitted to rows of another kind, it is too low.

with tempfile.TemporaryDirectory() as folder:
    day = sum(sketches[-24:])
    day.save(Path(folder) / "day.npz")
    print(f"{(Path(folder) / 'day.npz').stat().st_size / 1e3:.0f} kB hold the mean of {day.n_:,} rows")

"""The distribution of y given x
=============================

A regression predicts one number. :class:`~muhat.ConditionalKernelMean` estimates the whole distribution of y at each x,
as a kernel mean: noise that grows with x, skewed noise and several modes are part of the answer. Everything is chosen
by exact leave-one-out, and there is nothing to tune.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

rng = np.random.default_rng(0)


def draw(x):
    """A wave with noise that grows and leans to one side."""
    return np.sin(1.5 * x) + (0.05 + 0.25 * x) * (rng.gamma(2.0, 0.7, size=x.shape) - 1.4)


x = rng.uniform(0, 4, size=250)
y = draw(x)
model = mh.ConditionalKernelMean(random_state=0).fit(x[:, None], y)

# %%
# A fan of quantiles
# ------------------
# Each shade is a central interval of the predicted distribution: half of the rows, 80 % and 95 %.

grid = np.linspace(0, 4, 200)[:, None]
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for coverage, shade in ((0.95, 0.15), (0.8, 0.25), (0.5, 0.4)):
    low, high = model.interval(grid, coverage).T
    ax.fill_between(grid[:, 0], low, high, color="#0072b2", alpha=shade, linewidth=0, label=f"{coverage:.0%}")
ax.plot(grid, model.quantile(grid, 0.5), color="#0072b2", label="median")
ax.plot(x, y, ".", color="0.25", markersize=4, alpha=0.6)
ax.set(xlabel="x", ylabel="y", title="Conditional quantiles of 250 rows")
ax.legend(frameon=False, loc="upper left", ncols=4)
plt.show()

# %%
# Do intervals cover?
# -------------------
# On average they should, and nearly so at every x.

new = rng.uniform(0, 4, size=2000)
wanted = draw(new)
low, high = model.interval(new[:, None], 0.8).T
inside = (low <= wanted) & (wanted <= high)
for left in range(4):
    part = (new >= left) & (new < left + 1)
    print(f"x from {left} to {left + 1}: {inside[part].mean():.0%} of new rows lie in the 80 % interval")

# %%
# Means in the space of the kernel
# --------------------------------
# ``means`` gives the estimates themselves, elements of the space of the kernel on y. As functions they show where y is
# likely, and their distances (the MMD) tell at which x the distributions are alike, whatever differs.

at = np.array([0.3, 1.0, 3.5])
values = np.linspace(-2, 3, 200)[:, None]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
means = model.means(at[:, None])
for place, mean, colour in zip(at, means, ("#009e73", "#0072b2", "#d55e00"), strict=True):
    left.plot(values, mean(values), color=colour, label=f"x = {place}")
left.set(xlabel="y", ylabel="kernel mean at y", title="Three conditional means")
left.legend(frameon=False)
places = np.linspace(0, 4, 25)
elements = model.means(places[:, None])
distances = np.array([[f.distance(g) for g in elements] for f in elements])
shown = right.imshow(distances, origin="lower", extent=(0, 4, 0, 4), cmap="cividis")
figure.colorbar(shown, ax=right, label="MMD")
right.set(xlabel="x", ylabel="x", title="Distances of conditional distributions")
plt.show()

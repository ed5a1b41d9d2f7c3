"""Relations that a correlation does not see
=========================================

Five clouds of 150 pairs. Pearson's correlation sees the line and nothing else. The default test of independence
(:func:`~muhat.hsic_test`) also finds the circle, the wave and the noise that grows, and lets the last cloud pass.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import muhat as mh

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, size=150)
x, noise = rng.uniform(-1, 1, size=150), rng.normal(size=150)
clouds = {
    "a line": (x, 0.5 * x + 0.4 * noise),
    "a circle": (np.cos(angle) + 0.1 * x, np.sin(angle)),
    "a wave": (x, np.sin(8 * x) + 0.4 * noise),
    "noise that grows": (x, (0.2 + x**2) * noise),
    "nothing": (x, noise),
}

# %%
# Five clouds, two tests
# ----------------------
# Each p-value is the chance that independent pairs would look as related as these.

pvalues = {
    name: (stats.pearsonr(*pairs).pvalue, mh.hsic_test(*pairs, random_state=0).pvalue) for name, pairs in clouds.items()
}
for name, (correlation, independence) in pvalues.items():
    print(f"{name:<17} correlation p = {correlation:.3f}, hsic_test p = {independence:.3f}")

# %%
# The clouds
# ----------

figure, axes = plt.subplots(1, 5, figsize=(11, 2.9), layout="constrained")
for ax, (name, pairs) in zip(axes, clouds.items(), strict=True):
    ax.scatter(*pairs, s=9, color="#0b6e99" if pvalues[name][1] < 0.05 else "#888888")
    ax.set(title=name, xticks=[], yticks=[])
    ax.set_xlabel("correlation p = {:.3f}\nhsic_test p = {:.3f}".format(*pvalues[name]))
plt.show()

# %%
# What the two sides have in common
# ---------------------------------
# A test says that x and y depend on each other; the cross-covariance operator (:class:`~muhat.KernelCovariance`) says
# how. Its leading singular functions are the two functions, one of x and one of y, that vary together most: here those
# of a wave.

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, size=200)
y = np.sin(4 * x) + 0.3 * rng.normal(size=200)
fitted = mh.KernelCovariance(mh.Gaussian(0.3), mh.Gaussian(0.5), mean=mh.ShrunkKernelMean()).fit(x[:, None], y[:, None])
values, left, right = fitted.operator_.singular_system(1)
of_x, of_y = right[0](x[:, None]), left[0](y[:, None])
print(f"correlation of x and y {np.corrcoef(x, y)[0, 1]:.2f}, of the two functions {np.corrcoef(of_x, of_y)[0, 1]:.2f}")

figure, (before, functions, after) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
before.scatter(x, y, s=9, color="#888888")
before.set(xlabel="x", ylabel="y", title=f"correlation {np.corrcoef(x, y)[0, 1]:.2f}")
for points, function, name, color in ((x, right[0], "of x", "#0b6e99"), (y, left[0], "of y", "#d55e00")):
    grid = np.linspace(points.min(), points.max(), 200)
    functions.plot(grid, function(grid[:, None]), label=name, color=color, linewidth=2)
functions.set(xlabel="x, y", title="leading singular functions")
functions.legend(frameon=False)
after.scatter(of_x, of_y, s=9, color="#0b6e99")
after.set(xlabel="function of x", ylabel="function of y", title=f"correlation {np.corrcoef(of_x, of_y)[0, 1]:.2f}")
plt.show()

# %%
# When another test is better
# ---------------------------
# Where the relation is linear or monotone, Pearson's or Spearman's test finds it more often: :doc:`/independence`.

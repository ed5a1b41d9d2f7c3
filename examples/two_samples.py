"""Two samples with the same mean and covariance
=============================================

X is Gaussian and Y lies about a ring, and both have mean 0 and covariance I. Tests of means and correlations see
nothing. The MMD test (:func:`~muhat.mmd_test`) tells the samples apart, its witness shows where they differ, and HSIC
(:func:`~muhat.hsic_test`) finds that the coordinates of Y depend on each other. The bandwidth must be of the size of
the difference.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import muhat as mh

DRAWS = 300
WIDTH = 0.3  # of the ring


def gaussian_and_ring(n, rng):
    """Two samples of n rows with mean 0 and covariance I."""
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - WIDTH**2)) * np.column_stack([np.cos(angle), np.sin(angle)])
    return rng.normal(size=(n, 2)), ring + WIDTH * rng.normal(size=(n, 2))


# %%
# Six tests
# ---------
# The median bandwidth is as wide as the samples are, and the ring is lost in it. Bandwidth 0.5 sees it.

X, Y = gaussian_and_ring(150, np.random.default_rng(0))
wide = mh.mmd_test(X, Y, random_state=0)
narrow = mh.mmd_test(X, Y, mh.Gaussian(bandwidth=0.5), random_state=0)
results = {
    "t, first coordinate of X and Y": stats.ttest_ind(X[:, 0], Y[:, 0]),
    "t, second coordinate of X and Y": stats.ttest_ind(X[:, 1], Y[:, 1]),
    f"MMD, X and Y, median bandwidth {wide.kernel.bandwidth:.2f}": wide,
    "MMD, X and Y, bandwidth 0.5": narrow,
    "correlation, coordinates of Y": stats.pearsonr(*Y.T),
    "HSIC, coordinates of Y": mh.hsic_test(Y[:, :1], Y[:, 1:], random_state=0),
}
for name, result in results.items():
    print(f"{name:<40} p = {result.pvalue:.3f}")

# %%
# Where they differ
# -----------------
# The witness is the difference of the two kernel means: positive where X has more mass, in the middle, and negative on
# the ring.

side = np.linspace(-3.2, 3.2, 81)
grid = np.stack(np.meshgrid(side, side), axis=-1)
witness = narrow.witness(grid.reshape(-1, 2)).reshape(81, 81)
levels = np.linspace(-1, 1, 22) * np.abs(witness).max()
figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
bar = figure.colorbar(ax.contourf(side, side, witness, levels, cmap="PuOr"), ticks=levels[[0, -1]])
bar.ax.set_yticklabels(["more Y", "more X"])
ax.scatter(*X.T, s=14, color="#3f007d", edgecolor="w", linewidth=0.5, label="X")
ax.scatter(*Y.T, s=18, color="#b35806", edgecolor="w", linewidth=0.5, marker="^", label="Y")
ax.set(aspect="equal", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
ax.legend(loc="upper right")
plt.show()

# %%
# By chance?
# ----------
# If X and Y had one distribution, any other split of the pooled rows would be as likely as this one. The p-value is the
# share of random splits with a distance as large.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hist(narrow.null_distribution, bins=40, color="#bbbbbb", label="random splits")
ax.axvline(narrow.statistic, color="#d55e00", linewidth=2, label="X and Y")
ax.set(xlabel="squared MMD", ylabel="splits")
ax.legend(frameon=False)
plt.show()

# %%
# When another test is better
# ---------------------------
# Where a mean is all that differs, a test made for means finds more. The power of a test is how often it rejects, here
# at level 5 %: 50 + 50 numbers whose means differ by half a standard deviation, or of which one is 1.8 times as wide.

for name, shift, scale in (("means differ", 0.5, 1.0), ("widths differ", 0.0, 1.8)):
    found = []
    for rng in np.random.default_rng(0).spawn(DRAWS):
        x, y = rng.normal(size=(50, 1)), shift + scale * rng.normal(size=(50, 1))
        found.append([stats.ttest_ind(x, y).pvalue[0], mh.mmd_test(x, y, n_resamples=99, random_state=rng).pvalue])
    t, mmd = np.mean(np.array(found) <= 0.05, axis=0)
    print(f"{name:<16} t-test {t:4.0%}   MMD {mmd:4.0%}")

# %%
# Choose the bandwidth before you look at p-values, or on other rows; and rows must be independent of each other. More
# powers, of more tests: ``python benchmarks/guide/two_samples.py``, and :doc:`/two_samples`.

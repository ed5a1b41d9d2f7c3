"""Two samples with the same mean and covariance
=============================================

X is Gaussian and Y lies about a ring, and both have mean 0 and covariance I. Tests of means and correlations see
nothing. The default test (:func:`~muhat.mmd_test`) tells the samples apart, and its result says in what they differ.
HSIC (:func:`~muhat.hsic_test`) finds that the coordinates of Y depend on each other.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import muhat as mh
from muhat.plotting import ComponentsDisplay, FunctionDisplay

WIDTH = 0.3  # of the ring


def gaussian_and_ring(n, rng):
    """Two samples of n rows with mean 0 and covariance I."""
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - WIDTH**2)) * np.column_stack([np.cos(angle), np.sin(angle)])
    return rng.normal(size=(n, 2)), ring + WIDTH * rng.normal(size=(n, 2))


# %%
# Do they differ?
# ---------------
# Each coordinate has the same mean in both samples, and one kernel at the median bandwidth is too wide for the ring.

X, Y = gaussian_and_ring(150, np.random.default_rng(0))
result = mh.mmd_test(X, Y, random_state=0)
tests = {
    "t, first coordinate": stats.ttest_ind(X[:, 0], Y[:, 0]),
    "t, second coordinate": stats.ttest_ind(X[:, 1], Y[:, 1]),
    "MMD, one kernel, median bandwidth": mh.mmd_test(X, Y, mh.Gaussian(), random_state=0),
    "mmd_test(X, Y)": result,
    "correlation, coordinates of Y": stats.pearsonr(*Y.T),
    "hsic_test, coordinates of Y": mh.hsic_test(Y[:, 0], Y[:, 1], random_state=0),
}
for name, test in tests.items():
    print(f"{name:<36} p = {test.pvalue:.3f}")
print(result.summary)

# %%
# In what, and where?
# -------------------
# The bars are the evidence of each component by itself, with its share of the combined statistic. The witness is
# positive where X has more mass, in the middle, and negative on the ring.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
ComponentsDisplay.from_result(result, ax=left)
left.set_title(f"p = {result.pvalue:.3f}")
FunctionDisplay.from_result(result, ax=right)
right.set(aspect="equal", title="witness")
plt.show()

# %%
# How sure?
# ---------
# If X and Y had the same distribution, any other split of the pooled rows would be as likely as this one. The p-value
# is the share of splits whose joined statistic is as large.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hist(result.null_distribution, bins=40, color="#bbbbbb", label="random splits")
ax.axvline(result.statistic, color="#d55e00", linewidth=2, label="X and Y")
ax.set(xlabel="joined statistic", ylabel="splits")
ax.legend(frameon=False)
plt.show()

# %%
# When another test is better
# ---------------------------
# Where a mean is all that differs, a test made for means finds more: ``python benchmarks/power.py``, and
# :doc:`/two_samples`.

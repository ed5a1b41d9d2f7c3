"""Two samples whose differences are hidden
========================================

Two pairs of samples that simple tests cannot tell apart. In the first, both samples have the same mean and covariance.
In the second, one sensor of real weather data reads a little too high, which correlated columns hide.
:func:`~muhat.mmd_test` finds both differences, and its result says in what the samples differ.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import muhat as mh
from muhat.linalg.whitening import Whitening
from muhat.plotting import ComponentsDisplay, FunctionDisplay

WIDTH = 0.3  # of the ring


def gaussian_and_ring(n, rng):
    """Two samples of n rows with mean 0 and covariance I."""
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - WIDTH**2)) * np.column_stack([np.cos(angle), np.sin(angle)])
    return rng.normal(size=(n, 2)), ring + WIDTH * rng.normal(size=(n, 2))


# %%
# The same mean and covariance
# ----------------------------
# X is Gaussian and Y lies about a ring, and both have mean 0 and covariance I, so tests of means and correlations see
# nothing. One kernel at the median bandwidth is too wide for the ring. HSIC (:func:`~muhat.hsic_test`) finds that the
# coordinates of Y depend on each other.

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
# ~~~~~~~~~~~~~~~~~~~
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
# ~~~~~~~~~
# If X and Y had the same distribution, any other split of the pooled rows would be as likely as this one. The p-value
# is the share of splits whose combined statistic is as large.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hist(result.null_distribution, bins=40, color="#bbbbbb", label="random splits")
ax.axvline(result.statistic, color="#d55e00", linewidth=2, label="X and Y")
ax.set(xlabel="combined statistic", ylabel="splits")
ax.legend(frameon=False)
plt.show()

# %%
# A change that correlated columns hide
# -------------------------------------
# Temperature, dew point and humidity of hourly weather determine each other almost completely. If the dew point reads
# 2 °F too high, no column by itself changes visibly, and a kernel on standardised columns sees nothing, because the
# change lies along a direction in which the rows hardly vary. The default test looks at whitened rows as well, and
# names the column whose relation to the others changed.

hours = mh.load_nyc_hours()
spring = hours[(hours.origin == "LGA") & hours.time.dt.month.isin([4, 5])][["temp", "dewp", "humid"]].dropna()
rows = spring.sample(200, random_state=0)  # hours that lie apart, so that rows are nearly independent
before, after = rows[:100], rows[100:].copy()
after["dewp"] += 2.0  # a sixth of its standard deviation
one_kernel = mh.mmd_test(before, after, mh.Gaussian(), random_state=0, scale="columns")
result = mh.mmd_test(before, after, random_state=0)
print(f"one Gaussian kernel: p = {one_kernel.pvalue:.3f}")
print(f"mmd_test: p = {result.pvalue:.3f}")
print(result.summary)

# %%
# On the left, two columns in standard deviations: the samples lie on one another. On the right, the same rows whitened
# by the pooled covariance: along the direction that varies most nothing differs, and across it the second sample has
# moved. Lines are the means of the samples.

whitening = Whitening.of(rows.to_numpy())
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for sample, colour, name in ((before, "C0", "before"), (after, "C1", "after: dew point + 2 °F")):
    values = sample.to_numpy()
    left.scatter(*whitening.standardise(values)[:, :2].T, s=12, color=colour, label=name, alpha=0.7)
    across, _, along = whitening.principal_scores(values).T
    right.scatter(along, across, s=12, color=colour, alpha=0.7)
    right.axhline(across.mean(), color=colour, linewidth=2)
left.set(xlabel="temperature (sd)", ylabel="dew point (sd)", title="standardised columns")
right.set(xlabel="along the largest variance (sd)", ylabel="across: the smallest variance (sd)", title="whitened rows")
left.legend(loc="upper left")
plt.show()

# %%
# When another test is better
# ---------------------------
# Where a mean is all that differs, a test made for means finds more: ``python benchmarks/power.py``, and
# :doc:`/two_samples`.

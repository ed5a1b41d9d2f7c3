"""A change that correlated columns hide
=====================================

Temperature, dew point and humidity of hourly weather determine each other almost completely. If one sensor reads a
little too high, no column by itself changes visibly, and a kernel on standardised columns sees nothing, because the
change lies along a direction in which the rows hardly vary. In whitened rows, where all directions vary alike, it is
plain. :func:`~muhat.mmd_test` looks at both, and names the column whose relation to the others changed.
"""

import matplotlib.pyplot as plt

import muhat as mh
from muhat.linalg.whitening import Whitening

columns = ["temp", "dewp", "humid"]
hours = mh.load_nyc_hours()
spring = hours[(hours.origin == "LGA") & hours.time.dt.month.isin([4, 5])][columns].dropna()
rows = spring.sample(200, random_state=0)  # hours that lie apart, so that rows are nearly independent
before, after = rows[:100], rows[100:].copy()
after["dewp"] += 2.0  # degrees Fahrenheit: a sixth of its standard deviation

# %%
# One kernel, and the default test
# --------------------------------
one_kernel = mh.mmd_test(before, after, mh.Gaussian(), random_state=0, scale="columns")
result = mh.mmd_test(before, after, random_state=0)
print(f"one Gaussian kernel: p = {one_kernel.pvalue:.3f}")
print(f"mmd_test: p = {result.pvalue:.3f}")
print(result.summary)

# %%
# The two views
# -------------
# On the left, two columns in standard deviations: the samples lie on one another. On the right, the same rows whitened
# by the pooled covariance: along the directions that vary most nothing differs, and across them the second sample has
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

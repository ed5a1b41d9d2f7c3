"""Four questions, and what answers them
=====================================

How do I estimate a kernel mean from a handful of rows? Which number belongs to a group of rows, and how sure am I? Do
two samples differ, and in what? Has my stream drifted? Each answer takes a few lines, and all four rest on the mean of
a distribution in the space of a kernel, estimated better than by the empirical average.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import muhat as mh

rng = np.random.default_rng(0)

# %%
# How do I estimate a kernel mean from a handful of rows?
# -------------------------------------------------------
# The kernel mean of this mixture is known, and so is the error of an estimate. The empirical average is far off with
# few rows, and :class:`~muhat.AdaptiveKernelMean` is closer. With many rows both are good.

P = mh.paper_mixture(n_features=30, random_state=0)
kernel = mh.Gaussian().resolve(P.sample(1000, random_state=0))  # the default bandwidth: the median distance
truth = mh.embed(kernel, P)
rows = [5, 10, 20, 50, 100]
samples = [[P.sample(n, random_state=seed) for seed in range(100)] for n in rows]
losses = {}
for estimator in (mh.KernelMean(kernel), mh.AdaptiveKernelMean(kernel)):
    errors = [np.mean([estimator.fit(X).mean_.distance(truth) ** 2 for X in same]) for same in samples]
    losses[type(estimator).__name__] = errors
    print(
        f"{type(estimator).__name__:<18}", *(f"{n} rows: {e:.3f}" for n, e in zip(rows, errors, strict=True)), sep="  "
    )

# %%
# Which number belongs to a group, and how sure am I?
# ---------------------------------------------------
# A hundred groups have 3 to 99 rows each, and a number belongs to each, here their standard deviation.
# :class:`~muhat.DistributionRidge` predicts it for a new group, with an error bar that depends on its size.

y = rng.uniform(1, 3, size=100)
bags = [rng.normal(scale=spread, size=(rng.integers(3, 100), 2)) for spread in y]
machine = mh.DistributionRidge().fit(bags, y)
new = rng.normal(scale=2.0, size=(300, 2))
sizes = [3, 10, 30, 100, 300]
mean, std = machine.predict([new[:n] for n in sizes], return_std=True)
for n, value, error in zip(sizes, mean, std, strict=True):
    print(f"{n:3} rows: {value:.1f} ± {error:.1f}")

# %%
# Do two samples differ, and in what?
# -----------------------------------
# There is nothing to tune in :func:`~muhat.mmd_test`. The means agree here, and one column has a larger dispersion.

names = ["temperature", "pressure"]
january = pd.DataFrame(rng.normal([20, 100], [5, 5], (100, 2)), columns=names)
february = pd.DataFrame(rng.normal([20, 100], [5, 10], (100, 2)), columns=names)
result = mh.mmd_test(january, february, random_state=0)
print(f"p = {result.pvalue}: {result.summary}")

# %%
# Has my stream drifted?
# ----------------------
# :class:`~muhat.DriftMonitor` compares a stream with a reference and controls the false-alarm rate, here one in 1,000
# rows on average. The stream changes after 100 rows.

reference = pd.DataFrame(rng.normal([20, 100], [5, 5], (500, 2)), columns=names)
stream = pd.DataFrame(rng.normal([20, 100], [5, 5], (200, 2)), columns=names)
stream.loc[100:, "pressure"] += 5
monitor = mh.DriftMonitor(run_length=1000, block_length=1, random_state=0).fit(reference)
monitor.update(stream)
print(monitor.result_)

# %%
# The answers in one picture
# --------------------------

figure, ((few, groups), (two, drift)) = plt.subplots(2, 2, figsize=(9.6, 5.6), layout="constrained")
two.hist([january.pressure, february.pressure], 20, label=["January", "February"], color=["#8c8c8c", "#0072b2"])
two.set(title="Do two samples differ, and in what?", xlabel="pressure: the test names this column", ylabel="rows")
two.text(0.03, 0.9, f"p = {result.pvalue}", transform=two.transAxes)
two.legend(frameon=False)

groups.errorbar(sizes, mean, 1.96 * std, fmt="o", color="#0072b2", capsize=3)
groups.axhline(2.0, color="#444444", linestyle="--", linewidth=1, label="truth")
groups.set(xscale="log", title="Which number belongs to a group?", xlabel="rows", ylabel="predicted number")
groups.set_xticks(sizes, sizes)
groups.minorticks_off()
groups.legend(frameon=False)

mh.plotting.DriftDisplay.from_monitor(monitor, ax=drift)
drift.axvline(100, ymin=0.35, color="#444444", linewidth=0.8)
drift.text(99, 0.92, "change", ha="right", transform=drift.get_xaxis_transform())
drift.set(title="Has my stream drifted?", ylim=(-5, None))

for (name, errors), colour in zip(losses.items(), ("#8c8c8c", "#0072b2"), strict=True):
    few.plot(rows, errors, "o-", color=colour, label=name)
few.set(xscale="log", yscale="log", title="A kernel mean from few rows", xlabel="rows", ylabel="mean squared error")
few.set_xticks(rows, rows)
few.minorticks_off()
few.legend(frameon=False)
plt.show()

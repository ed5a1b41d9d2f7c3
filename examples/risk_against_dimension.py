"""Risk against dimension
======================

Stein's effect, seen. The mean θ of a Gaussian is estimated from three rows, in one dimension and in a hundred. In one
or two dimensions nothing beats the average whatever θ is; from three on James and Stein's estimator does, and the more
dimensions there are the more it gains. A kernel mean lives in a space of many dimensions, so that it can be shrunk
too: :class:`~muhat.ShrunkKernelMean` does it by leave-one-out, and need not be told the variance.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

SAMPLES = 100
ROWS = 3
NORM = 1.5  # of θ, the same in every dimension
DIMENSIONS = [1, 2, 3, 5, 10, 20, 50, 100]

# %%
# One sample
# ----------
# With the linear kernel the kernel mean *is* the mean, and shrinking it towards 0 is what James and Stein do. Their
# estimator (:func:`~muhat.james_stein`) is told that the variance is 1.

theta = np.full(20, NORM / np.sqrt(20))
X = theta + np.random.default_rng(0).normal(size=(ROWS, 20))
shrunk = mh.ShrunkKernelMean(mh.Linear()).fit(X)
print("squared error in 20 dimensions")
print(f"  average        {np.sum((X.mean(axis=0) - theta) ** 2):.2f}")
print(f"  James–Stein    {np.sum((mh.james_stein(X, variance=1.0) - theta) ** 2):.2f}")
print(f"  leave-one-out  {np.sum((shrunk.weights_ @ X - theta) ** 2):.2f}, shrunk by {shrunk.shrinkage_:.0%}")

# %%
# Many samples
# ------------
# The risk is the mean loss over samples, relative to the plain average's. The risk of James and Stein's estimator
# has a closed form. The bandwidth of the Gaussian kernel grows as distances do.


def relative_risk(kernel, d):
    """Risk of leave-one-out shrinkage over the plain average's."""
    P = mh.GaussianMixture([1.0], [np.full(d, NORM / np.sqrt(d))], [1.0])
    truth, losses = mh.embed(kernel, P), []
    for sample in range(SAMPLES):
        X = P.sample(ROWS, random_state=np.random.default_rng([d, sample]))
        means = [estimator.fit(X).mean_ for estimator in (mh.KernelMean(kernel), mh.ShrunkKernelMean(kernel))]
        losses.append([mean.distance(truth) ** 2 for mean in means])
    plain, shrunk = np.mean(losses, axis=0)
    return shrunk / plain


def exact_risk(d):
    """The same for James and Stein's estimator; below three dimensions it is the average."""
    return mh.means.james_stein_risk(np.full(d, NORM / np.sqrt(d)), 1.0, ROWS) / (d / ROWS) if d > 2 else 1.0


risks = {
    "James–Stein, exact": [exact_risk(d) for d in DIMENSIONS],
    "leave-one-out, linear kernel": [relative_risk(mh.Linear(), d) for d in DIMENSIONS],
    "leave-one-out, Gaussian kernel": [relative_risk(mh.Gaussian(np.sqrt(d)), d) for d in DIMENSIONS],
}
print(f"{'dimensions':<32}" + "".join(f"{d:>7}" for d in DIMENSIONS))
for name, values in risks.items():
    print(f"{name:<32}" + "".join(f"{value:7.2f}" for value in values))

# %%
# In twenty dimensions and more, leave-one-out with the linear kernel comes close to James and Stein's estimator.

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
styles = zip(("#d55e00", "#0072b2", "#009e73"), "so^", strict=True)
for (name, values), (colour, marker) in zip(risks.items(), styles, strict=True):
    ax.plot(DIMENSIONS, values, color=colour, marker=marker, linewidth=2, label=name)
ax.axhline(1, color="#444444", linewidth=1, linestyle=":")
ax.text(100, 1.02, "the plain average", color="#444444", ha="right", va="bottom")
ax.set(xscale="log", ylim=(0, None), xlabel="dimensions", ylabel="risk, relative to the average's")
ax.set_xticks(DIMENSIONS, DIMENSIONS)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()

# %%
# When it does not help
# ---------------------
# In up to three dimensions leave-one-out does harm with the linear kernel: three rows are few to learn the variance
# from, and there is little or nothing to gain. A Gaussian kernel has a space of many dimensions from the start, and
# loses less. Farther from 0, at a larger ‖θ‖, all curves come closer to 1.

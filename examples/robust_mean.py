"""Robust kernel means
===================

A tenth of the rows is far away, and the estimate should not follow. :class:`~muhat.RobustKernelMean` sets outlying rows
aside and weighs the others by Huber's loss; with a ``threshold`` the loss does it alone, and no row is thrown away.
:class:`~muhat.MedianOfMeans` takes the geometric median of the means of blocks. The good rows come from a mixture of
Gaussians, so that losses ‖μ̂ − μ‖² are exact.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture

import muhat as mh

DRAWS = 20
METHODS = {
    "plain average": mh.KernelMean(),
    "simple shrinkage": mh.ShrunkKernelMean(),
    "robust": mh.RobustKernelMean(),
    "robust, contamination=0.25": mh.RobustKernelMean(contamination=0.25),
    "Huber's loss alone": mh.RobustKernelMean(threshold=0.6),
    "median of means": mh.MedianOfMeans(random_state=0),
}


def spoiled_sample(d, share, far, rng):
    """100 rows of two clusters, of which a share is replaced by a cluster far away; and the clusters."""
    P = mh.GaussianMixture([0.4, 0.6], [[-1.5] * d, [1.5] * d], [1.0, 1.0])
    X, bad = P.sample(100, random_state=rng), round(share * 100)
    X[:bad] = far + rng.normal(size=(bad, d))
    return X, P


# %%
# One sample
# ----------
# In one dimension a mean can be drawn as a function. The plain average has a bump where the bad rows are.

X, P = spoiled_sample(d=1, share=0.1, far=15, rng=np.random.default_rng(0))
kernel = mh.Gaussian(bandwidth=3.0)
shown = {"plain average": "#d55e00", "robust": "#0072b2", "Huber's loss alone": "#009e73", "median of means": "#cc79a7"}
fitted = {name: METHODS[name].set_params(kernel=kernel).fit(X) for name in shown}
grid = np.linspace(-10, 24, 300)[:, None]
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(grid, mh.embed(kernel, P)(grid), color="0.3", linewidth=5, alpha=0.35, label="truth")
for (name, colour), style in zip(shown.items(), ("-", "--", "-.", ":"), strict=True):
    ax.plot(grid, fitted[name].mean_(grid), style, color=colour, linewidth=2, label=name)
ax.plot(X[:, 0], np.full(100, -0.02), "|", color="0.3", markersize=8)
ax.set(xlabel="x", title="the mean as a function; a tenth of the rows around 15")
ax.legend(frameon=False)
plt.show()

# %%
# What a row counts
# -----------------
# Rows that were set aside count nothing. Huber's loss alone gives far rows less, good ones in a tail too.

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for (name, colour), marker in zip(shown.items(), "os^D", strict=True):
    distances = [mh.embed(kernel, row[None]).distance(fitted[name].mean_) for row in X]
    ax.plot(distances, 100 * fitted[name].weights_, marker, color=colour, markersize=5, alpha=0.6, label=name)
ax.set(xlabel="distance of the row from the estimate", ylabel="weight, times n")
ax.legend(frameon=False)
plt.show()

# %%
# Losses
# ------
# In two dimensions, with bad rows around 30 and the median bandwidth of each spoiled sample.

SHARES = [0.0, 0.1, 0.2]
print(f"{'loss / plain average':<28}" + "".join(f"{share:>8.0%} bad" for share in SHARES))
losses = np.empty((len(SHARES), DRAWS, len(METHODS)))
for i, share in enumerate(SHARES):
    for j, rng in enumerate(np.random.default_rng(0).spawn(DRAWS)):
        X, P = spoiled_sample(d=2, share=share, far=30, rng=rng)
        kernel = mh.Gaussian().resolve(X)
        means = [method.set_params(kernel=kernel).fit(X).mean_ for method in METHODS.values()]
        losses[i, j] = [mean.distance(mh.embed(kernel, P)) ** 2 for mean in means]
ratios = losses.mean(axis=1) / losses[:, :, :1].mean(axis=1)
for name, column in zip(METHODS, ratios.T, strict=True):
    print(f"{name:<28}" + "".join(f"{ratio:12.2f}" for ratio in column))

# %%
# A density in spite of outliers
# ------------------------------
# A mixture of Gaussians can be fitted by likelihood, as scikit-learn's ``GaussianMixture`` does with EM, or by matching
# its kernel mean to that of the rows (:class:`~muhat.MatchedGaussianMixture`). A likelihood must explain every row,
# whereas a bounded kernel counts a far row as one n-th and no more. Here a tenth of the rows is spread over a square.
# The kernel must be about as wide as a cluster: these have standard deviations from 0.7 to 1.

TRUTH = mh.GaussianMixture([0.3, 0.3, 0.4], [[-3.0, 0.0], [3.0, 0.0], [0.0, 4.0]], [0.5, 1.0, 0.8])
clean, X = TRUTH.sample(5000, random_state=12345), TRUTH.sample(300, random_state=0)
X[:30] = np.random.default_rng(0).uniform(-15, 15, size=(30, 2))
em = GaussianMixture(3, covariance_type="spherical", n_init=10, random_state=0).fit(X)
matched = mh.MatchedGaussianMixture(3, mh.Gaussian(1.5), n_init=10, random_state=0).fit(X)
print("mean negative log-likelihood of clean rows")
for name, likelihoods in (
    ("truth", TRUTH.log_density(clean)),
    ("EM", em.score(clean)),
    ("matched", matched.score(clean)),
):
    print(f"{name:<8}{-np.mean(likelihoods):.2f}")

# %%
# EM widens a component to reach the outliers, and one is left for two clusters. The matched mixture stays with the
# clusters. There are two lines to a power of ten.

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.6), sharey=True, layout="constrained")
side = np.linspace(-9, 9, 121)
grid = np.stack(np.meshgrid(side, side + 2), axis=-1)
for ax, model, title in zip(axes, (em, matched), ("EM", "matched, bandwidth 1.5"), strict=True):
    density = np.exp(model.score_samples(grid.reshape(-1, 2))).reshape(121, 121)
    levels = np.geomspace(1e-4, 1e-1, 7)
    ax.contour(grid[..., 0], grid[..., 1], density, levels, cmap="viridis", norm="log")
    ax.scatter(*X.T, s=8, color="0.45", alpha=0.7, linewidth=0)
    ax.set(title=title, xlim=(-9, 9), ylim=(-7, 11), aspect="equal", xlabel="x₁")
axes[0].set_ylabel("x₂")
plt.show()

# %%
# When it does not help
# ---------------------
# Shrinkage is not robustness. More bad rows than ``contamination`` says, a fifth of them in one place here, are taken
# for a part of the distribution; and a small far cluster of good rows is set aside as bad ones are: look at
# ``weights_``. More draws and dimensions: ``python benchmarks/guide/robust.py``; more kinds of bad rows:
# ``python benchmarks/robust.py``, and :doc:`/error_bars`. On clean tables EM is better than matching: :doc:`/pca`.

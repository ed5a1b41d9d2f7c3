"""Groups that come in kinds
=========================

Fifty groups come in five kinds, and most of them have few rows. The kernel mean of a group of eight rows is mostly
noise. :class:`~muhat.BagPrior` estimates from all groups how their means vary (empirical Bayes) and, where groups come
in kinds, shrinks each mean toward the centre of its kind; :func:`~muhat.pooled_means` does both in one call. The
setting is that of Marienwald, Fermanian and Blanchard (2021).
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

RADIUS = 5.0
kernel = mh.Gaussian(bandwidth=2.25)
rng = np.random.default_rng(1)

# %%
# Fifty groups
# ------------
# The centres of the kinds lie on a circle, and every group is a Gaussian distribution with a covariance of its own.

kinds = np.arange(50) % 5
sizes = rng.integers(6, 30, size=50)
bags, truths = [], []
for kind, size in zip(kinds, sizes, strict=True):
    turn = rng.uniform(-np.pi / 4, np.pi / 4)
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    centre = RADIUS * np.array([np.cos(2 * np.pi * kind / 5), np.sin(2 * np.pi * kind / 5)])
    covariance = axes @ np.diag([1.0, 10.0]) @ axes.T
    bags.append(rng.multivariate_normal(centre, covariance, size))
    truths.append(mh.embed(kernel, mh.GaussianMixture([1.0], [centre], [covariance])))

# %%
# Plain and pooled means
# ----------------------
# The squared distance from the kernel mean of the true distribution, averaged over groups, relative to plain means.

plain = [mh.embed(kernel, bag) for bag in bags]
prior = mh.BagPrior(kernel, random_state=0).fit(bags)
estimates = {
    "one centre for all groups": mh.BagPrior(kernel, kinds=1, random_state=0).fit(bags).means(bags),
    "centres of kinds": prior.means(bags),
}


def squared_errors(means):
    return np.array([mean.distance(truth) ** 2 for mean, truth in zip(means, truths, strict=True)])


for name, means in estimates.items():
    print(f"{name:<28} squared error {squared_errors(means).mean() / squared_errors(plain).mean():.2f} of plain means")
weights = ", ".join(f"{weight:.2f} for {count}" for count, weight in prior.kinds_.items())
print(f"weights of the numbers of kinds: {weights}")

# %%
# One small group
# ---------------
# Its kernel mean from its own rows, pooled, and in truth. Rows of all groups are in the background, coloured by kind.

smallest = int(np.argmin(sizes))
panels = {
    f"from its {sizes[smallest]} rows": plain[smallest],
    "pooled": estimates["centres of kinds"][smallest],
    "truth": truths[smallest],
}
side = np.linspace(-13, 13, 80)
grid = np.stack(np.meshgrid(side, side), axis=-1)
levels = np.linspace(0.1, 0.9, 5) * truths[smallest](grid.reshape(-1, 2)).max()
figure, axes = plt.subplots(1, 3, figsize=(8.8, 3.2), layout="constrained", sharex=True, sharey=True)
for ax, (title, mean) in zip(axes, panels.items(), strict=True):
    colours = plt.get_cmap("Set2")(np.repeat(kinds, sizes))
    ax.scatter(*np.concatenate(bags).T, s=4, c=colours, linewidths=0)
    ax.scatter(*bags[smallest].T, s=14, color="black", linewidths=0)
    ax.contour(*np.moveaxis(grid, -1, 0), mean(grid.reshape(-1, 2)).reshape(80, 80), levels, colors="#222222")
    ax.set(title=title, xticks=[], yticks=[], aspect="equal", xlim=(-13, 13), ylim=(-13, 13))
plt.show()

# %%
# When it does not help
# ---------------------
# Groups of many hundreds of rows hardly need each other, and groups that have nothing in common gain nothing. More than
# one kind needs five groups for each. See :doc:`/bags`.

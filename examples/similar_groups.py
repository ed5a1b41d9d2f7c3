"""Similar groups
==============

Eight growers each blend three cultivars in proportions of their own, and send five shipments. The laboratory opens
between 3 and 100 bottles of each. Which shipments come from one grower? ``log_odds`` of :class:`~muhat.BagPrior` says
how much more likely two shipments are if they have one distribution than if they have two; for small shipments, which
tell little, it stays near zero.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score, average_precision_score
from sklearn.preprocessing import scale

import muhat as mh

wine = load_wine()
bottles = scale(wine.data)
rng = np.random.default_rng(0)
growers = np.repeat(np.arange(8), 5)
blends = rng.dirichlet(np.ones(3), 8)
sizes = np.exp(rng.uniform(np.log(3), np.log(100), 40)).astype(int)
bags = []
for grower, size in zip(growers, sizes, strict=True):
    weights = (blends[grower] / np.bincount(wine.target))[wine.target]
    bags.append(bottles[rng.choice(178, size, p=weights / weights.sum())])

# %%
# Neighbours
# ----------
# The maximum mean discrepancy (MMD) is a distance between samples. Its biased estimate is large for small samples, and
# its unbiased estimate ranks the smallest samples first, because theirs are the most negative. Neither takes into
# account how much a sample of a given size can tell.

prior = mh.BagPrior().fit(bags)
odds = prior.log_odds(bags)
G = mh.DistributionKernel(prior.kernel_).fit_transform(bags)
norms = np.diag(G)
unbiased = (sizes * norms - 1) / (sizes - 1)
closeness = {
    "MMD": 2 * G - np.add.outer(norms, norms),
    "unbiased MMD": 2 * G - np.add.outer(unbiased, unbiased),
    "log-odds": odds,
}
for name, values in closeness.items():
    precision = []
    for i, row in enumerate(values):
        others = np.arange(40) != i
        precision.append(average_precision_score(growers[others] == growers[i], row[others]))
    print(f"{name:<14} average precision of neighbours {np.mean(precision):.2f}")

# %%
# Clusters
# --------
# Log-odds with the sign changed serve as a distance for scikit-learn's agglomerative clustering.

distances = odds.max() - odds
labels = AgglomerativeClustering(8, metric="precomputed", linkage="average").fit_predict(distances)
print(f"adjusted Rand index of the clusters: {adjusted_rand_score(growers, labels):.2f}")

# %%
# A map of the two directions in which shipments differ most, coloured by grower. The area of a circle grows with the
# number of bottles.

coordinates = prior.transform(bags)[:, :2]
plt.scatter(*coordinates.T, s=2 * sizes, c=growers, cmap="tab10", alpha=0.7)
plt.gca().set(xlabel="first coordinate", ylabel="second coordinate")
plt.show()

# %%
# Groups that come in kinds
# -------------------------
# Groups that resemble each other also help to estimate each other. Here fifty groups come in five kinds, with centres
# on a circle, and the kernel mean of a group of eight rows is mostly noise. The prior shrinks each mean toward the
# centre of its kind; :func:`~muhat.pooled_means` does both in one call. The setting is that of Marienwald, Fermanian
# and Blanchard (2021), and errors are squared distances from the true kernel means.

kernel = mh.Gaussian(bandwidth=2.25)
rng = np.random.default_rng(1)
kinds = np.arange(50) % 5
sizes = rng.integers(6, 30, size=50)
bags, truths = [], []
for kind, size in zip(kinds, sizes, strict=True):
    turn = rng.uniform(-np.pi / 4, np.pi / 4)
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    centre = 5.0 * np.array([np.cos(2 * np.pi * kind / 5), np.sin(2 * np.pi * kind / 5)])
    covariance = axes @ np.diag([1.0, 10.0]) @ axes.T
    bags.append(rng.multivariate_normal(centre, covariance, size))
    truths.append(mh.embed(kernel, mh.GaussianMixture([1.0], [centre], [covariance])))

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
# The kernel mean of the smallest group from its own rows, pooled, and in truth. Rows of all groups are in the
# background, coloured by kind.

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
# If all groups are large, distances of plain means are as good, and groups that have nothing in common gain nothing
# from each other; see :doc:`/bags`.

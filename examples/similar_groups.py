"""Similar groups: shipments of the same grower
============================================

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
from muhat.plotting import BagMapDisplay

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

BagMapDisplay.from_prior(prior, bags, growers)
plt.show()

# %%
# When it does not help
# ---------------------
# If all groups are large, distances of plain means are as good; see :doc:`/bags`.

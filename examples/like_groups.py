"""Groups that are alike: shipments of the same grower
===================================================

Eight growers each blend three cultivars in proportions of their own, and send five shipments. The laboratory opens
between 3 and 100 bottles of each. Which shipments come from one grower? ``BagPrior.log_odds`` says how much more likely
two shipments are if one grower sent both, and gives small ones no undue trust.
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
# The MMD of two samples is their distance. Its biased form is large for small samples, and its unbiased form ranks the
# smallest samples first, since their estimates are the most negative. Neither knows what a sample of its size can tell.

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
# Two lines of scikit-learn: log-odds with the sign changed are a distance for agglomerative clustering.

distances = odds.max() - odds
labels = AgglomerativeClustering(8, metric="precomputed", linkage="average").fit_predict(distances)
print(f"adjusted Rand index of the clusters: {adjusted_rand_score(growers, labels):.2f}")

# %%
# A map: the two directions in which shipments differ most. The area of a circle grows with the number of bottles.

BagMapDisplay.from_prior(prior, bags, growers)
plt.show()

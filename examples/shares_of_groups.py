"""A number for each group: how much of a shipment is one wine
===========================================================

A shipment holds bottles of three cultivars, and a laboratory measures 13 chemical quantities of each bottle that it
opens: three of some shipments, a hundred of others. What share of the shipment is the first cultivar?
:class:`~muhat.DistributionRidge` learns it from shipments whose shares are known, and knows how much three bottles can
tell.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import muhat as mh

wine = load_wine()
bottles = scale(wine.data)

# %%
# Shipments of uneven sizes
# -------------------------


def shipments(n, rng):
    """Opened bottles of each shipment, and its share of the first cultivar."""
    shares, bags = rng.uniform(size=n), []
    for share in shares:
        size = int(np.exp(rng.uniform(np.log(3), np.log(100))))
        weights = np.where(wine.target == 0, share / 59, (1 - share) / 119)
        bags.append(bottles[rng.choice(178, size, p=weights)])
    return bags, shares


rng = np.random.default_rng(0)
(train, y), (test, truth) = shipments(120, rng), shipments(200, rng)
sizes = np.array([len(bag) for bag in test])

# %%
# With and without the sizes
# --------------------------
# The first machine takes plain means and gives every shipment the same weight. The second pools means, weights
# shipments by what they tell, and states its error.

plain = mh.DistributionRidge(pool=False, stack=False).fit(train, y)
machine = mh.DistributionRidge().fit(train, y)
mean, std = machine.predict(test, return_std=True)
few = sizes < 10
print(f"{'root mean squared error':<28}{'all':>8}{'3 to 9 bottles':>18}")
for name, values in (("plain means", plain.predict(test)), ("DistributionRidge", mean)):
    errors = (values - truth) ** 2
    print(f"{name:<28}{np.sqrt(errors.mean()):8.3f}{np.sqrt(errors[few].mean()):18.3f}")
print(f"truth within 1.96 standard deviations: {np.mean(np.abs(mean - truth) < 1.96 * std):.2f}")

# %%
# The intervals are wide where few bottles were opened.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
for ax, chosen, title in zip(axes, (few, sizes >= 30), ("3 to 9 bottles", "30 bottles and more"), strict=True):
    ax.errorbar(truth[chosen], mean[chosen], 1.96 * std[chosen], fmt="o", markersize=4, elinewidth=0.8, alpha=0.7)
    ax.plot([0, 1], [0, 1], color="#444444", linewidth=1)
    ax.set(title=title, xlabel="true share")
axes[0].set_ylabel("predicted share")
plt.show()

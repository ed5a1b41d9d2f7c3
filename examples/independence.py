"""Relations that a correlation does not see
===========================================

Five clouds of 150 pairs. Pearson's correlation sees the line and nothing else. The default test of independence
(:func:`~muhat.hsic_test`) also finds the circle, the wave and the noise that grows, and lets the last cloud pass.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import muhat as mh

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, size=150)
x, noise = rng.uniform(-1, 1, size=150), rng.normal(size=150)
clouds = {
    "a line": (x, 0.5 * x + 0.4 * noise),
    "a circle": (np.cos(angle) + 0.1 * x, np.sin(angle)),
    "a wave": (x, np.sin(8 * x) + 0.4 * noise),
    "noise that grows": (x, (0.2 + x**2) * noise),
    "nothing": (x, noise),
}

# %%
# Five clouds, two tests
# ----------------------
# Each p-value is the chance that independent pairs would look as related as these.

pvalues = {
    name: (stats.pearsonr(*pairs).pvalue, mh.hsic_test(*pairs, random_state=0).pvalue) for name, pairs in clouds.items()
}
for name, (correlation, independence) in pvalues.items():
    print(f"{name:<17} correlation p = {correlation:.3f}, hsic_test p = {independence:.3f}")

# %%
# The clouds
# ----------

figure, axes = plt.subplots(1, 5, figsize=(11, 2.9), layout="constrained")
for ax, (name, pairs) in zip(axes, clouds.items(), strict=True):
    ax.scatter(*pairs, s=9, color="#0b6e99" if pvalues[name][1] < 0.05 else "#888888")
    ax.set(title=name, xticks=[], yticks=[])
    ax.set_xlabel("correlation p = {:.3f}\nhsic_test p = {:.3f}".format(*pvalues[name]))
plt.show()

# %%
# When another test is better
# ---------------------------
# Where the relation is linear or monotone, Pearson's or Spearman's test finds it more often: :doc:`/independence`.

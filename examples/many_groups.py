"""Many groups
===========

A laboratory tries forty compounds on cells, and measures ten features of each cell. Some wells hold five cells, others
sixty. Which compounds do anything, and how much? Plain distances from the control are mostly noise where groups
are small; :func:`~muhat.group_distances` lets all groups tell how far each estimate is to be trusted.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

rng = np.random.default_rng(0)
compounds = np.array([f"compound {i:02d}" for i in range(1, 41)])
sizes = np.exp(rng.uniform(np.log(5), np.log(60), 40)).astype(int)
strengths = np.where(rng.random(40) < 0.3, rng.uniform(0.5, 1.5, 40), 0.0)
shifts = rng.normal(size=(3, 10))[rng.integers(3, size=40)]  # three mechanisms
shifts *= (strengths / np.linalg.norm(shifts, axis=1))[:, None]
cells = [rng.normal(size=(300, 10)), *(rng.normal(shift, size=(n, 10)) for shift, n in zip(shifts, sizes, strict=True))]
X, labels = np.concatenate(cells), np.repeat(["control", *compounds], [300, *sizes])

# %%
# Distances from the control
# --------------------------
# Each compound has its distance with a 90 % interval; those in red differ from the control at a false discovery rate of
# 5 %.

result = mh.group_distances(X, labels, control="control", kernel=mh.Gaussian(4.5), random_state=0)
print(result)
figure, ax = plt.subplots(figsize=(6, 7), layout="constrained")
result.plot(ax)

# %%
# Against the truth
# -----------------
# The rows are simulated, so that the true distances are known: kernel means of normal distributions have a closed form.
# Unbiased estimates scatter about the truth; shrunk ones scatter less.

truth = np.array([
    mh.embed(result.kernel, mh.GaussianMixture([1.0], [shift], [1.0])).distance(
        mh.embed(result.kernel, mh.GaussianMixture([1.0], [np.zeros(10)], [1.0]))
    )
    ** 2
    for shift in shifts
])  # fmt: skip
figure, ax = plt.subplots(layout="constrained")
for name, values in (("unbiased", result.unbiased), ("empirical Bayes", result.distance)):
    error = np.mean((values - truth) ** 2)
    print(f"{name:<16} root mean squared error {error**0.5:.4f}")
    ax.plot(truth, values, "o", alpha=0.7, label=name)
ax.axline((0, 0), slope=1, color="0.7", zorder=0)
ax.set(xlabel="true squared distance", ylabel="estimate")
ax.legend()

# %%
# Distances of all pairs
# ----------------------
# Without a control there is a matrix. The heat map has the groups in the order of a tree: compounds of one mechanism
# stand side by side, and those that do nothing form the large dark block.

active = np.isin(labels, compounds[(strengths > 0) | (sizes > 30)])
pairs = mh.group_distances(X[active], labels[active], kernel=mh.Gaussian(4.5), random_state=0)
print(f"p = {pairs.global_pvalue:.3f} that all groups have one distribution")
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
pairs.plot(ax)
plt.show()

"""Anomalous groups of any size
============================

Every group is a bag of rows, and no single row is unusual: all lie where rows of normal groups lie. Normal groups have
rows in two clusters; anomalous groups have the wrong mixture, a correlation, or rows that are too close together. Since
the average of a small group is noisy, a detector that ignores sizes raises its alarms on small groups.
:class:`~muhat.GroupAnomalyDetector` compares each group with normal groups of its own size.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

import muhat as mh

TRAIN, NORMAL, EACH = 200, 400, 100  # groups to learn from, and test groups: normal ones, and of each other kind
COLOURS = {"normal": "#8c8c8c", "mixture": "#d55e00", "correlation": "#0072b2", "too close": "#009e73"}

# %%
# Groups of four kinds
# --------------------
# They have between 4 and 120 rows. Grey are rows of normal groups, coloured those of one group of each kind.


def group(kind, rng):
    """One group of rows; normal ones differ a little in their mixture."""
    size = int(np.exp(rng.uniform(np.log(4), np.log(120))))
    side = rng.random(size) < (0.9 if kind == "mixture" else rng.uniform(0.4, 0.6))
    correlation = 0.85 if kind == "correlation" else 0.0
    spread = 0.45 if kind == "too close" else 1.0
    noise = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=size)
    return np.where(side[:, None], [1.6, 0.0], [-1.6, 0.0]) + 0.8 * spread * noise


rng = np.random.default_rng(0)
train = [group("normal", rng) for _ in range(TRAIN)]
kinds = np.repeat(list(COLOURS), [NORMAL, EACH, EACH, EACH])
test = [group(kind, rng) for kind in kinds]
sizes = np.array([len(bag) for bag in test])

figure, axes = plt.subplots(2, 2, figsize=(6, 4.6), layout="constrained")
for ax, (kind, colour) in zip(axes.flat, COLOURS.items(), strict=True):
    shown = next(bag for bag, label in zip(test, kinds, strict=True) if label == kind and len(bag) > 50)
    ax.scatter(*np.concatenate(train).T, s=3, color="#dddddd", linewidths=0)
    ax.scatter(*shown.T, s=16, color=colour, linewidths=0)
    ax.set(title=kind, xticks=[], yticks=[], aspect="equal", xlim=(-4.5, 4.5), ylim=(-3.2, 3.2))
plt.show()

# %%
# How well are they found?
# ------------------------
# Two rivals: the squared Mahalanobis distance of the average of a group, times its number of rows, and the local
# outlier factor of summaries (mean, standard deviation and quartiles of each column). An area under the ROC curve of
# 0.5 is chance. Half of the groups have fewer than 22 rows, which limits every method.


def summaries(bags):
    quartiles = [np.quantile(bag, [0.25, 0.5, 0.75], axis=0).ravel() for bag in bags]
    return np.hstack([[bag.mean(axis=0) for bag in bags], [bag.std(axis=0) for bag in bags], quartiles])


rows = np.concatenate(train)
precision = np.linalg.inv(np.cov(rows.T))
offsets = np.array([bag.mean(axis=0) for bag in test]) - rows.mean(axis=0)
scaler = StandardScaler().fit(summaries(train))
factor = LocalOutlierFactor(20, novelty=True).fit(scaler.transform(summaries(train)))
detector = mh.GroupAnomalyDetector(random_state=0).fit(train)
scores = {
    "GroupAnomalyDetector": -detector.score_samples(test),
    "n x Mahalanobis distance": sizes * np.sum(offsets @ precision * offsets, axis=1),
    "local outlier factor of summaries": -factor.score_samples(scaler.transform(summaries(test))),
}
anomalous = [kind for kind in COLOURS if kind != "normal"]
print(f"{'area under the ROC curve':<36}" + "".join(f"{kind:>13}" for kind in anomalous))
for name, values in scores.items():
    areas = []
    for kind in anomalous:
        chosen = (kinds == "normal") | (kinds == kind)
        areas.append(roc_auc_score(kinds[chosen] == kind, values[chosen]))
    print(f"{name:<36}" + "".join(f"{area:13.2f}" for area in areas))

# %%
# p-values by size
# ----------------
# Below the dashed line ``predict`` raises an alarm. On average over training sets, a share ``alpha`` of normal groups
# of every size falls below it; anomalous groups fall below it once they have enough rows to tell.

p = detector.p_values(test)
for name, chosen in {"fewer than 22 rows": sizes < 22, "22 rows and more": sizes >= 22}.items():
    false, hits = (p[chosen & (kinds == "normal")] <= 0.1).mean(), (p[chosen & (kinds != "normal")] <= 0.1).mean()
    print(f"{name:<20} false alarms {false:.2f}, anomalous groups found {hits:.2f}")
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for kind, colour in COLOURS.items():
    ax.scatter(sizes[kinds == kind], p[kinds == kind], s=14, color=colour, label=kind, linewidths=0, alpha=0.8)
ax.axhline(0.1, color="#444444", linestyle="--", linewidth=1)
ax.set(xscale="log", yscale="log", xlabel="rows of the group", ylabel="p-value")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()

# %%
# Why is a group anomalous?
# -------------------------
# ``explain`` names the statistics that deviate most from normal groups of the size.

for kind in anomalous:
    largest = max((bag for bag, label in zip(test, kinds, strict=True) if label == kind), key=len)
    found = detector.explain([largest])[0]
    print(f"{kind:<12} p = {found.p_value:.3f}: {found.deviations[0]}")

# %%
# When it does not help
# ---------------------
# With labelled examples of anomalous groups a classifier does better, and p-values assume that what a group contains
# does not depend on its size; ``fit`` tests this and warns. See :doc:`/bags`.

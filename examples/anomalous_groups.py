"""Finding anomalous groups
========================

Every group is a bag of rows, and no row of it is odd: all lie where rows of normal groups lie. Normal groups have rows
in two clusters. The anomalous ones have the wrong mixture, another correlation, or rows that are too close together.
:class:`~muhat.OneClassSupportMeasureMachine` learns from normal groups what a group looks like.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

import muhat as mh

TRAIN, TEST = 100, 50  # normal groups to learn from, and test groups of each kind
COLOURS = {"normal": "#8c8c8c", "mixture": "#d55e00", "correlation": "#0072b2", "too close": "#009e73"}

# %%
# Groups of four kinds
# --------------------
# 40 rows each. Grey are the rows of all normal groups, coloured those of one group of each kind.


def group(kind, rng):
    """One group of rows."""
    side = rng.random(40) < (0.9 if kind == "mixture" else 0.5)
    correlation = 0.85 if kind == "correlation" else 0.0
    spread = 0.45 if kind == "too close" else 1.0
    noise = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=40)
    return np.where(side[:, None], [1.6, 0.0], [-1.6, 0.0]) + 0.8 * spread * noise


rng = np.random.default_rng(0)
train = [group("normal", rng) for _ in range(TRAIN)]
kinds = np.repeat(list(COLOURS), TEST)
test = [group(kind, rng) for kind in kinds]

figure, axes = plt.subplots(2, 2, figsize=(6, 4.6), layout="constrained")
for ax, (kind, colour) in zip(axes.flat, COLOURS.items(), strict=True):
    ax.scatter(*np.concatenate(train).T, s=3, color="#dddddd", linewidths=0)
    ax.scatter(*test[np.flatnonzero(kinds == kind)[0]].T, s=16, color=colour, linewidths=0)
    ax.set(title=kind, xticks=[], yticks=[], aspect="equal", xlim=(-4.5, 4.5), ylim=(-3.2, 3.2))
plt.show()

# %%
# How odd is a group?
# -------------------
# ``nu=0.1``: about a tenth of the training groups may lie outside. Compared are an outlier detector for rows, whose
# scores are averaged over each group, and a one-class machine on the averages of the groups. An area under the curve of
# 0.5 is chance.

machine = mh.OneClassSupportMeasureMachine(mh.Gaussian(0.7), mh.ShrunkKernelMean(), mh.Gaussian(), nu=0.1).fit(train)
forest = IsolationForest(random_state=0).fit(np.concatenate(train))
averages = OneClassSVM(nu=0.1).fit([bag.mean(axis=0) for bag in train])
oddness = {
    "one-class support measure machine": -machine.score_samples(test),
    "isolation forest, averaged over rows": np.array([-forest.score_samples(bag).mean() for bag in test]),
    "one-class machine on averages": -averages.score_samples([bag.mean(axis=0) for bag in test]),
}
print(f"{'area under the curve':<38}" + "".join(f"{kind:>13}" for kind in list(COLOURS)[1:]))
for name, scores in oddness.items():
    areas = []
    for kind in list(COLOURS)[1:]:
        shown = (kinds == "normal") | (kinds == kind)
        areas.append(roc_auc_score(kinds[shown] == kind, scores[shown]))
    print(f"{name:<38}" + "".join(f"{area:13.2f}" for area in areas))

# %%
# The machine sees all three kinds. Right of the dashed line is what it calls anomalous.

figure, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
for line, (kind, colour) in enumerate(COLOURS.items()):
    scores = oddness["one-class support measure machine"][kinds == kind]
    ax.scatter(scores, np.full(TEST, -line), s=34, color=colour, alpha=0.6, linewidths=0)
ax.axvline(-machine.offset_, color="#444444", linestyle="--")
ax.set_yticks(range(0, -4, -1), COLOURS)
ax.set(xlabel="how odd the group is to the machine", ylim=(-3.5, 0.5))
plt.show()

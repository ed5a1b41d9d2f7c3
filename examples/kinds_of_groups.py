"""A class for each group: readers of digits
=========================================

Two post offices read handwritten digits. One sees more ones and sevens, the other more threes and eights; any digit
comes to both. From a batch of digits, which office is it? :class:`~muhat.DistributionRidgeClassifier` has nothing to
search, and its probabilities know the size of a batch. :class:`~muhat.BagPrior` turns batches of any sizes into vectors
for any classifier of scikit-learn, and ``pool=True`` does the same inside a support measure machine, where
cross-validation says whether it pays.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import muhat as mh

digits = load_digits()
FEATURES = mh.Nystroem(n_components=100, random_state=0)


def batches(n, rng):
    """Batches of 3 to 100 digits, and the office of each."""
    office, bags = rng.integers(0, 2, n), []
    for kind in office:
        size = int(np.exp(rng.uniform(np.log(3), np.log(100))))
        favoured = np.isin(digits.target, [1, 7] if kind == 0 else [3, 8])
        weights = np.where(favoured, 2.0, 1.0) * rng.dirichlet(np.full(10, 10.0))[digits.target]
        bags.append(digits.data[rng.choice(len(weights), size, p=weights / weights.sum())] / 16)
    return bags, office


rng = np.random.default_rng(0)
(train, y), (test, truth) = batches(120, rng), batches(300, rng)

# %%
# Four classifiers
# ----------------
# The search may choose ``pool``, so it is not worse than plain means, up to chance.

grid = [{"C": [1.0, 10.0, 100.0], "pool": [False, True]}]
machines = {
    "ridge classifier": mh.DistributionRidgeClassifier(features=FEATURES),
    "machine, plain means": mh.SupportMeasureClassifier(features=FEATURES, C=10.0),
    "machine, pool searched": GridSearchCV(mh.SupportMeasureClassifier(features=FEATURES), grid, cv=3),
    "BagPrior + logistic regression": make_pipeline(mh.BagPrior(features=FEATURES), LogisticRegression(C=100.0)),
}
scores = {}
for name, machine in machines.items():
    scores[name] = machine.fit(train, y).predict(test) == truth
    print(f"{name:<32} accuracy {scores[name].mean():.2f}")
print(f"the search chose {machines['machine, pool searched'].best_params_}")

# %%
# How sure?
# ---------
# The same batches cut to three digits: the probabilities move toward one half.

ridge = machines["ridge classifier"]
for name, batches_now in {"whole batches": test, "three digits of each": [bag[:3] for bag in test]}.items():
    sure = ridge.predict_proba(batches_now).max(axis=1)
    right = ridge.predict(batches_now) == truth
    print(f"{name:<21} mean probability of the class {sure.mean():.2f}, right {right.mean():.2f}")

# %%
# Batches on a map
# ----------------
# The two directions in which batches differ most, in units of the noise of a digit. Small circles are small batches,
# and lie near the middle: they tell little.

mh.plotting.BagMapDisplay.from_prior(machines["BagPrior + logistic regression"][0], test, truth)
plt.show()

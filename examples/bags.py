"""Bags of rows as samples
=======================

A datum may be a bag: a few rows drawn from a distribution, with one label for all. Here are three classes of bags with
the same mean and the same variances, which differ in correlation alone. The average of a bag says nothing of its
class; its mean element, of which :class:`~muhat.DistributionKernel` makes a kernel between bags, does.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import muhat as mh
from muhat.plotting.bags import BagGramDisplay

DRAWS = 2
SIZES = [5, 20]  # rows of a bag, about
CORRELATIONS = np.array([-0.6, 0.0, 0.6])


def make_bags(n, size, rng):
    """Bags of about ``size`` rows in four dimensions; the first two coordinates correlate as the class says."""
    y = np.arange(n) % 3
    bags = []
    for correlation in CORRELATIONS[y]:
        covariance = np.eye(4)
        covariance[0, 1] = covariance[1, 0] = correlation
        rows = rng.integers(max(size // 2, 2), size + size // 2 + 1)
        bags.append(rng.multivariate_normal(np.zeros(4), covariance, size=rows))
    return bags, CORRELATIONS[y].astype(str)


# %%
# A kernel between bags
# ---------------------
# Bags of one class are alike: the blocks on the diagonal of the Gram matrix are the brightest.

bags, y = make_bags(90, 100, np.random.default_rng(0))
kernel = mh.DistributionKernel(level2=mh.Gaussian())
figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
display = BagGramDisplay.from_estimator(kernel, bags, y=y, ax=ax, vmax=np.quantile(kernel.fit_transform(bags), 0.98))
ax.set(xlabel="correlation in the bag", ylabel="correlation in the bag", title="Gram matrix of 90 bags")
plt.show()

# %%
# Any method for kernels takes that matrix. Kernel PCA makes a map of the bags, a dot for each:

positions = KernelPCA(2, kernel="precomputed").fit_transform(display.gram)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for label, colour, marker in zip(("-0.6", "0.0", "0.6"), ("#0072b2", "#777777", "#d55e00"), "so^", strict=True):
    ax.scatter(*positions[display.classes == label].T, color=colour, marker=marker, label=label)
ax.set(xlabel="first component", ylabel="second component")
figure.legend(title="correlation in the bag", loc="outside upper center", ncols=3, frameon=False)
plt.show()

# %%
# Classes of new bags
# -------------------
# :class:`~muhat.SupportMeasureClassifier` is a support vector machine with that kernel, and a scikit-learn classifier:
# with ``memory`` a search over C computes each Gram matrix once. It meets machines on summaries of the bags: averages,
# and averages with covariances, which is all that these classes differ in. Chance is 0.33.


def averages(bags):
    return np.array([bag.mean(axis=0) for bag in bags])


def second_moments(bags):
    return np.array([np.append(bag.mean(axis=0), np.cov(bag.T)[np.triu_indices(4)]) for bag in bags])


def on_summaries(summary):
    machine = make_pipeline(FunctionTransformer(summary), StandardScaler(), SVC())
    return GridSearchCV(machine, {"svc__C": [0.01, 0.1, 1.0, 10.0], "svc__kernel": ["linear", "rbf"]}, cv=3)


memory = TemporaryDirectory()


def on_bags(mean):
    machine = mh.SupportMeasureClassifier(mean=mean, memory=memory.name)
    return GridSearchCV(machine, {"C": [1.0, 10.0, 100.0, 1000.0]}, cv=3)


METHODS = {
    "SVM on averages": on_summaries(averages),
    "SVM on averages and covariances": on_summaries(second_moments),
    "support measure machine": on_bags(None),
    "the same, shrunk means": on_bags(mh.ShrunkKernelMean()),
}
print(f"{'rows of a bag, about':<34}" + "".join(f"{size:>7}" for size in SIZES))
for name, search in METHODS.items():
    accuracies = []
    for size in SIZES:
        for rng in np.random.default_rng(size).spawn(DRAWS):
            (train, y), (test, z) = make_bags(90, size, rng), make_bags(120, size, rng)
            accuracies.append(search.fit(train, y).score(test, z))
    print(f"{name:<34}" + "".join(f"{a:7.2f}" for a in np.reshape(accuracies, (len(SIZES), DRAWS)).mean(axis=1)))
memory.cleanup()

# %%
# When it does not help
# ---------------------
# Where averages differ, averages do. Shrinking the mean of each bag lowers its error and hardly changes the accuracy:
# what is common to all bags does not separate them. More sizes and draws: ``python benchmarks/guide/bags.py``, and
# :doc:`/bags`.

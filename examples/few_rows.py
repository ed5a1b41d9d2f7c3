"""Probabilities from twenty rows
==============================

Of 569 tumours twenty have been measured. What is the probability that a new one lies beyond a limit in some combination
of its 30 columns? :class:`~muhat.BlendedSample` mixes the twenty rows with a Gaussian fitted to them, in a share that
it learns, and the mixture is a distribution: it has probabilities, quantiles, expectations and samples.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import muhat as mh

population = scale(load_breast_cancer().data)
rng = np.random.default_rng(0)

# %%
# Tails of random directions
# --------------------------
# The limit is exceeded by five per cent of all tumours. The share of twenty rows beyond it can only be 0, 0.05, 0.10
# and so on; the blended probability has no such steps.


def beyond(direction, limit, X):
    return X @ direction > limit


estimates = []
for _ in range(60):
    rows = population[rng.choice(len(population), 20, replace=False)]
    direction = rng.normal(size=30)
    limit = np.quantile(population @ direction, 0.95)
    blended = mh.BlendedSample(random_state=0).fit(rows)
    event = partial(beyond, direction, limit)
    estimates.append((event(rows).mean(), blended.probability(event)))
sample, ours = np.transpose(estimates)
print(f"{'':<16}{'mean':>8}{'root mean squared error':>26}")
for name, values in (("sample", sample), ("blended sample", ours)):
    print(f"{name:<16}{values.mean():8.3f}{np.sqrt(np.mean((values - 0.05) ** 2)):26.3f}")

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
bins = np.linspace(0, 0.22, 23)
ax.hist([sample, ours], bins, label=["share of the rows", "blended sample"], color=["#8c8c8c", "#0072b2"])
ax.axvline(0.05, color="#444444", linestyle="--", linewidth=1)
ax.set(xlabel="estimated probability of a tail of five per cent", ylabel="samples of twenty rows")
ax.legend(frameon=False)
plt.show()

# %%
# Error bars
# ----------
# By the bootstrap: rows are drawn again, and the Gaussian and its share are fitted again.

last = mh.BlendedSample(n_resamples=30, random_state=0).fit(rows)
probability, error = last.probability(event, return_std=True)
print(f"share of the Gaussian {last.share_:.2f}; probability {probability:.3f}, standard error {error:.3f}")

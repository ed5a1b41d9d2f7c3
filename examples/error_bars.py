"""Error bars, and how often they hold
===================================

How far is an estimated kernel mean from the true one? A ball (:func:`~muhat.inference.confidence_ball`) holds the whole
mean, bands (:func:`~muhat.inference.mean_bands`) its values, and an interval (:func:`~muhat.inference.mmd_interval`) a
squared MMD. The truth is exact for mixtures of Gaussians, so that one can count how often it lies inside.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh
from muhat.inference.error_bars import confidence_ball, mean_bands, mean_error
from muhat.inference.mmd_intervals import mmd_interval
from muhat.plotting import FunctionDisplay

DRAWS = 100

# %%
# Bands around a mean
# -------------------
# At every point the band holds the true value with 95 %; all points at once are held less often.

P = mh.GaussianMixture([0.4, 0.6], [[-2.0], [1.5]], [0.6, 1.0])
kernel = mh.Gaussian(0.8)
X = P.sample(60, random_state=0)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
display = FunctionDisplay.from_bands(mh.embed(kernel, X), X, ax=ax, color="#0072b2", label="plain average, 60 rows")
points = display.bands.points
ax.plot(points, mh.embed(kernel, P)(points), color="#d55e00", linestyle="--", label="truth")
ax.legend(frameon=False)
plt.show()

# %%
# The radius of a ball
# --------------------
# Bernstein's ball holds at every n and for every distribution, and is wide for it. The bootstrap's is as wide as the
# error is, in the limit.

P = mh.GaussianMixture([0.4, 0.6], [[-1.5, 0.0], [1.5, 0.5]], [1.0, 0.5])
kernel, truth = mh.Gaussian(1.5), mh.embed(mh.Gaussian(1.5), P)
sizes = [10, 30, 100, 300, 1000]
means = [mh.embed(kernel, P.sample(n, random_state=0)) for n in sizes]
bootstrap = {"method": "bootstrap", "n_resamples": 199, "random_state": 0}
radii = {
    "Bernstein, 95 %": [confidence_ball(mean).radius for mean in means],
    "bootstrap, 95 %": [confidence_ball(mean, **bootstrap).radius for mean in means],
    "root mean squared error": [mean_error(mean) for mean in means],
    "true distance": [mean.distance(truth) for mean in means],
}
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
styles = {"#d55e00": "s-", "#0072b2": "o-", "#777777": "^--", "#000000": "D:"}
for (name, values), (colour, style) in zip(radii.items(), styles.items(), strict=True):
    ax.loglog(sizes, values, style, color=colour, label=name)
ax.set(xlabel="rows", ylabel="distance in the space")
ax.legend(frameon=False)
plt.show()

# %%
# How often they hold
# -------------------
# Share of draws with the truth inside, level 95 %. The last distribution has heavy tails, 2 % of its rows are 20 times
# as wide, and the quadratic kernel is not bounded: there a sample knows nothing of what it misses, and a warning says
# so where one row carries the deviations.

warnings.filterwarnings("ignore", message="the radius rests on the deviations of one row")
Q = mh.GaussianMixture([1.0], [[0.5, -0.5]], [1.5])
heavy = mh.GaussianMixture([0.98, 0.02], [[0.0, 0.0], [0.0, 0.0]], [1.0, 400.0])
quadratic = mh.Polynomial(2)
squared_mmd = truth.distance(mh.embed(kernel, Q)) ** 2
at = np.array([[0.0, 0.5]])


def held(n, seed):
    """Whether each error bar holds the truth, for samples of n rows."""
    X, Y, Z = (measure.sample(n, random_state=[seed, k]) for k, measure in enumerate((P, Q, heavy)))
    mean, options = mh.embed(kernel, X), {"method": "bootstrap", "n_resamples": 99, "random_state": seed}
    band, interval = mean_bands(mean, at), mmd_interval(X, Y, kernel)
    return {
        "ball, Bernstein": confidence_ball(mean).contains(truth),
        "ball, bootstrap": confidence_ball(mean, **options).contains(truth),
        "band at a point": (band.low <= truth(at)).all() and (truth(at) <= band.high).all(),
        "squared MMD": interval.low <= squared_mmd <= interval.high,
        "ball, quadratic kernel, heavy tails": confidence_ball(mh.embed(quadratic, Z), **options).contains(
            mh.embed(quadratic, heavy)
        ),
    }


few, many = ([held(n, seed) for seed in range(DRAWS)] for n in (10, 100))
print(f"{'':<38}10 rows   100 rows")
for name in few[0]:
    print(f"{name:<38}{np.mean([row[name] for row in few]):7.0%}{np.mean([row[name] for row in many]):11.0%}")

# %%
# When not to trust them
# ----------------------
# With heavy tails and an unbounded kernel, and with rows that depend on each other. More levels, sizes and draws:
# ``python benchmarks/guide/error_bars.py``, and :doc:`/error_bars`.

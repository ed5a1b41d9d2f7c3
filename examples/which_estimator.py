"""Which estimator wins where
==========================

Simple shrinkage scales the whole mean, flexible shrinkage scales each eigendirection, adaptive shrinkage pulls towards
the kernel mean of a Gaussian as well. Which of them is best depends on the number of rows and on the bandwidth. This
example draws a map: in each cell the same samples go to :class:`~muhat.ShrunkKernelMean`,
:class:`~muhat.SpectralKernelMean` and :class:`~muhat.AdaptiveKernelMean`, and losses are exact.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

SAMPLES = 10
SIZES = [5, 20, 80]
WIDTHS = [0.2, 0.5, 1.0, 2.0]  # bandwidths, in median distances

# %%
# Two populations
# ---------------
# Three clusters in a row, which overlap, and a mixture of the paper, whose clusters lie far apart.

POPULATIONS = {
    "clusters that overlap": mh.GaussianMixture([0.4, 0.3, 0.3], [[-2.0] * 5, [0.0] * 5, [2.0] * 5], [1.0] * 3),
    "clusters far apart": mh.paper_mixture(5, random_state=1),
}
ESTIMATORS = {
    "plain": mh.KernelMean(),
    "S": mh.ShrunkKernelMean(),
    "F": mh.SpectralKernelMean(),
    "A": mh.AdaptiveKernelMean(),
}


def losses(P, n, width):
    """Losses of the estimators, a row for each sample."""
    found = []
    for sample in range(SAMPLES):
        X = P.sample(n, random_state=np.random.default_rng([n, sample]))
        kernel = mh.Gaussian(width * mh.Gaussian().resolve(X).bandwidth)
        truth = mh.embed(kernel, P)
        fitted = [estimator.set_params(kernel=kernel).fit(X) for estimator in ESTIMATORS.values()]
        found.append([estimator.mean_.distance(truth) ** 2 for estimator in fitted])
    return np.array(found)


# %%
# The winners
# -----------
# The number is the loss of the best estimator over the plain average's, the letter says which it is: S simple, F
# flexible, A adaptive. A dot: it is not better than the plain average by two standard errors.


def winner(values):
    """Relative loss and letter of the best estimator."""
    best = values.mean(axis=0).argmin()
    gains = values[:, 0] - values[:, best]
    sure = gains.mean() > 2 * gains.std(ddof=1) / np.sqrt(SAMPLES)
    return values[:, best].mean() / values[:, 0].mean(), list(ESTIMATORS)[best] if sure else "·"


maps = {}
for name, P in POPULATIONS.items():
    maps[name] = [[winner(losses(P, n, width)) for n in SIZES] for width in WIDTHS]
    print(f"{name:<24}" + "".join(f"{n:>4} rows" for n in SIZES))
    for width, cells in zip(WIDTHS, maps[name], strict=True):
        print(f"  {width:g} × median distance".ljust(24) + "".join(f"{ratio:7.2f} {letter}" for ratio, letter in cells))

# %%
# The darker, the more is won.

figure, axes = plt.subplots(2, 1, figsize=(6, 6.4), sharex=True, layout="constrained")
for ax, (name, cells) in zip(axes, maps.items(), strict=True):
    shades = ax.imshow([[ratio for ratio, _ in row] for row in cells], "YlGnBu_r", vmin=0, vmax=1, aspect="auto")
    for (i, j), ratio in np.ndenumerate(shades.get_array()):
        ax.text(j, i, f"{cells[i][j][1]}\n{ratio:.2f}", ha="center", va="center", color="w" if ratio < 0.45 else "k")
    ax.set_yticks(range(len(WIDTHS)), WIDTHS)
    ax.set(title=name, ylabel="bandwidth / median")
axes[1].set_xticks(range(len(SIZES)), SIZES)
axes[1].set_xlabel("rows")
figure.colorbar(shades, ax=axes, label="loss of the winner / plain average's")
plt.show()

# %%
# When it does not help
# ---------------------
# Narrow kernels and few rows gain most, and there adaptive shrinkage is ahead. With a kernel twice as wide as the
# median distance, or with many rows, the plain average is hard to beat. Mixtures of Gaussians suit the adaptive mean,
# whose target is a Gaussian; :doc:`/adaptive` has other populations.

"""The adaptive mean
=================

Simple and flexible shrinkage pull towards 0. :class:`~muhat.AdaptiveKernelMean` pulls towards the kernel mean of a
fitted Gaussian as well. Its mean is a part of flexible shrinkage and a part of that Gaussian, and λ and both shares are
chosen by leave-one-out. Where does that win? Every population here is a mixture of Gaussians, so that losses are exact.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

SAMPLES = 8

# %%
# One sample
# ----------
# Twenty rows of one Gaussian, with a narrow kernel. The shares a and b say what the mean consists of.

P = mh.GaussianMixture([1.0], np.ones((1, 5)), [[1.0, 1.0, 2.0, 4.0, 8.0]])
X = P.sample(20, random_state=0)
kernel = mh.Gaussian(bandwidth=1.0)
mean = mh.AdaptiveKernelMean(kernel).fit(X)
plain = mh.KernelMean(kernel).fit(X)
truth = mh.embed(kernel, P)
a, b = mean.shares_
print(f"shares: {a:.2f} of the rows, {b:.2f} of the fitted Gaussian")
print(f"loss {mean.mean_.distance(truth) ** 2:.4f}, of the plain average {plain.mean_.distance(truth) ** 2:.4f}")

# %%
# Five populations, two bandwidths
# --------------------------------
# Twenty rows each; the bandwidth is the median distance, or a narrow one, with a tenth of its square.

rng = np.random.default_rng(0)
angles = np.arange(24) * np.pi / 12
circle = np.column_stack([np.cos(angles), np.sin(angles)])
POPULATIONS = {
    "one Gaussian": P,
    "the paper's mixture": mh.paper_mixture(10, random_state=rng),
    "outliers": mh.GaussianMixture([0.9, 0.1], np.zeros((2, 5)), [1.0, 100.0]),
    "a circle": mh.GaussianMixture(np.full(24, 1 / 24), circle, np.full(24, 0.01)),
    "tight clusters": mh.GaussianMixture(np.full(5, 0.2), rng.normal(size=(5, 5)) * 5, np.full(5, 0.05)),
}
ESTIMATORS = {
    "plain": mh.KernelMean(),
    "simple": mh.ShrunkKernelMean(),
    "flexible": mh.SpectralKernelMean(),
    "adaptive": mh.AdaptiveKernelMean(),
}


def relative_losses(P, factor):
    """Mean losses over the plain average's, and the standard errors of these ratios."""
    losses = []
    for sample_rng in np.random.default_rng(0).spawn(SAMPLES):
        X = P.sample(20, random_state=sample_rng)
        kernel = mh.Gaussian(factor * mh.Gaussian().resolve(X).bandwidth)
        truth = mh.embed(kernel, P)
        fitted = [estimator.set_params(kernel=kernel).fit(X) for estimator in ESTIMATORS.values()]
        losses.append([estimator.mean_.distance(truth) ** 2 for estimator in fitted])
    losses = np.array(losses)
    ratios, plain = losses.mean(axis=0) / losses[:, 0].mean(), losses[:, :1]
    return ratios, (losses - ratios * plain).std(axis=0, ddof=1) / np.sqrt(SAMPLES) / plain.mean()


results = {}
for bandwidth, factor in {"median bandwidth": 1.0, "narrow bandwidth": np.sqrt(0.1)}.items():
    print(f"{bandwidth:<22}" + "".join(f"{name:>10}" for name in ESTIMATORS))
    results[bandwidth] = [relative_losses(P, factor) for P in POPULATIONS.values()]
    for name, (ratios, _) in zip(POPULATIONS, results[bandwidth], strict=True):
        print(f"  {name:<20}" + "".join(f"{ratio:10.2f}" for ratio in ratios))

# %%
# Left of the dotted line is better than the plain average; bars are two standard errors.

figure, axes = plt.subplots(2, 1, figsize=(6.4, 6.4), sharex=True, layout="constrained")
styles = {"simple": ("#0072b2", "s", -0.2), "flexible": ("#e69f00", "^", 0.0), "adaptive": ("#d55e00", "o", 0.2)}
for ax, (bandwidth, found) in zip(axes, results.items(), strict=True):
    for name, (colour, marker, shift) in styles.items():
        column = list(ESTIMATORS).index(name)
        ratios, errors = np.array(found)[:, :, column].T
        ax.errorbar(ratios, np.arange(5) + shift, xerr=2 * errors, fmt=marker, color=colour, label=name, capsize=2)
    ax.axvline(1, color="#444444", linewidth=1, linestyle=":")
    ax.set_yticks(range(5), POPULATIONS)
    ax.set_title(bandwidth)
    ax.invert_yaxis()
axes[0].legend(frameon=False, loc="lower left")
axes[1].set_xlabel("loss relative to the plain average")
plt.show()

# %%
# When it does not help
# ---------------------
# Its weak place is tight clusters that lie far apart, which no Gaussian resembles: with the median bandwidth it gains
# little there. It is also the slowest of the four. :doc:`/means` says how the numbers are chosen, and has tables
# over other populations.

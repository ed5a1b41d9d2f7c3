"""Why shrinking helps
===================

The standard estimate of a kernel mean is the average of the observations in the space of the kernel. For a small
sample, shrinking the average slightly reduces its expected squared error: this is Stein's effect. The first figure
shows why, and the rest of the example measures how much of it remains when the amount of shrinkage is estimated.

The distributions are mixtures of Gaussians, drawn as in the paper, so that the true kernel mean μ is known and the loss
‖μ̂ − μ‖² of an estimate μ̂ is exact. The Gaussian kernel has its default bandwidth, the median distance.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

# %%
# The error of an average is almost at right angles to the truth
# --------------------------------------------------------------
# An average μ̂ of ten rows is described by two numbers: its component along μ, and the length of the rest. The space of
# the kernel has many dimensions, so that nearly all of the error lies in the rest: the averages sit above the truth,
# and are longer than μ. A small step toward zero is therefore a step closer to it.
#
# Theorem 1 makes this exact. With Δ the expected squared error of the average, the risk of (1 − α)μ̂ is
# (1 − α)²Δ + α²‖μ‖², which is lowest at α* = Δ/(Δ + ‖μ‖²). Every curve on the right first falls below 1, and the fewer
# the rows are, the farther; the dots are at α*.

P = mh.paper_mixture(n_features=30, random_state=0)
kernel = mh.Gaussian().resolve(P.sample(1000, random_state=0))
truth = mh.embed(kernel, P)
length = truth.norm()

averages = [mh.KernelMean(kernel).fit(P.sample(10, random_state=seed)).mean_ for seed in range(60)]
along = np.array([mean.inner(truth) / length for mean in averages])
beside = np.sqrt([mean.norm() ** 2 - part**2 for mean, part in zip(averages, along, strict=True)])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained", width_ratios=[1.25, 1])
grey, blue, orange = "#8c8c8c", "#0072b2", "#d55e00"
left.scatter(along, beside, s=18, color=grey, alpha=0.6, linewidths=0)
left.annotate(
    "60 averages\nof ten rows", (along.max(), beside.mean()), (8, 30), textcoords="offset points", va="center"
)
left.annotate("", (length, 0), (0, 0), arrowprops={"arrowstyle": "-|>", "color": orange, "linewidth": 2})
left.text(0.5 * length, -0.015, "true mean μ", color=orange, ha="center", va="top")
left.text(0, -0.015, "zero", color="#444444", ha="left", va="top")

# A circle about μ through the middle of the averages: the line to zero enters it.
middle = np.array([along.mean(), beside.mean()])
left.plot([0, middle[0]], [0, middle[1]], color=blue, linewidth=1.5)
left.plot(*middle, "o", color=blue)
left.annotate("toward zero", 0.5 * middle, (0, 6), textcoords="offset points", color=blue, ha="right")
left.add_patch(plt.Circle((length, 0), np.hypot(*(middle - [length, 0])), fill=False, color=blue, linestyle=":"))
left.set(xlim=(-0.03, 1.1), ylim=(-0.22, 0.36), yticks=[0, 0.1, 0.2, 0.3], aspect="equal")
left.set(xlabel="component along μ", ylabel="length of the rest", title="A step toward zero is a step closer")

alphas = np.linspace(0, 0.25, 200)
colours = ["#d55e00", "#e69f00", "#009e73", "#0072b2"]
for n, colour in zip((5, 10, 30, 100), colours, strict=True):
    best, risk = mh.oracle_shrinkage(kernel, P, n)
    plain = risk / (1 - best)
    right.plot(alphas, (1 - alphas) ** 2 + alphas**2 * length**2 / plain, color=colour, linewidth=2, label=f"{n} rows")
    right.plot(best, risk / plain, "o", color=colour)
    print(f"{n:>3} rows: best shrinkage {best:.3f}, risk {risk / plain:.3f} of the average's")
right.axhline(1, color="#444444", linewidth=1, linestyle=":")
right.set(ylim=(0.85, 1.3), xlabel="shrinkage α", ylabel="risk, relative to the plain average's")
right.set_title("Every curve first falls below 1")
right.legend(frameon=False, loc="lower right")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What remains when α is estimated
# --------------------------------
# :class:`~muhat.ShrunkKernelMean` and :class:`~muhat.SpectralKernelMean` select the amount of shrinkage by
# leave-one-out cross-validation, and :class:`~muhat.AdaptiveKernelMean` shrinks toward a fitted Gaussian instead of
# zero. The losses are averaged over fifty distributions with ten rows each, relative to the plain average's.

ESTIMATORS = {
    "simple": mh.ShrunkKernelMean(),
    "spectral": mh.SpectralKernelMean(),
    "spectral, Theorem 4": mh.SpectralKernelMean(lam="theorem4"),
    "adaptive": mh.AdaptiveKernelMean(),
}
KERNELS = {"linear": mh.Linear(), "degree 2": mh.Polynomial(degree=2), "Gaussian": mh.Gaussian()}


def relative_losses(kernel):
    """Mean loss of each estimator, and of the oracle of Theorem 1, over that of the plain average."""
    losses = []
    for rng in np.random.default_rng(0).spawn(50):
        P = mh.paper_mixture(30, random_state=rng)
        X = P.sample(10, random_state=rng)
        resolved = kernel.resolve(X)
        truth, plain = mh.embed(resolved, P), mh.embed(resolved, X)
        means = [estimator.set_params(kernel=resolved).fit(X).mean_ for estimator in ESTIMATORS.values()]
        oracle = (1 - mh.oracle_shrinkage(resolved, P, 10).shrinkage) * plain
        losses.append([mean.distance(truth) ** 2 for mean in (plain, *means, oracle)])
    mean_losses = np.mean(losses, axis=0)
    return mean_losses[1:] / mean_losses[0]


results = np.transpose([relative_losses(kernel) for kernel in KERNELS.values()])
print(" " * 22 + "".join(f"{name:>10}" for name in KERNELS))
for name, ratios in zip([*ESTIMATORS, "oracle, simple"], results, strict=True):
    print(f"{name:<22}" + "".join(f"{ratio:10.3f}" for ratio in ratios))

# %%
# When it does not help
# ---------------------
# α has to be learned from the same rows. A Gaussian mean cannot be improved everywhere in one or two dimensions, and
# with three rows and a linear kernel the estimated shrinkage does harm in up to three: here the mean lies two standard
# deviations from zero. From three dimensions on James and Stein's estimator, which is told the variance, has a risk
# below 1 wherever the mean lies.

for d in (1, 2, 3, 10, 30):
    theta = np.full(d, 2.0 / np.sqrt(d))
    samples = theta + np.random.default_rng(d).normal(size=(600, 3, d))
    shrunken = [mh.ShrunkKernelMean(mh.Linear()).fit(X).weights_ @ X for X in samples]
    errors = [np.mean(np.sum((means - theta) ** 2, axis=1)) for means in (samples.mean(axis=1), np.array(shrunken))]
    exact = mh.means.james_stein_risk(theta, 1.0, 3) * 3 / d if d > 2 else 1.0
    print(f"{d:>2} dimensions: leave-one-out {errors[1] / errors[0]:.2f}, James-Stein {exact:.2f}")

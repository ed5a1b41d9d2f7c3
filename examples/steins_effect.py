"""Stein's effect, measured
========================

The plain average is the estimate of a kernel mean that everybody uses. Stein's effect says that it can be beaten: an
average that is shrunk a little has lower risk. Here the distributions are mixtures of Gaussians, drawn as the paper
draws them, so that the true kernel mean μ is known and the loss ‖μ̂ − μ‖² of an estimate μ̂ is exact.

Compared are the plain average (:class:`~muhat.KernelMean`), simple shrinkage (:class:`~muhat.ShrunkKernelMean`),
flexible shrinkage (:class:`~muhat.SpectralKernelMean`), the adaptive mean (:class:`~muhat.AdaptiveKernelMean`), and the
best simple shrinkage if the distribution were known (:func:`~muhat.oracle_shrinkage`).
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

DISTRIBUTIONS = 50

# %%
# One distribution
# ----------------
# Ten rows in thirty dimensions. An estimator is fitted as in scikit-learn, and its ``mean_`` is an element of the space
# of the kernel: elements have distances, to the truth as to each other.

kernel = mh.Polynomial(degree=2)
P = mh.paper_mixture(n_features=30, random_state=0)
X = P.sample(10, random_state=0)
truth = mh.embed(kernel, P)
for estimator in (mh.KernelMean(kernel), mh.ShrunkKernelMean(kernel)):
    print(f"{type(estimator).__name__:<18} loss {estimator.fit(X).mean_.distance(truth) ** 2:,.0f}")

# %%
# Many distributions, four kernels
# --------------------------------
# λ of flexible shrinkage is chosen by the score of the paper's Theorem 4, or by true deletion of each row, the default.

ESTIMATORS = {
    "plain average": mh.KernelMean(),
    "simple": mh.ShrunkKernelMean(),
    "flexible, Theorem 4": mh.SpectralKernelMean(lam="theorem4"),
    "flexible, deletion": mh.SpectralKernelMean(),
    "adaptive": mh.AdaptiveKernelMean(),
}
NAMES = [*ESTIMATORS, "oracle"]
KERNELS = {
    "linear": mh.Linear(),
    "polynomial, degree 2": mh.Polynomial(degree=2),
    "polynomial, degree 3": mh.Polynomial(degree=3),
    "Gaussian": mh.Gaussian(),  # its bandwidth is the median distance of the rows
}


def losses(kernel, n_rows, estimators):
    """Loss of each estimator and of the oracle, a row for each distribution."""
    found = []
    for rng in np.random.default_rng(0).spawn(DISTRIBUTIONS):
        P = mh.paper_mixture(30, random_state=rng)
        X = P.sample(n_rows, random_state=rng)
        resolved = kernel.resolve(X)
        means = [estimator.set_params(kernel=resolved).fit(X).mean_ for estimator in estimators]
        means.append((1 - mh.oracle_shrinkage(resolved, P, n_rows).shrinkage) * means[0])
        found.append([mean.distance(mh.embed(resolved, P)) ** 2 for mean in means])
    return np.array(found)


def relative(values):
    """Mean losses over the plain average's, and the standard errors of these ratios."""
    ratios = values.mean(axis=0) / values[:, 0].mean()
    spread = (values - ratios * values[:, :1]).std(axis=0, ddof=1) / values[:, 0].mean()
    return ratios, spread / np.sqrt(len(values))


results = {name: relative(losses(kernel, 10, ESTIMATORS.values())) for name, kernel in KERNELS.items()}
print("loss / plain average's".ljust(23) + "".join(f"{name.removeprefix('polynomial, '):>15}" for name in KERNELS))
for j, name in enumerate(NAMES):
    cells = [f"{ratios[j]:.3f} ± {errors[j]:.3f}" for ratios, errors in results.values()]
    print(f"{name:<23}" + "".join(f"{cell:>15}" for cell in cells))

# %%
# Shorter bars are better, and left of the dotted line is better than the plain average. All ways to shrink win with the
# first three kernels. With the Gaussian one there is less to win, and λ by Theorem 4 gives it away: that score shrinks
# too much, as :ref:`sphx_glr_gallery_leave_one_out_curves.py` shows.

figure, axes = plt.subplots(2, 2, figsize=(7, 5), sharex=True, sharey=True, layout="constrained")
colours = ["#999999", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cccccc"]
for ax, (name, (ratios, errors)) in zip(axes.flat, results.items(), strict=True):
    ax.barh(NAMES, ratios, xerr=2 * errors, color=colours, error_kw={"capsize": 2})
    for place, ratio in enumerate(ratios):
        ax.text(0.03, place, f"{ratio:.2f}", va="center", weight="bold", color="w" if place < 5 else "k")
    ax.axvline(1, color="#444444", linewidth=1, linestyle=":")
    ax.set_title(name, fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].invert_yaxis()
figure.supxlabel("loss relative to the plain average, ± 2 standard errors", fontsize=10)
plt.show()

# %%
# When it does not help
# ---------------------
# The gain is of the order of the loss itself: with a hundred rows and the Gaussian kernel little is left of it. Wide
# kernels have few directions to shrink; half the bandwidth gains more. :doc:`/choosing` says what to take when.

ratios, errors = relative(losses(mh.Gaussian(), 100, list(ESTIMATORS.values())[:4]))
for name, ratio, error in zip(NAMES, ratios[:4], errors[:4], strict=False):
    print(f"100 rows, {name:<22}{ratio:.3f} ± {error:.3f}")

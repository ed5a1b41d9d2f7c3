"""Why the paper's score shrinks too much
======================================

Flexible shrinkage (:class:`~muhat.SpectralKernelMean`) has one parameter, λ, and its loss is a curve over λ. A score
that is worth its name has its minimum near that of the loss. True deletion takes row i out of the data and out of the
span, and its curve follows the loss. The score of the paper's Theorem 4 drops the loss of row i but leaves φ(xᵢ) in
the span: the estimate may still place weight on the row that it is tested on, so that strong shrinkage looks better
than it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh
from muhat.shrinkage.scores import deletion_scores, theorem4_scores

DISTRIBUTIONS = 40
RATIOS = np.logspace(-4, 1, 51)  # λ, in units of the largest eigenvalue

# %%
# One sample
# ----------
# The estimator searches λ by itself: by true deletion, or by the score of Theorem 4.

P = mh.paper_mixture(30, random_state=0)
X = P.sample(30, random_state=0)
for lam in ("loo", "theorem4"):
    mean = mh.SpectralKernelMean(lam=lam).fit(X)
    print(f'lam="{lam}": λ = {mean.lam_:.2f}, loss {mean.mean_.distance(mh.embed(mean.kernel_, P)) ** 2:.4f}')

# %%
# The scores and the loss
# -----------------------
# The scores are functions of the Gram matrix (:func:`~muhat.shrinkage.deletion_scores`,
# :func:`~muhat.shrinkage.theorem4_scores`). The weights of flexible shrinkage are (K + λI)⁻¹K1/n, and their loss is
# exact. All curves are in units of the plain average's loss, and start from 0 at λ = 0: what matters is where the
# minimum lies.


def curves(kernel, rng):
    """Loss and both scores over λ for a sample of 30 rows."""
    P = mh.paper_mixture(30, random_state=rng)
    X = P.sample(30, random_state=rng)
    kernel = kernel.resolve(X)
    K, truth = kernel(X), mh.embed(kernel, P)
    lams = RATIOS * np.linalg.eigvalsh(K)[-1]
    plain = mh.embed(kernel, X).distance(truth) ** 2
    weights = [np.linalg.solve(K + lam * np.eye(30), K.mean(axis=1)) for lam in lams]
    losses = np.array([w @ K @ w - 2 * w @ truth(X) for w in weights]) + truth.norm() ** 2
    found = {"true loss": losses / plain - 1}
    for name, scores in {"true deletion": deletion_scores, "Theorem 4": theorem4_scores}.items():
        found[name] = (scores(K, lams) - scores(K, [0.0])) / plain
    return found


results = {}
print("loss at the λ that each curve chooses, relative to the plain average's")
for title, kernel in {"Gaussian kernel": mh.Gaussian(), "polynomial of degree 2": mh.Polynomial(2)}.items():
    samples = [curves(kernel, rng) for rng in np.random.default_rng(0).spawn(DISTRIBUTIONS)]
    for name in samples[0]:
        chosen = [np.argmin(sample[name]) for sample in samples]
        loss = np.mean([1 + sample["true loss"][place] for sample, place in zip(samples, chosen, strict=True)])
        print(f"{title:<24}{name:<16}{loss:.3f}   median λ {np.median(RATIOS[chosen]):.2g} × largest eigenvalue")
    results[title] = {name: np.mean([sample[name] for sample in samples], axis=0) for name in samples[0]}

# %%
# Each dot is the loss at the λ that a curve would choose. The curve of true deletion lies on that of the loss, and so
# does its dot. The dot of Theorem 4 lies to the right, where the mean is shrunk too much, and above 0: there the plain
# average is better.

figure, axes = plt.subplots(2, 1, figsize=(6.4, 7), sharex=True, layout="constrained")
colours = {"true loss": "#bbbbbb", "true deletion": "#009e73", "Theorem 4": "#d55e00"}
for ax, (title, means) in zip(axes, results.items(), strict=True):
    for name, style, width in zip(means, ("-", "--", "-."), (5, 2, 2), strict=True):
        place = np.argmin(means[name])
        ax.plot(RATIOS, means[name], style, color=colours[name], linewidth=width, label=name)
        ax.plot(RATIOS[place], means["true loss"][place], "o", color=colours[name], markersize=9, mec="w", zorder=3)
    low = min(values.min() for values in means.values())
    ax.axhline(0, color="#999999", linewidth=0.8)
    ax.set(xscale="log", ylim=(1.25 * low, -1.5 * low), title=title, ylabel="change, in the plain loss")
axes[0].legend(frameon=False, loc="upper left")
axes[1].set_xlabel("λ / largest eigenvalue")
plt.show()

# %%
# When it does not matter
# -----------------------
# Where there is much to shrink, as with ten rows and a polynomial kernel, both scores find a λ that is better than
# none: see :ref:`sphx_glr_gallery_steins_effect.py`, where a hundred rows do not cure the score of Theorem 4 either.
# ``lam="loo"``, true deletion, is the default.

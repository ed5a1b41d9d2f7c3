"""What two things have in common
==============================

A wave relates X and Y, and no line does. The leading singular functions of the cross-covariance operator
(:class:`~muhat.KernelCovariance`) are the two functions, one of X and one of Y, that vary together most.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, size=200)
y = np.sin(4 * x) + 0.3 * rng.normal(size=200)

# %%
# Three singular values
# ---------------------
# Shrinkage scales the whole operator, and its functions stay as they are.

for mean in (None, mh.ShrunkKernelMean()):
    fitted = mh.KernelCovariance(mh.Gaussian(0.3), mh.Gaussian(0.5), mean=mean).fit(x[:, None], y[:, None])
    values = fitted.operator_.singular_system(3).values
    print("plain   " if mean is None else "shrunken", *(f"{value:.4f}" for value in values))
values, left, right = fitted.operator_.singular_system(1)
of_x, of_y = right[0](x[:, None]), left[0](y[:, None])
print(f"correlation of x and y {np.corrcoef(x, y)[0, 1]:.2f}, of the two functions {np.corrcoef(of_x, of_y)[0, 1]:.2f}")

# %%
# The pairs, and the two functions
# --------------------------------

figure, (before, functions, after) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
before.scatter(x, y, s=9, color="#888888")
before.set(xlabel="x", ylabel="y", title=f"correlation {np.corrcoef(x, y)[0, 1]:.2f}")
for points, function, name, color in ((x, right[0], "of x", "#0b6e99"), (y, left[0], "of y", "#d55e00")):
    grid = np.linspace(points.min(), points.max(), 200)
    functions.plot(grid, function(grid[:, None]), label=name, color=color, linewidth=2)
functions.set(xlabel="x, y", title="leading singular functions")
functions.legend(frameon=False)
after.scatter(of_x, of_y, s=9, color="#0b6e99")
after.set(xlabel="function of x", ylabel="function of y", title=f"correlation {np.corrcoef(of_x, of_y)[0, 1]:.2f}")
plt.show()

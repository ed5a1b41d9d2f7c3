"""Odd groups, small and large: a scanner that reads too many eights
==================================================================

Scanners send batches of digits, from three to three hundred a day. In a broken one, a third of the digits are eights.
No single digit is odd. A one-class machine finds small batches odd because they are small;
:class:`~muhat.GroupAnomalyDetector` allows for the size of a batch.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

import muhat as mh

digits = load_digits()
pixels = PCA(10, whiten=False, random_state=0).fit_transform(digits.data / 16)


def batches(n, broken, rng):
    """Batches of digits; in a broken one eights are more frequent."""
    bags = []
    for _ in range(n):
        size = int(np.exp(rng.uniform(np.log(3), np.log(300))))
        weights = rng.dirichlet(np.full(10, 30.0))[digits.target]
        weights *= np.where((digits.target == 8) & broken, 5.0, 1.0)
        bags.append(pixels[rng.choice(len(weights), size, p=weights / weights.sum())])
    return bags


rng = np.random.default_rng(0)
train = batches(150, False, rng)
test, odd = batches(300, False, rng) + batches(150, True, rng), np.repeat([False, True], [300, 150])
sizes = np.array([len(bag) for bag in test])

# %%
# Both at a nominal rate of one false alarm in ten
# ------------------------------------------------
# The machine warns that sizes differ by more than three times; here that is the point.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    machine = mh.OneClassSupportMeasureMachine(nu=0.1).fit(train)
detector = mh.GroupAnomalyDetector(alpha=0.1, random_state=0).fit(train)
classes = {"3 to 9": sizes < 10, "10 to 29": (sizes >= 10) & (sizes < 30), "30 and more": sizes >= 30}
print(f"{'':<24}{'area':>6}" + "".join(f"{'alarms, ' + name:>22}" for name in classes))
rates = {}
for name, found in (("one-class machine", machine), ("GroupAnomalyDetector", detector)):
    alarms, area = found.predict(test) == -1, roc_auc_score(odd, -found.score_samples(test))
    rates[name] = [(alarms[mask & ~odd].mean(), alarms[mask & odd].mean()) for mask in classes.values()]
    cells = [f"{false:.2f} false {hit:.2f} true" for false, hit in rates[name]]
    print(f"{name:<24}{area:6.2f}" + "".join(f"{cell:>22}" for cell in cells))

# %%
# The p-value of a batch compares it with normal batches of its own size.

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
p = detector.p_values(test)
for kind, colour, label in ((False, "#8c8c8c", "normal"), (True, "#d55e00", "broken")):
    ax.scatter(sizes[odd == kind], p[odd == kind], s=14, color=colour, label=label, linewidths=0, alpha=0.8)
ax.axhline(0.1, color="#444444", linestyle="--", linewidth=1)
ax.set(xscale="log", yscale="log", xlabel="digits in the batch", ylabel="p-value")
ax.legend(frameon=False)
plt.show()

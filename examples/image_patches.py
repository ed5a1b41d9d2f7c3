"""Images as bags of patches
=========================

A handwritten digit is cut into patches of 3 × 3 pixels, each a row: its pixels, and where it was. The image is the bag
of these rows, in no order, and :class:`~muhat.SupportMeasureClassifier` learns to tell bags apart. With a linear
level-2 kernel its decision is an average over the patches of the bag, so that each of them can be asked for its part.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

import muhat as mh

IMAGES = 200  # to learn from, and to test
PLACES = 6  # of a patch of 3 × 3 in 8 pixels, up and across
PAIR = (3, 8)
kernel = mh.Gaussian(bandwidth=1.0)

# %%
# From images to bags
# -------------------
# One row a patch: its pixels in [0, 1], and its place in [0, 1]² times a weight. With weight 0 a bag forgets where its
# patches were.


def bags(images, weight):
    where = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, PLACES)], indexing="ij"), axis=-1).reshape(-1, 2)
    cut = np.lib.stride_tricks.sliding_window_view(images / 16, (3, 3), axis=(1, 2)).reshape(len(images), -1, 9)
    return [np.hstack([patches, weight * where]) for patches in cut]


digits = load_digits()
split = {"train_size": IMAGES, "test_size": IMAGES, "stratify": digits.target, "random_state": 0}
train, test, y, z = train_test_split(digits.images, digits.target, **split)
print(f"{IMAGES} bags of {len(bags(train, 2.0)[0])} rows in {bags(train, 2.0)[0].shape[1]} dimensions")

# %%
# What each patch says
# --------------------
# A machine for two digits. A bag of one patch is a bag too, and its decision is the vote of that patch; the decision
# for an image is the average of the votes of its patches.

chosen = np.isin(y, PAIR)
machine = mh.SupportMeasureClassifier(kernel, level2="linear", C=1000.0).fit(bags(train[chosen], 2.0), y[chosen])
images = np.concatenate([test[z == digit][:3] for digit in PAIR])
decisions = machine.decision_function(bags(images, 2.0))
votes = machine.decision_function(np.concatenate(bags(images, 2.0))[:, None]).reshape(-1, PLACES, PLACES)
print(f"largest difference of decision and average vote: {np.abs(votes.mean(axis=(1, 2)) - decisions).max():.0e}")

figure, axes = plt.subplots(2, 6, figsize=(8.4, 3.8), layout="constrained")
limit = np.abs(votes).max()
for (above, below), image, decision, vote in zip(axes.T, images, decisions, votes, strict=True):
    above.imshow(image, cmap="Greys")
    above.set_title(f"{decision:+.1f}: a {PAIR[int(decision > 0)]}")
    shown = below.imshow(vote, cmap="RdBu_r", vmin=-limit, vmax=limit, extent=(1, 7, 7, 1))
    below.contour(np.arange(8) + 0.5, np.arange(8) + 0.5, image, [6.0], colors="#222222", linewidths=1.4)
    below.set(xlim=(0, 8), ylim=(8, 0))
for ax in axes.flat:
    ax.axis("off")
bar = figure.colorbar(shown, ax=axes[1, :], location="bottom", shrink=0.6, aspect=40, ticks=[-limit, 0, limit])
bar.ax.set_xticklabels([f"the patch says {PAIR[0]}", "nothing", f"the patch says {PAIR[1]}"])
plt.show()

# %%
# Ten digits
# ----------
# Compared with machines that know less (the average patch, patches without places) and with one that knows more, all
# pixels in their order. Accuracy on new images, C by cross-validation.

COSTS = [1.0, 100.0, 10_000.0]
on_bags = GridSearchCV(mh.SupportMeasureClassifier(kernel, level2="linear"), {"C": COSTS}, cv=3)
on_vectors = GridSearchCV(SVC(), {"C": COSTS}, cv=3)
averages = [np.mean(bags(some, 0.0), axis=1) for some in (train, test)]
pixels = [some.reshape(len(some), -1) for some in (train, test)]
print(f"SVM on the average patch               {on_vectors.fit(averages[0], y).score(averages[1], z):.3f}")
print(f"bags of patches                        {on_bags.fit(bags(train, 0.0), y).score(bags(test, 0.0), z):.3f}")
print(f"bags of patches that know their place  {on_bags.fit(bags(train, 2.0), y).score(bags(test, 2.0), z):.3f}")
print(f"SVM on all pixels                      {on_vectors.fit(pixels[0], y).score(pixels[1], z):.3f}")

# %%
# When it does not help
# ---------------------
# The average patch loses too much. What a bag adds is paid for: a kernel value of two images takes 36² values of
# patches, and large images take many more. Where images are not cut to one frame, as digits are, the places of patches
# mean less, and pixels in their order nothing; see :doc:`/bags`.

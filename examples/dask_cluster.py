"""A cluster on one machine
========================

Days of data, each of which a worker makes for itself as it would read a file, are sketched and compared over the
workers of a Dask cluster. From day 7 on half of the rows lie on a ring that has the mean
and covariance of all rows. The same work is done here, in one process: the numbers must not differ.
"""

import dask
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

import muhat as mh

DAYS, CHANGE, ROWS_A_DAY = 12, 7, 2000
kernel = mh.Gaussian(bandwidth=0.5)


def rows_of_day(day, n=ROWS_A_DAY):
    """Gaussian rows, half of which lie on a ring after the change."""
    rng = np.random.default_rng([day, n])
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.sqrt(2 * (1 - 0.3**2)) * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(n, 2))
    return np.where(rng.random((n, 1)) < 0.5 * (day >= CHANGE), ring, rng.normal(size=(n, 2)))


# %%
# A cluster
# ---------
# Here its workers are two threads. Leave out ``processes=False`` for processes, and put what follows below
# ``if __name__ == "__main__":``, as each of them imports the script. Or give the address of a scheduler, and the
# workers may be other machines. Nothing else changes.

client = Client(
    n_workers=2,
    threads_per_worker=1,
    processes=False,
    dashboard_address="127.0.0.1:0",  # nobody else can connect
    worker_dashboard_address="127.0.0.1:0",
)

# %%
# One pass over all days
# ----------------------
# A worker makes the rows of a day, sketches them, and sends the sketch. Rows do not travel, and sketches add up.

features = mh.Nystroem(kernel, 150, "k-means++", random_state=0).fit(rows_of_day(0))


def sketch_of_day(day):
    return mh.MeanSketch(features, bins=1000).update(rows_of_day(day))


sketches = client.gather(client.map(sketch_of_day, range(DAYS)))
here = mh.MeanSketch(features, bins=1000).update(np.concatenate([rows_of_day(day) for day in range(DAYS)]))
print(sum(sketches))
print(f"distance from the sketch made here: {sum(sketches).distance(here):.0e}")

# %%
# Before and after the change
# ---------------------------
# The distance of two kernel means, and a test of whether chance explains it, from sums of sketches alone.

before, after = sum(sketches[:CHANGE]), sum(sketches[CHANGE:])
print(f"MMD in features {before.distance(after):.4f}")
print(mh.mmd_test(before, after, random_state=0))

# %%
# Exact comparisons of all pairs of rows are no sums, and have a function of their own. A tenth of the rows will do.
# Every day is a bag: the Gram matrix of :class:`~muhat.DistributionKernel`, and distances from it. The change shows.

few = [dask.delayed(rows_of_day)(day, 200) for day in range(DAYS)]
gram = mh.distributed.bag_gram(few, kernel, client=client)
expected = mh.DistributionKernel(kernel).fit_transform([rows_of_day(day, 200) for day in range(DAYS)])
print(f"difference from the Gram matrix made here: {np.abs(gram - expected).max():.0e}")
squares = np.add.outer(np.diag(gram), np.diag(gram)) - 2 * gram
figure, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
shown = ax.imshow(np.sqrt(squares.clip(0)), cmap="cividis")
figure.colorbar(shown, label="distance (MMD)")
ax.set(xlabel="day", ylabel="day", title=f"distances of the days; change on day {CHANGE}")
plt.show()

client.close()

# %%
# When it does not help
# ---------------------
# A task costs a millisecond or more to send: blocks should be worth seconds. What fits in one process is quicker there.
# :doc:`/scaling` has clusters of more than one machine, what travels, and what happens when workers fail.

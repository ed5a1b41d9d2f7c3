"""A sensor that fails slowly
==========================

Six sensors of a machine are read once a minute. From minute 300 on, the third one gradually decouples from the others:
its readings follow the machine less and less, and noise takes their place. Its mean and its dispersion stay as they
were, so that limits on single sensors see nothing. :class:`~muhat.DriftMonitor` compares all sensors together with a
day without faults, and its average run length without drift is 2,000 rows.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import muhat as mh

SENSORS = ["inlet", "outlet", "bearing", "motor", "oil", "casing"]
FAULT, LENGTH = 300, 1100


def readings(n, rng, grip=1.0):
    """Readings that follow the load of the machine; ``grip`` says how closely the third sensor does."""
    load = rng.normal(size=(n, 1))
    own = rng.normal(size=(n, len(SENSORS)))
    share = np.full((n, len(SENSORS)), 0.9)
    share[:, 2] *= grip
    return pd.DataFrame(np.sqrt(share) * load + np.sqrt(1 - share) * own, columns=SENSORS)


# %%
# A reference, and a promise
# --------------------------
# ``fit`` simulates streams like the reference, and finds the threshold at which they run for 2,000 rows on average.
# Readings of these sensors are independent from minute to minute, which ``block_length=1`` says.

rng = np.random.default_rng(4)
reference = readings(1440, rng)
monitor = mh.DriftMonitor(run_length=2000, block_length=1, random_state=0).fit(reference)
print(f"windows of {', '.join(map(str, monitor.windows_))} rows; threshold of the score {monitor.threshold_:.1f}")

# %%
# The stream
# ----------
# The grip falls from 1 to 0 within 400 minutes. Rows arrive one at a time, and the monitor says when to look. The
# result names what changed most: not a sensor by itself, but the relation of the failing one to another.
#
# One stream in seven raises a false alarm in its first 300 rows, as an average run length of 2,000 rows implies. This
# one does not.

grip = np.clip(1 - (np.arange(LENGTH) - FAULT) / 400, 0, 1)
stream = readings(LENGTH, rng, grip)
for row in stream.to_numpy():
    if monitor.update(row):
        break
print(monitor.result_)

limits = reference.quantile([0.0005, 0.9995]).to_numpy()
outside = ((stream < limits[0]) | (stream > limits[1])).any(axis=1)
shares = outside[:FAULT].mean(), outside[FAULT:].mean()
print(f"rows outside the limits of single sensors: {shares[0]:.2%} before, {shares[1]:.2%} after")

# %%
# Score and threshold over time
# -----------------------------

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
mh.plotting.DriftDisplay.from_monitor(monitor, ax=ax)
ax.axvline(FAULT, color="#444444", linewidth=0.8)
ax.text(FAULT, 0.2, "the sensor begins to fail ", ha="right", va="bottom")
plt.show()

# %%
# What the monitor saw
# --------------------
# At the alarm the sensor has lost about a fifth of its grip. Its readings since the fault began still lie within the
# range of the reference, but some of them lie beside the line that they form with another sensor.

since = stream[FAULT : monitor.result_.row]
figure, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
ax.plot(reference["inlet"], reference["bearing"], ".", color="#9a9a9a", markersize=3, label="reference")
ax.plot(since["inlet"], since["bearing"], "o", color="#d55e00", markersize=4, label="since the fault began")
ax.set(xlabel="inlet", ylabel="bearing")
ax.legend(frameon=False)
plt.show()

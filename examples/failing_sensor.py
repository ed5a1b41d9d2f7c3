"""A sensor that fails slowly
==========================

Six sensors of a machine are read once a minute. From minute 300 on the third one loses its grip: its readings follow
the machine less and less, and noise takes their place. Its mean and its spread stay as they were, so that limits on
single sensors see nothing. :class:`~muhat.DriftMonitor` compares all sensors together with a day without faults, and
promises a false alarm every 2,000 rows on average.
"""

import matplotlib.pyplot as plt
import numpy as np

import muhat as mh

SENSORS = ["inlet", "outlet", "bearing", "motor", "oil", "casing"]
FAULT, LENGTH = 300, 1100


def readings(n, rng, grip=1.0):
    """Sensors that follow the load of the machine; ``grip`` is how much the third one does."""
    load = rng.normal(size=(n, 1))
    own = rng.normal(size=(n, len(SENSORS)))
    share = np.full((n, len(SENSORS)), 0.6)
    share[:, 2] *= grip
    return np.sqrt(share) * load + np.sqrt(1 - share) * own


# %%
# A reference, and a promise
# --------------------------
# ``fit`` simulates streams like the reference, and finds the threshold at which they run for 2,000 rows on average.

rng = np.random.default_rng(4)
reference = readings(1440, rng)
monitor = mh.DriftMonitor(run_length=2000, random_state=0).fit(reference)
print(f"windows of {', '.join(map(str, monitor.windows_))} rows; threshold of the score {monitor.threshold_:.1f}")

# %%
# The stream
# ----------
# The grip goes from 1 to 0 within 400 minutes. Rows come one at a time; the monitor says when to look.

grip = np.clip(1 - (np.arange(LENGTH) - FAULT) / 400, 0, 1)
stream = readings(LENGTH, rng, grip)
for row in stream:
    if monitor.update(row):
        break
print(monitor.result_)

limits = np.quantile(reference, [0.0005, 0.9995], axis=0)
outside = ((stream < limits[0]) | (stream > limits[1])).any(axis=1)
shares = outside[:FAULT].mean(), outside[FAULT:].mean()
print(f"rows outside of the limits of single sensors: {shares[0]:.2%} before, {shares[1]:.2%} after")

# %%
# Score and threshold over time
# -----------------------------

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
mh.plotting.DriftDisplay.from_monitor(monitor, ax=ax)
ax.axvline(FAULT, color="#444444", linewidth=0.8)
ax.text(FAULT, 0.4, " the sensor begins to fail", va="bottom")
plt.show()

# %%
# Which sensor?
# -------------
# By themselves the sensors hardly changed, so the columns of the result do not name the culprit. The fault is in how
# the sensors go together: compare the correlations in the window of the alarm with those of the reference.

_, window = monitor.compared_rows()
print("columns by themselves:", ", ".join(f"{name} {number:.1f}" for name, number in monitor.result_.columns))
lost = (np.corrcoef(reference.T) - np.corrcoef(window.T)).mean(axis=1)
print(f"correlation lost, on average with the others: {dict(zip(SENSORS, lost.round(2).tolist(), strict=True))}")

"""A table whose categories change their shares
=============================================

A shop's orders have a payment method, a region and an amount. Categories become columns of zeros and ones
(one-hot). From order 800 on some customers change from card to invoice; the amounts and the regions stay as they
were. :class:`~muhat.DriftMonitor` takes the mixed table as it is, and names the columns that changed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import muhat as mh

PAYMENT, REGION = ["card", "invoice", "cash"], ["north", "south", "east", "west"]
CHANGE = 800


def orders(n, rng, invoices=0.15):
    """Rows of an order book; the share of cash is the same always."""
    payment = rng.choice(PAYMENT, n, p=[0.8 - invoices, invoices, 0.2])
    region = rng.choice(REGION, n, p=[0.4, 0.3, 0.2, 0.1])
    return np.column_stack([payment, region, np.exp(rng.normal(3, 0.6, n)).round(2)]).astype(object)


# %%
# Columns of numbers
# ------------------
# A column of zeros and ones for each category, and the logarithm of the amount in units of its spread.

rng = np.random.default_rng(0)
past = orders(1000, rng)
encode = make_column_transformer((OneHotEncoder(sparse_output=False), [0, 1]), (StandardScaler(), [2]))
reference = encode.fit_transform(past)
names = [*encode.named_transformers_["onehotencoder"].categories_[0], *sorted(REGION), "amount"]

monitor = mh.DriftMonitor(run_length=2000, random_state=0).fit(reference)

# %%
# The stream
# ----------
# Blocks of 50 orders at a time. The alarm is at the same row as if they came one by one.

stream = np.concatenate([orders(CHANGE, rng), orders(1200, rng, invoices=0.4)])
for block in np.array_split(encode.transform(stream), 40):
    if monitor.update(block):
        break
found = monitor.result_
print(f"change at order {CHANGE + 1}, alarm at order {found.row}, by the last {found.window} orders")
for column, number in found.columns[:4]:
    print(f"  {names[int(column[1:])]:<8} {number:5.1f}")

# %%
# Shares before and in the window
# -------------------------------

before, window = monitor.compared_rows()
places = np.arange(len(names) - 1)
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.bar(places - 0.2, before[:, :-1].mean(axis=0), 0.4, color="#999999", label="reference")
ax.bar(places + 0.2, window[:, :-1].mean(axis=0), 0.4, color="#d55e00", label=f"the {found.window} orders of the alarm")
ax.set(xticks=places, xticklabels=names[:-1], ylabel="share of orders")
ax.legend(frameon=False)
plt.show()

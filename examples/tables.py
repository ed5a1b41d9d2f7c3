"""Two tables
==========

The orders of two shops are tables as people have them: a column that counts the rows, a date, a colour, an age that is
often missing, numbers. The shops differ in three things: the second sells more in white, it asks fewer customers for
their age, and its prices do not go with the weight. :func:`~muhat.compare` finds all three and names them, with the
size of each effect. In a shell the same is ``muhat compare north.csv south.csv``.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import muhat as mh

rng = np.random.default_rng(0)


def orders(n, white, gaps, tied):
    """A table of n orders; price goes with weight where ``tied`` is near 1."""
    weight = rng.normal(size=n)
    price = tied * weight + np.sqrt(1 - tied**2) * rng.normal(size=n)
    age = np.where(rng.uniform(size=n) < gaps, np.nan, rng.normal(45, 12, n).round())
    colour = rng.choice(["white", "black", "red"], n, p=[white, 0.9 - white, 0.1])
    day = pd.Timestamp("2026-09-01") + pd.to_timedelta(rng.integers(0, 28, n), "D")
    columns = {"number": np.arange(n), "day": day, "colour": colour, "age": age}
    return pd.DataFrame({**columns, "weight": (5 + weight).round(3), "price": (40 + 8 * price).round(2)})


north = orders(1000, white=0.3, gaps=0.03, tied=0.9)
south = orders(1000, white=0.5, gaps=0.2, tied=0.0)
print(south.head(4).to_string())

# %%
# The comparison
# --------------
# The column ``number`` counts the rows, so it is left out.

result = mh.compare(north, south, names=("north", "south"), random_state=0)
print(result)

# %%
# Every column has an effect with a name and an interval, and the whole table is a data frame.

print(result.to_frame()[["column", "kind", "effect_name", "effect", "low", "high", "differs"]].to_string())

# %%
# Only effects that matter: which of them exceed 5 %?

print("\n".join(str(mh.compare(north, south, at_least=0.05, random_state=0)).splitlines()[:6]))

# %%
# The three changes in one picture. The grey bars are columns whose values do not differ.

columns = {column.name: column for column in result.columns}
found = {column.name for column in result.significant_columns}
figure, (sizes, missing, together) = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
colours = ["#d55e00" if name in found else "#bbbbbb" for name in columns]
sizes.barh(list(columns), [column.effect for column in columns.values()], color=colours)
sizes.set(title="values of each column", xlabel="KS distance, or total variation of colour")
missing.bar(["north", "south"], [table.age.isna().mean() for table in (north, south)], color=["#8c8c8c", "#0072b2"])
missing.set(title="age is missing", ylabel="share of the rows")
for table, colour, marker, name in ((north, "#8c8c8c", "s", "north"), (south, "#0072b2", "o", "south")):
    together.plot(table.weight, table.price, marker, color=colour, markersize=3, alpha=0.6, label=name)
together.set(title="price against weight", xlabel="weight", ylabel="price")
together.legend(frameon=False)
plt.show()

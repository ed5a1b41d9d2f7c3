"""Two awkward tables
==================

The orders of two shops lie in two files, as tables do: a column that counts the rows, a date, a colour, an age that is
often missing, numbers. The shops differ in three things: the second sells more in white, it asks fewer customers for
their age, and its prices do not go with the weight. ``muhat compare`` finds all three and names them. In Python,
:func:`~muhat.mmd_test` takes the same tables once their gaps are filled.
"""

import json
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import muhat as mh
from muhat.cli import command_line

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


north = orders(400, white=0.3, gaps=0.03, tied=0.9)
south = orders(400, white=0.5, gaps=0.2, tied=0.0)
print(south.head(4).to_string())

# %%
# In a shell
# ----------
# The command is ``muhat compare north.csv south.csv``. Here it is called from Python. The column ``number`` counts the
# rows, so it is left out.

folder = tempfile.TemporaryDirectory()
files = [Path(folder.name) / "north.csv", Path(folder.name) / "south.csv"]
for table, file in zip((north, south), files, strict=True):
    table.to_csv(file, index=False)
print("exit code", command_line.main(["compare", *map(str, files)]))

# %%
# In a program
# ------------
# ``--json`` has the same content.

written = StringIO()
with redirect_stdout(written):
    command_line.main(["compare", *map(str, files), "--json"])
answer = json.loads(written.getvalue())
folder.cleanup()
columns = {column["name"]: column for column in answer["columns"]}
for name, column in columns.items():
    print(f"{name:<8} {column['kind']:<10} differs: {column['differs']!s:<6} size {column['size']:.2f}")

# %%
# The three changes in one picture. The grey bars are columns whose values do not differ.

figure, (sizes, missing, together) = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
colours = ["#d55e00" if column["differs"] else "#bbbbbb" for column in columns.values()]
sizes.barh(list(columns), [column["size"] for column in columns.values()], color=colours)
sizes.set(title="values of each column", xlabel="size of the difference")
missing.bar(["north", "south"], [table.age.isna().mean() for table in (north, south)], color=["#8c8c8c", "#0072b2"])
missing.set(title="age is missing", ylabel="share of the rows")
for table, colour, marker, name in ((north, "#8c8c8c", "s", "north"), (south, "#0072b2", "o", "south")):
    together.plot(table.weight, table.price, marker, color=colour, markersize=3, alpha=0.6, label=name)
together.set(title="price against weight", xlabel="weight", ylabel="price")
together.legend(frameon=False)
plt.show()

# %%
# In Python
# ---------
# :func:`~muhat.mmd_test` takes data frames with categories and dates, and matches columns by name. Gaps have to be
# filled, and a column of its own keeps where they were.


def filled(table):
    """Without the column that counts the rows, and without gaps."""
    return table.drop(columns="number").assign(age=table.age.fillna(45.0), no_age=table.age.isna())


result = mh.mmd_test(filled(north), filled(south), random_state=0)
print(f"p = {result.pvalue}: {result.summary}")
for component in result.components[:3]:
    print(f"{component.group:<16} alone: p = {component.pvalue:.2g}")

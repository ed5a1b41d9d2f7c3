"""Rows of every experiment of the reproduction, drawn by the tests: of every comparison some are decided, some not."""

from __future__ import annotations

from itertools import product

import numpy as np

from muhat.reproduce.experiments import figure1, figure2, figure3, kernel_choice, table1_paper, table2

KERNELS = ("LIN", "POLY2", "POLY3", "RBF")
SHRUNK = ("S", "F_theorem4", "F_deletion")
NORMALISED = ("simplex", "simplex_half", "affine", "affine_half", "flexible_affine")


def drawn(rng, settings, names, repetitions=6):
    """Rows of each setting, in which a name has a share of KME's loss of its own, and noise."""
    rows = []
    for setting in settings:
        shares = {name: rng.uniform(0.85, 1.15) for name in names}
        for i in range(repetitions):
            base = rng.uniform(0.9, 1.1)
            noise = {name: base * (share + rng.normal(scale=0.06)) for name, share in shares.items()}
            rows.append({**setting, "repetition": i, "KME": base, **noise})
    return rows


def settings_of(**values):
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def figure2_rows(rng):
    sizes = [(30, 10), (30, 20), (30, 100), (10, 20), (100, 20), (figure2.EXTRA, 20)]
    settings = [{"kernel": kernel, "n": n, "d": d} for (d, n), kernel in product(sizes, KERNELS)]
    return drawn(rng, settings, (*SHRUNK, "oracle"))


def kernel_rows(rng):
    settings = settings_of(family=kernel_choice.FAMILIES, width=kernel_choice.QUICK_WIDTHS)
    return [{**row, "spread": rng.uniform()} for row in drawn(rng, settings, (*SHRUNK, "oracle"))]


def normalised_rows(rng):
    names = (*SHRUNK, *(f"{name}_normalised" for name in SHRUNK), *NORMALISED)
    rows = drawn(rng, settings_of(kernel=KERNELS, n=(10, 20)), names)
    return [{**row, "zeros": rng.uniform(), "zeros_half": rng.uniform()} for row in rows]


def theorem_rows(rng):
    names = {
        ("stein", None): ("length", "KME", "JS", "risk"),
        ("1", "LIN"): ("KME", "0.5", "1", "1.5", "2", "alpha", "error"),
        ("1", "RBF"): ("KME", "0.5", "1", "1.5", "2", "alpha", "error"),
        ("2", "RBF"): ("sum", "average", "factor_lowest", "factor_highest"),
        ("3", "RBF"): ("error", "lam", "printed", "refits"),
        ("3", "LIN, mean zero"): ("error", "lam", "printed", "refits"),
        ("4", "LIN"): ("ours", "printed", "λ", "λ/(n−1)", "nλ/(n−1)", "kept_theorem4", "kept_deletion", *SHRUNK[1:]),
        ("4", "RBF"): ("ours", "printed", "λ", "λ/(n−1)", "nλ/(n−1)", "kept_theorem4", "kept_deletion", *SHRUNK[1:]),
        ("4", "LIN, singular"): ("ours", "printed", "span"),
        ("remarks", None): (
            *("entries", "cose", "plus", "minus", "kept", "kept_rescaled", "copies_distance", "copies_penalty"),
            *(f"{name}_{end}" for name in SHRUNK[1:] for end in ("largest", "smallest")),
            *(f"{name}_{reading}" for name in ("KME", "S", "kernel") for reading in ("formula", "words")),
        ),
    }
    rows = []
    for i, ((theorem, kernel), columns) in product(range(5), names.items()):
        row = {"theorem": theorem, "kernel": kernel, "repetition": i, "d": 3 + i % 2, "target": "zero"}
        row |= {name: rng.uniform(0.5, 1.5) for name in columns}
        row |= {name: 1e-12 * row[name] for name in ("error", "sum") if name in row and i}
        row |= {"lam": row["lam"] - 1.0} if kernel == "LIN, mean zero" else {}
        row |= {"printed": None} if "span" in row and i == 2 else {}
        rows.append(row | ({"entries": int(100 * row["entries"])} if theorem == "remarks" else {}))
    return rows


def table1_rows(rng):
    sets = (*table1_paper.SETS[:4], *table1_paper.LARGE_SETS)
    settings = settings_of(set=sets, kernel=KERNELS, solver=("slsqp",))
    settings += settings_of(set=sets[:2], kernel=KERNELS, solver=("lbfgs",))
    rows = drawn(rng, settings, SHRUNK, repetitions=10)
    for row in rows:
        row |= {"n": 100 + 10 * sets.index(row["set"]), "initialisation": row["KME"] if rng.random() < 0.3 else 1.2}
        row |= {f"{name}_converged": bool(rng.random() < 0.7) for name in ("KME", *SHRUNK)}
        row |= {f"{name}_variance": rng.uniform() for name in ("KME", *SHRUNK)}
    return rows


def figure3_rows(rng):
    return drawn(rng, settings_of(set=("wine", "wdbc", "glass"), reading=figure3.READINGS), figure3.LABELS)


def table2_rows(rng):
    settings = settings_of(machine=("SMM",), data=("made",), level2=table2.LEVELS, size=(10, 20), parameters=(None,))
    settings += settings_of(machine=("OCSMM",), data=("hep",), level2=table2.LEVELS, size=(10, 20), parameters="abc")
    return drawn(rng, settings, SHRUNK)


MADE = {
    "figure1": lambda rng: drawn(rng, settings_of(kernel=KERNELS, factor=figure1.FACTORS), figure1.READINGS),
    "figure2": figure2_rows,
    "kernel_choice": kernel_rows,
    "normalisation": normalised_rows,
    "theorems": theorem_rows,
    "table1": table1_rows,
    "figure3": figure3_rows,
    "table2": table2_rows,
}


def made_rows(seed=0):
    """The rows of all experiments, by name."""
    return {name: make(np.random.default_rng([seed, i])) for i, (name, make) in enumerate(MADE.items())}

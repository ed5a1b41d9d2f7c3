"""Figure 3: kernel PCA with shrunken means and shrunken covariance operators, and the error of the operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

import muhat as mh
from paper.claim import Judgement, Part, claim, exact, judged, paired_part, ratio_parts
from paper.comparison import (
    COLOURS,
    PAPERS,
    SHRUNK,
    Estimate,
    column,
    compared,
    decided,
    grouped,
    relative,
    select,
    shown,
)
from paper.data import UCI_TABLES
from paper.experiment import Array, Experiment, Headline, Plan, Row, Section, Setting, generator
from paper.page import Picture, ReportTable
from paper.panels import draw_panels
from paper.protocol import ESTIMATORS, population_and_sample, standardised_table, uci_tables

NAME = "figure3"
COMPONENTS = 20
TEST_SHARE = 0.3
_SECONDS = dict(
    zip(UCI_TABLES, (0.1, 0.05, 0.3, 0.1, 0.2, 0.05, 80.0, 2.5, 0.4, 0.6, 0.2, 0.1, 12.0, 0.05), strict=True)
)

SCENARIOS: dict[str, dict[str, mh.means.BaseKernelMean]] = {
    "KME": {},
    **{name: {"mean": ESTIMATORS[name]} for name in SHRUNK},
    **{f"{name}_COSE": {"covariance": ESTIMATORS[name]} for name in SHRUNK},
}

SCENARIO_LABELS = {
    "S": "S-KMSE",
    "F_theorem4": "F-KMSE",
    "F_loo": "F-KMSE (leave-one-out)",
    "S_COSE": "S-COSE",
    "F_theorem4_COSE": "F-COSE",
    "F_loo_COSE": "F-COSE (leave-one-out)",
}

READINGS = {
    "E2": "‖φ(z) − Pφ(z)‖², as the paper writes it",
    "E1": "‖φ̃(z) − Pφ̃(z)‖², of the centred feature",
    "diagnostic": "k̃(z, z) − Σp² with directions that are not normalised",
}
"""Errors of a test point; the third is not a reconstruction error."""

ERRORS = ("E2", "E1")

SIZES, COLUMNS, POINTS = (20, 50), 10, 500
"""Of the samples whose covariance operator is estimated; the population is uniform on the points."""

OPERATOR = "operator"
OPERATOR_LABELS = {"S": "S-COSE", "F_theorem4": "F-COSE (Theorem 4)", "F_loo": "F-COSE (leave-one-out)"}


def _cells(plan: Plan) -> list[Setting]:
    on_tables = [{**each, "set": name} for name in uci_tables(plan) for each in plan.repeated(full=10, quick=10)]
    return [*on_tables, *({**each, "set": OPERATOR} for each in plan.repeated(full=300, quick=30))]


def _run(setting: Setting, data: str | None) -> list[Row]:
    if setting["set"] == OPERATOR:
        return _operator_rows(setting)
    X = standardised_table(setting["set"], data)
    seed = int(generator(NAME, setting).integers(2**31))
    train, test = train_test_split(X, test_size=TEST_SHARE, random_state=seed)
    kernel = mh.Gaussian().resolve(train)
    errors = {
        name: _errors(mh.KernelPCA(COMPONENTS, kernel, **means).fit(train), train, test)
        for name, means in SCENARIOS.items()
    }
    part = {"set": setting["set"], "repetition": setting["repetition"]}
    return [{**part, "reading": r, **{name: errors[name][r] for name in SCENARIOS}} for r in READINGS]


def _errors(pca: mh.KernelPCA, train: Array, test: Array) -> dict[str, float]:
    """The two readings, and the diagnostic.

    A direction solves BK^c c = νc, so that c = B K^c c / ν follows from the scores of the training rows. Orthonormal
    directions have ‖c‖² ν = 1 only where B is the identity: the diagnostic takes it so for any B.
    """
    centred = float(pca.reconstruction_error(test))
    scores = (pca.transform(test) ** 2).mean(axis=0)
    B = len(train) * pca.covariance_weights_
    length = np.linalg.norm(B[:, None] * pca.transform(train), axis=0)
    kept = length > 0
    taken = scores[kept] * pca.eigenvalues_[kept] / length[kept] ** 2
    return {
        "E1": centred,
        "E2": float(pca.reconstruction_error(test, of="feature")),
        "diagnostic": centred + float(scores.sum() - taken.sum()),
    }


def _operator_rows(setting: Setting) -> list[Row]:
    """Squared Hilbert–Schmidt errors of plain and shrunken operators; the population is uniform on drawn points."""
    rng = generator(NAME, setting, 1)
    _, points = population_and_sample(POINTS, COLUMNS, rng)
    sample = points[rng.integers(POINTS, size=SIZES[-1])]
    rows = []
    for n in SIZES:
        kernel = mh.Gaussian().resolve(sample[:n])
        truth = mh.KernelCovariance(kernel).fit(points).operator_
        means = {"KME": None, **{name: clone(ESTIMATORS[name]) for name in SHRUNK}}
        errors = {
            name: mh.KernelCovariance(kernel, mean=mean).fit(sample[:n]).operator_.distance(truth) ** 2
            for name, mean in means.items()
        }
        rows.append({"set": OPERATOR, "reading": "HS", "n": n, "repetition": setting["repetition"], **errors})
    return rows


def relative_errors(rows: list[Row], scenario: str, reading: str, baseline: str = "KME") -> list[Estimate]:
    """Mean error of a scenario over that of another, one per table."""
    sets = grouped(select(rows, reading=reading), "set").values()
    return [relative(part, scenario, baseline) for part in sets]


# Report


def _summary(rows: list[Row]) -> list[Row]:
    summary = []
    for reading in READINGS:
        for (name,), chosen in grouped(select(rows, reading=reading), "set").items():
            part = {"reading": reading, "set": name, "repetitions": len(chosen)}
            means = {scenario: float(column(chosen, scenario).mean()) for scenario in SCENARIOS}
            summary.append({**part, "errors": means, **compared(chosen, SCENARIO_LABELS)})
    for (n,), chosen in grouped(select(rows, reading="HS"), "n").items():
        summary.append({"reading": "HS", "set": OPERATOR, "n": n, "samples": len(chosen), **compared(chosen, SHRUNK)})
    return summary


def _picture(summary: list[Row]) -> Picture:
    """The paper's layout: bars by data set, one for each of its five scenarios."""
    names = [row["set"] for row in select(summary, reading="E2")]
    scenarios = {"KME": "KME", **{name: SCENARIO_LABELS[name] for name in (*PAPERS, "S_COSE", "F_theorem4_COSE")}}

    def draw(ax: Any, reading: str) -> None:
        chosen = select(summary, reading=reading)
        for place, (scenario, label) in enumerate(scenarios.items()):
            heights = [row["errors"][scenario] for row in chosen]
            hatch = {"fill": False, "hatch": "////"} if scenario.endswith("COSE") else {}
            colour = COLOURS[scenario.removesuffix("_COSE")]
            style = {"color": colour, "edgecolor": colour, "lw": 0.8, "label": label, **hatch}
            ax.bar(np.arange(len(names)) + 0.16 * (place - 2), heights, 0.14, **style)
        ax.set_title(f"{reading}: {READINGS[reading]}")
        ax.set_xticks(range(len(names)), names, rotation=30)

    text = draw_panels(draw, ERRORS, "error", rows=2, width=11, height=6.6, sharex=True, legend_columns=5)
    caption = (
        "Figure 3 in the paper's layout: reconstruction error of kernel PCA on test rows by data set. KME is the "
        "standard; S-KMSE and F-KMSE are used for centring; S-COSE and F-COSE for the covariance operator. The upper "
        "row is the paper's error, the lower one that of the centred feature. The paper prints no numbers."
    )
    return Picture(text, caption, _finding(summary))


def _finding(summary: list[Row]) -> str:
    parts = []
    for reading in ERRORS:
        chosen = select(summary, reading=reading)
        changes = [f"{SCENARIO_LABELS[name]} {_mean_change(chosen, name):+z.2f} %" for name in SCENARIO_LABELS]
        parts.append(f"{reading}: {', '.join(changes)}")
    return f"Mean change of the error against standard kernel PCA over the tables. {'; '.join(parts)}."


def _mean_change(summary: list[Row], name: str) -> float:
    return 100.0 * float(np.mean([row[name]["ratio"] for row in summary]) - 1.0)


def _table(summary: list[Row], reading: str) -> ReportTable:
    values = [
        [row["set"], row["errors"]["KME"], *(_percent(row[scenario]) for scenario in SCENARIO_LABELS)]
        for row in select(summary, reading=reading)
    ]
    caption = f"{reading}, {READINGS[reading]}: error of standard kernel PCA, and change against it"
    return ReportTable(caption, ["set", "standard", *SCENARIO_LABELS.values()], values)


def _percent(comparison: Row) -> str:
    error = "" if comparison["error"] is None else f" ± {100 * comparison['error']:.2f}"
    return f"{100 * (comparison['ratio'] - 1):+z.2f}{error} %"


def _operator_table(summary: list[Row]) -> ReportTable:
    rows = [[row["n"], *(shown(row[name]) for name in SHRUNK)] for row in select(summary, reading="HS")]
    caption = (
        "What COSE estimates: squared Hilbert–Schmidt error of the covariance operator relative to the plain "
        f"estimate ± standard error, and the share of samples improved (RBF, d = {COLUMNS}; the population is known)"
    )
    return ReportTable(caption, ["n", *OPERATOR_LABELS.values()], rows)


def _section(rows: list[Row]) -> Section:
    summary = _summary(rows)
    same = max(abs(row["S_COSE"]["ratio"] - 1) for row in summary if row["reading"] in ERRORS)
    better = [
        decided(row[name] for row in select(summary, reading="diagnostic"))[0] for name in ("S_COSE", "F_theorem4_COSE")
    ]
    tables = len(select(summary, reading="E1"))
    note = (
        "S-COSE has the same directions as standard kernel PCA, so that it cannot change a projection: its errors "
        f"differ from the standard's by at most {same:.1e} of them. If the projection directions are not normalised "
        "(they are longer than 1 after shrinking the eigenvalues), S- and F-COSE come out better on "
        f"{better[0]} and {better[1]} of {tables} tables, as in the paper; the quantity is then not a reconstruction "
        "error."
    )
    folded = [_table(summary, reading) for reading in READINGS]
    return Section(summary, [_picture(summary), _operator_table(summary)], folded, [note])


EXPERIMENT = Experiment(
    name=NAME,
    title="Figure 3: kernel PCA",
    protocol=(
        f"Each set is standardised as a whole, constant columns left out, and {TEST_SHARE:.0%} of the rows are held "
        f"out, ten times. Gaussian kernel, σ² the median "
        f"squared distance of the training rows; {COMPONENTS} components. Scenarios: standard; centring by S-KMSE and "
        "by F-KMSE; S-COSE and F-COSE, centred plainly. F by Theorem 4 (the paper's) and by true leave-one-out.",
        "Two readings of the error: E2 of the feature itself, as the paper writes it, and E1 of the centred feature.",
        f"The operator: {POINTS} draws from a random mixture in {COLUMNS} dimensions are taken as the whole "
        f"population, so that its covariance operator is known; samples of {SIZES[0]} and {SIZES[1]} draws from these.",
    ),
    cells=_cells,
    run=_run,
    seconds=lambda setting: 0.1 if setting["set"] == OPERATOR else _SECONDS[setting["set"]],
    section=_section,
    data_sets=uci_tables,
)


# Claims

_WHERE = "Experiments, kernel PCA (figure 3)"
_BY_ERROR = "Errors relative to each other, one comparison per table and estimator."


def _part(rows: list[Row], label: str, pairs: Iterable[tuple[str, str]], reading: str, judge_it: bool = True) -> Part:
    """Comparisons of (scenario, baseline) on all tables by one error."""
    errors = [ratio for name, other in pairs for ratio in relative_errors(rows, name, reading, other)]
    return paired_part(f"{label}, {reading}", errors, judged=judge_it)


@claim("pca-cose-outperforms", "Clearly, the S-COSE and F-COSE consistently outperforms all other estimators.", _WHERE)
def cose_outperforms(figure3: list[Row]) -> Judgement:
    """COSE against standard kernel PCA and against centring by S and F, by both errors."""
    others = ("KME", *PAPERS)
    parts = [
        _part(figure3, f"{kind}-COSE", [(f"{mean}_COSE", other) for other in others], reading)
        for kind, mean in (("S", "S"), ("F", "F_theorem4"))
        for reading in ERRORS
    ]
    pairs = [(f"{mean}_COSE", "KME") for mean in PAPERS]
    parts.append(_part(figure3, "directions not normalised", pairs, "diagnostic", judge_it=False))
    note = (
        "S-COSE has the same directions as standard kernel PCA, so that it cannot change a projection. If the "
        "directions are not normalised, S- and F-COSE come out better on every table, as in the paper; the quantity "
        "is then not a reconstruction error."
    )
    support, against, total = (sum(counts) for counts in zip(*(part.count() for part in parts[:4]), strict=True))
    number = f"COSE better in {support} and worse in {against} of {total} comparisons"
    return judged(parts, _BY_ERROR, number, note)


@claim(
    "pca-centring-improves-little",
    "Although we observe an improvement of S-KMSE and F-KMSE over KME, it is very small compared to that of S-COSE "
    "and F-COSE.",
    _WHERE,
)
def centring_improves_little(figure3: list[Row]) -> Judgement:
    """Three parts: centring improves by the paper's error, by little, and by less than COSE."""
    improves = _part(figure3, "centring improves", [(mean, "KME") for mean in PAPERS], "E2")
    errors = [ratio for mean in PAPERS for ratio in relative_errors(figure3, mean, "E2")]
    little = exact("by less than 10 %", [ratio.value > 0.9 for ratio in errors], words="plain")
    less = _part(figure3, "less than COSE", [(f"{mean}_COSE", mean) for mean in PAPERS], "E2")
    centred = _part(figure3, "centring improves", [(mean, "KME") for mean in PAPERS], "E1", judge_it=False)
    tables = len(errors) // len(PAPERS)
    changes = [
        100.0 * float(np.mean([ratio.value for ratio in part]) - 1.0) for part in (errors[:tables], errors[tables:])
    ]
    number = (
        f"centring better in {improves.count().support} of {improves.count().total} by E2 (S-KMSE {changes[0]:+.2f} %, "
        f"F-KMSE {changes[1]:+.2f} %)"
    )
    return judged([improves, little, less, centred], _BY_ERROR, number)


@claim(
    "cose-improves-operator",
    "Hence, we can also construct a shrinkage estimator of covariance operator in RKHS. … As a result, we can apply "
    "the same analysis throughout.",
    "Covariance operators, and the appendix on them",
)
def cose_improves_operator(figure3: list[Row]) -> Judgement:
    """S- and F-COSE are one part each: the Hilbert–Schmidt error of the operator against the plain estimate."""
    sizes = grouped(select(figure3, reading="HS"), "n").values()
    parts = ratio_parts(sizes, [(label, name, "KME", name in PAPERS) for name, label in OPERATOR_LABELS.items()])
    ratios = ", ".join(f"{relative(part, 'S').value:.2f} at n = {part[0]['n']}" for part in sizes)
    what = "Squared Hilbert–Schmidt error relative to the plain operator's, on data whose operator is known."
    return judged(parts, what, f"S-COSE has {ratios} of the plain error")


def improved_errors(rows: list[Row]) -> Part:
    """Errors E2 against those of standard kernel PCA, over all scenarios of the paper and all tables."""
    pairs = [(name, "KME") for mean in PAPERS for name in (mean, f"{mean}_COSE")]
    return _part(rows, "kernel PCA", pairs, "E2")


def _centring_sentence(summary: list[Row]) -> str:
    chosen, tables = select(summary, reading="E2"), len(select(summary, reading="E2"))
    better = [decided(row[name] for row in chosen)[0] for name in PAPERS]
    changes = [f"{_mean_change(chosen, name):+.2f} %" for name in PAPERS]
    operators = [row["S"]["ratio"] for row in select(summary, reading="HS")]
    return (
        f"In figure 3 centring by S- and F-KMSE lowers the paper's reconstruction error on {better[0]} and {better[1]} "
        f"of {tables} tables ({changes[0]} and {changes[1]} on average), and S-COSE, judged by what it estimates, has "
        f"{min(operators):.2f} to {max(operators):.2f} of the plain operator's squared error."
    )


def _cose_sentence(summary: list[Row]) -> str:
    chosen = select(summary, reading="E2")
    better, worse = decided(row["F_theorem4_COSE"] for row in chosen)
    return (
        f"The gains of COSE in figure 3 do not replicate: S-COSE has the same directions as standard kernel PCA and "
        f"cannot change a projection, and F-COSE is better on {better} and worse on {worse} of {len(chosen)} tables. "
        "They appear where the projection directions are not normalised."
    )


HEADLINES = (Headline(NAME, "replicates", _centring_sentence), Headline(NAME, "does not", _cose_sentence))

"""Theorems 1 to 4, James and Stein's estimator, and the remarks of the paper, each against a direct computation."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np

import muhat as mh
from paper.claim import ESTIMATOR_SECTION, Judgement, claim, exact, judged, paired_part
from paper.comparison import ROUNDING, column, grouped, relative, select
from paper.experiment import Array, Experiment, Headline, Row, Section, Setting, generator
from paper.page import ReportTable
from paper.protocol import KERNELS, exact_loss, population_and_sample, selected_weights

NAME = "theorems"
N, D = 20, 30
POINTS = 21  # of theorem 1: the population, and one for the target
FLAT = (12, 3)  # more rows than columns: the Gram matrix of the linear kernel is singular
SINGULAR = "LIN, singular"

STEPS = (0.5, 1.0, 1.5, 2.0)
"""Amounts of shrinkage, in units of α*; at 2 the risk is that of KME again."""

TARGETS = {"zero": 0.0, "a point": 1.0, "far away": -3.0}
"""f* as a multiple of φ(x) at a draw x."""

DIMENSIONS = (3, 10, 30)
"""Of James and Stein's estimator."""

RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""λ, in units of the largest eigenvalue."""

REFITS = ("λ", "λ/(n−1)", "nλ/(n−1)")
"""Ridges with which a leave-one-out refit might be meant."""

LENGTHS, DRAWS = (0.0, 1.0, 2.0), 40
"""Of θ, and draws for each, where James and Stein's estimator is compared with its positive part."""

SEARCHED = (50, 200, 800)
"""Sample sizes at which the search for λ is compared with the decomposition of K."""

MEAN_ZERO = "LIN, mean zero"
_ROUNDED = 1e-4


def _run(setting: Setting, data: str | None) -> list[Row]:
    P, X = population_and_sample(N, D, generator(NAME, setting))
    others = generator(NAME, setting, 1)
    measured = [
        *stein_rows(others),
        *positive_part_rows(generator(NAME, setting, 2)),
        *theorem1_rows(P.sample(POINTS, random_state=others)),
        *theorem2_rows(X),
        *theorem3_rows(X, others.standard_normal((N, D))),
        *theorem4_rows(P, X, others.standard_normal(FLAT)),
        weight_row(X),
        *search_rows(generator(NAME, setting, 3), setting["repetition"]),
    ]
    return [{**row, "repetition": setting["repetition"]} for row in measured]


def stein_rows(rng: np.random.Generator) -> list[Row]:
    """James–Stein and the plain average of one draw from N(θ, I): losses, and the exact risk."""
    rows = []
    for d in DIMENSIONS:
        direction = rng.standard_normal(d)
        theta = 10.0 ** rng.uniform(-1, 2) * direction / np.linalg.norm(direction)
        X = theta + rng.standard_normal((1, d))
        losses = [float(((estimate - theta) ** 2).sum()) for estimate in (X[0], mh.james_stein(X, 1.0))]
        row = {"theorem": "stein", "d": d, "length": float(np.linalg.norm(theta)), "KME": losses[0], "JS": losses[1]}
        rows.append({**row, "risk": mh.means.james_stein_risk(theta, 1.0, 1) / d})
    return rows


def positive_part_rows(rng: np.random.Generator) -> list[Row]:
    """Mean losses of James and Stein's estimate and of its positive part at θ near the origin."""
    rows = []
    for d in DIMENSIONS:
        for length in LENGTHS:
            theta = np.zeros(d)
            theta[0] = length
            losses = np.zeros(2)
            for x in theta + rng.standard_normal((DRAWS, 1, d)):
                estimates = (mh.james_stein(x, 1.0, positive_part=part) for part in (False, True))
                losses += [((estimate - theta) ** 2).sum() / DRAWS for estimate in estimates]
            row = {"theorem": "positive part", "d": d, "length": length}
            rows.append({**row, "JS": float(losses[0]), "positive": float(losses[1])})
    return rows


def theorem1_rows(points: Array) -> list[Row]:
    """Risks of α f* + (1−α) μ̂ at multiples of α*, exact: P is uniform on all points but the last, and n = 2.

    All samples that can occur are listed, so nothing of the theorem's formula enters; ``error`` is the distance
    from it.
    """
    P = mh.Atoms(points[:-1])
    rows = []
    for name, kernel in KERNELS.items():
        resolved = kernel.resolve(points[:-1])
        K = resolved(points, points)
        for target, factor in TARGETS.items():
            alpha, lowest = mh.oracle_shrinkage(resolved, P, 2, factor * mh.embed(resolved, points[-1:]))
            risks = {step: _enumerated_risk(K, step * alpha, factor) for step in (0.0, *STEPS)}
            # At α = s·α* the theorem's risk is a parabola in s: KME's at s = 0 and s = 2, 1 − α* of it at s = 1.
            plain = lowest / (1.0 - alpha)
            formula = {step: plain * (1.0 - alpha * step * (2.0 - step)) for step in risks}
            row: Row = {"theorem": "1", "kernel": name, "target": target, "alpha": alpha, "KME": risks[0.0]}
            row |= {f"{step:g}": risks[step] for step in STEPS}
            rows.append({**row, "error": max(abs(risks[step] - formula[step]) for step in risks) / plain})
    return rows


def _enumerated_risk(K: Array, alpha: float, factor: float) -> float:
    """Mean of ‖α·factor·φ(last) + (1−α)(φᵢ + φⱼ)/2 − μ‖² over all pairs (i, j) of the other points."""
    m = len(K) - 1
    # A row of weights holds the coordinates of estimate − μ on all points, so that the loss is wᵀKw.
    pairs = (np.eye(m)[:, None] + np.eye(m)[None, :]).reshape(m * m, m) / 2.0
    weights = np.column_stack([(1.0 - alpha) * pairs - 1.0 / m, np.full(m * m, alpha * factor)])
    return float(((weights @ K) * weights).sum(axis=1).mean())


def theorem2_rows(X: Array) -> list[Row]:
    """F-KMSE against Σ γ/(γ+λ) ⟨μ̂, v⟩ v, the sum with eigenpairs of C in coordinates of the features."""
    rows = []
    for name, kernel in KERNELS.items():
        K = kernel.resolve(X)(X, X)
        n, features = len(K), np.linalg.cholesky(K)
        lam, mean = np.trace(K) / n, features.mean(axis=0)
        estimate = features.T @ np.linalg.solve(K + lam * np.eye(n), K.mean(axis=1))
        # The rows of the Cholesky factor are coordinates of the features; with n of them Σφ⊗φ has the eigenvalues of K.
        row: Row = {"theorem": "2", "kernel": name}
        for reading, C in (("sum", features.T @ features), ("average", features.T @ features / n)):
            eigenvalues, v = np.linalg.eigh(C)
            factors = eigenvalues / (eigenvalues + lam)
            row[reading] = float(np.linalg.norm(v @ (factors * (v.T @ mean)) - estimate) / np.linalg.norm(mean))
            if reading == "sum":
                row |= {"factor_lowest": float(factors[0]), "factor_highest": float(factors[-1])}
        rows.append(row)
    return rows


def theorem3_rows(X: Array, centred: Array) -> list[Row]:
    """The printed α* and λ* against the least of the score by refits; on data about the origin as well."""
    grams = {name: kernel.resolve(X)(X, X) for name, kernel in KERNELS.items()}
    grams[MEAN_ZERO] = mh.Linear()(centred, centred)
    return [{"theorem": "3", "kernel": name, **_simple_minimum(K)} for name, K in grams.items()]


def alpha_star(n: int, mean_diag: float, mean_gram: float) -> float:
    """α* = λ*/(1 + λ*) of Theorem 3 as printed, with ϱ the mean of the diagonal and ρ that of K."""
    return float((mean_diag - mean_gram) / ((n - 2) * mean_gram + mean_diag / n))


def _simple_minimum(K: Array) -> Row:
    n, mean_diag, mean_gram = len(K), np.trace(K) / len(K), K.mean()
    low, middle, high = (_simple_refit_score(K, alpha) for alpha in (0.0, 0.5, 1.0))
    # The score is quadratic in α: the vertex of the parabola through its values at 0, ½ and 1.
    refits = 0.5 - (high - low) / (4.0 * (high - 2.0 * middle + low))
    printed = alpha_star(n, mean_diag, mean_gram)
    lam = (mean_diag - mean_gram) / ((n - 1) * mean_gram + mean_diag / n - mean_diag)
    return {"refits": refits, "printed": printed, "lam": lam, "error": abs(printed - refits) / max(1.0, abs(refits))}


def _simple_refit_score(K: Array, alpha: float) -> float:
    n = len(K)
    refits = (1.0 - alpha) * (1.0 - np.eye(n)) / (n - 1)
    return _mean_residual(K, refits)


def _mean_residual(K: Array, refits: Array) -> float:
    """Mean of ‖φ(xᵢ) − Σⱼ Bⱼᵢ φ(xⱼ)‖², column i of B being the weights of a fit."""
    residuals = refits - np.eye(len(K))
    return float(np.einsum("ji,jk,ki->i", residuals, K, residuals, optimize=True).mean())


def theorem4_rows(P: mh.GaussianMixture, X: Array, flat: Array) -> list[Row]:
    """The score of Theorem 4 as printed, in our form, with φ(xᵢ) kept in the span, and by refits."""
    rows = []
    for name, kernel in KERNELS.items():
        resolved = kernel.resolve(X)
        rows.append({"theorem": "4", "kernel": name, **_score_errors(resolved(X, X)), **_chosen(resolved, P, X)})
    K = mh.Linear()(flat, flat)
    lam = 0.1 * np.linalg.eigvalsh(K)[-1]
    scores = {"printed": printed_score(K, lam), "ours": float(mh.shrinkage.theorem4_scores(K, lam)[0])}
    return [*rows, {"theorem": "4", "kernel": SINGULAR, **scores, "span": kept_span_score(K, lam)}]


def _score_errors(K: Array) -> Row:
    """Largest relative distance of each score from that with φ(xᵢ) kept in the span."""
    n, lams = len(K), np.array(RIDGES) * np.linalg.eigvalsh(K)[-1]
    span = np.array([kept_span_score(K, lam) for lam in lams])
    scores = {
        "ours": mh.shrinkage.theorem4_scores(K, lams),
        "printed": np.array([printed_score(K, lam) for lam in lams]),
    }
    for refit, factor in zip(REFITS, (1.0, 1.0 / (n - 1), n / (n - 1)), strict=True):
        scores[refit] = np.array([refit_score(K, factor * lam) for lam in lams])
    return {name: float(np.max(np.abs(score / span - 1.0))) for name, score in scores.items()}


def _chosen(kernel: mh.kernels.Kernel, P: mh.GaussianMixture, X: Array) -> Row:
    """How much of ‖μ̂‖ the two scores leave, and the loss."""
    loss, plain = exact_loss(kernel, P, X), mh.embed(kernel, X).norm()
    row: Row = {}
    selections: dict[str, Literal["theorem4", "loo"]] = {"theorem4": "theorem4", "loo": "loo"}
    for name, lam in selections.items():
        mean = mh.SpectralKernelMean(kernel, lam=lam).fit(X)
        row |= {f"kept_{name}": mean.mean_.norm() / plain, f"F_{name}": loss(mean.weights_)}
    return row


def printed_score(K: Array, lam: float) -> float | None:
    """Theorem 4 letter by letter, with its inverse; None where that cannot be formed."""
    n = len(K)
    A = np.linalg.inv(K + lam * np.eye(n))
    try:
        inverse = np.linalg.inv(K - K @ A @ K / n)
    except np.linalg.LinAlgError:
        return None
    C = inverse @ K @ inverse
    differences = (K @ A @ K.mean(axis=1))[:, None] - K
    return float(np.einsum("ji,jk,ki->i", differences, C, differences, optimize=True).mean())


def kept_span_score(K: Array, lam: float) -> float:
    """The loss of xᵢ is dropped, and φ(xᵢ) stays in the span: one linear system per row."""
    n = len(K)
    # The minimum over β of Σⱼ≠ᵢ ‖φⱼ − Σ βₖφₖ‖²/n + λβᵀβ solves ((n−1)/n K + λI)β = K(1 − eᵢ)/n; column i is that of xᵢ.
    others = (1.0 - np.eye(n)) / n
    refits = np.linalg.solve((n - 1) / n * K + lam * np.eye(n), K @ others)
    return _mean_residual(K, refits.astype(np.float64))


def refit_score(K: Array, lam: float) -> float:
    """True leave-one-out: F-KMSE of the other rows, refitted for every row."""
    n, refits = len(K), np.zeros_like(K)
    for i in range(n):
        others = np.arange(n) != i
        rest = K[np.ix_(others, others)]
        refits[others, i] = np.linalg.solve(rest + lam * np.eye(n - 1), rest.mean(axis=1))
    return _mean_residual(K, refits)


def weight_row(X: Array) -> Row:
    """Extreme weights of F-KMSE over the kernels in units of 1/n, and what α* of S-KMSE depends on."""
    row: Row = {"theorem": "weights"}
    weights = [selected_weights(kernel.resolve(X), X) for kernel in KERNELS.values()]
    for name in ("F_theorem4", "F_loo"):
        relative_weights = len(X) * np.array([each[name] for each in weights])
        row |= {f"{name}_largest": float(relative_weights.max()), f"{name}_smallest": float(relative_weights.min())}
    K = KERNELS["RBF"].resolve(X)(X, X)
    n, row_means = len(K), K.mean(axis=1)
    error = abs(alpha_star(n, np.diag(K).mean(), row_means.mean()) - alpha_star(n, np.trace(K) / n, K.mean()))
    return {**row, "entries": entries_that_matter(K), "error_from_sums": error}


def search_rows(rng: np.random.Generator, repetition: int) -> list[Row]:
    """Operations of the search for λ by Theorem 4's score, and of the decomposition of K, in the first repetition.

    A score takes ten operations per eigenvalue, and the decomposition at least the 4n³/3 of the reduction to
    tridiagonal form, so that the share is an upper bound.
    """
    rows = []
    for n in SEARCHED if repetition == 0 else ():
        _, X = population_and_sample(n, D, rng)
        path = mh.SpectralKernelMean(KERNELS["RBF"], lam="theorem4").fit(X).loo_path_
        scored = 0 if path is None else len(path.values)
        rows.append({"theorem": "search", "n": n, "scored": scored, "share": 10.0 * n * scored / (4.0 * n**3 / 3.0)})
    return rows


def entries_that_matter(K: Array) -> int:
    """How many of the n(n+1)/2 entries of K change α* when they change."""
    n = len(K)
    before = alpha_star(n, np.trace(K) / n, K.mean())
    count = 0
    for i, j in zip(*np.triu_indices(n), strict=True):
        changed = K.copy()
        changed[i, j] = changed[j, i] = 1.01 * K[i, j]
        count += alpha_star(n, np.trace(changed) / n, changed.mean()) != before
    return count


def regular(rows: list[Row], theorem: str) -> list[Row]:
    """Rows of a theorem on data whose Gram matrix is not singular."""
    return [row for row in select(rows, theorem=theorem) if row["kernel"] != SINGULAR]


def _largest(rows: list[Row], name: str) -> float:
    return float(column(rows, name).max())


def _lines(rows: list[Row]) -> list[Row]:
    """What was checked, the paper's side, and the largest error over all repetitions and kernels."""
    stein, first = select(rows, theorem="stein"), select(rows, theorem="1")
    second, third, fourth = (regular(rows, theorem) for theorem in "234")
    gains = column(first, "1") / column(first, "KME")
    lines = [
        ("James–Stein: exact risk relative to the average's, largest", _largest(stein, "risk")),
        ("Theorem 1: risk at α* relative to KME's, largest", float(gains.max())),
        ("Theorem 1: exact risks against the formula, relative error", _largest(first, "error")),
        ("Theorem 2: eigenvalues of Σφ⊗φ, that is of K, relative error", _largest(second, "sum")),
        ("Theorem 2: eigenvalues of the average of φ⊗φ, relative distance", _largest(second, "average")),
        ("Theorem 3: α* against refits, relative error", _largest(third, "error")),
        ("Theorem 4: our form against φ(xᵢ) kept in the span, relative error", _largest(fourth, "ours")),
        ("Theorem 4: as printed, where K has full rank, relative error", _largest(fourth, "printed")),
    ]
    lines += [
        (
            f"Theorem 4: distance from leave-one-out refits with ridge {refit}, median",
            float(np.median(column(fourth, refit))),
        )
        for refit in REFITS
    ]
    return [{"check": check, "value": value} for check, value in lines]


def _shown(line: Row) -> str:
    """Enough digits to tell a ratio from one, and no more of a rounding error than its size."""
    return f"{line['value']:.6f}" if line["value"] > _ROUNDED else f"{line['value']:.1e}"


def _section(rows: list[Row]) -> Section:
    lines = _lines(rows)
    checks = ReportTable(
        "The theorems in numbers", ["check", "value"], [[line["check"], _shown(line)] for line in lines]
    )
    inexact, table = inexact_table(rows)
    return Section([*lines, *inexact], [table], [checks])


def inexact_table(rows: list[Row]) -> tuple[list[Row], ReportTable]:
    """Statements of the paper that are inexact, what holds, and the numbers of the run."""
    fourth, weights = select(rows, theorem="4"), select(rows, theorem="weights")
    full = [row for row in fourth if "span" not in row]
    singular = [row for row in fourth if "span" in row]
    wrong = [row for row in singular if row["printed"] is None or abs(row["printed"] / row["span"] - 1.0) > 0.01]
    centred = column(select(rows, theorem="3", kernel=MEAN_ZERO), "lam")
    less = column(full, "kept_theorem4") < column(full, "kept_loo")
    ratios = relative(select(full, kernel="RBF"), "F_theorem4", "F_loo")
    nearest = min(float(np.median(column(full, refit))) for refit in REFITS)
    largest = max(_largest(weights, f"{name}_largest") for name in ("F_theorem4", "F_loo"))
    smallest = min(float(column(weights, f"{name}_smallest").min()) for name in ("F_theorem4", "F_loo"))
    lines = [
        (
            "Theorem 4 is called leave-one-out",
            "the score drops the loss of a point but leaves its feature in the span, so that its minimiser shrinks too "
            "much",
            f"it keeps less of ‖μ̂‖ than leave-one-out in {less.mean():.0%}; with RBF its loss is {ratios.value:.3f} of "
            "leave-one-out's",
        ),
        (
            "C_λ in Theorem 4 inverts K",
            "the printed formula fails where K is singular; in eigenvalues it needs no inverse",
            f"off by more than 1 % in {len(wrong)} of {len(singular)} singular cases",
        ),
        (
            "the appendix's objective has no 1/(n−1)",
            "Theorem 4 equals no refit, whatever ridge is meant",
            f"nearest reading: {nearest:.1%} away (median of the largest distance)",
        ),
        (
            "λ* of S-KMSE",
            "negative or infinite where the estimate of ‖μ‖² is not positive; α is clipped to [0, 1]",
            f"λ* < 0 in {(centred < 0).mean():.0%} of samples of mean zero",
        ),
        ("“all elements of β are smaller than 1/n”", "not for F-KMSE", f"from {smallest:.2f}/n to {largest:.2f}/n"),
        (
            "S-KMSE's λ costs O(n)",
            "once K1ₙ is known, which F-KMSE needs anyway; from K alone it is O(n²)",
            f"{column(weights, 'entries').min():.0f} of the n(n+1)/2 entries change α*",
        ),
        ("S-COSE improves kernel PCA", "equal weights only scale the eigenvalues", "see figure 3"),
        ("kernel between distributions exp(+‖·‖²/2σ²)", "the minus sign is missing", "–"),
        ("bandwidth “square-root of the median distance”", "the formula beside it is meant: σ² = median ‖x − y‖²", "–"),
        ("figure 1: λ = c·γ₀ for S-KMSE", "its λ has no unit, γ₀ has that of the kernel", "see figure 1"),
        ("Ω = βᵀβ as a function of ‖g‖", "one element can have several weight vectors", "–"),
        ("½ factors in the appendix, missing tildes in COSE", "no effect on the estimators", "–"),
    ]
    summary = [{"place": place, "shown": number} for place, _, number in lines]
    table = [[place, truth, number] for place, truth, number in lines]
    return summary, ReportTable(
        "Where the paper is inexact; none of this touches its idea", ["place", "what holds", "this run"], table
    )


EXPERIMENT = Experiment(
    name=NAME,
    title="The theorems, and where the paper is inexact",
    protocol=(
        f"Each theorem against a computation that follows its words. Theorem 1: all {POINTS - 1}² samples of size 2 "
        f"from {POINTS - 1} points are listed, so that the risk is exact. Theorems 2 to 4: n = {N}, d = {D}, all "
        "kernels, and leave-one-out by refits.",
        f"A singular Gram matrix is that of the linear kernel on {FLAT[0]} points in {FLAT[1]} dimensions.",
    ),
    cells=lambda plan: plan.repeated(full=300, quick=30),
    run=_run,
    seconds=lambda setting: 0.08,
    section=_section,
)


@claim(
    "james-stein-dominates",
    "There exists an estimator that always achieves smaller total mean squared error regardless of the true θ, when "
    "the dimension is at least 3 (that of James and Stein).",
    "Introduction, and appendix on James-Stein's estimator",
)
def james_stein_dominates(theorems: list[Row]) -> Judgement:
    """The exact risk of every θ drawn is below that of the average."""
    stein = select(theorems, theorem="stein")
    risks, lengths = column(stein, "risk"), column(stein, "length")
    part = exact("exact risk below the average's", [risk < 1.0 for risk in risks])
    what = f"θ with ‖θ‖/σ from {lengths.min():.2g} to {lengths.max():.2g} in 3, 10 and 30 dimensions."
    return judged([part], what, f"exact risk {risks.min():.3f} to {risks.max():.6f} of the average's")


@claim("james-stein-inadmissible", "Interestingly, the James-Stein's estimator is itself inadmissible.", "Introduction")
def james_stein_inadmissible(theorems: list[Row]) -> Judgement:
    """Its positive part has the smaller loss near the origin, where they differ."""
    settings = list(grouped(select(theorems, theorem="positive part"), "d", "length").values())
    ratios = [relative(part, "positive", "JS") for part in settings]
    part = paired_part("positive part against James–Stein", ratios)
    what = "Mean loss of the positive part relative to James–Stein's, by dimension and ‖θ‖ = 0, 1, 2."
    number = f"positive part has {min(ratios).value:.2f} to {max(ratios).value:.2f} of the loss"
    return judged([part], what, number)


@claim(
    "theorem-1-better-for-any-target",
    "Given an arbitrary function f*, there exists α* for which the shrinkage estimator is better than the standard "
    "one.",
    "Theorem 1",
)
def theorem1_better_for_any_target(theorems: list[Row]) -> Judgement:
    """The exact risk at α* is below KME's for every kernel and target."""
    first = select(theorems, theorem="1")
    gains = column(first, "1") / column(first, "KME")
    part = exact("exact risk at α* below KME's", [row["1"] < row["KME"] for row in first])
    what = (
        f"f* = 0, at a point and far away, with all kernels; the risks agree with the proof's formula to "
        f"{_largest(first, 'error'):.1e}. α* needs the distribution, as the paper says."
    )
    return judged([part], what, f"exact risk {gains.min():.3f} to {gains.max():.3f} of KME's")


@claim(
    "theorem-2-form-of-f-kmse",
    "For F-KMSE, we can write μ̂_λ = Σ γᵢ/(γᵢ+λ) ⟨μ̂, vᵢ⟩ vᵢ where {γᵢ, vᵢ} are eigenvalue and eigenvector pairs of "
    "the covariance operator.",
    "Theorem 2",
)
def theorem2_form_of_f_kmse(theorems: list[Row]) -> Judgement:
    """Judged with the eigenvalues of Σφ⊗φ, as in the proof."""
    second = select(theorems, theorem="2")
    part = exact("equal to rounding", [row["sum"] < ROUNDING for row in second])
    note = (
        f"The eigenvalues are those of K, as in the proof; with those of the averaged operator, n times smaller, the "
        f"two sides differ by up to {_largest(second, 'average'):.2f} of the mean."
    )
    return judged(
        [part], "Both sides in coordinates of the features.", f"relative error {_largest(second, 'sum'):.1e}", note
    )


@claim(
    "theorem-3-minimises-loocv",
    "The shrinkage parameter λ* = (ϱ−ρ)/((n−1)ρ + ϱ/n − ϱ) of the S-KMSE is the minimizer of LOOCV(λ).",
    "Theorem 3",
)
def theorem3_minimises_loocv(theorems: list[Row]) -> Judgement:
    """α* is the minimiser everywhere; λ* is a shrinkage parameter on the paper's data."""
    third = select(theorems, theorem="3")
    papers = [row for row in third if row["kernel"] != MEAN_ZERO]
    ours = [row["lam"] < 0 for row in third if row["kernel"] == MEAN_ZERO]
    parts = [
        exact("α* is the minimiser", [row["error"] < ROUNDING for row in third]),
        exact("λ* is not negative, on the paper's data", [row["lam"] >= 0 for row in papers]),
    ]
    note = (
        f"λ* is negative, and no shrinkage parameter, in {sum(ours)} of {len(ours)} samples of mean zero that we "
        "added; α* is the minimiser there too, and lies beyond 1."
    )
    return judged(
        parts, "The printed α* and λ* against the score by refits.", f"error of α* {_largest(third, 'error'):.1e}", note
    )


@claim(
    "theorem-4-is-loocv",
    "The LOOCV score of F-KMSE satisfies LOOCV(λ) = (1/n) Σ (βᵀK − Kᵢ)ᵀ C_λ (βᵀK − Kᵢ).",
    "Theorem 4",
)
def theorem4_is_loocv(theorems: list[Row]) -> Judgement:
    """Judged by the reading of the ridge that comes nearest."""
    fourth = regular(theorems, "4")
    nearest = [min(row[refit] for refit in REFITS) for row in fourth]
    part = exact("equal to leave-one-out by some ridge", [distance < ROUNDING for distance in nearest])
    note = (
        f"As printed the score agrees to {_largest(fourth, 'printed'):.1e} with fits that drop the loss of xᵢ and keep "
        "φ(xᵢ) in the span, which is what the proof's lemma does."
    )
    what = f"Refits without xᵢ with the ridges {', '.join(REFITS)}."
    return judged([part], what, f"differs by {min(nearest):.1%} at least, whichever ridge is meant", note)


@claim(
    "weights-below-one-over-n",
    "The weight vector β output by our estimators is in general not normalized. In fact, all elements will be smaller "
    "than 1/n as a result of shrinkage.",
    ESTIMATOR_SECTION,
)
def weights_below_one_over_n(theorems: list[Row]) -> Judgement:
    """S-KMSE has (1−α)/n, so that α > 0 says it; both estimators are one part each."""
    weights = select(theorems, theorem="weights")
    parts = [
        exact("S-KMSE", [row["printed"] > 0 for row in select(theorems, theorem="3")]),
        exact("F-KMSE", [row["F_theorem4_largest"] < 1.0 for row in weights]),
    ]
    number = f"largest weight of F-KMSE {_largest(weights, 'F_theorem4_largest'):.2f}/n"
    return judged(parts, "Samples in which all weights are below 1/n.", number)


@claim(
    "s-kmse-selection-linear-cost",
    "The S-KMSE requires only O(n) operations to select shrinkage parameter.",
    "Cross-validation",
)
def selection_in_linear_time(theorems: list[Row]) -> Judgement:
    """Two readings: once the row sums of K are known, and from K itself, each entry of which has to be read."""
    weights = select(theorems, theorem="weights")
    entries = column(weights, "entries")
    parts = [
        exact("once K1ₙ is known", [row["error_from_sums"] < ROUNDING for row in weights]),
        exact("from K alone", [row["entries"] <= 2 * N for row in weights]),
    ]
    note = "K1ₙ is what F-KMSE needs anyway, so that the step from there is O(n); the row sums themselves are O(n²)."
    what = f"α* from the diagonal and the row sums of K; entries of K that change α* when they change (n = {N})."
    return judged(parts, what, f"{entries.min():.0f} of {N * (N + 1) // 2} entries of K change α*", note)


@claim(
    "cross-validation-costs-little",
    "When performed as a by-product of the algorithm, the computational cost of cross-validation procedure becomes "
    "negligible as the dataset becomes larger.",
    "Cross-validation",
)
def cross_validation_costs_little(theorems: list[Row]) -> Judgement:
    """The search for λ takes an ever smaller share of the decomposition's operations, and at last below 1 %."""
    searches = select(theorems, theorem="search")
    shares = [row["share"] for row in searches]
    parts = [
        exact("the share falls", [later < earlier for earlier, later in pairwise(shares)]),
        exact("below 1 % at the largest n", [shares[-1] < 0.01]),
    ]
    listed = ", ".join(f"{row['share']:.2g} at n = {row['n']}" for row in searches)
    what = (
        "Operations of all scores that the search for λ evaluates (ten per eigenvalue) relative to those of the "
        f"decomposition of K (at least 4n³/3): {listed}."
    )
    return judged(parts, what, f"at most {shares[-1]:.2%} of the decomposition at n = {searches[-1]['n']}")


def _sentence(summary: list[Row]) -> str:
    values = {row["check"]: row["value"] for row in summary if "check" in row}
    error = max(value for check, value in values.items() if check.endswith("relative error"))
    return (
        f"Theorems 1, 2 and 3 hold against direct computations (largest relative error {error:.0e}), and so does "
        "James and Stein's result."
    )


def _inexact_sentence(summary: list[Row]) -> str:
    values = {row["check"]: row["value"] for row in summary if "check" in row}
    nearest = min(value for check, value in values.items() if "refits with ridge" in check)
    return (
        f"Theorem 4 is exact for a procedure that keeps the left-out point in the span, and {nearest:.1%} off "
        "leave-one-out in the median; that is why its minimiser shrinks too much."
    )


HEADLINES = (Headline(NAME, "replicates", _sentence), Headline(NAME, "does not", _inexact_sentence))

"""Theorems 1 to 4, James and Stein's estimator, and the remarks of the paper, each against a direct computation."""

from __future__ import annotations

import numpy as np

from muhat.elements import embed
from muhat.kernels.base import Kernel
from muhat.kernels.dot import Linear
from muhat.kernels.radial import Gaussian
from muhat.linalg.distances import median_distance
from muhat.means.oracle import oracle_shrinkage
from muhat.means.simple import simple_shrinkage
from muhat.means.spectral import SpectralKernelMean
from muhat.means.stein import james_stein, james_stein_risk
from muhat.measures import Atoms, GaussianMixture
from muhat.paper.claim import ESTIMATOR_SECTION, Judgement, claim, count_true, judged_exactly, verdict_of_parts
from muhat.paper.comparison import EXACT, column, relative, select
from muhat.paper.experiment import Experiment, Row, Section, Setting, generator
from muhat.paper.protocol import KERNELS, exact_loss, population_and_sample, selected_weights
from muhat.report.page import Table
from muhat.shrinkage.scores import Lam, theorem4_scores
from muhat.types import Array

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

_BAGS = 5
_ROUNDED = 1e-4


def _run(setting: Setting, data: str | None) -> list[Row]:
    P, X = population_and_sample(N, D, generator(NAME, setting))
    others = generator(NAME, setting, 1)
    measured = [
        *stein_rows(others),
        *theorem1_rows(P.sample(POINTS, random_state=others)),
        *theorem2_rows(X),
        *theorem3_rows(X, others.standard_normal((N, D))),
        *theorem4_rows(P, X, others.standard_normal(FLAT)),
        remark_row(P, X),
    ]
    return [{**row, "repetition": setting["repetition"]} for row in measured]


def stein_rows(rng: np.random.Generator) -> list[Row]:
    """James–Stein and the plain average of one draw from N(θ, I): losses, and the exact risk."""
    rows = []
    for d in DIMENSIONS:
        direction = rng.standard_normal(d)
        theta = 10.0 ** rng.uniform(-1, 2) * direction / np.linalg.norm(direction)
        X = theta + rng.standard_normal((1, d))
        losses = [float(((estimate - theta) ** 2).sum()) for estimate in (X[0], james_stein(X, 1.0))]
        row = {"theorem": "stein", "d": d, "length": float(np.linalg.norm(theta)), "KME": losses[0], "JS": losses[1]}
        rows.append({**row, "risk": james_stein_risk(theta, 1.0, 1) / d})
    return rows


def theorem1_rows(points: Array) -> list[Row]:
    """Risks of α f* + (1−α) μ̂ at multiples of α*, exact: P is uniform on all points but the last, and n = 2.

    All samples that can occur are listed, so nothing of the theorem's formula enters; ``error`` is the distance
    from it.
    """
    P = Atoms(points[:-1])
    rows = []
    for name, kernel in KERNELS.items():
        resolved = kernel.resolve(points[:-1])
        K = resolved(points, points)
        for target, factor in TARGETS.items():
            alpha, lowest = oracle_shrinkage(resolved, P, 2, factor * embed(resolved, points[-1:]))
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
    grams["LIN, mean zero"] = Linear()(centred, centred)
    return [{"theorem": "3", "kernel": name, **_simple_minimum(K)} for name, K in grams.items()]


def _simple_minimum(K: Array) -> Row:
    n, mean_diag, mean_gram = len(K), np.trace(K) / len(K), K.mean()
    low, middle, high = (_simple_refit_score(K, alpha) for alpha in (0.0, 0.5, 1.0))
    # The score is quadratic in α: the vertex of the parabola through its values at 0, ½ and 1.
    refits = 0.5 - (high - low) / (4.0 * (high - 2.0 * middle + low))
    # As printed, with ϱ the mean of the diagonal and ρ that of K; α* = λ*/(1 + λ*).
    printed = (mean_diag - mean_gram) / ((n - 2) * mean_gram + mean_diag / n)
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


def theorem4_rows(P: GaussianMixture, X: Array, flat: Array) -> list[Row]:
    """The score of Theorem 4 as printed, in our form, with φ(xᵢ) kept in the span, and by refits."""
    rows = []
    for name, kernel in KERNELS.items():
        resolved = kernel.resolve(X)
        rows.append({"theorem": "4", "kernel": name, **_score_errors(resolved(X, X)), **_chosen(resolved, P, X)})
    K = Linear()(flat, flat)
    lam = 0.1 * np.linalg.eigvalsh(K)[-1]
    scores = {"printed": printed_score(K, lam), "ours": float(theorem4_scores(K, lam)[0])}
    return [*rows, {"theorem": "4", "kernel": SINGULAR, **scores, "span": kept_span_score(K, lam)}]


def _score_errors(K: Array) -> Row:
    """Largest relative distance of each score from that with φ(xᵢ) kept in the span."""
    n, lams = len(K), np.array(RIDGES) * np.linalg.eigvalsh(K)[-1]
    span = np.array([kept_span_score(K, lam) for lam in lams])
    scores = {"ours": theorem4_scores(K, lams), "printed": np.array([printed_score(K, lam) for lam in lams])}
    for refit, factor in zip(REFITS, (1.0, 1.0 / (n - 1), n / (n - 1)), strict=True):
        scores[refit] = np.array([refit_score(K, factor * lam) for lam in lams])
    return {name: float(np.max(np.abs(score / span - 1.0))) for name, score in scores.items()}


def _chosen(kernel: Kernel, P: GaussianMixture, X: Array) -> Row:
    """How much of ‖μ̂‖ the two scores leave, and the loss."""
    loss, plain = exact_loss(kernel, P, X), embed(kernel, X).norm()
    row: Row = {}
    selections: dict[str, Lam] = {"theorem4": "theorem4", "deletion": "loo"}
    for name, lam in selections.items():
        mean = SpectralKernelMean(kernel, lam=lam).fit(X)
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


def remark_row(P: GaussianMixture, X: Array) -> Row:
    """All numbers of one sample."""
    K = Gaussian().resolve(X)(X, X)
    parts = (_weight_sizes(X), _bandwidth_readings(P, X), _level2_signs(X), _unit_of_lam(X), _copies(K))
    row: Row = {"theorem": "remarks", "entries": entries_that_matter(K), "cose": shrunken_pca_difference(K)}
    for part in parts:
        row |= part
    return row


def _weight_sizes(X: Array) -> Row:
    """Extreme weights of F-KMSE over the kernels, in units of 1/n."""
    weights = [selected_weights(kernel.resolve(X), X) for kernel in KERNELS.values()]
    row: Row = {}
    for name in ("F_theorem4", "F_deletion"):
        relative = len(X) * np.array([each[name] for each in weights])
        row |= {f"{name}_largest": float(relative.max()), f"{name}_smallest": float(relative.min())}
    return row


def _bandwidth_readings(P: GaussianMixture, X: Array) -> Row:
    """σ² as the median squared distance, and as the median distance, which the words say."""
    median = median_distance(X, "euclidean")
    row: Row = {}
    for reading, bandwidth in (("formula", median), ("words", np.sqrt(median))):
        kernel = Gaussian(bandwidth=bandwidth)
        loss, weights = exact_loss(kernel, P, X), selected_weights(kernel, X)
        row |= {f"KME_{reading}": loss(weights["KME"]), f"S_{reading}": loss(weights["S"])}
        row[f"kernel_{reading}"] = float(kernel(X, X)[np.triu_indices(len(X), 1)].mean())
    return row


def _level2_signs(X: Array) -> Row:
    """Smallest eigenvalue of exp(±‖μᵢ − μⱼ‖²/2τ²) between bags: a kernel has none below zero."""
    kernel = Gaussian().resolve(X)
    means = [embed(kernel, bag) for bag in np.array_split(X, _BAGS)]
    squares = np.array([[f.distance(g) ** 2 for g in means] for f in means])
    squares /= 2.0 * np.median(squares[np.triu_indices(_BAGS, 1)])
    return {name: float(np.linalg.eigvalsh(np.exp(sign * squares))[0]) for name, sign in (("plus", 1), ("minus", -1))}


def _unit_of_lam(X: Array) -> Row:
    """What S-KMSE keeps of the mean at λ = γ₀, for the linear kernel and for the data in units ten times as large."""
    smallest = np.linalg.eigvalsh(Linear()(X, X))[0]
    return {"kept": 1.0 / (1.0 + smallest), "kept_rescaled": 1.0 / (1.0 + 0.01 * smallest)}


def _copies(K: Array) -> Row:
    """Two weight vectors of one element, on a sample whose first row is there twice: their βᵀβ differ."""
    twice = np.append(0, np.arange(len(K)))
    K = K[np.ix_(twice, twice)]
    equal = np.full(len(K), 1.0 / len(K))
    moved = equal.copy()
    moved[0], moved[1] = 2.0 / len(K), 0.0
    gap = moved - equal
    return {"copies_distance": float(abs(gap @ K @ gap)), "copies_penalty": float(moved @ moved / (equal @ equal))}


def entries_that_matter(K: Array) -> int:
    """How many of the n(n+1)/2 entries of K change α* when they change."""
    n = len(K)
    before = simple_shrinkage(n, np.trace(K) / n, K.mean())
    count = 0
    for i, j in zip(*np.triu_indices(n), strict=True):
        changed = K.copy()
        changed[i, j] = changed[j, i] = 1.01 * K[i, j]
        count += simple_shrinkage(n, np.trace(changed) / n, changed.mean()) != before
    return count


def shrunken_pca_difference(K: Array, components: int = 5) -> float:
    """Largest difference of the projections on the leading directions, between S-COSE's operator and the plain one."""
    n = len(K)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    product = centred**2  # Gram matrix of φ(x)⊗φ(x): a covariance operator is a mean in the product space
    alpha = simple_shrinkage(n, np.trace(product) / n, product.mean())
    projectors = []
    for scale in (1.0, 1.0 - alpha):
        _, directions = np.linalg.eigh(scale / n * centred)
        projectors.append(directions[:, -components:] @ directions[:, -components:].T)
    return float(np.abs(projectors[0] - projectors[1]).max())


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
    checks = Table("The theorems in numbers", ["check", "value"], [[line["check"], _shown(line)] for line in lines])
    inexact, table = inexact_table(rows)
    return Section([*lines, *inexact], (), [checks, table])


def inexact_table(rows: list[Row]) -> tuple[list[Row], Table]:
    """The places, what holds, and the numbers of the run: for the summary and as a table."""
    lines = [*_theorem_lines(rows), *_remark_lines(select(rows, theorem="remarks"))]
    summary = [{"place": place, "shown": number} for place, _, number in lines]
    shown = [[place, number, truth] for place, truth, number in lines]
    return summary, Table("Where the paper is inexact", ["place", "number", "what holds"], shown)


def _theorem_lines(rows: list[Row]) -> list[list[str]]:
    fourth = select(rows, theorem="4")
    full = [row for row in fourth if "span" not in row]
    singular = [row for row in fourth if "span" in row]
    wrong = [row for row in singular if row["printed"] is None or abs(row["printed"] / row["span"] - 1.0) > 0.01]
    centred = column(select(rows, theorem="3", kernel="LIN, mean zero"), "lam")
    less = column(full, "kept_theorem4") < column(full, "kept_deletion")
    ratios = relative(select(full, kernel="RBF"), "F_theorem4", "F_deletion")
    nearest = min(float(np.median(column(full, refit))) for refit in REFITS)
    return [
        [
            "Theorem 4 is called leave-one-out",
            "φ(xᵢ) stays in the span, and the minimiser shrinks too much",
            f"it keeps less of ‖μ̂‖ than deletion in {less.mean():.0%}; with RBF its loss is {ratios.value:.3f} of "
            "deletion's",
        ],
        [
            "C_λ in Theorem 4 inverts K",
            "the printed formula fails where K is singular",
            f"off by more than 1 % in {len(wrong)} of {len(singular)} singular cases",
        ],
        [
            "the appendix's objective has no 1/(n−1)",
            "Theorem 4 equals no refit, whatever ridge is meant",
            f"nearest reading: {nearest:.1%} away (median of the largest distance)",
        ],
        [
            "λ* of S-KMSE",
            "negative where the estimate of ‖μ‖² is; α is clipped",
            f"λ* < 0 in {(centred < 0).mean():.0%} of samples of mean zero",
        ],
    ]


def _remark_lines(rows: list[Row]) -> list[list[str]]:
    largest = max(column(rows, "F_theorem4_largest").max(), column(rows, "F_deletion_largest").max())
    smallest = min(column(rows, "F_theorem4_smallest").min(), column(rows, "F_deletion_smallest").min())
    words, formula = relative(rows, "S_words", "KME_words"), relative(rows, "S_formula", "KME_formula")
    return [
        ["“all elements of β are smaller than 1/n”", "not for F-KMSE", f"from {smallest:.2f}/n to {largest:.2f}/n"],
        [
            "S-KMSE's λ costs O(n)",
            "it depends on every entry of K",
            f"{column(rows, 'entries').min():.0f} of the n(n+1)/2 entries change α*",
        ],
        [
            "S-COSE improves kernel PCA",
            "equal weights only scale the eigenvalues",
            f"projections differ by at most {column(rows, 'cose').max():.0e}",
        ],
        [
            "level-2 kernel exp(+‖·‖²/2σ²)",
            "the minus sign is missing",
            f"smallest eigenvalue {column(rows, 'plus').max():.2f} or lower; {column(rows, 'minus').min():.2f} or "
            "higher with it",
        ],
        [
            "bandwidth “square-root of the median distance”",
            "the formula beside it is meant",
            f"mean k(x, x') {column(rows, 'kernel_words').mean():.3f} by the words, "
            f"{column(rows, 'kernel_formula').mean():.3f} by the formula; S-KMSE's relative loss {words.value:.3f} and "
            f"{formula.value:.3f}",
        ],
        [
            "figure 1: λ = c·γ₀ for S-KMSE",
            "its λ has no unit, γ₀ has",
            f"at c = 1 it keeps {column(rows, 'kept').mean():.0%} of μ̂ (LIN), "
            f"{column(rows, 'kept_rescaled').mean():.0%} with the same data in units ten times as large",
        ],
        [
            "Ω = βᵀβ as a function of ‖g‖",
            "one element can have several; the span restriction is an assumption",
            f"same element, βᵀβ {column(rows, 'copies_penalty').mean():.3f} times as large",
        ],
        ["½ factors in the appendix, missing tildes in COSE", "no effect on the estimators", "no number"],
    ]


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
    seconds=lambda setting: 0.35,
    section=_section,
)


@claim(
    "james-stein-dominates",
    "There exists an estimator that always achieves smaller total mean squared error regardless of the true θ, when "
    "the dimension is at least 3 (that of James and Stein).",
    "Introduction, and appendix on James-Stein's estimator",
    NAME,
)
def james_stein_dominates(rows: list[Row]) -> Judgement:
    """The exact risk of every θ drawn is below that of the average."""
    stein = select(rows, theorem="stein")
    risks = column(stein, "risk")
    losses = [f"d = {d} {relative(select(stein, d=d), 'JS')}" for d in sorted({row["d"] for row in stein})]
    what = (
        f"exact risk {risks.min():.6f} to {risks.max():.6f} of the average's, with ‖θ‖/σ from "
        f"{column(stein, 'length').min():.2g} to {column(stein, 'length').max():.2g}; mean loss of draws relative to "
        f"the average's: {', '.join(losses)}"
    )
    return judged_exactly([row["risk"] < 1.0 for row in stein], what)


@claim(
    "theorem-1-better-for-any-target",
    "Given an arbitrary function f*, there exists α* for which the shrinkage estimator is better than the standard "
    "one.",
    "Theorem 1",
    NAME,
)
def theorem1_better_for_any_target(rows: list[Row]) -> Judgement:
    """The exact risk at α* is below KME's for every kernel and target."""
    first = select(rows, theorem="1")
    gains = column(first, "1") / column(first, "KME")
    wider = [max(row["0.5"], row["1.5"]) < row["KME"] for row in first]
    what = (
        f"exact risk at α* {gains.min():.3f} to {gains.max():.6f} of KME's, for f* = 0, at a point and far away; lower "
        f"than KME's at ½α* and 1½α* too in {np.mean(wider):.0%}, and off the proof's formula by at most "
        f"{column(first, 'error').max():.1e}. α* needs the distribution, as the paper says"
    )
    return judged_exactly([row["1"] < row["KME"] for row in first], what)


@claim(
    "theorem-2-form-of-f-kmse",
    "For F-KMSE, we can write μ̂_λ = Σ γᵢ/(γᵢ+λ) ⟨μ̂, vᵢ⟩ vᵢ where {γᵢ, vᵢ} are eigenvalue and eigenvector pairs of "
    "the covariance operator.",
    "Theorem 2",
    NAME,
)
def theorem2_form_of_f_kmse(rows: list[Row]) -> Judgement:
    """Judged with the eigenvalues of Σφ⊗φ, as in the proof."""
    second = select(rows, theorem="2")
    what = (
        f"relative error {column(second, 'sum').max():.1e} with the eigenvalues of K, as in the proof, but up to "
        f"{column(second, 'average').max():.2f} with those of the averaged operator, n times smaller; the factors go "
        f"from {column(second, 'factor_lowest').min():.2g} where the variance is low to "
        f"{column(second, 'factor_highest').max():.2g} where it is high"
    )
    return judged_exactly([row["sum"] < EXACT for row in second], what)


@claim(
    "theorem-3-minimises-loocv",
    "The shrinkage parameter λ* = (ϱ−ρ)/((n−1)ρ + ϱ/n − ϱ) of the S-KMSE is the minimizer of LOOCV(λ).",
    "Theorem 3",
    NAME,
)
def theorem3_minimises_loocv(rows: list[Row]) -> Judgement:
    """The printed α* is the minimiser of the score by refits, and λ* is not negative."""
    third = select(rows, theorem="3")
    negative = [row["kernel"] for row in third if row["lam"] < 0]
    what = (
        f"α* agrees with refits to {column(third, 'error').max():.1e}; λ* is negative, and no shrinkage parameter, in "
        f"{len(negative)} of {len(third)}, {negative.count('LIN, mean zero')} of them on data of mean zero"
    )
    return judged_exactly([row["error"] < EXACT and row["lam"] >= 0 for row in third], what)


@claim(
    "theorem-4-is-loocv",
    "The LOOCV score of F-KMSE satisfies LOOCV(λ) = (1/n) Σ (βᵀK − Kᵢ)ᵀ C_λ (βᵀK − Kᵢ).",
    "Theorem 4",
    NAME,
)
def theorem4_is_loocv(rows: list[Row]) -> Judgement:
    """Judged by the reading of the ridge that comes nearest."""
    fourth = regular(rows, "4")
    nearest = [min(row[refit] for refit in REFITS) for row in fourth]
    what = (
        f"as printed it agrees to {column(fourth, 'printed').max():.1e} with fits that keep φ(xᵢ) in the span, and "
        f"differs by {column(fourth, 'λ').min():.1%} to {column(fourth, 'λ').max():.1%} from leave-one-out as defined, "
        f"by {min(nearest):.1%} at least whichever ridge is meant ({', '.join(REFITS)})"
    )
    return judged_exactly([distance < EXACT for distance in nearest], what)


@claim(
    "weights-below-one-over-n",
    "The weight vector β output by our estimators is in general not normalized. In fact, all elements will be smaller "
    "than 1/n as a result of shrinkage.",
    ESTIMATOR_SECTION,
    NAME,
)
def weights_below_one_over_n(rows: list[Row]) -> Judgement:
    """S-KMSE has (1−α)/n, so that α > 0 says it; both estimators are one part each."""
    remarks = select(rows, theorem="remarks")
    simple = count_true([row["printed"] > 0 for row in select(rows, theorem="3")])
    flexible = count_true([row["F_theorem4_largest"] < 1.0 for row in remarks])
    largest = [column(remarks, f"{name}_largest").max() for name in ("F_theorem4", "F_deletion")]
    evidence = (
        f"S-KMSE, whose weights are (1−α)/n: {simple}; F-KMSE, all kernels of a sample: {flexible}, with a weight of "
        f"{largest[0]:.2f}/n by Theorem 4 and {largest[1]:.2f}/n by deletion. Exact comparisons, no standard error; S "
        "and F are one part each"
    )
    return Judgement(verdict_of_parts((simple.verdict, flexible.verdict)), evidence)


@claim(
    "s-kmse-selection-linear-cost",
    "The S-KMSE requires only O(n) operations to select shrinkage parameter.",
    "Cross-validation",
    NAME,
)
def selection_in_linear_time(rows: list[Row]) -> Judgement:
    """Every entry of K that changes α* has to be read."""
    remarks = select(rows, theorem="remarks")
    n, entries = N, column(remarks, "entries")
    what = (
        f"{entries.min():.0f} of the {n * (n + 1) // 2} entries of K change α*, each of which has to be read (for the "
        f"claim: at most 2n = {2 * n})"
    )
    return judged_exactly([row["entries"] <= 2 * n for row in remarks], what)

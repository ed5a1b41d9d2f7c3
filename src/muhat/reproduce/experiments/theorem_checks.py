"""The theorems of the paper, each against a computation that follows its words and no shortcut."""

from __future__ import annotations

import numpy as np

from muhat.elements import embed
from muhat.kernels.base import Kernel
from muhat.kernels.dot import Linear
from muhat.means.oracle import oracle_shrinkage
from muhat.means.spectral import SpectralKernelMean
from muhat.means.stein import james_stein, james_stein_risk
from muhat.measures import Atoms, GaussianMixture
from muhat.reproduce.experiment import Row
from muhat.reproduce.experiments.synthetic import KERNELS, exact_loss
from muhat.shrinkage.scores import Lam, theorem4_scores
from muhat.types import Array

STEPS = (0.5, 1.0, 1.5, 2.0)
"""Amounts of shrinkage, in units of α*; at 2 the risk is that of KME again."""


TARGETS = {"zero": 0.0, "a point": 1.0, "far away": -3.0}
"""f* as a multiple of φ(x) at a draw x."""


DIMENSIONS = (3, 10, 30)


RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""λ, in units of the largest eigenvalue."""


REFITS = ("λ", "λ/(n−1)", "nλ/(n−1)")
"""Ridges with which a leave-one-out refit might be meant."""


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
            plain = lowest / (1.0 - alpha)
            formula = {step: plain * (1.0 - alpha * step * (2.0 - step)) for step in risks}
            row: Row = {"theorem": "1", "kernel": name, "target": target, "alpha": alpha, "KME": risks[0.0]}
            row |= {f"{step:g}": risks[step] for step in STEPS}
            rows.append({**row, "error": max(abs(risks[step] - formula[step]) for step in risks) / plain})
    return rows


def _enumerated_risk(K: Array, alpha: float, factor: float) -> float:
    """Mean of ‖α·factor·φ(last) + (1−α)(φᵢ + φⱼ)/2 − μ‖² over all pairs (i, j) of the other points."""
    m = len(K) - 1
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
    refits = 0.5 - (high - low) / (4.0 * (high - 2.0 * middle + low))  # the score is quadratic in α
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
    return [*rows, {"theorem": "4", "kernel": "LIN, singular", **scores, "span": kept_span_score(K, lam)}]


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
    """The loss of xᵢ is dropped, and φ(xᵢ) stays in the span: one linear system a row."""
    n = len(K)
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

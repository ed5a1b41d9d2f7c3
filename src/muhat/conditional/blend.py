"""How much of the embedding and how much of the fitted family: shares by leave-one-out, in two spaces."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from muhat._support.types import Array
from muhat.conditional.target import LocationScale, TargetMoments
from muhat.linalg.blocks import blocks

_BLOCK = 2**21
"""Distances between atoms and rows that are in memory at a time: 16 MB."""


def lowest_on_square(Q: float, X: float, T: float, p: float, t: float) -> tuple[float, float]:
    """The lowest point in [0, 1]² of a²Q + 2abX + b²T − 2(ap + bt), convex; the first of equals, from b = 0 on."""

    def at(numerator: float, denominator: float) -> float:
        return min(max(numerator / denominator, 0.0), 1.0) if denominator > np.finfo(float).tiny else 1.0

    inside = Q * T - X * X
    edges = [(at(p, Q), 0.0), (0.0, at(t, T)), (1.0, at(t - X, T)), (at(p - X, Q), 1.0)]
    points = [*edges, (at(p * T - t * X, inside), at(t * Q - p * X, inside))]
    values = np.array([a * (a * Q + 2 * b * X - 2 * p) + b * (b * T - 2 * t) for a, b in points])
    return points[int(np.argmax(values <= values.min() + 1e-13 * max(Q, T)))]


def embedding_shares(W: Array, L: Array, target: TargetMoments) -> tuple[float, float]:
    """(a, b) of a·regression + b·target with the lowest leave-one-out loss, in the space of the Gram matrix L.

    Row i of W holds the weights of the regression without row i.
    """
    WL = W @ L
    Q, X = float((WL * W).sum(axis=1).mean()), float((W * target.at_rows).sum(axis=1).mean())
    p, t = float(np.diagonal(WL).mean()), float(np.diagonal(target.at_rows).mean())
    return lowest_on_square(Q, X, float(target.squares.mean()), p, t)


def embedding_loss(W: Array, L: Array, target: TargetMoments | None, shares: tuple[float, float]) -> float:
    """Mean leave-one-out loss of a·regression + b·target."""
    (a, b), WL = shares, W @ L
    loss = np.diagonal(L) + a * a * (WL * W).sum(axis=1) - 2.0 * a * np.diagonal(WL)
    if target is not None:
        loss = loss + 2.0 * a * b * (W * target.at_rows).sum(axis=1)
        loss += b * b * target.squares - 2.0 * b * np.diagonal(target.at_rows)
    return float(loss.mean())


def probabilities(weights: Array) -> Array:
    """Weights as probabilities: negative ones are dropped, and the others sum to one in every row."""
    kept = weights.clip(0.0)
    sums = kept.sum(axis=1, keepdims=True)
    return np.divide(kept, sums, out=np.full_like(kept, 1.0 / kept.shape[1]), where=sums > 0)


def energy_share(P: Array, target: LocationScale, Y: Array) -> float:
    r"""The share of the family in the distribution whose leave-one-out energy score is lowest.

    For one column that is the continuous ranked probability score. Row i of P holds the probabilities of the rows
    without row i, which has none itself.
    """
    # The score of F at y is E‖A − y‖ − ½E‖A − B‖, with A and B drawn from F. For F = (1−s)P + sQ its derivative at
    # s = 0 is E‖Q − y‖ − E‖P − y‖ + E‖P − P'‖ − E‖P − Q‖, and grows at the rate 2E‖P − Q‖ − E‖P − P'‖ − E‖Q − Q'‖.
    n, atoms = len(Y), len(target.shape)
    D = cdist(Y, Y)
    own_p, pp = float((P * D).sum()), float(((P @ D) * P).sum())
    own_q = pq = qq = 0.0
    for rows in blocks(n, max(_BLOCK // (n * atoms), 1)):
        placed = target.left_out_atoms(rows)
        distances = cdist(placed.reshape(-1, Y.shape[1]), Y).reshape(len(placed), atoms, n).mean(axis=1)
        own_q += float(np.diagonal(distances[:, rows]).sum())
        pq += float((distances * P[rows]).sum())
        qq += float(sum(cdist(each, each).mean() for each in placed))
    apart = 2.0 * pq - pp - qq
    return float(np.clip((own_p - own_q - pp + pq) / apart, 0.0, 1.0)) if apart > 1e-12 * pq else 0.0

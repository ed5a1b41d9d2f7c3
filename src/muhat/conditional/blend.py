"""How much of the embedding and how much of the fitted family: shares by leave-one-out, in two spaces."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from muhat._support.types import Array
from muhat.conditional.target import LocationScale, TargetMoments
from muhat.linalg.blocks import blocks
from muhat.means.adaptive import LooQuadratic
from muhat.shrinkage.leave_one_out import LooMoments

TIE = 1e-13
"""Losses this close, relative to the target's squared norm, are ties, which the regression alone wins."""

_BLOCK = 2**21
"""Distances between atoms and rows that are in memory at a time: 16 MB."""


def embedding_shares(W: Array, L: Array, target: TargetMoments | None) -> tuple[tuple[float, float], float]:
    """(a, b) of a·regression + b·target with the lowest leave-one-out loss in the space of the Gram matrix L; the loss.

    Row i of W holds the weights of the regression without row i.
    """
    WL = W @ L
    own = LooMoments(np.diagonal(WL).mean(keepdims=True), (WL * W).sum(axis=1).mean(keepdims=True))
    if target is None:
        return (1.0, 0.0), float(own.scores(float(np.diagonal(L).mean()), 1.0)[0])
    mixed = (W * target.at_rows).sum(axis=1).mean(keepdims=True)
    quadratic = LooQuadratic(own, mixed, float(np.diagonal(target.at_rows).mean()), float(target.squares.mean()))
    a, b = quadratic.lowest(TIE * quadratic.target_square)
    return (float(a[0]), float(b[0])), float(np.diagonal(L).mean() + quadratic.values(a, b)[0])


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

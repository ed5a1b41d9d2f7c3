"""Oracle of Theorem 1: the best amount of simple shrinkage for a known distribution."""

from __future__ import annotations

from typing import NamedTuple

from muhat._support.validation import check_count
from muhat.kernels.base import Kernel, Measure
from muhat.kernels.expectations import expect_diag
from muhat.rkhs.elements import Element, embed
from muhat.rkhs.measures import Atoms, Gaussians


class OracleShrinkage(NamedTuple):
    """Result of :func:`oracle_shrinkage`.

    Attributes
    ----------
    shrinkage : float
        The best amount of simple shrinkage, between 0 and 1.
    risk : float
        Expected squared error of the mean that is shrunk by this amount.
    """

    shrinkage: float
    risk: float


def oracle_shrinkage(kernel: Kernel, P: Measure, n: int, target: Element | None = None) -> OracleShrinkage:
    r"""The best shrinkage of the average of n draws from P toward a target (Theorem 1).

    With Δ the risk of the plain average,

    .. math:: \Delta = \frac{\mathrm{E}\, k(x, x) - \|\mu\|^2}{n}, \qquad
              \alpha_* = \frac{\Delta}{\Delta + \|f^* - \mu\|^2},

    the shrunken average has the risk :math:`(1 - \alpha_*)\Delta`. It needs P, so it is a yardstick, not an estimator.

    Parameters
    ----------
    kernel : Kernel
        With a numeric bandwidth, and closed-form expectations under P.
    P : GaussianMixture or Atoms
        The distribution that the rows would be drawn from.
    n : int
        Sample size.
    target : Element, optional
        f*; default zero.

    Returns
    -------
    OracleShrinkage
        A pair (shrinkage, risk).

    See Also
    --------
    ShrunkKernelMean : Estimates the amount from the rows.
    james_stein : The classical estimator of a mean vector.

    Examples
    --------
    >>> import muhat as mh
    >>> P = mh.GaussianMixture([1.0], [[1.0, 0.0, 0.0]], [1.0])
    >>> mh.oracle_shrinkage(mh.Linear(), P, n=3)
    OracleShrinkage(shrinkage=0.5, risk=0.5)
    """
    n = check_count("n", n)
    if not isinstance(P, Atoms | Gaussians):
        raise ValueError(
            f"P is {type(P).__name__} and must be a GaussianMixture, or Atoms(points) for a finite population"
        )
    if target is not None and not isinstance(target, Element):
        raise ValueError(f"target={target!r} must be an Element of the space; make one by muhat.embed(kernel, ...)")
    mean = embed(kernel, P)
    plain_risk = max(expect_diag(mean.kernel, P) - mean.norm() ** 2, 0.0) / n
    bias = mean.norm() ** 2 if target is None else target.distance(mean) ** 2
    if plain_risk == 0:
        return OracleShrinkage(0.0, 0.0)
    shrinkage = plain_risk / (plain_risk + bias)
    return OracleShrinkage(shrinkage, (1.0 - shrinkage) * plain_risk)

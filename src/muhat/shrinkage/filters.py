"""Spectral filters: how much of each eigen-direction of the mean is kept.

A filter is a function ``filter(eigenvalues, lam)`` from the eigenvalues g of the Gram matrix to shrink factors
h(g); the estimate has weights β = U(h ∘ Uᵀ1ₙ). ``lam`` is always in Gram units: λ = 0 keeps everything, λ = ∞
nothing, and an iterative filter does as many steps as shrink like the ridge λ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from muhat._support.parameters import Value
from muhat._support.types import Array
from muhat._support.validation import check_count, check_number
from muhat.linalg.spectrum import SampledSpectrum, Spectrum
from muhat.shrinkage.leave_one_out import FilteredLoo, LeaveOneOut, SampledLoo, TikhonovLoo, tikhonov_factors


class Filter(Value, ABC):
    """Base of all filters."""

    takes_counts = False

    @abstractmethod
    def __call__(self, eigenvalues: Array, lam: float) -> Array:
        """Shrink factors of the eigen-directions, for 0 < lam < inf; eigenvalues ascend."""

    def leave_one_out(self, spectrum: Spectrum) -> LeaveOneOut:
        """Leave-one-out moments of the mean with this filter; by default from n eigendecompositions."""
        return FilteredLoo(self, spectrum)


@dataclass(frozen=True)
class Tikhonov(Filter):
    r"""Tikhonov's filter, the paper's F-KMSE. One leave-one-out score costs O(n²).

    .. math:: h(g) = \frac{g}{g + \lambda}

    See Also
    --------
    SpectralKernelMean : The estimator that applies a filter.
    IteratedTikhonov : Several steps of it.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.Tikhonov()(np.array([0.0, 1.0, 3.0]), lam=1.0)
    array([0.  , 0.5 , 0.75])
    """

    takes_counts = True

    def __call__(self, eigenvalues: Array, lam: float) -> Array:
        return tikhonov_factors(eigenvalues, lam)

    def leave_one_out(self, spectrum: Spectrum) -> LeaveOneOut:
        return SampledLoo(spectrum) if isinstance(spectrum, SampledSpectrum) else TikhonovLoo(spectrum)


@dataclass(frozen=True)
class IteratedTikhonov(Filter):
    r"""Tikhonov's filter applied t = ``n_iter`` times.

    Leave-one-out decomposes n matrices, O(n⁴): for a few hundred rows.

    .. math:: h(g) = 1 - \left(\frac{\lambda}{g + \lambda}\right)^t

    Parameters
    ----------
    n_iter : int, default 2
        Number of Tikhonov steps, each on the residual of the one before.

    See Also
    --------
    Tikhonov : One step.
    Landweber : Gradient descent.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.IteratedTikhonov(n_iter=2)(np.array([0.0, 1.0, 3.0]), lam=1.0)
    array([0.    , 0.75  , 0.9375])
    """

    n_iter: int = 2

    def __post_init__(self) -> None:
        check_count("n_iter", self.n_iter)

    def __call__(self, eigenvalues: Array, lam: float) -> Array:
        return 1.0 - (lam / (eigenvalues + lam)) ** self.n_iter


@dataclass(frozen=True)
class TruncatedSVD(Filter):
    r"""Keep the directions with :math:`g \ge \lambda`, drop the others: h(g) is 1 or 0.

    Leave-one-out decomposes n matrices, O(n⁴): for a few hundred rows.

    See Also
    --------
    Tikhonov : The default filter of SpectralKernelMean.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.TruncatedSVD()(np.array([0.0, 1.0, 3.0]), lam=1.0)
    array([0., 1., 1.])
    """

    def __call__(self, eigenvalues: Array, lam: float) -> Array:
        return (eigenvalues >= lam).astype(np.float64)

    def leave_one_out(self, spectrum: Spectrum) -> LeaveOneOut:
        return FilteredLoo(self, spectrum, stepped=True)


class IterativeFilter(Filter):
    """Base of iterations whose number of steps t stands for λ: at most ``max_iter``, and t^power about g_max/λ."""

    max_iter: int
    power: ClassVar[int]

    def __post_init__(self) -> None:
        check_count("max_iter", self.max_iter)

    def steps(self, eigenvalues: Array, lam: float) -> int:
        """Number of steps that stand for λ."""
        steps = float((eigenvalues[-1] / lam) ** (1.0 / self.power))
        if steps > self.max_iter + 0.5:
            raise ValueError(
                f"lam={lam:.3g} asks for {steps:.3g} steps, more than max_iter={self.max_iter}; raise max_iter, or "
                f"take lam=0, the plain average"
            )
        return round(steps)

    def leave_one_out(self, spectrum: Spectrum) -> LeaveOneOut:
        return FilteredLoo(self, spectrum, 1.0 / np.arange(1.0, self.max_iter + 1) ** self.power)


@dataclass(frozen=True)
class Landweber(IterativeFilter):
    r"""Gradient descent, stopped after t steps, the nearest integer to :math:`g_{\max}/\lambda`.

    .. math:: h(g) = 1 - (1 - g/g_{\max})^t

    Leave-one-out decomposes n matrices, O(n⁴): for a few hundred rows.

    Parameters
    ----------
    max_iter : int, default 300
        Largest number of steps that leave-one-out may choose.

    See Also
    --------
    NuMethod : Accelerated, in fewer steps.
    Tikhonov : The default filter of SpectralKernelMean.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.Landweber()(np.array([0.0, 1.0, 2.0]), lam=1.0)
    array([0.  , 0.75, 1.  ])
    """

    max_iter: int = 300
    power: ClassVar[int] = 1

    def __call__(self, eigenvalues: Array, lam: float) -> Array:
        relative = eigenvalues / max(eigenvalues[-1], np.finfo(float).tiny)
        return 1.0 - (1.0 - relative) ** self.steps(eigenvalues, lam)


def nu_steps(nu: float) -> Iterator[tuple[float, float]]:
    """Momentum and step length of the ν-method."""
    yield 0.0, (4 * nu + 2) / (4 * nu + 1)
    t = 2
    while True:
        divisor = (t + 2 * nu - 1) * (2 * t + 4 * nu - 1)
        momentum = (t - 1) * (2 * t - 3) * (2 * t + 2 * nu - 1) / (divisor * (2 * t + 2 * nu - 3))
        yield momentum, 4 * (2 * t + 2 * nu - 1) * (t + nu - 1) / divisor
        t += 1


@dataclass(frozen=True)
class NuMethod(IterativeFilter):
    r"""The accelerated ν-method, stopped after t steps, the nearest integer to :math:`\sqrt{g_{\max}/\lambda}`.

    .. math:: 1 - h(g) = P_t(1 - 2g/g_{\max}) / P_t(1)

    with the Jacobi polynomial :math:`P_t` of the parameters :math:`2\nu - 1/2` and :math:`-1/2`.
    Leave-one-out decomposes n matrices, O(n⁴): for a few hundred rows.

    Parameters
    ----------
    nu : float > 0, default 1.0
        The ν of the method: the number of derivatives that it can make use of.
    max_iter : int, default 50
        Largest number of steps that leave-one-out may choose.

    See Also
    --------
    Landweber : Without acceleration.
    Tikhonov : The default filter of SpectralKernelMean.

    Examples
    --------
    >>> import numpy as np
    >>> import muhat as mh
    >>> mh.NuMethod()(np.array([0.0, 1.0, 2.0]), lam=1.0).round(3)
    array([0. , 0.6, 1.2])
    """

    nu: float = 1.0
    max_iter: int = 50
    power: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("nu", self.nu, low=0, open_low=True)

    def __call__(self, eigenvalues: Array, lam: float) -> Array:
        relative = eigenvalues / max(eigenvalues[-1], np.finfo(float).tiny)
        kept, before = np.zeros_like(relative), np.zeros_like(relative)
        for _, (momentum, step) in zip(range(self.steps(eigenvalues, lam)), nu_steps(self.nu), strict=False):
            kept, before = kept + momentum * (kept - before) + step * relative * (1.0 - kept), kept
        return kept

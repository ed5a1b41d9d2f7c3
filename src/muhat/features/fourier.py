"""Random Fourier features of kernels that depend on the difference of two rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muhat._support.types import Array, RandomState
from muhat._support.validation import check_count, check_rng
from muhat.features.base import BaseFeatures
from muhat.kernels.base import Kernel
from muhat.kernels.capabilities import length_scales, sample_frequencies
from muhat.kernels.radial import Gaussian, Radial
from muhat.linalg.blocks import blocks

_CACHED = 2**15  # phases in one block: three arrays of 256 kB
_FARTHEST = 1e150  # coordinates are cut here, so that phases do not overflow


class Fourier(BaseFeatures):
    r"""Random Fourier features: :math:`z(x) = f^{-1/2}(\cos w_1^\top x, …, \cos w_f^\top x, \sin w_1^\top x, …)`.

    The frequencies w are drawn from the spectral measure of the kernel (Rahimi and Recht, 2007): Gaussian: normal;
    Laplace: Cauchy in each column; Matérn of smoothness ν: Student's t with 2ν degrees of freedom. Pairs of cosine
    and sine make :math:`\|z(x)\|^2 = k(x, x) = 1`. The error of one kernel value is of the order of :math:`f^{-1/2}` in
    any dimension.

    Parameters
    ----------
    kernel : Gaussian, Laplace, Matern or another Radial kernel, default Gaussian()
        Its frequencies are drawn by ``muhat.kernels.sample_frequencies``.
    n_components : int, default 1000
        Number of features, 2f; an odd number is rounded up.
    random_state : None, int, Generator, SeedSequence or RandomState
        The seed: the same number gives the same result.

    Attributes
    ----------
    kernel_ : Kernel
        With the bandwidth as a number.
    frequencies_ : array of shape (d, f)
        For rows divided by the bandwidth.
    approximation_error_ : float
        Root mean square of :math:`(K - ZZ^\top)_{ij}` over the pairs of at most 64 training rows, drawn at random.
    fingerprint_ : str
        Hash of all that determines the features: sketches merge only where it is the same.

    See Also
    --------
    Nystroem : Features on landmarks, more exact for a mean and for any kernel.
    MeanSketch : Means of features in one pass.
    sklearn.kernel_approximation.RBFSampler : Random Fourier features of the Gaussian kernel.

    Examples
    --------
    >>> import muhat as mh
    >>> X = mh.paper_mixture(5, random_state=0).sample(500, random_state=1)
    >>> features = mh.Fourier(n_components=1000, random_state=0).fit(X)
    >>> features.transform(X).shape
    (500, 1000)
    >>> round(features.approximation_error_, 3)
    0.016
    """

    _arrays = ("frequencies_", "_centre")

    def __init__(
        self,
        kernel: Kernel = Gaussian(),
        n_components: int = 1000,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def _fit(self, rows: Array) -> None:
        kernel = self.kernel_
        if not isinstance(kernel, Radial):
            raise ValueError(
                f"kernel={self.kernel!r} must be a function of the distance of two rows, such as Gaussian(), "
                f"Laplace() or Matern(); Nystroem takes any kernel"
            )
        pairs = (check_count("n_components", self.n_components) + 1) // 2
        rng = check_rng(self.random_state)
        self.frequencies_ = sample_frequencies(kernel, rows.shape[1], pairs, rng)
        self._centre = (rows / len(rows)).sum(axis=0)  # phases of rows far from zero would lose their digits
        self._n_features_out = 2 * pairs
        seen = rows[rng.choice(len(rows), min(len(rows), 64), replace=False)]
        Z = self.evaluate(seen)
        errors = (self.kernel_.evaluate(seen, seen) - Z @ Z.T)[np.triu_indices(len(seen), 1)]
        self.approximation_error_ = float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.0

    def evaluate(self, rows: Array) -> Array:
        f = self.frequencies_.shape[1]
        Z = np.empty((len(rows), 2 * f))
        for block, double_sine, cosine in self._circles(rows):
            np.multiply(double_sine, cosine, out=Z[block, f:])
            double_sine *= double_sine
            np.subtract(1.0, np.multiply(double_sine, 0.5, out=double_sine), out=Z[block, :f])
        return np.divide(Z, np.sqrt(f), out=Z)

    def _totals(self, rows: Array) -> tuple[Array, float]:
        cosines, sines = np.zeros((2, self.frequencies_.shape[1]))
        for _, double_sine, cosine in self._circles(rows):
            cosine *= double_sine
            sines += cosine.sum(axis=0)
            double_sine *= double_sine
            cosines += len(cosine) - 0.5 * double_sine.sum(axis=0)
        return np.concatenate([cosines, sines]) / np.sqrt(len(sines)), float(len(rows))

    def _circles(self, rows: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks that fit the cache: a slice of the rows, 2 sin(θ/2) and cos(θ/2) of the phases θ = wᵀx."""
        turns_of = self.frequencies_ / (2.0 * np.pi)
        width = turns_of.shape[1]
        size = max(_CACHED // width, 1)
        buffers = np.empty((3, min(size, len(rows)), width))
        with np.errstate(over="ignore"):
            scaled = (rows - self._centre) / length_scales(self.kernel_)[0]
        np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)
        for block in blocks(len(rows), size):
            turns, sine, work = buffers[:, : block.stop - block.start]
            np.matmul(scaled[block], turns_of, out=turns)
            yield block, *_half_angles(turns, sine, work)


# sin x = x + S₁x³ + … to the last bit for |x| ≤ π/4 (the constants of fdlibm), here as √2·sin(πr/2) = r·P(r²).
_SINE = [1.0, -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04]

_SINE += [2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10]

_SINE = [np.sqrt(2.0) * c * (np.pi / 2) ** (2 * k + 1) for k, c in enumerate(_SINE)][::-1]


def _half_angles(turns: Array, sine: Array, work: Array) -> tuple[Array, Array]:
    """2 sin πr and cos πr, with r in [−½, ½] what is left of a phase of this many turns, in place.

    Twenty cheap passes for both; the library functions take longer for each. With x = √2 sin(πr/2):
    cos πr = 1 − x², sin πr = x·√(1 + cos πr), both to about 1e-15.
    """
    np.rint(turns, out=work)
    turns -= work
    np.multiply(turns, turns, out=work)
    sine[:] = _SINE[0]
    for coefficient in _SINE[1:]:
        sine *= work
        sine += coefficient
    sine *= turns
    cosine = np.subtract(1.0, np.multiply(sine, sine, out=work), out=work)
    sine *= np.sqrt(np.add(cosine, 1.0, out=turns), out=turns)
    sine *= 2.0
    return sine, cosine

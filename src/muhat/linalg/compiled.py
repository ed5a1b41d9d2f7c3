"""Compiled sums of Gaussian kernel values, for where numba is installed: distance, exponential and sum in one pass.

The loops are plain Python; ``gaussian_sums`` imports numba and compiles them at its first call, so that
``import muhat`` does neither. The numpy tiles of ``kernels.tiles`` are what runs without numba, and the oracle with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial, log, sqrt
from typing import Any

import numpy as np

from muhat._support.types import Array
from muhat.linalg.distances import EXPANDABLE

FEW = 8
"""More columns than these are multiplied faster by BLAS, from a tile of kernel values."""

BLOCK = 1024
"""Rows and columns of a tile: enough to make little of the time that it takes to pack them."""

GaussianSums = Callable[[Array, Array, Array, float], "Array | None"]

_ROWS = 128  # so that the exponents of four columns, and three dimensions of the rows, stay in the first cache

_LN2 = log(2.0)

_ROUND = 1.5 * 2.0**52  # added to a small number it rounds it, and leaves the integer in the lowest bits

_T1, _T2, _T3, _T4, _T5, _T6, _T7, _T8, _T9, _T10, _T11, _T12 = (_LN2**k / factorial(k) for k in range(1, 13))


def _pack(X: Any, Y: Any, W: Any, width: float) -> Any:
    """Rows about the mean of X over the width, and minus half their squares; weights. In the layout of ``_add_sums``.

    A, a: (blocks, dimensions, 128) and (blocks, 128), of X; B, b, w: (m, dimensions), (m,) and (m, columns), of Y.
    Zeros pad rows to blocks, dimensions to threes and m to fours.
    """
    (n, d), (m, columns) = X.shape, W.shape
    blocks, padded, fours = (n + _ROWS - 1) // _ROWS, 3 * ((d + 2) // 3), 4 * ((m + 3) // 4)
    A, a = np.zeros((blocks, padded, _ROWS)), np.zeros((blocks, _ROWS))
    B, b, w = np.zeros((fours, padded)), np.zeros(fours), np.zeros((fours, columns))
    centre = np.zeros(d)
    for i in range(n):
        for k in range(d):
            centre[k] += X[i, k] / n
    for i in range(n):
        block, place = i // _ROWS, i % _ROWS
        for k in range(d):
            x = (X[i, k] - centre[k]) / width
            A[block, k, place] = x
            a[block, place] -= 0.5 * x * x
    for j in range(m):
        for k in range(d):
            y = (Y[j, k] - centre[k]) / width
            B[j, k] = y
            b[j] -= 0.5 * y * y
        for c in range(columns):
            w[j, c] = W[j, c]
    return A, a, B, b, w


def _add_sums(A: Any, a: Any, B: Any, b: Any, w: Any, out: Any) -> None:
    """Add the sums over j of w_jc 2^(aᵢ + bⱼ + Aᵢᵀ Bⱼ) to out, of shape (columns of w, blocks, 128).

    Rows lie along the inner loops, which have no sums over lanes: the compiler may not, and need not, reorder any
    addition. The power is 2^k·p(r), with x = k + r, |r| ≤ ½ and p the Taylor polynomial of degree 12 (1.7e-16), its
    terms paired to shorten the chain, and k added to the bits of the exponent. Packed rows that pass the test of
    ``gaussian_sums`` have x ≥ −256, so that nothing underflows. Columns of w may be sparse: where four weights are 0,
    nothing is added.
    """
    E = np.empty((4, _ROWS))
    for block in range(len(A)):
        for j in range(0, len(B), 4):
            b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
            for i in range(_ROWS):
                x = a[block, i]
                E[0, i], E[1, i], E[2, i], E[3, i] = x + b0, x + b1, x + b2, x + b3
            for k in range(0, B.shape[1], 3):
                p0, p1, p2 = B[j, k], B[j, k + 1], B[j, k + 2]
                q0, q1, q2 = B[j + 1, k], B[j + 1, k + 1], B[j + 1, k + 2]
                r0, r1, r2 = B[j + 2, k], B[j + 2, k + 1], B[j + 2, k + 2]
                s0, s1, s2 = B[j + 3, k], B[j + 3, k + 1], B[j + 3, k + 2]
                for i in range(_ROWS):
                    x0, x1, x2 = A[block, k, i], A[block, k + 1, i], A[block, k + 2, i]
                    E[0, i] += p0 * x0 + p1 * x1 + p2 * x2
                    E[1, i] += q0 * x0 + q1 * x1 + q2 * x2
                    E[2, i] += r0 * x0 + r1 * x1 + r2 * x2
                    E[3, i] += s0 * x0 + s1 * x1 + s2 * x2
            for s in range(4):
                for i in range(_ROWS):
                    x = E[s, i]
                    shifted = x + _ROUND
                    r = x - (shifted - _ROUND)
                    rr = r * r
                    rrrr = rr * rr
                    p = (_T8 + _T9 * r) + (_T10 + _T11 * r) * rr + _T12 * rrrr
                    p = p * rrrr + ((_T4 + _T5 * r) + (_T6 + _T7 * r) * rr)
                    p = p * rrrr + ((_T2 + _T3 * r) * rr + _T1 * r) + 1.0
                    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
                    E[s, i] = np.int64(bits).view(np.float64)
            for c in range(w.shape[1]):
                w0, w1, w2, w3 = w[j, c], w[j + 1, c], w[j + 2, c], w[j + 3, c]
                if w0 != 0.0 or w1 != 0.0 or w2 != 0.0 or w3 != 0.0:
                    for i in range(_ROWS):
                        out[c, block, i] += w0 * E[0, i] + w1 * E[1, i] + w2 * E[2, i] + w3 * E[3, i]


@cache
def gaussian_sums() -> GaussianSums | None:
    """The compiled function (X, Y, W, width) -> k(X, Y) @ W, or None without numba; the answer is remembered.

    W has the shape (m,) or (m, columns). Distances are expanded as in ``distances.negative_half_squares``, and the
    function returns None where that loses more than 1e-13. It holds no lock of Python's for long, and runs in threads.
    """
    numba = numba_or_none()
    if numba is None:
        return None
    read = numba.types.Array(numba.float64, 2, "C", readonly=True)
    one, two, three = numba.float64[::1], numba.float64[:, ::1], numba.float64[:, :, ::1]
    pack = compile_loop(_pack, (read, read, read, numba.float64))
    add = compile_loop(_add_sums, (three, two, two, one, two, three))

    def sums(X: Array, Y: Array, W: Array, width: float) -> Array | None:
        with np.errstate(over="ignore", invalid="ignore"):
            A, a, B, b, w = pack(_plain(X), _plain(Y), _plain(W.reshape(len(W), -1)), sqrt(_LN2) * width)
        if not min(a.min(), b.min()) >= -EXPANDABLE / _LN2:  # so written for NaN
            return None
        out = np.zeros((w.shape[1], *a.shape))
        add(A, a, B, b, w, out)
        return out.reshape(w.shape[1], -1)[:, : len(X)].T.reshape(len(X), *W.shape[1:])

    return sums


def numba_or_none() -> Any:
    """The module numba, or None where it does not compile."""
    try:
        import numba
    except (ImportError, OSError):  # not installed, or not for this numpy, or without its library
        return None
    if getattr(numba.config, "DISABLE_JIT", False):  # a debugger's setting; loops in Python would take hours
        return None
    return numba


def compile_loop(function: Callable[..., Any], signature: Any) -> Any:
    """Compile, and keep the code for later processes if there is a folder for it.

    "contract" allows fused multiply-add and nothing else: reordering would undo the rounding in the exponential.
    """
    import numba

    def compiled(keep: bool) -> Any:
        return numba.njit(signature, nogil=True, fastmath={"contract"}, cache=keep)(function)

    try:
        return compiled(keep=True)
    except Exception:  # no folder, or a full one; or a damaged file in it, which may fail in any way
        return compiled(keep=False)


def _plain(array: Array) -> Array:
    return np.require(array, np.float64, ["C_CONTIGUOUS", "ALIGNED"])

"""Base class of features: maps from rows to m numbers whose inner products approximate kernel values."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Self
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from muhat._support.parameters import ValueParametersMixin
from muhat._support.types import Array
from muhat._support.validation import check_overflow, check_rows, unchanged_on_error
from muhat.kernels.base import Kernel, check_kernel
from muhat.kernels.serialization import encode_kernel
from muhat.linalg.blocks import blocks

ROWS = 512
"""Rows of a block of features, which stays in the cache."""


class BaseFeatures(ValueParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Base of features: ``transform`` maps rows x to z(x) with :math:`k(x, y) \approx z(x)^\top z(y)`.

    ``fingerprint_`` is a hash of all that determines ``transform``: sketches merge only where it is the same.
    """

    kernel: Kernel
    kernel_: Kernel
    _arrays: tuple[str, ...]  # names of what, besides the kernel, determines transform
    _n_features_out: int
    _fit_id: str = ""
    _hash: str | None = None

    @unchanged_on_error
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks or draw the frequencies; X also gives a bandwidth "median"."""
        rows = check_rows(X, estimator=self)
        check_kernel("kernel", self.kernel)
        self.kernel_ = self.kernel.resolve(rows)
        with np.errstate(over="ignore"):
            check_overflow(self.kernel_, self.kernel_.diagonal(rows))
        self._fit(rows)
        self._fit_id, self._hash = uuid4().hex, None
        return self

    @property
    def fingerprint_(self) -> str:
        """Hash of all that determines ``transform``, computed when a sketch asks for it."""
        check_is_fitted(self, "kernel_")
        if self._hash is None:
            self._hash = self._fingerprint()
        return self._hash

    @property
    def n_features_out_(self) -> int:
        """Number of features, m."""
        check_is_fitted(self, "kernel_")
        return self._n_features_out

    def transform(self, X: Any) -> Array:
        """Compute the features of rows, an array of shape (n, m), in blocks that need no other memory."""
        check_is_fitted(self, "kernel_")
        return self.evaluate(check_rows(X, estimator=self, reset=False))

    def evaluate(self, rows: Array) -> Array:
        """Features of rows that were checked before."""
        raise TypeError(f"{type(self).__name__} must define evaluate(rows)")

    def _totals(self, rows: Array) -> tuple[Array, float]:
        """Sums of z and of ‖z‖² over the rows."""
        total, squares = np.zeros(self._n_features_out), 0.0
        for block in blocks(len(rows), ROWS):
            Z = self.evaluate(rows[block])
            total, squares = total + Z.sum(axis=0), squares + float(np.vdot(Z, Z))
        return total, squares

    def _fingerprint(self) -> str:
        encoded = encode_kernel(self.kernel_)  # a function has no content to compare: only copies of this fit are equal
        content = self._fit_id if encoded is None else json.dumps([type(self).__name__, encoded], sort_keys=True)
        digest = hashlib.sha256(content.encode())
        for name in self._arrays:
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            digest.update(str(array.shape).encode() + array.tobytes())
        return digest.hexdigest()[:16]

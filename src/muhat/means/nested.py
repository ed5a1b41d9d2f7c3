"""Mean estimators passed to other estimators as ``mean=``: the kernel is that of the other, None the plain average."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from muhat._support.types import Array
from muhat._support.validation import check_counts, check_overflow
from muhat.grams import MatrixGram, RowsGram
from muhat.kernels.base import Kernel
from muhat.linalg import gram
from muhat.linalg.blocks import blocks
from muhat.means.base import BaseKernelMean, MeanFit
from muhat.rkhs.elements import Element, embed


def check_mean(name: str, mean: Any) -> None:
    """Raise a ValueError unless ``mean`` is None or a mean estimator."""
    if mean is not None and not isinstance(mean, BaseKernelMean):
        raise ValueError(f"{name}={mean!r} must be None (the plain average) or an estimator such as ShrunkKernelMean()")


def mean_weights(mean: BaseKernelMean | None, K: Array, sample_weight: Any = None) -> Array:
    """Weights β that the estimator gives the rows of a Gram matrix, taken as valid; a single row has weight 1."""
    return mean_from_gram(mean, K, sample_weight).weights


def mean_from_gram(mean: BaseKernelMean | None, K: Array, sample_weight: Any = None) -> MeanFit:
    """As :func:`mean_weights`, with what the estimator chose; the result does not keep the matrix."""
    if mean is None or len(K) == 1:
        return MeanFit(np.full(len(K), 1.0 / len(K)))
    check_overflow("the Gram matrix", np.diag(K))
    fit = mean.estimate_weighted(MatrixGram(K, check_counts(sample_weight, len(K))))
    return replace(fit, gram=None, entered=None)


def bag_weights(mean: BaseKernelMean | None, kernel: Kernel, rows: Array, offsets: NDArray[np.intp]) -> Array:
    """Weights β that the estimator gives the rows of each bag, where bag i is ``rows[offsets[i]:offsets[i + 1]]``.

    Bags of one size are estimated together, from a stack of their Gram matrices. A single row has weight 1.
    """
    sizes = np.diff(offsets)
    weights = np.repeat(1.0 / sizes, sizes)
    if mean is None:
        return weights
    for size in np.unique(sizes[sizes > 1]).tolist():
        firsts = offsets[:-1][sizes == size]
        at_once = max(_STACKED // size**2, 1) if size <= gram.BLOCK else 1
        for part in blocks(len(firsts), at_once):
            members = firsts[part, None] + np.arange(size)
            weights[members] = mean.weights_from_gram(gram.dense_stack(kernel, rows[members]))
    return weights


_STACKED = 2**20
"""Numbers of a stack of Gram matrices: 8 MB."""


def mean_element(mean: BaseKernelMean | None, kernel: Kernel, X: Array, sample_weight: Any = None) -> Element:
    """The estimate in the space of a resolved kernel, from checked rows; a single row is its own mean."""
    if mean is None or len(X) == 1:
        return embed(kernel, X)
    return mean.estimate_weighted(RowsGram(kernel, X, check_counts(sample_weight, len(X)))).mean


class NestedMeansMixin:
    """``sample_weight`` of ``fit`` goes to the nested mean estimators that request it, as scikit-learn routes metadata.

    Under ``sklearn.set_config(enable_metadata_routing=True)`` a mean requests it by
    ``ShrunkKernelMean().set_fit_request(sample_weight=True)``. The bandwidth of the outer kernel does not depend on it.
    """

    _nested: ClassVar[tuple[str, ...]] = ("mean",)

    def get_metadata_routing(self) -> MetadataRouter:
        """Which nested estimator requests which metadata of ``fit``."""
        router = MetadataRouter(owner=self)
        to_fit = MethodMapping().add(caller="fit", callee="fit").add(caller="fit_transform", callee="fit")
        given = {name: getattr(self, name) for name in self._nested if getattr(self, name) is not None}
        return router.add(method_mapping=to_fit, **given) if given else router

    def _sample_weights(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The ``sample_weight`` for each nested estimator, None where it requests none."""
        if metadata and not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"{', '.join(metadata)} goes to the estimator passed as mean= only where scikit-learn routes metadata: "
                f"sklearn.set_config(enable_metadata_routing=True), and request it there, for example "
                f"mean=muhat.KernelMean().set_fit_request(sample_weight=True)"
            )
        routed = process_routing(self, "fit", **metadata) if metadata else {}
        return {name: routed[name]["fit"].get("sample_weight") if name in routed else None for name in self._nested}

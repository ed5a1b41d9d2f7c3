"""A mean estimator as a recipe: what ``mean=`` means in an estimator that builds on kernel means.

The host's kernel replaces the recipe's own, and ``None`` is the plain average.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from muhat.elements import Element, embed
from muhat.kernels.base import Kernel
from muhat.means.base import BaseKernelMean
from muhat.parameters import Value
from muhat.types import Array
from muhat.validation import check_counts, check_overflow


def check_recipe(name: str, mean: Any) -> None:
    """Raise a ValueError unless ``mean`` is None or a mean estimator."""
    if mean is not None and not isinstance(mean, BaseKernelMean):
        raise ValueError(f"{name}={mean!r} must be None (the plain average) or an estimator such as ShrunkKernelMean()")


class FittedWeights(NamedTuple):
    """Weights of rows, and the recipe that chose them, without ``kernel_`` and ``mean_``; None: the plain average."""

    weights: Array
    recipe: BaseKernelMean | None


def mean_weights(mean: BaseKernelMean | None, K: Array, sample_weight: Any = None) -> Array:
    """Weights β that the recipe gives the rows of a Gram matrix, taken as valid; a single row has weight 1."""
    return fitted_weights(mean, K, sample_weight).weights


def fitted_weights(mean: BaseKernelMean | None, K: Array, sample_weight: Any = None) -> FittedWeights:
    """As :func:`mean_weights`, and the fitted recipe, for hosts that show what it chose."""
    if mean is None or len(K) == 1:
        return FittedWeights(np.full(len(K), 1.0 / len(K)), None)
    check_overflow("the Gram matrix", np.diag(K))
    parameters = mean.get_params(deep=False)
    recipe = type(mean)(**{name: _copied(value) for name, value in parameters.items()})
    counts = check_counts(sample_weight, len(K))
    if counts is None:
        recipe.weights_ = recipe.weights_from_gram(K)
    else:
        seen = recipe._seen_rows(counts)
        part = K[np.ix_(seen.index, seen.index)]
        recipe.weights_ = seen.scattered(recipe.weights_from_gram(part, seen.counts))
    return FittedWeights(recipe.weights_, recipe)


def _copied(parameter: Any) -> Any:
    """As ``sklearn.base.clone`` has it; a value never changes, so that none is copied."""
    return parameter if isinstance(parameter, Value) else deepcopy(parameter)


def mean_element(mean: BaseKernelMean | None, kernel: Kernel, X: Array, sample_weight: Any = None) -> Element:
    """The recipe's estimate in the space of a resolved kernel, from checked rows; a single row is its own mean."""
    if mean is None or len(X) == 1:
        return embed(kernel, X)
    return clone(mean)._fit_points(kernel, X, check_counts(sample_weight, len(X))).mean_


def check_unweighted(sample_weights: dict[str, Any]) -> None:
    """Raise a ValueError where a recipe that works in features is to weigh rows."""
    if any(weights is not None for weights in sample_weights.values()):
        raise ValueError("sample_weight cannot be used with features, which sum rows of equal weight; leave one out")


class RecipeHostMixin:
    """``sample_weight`` of ``fit`` goes to the recipes that request it, as scikit-learn routes metadata.

    Under ``sklearn.set_config(enable_metadata_routing=True)`` a recipe requests it by
    ``ShrunkKernelMean().set_fit_request(sample_weight=True)``. The bandwidth of the host's kernel does not know of it.
    """

    _recipes: ClassVar[tuple[str, ...]] = ("mean",)

    def get_metadata_routing(self) -> MetadataRouter:
        """Which recipe requests which metadata of ``fit``."""
        router = MetadataRouter(owner=self)
        to_fit = MethodMapping().add(caller="fit", callee="fit").add(caller="fit_transform", callee="fit")
        given = {name: getattr(self, name) for name in self._recipes if getattr(self, name) is not None}
        return router.add(method_mapping=to_fit, **given) if given else router

    def _sample_weights(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The ``sample_weight`` for each recipe, None where there is none."""
        if metadata and not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"{', '.join(metadata)} goes to a recipe only where scikit-learn routes metadata: "
                f"sklearn.set_config(enable_metadata_routing=True), and request it there, for example "
                f"mean=muhat.KernelMean().set_fit_request(sample_weight=True)"
            )
        routed = process_routing(self, "fit", **metadata) if metadata else {}
        return {name: routed[name]["fit"].get("sample_weight") if name in routed else None for name in self._recipes}

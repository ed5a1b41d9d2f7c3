"""Frozen values (kernels, filters) as parameters of scikit-learn estimators.

scikit-learn sets nested parameters by changing objects in place. A value never changes, so an estimator
that holds one replaces it by a changed copy: ``set_params(kernel__bandwidth=2.0)`` works in a parameter
grid, and nobody else who holds the old kernel notices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, clone


def _split_nested(params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = defaultdict(dict)
    for key, value in params.items():
        name, nests, rest = key.partition("__")
        if nests:
            nested[name][rest] = value
        else:
            own[name] = value
    return own, nested


class Value:
    """Base of frozen dataclasses that scikit-learn can read as nested parameters.

    A dataclass writes its own ``__repr__``, with all digits. Those declared by ``@dataclass(frozen=True, repr=False)``
    have the shorter one of this class.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __repr__(self) -> str:
        """Parameters with six digits; equality sees all of them, and so does :meth:`exact_repr`."""
        return self._written(lambda value: f"{value:.6g}" if len(repr(value)) > len("-1.23456e-00") else repr(value))

    def exact_repr(self) -> str:
        """The parameters with all digits."""
        return self._written(repr) if type(self).__repr__ is Value.__repr__ else repr(self)

    def _written(self, number: Callable[[float], str]) -> str:
        def text(value: Any) -> str:
            if isinstance(value, Value) and type(value).__repr__ is Value.__repr__:
                return value._written(number)
            return number(float(value)) if isinstance(value, float) else repr(value)

        params = ", ".join(f"{name}={text(value)}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({params})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep`` those of nested values too, as ``outer__inner``."""
        own = fields(self) if is_dataclass(self) else ()  # a class without the decorator has no known parameters
        params = {field.name: getattr(self, field.name) for field in own}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return params

    def with_params(self, **params: Any) -> Self:
        """Return a copy with some parameters changed; ``outer__inner`` reaches into nested values."""
        own, nested = _split_nested(params)
        unknown = (set(own) | set(nested)) - set(self.get_params(deep=False))
        if unknown:
            valid = sorted(self.get_params(deep=False))
            raise ValueError(f"{type(self).__name__} has no parameter {sorted(unknown)[0]!r}; it has {valid}")
        changed: Any = replace(self, **own)
        inner = {name: _with_params(getattr(changed, name), part) for name, part in nested.items()}
        return replace(changed, **inner)

    def __sklearn_clone__(self) -> Self:
        return self


def _with_params(value: Any, params: dict[str, Any]) -> Any:
    if isinstance(value, Value):
        return value.with_params(**params)
    return clone(value).set_params(**params)


class ValueParametersMixin:
    """``set_params`` for estimators whose parameters may be frozen values."""

    def set_params(self: Any, **params: Any) -> Any:
        """Set parameters; ``kernel__bandwidth`` replaces the kernel by a changed copy."""
        own, nested = _split_nested(params)
        held = {**self.get_params(deep=False), **own}
        inside_values = {name: part for name, part in nested.items() if isinstance(held.get(name), Value)}
        for name, part in inside_values.items():
            own[name] = held[name].with_params(**part)
        for name in nested.keys() - inside_values.keys():
            if name in held and not hasattr(held[name], "set_params"):
                raise ValueError(f"{name}={held[name]!r} has no parameters, so {sorted(nested[name])} cannot be set")
            own |= {f"{name}__{inner}": value for inner, value in nested[name].items()}
        BaseEstimator.set_params(self, **own)
        return self

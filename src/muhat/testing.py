"""Assertions on tables for test suites."""

from __future__ import annotations

from typing import Any

from muhat.apps.compare.text_report import listed
from muhat.apps.compare.two_tables import compare

__all__ = ["assert_same_distribution"]


def assert_same_distribution(
    a: Any,
    b: Any,
    at_least: float = 0.0,
    level: float = 0.05,
    *,
    strict: bool = True,
    random_state: Any = 0,
    **options: Any,
) -> None:
    """Raise an AssertionError where two tables differ, by more than ``at_least`` if given, or in their columns.

    Parameters
    ----------
    a, b : data frame, array, or path
        As :func:`muhat.compare` takes them.
    at_least : float, default 0.0
        The smallest effect that matters. Without drift the assertion fails with probability ``level`` at most.
    level : float, default 0.05
        Probability of a false failure; a small one, such as 1e-3, suits tests that run often.
    strict : bool, default True
        Fail also where a column could not be compared, because one table lacks it or holds values of another kind in
        it. With False such columns are passed over; ``exclude`` passes over those that it names.
    random_state : default 0
        The seed; a test that runs again gives the same answer.
    **options
        Further options of :func:`muhat.compare`.

    See Also
    --------
    muhat.compare : The comparison itself.

    Examples
    --------
    >>> import numpy as np, muhat as mh
    >>> rng = np.random.default_rng(0)
    >>> expected, found = rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    >>> mh.testing.assert_same_distribution(expected, found, at_least=0.1)
    >>> mh.testing.assert_same_distribution(expected, found + 1.0, at_least=0.1)
    Traceback (most recent call last):
        ...
    AssertionError: a and b differ by more than 10 % (p = ...

    A column that is lost fails as well:

    >>> mh.testing.assert_same_distribution({"x": expected[:, 0], "y": expected[:, 1]}, {"x": found[:, 0]}, 0.1)
    Traceback (most recent call last):
        ...
    AssertionError: 'y' could not be compared; pass exclude=['y'] or strict=False to pass over it
    ...
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and not this one
    result = compare(a, b, at_least, level, random_state=random_state, **options)
    lost = [column.name for column in result.not_compared] if strict else []
    if lost:
        them = f"{listed(lost)} could not be compared; pass exclude={lost!r} or strict=False to pass over"
        raise AssertionError("\n".join([f"{them} {'it' if len(lost) == 1 else 'them'}", *result.report.sentences]))
    if result.differs:
        raise AssertionError("\n".join(result.report.sentences))

"""Assertions on tables for test suites."""

from __future__ import annotations

from typing import Any

from muhat.comparison.text_report import summary
from muhat.comparison.two_tables import compare

__all__ = ["assert_same_distribution"]


def assert_same_distribution(
    a: Any, b: Any, at_least: float = 0.0, level: float = 0.05, *, random_state: Any = 0, **options: Any
) -> None:
    """Raise an AssertionError where two tables differ, or where an effect is shown to exceed ``at_least``.

    Parameters
    ----------
    a, b : data frame, array, or path
        As :func:`muhat.compare` takes them.
    at_least : float, default 0.0
        The smallest effect that matters. Without drift the assertion fails with probability ``level`` at most.
    level : float, default 0.05
        Probability of a false failure; a small one, such as 1e-3, suits tests that run often.
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
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and not this one
    result = compare(a, b, at_least, level, random_state=random_state, **options)
    if result.differs:
        raise AssertionError("\n".join(summary(result)))

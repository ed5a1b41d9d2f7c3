"""Comparison of two tables: columns, pairs of columns and all columns together, with effects and their intervals."""

from muhat.apps.compare.result import ColumnResult, Comparison, PairResult
from muhat.apps.compare.two_tables import compare

__all__ = ["ColumnResult", "Comparison", "PairResult", "compare"]

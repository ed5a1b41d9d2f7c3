"""Comparison of two tables: columns, pairs of columns and all columns together, with effects and their intervals."""

from muhat.comparison.result import ColumnResult, Comparison, MissingResult, PairResult
from muhat.comparison.two_tables import compare

__all__ = ["ColumnResult", "Comparison", "MissingResult", "PairResult", "compare"]

"""Distances between many groups of rows: empirical-Bayes estimates, intervals and permutation p-values."""

from muhat.groups.group_distances import group_distances
from muhat.groups.group_results import GroupDistances
from muhat.groups.sums import GroupSums

__all__ = ["GroupDistances", "GroupSums", "group_distances"]

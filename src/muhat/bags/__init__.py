"""Distributions as data."""

from muhat.bags.data import bags_from_groups
from muhat.bags.kernel import DistributionKernel
from muhat.bags.machines import OneClassSupportMeasureMachine, SupportMeasureClassifier, SupportMeasureRegressor
from muhat.bags.pooling import pooled_means

__all__ = [
    "DistributionKernel",
    "OneClassSupportMeasureMachine",
    "SupportMeasureClassifier",
    "SupportMeasureRegressor",
    "bags_from_groups",
    "pooled_means",
]

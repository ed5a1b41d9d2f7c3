"""Models on bags (groups) of rows: distribution kernels, support measure machines, priors, ridge regression."""

from muhat.bags.anomaly import GroupAnomalyDetector
from muhat.bags.data import BagScaler, bags_from_groups
from muhat.bags.distribution_kernel import DistributionKernel
from muhat.bags.prior import BagPrior, pooled_means
from muhat.bags.ridge import DistributionRidge, DistributionRidgeClassifier
from muhat.bags.separate_means import bag_means
from muhat.bags.support_measure import OneClassSupportMeasureMachine, SupportMeasureClassifier

__all__ = [
    "BagPrior",
    "BagScaler",
    "DistributionKernel",
    "DistributionRidge",
    "DistributionRidgeClassifier",
    "GroupAnomalyDetector",
    "OneClassSupportMeasureMachine",
    "SupportMeasureClassifier",
    "bag_means",
    "bags_from_groups",
    "pooled_means",
]

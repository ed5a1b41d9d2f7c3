"""Gram matrices of bags over the workers of Dask."""

from muhat.distributed.cluster import bag_gram

__all__ = ["bag_gram"]

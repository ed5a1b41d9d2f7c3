"""Gram matrices of bags and cells of experiments over Dask."""

from muhat.distributed.cluster import bag_gram, map_cells

__all__ = ["bag_gram", "map_cells"]

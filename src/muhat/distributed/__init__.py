"""The same over Dask."""

from muhat.distributed.cluster import MMD, bag_gram, map_cells, mmd_distance, mmd_test, sketch_collection

__all__ = [
    "MMD",
    "bag_gram",
    "map_cells",
    "mmd_distance",
    "mmd_test",
    "sketch_collection",
]

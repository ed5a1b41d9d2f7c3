"""The same over Dask."""

from muhat.distributed.cluster import (
    MMD,
    bag_gram,
    bag_prior,
    bag_vectors,
    map_cells,
    mmd_distance,
    sketch_collection,
)

__all__ = [
    "MMD",
    "bag_gram",
    "bag_prior",
    "bag_vectors",
    "map_cells",
    "mmd_distance",
    "sketch_collection",
]

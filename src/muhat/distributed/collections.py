"""What a client of Dask is, and a collection: blocks of rows that lie with its workers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from copy import copy
from importlib import import_module
from typing import Any


def load_module(module: str) -> Any:
    """A module of Dask, or an ImportError that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f'muhat.distributed needs Dask ({error}); pip install "muhat[dask]"') from error


def check_client(client: Any) -> Any:
    """Return a connected client, by default the current one, or raise a ValueError."""
    distributed = load_module("distributed")
    try:
        client = distributed.default_client() if client is None else client
    except ValueError as error:
        remedy = "distributed.Client() starts workers here, Client('tcp://host:8786') finds a scheduler elsewhere"
        raise ValueError(f"client=None, and there is no current client; make one: {remedy}") from error
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise ValueError(f"client={client!r} must be a distributed.Client that is not asynchronous")
    if client.status != "running":
        raise ValueError(f"client={client!r} has no scheduler (its status is {client.status!r}); make a new Client")
    return client


def one_copy(client: Any, thing: Any) -> Any:
    """One copy for all tasks. It is a task's result, not scattered data, which a lost worker would take with it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # it is sent once, and has to be
        return client.submit(copy, thing, pure=False)


def is_remote(thing: Any) -> bool:
    """Whether this stands for something that workers have or will make."""
    return load_module("dask").is_dask_collection(thing) or isinstance(thing, load_module("distributed").Future)


def row_blocks(name: str, data: Any) -> list[Any]:
    """The blocks of a collection, on the workers or on their way there."""
    if isinstance(data, load_module("dask.array").Array):
        return _chunks(name, data)
    if hasattr(data, "shape") or is_remote(data) or isinstance(data, str | dict) or not isinstance(data, Iterable):
        remedy = "dask.array.from_array(X, chunks=(10_000, -1)) cuts an array, frame.to_delayed() a Dask data frame"
        raise ValueError(f"{name} is one {type(data).__name__} and must be a Dask array or a list of blocks; {remedy}")
    blocks = [block if is_remote(block) else load_module("dask").delayed(block, traverse=False) for block in data]
    if not blocks:
        raise ValueError(f"{name} is empty; pass a list with at least one block of shape (n_i, d)")
    return blocks


def _chunks(name: str, X: Any) -> list[Any]:
    if X.ndim != 2:
        raise ValueError(f"{name} has shape {X.shape} and must have two dimensions, rows and columns")
    if any(math.isnan(size) for size in X.shape):
        raise ValueError(f"{name} has chunks of unknown sizes; call {name}.compute_chunk_sizes() first")
    if len(X.chunks[1]) > 1:
        raise ValueError(f"{name} has its columns in chunks; use {name}.rechunk({{0: 'auto', 1: -1}})")
    if not X.size:
        raise ValueError(f"{name} has shape {X.shape} and must have at least one row and one column")
    return [block for block, n in zip(X.to_delayed().ravel(), X.chunks[0], strict=True) if n]

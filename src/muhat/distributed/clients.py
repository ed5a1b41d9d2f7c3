"""Clients of Dask, and what can be sent to their workers."""

from __future__ import annotations

import warnings
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

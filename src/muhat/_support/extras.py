"""Optional packages: imported when needed, with an error that says how to install what is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_extra(module: str, extra: str, user: str) -> Any:
    """Import a module for a function or command, or raise an ImportError that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{user} needs {module.partition('.')[0]} ({error}); {remedy(extra)}") from error


def remedy(extra: str) -> str:
    """Command that installs an extra: from a package index, and in a clone.

    >>> print(remedy("files"))
    pip install "muhat[files]", or in a clone of muhat: pip install ".[files]"
    """
    return f'pip install "muhat[{extra}]", or in a clone of muhat: pip install ".[{extra}]"'

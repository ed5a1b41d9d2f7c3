"""Doctests that need Dask are skipped where it is missing; in test files ``require_dask`` does it."""

from importlib.util import find_spec

import pytest

NEEDS_DASK = {"distributed.py", "distributed.md"}


def pytest_collection_modifyitems(items):
    if find_spec("distributed") is None:
        missing = pytest.mark.skip(reason='Dask is missing: pip install "muhat[dask]"')
        for item in items:
            if item.path.name in NEEDS_DASK:
                item.add_marker(missing)

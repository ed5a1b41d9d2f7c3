"""What pytest collects: not what ``make docs`` writes, and doctests that need Dask only where it is installed."""

from importlib.util import find_spec

import pytest

collect_ignore = ["docs/gallery", "docs/generated", "site"]
NEEDS_DASK = {"scaling.md"}


def pytest_collection_modifyitems(items):
    if find_spec("distributed") is None:
        missing = pytest.mark.skip(reason='Dask is missing: pip install "muhat[dask]"')
        for item in items:
            if item.path.name in NEEDS_DASK:
                item.add_marker(missing)

"""Fixtures that test files share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """The folder with the tables and bags that cannot be part of the project."""
    named = os.environ.get("MUHAT_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not (folder / "uci").is_dir():
        pytest.skip(f"the tables and bags are not at {folder.name!r}: set MUHAT_DATA to the folder that holds them")
    return folder

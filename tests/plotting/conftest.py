"""Pictures are drawn to memory, and closed after each test."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    mpl.pyplot.close("all")

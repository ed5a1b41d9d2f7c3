"""Display classes for plots with matplotlib, one for each kind of picture."""

from muhat.plotting.display import Display
from muhat.plotting.functions import FunctionDisplay
from muhat.plotting.result_displays import ComponentsDisplay, DriftDisplay, GroupDistancesDisplay

__all__ = [
    "ComponentsDisplay",
    "Display",
    "DriftDisplay",
    "FunctionDisplay",
    "GroupDistancesDisplay",
]

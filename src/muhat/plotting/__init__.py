"""Display classes for plots with matplotlib, one for each kind of picture."""

from muhat.plotting.display import Display
from muhat.plotting.functions import FunctionDisplay
from muhat.plotting.group_displays import GroupDistancesDisplay
from muhat.plotting.result_displays import ComponentsDisplay, DriftDisplay, LooPathDisplay

__all__ = [
    "ComponentsDisplay",
    "Display",
    "DriftDisplay",
    "FunctionDisplay",
    "GroupDistancesDisplay",
    "LooPathDisplay",
]

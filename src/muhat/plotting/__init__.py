"""Display classes for plots with matplotlib, one for each kind of picture."""

from muhat.plotting.display import Display
from muhat.plotting.functions import FunctionDisplay
from muhat.plotting.group_displays import GroupDistancesDisplay
from muhat.plotting.result_displays import BagGramDisplay, ComponentsDisplay, DriftDisplay, LooPathDisplay
from muhat.plotting.scatter import ScatterDisplay

__all__ = [
    "BagGramDisplay",
    "ComponentsDisplay",
    "Display",
    "DriftDisplay",
    "FunctionDisplay",
    "GroupDistancesDisplay",
    "LooPathDisplay",
    "ScatterDisplay",
]

"""Display classes for plots with matplotlib, one for each kind of picture."""

from muhat.plotting.bags import BagGramDisplay, BagMapDisplay, WhitenedBagsDisplay
from muhat.plotting.display import Display
from muhat.plotting.functions import BandsDisplay, FunctionDisplay
from muhat.plotting.monitor import ColumnWitnessDisplay, DriftDisplay
from muhat.plotting.result_displays import ComponentsDisplay, KernelPCADisplay, LooPathDisplay

__all__ = [
    "BagGramDisplay",
    "BagMapDisplay",
    "BandsDisplay",
    "ColumnWitnessDisplay",
    "ComponentsDisplay",
    "Display",
    "DriftDisplay",
    "FunctionDisplay",
    "KernelPCADisplay",
    "LooPathDisplay",
    "WhitenedBagsDisplay",
]

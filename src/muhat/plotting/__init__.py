"""Display classes for plots with matplotlib."""

from muhat.plotting.bags import BagGramDisplay, BagMapDisplay, WhitenedBagsDisplay
from muhat.plotting.components import KernelPCADisplay
from muhat.plotting.display import Display
from muhat.plotting.element_displays import ElementDisplay, KernelMeanDisplay, MatchedDensityDisplay, WitnessDisplay
from muhat.plotting.means import BandsDisplay, LooPathDisplay, SharesDisplay
from muhat.plotting.monitor import ColumnWitnessDisplay, DriftDisplay
from muhat.plotting.tests import ComponentsDisplay, ResultWitnessDisplay

__all__ = [
    "BagGramDisplay",
    "BagMapDisplay",
    "BandsDisplay",
    "ColumnWitnessDisplay",
    "ComponentsDisplay",
    "Display",
    "DriftDisplay",
    "ElementDisplay",
    "KernelMeanDisplay",
    "KernelPCADisplay",
    "LooPathDisplay",
    "MatchedDensityDisplay",
    "ResultWitnessDisplay",
    "SharesDisplay",
    "WhitenedBagsDisplay",
    "WitnessDisplay",
]

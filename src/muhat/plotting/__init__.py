"""Display objects."""

from muhat.plotting.bags import BagGramDisplay, WhitenedBagsDisplay
from muhat.plotting.components import KernelPCADisplay
from muhat.plotting.display import Display
from muhat.plotting.elements import ElementDisplay, KernelMeanDisplay, MatchedDensityDisplay, WitnessDisplay
from muhat.plotting.means import BandsDisplay, LooPathDisplay, SharesDisplay

__all__ = [
    "BagGramDisplay",
    "BandsDisplay",
    "Display",
    "ElementDisplay",
    "KernelMeanDisplay",
    "KernelPCADisplay",
    "LooPathDisplay",
    "MatchedDensityDisplay",
    "SharesDisplay",
    "WhitenedBagsDisplay",
    "WitnessDisplay",
]

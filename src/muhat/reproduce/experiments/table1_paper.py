"""The numbers of the paper's table 1."""

from __future__ import annotations

from typing import NamedTuple

KERNEL_NAMES = ("LIN", "POLY2", "POLY3", "RBF")


ESTIMATOR_NAMES = ("KME", "S", "F_theorem4")  # the paper's F-KMSE chooses λ by Theorem 4


# A star follows what the paper prints in bold: a significant difference from KME.
_PRINTED = """
ionosphere 33.2440 33.0325  33.1436  53.1266  53.7067   50.8695   51.6800  49.9149  47.4461* 40.8961 40.5578* 39.6804*
sonar      72.6630 72.8770  72.5015  120.3454 108.8246* 109.9980* 102.4499 90.3920* 91.1547  71.3048 70.5721  70.5830*
australian 18.3703 18.3341* 18.3719  18.5928  18.6028   18.4987   41.1563  34.4303* 34.5460* 17.5138 17.5637  17.4026
specft     56.6138 55.7374  55.8667* 67.3901  65.9662   65.2056   63.9273  63.5571  62.1480* 57.5569 56.1386* 55.5808*
wdbc       30.9778 30.9266  30.4400* 93.0541  91.5803   87.5265*  58.8235  54.1237  50.3911* 30.8227 30.5968* 30.2646*
wine       15.9225 15.8850  16.0431  24.2841  24.1325   23.5163*  35.2069  32.9465  32.4702  17.1523 16.9177  16.6312*
satimage   19.6353 19.8721  19.7943  149.5986 143.2277  146.0648  52.7973  57.2482  45.8946  20.3306 20.5020  20.2226*
segment    22.9131 22.8219  22.0696* 61.2712  59.4387   54.8621*  38.7226  38.6226  38.4217  17.6801 16.4149* 15.6814*
vehicle    16.4145 16.2888  16.3210  83.1597  79.7248*  79.6679*  70.4340  63.4322  48.0177  15.9256 15.8331  15.6516*
vowel      12.4227 12.4219  12.4264  32.1389  28.0474*  29.3492*  25.8728  24.0684* 23.9747* 12.3976 12.3823  12.3677
housing    15.5249 15.1618  15.3176  39.9582  37.1360   32.1028   50.8481  49.0884  35.1366  14.5576 14.3810  13.9379*
bodyfat    17.6426 17.0419* 17.2152  44.3295  43.7959   42.3331*  27.4339  25.6530  24.7955  16.2725 15.9170* 15.8665*
abalone    4.3348  4.3274   4.3187   14.9166  14.4041   11.4431   20.6071  23.2487  23.6291  4.6928  4.6056   4.6017
glass      10.4078 10.4451  10.4067* 33.3480  31.6110   30.5075   45.0801  34.9608  25.5677* 8.6167  8.4992   8.2469*
"""


class Printed(NamedTuple):
    """A number of the paper, and whether it is in bold."""

    value: float
    bold: bool


def _parsed(line: str) -> tuple[str, dict[str, dict[str, Printed]]]:
    name, *words = line.split()
    numbers = iter([Printed(float(word.rstrip("*")), word.endswith("*")) for word in words])
    return name, {kernel: {estimator: next(numbers) for estimator in ESTIMATOR_NAMES} for kernel in KERNEL_NAMES}


PAPER = dict(_parsed(line) for line in _PRINTED.strip().splitlines())
"""``PAPER[set][kernel][estimator]``."""


SETS = tuple(PAPER)
"""The sets, in the order of the table."""


LARGE_SETS = ("satimage", "abalone")
"""Those that the paper marks by a star and calls relatively large."""

"""Type aliases shared by the annotations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
RandomState: TypeAlias = "int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None"

"""Names for the arrays that the whole house passes around."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Grades = NDArray[np.int8]  # 0 to 5; less = unjudged
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]  # Numbers of rows
Vectors = NDArray[np.float32]  # One row per text
Whole = TypeVar("Whole", np.int8, np.int32, np.uint64)

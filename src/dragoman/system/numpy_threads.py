"""numpy is imported without the threads that its own library of matrix products would start."""

from __future__ import annotations

import os
import sys
from typing import Final

VARIABLE: Final = "OPENBLAS_NUM_THREADS"


def import_numpy_without_threads() -> None:
    """Import numpy for work that multiplies no large matrices with it; the engine's are its own.

    OpenBLAS starts a thread for every core when it is loaded, and they spin for a while: a quarter
    of what importing numpy takes. Where the user says how many there should be, there are so many.
    """
    if "numpy" in sys.modules or VARIABLE in os.environ:
        return
    os.environ[VARIABLE] = "1"
    try:
        import numpy as np  # noqa: F401
    finally:
        del os.environ[VARIABLE]  # PyTorch may read it, and needs all cores

"""The mark of tests that need the compiled kernel."""

from __future__ import annotations

import pytest

from dragoman.inference.cpu.kernel_library import why_no_kernel

needs_kernel = pytest.mark.skipif(bool(why_no_kernel()), reason=why_no_kernel())

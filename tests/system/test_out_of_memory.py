"""What counts as out of memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from dragoman.system.out_of_memory import is_out_of_memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("no memory left"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("[enforce fail at alloc] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_every_way_to_run_out_of_memory_is_known(error: Exception) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: device-side assert triggered"),
        ValueError("DefaultCPUAllocator: can't allocate memory"),
        OSError("No space left on device"),
    ],
)
def test_other_errors_are_not_taken_for_it(error: Exception) -> None:
    assert not is_out_of_memory(error)


def test_running_out_of_memory_is_known_without_torch() -> None:
    script = (
        "import sys; from dragoman.system.out_of_memory import is_out_of_memory as out; "
        "assert out(MemoryError()) and not out(ValueError()) and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

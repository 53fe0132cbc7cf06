"""Dropout masks that are recomputed instead of stored.

Whether an element is kept is a hash of where it is, of which dropout of the step it belongs to and
of two random words on the device. The backward pass hashes again. The words are written before each
step, so that a captured CUDA graph draws new masks every time it is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = [
    "DropoutState",
    "drop_threshold",
    "dropout_state",
    "keep_mask",
    "reference_mask",
    "restart_dropout",
    "seed_dropout",
]


@dataclass(slots=True)
class DropoutState:
    """Where the masks of one device come from."""

    words: Tensor
    """Two random 32-bit words, int32."""
    site: int = 0
    """How many masks have been drawn with these words: each has its own."""

    def next_site(self) -> int:
        """The number of the next mask."""
        self.site += 1
        return self.site


_NOISES: dict[torch.device, DropoutState] = {}


def dropout_state(device: torch.device) -> DropoutState:
    """The noise of a device, seeded from torch's generator when first asked for."""
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    if device not in _NOISES:
        words = torch.empty(2, dtype=torch.int32, device=device)
        _NOISES[device] = DropoutState(words.copy_(_words(torch.initial_seed())))
    return _NOISES[device]


def seed_dropout(device: torch.device, *numbers: int) -> None:
    """Draw the masks from here on as a function of the numbers alone; does not wait."""
    value = 0
    for number in numbers:
        value = _mix_bits(value ^ _mix_bits(number))
    here = dropout_state(device)
    words = _words(value)
    here.words.copy_(words.pin_memory() if device.type == "cuda" else words, non_blocking=True)
    here.site = 0


def restart_dropout(device: torch.device) -> None:
    """Count the masks of a device from the first again."""
    dropout_state(device).site = 0


def drop_threshold(rate: float) -> int:
    """The hash below which an element is dropped."""
    return min(round(rate * 2**32), 2**32 - 1)


@triton.jit
def keep_mask(words, site, index, limit):
    """Whether the element at `index` (uint32) is kept: a 32-bit hash of it is at least `limit`."""
    first = tl.load(words).to(tl.uint32, bitcast=True)
    second = tl.load(words + 1).to(tl.uint32, bitcast=True)
    x = index ^ (first + site.to(tl.uint32) * 2654435769)
    x = x ^ (x >> 16)
    x = x * 2146121005
    x = (x ^ (x >> 15)) + second
    x = x * 2221713035
    x = x ^ (x >> 16)
    return x >= limit.to(tl.uint32)


def reference_mask(words: Tensor, site: int, count: int, rate: float) -> Tensor:
    """What `keep_mask` says of the first `count` elements, in plain torch."""
    full = 2**32 - 1
    first, second = (int(word) & full for word in words.tolist())
    x = torch.arange(count, dtype=torch.int64) ^ ((first + site * 2654435769) & full)
    x = ((x ^ (x >> 16)) * 2146121005) & full
    x = ((x ^ (x >> 15)) + second) & full
    x = (x * 2221713035) & full
    return (x ^ (x >> 16)) >= drop_threshold(rate)


def _mix_bits(value: int) -> int:
    """A 64-bit finaliser (splitmix64): every bit of the result hangs on every bit of the value."""
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def _words(value: int) -> Tensor:
    value = _mix_bits(value)
    halves = [value & 0xFFFFFFFF, value >> 32]
    return torch.tensor([h - 2**32 if h >= 2**31 else h for h in halves], dtype=torch.int32)

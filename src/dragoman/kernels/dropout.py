"""Dropout masks are computed again by the backward pass instead of being stored.

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


@dataclass(slots=True)
class DropoutState:
    """Hold what the masks of one device are made from."""

    words: Tensor
    """These are two random 32-bit words, int32."""
    site: int = 0
    """So many masks have been drawn with these words: each has its own number."""

    def next_site(self) -> int:
        """Return the number of the next mask."""
        self.site += 1
        return self.site


_STATES: dict[torch.device, DropoutState] = {}


def dropout_state(device: torch.device) -> DropoutState:
    """Return the state of a device, seeded from torch's generator on first use."""
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    if device not in _STATES:
        words = torch.empty(2, dtype=torch.int32, device=device)
        _STATES[device] = DropoutState(words.copy_(_words(torch.initial_seed())))
    return _STATES[device]


def seed_dropout(device: torch.device, *numbers: int) -> None:
    """Make later masks a function of these numbers alone; this does not wait for the device."""
    value = 0
    for number in numbers:
        value = _mix_bits(value ^ _mix_bits(number))
    state = dropout_state(device)
    words = _words(value)
    state.words.copy_(words.pin_memory() if device.type == "cuda" else words, non_blocking=True)
    state.site = 0


def restart_dropout(device: torch.device) -> None:
    """Number the masks of a device from the first again, with the same words."""
    dropout_state(device).site = 0


def drop_threshold(rate: float) -> int:
    """Return the hash below which an element is dropped."""
    return min(round(rate * 2**32), 2**32 - 1)


@triton.jit
def keep_mask(words, site, index, limit):
    """Return whether elements at `index` (uint32) are kept: their hash is at least `limit`."""
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
    """Return what `keep_mask` says of the first `count` elements, in plain torch."""
    full = 2**32 - 1
    first, second = (int(word) & full for word in words.tolist())
    x = torch.arange(count, dtype=torch.int64) ^ ((first + site * 2654435769) & full)
    x = ((x ^ (x >> 16)) * 2146121005) & full
    x = ((x ^ (x >> 15)) + second) & full
    x = (x * 2221713035) & full
    return (x ^ (x >> 16)) >= drop_threshold(rate)


def _mix_bits(value: int) -> int:
    """Return splitmix64 of a value: every bit of the result depends on every bit of the value."""
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def _words(value: int) -> Tensor:
    value = _mix_bits(value)
    halves = [value & 0xFFFFFFFF, value >> 32]
    return torch.tensor([h - 2**32 if h >= 2**31 else h for h in halves], dtype=torch.int32)

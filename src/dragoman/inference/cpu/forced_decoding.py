"""Forced decoding scores translations that are given to the CPU engine, in one pass each.

A whole target is computed at once, since all its pieces are known: how probable each piece is, and
where the decoder looks in the source to say it, which is what word alignments are read off.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from dragoman.inference.cpu import kernel_library
from dragoman.inference.engine import ForcedDecoding
from dragoman.text.special_tokens import BOS, EOS

PIECES_AT_ONCE: Final = 1024
"""Pairs are computed together up to so many pieces of both sides, unless one has more."""


class SourceMemory:
    """Hold what a model's encoder makes of sentences, as the kernel's steps read it."""

    def __init__(
        self,
        library: Any,
        model: kernel_library.KernelModel,
        scratch: Any,
        sources: Sequence[Sequence[int]],
    ) -> None:
        size = model.decoder_layers * 2 * model.heads * model.d_k
        self.lengths = np.array([len(source) + 1 for source in sources], np.int32)
        flat = np.array([i for source in sources for i in (*source, EOS)], np.int32)
        self._arrays = [np.empty(size * length, np.uint16) for length in self.lengths.tolist()]
        pointer = ctypes.POINTER(ctypes.c_uint16)
        self.pointers = (pointer * len(sources))(*(a.ctypes.data_as(pointer) for a in self._arrays))
        library.dragoman_encode(
            *(model, scratch, len(sources)),
            *(self.lengths.ctypes.data, flat.ctypes.data, self.pointers),
        )


def force_decode(
    model: kernel_library.KernelModel,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    workers: int,
) -> list[ForcedDecoding]:
    """Return what the model says of each target as the translation of its source."""
    batches = list(_batches(sources, targets))
    results: list[ForcedDecoding | None] = [None] * len(sources)

    def work(batch: list[int]) -> None:
        found = _decode_batch(model, [sources[i] for i in batch], [targets[i] for i in batch])
        for i, one in zip(batch, found, strict=True):
            results[i] = one

    if len(batches) < 2 or workers < 2:
        list(map(work, batches))
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, batches))
    return [one for one in results if one is not None]


def _batches(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Iterator[list[int]]:
    """Yield the numbers of pairs that are computed together."""
    batch: list[int] = []
    pieces = 0
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        size = len(source) + len(target) + 2
        if batch and pieces + size > PIECES_AT_ONCE:
            yield batch
            batch, pieces = [], 0
        batch.append(i)
        pieces += size
    if batch:
        yield batch


def _decode_batch(
    model: kernel_library.KernelModel,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
) -> list[ForcedDecoding]:
    library = kernel_library.load_kernel()
    ids = np.array([i for target in targets for i in (BOS, *target)], np.int32)
    following = np.array([i for target in targets for i in (*target, EOS)], np.int32)
    rows = [len(target) + 1 for target in targets]
    starts = np.cumsum([0, *rows[:-1]])
    positions = np.concatenate([np.arange(count, dtype=np.int32) for count in rows])
    hypotheses = np.repeat(np.arange(len(rows), dtype=np.int32), rows)
    longest = max(rows)
    tables = np.zeros((len(rows), longest), np.int32)
    for number, (start, count) in enumerate(zip(starts.tolist(), rows, strict=True)):
        tables[number, :count] = np.arange(start, start + count)
    total = len(ids)
    width = 2 * model.heads * model.d_k
    cache = np.empty(model.decoder_layers * total * width, np.uint16)

    best_ids, best = np.empty((total, 1), np.int32), np.empty((total, 1), np.float32)
    log_probs = np.full(total, -np.inf, np.float32)
    attention = np.zeros((total, max(map(len, sources)) + 1), np.float32)
    scratch = library.dragoman_new_scratch(0)
    try:
        memory = SourceMemory(library, model, scratch, sources)
        step = kernel_library.StepInput(
            *(total, total, 1, 1, longest),
            *(ids.ctypes.data, positions.ctypes.data, hypotheses.ctypes.data),
            *(tables.ctypes.data, memory.lengths.ctypes.data),
            ctypes.cast(memory.pointers, ctypes.c_void_p),
            *(cache.ctypes.data, total),
            ctypes.pointer(model.projection),
        )
        step.next, step.attention_width = following.ctypes.data, attention.shape[1]
        output = kernel_library.StepOutput(
            *(best_ids.ctypes.data, best.ctypes.data, log_probs.ctypes.data, attention.ctypes.data)
        )
        library.dragoman_step(model, scratch, step, output)
    finally:
        library.dragoman_free_scratch(scratch)
    return [
        ForcedDecoding(
            log_probs[start : start + count].copy(),
            attention[start : start + count - 1, : len(source)].copy(),
        )
        for start, count, source in zip(starts.tolist(), rows, sources, strict=True)
    ]

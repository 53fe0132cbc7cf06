"""The CPU engine says which pieces are likeliest after several beginnings of a translation."""

# X beginnings, G groups of pieces, C candidates, V outputs

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.forced_decoding import SourceMemory
from dragoman.inference.cpu.search import IMPOSSIBLE, Flags, Ints
from dragoman.inference.engine import NextPieces
from dragoman.text.special_tokens import BOS


def predict_next(
    model: kernel_library.KernelModel,
    source: Sequence[int],
    prefix: Sequence[int],
    words: Sequence[Sequence[int]],
    groups_GV: Flags,
    count: int,
) -> NextPieces:
    """Return the likeliest pieces of each group after the prefix and each word.

    The prefix is computed once: where its keys and values are is said by a table for each word.
    """
    library = kernel_library.load_kernel()
    begun = [BOS, *prefix]
    longest = len(begun) + max(map(len, words))
    tables: Ints = np.zeros((len(words), longest), np.int32)
    tables[:, : len(begun)] = np.arange(len(begun))
    rows = [(piece, place, 0) for place, piece in enumerate(begun)]
    last = []
    for number, word in enumerate(words):
        for place, piece in enumerate(word, len(begun)):
            tables[number, place] = len(rows)
            rows.append((piece, place, number))
        last.append(((*begun, *word)[-1], len(begun) + len(word) - 1, number))
    # What is predicted after comes first, once for each group, and is computed again with the rest.
    predicted = [row for row in last for _ in range(len(groups_GV))]
    ids, positions, hypotheses = map(np.ascontiguousarray, np.array(predicted + rows, np.int32).T)

    outputs = model.projection.outputs
    kinds: Ints = np.arange(outputs, dtype=np.int32)
    allowed = np.zeros((len(words), *groups_GV.shape[:1], outputs), np.bool_)
    allowed[:, :, : groups_GV.shape[1]] = groups_GV
    found_XGC = np.empty((len(words), len(groups_GV), count), np.int32)
    log_probs_XGC = np.empty(found_XGC.shape, np.float32)
    width = 2 * model.heads * model.d_k
    cache = np.empty(model.decoder_layers * len(rows) * width, np.uint16)
    scratch = library.dragoman_new_scratch(0)
    try:
        memory = SourceMemory(library, model, scratch, [source])
        step = kernel_library.StepInput(
            *(len(ids), len(predicted), count, len(words), longest),
            *(ids.ctypes.data, positions.ctypes.data, hypotheses.ctypes.data),
            *(tables.ctypes.data, memory.lengths.ctypes.data),
            ctypes.cast(memory.pointers, ctypes.c_void_p),
            *(cache.ctypes.data, len(rows)),
            ctypes.pointer(model.projection),
        )
        step.token_kinds, step.allowed, step.kind_count = (
            kinds.ctypes.data,
            allowed.ctypes.data,
            outputs,
        )
        output = kernel_library.StepOutput(found_XGC.ctypes.data, log_probs_XGC.ctypes.data)
        library.dragoman_step(model, scratch, step, output)
    finally:
        library.dragoman_free_scratch(scratch)
    log_probs_XGC[log_probs_XGC < IMPOSSIBLE] = -np.inf
    return NextPieces(found_XGC, log_probs_XGC)

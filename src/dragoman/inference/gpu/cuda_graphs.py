"""CUDA graphs encode sentences into slots, and compute a step of the search.

Each is recorded once for each size and replayed; on a CPU it is computed anew. Nothing in them
waits for the host.
"""

# B sentences, P source positions, M model width, H heads, L decoder layers, W = heads times width,
# F fields of a slot's info

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dragoman.inference.gpu.batch_state import (
    DONE,
    SOURCE_LENGTH,
    WORDS,
    BatchState,
    HostCopy,
    pin,
)
from dragoman.inference.gpu.plain_operations import PlainOperations, RepetitionLimits
from dragoman.inference.gpu.tree_grammar import TreeGrammar
from dragoman.search.options import SearchOptions

MAX_GRAPH_SOURCE: Final = 256
"""A sentence that is encoded alone is encoded by a graph if it has so few source positions."""
GRAPH_PAD_MULTIPLE: Final = 16
"""A sentence alone is padded to a multiple of so many positions: each has its graph."""


@torch.no_grad()
def encode_into_slots(
    operations: PlainOperations,
    state: BatchState,
    ids_BP: Tensor,
    info_FB: Tensor,
    slots_B: Tensor,
) -> None:
    """Encode sentences into slots, which begin with this info.

    Padding is encoded too, and kept: nothing attends to it.
    """
    w, (B, P) = operations.weights, ids_BP.shape
    slots_B = slots_B.long()
    x, y = _encode(operations, state, ids_BP, info_FB[SOURCE_LENGTH])
    _, memory = operations.apply_stage(x, y, w.memory)
    memory_LXW = memory.view(B * P, w.layers, 2 * w.attention_width).transpose(0, 1)
    positions_BP = slots_B[:, None] * state.source + torch.arange(P, device=w.device)
    state.source_cache_LPW.index_copy_(1, positions_BP.flatten(), memory_LXW)
    state.info_FS.index_copy_(1, slots_B, info_FB)


def _encode(
    operations: PlainOperations, state: BatchState, ids_BP: Tensor, lengths_B: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the residual stream after the encoder and what is still to be added, BP M each."""
    w, (B, P) = operations.weights, ids_BP.shape
    pieces_BPM = F.embedding(ids_BP, w.source_pieces).float() * w.scale
    x = (pieces_BPM + state.positions_TM[:P]).flatten(0, 1)
    real_B11P = (torch.arange(P, device=w.device) < lengths_B[:, None])[:, None, None]
    # What is added to the scores, once for all layers: of a mask each would make it anew.
    added_B11P = torch.zeros_like(real_B11P, dtype=w.dtype).masked_fill_(~real_B11P, -torch.inf)
    y: Tensor | None = None
    for layer in w.encoder:
        x, qkv = operations.apply_stage(x, y, layer.attention)
        q, k, v = qkv.view(B, P, 3, w.heads, -1).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, added_B11P)
        attended = heads.transpose(1, 2).reshape(B * P, w.attention_width)
        y = operations.linear(attended, layer.output)
        x, inner = operations.apply_stage(x, y, layer.inner)
        y = operations.linear(inner, layer.outer)
    assert y is not None
    return x, y


@torch.no_grad()
def decode_step(
    operations: PlainOperations,
    state: BatchState,
    batch_size: int,
    *,
    stop_early: bool,
    grammar: TreeGrammar | None = None,
    repetition: RepetitionLimits | None = None,
) -> None:
    """Extend every hypothesis of the first `batch_size` active slots by a piece."""
    x = operations.embed(state, batch_size)
    y: Tensor | None = None
    for number, layer in enumerate(operations.weights.decoder):
        x, qkv = operations.apply_stage(x, y, layer.attention)
        attended = operations.self_attention(qkv, state, number, batch_size)
        y = operations.linear(attended, layer.output)
        x, queries = operations.apply_stage(x, y, layer.source)
        attended = operations.source_attention(queries, state, number, batch_size)
        y = operations.linear(attended, layer.source_output)
        x, inner = operations.apply_stage(x, y, layer.inner)
        y = operations.linear(inner, layer.outer)
    scores = operations.scores(x, y)
    if repetition is not None:
        scores = operations.limit_repetition(scores, state, batch_size, repetition)
    if grammar is not None:
        scores = grammar.mask_scores(scores, batch_size)
    changed = repetition is not None or grammar is not None
    operations.select_next(
        scores, state, batch_size, stop_early=stop_early, after_kernel=not changed
    )
    if grammar is not None:
        grammar.extend(batch_size)


class GraphRunner:
    """Run steps and encodings on one state, again and again."""

    def __init__(
        self,
        operations: PlainOperations,
        state: BatchState,
        *,
        use_graphs: bool,
        grammar: TreeGrammar | None = None,
    ) -> None:
        """Record each as a graph, unless `use_graphs` is False."""
        self.state, self.grammar = state, grammar
        self.host_copies = (HostCopy(state), HostCopy(state))
        """One is read while the next is on its way."""
        self.steps_taken: Counter[int] = Counter()
        """This counts steps by batch size, since somebody last cleared it."""
        self._operations, self._use_graphs = operations, use_graphs
        self._active: list[int] = []
        self._step_graphs: dict[tuple[int, bool, RepetitionLimits | None], Callable[[], None]] = {}
        self._encode_graphs: dict[int, tuple[Tensor, Callable[[], None]]] = {}
        self._pool: Any = None

    def set_active(self, slots: list[int]) -> None:
        """Make these slots the active ones, and fill up with the idle one."""
        if slots != self._active:
            count = self.state.count
            active = np.array(slots + [count] * (count - len(slots)), np.int32)
            device = self.state.active_slots.device
            self.state.active_slots.copy_(pin(active, device), non_blocking=True)
            self._active = slots

    def step(self, batch_size: int, options: SearchOptions) -> None:
        """Extend every hypothesis of the first `batch_size` active slots by a piece."""
        repetition = RepetitionLimits.from_options(options)
        key = (batch_size, options.stop_early, repetition)
        if key not in self._step_graphs:

            def run() -> None:
                decode_step(
                    self._operations,
                    self.state,
                    batch_size,
                    stop_early=options.stop_early,
                    grammar=self.grammar,
                    repetition=repetition,
                )

            self._step_graphs[key] = self._record(run)
        self._step_graphs[key]()
        self.steps_taken[batch_size] += 1

    def encode(self, packed: NDArray[np.int32], sentences: int) -> None:
        """Encode sentences into slots, see `SourceQueue.pack`; one alone is worth a graph."""
        device = self.state.active_slots.device
        fields = len(self.state.info_FS)
        positions = len(packed) // sentences - fields - 1
        if sentences > 1 or not self._use_graphs or positions > MAX_GRAPH_SOURCE:
            there = pin(packed, device).to(device, non_blocking=True)
            self._encode(there, sentences)
            return
        if positions not in self._encode_graphs:
            idle = np.zeros_like(packed)  # while this is recorded
            idle[[DONE, SOURCE_LENGTH]] = 1
            idle[fields] = self.state.count
            known = torch.from_numpy(idle).to(device)
            self._encode_graphs[positions] = (known, self._record(lambda: self._encode(known, 1)))
        known, replay = self._encode_graphs[positions]
        known.copy_(pin(packed, device), non_blocking=True)
        replay()

    def _encode(self, packed: Tensor, sentences: int) -> None:
        fields = len(self.state.info_FS)
        info_FB = packed[: fields * sentences].view(fields, sentences)
        slots_B = packed[fields * sentences :][:sentences]
        ids_BP = packed[(fields + 1) * sentences :].view(sentences, -1)
        encode_into_slots(self._operations, self.state, ids_BP, info_FB, slots_B)
        if self.grammar is not None:
            self.grammar.admit(slots_B.long(), info_FB[WORDS])

    def _record(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return the same as one launch. To record it is to run it: that is a step taken early."""
        if not self._use_graphs:
            return run
        replay, self._pool = capture(run, self._pool)
        return replay


def capture(run: Callable[[], None], pool: Any) -> tuple[Callable[[], None], Any]:
    """Return a recording of what `run` does, and the memory that recordings share."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):  # kernels are compiled, workspaces allocated
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        run()
    return graph.replay, pool or graph.pool()

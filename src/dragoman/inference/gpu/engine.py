"""The GPU engine runs a Transformer in bf16 with all of a GPU.

A few hundred sentences are searched at a time, each in a slot of its own, and when one is done the
next takes its slot. A step of all of them is one recorded launch: keys, values, beams and what has
been found stay on the device, and no step waits for the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.inference.engine import Engine
from dragoman.inference.gpu.batch_state import MIN_SLOTS, BatchState, bytes_per_slot
from dragoman.inference.gpu.cuda_graphs import GraphRunner
from dragoman.inference.gpu.plain_operations import PlainOperations
from dragoman.inference.gpu.scheduler import Scheduler, SourceQueue
from dragoman.inference.gpu.tree_grammar import TreeGrammar
from dragoman.inference.gpu.weights import GpuWeights
from dragoman.kernels import supported
from dragoman.model_directory import LoadedModel
from dragoman.models.supported_settings import unsupported
from dragoman.models.weights import get_weights
from dragoman.search.options import Hypothesis, SearchOptions, output_limits, refuse_nan
from dragoman.trees.grammar import SentencesToParse

MAX_ROWS: Final = 4096
"""A step extends at most so many hypotheses."""
STEPS_BETWEEN_CHECKS: Final = 4
"""After so many steps the host sees what is done."""
SENTENCES_PER_SLOT: Final = 4
"""There are so many sentences for a slot, at least: with fewer slots more are used to the end."""
MEMORY_SHARE: Final = 0.5
"""Slots may take this share of the free memory."""
POSITION_MULTIPLE: Final = 64
"""Slots are made for multiples of so many positions, so that the next sentences fit too."""
MAX_KEPT_STATES: Final = 4
"""Slots of so many kinds of search are kept."""


def why_no_gpu_engine(config: ModelConfig, device: torch.device | str = "cuda") -> str:
    """Return why PyTorch has to compute a model; an empty string if the engine can."""
    if reason := unsupported(config, "gpu engine"):
        return reason
    return "" if supported(torch.device(device)) else "no GPU with bf16, or no Triton"


def open_gpu_engine(
    loaded: LoadedModel, device: torch.device | str = "cuda", **settings: Any
) -> GpuEngine:
    """Return the engine of a model; the settings are those of GpuEngine."""
    targets = loaded.tokenizer.sizes[1]
    return GpuEngine(get_weights(loaded.model), loaded.config.model, targets, device, **settings)


class GpuEngine(Engine):
    """Search with a model whose weights, and the state of its searches, are on a device."""

    window = 20_000  # slots stay full until the last of so many lines
    max_beam = 32

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        config: ModelConfig,
        targets: int,
        device: torch.device | str = "cuda",
        *,
        dtype: torch.dtype | None = None,
        use_kernels: bool | None = None,
        use_graphs: bool | None = None,
        overlap: bool | None = None,
    ) -> None:
        """Leave to the device what is not given: on a CPU it is plain PyTorch in fp32."""
        device = torch.device(device)
        cuda = device.type == "cuda"
        if dtype is None:
            dtype = torch.bfloat16 if cuda else torch.float32
        self.weights = GpuWeights(weights, config, targets, device, dtype)
        self._use_graphs = cuda if use_graphs is None else use_graphs
        self._operations = _make_operations(
            self.weights, cuda if use_kernels is None else use_kernels, overlap
        )
        self._runners: list[GraphRunner] = []
        self.max_rows, self.steps_between_checks = MAX_ROWS, STEPS_BETWEEN_CHECKS
        self.slots: int | None = None
        """So many sentences are searched at a time; None means as many as is good."""

    @torch.no_grad()
    def search_each(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        to_parse: SentencesToParse | None = None,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield the number of each sentence and its best hypotheses, as soon as they are found.

        The device goes on while somebody uses them.
        """
        if not sentences:
            return
        limits = output_limits(sentences, options, to_parse)
        batch_size = self._choose_batch_size(len(sentences), options.beam)
        with self._on_device():
            runner, batch_size = self._get_runner(
                batch_size, options, max(limits), max(map(len, sentences)) + 1, to_parse
            )
            runner.state.set_length_penalty(options.length_penalty)
            scheduler = Scheduler(runner, options, batch_size, steps=self.steps_between_checks)
            queue = SourceQueue(sentences, limits, to_parse, min_length=options.min_length)
            for number, found in scheduler.run(queue):
                yield number, refuse_nan([found])[0]

    def _on_device(self) -> AbstractContextManager[None]:
        """Make the device PyTorch's current one: Triton launches there, whatever tensors say."""
        device: Any = self.weights.device
        return torch.cuda.device(device) if device.type == "cuda" else nullcontext()

    def _choose_batch_size(self, sentences: int, beam: int) -> int:
        """Return how many sentences to search at a time, a power of two."""
        if self.slots is not None:
            return _power_of_two_below(self.slots)
        most = max(1, self.max_rows // beam)
        wanted = max(min(sentences, 64), sentences // SENTENCES_PER_SLOT)
        size = _power_of_two_below(min(most, wanted))
        if size == wanted or size >= most // 2:
            return size
        return min(2 * size, _power_of_two_below(most))

    def _get_runner(
        self,
        batch_size: int,
        options: SearchOptions,
        target: int,
        source: int,
        to_parse: SentencesToParse | None = None,
    ) -> tuple[GraphRunner, int]:
        """Return slots for a search, old or new, and the batch size there is memory for."""
        words = 0 if to_parse is None else max(1, *to_parse.words)
        size = (options.beam, options.n_best, target, source, words)
        for runner in self._runners:
            same = runner.grammar is None or (
                to_parse is not None and runner.grammar.is_for(to_parse)
            )
            if same and runner.state.fits(batch_size, *size):
                self._runners.remove(runner)
                self._runners.append(runner)
                return runner, batch_size
        count = max(batch_size, MIN_SLOTS)
        self._drop_runners(count, *size)
        target, source, words = (
            -(-n // POSITION_MULTIPLE) * POSITION_MULTIPLE for n in (target, source, words)
        )
        if self.weights.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.weights.device)
            free += torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
            room = int(MEMORY_SHARE * free)
            most = room // bytes_per_slot(self.weights, options.beam, target, source)
            batch_size, count = (
                min(n, _power_of_two_below(max(1, most))) for n in (batch_size, count)
            )
        state = BatchState(self.weights, count, options.beam, options.n_best, target, source, words)
        grammar = None if to_parse is None else TreeGrammar(to_parse, self.weights, state)
        runner = GraphRunner(self._operations, state, use_graphs=self._use_graphs, grammar=grammar)
        self._runners.append(runner)
        return runner, batch_size

    def _drop_runners(self, count: int, beam: int, n_best: int, *_: int) -> None:
        """Drop slots of the same kind that are too small, and those unused for longest."""
        if self.weights.device.type == "cuda":
            torch.cuda.synchronize(self.weights.device)
        self._runners = [
            runner
            for runner in self._runners
            if (runner.state.beams, runner.state.n_best, runner.state.small)
            != (beam, n_best, count <= MIN_SLOTS)
        ][1 - MAX_KEPT_STATES :]


def _make_operations(
    weights: GpuWeights, use_kernels: bool, overlap: bool | None
) -> PlainOperations:
    if not use_kernels:
        return PlainOperations(weights)
    from dragoman.inference.gpu.kernel_operations import KernelOperations

    return KernelOperations(weights, overlap=overlap)


def _power_of_two_below(number: int) -> int:
    return 1 << (number.bit_length() - 1)

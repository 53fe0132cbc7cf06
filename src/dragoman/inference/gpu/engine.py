"""The engine: a Transformer in bf16 that translates with all of a GPU.

A few hundred sentences are searched at a time, each in a slot of its own, and when one is done the
next moves in. A step of all of them is one recorded launch: keys, values, beams and what has been
found stay on the device, and no step waits for the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.inference.cpu.quantization import why_not
from dragoman.inference.gpu.batch_state import LEAST, Slots, slot_bytes
from dragoman.inference.gpu.cuda_graphs import Replay
from dragoman.inference.gpu.host_loop import Loop, Sentences
from dragoman.inference.gpu.plain_operations import Arithmetic
from dragoman.inference.gpu.tree_grammar import Trees
from dragoman.inference.gpu.weights import Weights
from dragoman.kernels import supported
from dragoman.model_directory import LoadedModel
from dragoman.models.weights import get_weights
from dragoman.search.options import Hypothesis, SearchOptions, checked
from dragoman.trees.grammar import Yields

__all__ = ["GpuEngine", "open_gpu_engine", "why_no_gpu_engine"]

ROWS: Final = 4096
"""Hypotheses that a step extends, if there are so many."""
STEPS: Final = 4
"""Between two looks at what is done."""
WAVES: Final = 4
"""Sentences for each slot, at least: fewer slots, and more of them are in use until the end."""
BEAMS: Final = 32
"""The widest beam."""
WIDEST: Final = 256
"""The widest head."""
SHARE: Final = 0.5
"""Of the free memory, for slots."""
ROUND: Final = 64
"""Slots are made for multiples of so many positions, so that the next sentences fit too."""
KEPT: Final = 4
"""Kinds of search that slots are kept for."""


def why_no_gpu_engine(config: ModelConfig, device: torch.device | str = "cuda") -> str:
    """Why a model is computed by PyTorch instead; nothing, if the engine can do it."""
    if reason := why_not(config):
        return reason
    if config.d_k > WIDEST:
        return f"model.d_k = {config.d_k}"
    return "" if supported(torch.device(device)) else "no GPU with bf16, or no Triton"


def open_gpu_engine(
    loaded: LoadedModel, device: torch.device | str = "cuda", **settings: Any
) -> GpuEngine:
    """The engine of a model; for settings see there."""
    targets = loaded.tokenizer.sizes[1]
    return GpuEngine(get_weights(loaded.model), loaded.config.model, targets, device, **settings)


class GpuEngine:
    """A model's weights and the slots of its searches."""

    window = 20_000
    """Lines to give it at a time: slots stay full until the last of them."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        config: ModelConfig,
        targets: int,
        device: torch.device | str = "cuda",
        *,
        dtype: torch.dtype | None = None,
        kernels: bool | None = None,
        captures: bool | None = None,
        overlap: bool | None = None,
    ) -> None:
        """What is not said is as the device is: on a CPU plain PyTorch in fp32."""
        device = torch.device(device)
        cuda = device.type == "cuda"
        if dtype is None:
            dtype = torch.bfloat16 if cuda else torch.float32
        self.weights = Weights(weights, config, targets, device, dtype)
        self._captures = cuda if captures is None else captures
        self._do = _arithmetic(self.weights, cuda if kernels is None else kernels, overlap)
        self._replays: list[Replay] = []
        self.rows, self.steps = ROWS, STEPS
        self.slots: int | None = None
        """Sentences at a time; None: as many as is good."""

    def serves(self, options: SearchOptions) -> bool:
        """Whether this is a search the engine knows: no floor, no groups, a beam that it has."""
        return options.min_length == 0 and options.groups == 1 and options.beam <= BEAMS

    @torch.no_grad()
    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        yields: Yields | None = None,
    ) -> list[list[Hypothesis]]:
        """See Searcher."""
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        for number, found in self._found(sentences, options, yields):
            results[number] = found
        return checked(results)

    @torch.no_grad()
    def each(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        yields: Yields | None = None,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The same by the number of the sentence, in the order they are found.

        The device goes on while somebody looks at them.
        """
        for number, found in self._found(sentences, options, yields):
            yield number, checked([found])[0]

    def _found(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        yields: Yields | None,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        if not sentences:
            return
        ceilings = [
            min(len(ids) + options.max_extra, options.max_length or len(ids) + options.max_extra)
            for ids in sentences
        ]
        if yields is not None:
            ceilings = [max(one, yields.shortest(i)) for i, one in enumerate(ceilings)]
        lanes = self._lanes(len(sentences), options.beam)
        with self._place():
            replay, lanes = self._replay(
                lanes, options, max(ceilings), max(len(ids) for ids in sentences) + 1, yields
            )
            replay.slots.penalise(options.length_penalty)
            loop = Loop(replay, options, lanes, steps=self.steps)
            yield from loop.run(Sentences(sentences, ceilings, yields))

    def _place(self) -> AbstractContextManager[None]:
        """Triton launches where PyTorch is, whatever the tensors say."""
        device: Any = self.weights.device
        return torch.cuda.device(device) if device.type == "cuda" else nullcontext()

    def _lanes(self, sentences: int, beam: int) -> int:
        """How many sentences to search at a time, a power of two."""
        if self.slots is not None:
            return _power_below(self.slots)
        most = max(1, self.rows // beam)
        wanted = max(min(sentences, 64), sentences // WAVES)
        lanes = _power_below(min(most, wanted))
        return (
            lanes if lanes == wanted or lanes >= most // 2 else min(2 * lanes, _power_below(most))
        )

    def _replay(
        self,
        lanes: int,
        options: SearchOptions,
        target: int,
        source: int,
        yields: Yields | None = None,
    ) -> tuple[Replay, int]:
        """Slots for a search, old or new, and the lanes there is memory for."""
        words = 0 if yields is None else max(1, *yields.words)
        size = (options.beam, options.n_best, target, source, words)
        for replay in self._replays:
            same = replay.trees is None or (yields is not None and replay.trees.suits(yields))
            if same and replay.slots.fits(lanes, *size):
                self._replays.remove(replay)
                self._replays.append(replay)
                return replay, lanes
        count = max(lanes, LEAST)
        self._forget(count, *size)
        target, source, words = (-(-n // ROUND) * ROUND for n in (target, source, words))
        if self.weights.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.weights.device)
            free += torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
            most = int(SHARE * free) // slot_bytes(self.weights, options.beam, target, source)
            lanes, count = (min(n, _power_below(max(1, most))) for n in (lanes, count))
        slots = Slots(self.weights, count, options.beam, options.n_best, target, source, words)
        trees = None if yields is None else Trees(yields, self.weights, slots)
        self._replays.append(Replay(self._do, slots, captures=self._captures, trees=trees))
        return self._replays[-1], lanes

    def _forget(self, count: int, beam: int, best: int, *_: int) -> None:
        """Slots of the same kind that are too small, and what has not been used for longest."""
        if self.weights.device.type == "cuda":
            torch.cuda.synchronize(self.weights.device)
        self._replays = [
            replay
            for replay in self._replays
            if (replay.slots.beams, replay.slots.best, replay.slots.few)
            != (beam, best, count <= LEAST)
        ][1 - KEPT :]


def _arithmetic(weights: Weights, kernels: bool, overlap: bool | None) -> Arithmetic:
    if not kernels:
        return Arithmetic(weights)
    from dragoman.inference.gpu.fast_operations import Fast

    return Fast(weights, overlap=overlap)


def _power_below(number: int) -> int:
    return 1 << (number.bit_length() - 1)

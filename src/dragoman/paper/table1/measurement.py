"""Table 1, measured: what four kinds of layer cost by the length n and the width d (§4).

`paper.layers` has the layers, `paper.counting` counts their operations and what waits for what,
`paper.reach` walks the paths, `paper.complexity` keeps the numbers and fits their exponents; here
everything is run and timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

import torch

from dragoman.bench.training.timing import Contestant, take_turns
from dragoman.errors import ConfigError
from dragoman.paper.table1.counting import operations, path_length, sequential
from dragoman.paper.table1.layers import DILATED, LAYERS, SELF_ATTENTION, Layer, build
from dragoman.paper.table1.picture import draw
from dragoman.paper.table1.results import Count, Path, Table1, Time
from dragoman.paper.table1.text import grids, render
from dragoman.system.memory import is_out_of_memory
from dragoman.training.distributed.ranks import describe_device

__all__ = ["LENGTHS", "WIDTHS", "Table1", "draw", "grids", "measure", "render"]

LENGTHS: Final = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
WIDTHS: Final = (64, 128, 256, 512)

ENOUGH: Final = 0.3
"""Seconds for which short passes are repeated beyond `repeats`, as their noise is the larger."""
AT_MOST: Final = 10
"""Times as often as `repeats`."""


def measure(
    lengths: Sequence[int] = LENGTHS,
    widths: Sequence[int] = WIDTHS,
    *,
    kernel: int = 3,
    window: int = 16,
    device: str | torch.device = "cpu",
    repeats: int = 3,
    limit: float = 10.0,
    say: Callable[[str], None] = lambda message: None,
) -> Table1:
    """Count, trace and time the four layers for one sentence of each length.

    What would take more than `limit` seconds a training pass is not timed, and a note says so.
    """
    lengths, widths = _sizes("lengths", lengths, least=2), _sizes("widths", widths, least=1)
    if repeats < 1:
        raise ConfigError(f"repeats = {repeats} measures nothing; try 3")
    device = torch.device(device)

    def layers(d: int) -> dict[str, Layer]:
        return {name: build(name, d, kernel=kernel, window=window) for name in LAYERS}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        say("counting operations, and which of them wait for each other")
        counts = tuple(_counts(layers, lengths, widths))
        say("walking back from the last position to the first")
        paths = tuple(
            Path(layer=name, n=n, hops=path_length(name, n, kernel=kernel, window=window))
            for name in (*LAYERS, DILATED)
            for n in lengths
        )
        clock = _Clock(device, repeats, limit)
        for d in widths:
            say(f"timing d = {d}, n = {lengths[0]} … {lengths[-1]}")
            for n in lengths:
                clock.time(layers(d), n, d)
    return Table1(
        device=describe_device(device),
        torch=torch.__version__,
        kernel=kernel,
        window=window,
        repeats=repeats,
        lengths=lengths,
        widths=widths,
        counts=counts,
        times=tuple(clock.times),
        paths=paths,
        notes=tuple(clock.notes),
    )


def _counts(
    layers: Callable[[int], dict[str, Layer]], lengths: tuple[int, ...], widths: tuple[int, ...]
) -> Iterator[Count]:
    """The narrowest at every n; the others to n = the widest d: a recurrent layer counts slowly."""
    for d in widths:
        for name, layer in layers(d).items():
            for n in lengths:
                if d == widths[0] or n <= widths[-1]:
                    forward, training = operations(layer, n, d)
                    yield Count(
                        layer=name,
                        n=n,
                        d=d,
                        mixing=forward.mixing,
                        operations=forward.all,
                        training_operations=training.all,
                        sequential=sequential(layer, n, d),
                    )


class _Clock:
    """Times the layers in turns, so that a machine that slows down does so for all of them."""

    def __init__(self, device: torch.device, repeats: int, limit: float) -> None:
        self.device, self.repeats, self.limit = device, repeats, limit
        self.times: list[Time] = []
        self.notes: list[str] = []

    def time(self, layers: dict[str, Layer], n: int, d: int) -> None:
        """Forward and training passes of each layer that is worth the wait."""
        passes: dict[str, tuple[Contestant, Contestant]] = {}
        for name, layer in layers.items():
            if (expected := self._expected(name, n, d)) > self.limit:
                self.notes.append(
                    f"{name}, n = {n}, d = {d}: not timed, a training pass would take about "
                    f"{expected:.1f} s and the limit is {self.limit:g} s"
                )
                continue
            both = _Forward(layer, n, d, self.device), _Training(layer, n, d, self.device)
            try:
                take_turns(list(both), self.device, 1)  # warms up
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self.notes.append(f"{name}, n = {n}, d = {d}: not timed, out of memory")
                continue
            passes[name] = both
        if passes:
            self._take_turns(passes, n, d)

    def _take_turns(self, passes: dict[str, tuple[Contestant, Contestant]], n: int, d: int) -> None:
        contestants = [one for both in passes.values() for one in both]
        results = take_turns(contestants, self.device, self.repeats)
        while (
            sum(sum(one.seconds) for one in results) < ENOUGH
            and len(results[0].seconds) < AT_MOST * self.repeats
        ):
            for result, more in zip(
                results, take_turns(contestants, self.device, self.repeats), strict=True
            ):
                result.seconds.extend(more.seconds)
        for number, name in enumerate(passes):
            forward, training = results[2 * number : 2 * number + 2]
            self.times.append(
                Time(
                    layer=name,
                    n=n,
                    d=d,
                    forward=median(forward.seconds),
                    training=median(training.seconds),
                )
            )

    def _expected(self, layer: str, n: int, d: int) -> float:
        """Seconds, from the last length that was timed, as the paper says the layer grows."""
        before = [one for one in self.times if (one.layer, one.d) == (layer, d)]
        power = 2 if layer == SELF_ATTENTION else 1
        return before[-1].training * (n / before[-1].n) ** power if before else 0.0


class _Forward:
    """A pass as in translation: nothing is kept for a backward pass."""

    steps = 1

    def __init__(self, layer: Layer, n: int, d: int, device: torch.device) -> None:
        self.layer = layer.to(device)
        self.target_tokens = n
        self.x_1ND = torch.randn(1, n, d).to(device)

    @property
    def name(self) -> str:
        """For people."""
        return type(self).__name__

    def round(self) -> None:
        """One pass."""
        with torch.no_grad():
            self.layer(self.x_1ND)


class _Training(_Forward):
    """Forward, then the gradients of the input and of all weights."""

    def __init__(self, layer: Layer, n: int, d: int, device: torch.device) -> None:
        super().__init__(layer, n, d, device)
        self.x_1ND.requires_grad_()
        self.wish_1ND = torch.randn(1, n, d).to(device)

    def round(self) -> None:
        """One pass forth and back."""
        inputs = [self.x_1ND, *self.layer.parameters()]
        torch.autograd.grad(self.layer(self.x_1ND), inputs, self.wish_1ND)


def _sizes(name: str, sizes: Sequence[int], *, least: int) -> tuple[int, ...]:
    found = tuple(sorted(set(sizes)))
    if not found or found[0] < least:
        raise ConfigError(f"{name} = {list(sizes)} must be numbers from {least} on; try 64 128 256")
    return found

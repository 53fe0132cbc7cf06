"""Operations, chains of them, paths and times of Table 1's four layers are measured (§4).

**Operations** are those of matrix products and convolutions, 2·m·n·k for an m×k by k×n product, as
PyTorch's own counter sees them while the layer runs; sums, softmax and tanh count nothing.

**Sequential operations** are the longest chain of products of which each needs the result of the
one before. Every operation that the layer dispatches is seen with its inputs and outputs; a
result's depth is that of its deepest input, and one more if the operation is a product. So the
chain is found, not assumed. Two conventions, both the paper's: a product is one operation, however
many sums of how many numbers it is made of, because those do not wait for other positions; and
what costs no product (softmax, sums, copies) does not lengthen a chain.

**Path lengths** count the layers of a stack, or the applications of the recurrence, between the
first position and the last. The gradient of the last position's output is traced back through the
real layers, one at a time, until the first position's input has some. After each layer it is
replaced by a random one at the positions it reached: a product of thousands of small factors would
otherwise vanish in the arithmetic, which says nothing about whether there is a path. Weights and
inputs are random, in float64: a zero is structural.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from dragoman.bench.training.timing import BenchmarkCase, time_in_turns
from dragoman.errors import ConfigError, DragomanError
from dragoman.paper.table1.layers import DILATED, LAYERS, SELF_ATTENTION, Layer, build_layer
from dragoman.paper.table1.results import OperationCount, PassTime, PathLength, Table1
from dragoman.system.out_of_memory import is_out_of_memory
from dragoman.training.distributed.ranks import describe_device

LENGTHS: Final = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
WIDTHS: Final = (64, 128, 256, 512)
TRACED_WIDTH: Final = 2
"""The width of the layers that paths are traced through; a path does not depend on it."""
MIN_SECONDS: Final = 0.3
"""How long short passes are repeated beyond `repeats`, as their noise is the larger."""
MAX_REPEAT_FACTOR: Final = 10
"""How many times as often as `repeats` a pass is repeated at most."""


def measure(
    lengths: Sequence[int] = LENGTHS,
    widths: Sequence[int] = WIDTHS,
    *,
    kernel: int = 3,
    window: int = 16,
    device: str | torch.device = "cpu",
    repeats: int = 3,
    limit: float = 10.0,
    print_message: Callable[[str], None] = lambda message: None,
) -> Table1:
    """Count, trace and time the four layers for one sentence of each length.

    What would take more than `limit` seconds a training pass is not timed, and a note says so.
    """
    lengths, widths = _check_sizes("lengths", lengths, least=2), _check_sizes("widths", widths)
    if repeats < 1:
        raise ConfigError(f"repeats = {repeats} measures nothing; try 3")
    device = torch.device(device)

    def layers(d: int) -> dict[str, Layer]:
        return {name: build_layer(name, d, kernel=kernel, window=window) for name in LAYERS}

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        print_message("counting operations, and which of them wait for each other")
        counts = tuple(_count_all(layers, lengths, widths))
        print_message("tracing gradients back from the last position to the first")
        paths = tuple(
            PathLength(
                layer=name, n=n, hops=measure_path_length(name, n, kernel=kernel, window=window)
            )
            for name in (*LAYERS, DILATED)
            for n in lengths
        )
        timer = _LayerTimer(device, repeats, limit)
        for d in widths:
            print_message(f"timing d = {d}, n = {lengths[0]} … {lengths[-1]}")
            for n in lengths:
                timer.time(layers(d), n, d)
    return Table1(
        device=describe_device(device),
        torch=torch.__version__,
        kernel=kernel,
        window=window,
        repeats=repeats,
        lengths=lengths,
        widths=widths,
        counts=counts,
        times=tuple(timer.times),
        paths=paths,
        notes=tuple(timer.notes),
    )


def _check_sizes(name: str, sizes: Sequence[int], *, least: int = 1) -> tuple[int, ...]:
    found = tuple(sorted(set(sizes)))
    if not found or found[0] < least:
        raise ConfigError(f"{name} = {list(sizes)} must be numbers from {least} on; try 64 128 256")
    return found


def _count_all(
    layers: Callable[[int], dict[str, Layer]], lengths: tuple[int, ...], widths: tuple[int, ...]
) -> Iterator[OperationCount]:
    """Count the narrowest layers at every n, the others up to n = the widest d.

    Counting a recurrent layer is slow.
    """
    for d in widths:
        for name, layer in layers(d).items():
            for n in lengths:
                if d == widths[0] or n <= widths[-1]:
                    forward, training = count_operations(layer, n, d)
                    yield OperationCount(
                        layer=name,
                        n=n,
                        d=d,
                        mixing=forward.mixing,
                        operations=forward.all,
                        training_operations=training.all,
                        sequential=count_sequential_operations(layer, n, d),
                    )


# --- operations ---


@dataclass(frozen=True, slots=True)
class Operations:
    """Hold the operations of a pass over one sentence."""

    mixing: int
    """Counts what Table 1 does: of an attention the scores and weighted values, else everything."""
    projections: int
    """Counts what every position computes alone in an attention: Q, K, V and W^O."""

    @property
    def all(self) -> int:
        """Return the operations of the whole layer."""
        return self.mixing + self.projections


def count_operations(layer: Layer, n: int, d: int) -> tuple[Operations, Operations]:
    """Return the operations of a forward pass over n positions, and of forward and backward."""
    layer = deepcopy(layer).to(layer.counted_on)
    x_1ND = torch.zeros(1, n, d, device=layer.counted_on, requires_grad=True)
    # Fused attention computes the same products, but the counter cannot see them.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        y_1ND = layer(x_1ND)
        forward = _split_projections(counter, layer)
        y_1ND.backward(torch.zeros_like(y_1ND))
        return forward, _split_projections(counter, layer)


def _split_projections(counter: FlopCounterMode, layer: Layer) -> Operations:
    counts = counter.get_flop_counts()["Global"]
    projections = sum(count for operator, count in counts.items() if operator in layer.projections)
    return Operations(sum(counts.values()) - projections, projections)


def count_sequential_operations(layer: Layer, n: int, d: int) -> int:
    """Return the length of the longest chain of products in a forward pass over n positions."""
    layer = deepcopy(layer).to(layer.counted_on)
    x_1ND = torch.zeros(1, n, d, device=layer.counted_on)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        return longest_product_chain(layer, x_1ND)


def longest_product_chain(function: Callable[[Tensor], Tensor], x: Tensor) -> int:
    """Return how many products wait for each other on the longest way to a function's result."""
    tracker = _DepthTracker()
    with tracker:
        y = function(x)
    return tracker.depth(y)


class _DepthTracker(TorchDispatchMode):
    """Keep the depth of every tensor that is computed while this mode is on.

    Depths are kept by storage: a view is as deep as what it views, and a tensor that is written in
    parts is as deep as its deepest part.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._depths: dict[int, int] = {}
        self._alive: list[Any] = []  # a storage that were freed could lend another its identity

    def depth(self, tensor: Tensor) -> int:
        """Return the number of products on the longest way to a tensor."""
        return self._depths.get(tensor.untyped_storage()._cdata, 0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        results = func(*args, **(kwargs or {}))
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        depth = max(map(self.depth, given), default=0)
        depth += func._overloadpacket in flop_registry
        for leaf in tree_leaves(results):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                self._alive.append(storage)
                self._depths[storage._cdata] = depth
        return results


# --- paths ---


def measure_path_length(layer: str, n: int, *, kernel: int, window: int) -> int:
    """Return how many layers of this kind lie between the first and the last of n positions."""

    @cache
    def build_at(depth: int) -> Layer:
        return build_layer(layer, TRACED_WIDTH, kernel=kernel, window=window, depth=depth)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        # Who sees whom does not depend on the weights: one layer stands for all that are alike.
        return layers_to_connect(lambda depth: build_at(depth if layer == DILATED else 0), n)


def layers_to_connect(stack: Callable[[int], Layer], n: int) -> int:
    """Return the least layers of a stack, from depth 0 on, with which the last sees the first.

    Tracing back begins with depth 0: of these layers the order does not change who sees whom.
    """
    reached_N = torch.zeros(n, dtype=torch.bool)
    reached_N[-1] = True
    depth = 0
    while not reached_N[0]:
        before_N, reached_N = reached_N, _trace_back(stack(depth), reached_N)
        depth += 1
        if torch.equal(before_N, reached_N):
            raise DragomanError(
                f"layer {depth} leads no further: the last of {n} never sees the first"
            )
    return depth


def _trace_back(layer: Layer, reached_N: Tensor) -> Tensor:
    """Return which inputs have a gradient if the outputs have one where `reached` is set."""
    layer = layer.double()
    x_1ND = torch.randn(1, len(reached_N), TRACED_WIDTH, dtype=torch.float64, requires_grad=True)
    y_1ND = layer.propagate_once(x_1ND)
    output_gradient_1ND = torch.randn_like(y_1ND) * reached_N[None, :, None]
    (gradient_1ND,) = torch.autograd.grad(y_1ND, x_1ND, output_gradient_1ND)
    return (gradient_1ND[0] != 0).any(-1)


# --- times ---


class _LayerTimer:
    """Time the layers in turns, so that a machine that slows down does so for all of them."""

    def __init__(self, device: torch.device, repeats: int, limit: float) -> None:
        self.device, self.repeats, self.limit = device, repeats, limit
        self.times: list[PassTime] = []
        self.notes: list[str] = []

    def time(self, layers: dict[str, Layer], n: int, d: int) -> None:
        """Time forward and training passes of each layer that does not take too long."""
        passes: dict[str, tuple[BenchmarkCase, BenchmarkCase]] = {}
        for name, layer in layers.items():
            if (expected := self._expected_seconds(name, n, d)) > self.limit:
                self.notes.append(
                    f"{name}, n = {n}, d = {d}: not timed, a training pass would take about "
                    f"{expected:.1f} s and the limit is {self.limit:g} s"
                )
                continue
            both = _ForwardPass(layer, n, d, self.device), _TrainingPass(layer, n, d, self.device)
            try:
                time_in_turns(list(both), self.device, 1)  # warms up
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self.notes.append(f"{name}, n = {n}, d = {d}: not timed, out of memory")
                continue
            passes[name] = both
        if passes:
            self._time_passes(passes, n, d)

    def _time_passes(
        self, passes: dict[str, tuple[BenchmarkCase, BenchmarkCase]], n: int, d: int
    ) -> None:
        cases = [one for both in passes.values() for one in both]
        results = time_in_turns(cases, self.device, self.repeats)
        while (
            sum(sum(one.seconds) for one in results) < MIN_SECONDS
            and len(results[0].seconds) < MAX_REPEAT_FACTOR * self.repeats
        ):
            more = time_in_turns(cases, self.device, self.repeats)
            for result, again in zip(results, more, strict=True):
                result.seconds.extend(again.seconds)
        for number, name in enumerate(passes):
            forward, training = results[2 * number : 2 * number + 2]
            self.times.append(
                PassTime(
                    layer=name,
                    n=n,
                    d=d,
                    forward=median(forward.seconds),
                    training=median(training.seconds),
                )
            )

    def _expected_seconds(self, layer: str, n: int, d: int) -> float:
        """Extrapolate from the last length that was timed, as the paper says the layer grows."""
        before = [one for one in self.times if (one.layer, one.d) == (layer, d)]
        power = 2 if layer == SELF_ATTENTION else 1
        return before[-1].training * (n / before[-1].n) ** power if before else 0.0


class _ForwardPass:
    """Compute a layer as in translation: nothing is kept for a backward pass."""

    steps = 1

    def __init__(self, layer: Layer, n: int, d: int, device: torch.device) -> None:
        self.layer = layer.to(device)
        self.target_tokens = n
        self.x_1ND = torch.randn(1, n, d).to(device)

    @property
    def name(self) -> str:
        """Return what this is called in messages."""
        return type(self).__name__

    def run_round(self) -> None:
        """Compute the layer once."""
        with torch.no_grad():
            self.layer(self.x_1ND)


class _TrainingPass(_ForwardPass):
    """Compute a layer, then the gradients of its input and of all its weights."""

    def __init__(self, layer: Layer, n: int, d: int, device: torch.device) -> None:
        super().__init__(layer, n, d, device)
        self.x_1ND.requires_grad_()
        self.output_gradient_1ND = torch.randn(1, n, d).to(device)

    def run_round(self) -> None:
        """Compute the layer and its gradients once."""
        inputs = [self.x_1ND, *self.layer.parameters()]
        torch.autograd.grad(self.layer(self.x_1ND), inputs, self.output_gradient_1ND)

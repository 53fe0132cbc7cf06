"""The results of `dragoman bench train` are written as lines of text and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoman.bench.training.profile import GAPS, KernelClass
from dragoman.messages import counted


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerResult:
    """Hold how fast a peer was, in rounds that alternated with ours."""

    name: str
    parameters: int = 0
    target_tokens_per_second: float = 0.0
    spread: float = 0.0
    source_fill: float = 0.0
    target_fill: float = 0.0
    ours_in_turn: float = 0.0
    """Is our target tokens a second in the same minutes."""
    times_as_fast: float = 0.0
    """Is our speed divided by theirs."""
    steps: int = 0
    """Counts the steps of a round."""
    warm_up_steps: int = 0
    """Counts the steps before the rounds, until these got no faster."""
    sorted_sentences: int = 0
    """Counts the sentences that were sorted by length to make batches."""
    failed: str | None = None
    """Says why there is no figure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Hold everything `dragoman bench train` measures; docs/bench.md explains each."""

    device: str
    torch: str
    preset: str
    precision: str
    parameters: int
    steps: int
    """Counts the steps of a round."""
    rounds: int
    warm_up_steps: int
    """Counts the steps before the rounds, until these got no faster."""
    target_tokens_per_second: float
    spread: float
    """Is the time from the fastest to the slowest round, as a share of the median."""
    milliseconds_a_step: float
    slices: int
    """Counts the slices that a batch was computed in: more than set if memory was short."""
    target_tokens_a_step: float
    source_fill: float
    target_fill: float
    flops_a_step: float
    limit: float
    """Is the operations a second of a large matrix product."""
    share_of_limit: float
    peak_memory: int | None
    """Counts bytes; None on a CPU."""
    kernels: tuple[KernelClass, ...]
    peers: tuple[PeerResult, ...] = ()

    @property
    def host_overhead(self) -> float | None:
        """Return the share of a step in which the GPU waits for the host; None on a CPU."""
        return next((line.share for line in self.kernels if line.name == GAPS), None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return dataclasses.asdict(self) | {"host_overhead": self.host_overhead}

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        yield f"device: {self.device}, torch {self.torch}, {self.precision}"
        yield f"preset: {self.preset}, {self.parameters / 1e6:.2f}M parameters"
        yield (
            f"speed: {self.target_tokens_per_second:,.0f} target tokens/s "
            f"(median of {counted(self.rounds, 'round')} of {counted(self.steps, 'step')}, "
            f"spread {self.spread:.1%})"
        )
        slices = f" in {self.slices} slices" if self.slices > 1 else ""
        yield (
            f"step: {self.milliseconds_a_step:.2f} ms for {self.target_tokens_a_step:,.0f} target "
            f"tokens{slices} (fill: source {self.source_fill:.3f}, target {self.target_fill:.3f})"
        )
        achieved = self.flops_a_step / (self.milliseconds_a_step / 1000)
        yield (
            f"arithmetic: {_format_rate(achieved)} on real tokens, {self.share_of_limit:.1%} of "
            f"the {_format_rate(self.limit)} of a large matrix product"
        )
        if self.peak_memory is not None:
            yield f"memory: {self.peak_memory / 2**30:.2f} GiB at the peak"
        if self.host_overhead is not None:
            yield f"host: the GPU waits for it {self.host_overhead:.1%} of a step"
        yield ""
        yield from self._kernel_lines()
        if self.peers:
            yield ""
            yield from self._peer_lines()

    def _kernel_lines(self) -> Iterator[str]:
        if not self.kernels:
            yield "where the time goes: the profiler saw nothing on this device"
            return
        title = "where the time goes"
        width = max(len(name) for name in (title, *(line.name for line in self.kernels)))
        yield f"{title:{width}}  ms a step  share"
        for line in self.kernels:
            yield f"{line.name:{width}}  {line.milliseconds:9.2f}  {line.share:5.1%}"

    def _peer_lines(self) -> Iterator[str]:
        width = max(len(name) for name in ("dragoman", *(peer.name for peer in self.peers)))
        yield f"{'against':{width}}  target tokens/s  spread  fill          parameters  dragoman is"
        for peer in self.peers:
            if peer.failed is not None:
                yield f"{peer.name:{width}}  did not run: {peer.failed}"
                continue
            yield (
                f"{peer.name:{width}}  {peer.target_tokens_per_second:15,.0f}  {peer.spread:6.1%}  "
                f"{peer.source_fill:.3f}, {peer.target_fill:.3f}  {peer.parameters / 1e6:9.2f}M  "
                f"{peer.times_as_fast:.2f} times as fast"
            )
        ran = [peer for peer in self.peers if peer.failed is None]
        if not ran:
            return
        rows = [("dragoman", self.warm_up_steps, self.steps, "packed rows")]
        rows += [
            (
                peer.name,
                peer.warm_up_steps,
                peer.steps,
                f"padded, sorted among {peer.sorted_sentences:,} sentences",
            )
            for peer in ran
        ]
        yield ""
        yield f"{'given':{width}}  steps to warm up  steps a round  batches"
        for name, warm_up_steps, steps, batches in rows:
            yield f"{name:{width}}  {warm_up_steps:16,}  {steps:13,}  {batches}"


def _format_rate(operations: float) -> str:
    """Return operations a second in TFLOP/s or GFLOP/s."""
    if operations >= 1e12:
        return f"{operations / 1e12:.1f} TFLOP/s"
    return f"{operations / 1e9:.1f} GFLOP/s"

"""What a benchmark found, for people and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoman.bench.training.profile import GAPS, Class

__all__ = ["PeerResult", "Report"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerResult:
    """How fast somebody else was, in rounds that alternated with ours."""

    name: str
    parameters: int = 0
    target_tokens_per_second: float = 0.0
    spread: float = 0.0
    source_fill: float = 0.0
    target_fill: float = 0.0
    ours_in_turn: float = 0.0
    """Our target tokens a second in the same minutes."""
    times_as_fast: float = 0.0
    """Ours ÷ theirs."""
    failed: str | None = None
    """Why there is no figure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Everything `dragoman bench train` measures; docs/bench.md explains each."""

    device: str
    torch: str
    preset: str
    precision: str
    parameters: int
    steps: int
    """Of a round."""
    rounds: int
    target_tokens_per_second: float
    spread: float
    """From the fastest to the slowest round, as a share of the median."""
    milliseconds_a_step: float
    slices: int
    """In which a step's batch was computed; more than asked for where memory was short."""
    target_tokens_a_step: float
    source_fill: float
    target_fill: float
    flops_a_step: float
    limit: float
    """Operations a second of a large matrix product."""
    share_of_limit: float
    peak_memory: int | None
    """Bytes; None on a CPU."""
    kernels: tuple[Class, ...]
    peers: tuple[PeerResult, ...] = ()

    @property
    def host_overhead(self) -> float | None:
        """Share of a step in which the GPU waits for the host; None on a CPU."""
        return next((line.share for line in self.kernels if line.name == GAPS), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dataclasses.asdict(self) | {"host_overhead": self.host_overhead}

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"device: {self.device}, torch {self.torch}, {self.precision}"
        yield f"preset: {self.preset}, {self.parameters / 1e6:.2f}M parameters"
        yield (
            f"speed: {self.target_tokens_per_second:,.0f} target tokens/s "
            f"(median of {self.rounds} rounds of {self.steps} steps, spread {self.spread:.1%})"
        )
        slices = f" in {self.slices} slices" if self.slices > 1 else ""
        yield (
            f"step: {self.milliseconds_a_step:.2f} ms for {self.target_tokens_a_step:,.0f} target "
            f"tokens{slices} (fill: source {self.source_fill:.3f}, target {self.target_fill:.3f})"
        )
        achieved = self.flops_a_step / (self.milliseconds_a_step / 1000)
        yield (
            f"arithmetic: {_rate(achieved)} on real tokens, {self.share_of_limit:.1%} of the "
            f"{_rate(self.limit)} of a large matrix product"
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
        width = max(len(peer.name) for peer in self.peers)
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


def _rate(operations: float) -> str:
    """Operations a second."""
    if operations >= 1e12:
        return f"{operations / 1e12:.1f} TFLOP/s"
    return f"{operations / 1e9:.1f} GFLOP/s"

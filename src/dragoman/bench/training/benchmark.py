"""Measuring a training step: how fast, how near the device's limit, and how fast the others are."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from dragoman.bench.training.flops import (
    counted_flops,
    formulas_hold,
    sentence_lengths,
    training_flops,
)
from dragoman.bench.training.peers import Peer, check_peers, padded_batches, peer_kinds
from dragoman.bench.training.profile import where_time_goes
from dragoman.bench.training.report import PeerResult, Report
from dragoman.bench.training.synthetic_corpus import timed_batches
from dragoman.bench.training.timing import Ours, matrix_rate, take_turns, warm_up
from dragoman.config import Config
from dragoman.data.batching.batches import Batch
from dragoman.system.memory import keep_freed_memory
from dragoman.training.distributed.ranks import describe_device, pick_device
from dragoman.training.precision import determined, wants_bf16

__all__ = ["measure"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    warm_up: int
    """Steps at least, before anything is timed."""
    rounds: int
    steps: int
    """Of a round: one for each batch."""
    profiled: int
    """Steps whose kernels are looked at."""


GPU: Final = Plan(warm_up=10, rounds=5, steps=32, profiled=4)
CPU: Final = Plan(warm_up=1, rounds=3, steps=8, profiled=2)


def measure(
    config: Config,
    preset: str,
    *,
    steps: int | None = None,
    against: bool = False,
    say: Callable[[str], None] = lambda message: None,
) -> Report:
    """Train on the synthetic stream for a while, and tell how that went.

    The batches are built before the clock starts: what is timed is the step alone.
    """
    if against:
        check_peers(config)
    with determined(config.training.deterministic):
        return _measure(config, preset, steps, against, say)


def _measure(
    config: Config,
    preset: str,
    steps: int | None,
    against: bool,
    say: Callable[[str], None],
) -> Report:
    device = _ready(config)
    gpu = device.type == "cuda"
    plan = GPU if gpu else CPU
    limit = matrix_rate(device)
    batches = timed_batches(config, steps or plan.steps)
    ours = Ours(config, batches, device)
    say(f"timing dragoman: {plan.rounds} rounds of {ours.steps} steps")
    warm_up(ours, device, plan.warm_up)
    [timed] = take_turns([ours], device, plan.rounds)
    peak_memory = torch.cuda.max_memory_allocated(device) if gpu else None
    limit = max(limit, matrix_rate(device))  # a GPU that has worked for a while is slower
    flops = _flops(config, batches) / ours.steps
    kernels = where_time_goes(
        lambda: ours.issue(plan.profiled),
        device,
        steps=plan.profiled,
        milliseconds=timed.milliseconds,
    )
    others = tuple(_against(config, ours, batches, device, plan, say)) if against else ()
    return Report(
        device=describe_device(device),
        torch=torch.__version__,
        preset=preset,
        precision="bf16" if wants_bf16(config.training.precision, device) else "fp32",
        parameters=ours.parameters,
        steps=ours.steps,
        rounds=plan.rounds,
        target_tokens_per_second=timed.tokens_per_second,
        spread=timed.spread,
        milliseconds_a_step=timed.milliseconds,
        slices=ours.slices,
        target_tokens_a_step=ours.target_tokens / ours.steps,
        source_fill=sum(b.source_tokens for b in batches) / sum(b.source_ids.size for b in batches),
        target_fill=ours.target_tokens / sum(b.target_input.size for b in batches),
        flops_a_step=flops,
        limit=limit,
        share_of_limit=flops / (timed.milliseconds / 1000) / limit,
        peak_memory=peak_memory,
        kernels=tuple(kernels),
        peers=others,
    )


def _flops(config: Config, batches: Sequence[Batch]) -> float:
    """Of all the batches: by formulas where they hold, else by PyTorch's counter."""
    if formulas_hold(config.model):
        return training_flops(config, sentence_lengths(batches))
    tokens = sum(batch.source_tokens + batch.target_tokens for batch in batches)
    first = batches[0].source_tokens + batches[0].target_tokens
    return counted_flops(config, batches[0]) * tokens / first


def _ready(config: Config) -> torch.device:
    """The device, set up as for training."""
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    device = pick_device(config.training.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.reset_peak_memory_stats(device)
    else:
        keep_freed_memory()
    return device


def _against(
    config: Config,
    ours: Ours,
    batches: Sequence[Batch],
    device: torch.device,
    plan: Plan,
    say: Callable[[str], None],
) -> Iterator[PeerResult]:
    """Each peer in turn with ours; one is gone before the next is made."""
    padded = padded_batches(batches, config.training.tokens)
    for kind in peer_kinds(device):
        say(f"timing {kind.name}: {plan.rounds} rounds of {len(padded)} steps, in turn with ours")
        try:
            result = _in_turn(Peer(kind, config, padded, device), ours, device, plan)
        except Exception as error:  # out of memory, or a fault of theirs: ours is still told
            reason = str(error).strip() or repr(error)
            result = PeerResult(name=kind.name, failed=reason.partition("\n")[0])
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
        yield result


def _in_turn(peer: Peer, ours: Ours, device: torch.device, plan: Plan) -> PeerResult:
    warm_up(peer, device, plan.warm_up)
    mine, theirs = take_turns([ours, peer], device, plan.rounds)
    return PeerResult(
        name=peer.name,
        parameters=peer.parameters,
        target_tokens_per_second=theirs.tokens_per_second,
        spread=theirs.spread,
        source_fill=peer.source_fill,
        target_fill=peer.target_fill,
        ours_in_turn=mine.tokens_per_second,
        times_as_fast=mine.tokens_per_second / theirs.tokens_per_second,
    )

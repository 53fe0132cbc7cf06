"""Measure training steps: how fast, how near the device's limit, and how fast the others are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from dragoman.bench.training.flops import (
    count_flops,
    formulas_hold,
    sentence_lengths,
    training_flops,
)
from dragoman.bench.training.peers import PeerTraining, check_peers, padded_batches, peer_models
from dragoman.bench.training.profile import profile_steps
from dragoman.bench.training.report import PeerResult, Report
from dragoman.bench.training.synthetic_corpus import SyntheticPairs, packed_batches
from dragoman.bench.training.timing import (
    DragomanTraining,
    free_device_memory,
    measure_matmul_rate,
    time_in_turns,
    warm_up_until_steady,
)
from dragoman.config import Config
from dragoman.data.batching.batches import Batch
from dragoman.errors import first_line
from dragoman.messages import counted
from dragoman.system.malloc import keep_freed_memory
from dragoman.training.distributed.ranks import describe_device, pick_device
from dragoman.training.precision import deterministic_algorithms, uses_bf16


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """Say how much is measured on a kind of device."""

    warm_up: int
    """Counts the steps at least before anything is timed."""
    rounds: int
    steps: int
    """Counts the steps of a round by default, one for each batch."""
    profiled: int
    """Counts the steps whose kernels are profiled."""


GPU_PLAN: Final = BenchmarkPlan(warm_up=10, rounds=5, steps=32, profiled=4)
CPU_PLAN: Final = BenchmarkPlan(warm_up=1, rounds=3, steps=8, profiled=2)


def measure(
    config: Config,
    preset: str,
    *,
    steps: int | None = None,
    against: bool = False,
    print_message: Callable[[str], None] = lambda message: None,
) -> Report:
    """Train on synthetic sentences for a while and report how fast; with `against`, peers too.

    The batches are built before the clock starts: what is timed is the step alone.
    """
    if against:
        check_peers(config)
    with deterministic_algorithms(config.training.deterministic):
        return _measure(config, preset, steps, against, print_message)


def _measure(
    config: Config,
    preset: str,
    steps: int | None,
    against: bool,
    print_message: Callable[[str], None],
) -> Report:
    device = _set_up_device(config)
    gpu = device.type == "cuda"
    plan = GPU_PLAN if gpu else CPU_PLAN
    limit = measure_matmul_rate(device)
    pairs = SyntheticPairs.for_config(config)
    batches = packed_batches(config, pairs, steps or plan.steps)
    training = DragomanTraining(config, batches, device)
    print_message(
        f"timing dragoman: {counted(plan.rounds, 'round')} of {counted(training.steps, 'step')}"
    )
    warm_up_steps = warm_up_until_steady(training, device, plan.warm_up)
    [timed] = time_in_turns([training], device, plan.rounds)
    peak_memory = torch.cuda.max_memory_allocated(device) if gpu else None
    limit = max(limit, measure_matmul_rate(device))  # a GPU that has worked for a while is slower
    flops = _count_flops(config, batches) / training.steps
    kernels = profile_steps(
        lambda: training.run_steps(plan.profiled),
        device,
        steps=plan.profiled,
        milliseconds=timed.milliseconds,
    )
    peers = _measure_peers(config, pairs, training, device, plan, print_message) if against else ()
    return Report(
        device=describe_device(device),
        torch=torch.__version__,
        preset=preset,
        precision="bf16" if uses_bf16(config.training.precision, device) else "fp32",
        parameters=training.parameters,
        steps=training.steps,
        rounds=plan.rounds,
        warm_up_steps=warm_up_steps,
        target_tokens_per_second=timed.tokens_per_second,
        spread=timed.spread,
        milliseconds_a_step=timed.milliseconds,
        slices=training.slices,
        target_tokens_a_step=training.target_tokens / training.steps,
        source_fill=sum(b.source_tokens for b in batches) / sum(b.source_ids.size for b in batches),
        target_fill=training.target_tokens / sum(b.target_input.size for b in batches),
        flops_a_step=flops,
        limit=limit,
        share_of_limit=flops / (timed.milliseconds / 1000) / limit,
        peak_memory=peak_memory,
        kernels=tuple(kernels),
        peers=tuple(peers),
    )


def _count_flops(config: Config, batches: Sequence[Batch]) -> float:
    """Count all the batches: by formulas where they hold, else by PyTorch's counter."""
    if formulas_hold(config.model):
        return training_flops(config, sentence_lengths(batches))
    tokens = sum(batch.source_tokens + batch.target_tokens for batch in batches)
    first = batches[0].source_tokens + batches[0].target_tokens
    return count_flops(config, batches[0]) * tokens / first


def _set_up_device(config: Config) -> torch.device:
    """Return the device, set up as for training."""
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    device = pick_device(config.training.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.reset_peak_memory_stats(device)
    else:
        keep_freed_memory()
    return device


def _measure_peers(
    config: Config,
    pairs: SyntheticPairs,
    ours: DragomanTraining,
    device: torch.device,
    plan: BenchmarkPlan,
    print_message: Callable[[str], None],
) -> Iterator[PeerResult]:
    """Time each peer in turn with ours; one is freed before the next is built."""
    batches = padded_batches(pairs, config.training.tokens, ours.steps)
    for model in peer_models(device):
        print_message(
            f"timing {model.name}: {plan.rounds} rounds of {len(batches)} steps, in turn with ours"
        )
        try:
            peer = PeerTraining(model, config, batches, device)
            warm_up_steps = warm_up_until_steady(peer, device, plan.warm_up)
            own_times, peer_times = time_in_turns([ours, peer], device, plan.rounds)
            result = PeerResult(
                name=peer.name,
                parameters=peer.parameters,
                target_tokens_per_second=peer_times.tokens_per_second,
                spread=peer_times.spread,
                source_fill=peer.source_fill,
                target_fill=peer.target_fill,
                ours_in_turn=own_times.tokens_per_second,
                times_as_fast=own_times.tokens_per_second / peer_times.tokens_per_second,
                steps=peer.steps,
                warm_up_steps=warm_up_steps,
                sorted_sentences=len(pairs),
            )
            del peer
        except Exception as error:  # out of memory, or a fault of theirs: ours still counts
            result = PeerResult(name=model.name, failed=first_line(error))
        free_device_memory(device)
        yield result

"""What is told of a measurement, where there is more or less to tell."""

from __future__ import annotations

import dataclasses

import pytest

from dragoman.bench.training.profile import GAPS, MATRIX, KernelClass
from dragoman.bench.training.report import PeerResult, Report

GPU = Report(
    device="NVIDIA H200",
    torch="2.11.0",
    preset="base",
    precision="bf16",
    parameters=63_045_632,
    steps=32,
    rounds=5,
    warm_up_steps=64,
    target_tokens_per_second=700_000.0,
    spread=0.012,
    milliseconds_a_step=35.2,
    slices=1,
    target_tokens_a_step=24_632.0,
    source_fill=0.993,
    target_fill=0.992,
    flops_a_step=9.9e12,
    limit=790e12,
    share_of_limit=0.356,
    peak_memory=3 * 2**30,
    kernels=(KernelClass(MATRIX, 20.0, 0.568), KernelClass(GAPS, 1.76, 0.05)),
    peers=(
        PeerResult(
            name="Somebody",
            parameters=63_200_000,
            target_tokens_per_second=50_000.0,
            spread=0.02,
            source_fill=0.889,
            target_fill=0.874,
            ours_in_turn=690_000.0,
            times_as_fast=13.8,
            steps=32,
            warm_up_steps=96,
            sorted_sentences=80_000,
        ),
    ),
)


def test_a_gpu_has_more_to_tell() -> None:
    assert list(GPU.lines()) == [
        "device: NVIDIA H200, torch 2.11.0, bf16",
        "preset: base, 63.05M parameters",
        "speed: 700,000 target tokens/s (median of 5 rounds of 32 steps, spread 1.2%)",
        "step: 35.20 ms for 24,632 target tokens (fill: source 0.993, target 0.992)",
        "arithmetic: 281.2 TFLOP/s on real tokens, 35.6% of the 790.0 TFLOP/s of a large matrix "
        "product",
        "memory: 3.00 GiB at the peak",
        "host: the GPU waits for it 5.0% of a step",
        "",
        "where the time goes  ms a step  share",
        "matrix products          20.00  56.8%",
        "gaps                      1.76   5.0%",
        "",
        "against   target tokens/s  spread  fill          parameters  dragoman is",
        "Somebody           50,000    2.0%  0.889, 0.874      63.20M  13.80 times as fast",
        "",
        "given     steps to warm up  steps a round  batches",
        "dragoman                64             32  packed rows",
        "Somebody                96             32  padded, sorted among 80,000 sentences",
    ]
    assert GPU.to_dict()["host_overhead"] == pytest.approx(0.05)


def test_a_profiler_that_sees_nothing_makes_no_table() -> None:
    blind = dataclasses.replace(GPU, kernels=(), peers=())
    assert list(blind.lines())[-1] == "where the time goes: the profiler saw nothing on this device"
    assert blind.host_overhead is None
    assert not any(line.startswith("host: ") for line in blind.lines())

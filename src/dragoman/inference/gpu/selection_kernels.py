"""These kernels select the next pieces: the best of every hypothesis, then of each sentence.

The first goes over the scores in parts: of each part its share of the softmax's sum, and its best
piece. The second is one program a sentence. The best candidate is the best of some part; then that
part is gone over once more for its next best, and so on: of all parts only a few are ever seen
twice. Then it follows the rules of `dragoman.search.beam`: the best finished hypotheses are kept,
the best others go on, their tables with them, and the sentence may be done.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
# R rows, K beams, C candidates, X parts of the vocabulary, N best finished, V targets

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.inference.gpu.batch_state import (
    DONE,
    FINISHED,
    LENGTH,
    MAX_LENGTH,
    MIN_LENGTH,
    BatchState,
)
from dragoman.inference.gpu.small_gemm import launch_options
from dragoman.inference.gpu.weights import GpuWeights
from dragoman.text.special_tokens import EOS, FIRST_PIECE

PART_SCORES = 1024
"""A part has so many scores."""
PARTS_PER_PROGRAM = 4
"""A program goes over so many parts at a time."""


def select_next(
    scores: Tensor,
    weights: GpuWeights,
    state: BatchState,
    batch_size: int,
    *,
    stop_early: bool,
    overlap: bool = False,
) -> None:
    """Choose the next piece of every hypothesis from scores, R V′ in fp32."""
    R, row_stride = scores.shape
    V, K, N = weights.targets, state.beams, state.n_best
    power = triton.next_power_of_2
    SIZE = min(PART_SCORES, power(V))
    X = triton.cdiv(V, SIZE)
    best = torch.empty(R, X, dtype=torch.float32, device=scores.device)
    found = torch.empty(R, X, dtype=torch.int32, device=scores.device)
    sums = torch.empty(R, X, 2, dtype=torch.float32, device=scores.device)
    biased = weights.output_bias is not None
    bias = weights.output_bias if biased else scores
    size = state.count + 1
    partial_best_kernel[(R, triton.cdiv(X, PARTS_PER_PROGRAM))](
        *(scores, bias, best, found, sums, state.active_slots, state.info_FS, state.sums_SK),
        *(V, row_stride, size, X),
        BEAMS=K,
        BIAS=biased,
        PARTS=PARTS_PER_PROGRAM,
        SIZE=SIZE,
        **launch_options(overlap),
        num_warps=4,
    )
    C = 2 * K if K > 1 else 1  # of one beam the best is enough: an end ends the search
    update_beams_kernel[(batch_size,)](
        *(scores, bias, best, found, sums, state.active_slots, state.info_FS),
        *(
            state.sums_SK,
            state.tables_2SKT,
            state.pieces_STK,
            state.running_STK,
            state.finished_SN4,
            state.finished_ids_SNT,
            state.finished_running_SNT,
        ),
        *(state.penalties_T, V, row_stride, size, state.max_positions),
        BEAMS=K,
        BEAMS_2=power(K),
        CANDIDATES=C,
        CANDIDATES_2=power(C),
        PARTS=X,
        PARTS_2=power(X),
        SIZE=SIZE,
        BEST=N,
        BEST_2=power(N),
        BIAS=biased,
        EARLY=stop_early,
        STEP=64,
        **launch_options(overlap),
        num_warps=1 if K == 1 else 4,
    )


@triton.jit
def partial_best_kernel(
    scores, bias, best, found, sums, active_slots, info, totals, V, row_stride, slots, X,
    BEAMS: tl.constexpr, BIAS: tl.constexpr, PARTS: tl.constexpr, SIZE: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    """Find the highest score of some parts of a row, Σ exp against it, and the best piece."""
    row = tl.program_id(0)
    slot, beam = tl.load(active_slots + row // BEAMS), row % BEAMS
    alive = tl.load(info + _DONE * slots + slot) == 0
    length = tl.load(info + _LENGTH * slots + slot)
    short = length < tl.load(info + _MIN_LENGTH * slots + slot)
    if BEAMS > 1:
        fresh = length == 0
        total = tl.load(totals + slot * BEAMS + beam)
        alive = alive & tl.where(fresh, beam == 0, total > -float("inf"))
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    if alive:
        part = tl.program_id(1) * PARTS + tl.arange(0, PARTS)
        piece = part[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
        at = scores + row.to(tl.int64) * row_stride + piece
        score = tl.load(at, mask=piece < V, other=-float("inf"))
        if BIAS:
            score += tl.load(bias + piece, mask=piece < V, other=0.0)
        highest = tl.max(score, 1)
        base = tl.where(highest == -float("inf"), 0.0, highest)
        mine, real = row * X + part, part < X
        tl.store(sums + mine * 2, highest, mask=real)
        tl.store(sums + mine * 2 + 1, tl.sum(tl.exp(score - base[:, None]), 1), mask=real)
        score = tl.where((piece < _FIRST) & ((piece != _EOS) | short), -float("inf"), score)
        value, place = tl.max(score, 1, return_indices=True)
        tl.store(best + mine, value, mask=real)
        tl.store(found + mine, part * SIZE + place, mask=real)


@triton.jit
def update_beams_kernel(
    scores, bias, best, found, sums, active_slots, info, totals, tables, pieces, running,
    finished, finished_ids, finished_running, penalties, V, row_stride, slots, max_positions,
    BEAMS: tl.constexpr, BEAMS_2: tl.constexpr, CANDIDATES: tl.constexpr,
    CANDIDATES_2: tl.constexpr, PARTS: tl.constexpr, PARTS_2: tl.constexpr, SIZE: tl.constexpr,
    BEST: tl.constexpr, BEST_2: tl.constexpr, BIAS: tl.constexpr, EARLY: tl.constexpr,
    STEP: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Decide what becomes of one sentence: what finishes, what goes on, whether it is done."""
    sentence = tl.program_id(0)
    slot = tl.load(active_slots + sentence)
    going = tl.load(info + _DONE * slots + slot) == 0
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    if going:
        length = tl.load(info + _LENGTH * slots + slot)
        finished_count = tl.load(info + _FINISHED * slots + slot)
        max_length = tl.load(info + _MAX_LENGTH * slots + slot)
        short = length < tl.load(info + _MIN_LENGTH * slots + slot)

        # What each hypothesis has, and log Σ exp of its scores.
        beam = tl.arange(0, BEAMS_2)
        row = sentence * BEAMS + beam
        total = tl.load(totals + slot * BEAMS + beam, mask=beam < BEAMS, other=-float("inf"))
        total = tl.where(length > 0, total, tl.where(beam == 0, 0.0, -float("inf")))
        alive = (beam < BEAMS) & (total > -float("inf"))
        part = tl.arange(0, PARTS_2)
        share = sums + (row[:, None] * PARTS + part[None, :]) * 2
        real = alive[:, None] & (part[None, :] < PARTS)
        base = tl.load(share, mask=real, other=-float("inf"))
        above = tl.where(alive, tl.max(base, 1), 0.0)
        weight = tl.load(share + 1, mask=real, other=0.0) * tl.exp(base - above[:, None])
        norm = above + tl.log(tl.where(alive, tl.sum(weight, 1), 1.0))
        broken = tl.max(tl.where(alive & (norm != norm), 1, 0), 0)

        # The best of each part; a sentence of full length may only end.
        at = row[:, None] * PARTS + part[None, :]
        value = tl.load(best + at, mask=real, other=-float("inf"))
        piece = tl.load(found + at, mask=real, other=0)
        full = length >= max_length
        if full:
            end = tl.load(scores + row.to(tl.int64) * row_stride + _EOS, mask=alive, other=0.0)
            if BIAS:
                end += tl.load(bias + _EOS)
            value = tl.where(part[None, :] == 0, end[:, None], -float("inf"))
            piece = tl.full([BEAMS_2, PARTS_2], _EOS, tl.int32)
        value = tl.where(real, total[:, None] + (value - norm[:, None]), -float("inf"))
        key = beam[:, None] * V + piece

        # The best of all, of equals the first; then its part has another best.
        rank, inside = tl.arange(0, CANDIDATES_2), tl.arange(0, SIZE)
        best_sum = tl.full([CANDIDATES_2], -float("inf"), tl.float32)
        best_key = tl.zeros([CANDIDATES_2], tl.int32)
        for candidate in range(CANDIDATES):
            top = tl.max(tl.max(value, 1), 0)
            first = tl.min(tl.min(tl.where(value == top, key, _NO_KEY), 1), 0)
            first = tl.where(top > -float("inf"), first, 0)  # where there is none, anything
            best_sum = tl.where(rank == candidate, top, best_sum)
            best_key = tl.where(rank == candidate, first, best_key)
            if (CANDIDATES > 1) & (top > -float("inf")):
                of, taken = first // V, first % V
                again = scores + (sentence * BEAMS + of).to(tl.int64) * row_stride
                other = taken // SIZE * SIZE + inside
                score = tl.load(again + other, mask=other < V, other=-float("inf"))
                limit = tl.load(again + taken)
                if BIAS:
                    score += tl.load(bias + other, mask=other < V, other=0.0)
                    limit += tl.load(bias + taken)
                left = (score < limit) | ((score == limit) & (other > taken))
                left = left & ((other >= _FIRST) | ((other == _EOS) & (short == 0)))
                score = tl.where(left, score, -float("inf"))
                if full:
                    score = tl.full([SIZE], -float("inf"), tl.float32)
                next_, place = tl.max(score, 0, return_indices=True)
                here = (beam[:, None] == of) & (part[None, :] == taken // SIZE)
                value = tl.where(here, total[:, None] + (next_ - norm[:, None]), value)
                key = tl.where(here, of * V + taken // SIZE * SIZE + place, key)
        parent, last = best_key // V, best_key % V
        ends = (last == _EOS) & (best_sum > -float("inf"))

        # Endings among the first K are finished, and kept if they are better than the worst kept.
        place = tl.arange(0, BEST_2)
        kept = tl.where(place < BEST, finished_count, 0) > 0
        figures = finished + (slot * BEST + place) * 4
        empty = tl.where(place < BEST, -float("inf"), float("inf")).to(tl.float64)
        finished_scores = tl.where(kept, tl.load(figures, mask=kept, other=0.0), empty)
        finished_sums = tl.load(figures + 1, mask=kept, other=-float("inf"))
        finished_lengths = tl.load(figures + 2, mask=kept, other=0.0)
        finished_ages = tl.where(kept, tl.load(figures + 3, mask=kept, other=0.0), -1.0 - place)
        penalty = tl.load(penalties + length)
        now, before = length % 2, tl.arange(0, STEP)
        for candidate in range(BEAMS):
            if tl.max(tl.where((rank == candidate) & ends, 1, 0), 0) > 0:
                sum_ = tl.max(tl.where(rank == candidate, best_sum, -float("inf")), 0)
                sum_ = sum_.to(tl.float64)
                score = sum_ / penalty
                worst = tl.min(finished_scores, 0)
                if score > worst:
                    youngest = tl.max(tl.where(finished_scores == worst, finished_ages, -1e9), 0)
                    leaves = (finished_scores == worst) & (finished_ages == youngest)
                    finished_scores = tl.where(leaves, score, finished_scores)
                    finished_sums = tl.where(leaves, sum_, finished_sums)
                    finished_lengths = tl.where(leaves, length.to(tl.float64), finished_lengths)
                    finished_ages = tl.where(leaves, finished_count.to(tl.float64), finished_ages)
                    into = tl.min(tl.where(leaves, place, BEST_2), 0)
                    of = tl.max(tl.where(rank == candidate, parent, 0), 0)
                    table = tables + ((now * slots + slot) * BEAMS + of) * max_positions
                    for start in range(1, length + 1, STEP):
                        time = start + before
                        through = of
                        if BEAMS > 1:
                            through = tl.load(table + time, mask=time < length, other=0)
                            through = tl.where(time == length, of, through)
                        entry = (slot * max_positions + time) * BEAMS + through
                        id_ = tl.load(pieces + entry, mask=time <= length, other=0)
                        sum_then = tl.load(running + entry, mask=time <= length, other=0.0)
                        to = (slot * BEST + into) * max_positions + time - 1
                        tl.store(finished_ids + to, id_, mask=time <= length)
                        tl.store(finished_running + to, sum_then, mask=time <= length)
                finished_count += 1
        if broken > 0:  # the host will say so
            finished_scores = tl.where(place == 0, float("nan"), finished_scores)
            finished_count = tl.maximum(finished_count, 1)

        # The best K others go on.
        others = (rank < CANDIDATES) & (ends == 0)
        becomes = tl.cumsum(others.to(tl.int32), 0) - 1
        chosen = others[None, :] & (becomes[None, :] == beam[:, None])
        any_ = tl.max(chosen.to(tl.int32), 1) > 0
        new_sum = tl.max(tl.where(chosen, best_sum[None, :], -float("inf")), 1)
        new_parent = tl.max(tl.where(chosen, parent[None, :], 0), 1)
        new_piece = tl.max(tl.where(chosen, last[None, :], 0), 1)
        new_sum = tl.where(any_ & (beam < BEAMS), new_sum, -float("inf"))
        best_new_sum = tl.max(new_sum, 0)
        overtaken = tl.max(finished_sums, 0) >= best_new_sum.to(tl.float64)
        done = (
            ((finished_count >= BEAMS) & overtaken) | (best_new_sum == -float("inf")) | (broken > 0)
        )
        if EARLY:
            bound = best_new_sum.to(tl.float64) / tl.load(penalties + max_length)
            done = done | (tl.min(finished_scores, 0) >= bound)

        tl.debug_barrier()  # all threads have read what is written now
        mine = beam < BEAMS
        tl.store(totals + slot * BEAMS + beam, new_sum, mask=mine)
        next_entry = (slot * max_positions + length + 1) * BEAMS + beam
        tl.store(pieces + next_entry, new_piece, mask=mine)
        tl.store(running + next_entry, new_sum, mask=mine)
        if BEAMS > 1:
            for start in range(0, length + 1, STEP):
                time = start + before
                old = tables + ((now * slots + slot) * BEAMS + new_parent[:, None]) * max_positions
                some = mine[:, None] & (time[None, :] < length)
                through = tl.load(old + time[None, :], mask=some, other=0)
                through = tl.where(time[None, :] == length, new_parent[:, None], through)
                new = tables + (((1 - now) * slots + slot) * BEAMS + beam[:, None]) * max_positions
                written = mine[:, None] & (time[None, :] <= length)
                tl.store(new + time[None, :], through, mask=written)
        there = place < BEST
        tl.store(figures, finished_scores, mask=there)
        tl.store(figures + 1, finished_sums, mask=there)
        tl.store(figures + 2, finished_lengths, mask=there)
        tl.store(figures + 3, finished_ages, mask=there)
        tl.store(info + _DONE * slots + slot, done.to(tl.int32))
        tl.store(info + _LENGTH * slots + slot, length + 1)
        tl.store(info + _FINISHED * slots + slot, finished_count)


_DONE, _LENGTH, _FINISHED = tl.constexpr(DONE), tl.constexpr(LENGTH), tl.constexpr(FINISHED)
_MAX_LENGTH, _MIN_LENGTH = tl.constexpr(MAX_LENGTH), tl.constexpr(MIN_LENGTH)
_EOS, _FIRST = tl.constexpr(EOS), tl.constexpr(FIRST_PIECE)
_NO_KEY = tl.constexpr(2147483647)

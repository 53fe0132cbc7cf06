"""Plain PyTorch computes the operations of a step, to be read, and for kernels to equal."""

# A active slots, K beams, R = A K rows, M model width, H heads, E width of a head, W = H E,
# T positions, P source positions, V targets, C candidates, N best finished

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.inference.gpu.batch_state import (
    DONE,
    FINISHED,
    INFO_FIELDS,
    LENGTH,
    MAX_LENGTH,
    MIN_LENGTH,
    SOURCE_LENGTH,
    BatchState,
)
from dragoman.inference.gpu.weights import GpuWeights, Matrix, Norm, Stage
from dragoman.search.allowed_outputs import penalize_repetition
from dragoman.search.beam import stable_topk
from dragoman.search.options import SearchOptions
from dragoman.search.repeated_ngrams import repeating_pieces
from dragoman.text.special_tokens import BOS, EOS, FIRST_PIECE, PAD


@dataclass(frozen=True, slots=True)
class RepetitionLimits:
    """Say how often the same may be said in an output, as `SearchOptions` do."""

    ngram: int
    penalty: float

    @classmethod
    def from_options(cls, options: SearchOptions) -> RepetitionLimits | None:
        """Return the limits that a search asks for; None if it asks for none."""
        if not options.limits_repetition:
            return None
        return cls(options.no_repeat_ngram, options.repetition_penalty)


class PlainOperations:
    """Compute the operations of a step on the rows of the active slots."""

    def __init__(self, weights: GpuWeights) -> None:
        self.weights = weights
        self._pad = torch.tensor([PAD], device=weights.device)

    # --- the residual stream ---

    def apply_stage(self, x: Tensor, y: Tensor | None, stage: Stage) -> tuple[Tensor, Tensor]:
        """Add `y` to the stream, R M in full precision; return it and what the stage makes."""
        x, z = self.add_and_norm(x, y, stage.norm)
        return x, self.linear(z, stage.matrix, stage.activation)

    def add_and_norm(self, x: Tensor, y: Tensor | None, norm: Norm | None) -> tuple[Tensor, Tensor]:
        """Return x + y, normalised if that is post-norm; and what the next matrix sees of it."""
        if y is not None:
            x = x + y
        z = x
        if norm is not None:
            z = F.layer_norm(x, x.shape[-1:], norm.gain, norm.bias, norm.epsilon)
        return (z if self.weights.post else x), z.to(self.weights.dtype)

    def linear(self, x: Tensor, matrix: Matrix, activation: str = "") -> Tensor:
        """Multiply each row with a matrix, and apply the activation."""
        out = F.linear(x, matrix.weight, matrix.bias)
        if activation == "relu":
            return F.relu(out)
        if activation == "gelu":
            return F.gelu(out)
        return F.silu(out) if activation == "swish" else out

    def scores(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Return unnormalised scores of the targets, and padding, R V′, in fp32."""
        return self.apply_stage(x, y, self.weights.projection)[1].float()

    # --- what depends on where a hypothesis is ---

    def embed(self, state: BatchState, batch_size: int) -> Tensor:
        """Return the embedding of every hypothesis's last piece, R M in full precision."""
        slots_A, lengths_A = self._active(state, batch_size)
        last_AK = state.pieces_STK[slots_A, lengths_A]
        last_AK = torch.where(lengths_A[:, None] > 0, last_AK, BOS)
        pieces_AKM = self.weights.target_pieces[last_AK].float() * self.weights.scale
        x: Tensor = pieces_AKM + state.positions_TM[lengths_A][:, None]
        return x.flatten(0, 1)

    def self_attention(self, qkv: Tensor, state: BatchState, layer: int, batch_size: int) -> Tensor:
        """Attend to the pieces before, R W from R 3W; keys and values are put into the cache."""
        w, K, T = self.weights, state.beams, state.max_positions
        slots_A, lengths_A = self._active(state, batch_size)
        q, own = qkv.split([w.attention_width, 2 * w.attention_width], dim=1)
        beams_K = torch.arange(K, device=qkv.device)
        here_AK = (slots_A * T + lengths_A)[:, None] * K + beams_K
        cache = state.cache_LCW[layer]
        cache[here_AK.flatten()] = own
        longest = int(lengths_A.max()) + 1
        times_T = torch.arange(longest, device=qkv.device)
        beams_AKT = beams_K[:, None].expand(batch_size, K, longest)
        if K > 1:
            tables_AKT = state.tables_2SKT[lengths_A % 2, slots_A][:, :, :longest]
            beams_AKT = torch.where(times_T == lengths_A[:, None, None], beams_AKT, tables_AKT)
        seen_AKT = (times_T <= lengths_A[:, None, None]).expand(batch_size, K, longest)
        entries_AKT = (slots_A[:, None, None] * T + times_T) * K + beams_AKT
        past = cache[entries_AKT.masked_fill(~seen_AKT, 0).flatten(0, 1)]
        return self._attend(q, past, seen_AKT.flatten(0, 1))

    def source_attention(self, q: Tensor, state: BatchState, layer: int, batch_size: int) -> Tensor:
        """Attend to the source, R W from R W."""
        slots_A, _ = self._active(state, batch_size)
        lengths_A = state.info_FS[SOURCE_LENGTH, slots_A].clamp(min=1)
        positions_P = torch.arange(int(lengths_A.max()), device=q.device)
        memory = state.source_cache_LPW[layer][slots_A[:, None] * state.source + positions_P]
        seen_AP = positions_P < lengths_A[:, None]
        repeat = state.beams
        return self._attend(
            q, memory.repeat_interleave(repeat, dim=0), seen_AP.repeat_interleave(repeat, dim=0)
        )

    def _attend(self, q_RW: Tensor, keys_values_RTW: Tensor, seen_RT: Tensor) -> Tensor:
        heads = self.weights.heads
        q = q_RW.unflatten(1, (heads, 1, -1))
        k, v = (x.unflatten(2, (heads, -1)).transpose(1, 2) for x in keys_values_RTW.chunk(2, 2))
        return F.scaled_dot_product_attention(q, k, v, seen_RT[:, None, None]).flatten(1)

    def _active(self, state: BatchState, batch_size: int) -> tuple[Tensor, Tensor]:
        """Return the active slots and how long their hypotheses are; 0 where they are done."""
        slots_A = state.active_slots[:batch_size].long()
        info_FA = state.info_FS[:INFO_FIELDS, slots_A].long()
        return slots_A, info_FA[LENGTH].masked_fill(info_FA[DONE] > 0, 0)

    # --- the choice ---

    def limit_repetition(
        self, scores: Tensor, state: BatchState, batch_size: int, limits: RepetitionLimits
    ) -> Tensor:
        """Return the scores, R V′, with less or nothing for what hypotheses hold already.

        What these lose goes to a piece that is never chosen, so that all others keep their
        probabilities.
        """
        (slots_A, lengths_A), V = self._active(state, batch_size), self.weights.targets
        beams_AK = torch.arange(state.beams, device=scores.device).expand(batch_size, -1)
        pieces = (state.pieces_STK, state, slots_A, lengths_A, beams_AK)
        held_RT = self.follow_hypotheses(*pieces).long().flatten(0, 1)
        lengths_R = lengths_A.repeat_interleave(state.beams)
        positions_T = torch.arange(held_RT.shape[1], device=scores.device)
        held_RT = held_RT.masked_fill(positions_T >= lengths_R[:, None], PAD)
        log_probs_RV = self._log_probs(scores)
        kept_RV = log_probs_RV
        if limits.penalty != 1.0:
            kept_RV = penalize_repetition(kept_RV, held_RT, limits.penalty)
        if limits.ngram > 0:
            banned_RW = repeating_pieces(held_RT, lengths_R, positions_T, limits.ngram)
            kept_RV = kept_RV.scatter(1, banned_RW, -torch.inf)
        kept_RV = kept_RV.index_fill(1, self._pad, -torch.inf)
        lost_R = (1 - kept_RV.exp().sum(1)).clamp(min=0)
        kept_RV = kept_RV.index_copy(1, self._pad, lost_R.log()[:, None])
        if self.weights.output_bias is not None:
            kept_RV = kept_RV - self.weights.output_bias
        return F.pad(kept_RV, (0, scores.shape[1] - V), value=-torch.inf)

    def select_next(
        self,
        scores: Tensor,
        state: BatchState,
        batch_size: int,
        *,
        stop_early: bool,
        after_kernel: bool = True,
    ) -> None:
        """Choose the next piece of every hypothesis by the rules of `beam_search`.

        `after_kernel` says that nothing of PyTorch's came between the scores and this.
        """
        K, V = state.beams, self.weights.targets
        log_probs_AKV = self._log_probs(scores).view(batch_size, K, V)
        slots_A = state.active_slots[:batch_size].long()
        going_A = state.info_FS[DONE, slots_A] == 0
        log_probs_AKV, slots_A = log_probs_AKV[going_A], slots_A[going_A]
        if not len(slots_A):
            return
        info_FA = state.info_FS[:INFO_FIELDS, slots_A].long()
        lengths_A = info_FA[LENGTH]
        sums_AK = state.sums_SK[slots_A]
        first_K = torch.full_like(sums_AK[0], -torch.inf)
        first_K[0] = 0.0  # all beams begin alike, so only the first counts
        sums_AK = torch.where(lengths_A[:, None] > 0, sums_AK, first_K)
        totals_AKV = sums_AK[:, :, None] + log_probs_AKV
        ends_AK = totals_AKV[:, :, EOS].clone()
        ends_AK[lengths_A < info_FA[MIN_LENGTH]] = -torch.inf
        totals_AKV[:, :, :FIRST_PIECE] = -torch.inf
        totals_AKV[lengths_A >= info_FA[MAX_LENGTH]] = -torch.inf
        totals_AKV[:, :, EOS] = ends_AK
        # Of one beam the best is enough: an end ends the search.
        best_AC, index_AC = stable_topk(totals_AKV.flatten(1), 2 * K if K > 1 else 1)
        parents_AC, pieces_AC = index_AC // V, index_AC % V
        ends_AC = (pieces_AC == EOS) & (best_AC > -torch.inf)

        final_AK = best_AC[:, :K].masked_fill(~ends_AC[:, :K], -torch.inf)
        finished_AN4 = self._add_finished(state, slots_A, lengths_A, parents_AC[:, :K], final_AK)
        ended_A = info_FA[FINISHED] + (final_AK > -torch.inf).sum(1)

        going_AK = ends_AC.int().argsort(dim=1, stable=True)[:, :K]
        sums_AK = best_AC.masked_fill(ends_AC, -torch.inf).gather(1, going_AK)
        parents_AK, last_AK = parents_AC.gather(1, going_AK), pieces_AC.gather(1, going_AK)
        self._extend(state, slots_A, lengths_A, parents_AK, last_AK)
        state.sums_SK[slots_A] = state.running_STK[slots_A, lengths_A + 1] = sums_AK

        best_sum_A = sums_AK.max(dim=1).values
        overtaken_A = finished_AN4[:, :, 1].max(dim=1).values >= best_sum_A
        done_A = (ended_A >= K) & overtaken_A | (best_sum_A == -torch.inf)
        if stop_early:
            bound_A = best_sum_A.double() / state.penalties_T[info_FA[MAX_LENGTH]]
            done_A |= finished_AN4[:, :, 0].min(dim=1).values >= bound_A
        broken_A = log_probs_AKV.isnan().flatten(1).any(1)  # said with the result
        state.finished_SN4[slots_A[broken_A], 0, 0] = torch.nan
        done_A, ended_A = done_A | broken_A, ended_A.clamp(min=broken_A.long())
        state.info_FS[DONE, slots_A] = done_A.int()
        state.info_FS[LENGTH, slots_A] = (lengths_A + 1).int()
        state.info_FS[FINISHED, slots_A] = ended_A.int()

    def _log_probs(self, scores: Tensor) -> Tensor:
        scores = scores[:, : self.weights.targets]
        if self.weights.output_bias is not None:
            scores = scores + self.weights.output_bias
        return scores.log_softmax(-1)

    def _add_finished(
        self,
        state: BatchState,
        slots_A: Tensor,
        lengths_A: Tensor,
        parents_AK: Tensor,
        sums_AK: Tensor,
    ) -> Tensor:
        """Keep the best of what has finished, of equals the older; return their figures, A N 4."""
        N = state.n_best
        old_AN4 = state.finished_SN4[slots_A]
        fresh_A = state.info_FS[FINISHED, slots_A] == 0
        empty_4 = old_AN4.new_tensor([-torch.inf, -torch.inf, 0.0, 0.0])
        old_AN4 = torch.where(fresh_A[:, None, None], empty_4, old_AN4)
        sums = sums_AK.double()
        lengths_AK = lengths_A[:, None].expand_as(sums)
        scores_AK = sums / state.penalties_T[lengths_A][:, None]
        new_AK4 = torch.stack([scores_AK, sums, lengths_AK.double(), lengths_AK.double()], dim=2)
        all_AX4 = torch.cat([old_AN4, new_AK4], dim=1)
        order_AN = all_AX4[:, :, 0].sort(dim=1, descending=True, stable=True).indices[:, :N]
        finished_AN4 = all_AX4.gather(1, order_AN[:, :, None].expand(-1, -1, 4))
        finished_AN4[:, :, 3] = torch.arange(N, device=sums.device)
        order_ANT = order_AN[:, :, None].expand(-1, -1, state.max_positions)
        for kept_SNT, all_STK in (
            (state.finished_ids_SNT, state.pieces_STK),
            (state.finished_running_SNT, state.running_STK),
        ):
            new_AKT = self.follow_hypotheses(all_STK, state, slots_A, lengths_A, parents_AK)
            kept_SNT[slots_A] = torch.cat([kept_SNT[slots_A], new_AKT], dim=1).gather(1, order_ANT)
        state.finished_SN4[slots_A] = finished_AN4
        return finished_AN4

    def follow_hypotheses(
        self,
        values_STK: Tensor,
        state: BatchState,
        slots_A: Tensor,
        lengths_A: Tensor,
        parents_AK: Tensor,
    ) -> Tensor:
        """Return what some hypotheses have at each of their pieces, A K T; the first is not BOS."""
        K, T = state.beams, state.max_positions
        tables_AKT = self._follow_tables(state, slots_A, lengths_A, parents_AK)
        entries_AKT = torch.arange(T, device=slots_A.device) * K + tables_AKT
        values_AX = values_STK[slots_A].flatten(1)
        found_AKT = values_AX.gather(1, entries_AKT.flatten(1)).view_as(entries_AKT)
        return found_AKT.roll(-1, dims=2)

    def _follow_tables(
        self, state: BatchState, slots_A: Tensor, lengths_A: Tensor, parents_AK: Tensor
    ) -> Tensor:
        """Return whose entries the hypotheses of these parents go through, A K T."""
        T = state.max_positions
        if state.beams == 1:
            return parents_AK[:, :, None].expand(-1, -1, T)
        tables_AKT = state.tables_2SKT[lengths_A % 2, slots_A].long()
        tables_AKT = tables_AKT.gather(1, parents_AK[:, :, None].expand(-1, -1, T))
        here_A1T = torch.arange(T, device=slots_A.device) == lengths_A[:, None, None]
        return torch.where(here_A1T, parents_AK[:, :, None], tables_AKT)

    def _extend(
        self,
        state: BatchState,
        slots_A: Tensor,
        lengths_A: Tensor,
        parents_AK: Tensor,
        last_AK: Tensor,
    ) -> None:
        state.pieces_STK[slots_A, lengths_A + 1] = last_AK.int()
        if state.beams > 1:
            tables_AKT = self._follow_tables(state, slots_A, lengths_A, parents_AK)
            state.tables_2SKT[(lengths_A + 1) % 2, slots_A] = tables_AKT.int()

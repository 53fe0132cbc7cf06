"""What a step is made of: in plain PyTorch, to be read, and what kernels must equal."""

# A lanes, K beams, R = A K rows, M model width, H heads, E width of a head, W = H E, T positions,
# P source positions, V targets, C candidates, N best finished

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.inference.gpu.batch_state import CEILING, DONE, ENDED, LENGTH, MARKS, SOURCE, Slots
from dragoman.inference.gpu.weights import Matrix, Norm, Stage, Weights
from dragoman.search.ranking import best_of
from dragoman.text.special_tokens import BOS, EOS, FIRST

__all__ = ["Arithmetic"]


class Arithmetic:
    """The operations of a step on the rows of some lanes; kernels take the place of most."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    # --- the residual stream ---

    def enter(self, x: Tensor, y: Tensor | None, stage: Stage) -> tuple[Tensor, Tensor]:
        """The stream after `y` is added, R M in full precision, and what the stage makes of it."""
        x, z = self.add_and_norm(x, y, stage.norm)
        return x, self.product(z, stage.matrix, stage.activation)

    def add_and_norm(self, x: Tensor, y: Tensor | None, norm: Norm | None) -> tuple[Tensor, Tensor]:
        """x + y, normalised if that is post-norm; and what the next matrix sees of it."""
        if y is not None:
            x = x + y
        z = x
        if norm is not None:
            z = F.layer_norm(x, x.shape[-1:], norm.gain, norm.bias, norm.epsilon)
        return (z if self.weights.post else x), z.to(self.weights.dtype)

    def product(self, x: Tensor, matrix: Matrix, activation: str = "") -> Tensor:
        """Outputs of each row."""
        out = F.linear(x, matrix.weight, matrix.bias)
        if activation == "relu":
            return F.relu(out)
        if activation == "gelu":
            return F.gelu(out)
        return F.silu(out) if activation == "swish" else out

    def scores(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Unnormalised, of the targets and of nothing where they are padded, R V′, in fp32."""
        return self.enter(x, y, self.weights.projection)[1].float()

    # --- what depends on where a hypothesis is ---

    def embed(self, slots: Slots, lanes: int) -> Tensor:
        """The last piece of every hypothesis and its position, R M in full precision."""
        chosen_A, lengths_A = self._where(slots, lanes)
        last_AK = slots.pieces_STK[chosen_A, lengths_A]
        last_AK = torch.where(lengths_A[:, None] > 0, last_AK, BOS)
        pieces_AKM = self.weights.target_pieces[last_AK].float() * self.weights.scale
        x: Tensor = pieces_AKM + slots.positions_TM[lengths_A][:, None]
        return x.flatten(0, 1)

    def look_back(self, qkv: Tensor, slots: Slots, layer: int, lanes: int) -> Tensor:
        """Self-attention, R W from R 3W; keys and values are left in the cells of this position."""
        w, K, T = self.weights, slots.beams, slots.places
        chosen_A, lengths_A = self._where(slots, lanes)
        q, own = qkv.split([w.wide, 2 * w.wide], dim=1)
        beams_K = torch.arange(K, device=qkv.device)
        here_AK = (chosen_A * T + lengths_A)[:, None] * K + beams_K
        cells = slots.own_LCW[layer]
        cells[here_AK.flatten()] = own
        longest = int(lengths_A.max()) + 1
        times_T = torch.arange(longest, device=qkv.device)
        beams_AKT = beams_K[:, None].expand(lanes, K, longest)
        if K > 1:
            tables_AKT = slots.tables_2SKT[lengths_A % 2, chosen_A][:, :, :longest]
            beams_AKT = torch.where(times_T == lengths_A[:, None, None], beams_AKT, tables_AKT)
        seen_AKT = (times_T <= lengths_A[:, None, None]).expand(lanes, K, longest)
        cells_AKT = (chosen_A[:, None, None] * T + times_T) * K + beams_AKT
        past = cells[cells_AKT.masked_fill(~seen_AKT, 0).flatten(0, 1)]
        return self._attend(q, past, seen_AKT.flatten(0, 1))

    def look_at_source(self, q: Tensor, slots: Slots, layer: int, lanes: int) -> Tensor:
        """Attention to the source, R W from R W."""
        chosen_A, _ = self._where(slots, lanes)
        lengths_A = slots.marks[SOURCE, chosen_A].clamp(min=1)
        places_P = torch.arange(int(lengths_A.max()), device=q.device)
        memory = slots.source_LPW[layer][chosen_A[:, None] * slots.source + places_P]
        seen_AP = places_P < lengths_A[:, None]
        repeat = slots.beams
        return self._attend(
            q, memory.repeat_interleave(repeat, dim=0), seen_AP.repeat_interleave(repeat, dim=0)
        )

    def _attend(self, q_RW: Tensor, keys_values_RTW: Tensor, seen_RT: Tensor) -> Tensor:
        heads = self.weights.heads
        q = q_RW.unflatten(1, (heads, 1, -1))
        k, v = (x.unflatten(2, (heads, -1)).transpose(1, 2) for x in keys_values_RTW.chunk(2, 2))
        return F.scaled_dot_product_attention(q, k, v, seen_RT[:, None, None]).flatten(1)

    def _where(self, slots: Slots, lanes: int) -> tuple[Tensor, Tensor]:
        """The slots of the lanes and how long their hypotheses are; 0 where they are done."""
        chosen_A = slots.lanes[:lanes].long()
        marks = slots.marks[:MARKS, chosen_A].long()
        return chosen_A, marks[LENGTH].masked_fill(marks[DONE] > 0, 0)

    # --- the choice ---

    def choose(self, scores: Tensor, slots: Slots, lanes: int, *, stop_early: bool) -> None:
        """From scores to the next piece of every hypothesis, by the rules of `beam_search`."""
        K, V = slots.beams, self.weights.targets
        log_probs_AKV = self._log_probs(scores).view(lanes, K, V)
        chosen_A = slots.lanes[:lanes].long()
        going_A = slots.marks[DONE, chosen_A] == 0
        log_probs_AKV, chosen_A = log_probs_AKV[going_A], chosen_A[going_A]
        if not len(chosen_A):
            return
        marks = slots.marks[:MARKS, chosen_A].long()
        lengths_A = marks[LENGTH]
        sums_AK = slots.sums_SK[chosen_A]
        first_K = torch.full_like(sums_AK[0], -torch.inf)
        first_K[0] = 0.0  # all beams begin alike, so only the first counts
        sums_AK = torch.where(lengths_A[:, None] > 0, sums_AK, first_K)
        totals_AKV = sums_AK[:, :, None] + log_probs_AKV
        ends_AK = totals_AKV[:, :, EOS].clone()
        totals_AKV[:, :, :FIRST] = -torch.inf
        totals_AKV[lengths_A >= marks[CEILING]] = -torch.inf
        totals_AKV[:, :, EOS] = ends_AK
        # Of one beam the best is enough: an end ends the search.
        best_AC, index_AC = best_of(totals_AKV.flatten(1), 2 * K if K > 1 else 1)
        parents_AC, pieces_AC = index_AC // V, index_AC % V
        ends_AC = (pieces_AC == EOS) & (best_AC > -torch.inf)

        final_AK = best_AC[:, :K].masked_fill(~ends_AC[:, :K], -torch.inf)
        pool_AN4 = self._finish(slots, chosen_A, lengths_A, parents_AC[:, :K], final_AK)
        ended_A = marks[ENDED] + (final_AK > -torch.inf).sum(1)

        going_AK = ends_AC.int().argsort(dim=1, stable=True)[:, :K]
        sums_AK = best_AC.masked_fill(ends_AC, -torch.inf).gather(1, going_AK)
        parents_AK, last_AK = parents_AC.gather(1, going_AK), pieces_AC.gather(1, going_AK)
        self._go_on(slots, chosen_A, lengths_A, parents_AK, last_AK)
        slots.sums_SK[chosen_A] = sums_AK

        hope_A = sums_AK.max(dim=1).values
        overtaken_A = pool_AN4[:, :, 1].max(dim=1).values >= hope_A
        done_A = (ended_A >= K) & overtaken_A | (hope_A == -torch.inf)
        if stop_early:
            bound_A = hope_A.double() / slots.penalties_T[marks[CEILING]]
            done_A |= pool_AN4[:, :, 0].min(dim=1).values >= bound_A
        broken_A = log_probs_AKV.isnan().flatten(1).any(1)  # said with the result
        slots.pool_SN4[chosen_A[broken_A], 0, 0] = torch.nan
        done_A, ended_A = done_A | broken_A, ended_A.clamp(min=broken_A.long())
        slots.marks[DONE, chosen_A] = done_A.int()
        slots.marks[LENGTH, chosen_A] = (lengths_A + 1).int()
        slots.marks[ENDED, chosen_A] = ended_A.int()

    def _log_probs(self, scores: Tensor) -> Tensor:
        scores = scores[:, : self.weights.targets]
        if self.weights.output_bias is not None:
            scores = scores + self.weights.output_bias
        return scores.log_softmax(-1)

    def _finish(
        self, slots: Slots, chosen_A: Tensor, lengths_A: Tensor, parents_AK: Tensor, sums_AK: Tensor
    ) -> Tensor:
        """Into the pool where they are better, of equals the older first; its figures, A N 4."""
        N = slots.best
        old_AN4 = slots.pool_SN4[chosen_A]
        fresh_A = slots.marks[ENDED, chosen_A] == 0
        nowhere_4 = old_AN4.new_tensor([-torch.inf, -torch.inf, 0.0, 0.0])
        old_AN4 = torch.where(fresh_A[:, None, None], nowhere_4, old_AN4)
        sums = sums_AK.double()
        lengths_AK = lengths_A[:, None].expand_as(sums)
        scores_AK = sums / slots.penalties_T[lengths_A][:, None]
        new_AK4 = torch.stack([scores_AK, sums, lengths_AK.double(), lengths_AK.double()], dim=2)
        all_AX4 = torch.cat([old_AN4, new_AK4], dim=1)
        order_AN = all_AX4[:, :, 0].sort(dim=1, descending=True, stable=True).indices[:, :N]
        pool_AN4 = all_AX4.gather(1, order_AN[:, :, None].expand(-1, -1, 4))
        pool_AN4[:, :, 3] = torch.arange(N, device=sums.device)
        T = slots.places
        ids_AKT = self._ids(slots, chosen_A, lengths_A, parents_AK)
        ids_AXT = torch.cat([slots.pool_SNT[chosen_A], ids_AKT], dim=1)
        slots.pool_SNT[chosen_A] = ids_AXT.gather(1, order_AN[:, :, None].expand(-1, -1, T))
        slots.pool_SN4[chosen_A] = pool_AN4
        return pool_AN4

    def _ids(self, slots: Slots, chosen_A: Tensor, lengths_A: Tensor, parents_AK: Tensor) -> Tensor:
        """The pieces of some hypotheses, A K T; the first is not BOS."""
        K, T = slots.beams, slots.places
        tables_AKT = self._routes(slots, chosen_A, lengths_A, parents_AK)
        cells_AKT = torch.arange(T, device=chosen_A.device) * K + tables_AKT
        pieces_AX = slots.pieces_STK[chosen_A].flatten(1)
        ids_AKT = pieces_AX.gather(1, cells_AKT.flatten(1)).view_as(cells_AKT)
        return ids_AKT.roll(-1, dims=2)

    def _routes(
        self, slots: Slots, chosen_A: Tensor, lengths_A: Tensor, parents_AK: Tensor
    ) -> Tensor:
        """Through whose cells the hypotheses of these parents go, A K T; up to their length."""
        T = slots.places
        if slots.beams == 1:
            return parents_AK[:, :, None].expand(-1, -1, T)
        tables_AKT = slots.tables_2SKT[lengths_A % 2, chosen_A].long()
        tables_AKT = tables_AKT.gather(1, parents_AK[:, :, None].expand(-1, -1, T))
        here_A1T = torch.arange(T, device=chosen_A.device) == lengths_A[:, None, None]
        return torch.where(here_A1T, parents_AK[:, :, None], tables_AKT)

    def _go_on(
        self,
        slots: Slots,
        chosen_A: Tensor,
        lengths_A: Tensor,
        parents_AK: Tensor,
        last_AK: Tensor,
    ) -> None:
        slots.pieces_STK[chosen_A, lengths_A + 1] = last_AK.int()
        if slots.beams > 1:
            tables_AKT = self._routes(slots, chosen_A, lengths_A, parents_AK)
            slots.tables_2SKT[(lengths_A + 1) % 2, chosen_A] = tables_AKT.int()

"""One optimiser step: forward, backward, the guard, Adam, the moving average.

Nothing in a step waits for the device: what came of it is read some steps later. On one GPU the
step is recorded once as CUDA graphs and replayed, so that the host is never in the way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman import kernels
from dragoman.config import Config
from dragoman.data.batching.batches import Batch
from dragoman.errors import ConfigError
from dragoman.models import Model
from dragoman.training.distributed.parallel import exchanging, local, spread, wants_shards
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.loss import Criterion, TensorBatch, in_one_piece
from dragoman.training.memory.oom_retry import Ration
from dragoman.training.optimizers import Adam, MovingAverage, Muon, learning_rate
from dragoman.training.precision import Twin, computes_fast, wants_bf16

__all__ = ["StepResult", "Stepper"]

AHEAD = 8
"""Steps the host may be ahead of the device."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of one step."""

    step: int
    loss: float
    """Smoothed, a target token."""
    nll: float
    """Negative log-likelihood a target token."""
    norm: float
    """Of the gradient, before clipping."""
    rate: float
    tokens: int
    """Target tokens of the batch, over all ranks."""
    fill: float
    """Share of the target positions that are not padding."""
    skipped: bool
    """The guard found the loss or the gradient not finite, or far too large; nothing changed."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A result that is still on the device, or on its way."""

    step: int
    rate: float
    tokens: int
    fill: float
    numbers: Tensor
    ready: torch.cuda.Event | None


class Stepper:
    """Everything that changes when a batch is learned from."""

    def __init__(self, config: Config, model: Model, device: torch.device, ranks: Ranks) -> None:
        settings = config.training
        self.config, self.model, self.device, self.ranks = config, model, device, ranks
        self.sharded = wants_shards(settings, model, device, ranks)
        if self.sharded and settings.optimizer == "muon":
            raise ConfigError(
                'training.optimizer = "muon" needs whole matrices, and this run keeps them in '
                'shards (training.sharding); try training.optimizer="adam"'
            )
        if not self.sharded:  # which come to the device by themselves, a layer at a time
            model.to(device)
        self.fast = model.fast and computes_fast(settings.precision, device)
        self.twin = Twin(model) if self.fast and not self.sharded else None
        criterion = Criterion(
            self.twin.model if self.twin else model,
            label_smoothing=settings.label_smoothing,
            r_drop=settings.r_drop,
        )
        self.criterion = spread(criterion, settings, device, ranks, sharded=self.sharded)
        self.ration = Ration(settings.accumulate, ranks, sharded=self.sharded)
        kind = Muon if settings.optimizer == "muon" else Adam
        self.optimizer = kind(model, settings, self.twin)
        self.average = MovingAverage(model.parameters(), settings.ema) if settings.ema else None
        self.captures = self.twin is not None and ranks.world == 1 and not settings.r_drop
        self.rate = torch.zeros((), device=device)
        self.scale = torch.zeros((), device=device)
        self.sums = torch.zeros(2, device=device)
        """Loss and negative log-likelihood of the slices so far, a token."""
        self.norm = torch.zeros((), device=device)
        """Of the gradient."""
        self.numbers = torch.zeros(4, device=device)
        """Loss, negative log-likelihood, norm, skipped: of the last step."""
        self._pending: deque[_Pending] = deque()
        self._static: TensorBatch | None = None
        self._replay_slice: Callable[[], None] | None = None
        self._replay_update: Callable[[], None] | None = None

    # --- a step ---

    def run(self, batch: Batch, step: int) -> None:
        """Learn from a batch, or from this rank's rows of it; does not wait for the result."""
        settings, world = self.config.training, self.ranks.world
        rate = learning_rate(settings, self.config.model.d_model, step)
        tokens = batch.target_tokens
        mine = batch.rows(self.ranks.rank, world).with_rows(-(-len(batch.source_ids) // world))
        self.rate.fill_(rate)
        # DDP takes the mean over ranks; the loss is the mean over the whole batch's tokens.
        self.scale.fill_(world / tokens)
        self.ration.spend(
            step,
            len(mine.source_ids),
            compute=lambda together: self._gradients(mine, step, together=together),
            exchange=lambda: self._exchange(mine),
            forget=self._forget,
        )
        if self._replay_update is not None:
            self._replay_update()
        else:
            self._update()
        if self.average is not None:
            self.average.update(step)
        self._remember(step, rate, tokens, tokens / batch.target_segments.size)

    def finished(self, *, wait: bool = False) -> Iterator[StepResult]:
        """Results not yet given, oldest first: those that are there, or all."""
        while self._pending:
            first = self._pending[0]
            if first.ready is not None and not first.ready.query():
                if not wait and len(self._pending) <= AHEAD:
                    return
                first.ready.synchronize()
            self._pending.popleft()
            loss, nll, norm, skipped = first.numbers.tolist()
            yield StepResult(
                step=first.step,
                loss=loss,
                nll=nll,
                norm=norm,
                rate=first.rate,
                tokens=first.tokens,
                fill=first.fill,
                skipped=bool(skipped),
            )

    def rehearse(self, rows: Batch) -> None:
        """Find the gradients of some rows and forget them: that takes what a slice will take."""
        self.scale.fill_(1 / rows.target_tokens)
        try:
            with self._without_drawing(), exchanging(self.criterion, False):
                self._slice(TensorBatch.of(rows, self.device))
        finally:
            self._forget()

    def weights_changed(self) -> None:
        """To be called when somebody else has written to the model's weights."""
        if self.twin is not None:
            self.twin.take_weights()

    # --- its parts, on the device ---

    def _gradients(self, mine: Batch, step: int, *, together: bool) -> None:
        """The gradients of this rank's rows, slice by slice; of all ranks' if `together`."""
        slices = self.ration.slices
        for part in range(slices):
            if self.fast:
                kernels.reseed(self.device, self.config.training.seed, step, self.ranks.rank, part)
            rows = mine.rows(part, slices).with_rows(-(-len(mine.source_ids) // slices))
            if self.captures:
                self._slice_captured(rows)
            else:  # ranks exchange gradients once a step, with the last slice
                with exchanging(self.criterion, together and part == slices - 1):
                    self._slice(TensorBatch.of(rows, self.device))

    def _exchange(self, mine: Batch) -> None:
        """Make the gradients this rank found alone those of all: by a slice that adds nothing."""
        nothing = Batch(*(array[:0] for array in mine.arrays())).with_rows(1)
        with self._without_drawing():  # so that careful steps and others have the same dropout
            self._slice(TensorBatch.of(nothing, self.device))

    def _forget(self) -> None:
        """Let go of what a step that failed had found."""
        self.sums.zero_()
        if self.twin is None:
            self.optimizer.zero_grad()
        else:
            self.twin.forget_gradients()
            self.twin.gradients.zero_()
        self._static = self._replay_slice = self._replay_update = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _slice(self, rows: TensorBatch) -> None:
        """The gradient of some rows, added to what there is."""
        if self.twin is not None and self.ranks.world == 1:
            self.twin.forget_gradients()
        with self.autocast():
            loss, nll = self.criterion(rows, self.scale)
        loss.backward()
        self.sums += torch.stack([loss.detach(), nll.detach()])
        if self.twin is not None and self.ranks.world == 1:
            add = self.ration.slices > 1
            self.norm.copy_(self.twin.give_gradients(add=add))

    @torch.no_grad()
    def _update(self) -> None:
        """Adam, unless the guard objects; the sums and gradients begin anew."""
        settings = self.config.training
        if self.twin is not None and self.ranks.world > 1:
            self.norm.copy_(self.twin.give_gradients(add=False))
            self.twin.forget_gradients()
        elif self.twin is None:
            found = [p.grad for p in self.optimizer.parameters if p.grad is not None]
            self.norm.copy_(torch.stack(torch._foreach_norm([local(g) for g in found])).norm())
        norm = self.norm
        if self.sharded:  # each rank has seen its own rows of every weight
            norm = (self.ranks.mean(norm.square()) * self.ranks.world).sqrt()
        loss, nll = self.ranks.mean(self.sums)
        recent = self.optimizer.recent_loss
        spike = (recent > 0) & (loss > settings.spike * recent)
        skip = (spike | ~torch.isfinite(loss) | ~torch.isfinite(norm)).float()
        excess = (norm / settings.clip_norm).clamp(min=1) if settings.clip_norm else None
        self.optimizer.step(self.rate, divide_by=excess, skip=skip)
        gained = torch.where(recent > 0, recent.lerp(loss, 0.02), loss)
        recent.copy_(torch.where(skip > 0, recent, gained))
        self.numbers.copy_(torch.stack([loss, nll, norm, skip]))
        self.sums.zero_()
        if self.twin is None:
            self.optimizer.zero_grad()
        elif self.ration.slices > 1:
            self.twin.gradients.zero_()

    # --- as CUDA graphs ---

    def _slice_captured(self, rows: Batch) -> None:
        numbers = in_one_piece(rows, self.device)
        if self._static is None:
            (R, S), T = rows.source_ids.shape, rows.target_input.shape[1]
            self._input = numbers.to(self.device)
            self._static = TensorBatch.over(self._input, (R, S, T))
            self._capture(self._static)
        self._input.copy_(numbers, non_blocking=True)
        assert self._replay_slice is not None
        self._replay_slice()

    def _capture(self, static: TensorBatch) -> None:
        """Record both halves of a step; running the first one before changes no weight."""
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # kernels are compiled, workspaces allocated
                self._slice(static)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.empty_cache()  # graphs keep memory of their own, as much again
        self.sums.zero_()
        if self.twin is not None:
            self.twin.gradients.zero_()
        slice_graph, update_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        kernels.restart(self.device)
        with torch.cuda.graph(slice_graph):
            self._slice(static)
        with torch.cuda.graph(update_graph, pool=slice_graph.pool()):
            self._update()
        self._replay_slice, self._replay_update = slice_graph.replay, update_graph.replay

    # --- small tools ---

    def _remember(self, step: int, rate: float, tokens: int, fill: float) -> None:
        numbers, ready = self.numbers, None
        if self.device.type == "cuda":
            numbers = torch.empty(4, pin_memory=True).copy_(numbers, non_blocking=True)
            ready = torch.cuda.Event()
            ready.record()
        else:
            numbers = numbers.clone()
        self._pending.append(_Pending(step, rate, tokens, fill, numbers, ready))

    def _without_drawing(self) -> AbstractContextManager[None]:
        """A block that leaves the random generators as they were."""
        return torch.random.fork_rng([self.device] if self.device.type == "cuda" else [])

    def autocast(self) -> torch.autocast:
        """bf16 arithmetic on fp32 weights; the fast path and shards have bf16 weights instead."""
        wanted = wants_bf16(self.config.training.precision, self.device)
        enabled = wanted and self.twin is None and not self.sharded
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

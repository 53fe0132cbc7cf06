"""One optimiser step is forward, backward, the check for bad losses, Adam, the moving average.

Nothing in a step waits for the device: its result is read some steps later. On one GPU the step is
recorded once as CUDA graphs and replayed, so that the host never slows it down.
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
from dragoman.training.distributed.parallel import (
    gradient_sync,
    local_tensor,
    parallelize,
    should_shard,
)
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.learning_rate import learning_rate
from dragoman.training.loss import Criterion, TensorBatch, pack_batch
from dragoman.training.memory import OomRetry
from dragoman.training.moving_average import MovingAverage
from dragoman.training.optimizers import Adam, Muon
from dragoman.training.precision import Bf16Copy, uses_bf16, uses_kernels

MAX_PENDING = 8
"""The host may be this many steps ahead of the device."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """Hold what came of one step."""

    step: int
    loss: float
    """This is the smoothed loss a target token."""
    nll: float
    """This is the negative log-likelihood a target token."""
    gradient_norm: float
    """This is the norm of the gradient before clipping."""
    rate: float
    tokens: int
    """This counts the target tokens of the batch, over all ranks."""
    fill: float
    """This is the fraction of the target positions that are not padding."""
    skipped: bool
    """This is True if loss or gradient was not finite, or far too large; then nothing changed."""


@dataclass(frozen=True, slots=True)
class _PendingResult:
    """Hold a result that may still be on its way from the device."""

    step: int
    rate: float
    tokens: int
    fill: float
    numbers: Tensor
    ready: torch.cuda.Event | None


class Stepper:
    """Learn from batches: hold the weights, the optimiser and all else that a step changes."""

    def __init__(self, config: Config, model: Model, device: torch.device, ranks: Ranks) -> None:
        settings = config.training
        self.config, self.model, self.device, self.ranks = config, model, device, ranks
        self.sharded = should_shard(settings, model, device, ranks)
        if self.sharded and settings.optimizer == "muon":
            raise ConfigError(
                'training.optimizer = "muon" needs whole matrices, and this run keeps them in '
                'shards (training.sharding); try training.optimizer="adam"'
            )
        if not self.sharded:  # FSDP moves weights to the device by itself, a layer at a time
            model.to(device)
        self.fast = model.fast and uses_kernels(settings.precision, device)
        self.bf16_copy = Bf16Copy(model) if self.fast and not self.sharded else None
        criterion = Criterion(
            self.bf16_copy.model if self.bf16_copy else model,
            label_smoothing=settings.label_smoothing,
            r_drop=settings.r_drop,
        )
        self.criterion = parallelize(criterion, settings, device, ranks, sharded=self.sharded)
        self.oom_retry = OomRetry(settings.accumulate, ranks, sharded=self.sharded)
        optimizer_class = Muon if settings.optimizer == "muon" else Adam
        self.optimizer = optimizer_class(model, settings, self.bf16_copy)
        self.average = MovingAverage(model.parameters(), settings.ema) if settings.ema else None
        self.uses_cuda_graphs = (
            self.bf16_copy is not None and ranks.world_size == 1 and not settings.r_drop
        )
        self.rate = torch.zeros((), device=device)
        self.scale = torch.zeros((), device=device)
        self.loss_sums = torch.zeros(2, device=device)
        """These are loss and negative log-likelihood of the slices so far, a token."""
        self.gradient_norm = torch.zeros((), device=device)
        self.result = torch.zeros(4, device=device)
        """These are loss, negative log-likelihood, gradient norm and skipped, of the last step."""
        self._pending: deque[_PendingResult] = deque()
        self._static_batch: TensorBatch | None = None
        self._replay_slice: Callable[[], None] | None = None
        self._replay_update: Callable[[], None] | None = None

    # --- a step ---

    def run(self, batch: Batch, step: int) -> None:
        """Learn from a batch, or from this rank's rows of it, without waiting for the result."""
        settings, world_size = self.config.training, self.ranks.world_size
        rate = learning_rate(settings, self.config.model.d_model, step)
        tokens = batch.target_tokens
        rows = -(-len(batch.source_ids) // world_size)
        own = batch.rows(self.ranks.rank, world_size).with_rows(rows)
        self.rate.fill_(rate)
        # DDP takes the mean over ranks; the loss is the mean over the whole batch's tokens.
        self.scale.fill_(world_size / tokens)
        self.oom_retry.run_step(
            step,
            rows,
            compute=lambda sync: self._compute_gradients(own, step, sync=sync),
            exchange=lambda: self._exchange_gradients(own),
            discard=self._discard_gradients,
        )
        if self._replay_update is not None:
            self._replay_update()
        else:
            self._update()
        if self.average is not None:
            self.average.update(step)
        self._queue_result(step, rate, tokens, tokens / batch.target_segments.size)

    def take_results(self, *, wait: bool = False) -> Iterator[StepResult]:
        """Yield results not yet yielded, oldest first: those that are ready, or all if `wait`."""
        while self._pending:
            first = self._pending[0]
            if first.ready is not None and not first.ready.query():
                if not wait and len(self._pending) <= MAX_PENDING:
                    return
                first.ready.synchronize()
            self._pending.popleft()
            loss, nll, gradient_norm, skipped = first.numbers.tolist()
            yield StepResult(
                step=first.step,
                loss=loss,
                nll=nll,
                gradient_norm=gradient_norm,
                rate=first.rate,
                tokens=first.tokens,
                fill=first.fill,
                skipped=bool(skipped),
            )

    def probe_memory(self, rows: Batch) -> None:
        """Compute and discard the gradients of some rows, which takes the memory of a slice."""
        self.scale.fill_(1 / rows.target_tokens)
        try:
            with self._preserve_random_state(), gradient_sync(self.criterion, False):
                self._add_gradients(TensorBatch.from_batch(rows, self.device))
        finally:
            self._discard_gradients()

    def refresh_bf16_copy(self) -> None:
        """Take over weights that were written to the model from outside, as on resuming."""
        if self.bf16_copy is not None:
            self.bf16_copy.refresh_weights()

    # --- its parts, on the device ---

    def _compute_gradients(self, own: Batch, step: int, *, sync: bool) -> None:
        """Compute the gradients of this rank's rows, slice by slice; of all ranks' if `sync`."""
        slices = self.oom_retry.slices
        for index in range(slices):
            if self.fast:
                kernels.seed_dropout(
                    self.device, self.config.training.seed, step, self.ranks.rank, index
                )
            rows = own.rows(index, slices).with_rows(-(-len(own.source_ids) // slices))
            if self.uses_cuda_graphs:
                self._add_gradients_by_graph(rows)
            else:  # ranks exchange gradients once a step, with the last slice
                with gradient_sync(self.criterion, sync and index == slices - 1):
                    self._add_gradients(TensorBatch.from_batch(rows, self.device))

    def _exchange_gradients(self, own: Batch) -> None:
        """Sync the gradients that this rank computed alone, by a slice that adds nothing."""
        nothing = Batch(*(array[:0] for array in own.arrays())).with_rows(1)
        with self._preserve_random_state():  # so that a checked step has the usual dropout
            self._add_gradients(TensorBatch.from_batch(nothing, self.device))

    def _discard_gradients(self) -> None:
        """Free what a failed step, or a probe of memory, has computed."""
        self.loss_sums.zero_()
        if self.bf16_copy is None:
            self.optimizer.zero_grad()
        else:
            self.bf16_copy.clear_gradients()
            self.bf16_copy.gradients.zero_()
        self._static_batch = self._replay_slice = self._replay_update = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _add_gradients(self, rows: TensorBatch) -> None:
        """Compute the gradient of some rows and add it to that of the slices before."""
        if self.bf16_copy is not None and self.ranks.world_size == 1:
            self.bf16_copy.clear_gradients()
        with self.autocast():
            loss, nll = self.criterion(rows, self.scale)
        loss.backward()
        self.loss_sums += torch.stack([loss.detach(), nll.detach()])
        if self.bf16_copy is not None and self.ranks.world_size == 1:
            add = self.oom_retry.slices > 1
            self.gradient_norm.copy_(self.bf16_copy.copy_gradients_to_model(add=add))

    @torch.no_grad()
    def _update(self) -> None:
        """Move the weights, unless the loss is bad; then clear the sums and gradients."""
        settings = self.config.training
        if self.bf16_copy is not None and self.ranks.world_size > 1:
            self.gradient_norm.copy_(self.bf16_copy.copy_gradients_to_model(add=False))
            self.bf16_copy.clear_gradients()
        elif self.bf16_copy is None:
            found = [p.grad for p in self.optimizer.parameters if p.grad is not None]
            norms = torch._foreach_norm([local_tensor(gradient) for gradient in found])
            self.gradient_norm.copy_(torch.stack(norms).norm())
        norm = self.gradient_norm
        if self.sharded:  # each rank has seen its own rows of every weight
            norm = (self.ranks.mean(norm.square()) * self.ranks.world_size).sqrt()
        loss, nll = self.ranks.mean(self.loss_sums)
        recent = self.optimizer.recent_loss
        spike = (recent > 0) & (loss > settings.spike * recent)
        skip = (spike | ~torch.isfinite(loss) | ~torch.isfinite(norm)).float()
        excess = (norm / settings.clip_norm).clamp(min=1) if settings.clip_norm else None
        self.optimizer.step(self.rate, divide_by=excess, skip=skip)
        smoothed = torch.where(recent > 0, recent.lerp(loss, 0.02), loss)
        recent.copy_(torch.where(skip > 0, recent, smoothed))
        self.result.copy_(torch.stack([loss, nll, norm, skip]))
        self.loss_sums.zero_()
        if self.bf16_copy is None:
            self.optimizer.zero_grad()
        elif self.oom_retry.slices > 1:
            self.bf16_copy.gradients.zero_()

    # --- as CUDA graphs ---

    def _add_gradients_by_graph(self, rows: Batch) -> None:
        """Do what `_add_gradients` does by replaying a CUDA graph, which is captured first."""
        packed = pack_batch(rows, self.device)
        if self._static_batch is None:
            (R, S), T = rows.source_ids.shape, rows.target_input.shape[1]
            self._graph_input = packed.to(self.device)
            self._static_batch = TensorBatch.from_packed(self._graph_input, (R, S, T))
            self._capture(self._static_batch)
        self._graph_input.copy_(packed, non_blocking=True)
        assert self._replay_slice is not None
        self._replay_slice()

    def _capture(self, static: TensorBatch) -> None:
        """Capture both halves of a step; running the first one before changes no weight."""
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # kernels are compiled, workspaces allocated
                self._add_gradients(static)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.empty_cache()  # graphs keep memory of their own, as much again
        self.loss_sums.zero_()
        if self.bf16_copy is not None:
            self.bf16_copy.gradients.zero_()
        slice_graph, update_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        kernels.restart_dropout(self.device)
        with torch.cuda.graph(slice_graph):
            self._add_gradients(static)
        with torch.cuda.graph(update_graph, pool=slice_graph.pool()):
            self._update()
        self._replay_slice, self._replay_update = slice_graph.replay, update_graph.replay

    # --- small tools ---

    def _queue_result(self, step: int, rate: float, tokens: int, fill: float) -> None:
        """Copy the result of the step to the host, without waiting for it on a GPU."""
        numbers, ready = self.result, None
        if self.device.type == "cuda":
            numbers = torch.empty(4, pin_memory=True).copy_(numbers, non_blocking=True)
            ready = torch.cuda.Event()
            ready.record()
        else:
            numbers = numbers.clone()
        self._pending.append(_PendingResult(step, rate, tokens, fill, numbers, ready))

    def _preserve_random_state(self) -> AbstractContextManager[None]:
        """Return a context that leaves the random generators as they were."""
        return torch.random.fork_rng([self.device] if self.device.type == "cuda" else [])

    def autocast(self) -> torch.autocast:
        """Return a context of bf16 arithmetic on fp32 weights, where the weights are not bf16."""
        wanted = uses_bf16(self.config.training.precision, self.device)
        enabled = wanted and self.bf16_copy is None and not self.sharded
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

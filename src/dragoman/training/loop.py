"""The training loop: batches in, a run directory out.

Everything that changes the weights is a function of the config and the data: killed at any moment
and resumed from its last checkpoint, a run ends with the weights it would have ended with.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from dragoman.config import Config
from dragoman.data.batches import Batch, Batches
from dragoman.data.prepare import Prepared
from dragoman.errors import TrainingError
from dragoman.files import atomic_write, remove_leftovers
from dragoman.memory import keep_freed_memory
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import get_weights, set_weights
from dragoman.text.sampling import SubwordSampler
from dragoman.training import checkpoint as checkpoints
from dragoman.training.checkpoint import Progress
from dragoman.training.distribution import Ranks, joined, pick_device
from dragoman.training.loss import Criterion, TensorBatch
from dragoman.training.metrics import Metrics
from dragoman.training.optimizer import Adam, MovingAverage, learning_rate
from dragoman.training.progress import Display
from dragoman.training.validation import Validation, validate

__all__ = ["Outcome", "fit"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    run: Path
    model: Path | None
    """The finished model; None if the run was interrupted."""
    step: int
    seconds: float
    bleu: float | None
    perplexity: float | None
    signal: int | None
    """The signal that interrupted it."""


def fit(
    config: Config, data: Prepared, run: Path, *, resume: bool = False, quiet: bool = False
) -> Outcome:
    """Train on prepared data, from the beginning or from the newest checkpoint of `run`."""
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    device = pick_device(config.training.device)
    if device.type == "cpu":
        keep_freed_memory()
    with joined(device) as ranks:
        trainer = Trainer(config, data, run, device, ranks, quiet=quiet or not ranks.first)
        return trainer.fit(resume=resume)


class Trainer:
    """One run in one process."""

    def __init__(
        self,
        config: Config,
        data: Prepared,
        run: Path,
        device: torch.device,
        ranks: Ranks,
        *,
        quiet: bool,
    ) -> None:
        self.config, self.data, self.run, self.ranks = config, data, run, ranks
        self.device = device
        self.quiet = quiet
        torch.manual_seed(config.training.seed)  # every rank begins with the same weights
        self.model = build(config.model, len(data.tokenizer)).to(device)
        torch.manual_seed(config.training.seed * 1_000_003 + ranks.rank)  # and its own dropout
        criterion = Criterion(
            self.model,
            label_smoothing=config.training.label_smoothing,
            r_drop=config.training.r_drop,
        )
        self.criterion: torch.nn.Module = (
            DistributedDataParallel(criterion) if ranks.world > 1 else criterion
        )
        self.optimizer = Adam(self.model, config.training)
        self.average = (
            MovingAverage(self.model.parameters(), config.training.ema)
            if config.training.ema
            else None
        )
        sampling = config.data.subword_sampling
        self.batches = Batches(
            data.train,
            batch_tokens=config.training.batch_tokens,
            row_length=config.data.row_length,
            seed=config.training.seed,
            sampler=SubwordSampler(data.tokenizer, sampling) if sampling else None,
            workers=_workers(device, sampling),
        )
        self.progress = Progress(threads=torch.get_num_threads(), ranks=ranks.world)
        self.bad_steps = 0
        self.started = self.window_start = time.monotonic()
        self.started_at = self.window_tokens = 0
        self.seconds_before = 0.0

    # --- the loop ---

    def fit(self, *, resume: bool) -> Outcome:
        """Train until the steps, the minutes or the patience are used up, or a signal comes."""
        settings = self.config.training
        if resume:
            self._restore()
        if self.ranks.first:
            self._open_run()
        self.model.train()
        with ExitStack() as stack:
            if self.ranks.first:
                progress = self.progress
                metrics = Metrics(self.run, start=progress.metrics_bytes, step=progress.step)
                self.metrics = stack.enter_context(closing(metrics))
            display = Display(steps=settings.steps, done=self.progress.step, quiet=self.quiet)
            self.display = stack.enter_context(display)
            caught = stack.enter_context(_signals())
            stream = stack.enter_context(closing(self.batches.stream(self.progress.position)))
            self._start_clock()
            finished, interrupted = self._finished(), None
            while not (finished or interrupted):
                batch, position = next(stream)
                self.progress.step += 1
                self._step(batch)
                self.progress.position = position
                step = self.progress.step
                if step % settings.validate_every == 0:
                    self._validate()
                finished, interrupted = self._finished(), self._agree(caught)
                if step % settings.checkpoint_every == 0 or finished or interrupted:
                    self._save()
            if not interrupted:
                return self._finish()
            self.display.say(
                f"stopped at step {self.progress.step:,}; everything is saved, continue with: "
                f"dragoman train --resume {self.run}"
            )
            return self._outcome(None, None, interrupted)

    def _open_run(self) -> None:
        self.run.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.run)
        remove_leftovers(self.run / "checkpoints")
        atomic_write(self.run / "config.toml", self.config.to_toml())

    def _step(self, batch: Batch) -> None:
        """One optimiser step on this rank's rows of the batch."""
        settings, step = self.config.training, self.progress.step
        rate = learning_rate(settings, self.config.model.d_model, step)
        mine = batch.rows(self.ranks.rank, self.ranks.world)
        # DDP takes the mean over ranks; the loss is the mean over the whole batch's tokens.
        scale = self.ranks.world / batch.target_tokens
        loss, nll = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        for part in range(settings.accumulate):
            rows = TensorBatch.of(mine.rows(part, settings.accumulate), self.device)
            last = part == settings.accumulate - 1
            with self._unsynchronised(last), self._autocast():
                part_loss, part_nll = self.criterion(rows)
                (part_loss * scale).backward()
            loss += part_loss.detach()
            nll += part_nll
        norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), settings.clip_norm or math.inf
        )
        loss_sum, nll_sum = self.ranks.total(loss.item(), nll.item())
        finite = math.isfinite(loss_sum) and math.isfinite(norm.item())
        if finite:
            self.optimizer.step(rate)
            if self.average is not None:
                self.average.update(step)
        self.optimizer.zero_grad()
        self.progress.target_tokens += batch.target_tokens
        self._watch_for_bad_steps(finite)
        self._log(batch, loss_sum, nll_sum, rate, norm.item())

    def _watch_for_bad_steps(self, finite: bool) -> None:
        self.bad_steps = 0 if finite else self.bad_steps + 1
        if finite:
            return
        step, limit = self.progress.step, self.config.training.max_bad_steps
        if self.bad_steps >= limit:
            raise TrainingError(
                f"the loss was not finite for {limit} steps in a row, the last at step {step:,}; "
                "lower training.learning_rate, or set training.clip_norm=1, and resume from the "
                f"last checkpoint: dragoman train --resume {self.run}"
            )
        if self.ranks.first:
            self.metrics.write("skipped", step)
            self.display.say(f"step {step:,}: the loss is not finite; the step is skipped")

    # --- what happens now and then ---

    def _validate(self) -> None:
        """Score the model; remember the best one and how long ago it was."""
        progress = self.progress
        best = False
        if self.ranks.first:
            found = self._validated()
            score = found.score(self.config.training.patience_metric)
            best = progress.best_score is None or score > progress.best_score
            if best:
                progress.best_score, progress.best_step = score, progress.step
                with self._averaged():
                    self._export(self.run / "best", get_weights(self.model), found, "best step")
            values = {"loss": found.loss, "perplexity": found.perplexity}
            if found.bleu is not None:
                values["bleu"] = found.bleu
            self.metrics.write("valid", progress.step, **values)
            self.display.validation(
                progress.step, perplexity=found.perplexity, bleu=found.bleu, best=best
            )
        if bool(self.ranks.from_first(best)[0]):
            progress.validations_without_gain = 0
        else:
            progress.validations_without_gain += 1

    def _validated(self) -> Validation:
        with self._averaged(), self._autocast():
            return validate(self.model, self.data, self.config)

    def _save(self) -> None:
        progress = self.progress
        progress.seconds = self._seconds()
        generators = self._generators()
        if self.ranks.first:
            progress.metrics_bytes = self.metrics.bytes_written
            checkpoints.save_checkpoint(
                self.run, progress, self.model, self.optimizer, self.average, generators
            )
            checkpoints.prune(self.run, self.config.training.keep_checkpoints)

    def _restore(self) -> None:
        path = checkpoints.newest_sound_checkpoint(self.run, self._say_plainly)
        threads = self.progress.threads
        self.progress, generators = checkpoints.load_checkpoint(
            path, self.model, self.optimizer, self.average
        )
        if self.progress.threads != threads:
            self._say_plainly(
                f"the run had {self.progress.threads} CPU threads and goes on with {threads}: "
                "the last bits of its results will differ"
            )
        self.progress.threads, self.progress.ranks = threads, self.ranks.world
        rank = str(self.ranks.rank)
        if f"cpu/{rank}" in generators:  # a rank that was not there before keeps its own seed
            torch.set_rng_state(generators[f"cpu/{rank}"])
        if self.device.type == "cuda" and f"cuda/{rank}" in generators:
            torch.cuda.set_rng_state(generators[f"cuda/{rank}"], self.device)

    def _generators(self) -> dict[str, torch.Tensor]:
        """The state of every random generator of every rank."""
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return {
            f"{kind}/{rank}": state
            for kind, mine in states.items()
            for rank, state in enumerate(self.ranks.gather(mine))
        }

    def _log(self, batch: Batch, loss: float, nll: float, rate: float, norm: float) -> None:
        progress, settings = self.progress, self.config.training
        now = time.monotonic()
        self.window_tokens += batch.target_tokens
        if progress.step % settings.log_every and progress.step != 1:
            return
        speed = self.window_tokens / max(1e-9, now - self.window_start)
        self.window_tokens, self.window_start = 0, now
        seconds = self._seconds()
        steps_here = progress.step - self.started_at
        left = (settings.steps - progress.step) * (now - self.started) / max(1, steps_here)
        if settings.minutes:
            left = min(left, 60 * settings.minutes - seconds)
        if not self.ranks.first:
            return
        tokens = batch.target_tokens
        self.metrics.write(
            "train",
            progress.step,
            loss=loss / tokens,
            nll=nll / tokens,
            learning_rate=rate,
            gradient_norm=norm,
            tokens_per_second=round(speed),
            fill=tokens / batch.target_segments.size,
            epoch=progress.position.epoch,
            seconds=round(seconds, 2),
        )
        self.display.step(
            progress.step, loss=loss / tokens, rate=rate, speed=speed, left=max(0.0, left)
        )

    # --- the end ---

    def _finished(self) -> bool:
        settings, progress = self.config.training, self.progress
        out_of_time = 0 < settings.minutes * 60 <= self._seconds()
        if settings.minutes and self.ranks.world > 1:  # clocks differ; the first rank's counts
            out_of_time = bool(self.ranks.from_first(out_of_time)[0])
        out_of_patience = 0 < settings.patience <= progress.validations_without_gain
        return progress.step >= settings.steps or out_of_time or out_of_patience

    def _finish(self) -> Outcome:
        """Make the model: the average of the last checkpoints, or a clearly better best step."""
        if not self.ranks.first:
            return self._outcome(None, None, None)
        settings, progress = self.config.training, self.progress
        paths = checkpoints.list_checkpoints(self.run)[-settings.average :]
        weights = checkpoints.average_weights(paths)
        set_weights(self.model, weights, where=str(self.run))
        with self._autocast():
            found = validate(self.model, self.data, self.config)
        made_of = f"average of {len(paths)} checkpoints" if len(paths) > 1 else "last checkpoint"
        score = found.score(settings.patience_metric)
        if progress.best_score is not None and score < progress.best_score - _margin(found, score):
            made_of = f"best step, {progress.best_step:,}"
            best = checkpoints.average_weights([self.run / "best"])
            set_weights(self.model, best, where=str(self.run / "best"))
            with self._autocast():
                found = validate(self.model, self.data, self.config)
        self._export(self.run / "model", get_weights(self.model), found, made_of)
        self.metrics.write("final", progress.step, loss=found.loss, perplexity=found.perplexity)
        bleu = "" if found.bleu is None else f", BLEU {found.bleu:.1f}"
        self.display.say(
            f"done: {progress.step:,} steps; {self.run / 'model'} is the {made_of}: validation "
            f"perplexity {found.perplexity:.2f}{bleu}"
        )
        return self._outcome(self.run / "model", found, None)

    def _export(
        self, path: Path, weights: dict[str, torch.Tensor], found: Validation, made_of: str
    ) -> None:
        card: dict[str, Any] = {
            "made_of": made_of,
            "steps": self.progress.step,
            "training_pairs": len(self.data.train),
            "target_tokens_seen": self.progress.target_tokens,
            "training_minutes": round(self._seconds() / 60, 2),
            "device": _describe(self.device),
            "parameters": sum(tensor.numel() for tensor in weights.values()),
            "validation": {"perplexity": found.perplexity},
        }
        if found.bleu is not None:
            card["validation"]["greedy BLEU"] = found.bleu
        save_model(path, weights, self.config, self.data.tokenizer, card)

    def _outcome(self, model: Path | None, found: Validation | None, caught: int | None) -> Outcome:
        return Outcome(
            run=self.run,
            model=model,
            step=self.progress.step,
            seconds=self._seconds(),
            bleu=found.bleu if found else None,
            perplexity=found.perplexity if found else None,
            signal=caught,
        )

    # --- small tools ---

    def _start_clock(self) -> None:
        self.started = self.window_start = time.monotonic()
        self.started_at = self.progress.step
        self.seconds_before = self.progress.seconds

    def _seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started

    def _agree(self, caught: list[int]) -> int | None:
        """The signal any rank has caught: all stop at the same step."""
        signals = self.ranks.total(*(float(s in caught) for s in SIGNALS))
        return next((s for s, n in zip(SIGNALS, signals, strict=True) if n), None)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The moving average, if there is one, in the place of the weights."""
        if self.average is None:
            yield
            return
        self.average.swap()
        try:
            yield
        finally:
            self.average.swap()

    def _unsynchronised(self, last: bool) -> AbstractContextManager[None]:
        """Ranks exchange gradients once a step, with the last slice."""
        if last or not isinstance(self.criterion, DistributedDataParallel):
            return nullcontext()
        return self.criterion.no_sync()

    def _autocast(self) -> torch.autocast:
        wanted = self.config.training.precision
        gpu = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        enabled = wanted == "bf16" or (wanted == "auto" and gpu)
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    def _say_plainly(self, message: str) -> None:
        if self.ranks.first:
            Display(steps=0).say(message)


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM instead of dying of them; a second Ctrl-C is obeyed at once."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if number in caught:
            raise KeyboardInterrupt
        caught.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield caught  # only the main thread may handle signals
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _margin(found: Validation, score: float) -> float:
    """By how much the best step must beat the average: a maximum over many is partly luck."""
    return 0.5 if score == found.bleu else 0.01


def _workers(device: torch.device, sampling: float) -> int:
    """Processes that build batches: none on a CPU, which has no core to spare."""
    if device.type == "cpu":
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # Drawing segmentations takes far longer than all the rest.
    return max(1, min(8, (cores or 1) // 2)) if sampling else 1


def _describe(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {torch.get_num_threads()} threads"

"""The training loop: batches in, a run directory out.

Everything that changes the weights is a function of the config and the data: killed at any moment
and resumed from its last checkpoint, a run ends with the weights it would have ended with.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dragoman.config import Config
from dragoman.data.batching.batches import Batch, Batches
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError, TrainingError
from dragoman.model_directory import save_model
from dragoman.models import Model, build
from dragoman.models.weights import get_weights, set_weights
from dragoman.system.atomic_files import atomic_write, remove_leftovers
from dragoman.system.cores import available_cores
from dragoman.system.memory import keep_freed_memory
from dragoman.system.signals import SIGNALS, Signals
from dragoman.text.subword_sampling import SubwordSampler
from dragoman.training import validation
from dragoman.training.checkpoints import checkpoint as checkpoints
from dragoman.training.checkpoints.averaging import average_weights
from dragoman.training.checkpoints.checkpoint import Checkpoint, TrainingState
from dragoman.training.checkpoints.shards import LocalRows
from dragoman.training.checkpoints.writer import CheckpointWriter
from dragoman.training.distributed.parallel import gather_model, local_rows
from dragoman.training.distributed.ranks import (
    Ranks,
    describe_device,
    join_process_group,
    pick_device,
)
from dragoman.training.distributed.watchdog import run_watchdog
from dragoman.training.memory.oom_retry import (
    OutOfMemoryRecord,
    UnrecoverableOutOfMemoryError,
    describe_too_long_row,
    load_record,
    save_record,
)
from dragoman.training.memory.planner import plan_memory
from dragoman.training.metrics import MetricsWriter
from dragoman.training.precision import deterministic_algorithms, uses_bf16
from dragoman.training.progress import ProgressDisplay
from dragoman.training.step import Stepper, StepResult
from dragoman.training.validation import ValidationResult, validate

__all__ = ["Outcome", "fit"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    run: Path
    model: Path | None
    """The finished model; None if the run was interrupted."""
    step: int
    seconds: float
    score: float | None
    """BLEU or, of a parser, F1, of the validation set."""
    perplexity: float | None
    signal: int | None
    """The signal that interrupted it."""


def fit(
    config: Config, data: Prepared, run: Path, *, resume: bool = False, quiet: bool = False
) -> Outcome:
    """Train on prepared data, from the beginning or from the newest checkpoint of `run`."""
    if resume and config.training.batch_tokens == "auto":
        raise ConfigError(
            f"{run}: training.batch_tokens is settled when a run begins; resume it without "
            "training.batch_tokens=auto"
        )
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    device = pick_device(config.training.device)
    if device.type == "cpu":
        keep_freed_memory()
    timeout = config.training.timeout_seconds
    with (
        deterministic_algorithms(config.training.deterministic),
        Signals() as signals,  # around the watch, which must not die of one while it finds out
        join_process_group(device, timeout) as ranks,
        run_watchdog(ranks, run, timeout) as reached,
    ):
        trainer = Trainer(config, data, run, device, ranks, quiet=quiet or not ranks.is_first)
        trainer.signals, trainer.reached = signals, reached
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
        self.model = build(config.model, *data.tokenizer.sizes)
        torch.manual_seed(config.training.seed * 1_000_003 + ranks.rank)  # and its own dropout
        self.stepper = Stepper(config, self.model, device, ranks)
        self.optimizer, self.average = self.stepper.optimizer, self.stepper.average
        self.batches = self._make_batches()
        self.config = plan_memory(config, self.stepper, self.batches.shape, self._say_plainly)
        if self.config != config:
            self.batches = self._make_batches()
        self.signals = Signals()
        self.reached: Callable[[int], None] = lambda step: None
        self.patient = ranks.separate_group()
        """The ranks, where one has more to do than the others."""
        self.held_out = validation.load_test_sets(run)
        self.progress = TrainingState(threads=torch.get_num_threads(), ranks=ranks.world_size)
        self.started = self.window_start = time.monotonic()
        self.started_at = self.window_tokens = 0
        self.seconds_before = 0.0

    # --- the loop ---

    def fit(self, *, resume: bool) -> Outcome:
        """Train until the steps, the minutes or the patience are used up, or a signal comes."""
        settings = self.config.training
        if resume:
            self._restore()
        if self.ranks.is_first:
            self._open_run()
        self.model.train()
        with ExitStack() as stack:
            if self.ranks.is_first:
                progress = self.progress
                metrics = MetricsWriter(self.run, start=progress.metrics_bytes, step=progress.step)
                self.metrics = stack.enter_context(closing(metrics))
            display = ProgressDisplay(
                steps=settings.steps, done=self.progress.step, quiet=self.quiet
            )
            self.display = stack.enter_context(display)
            self.writer = stack.enter_context(self._checkpoint_writer())
            stream = stack.enter_context(closing(self.batches.stream(self.progress.position)))
            if (note := load_record(self.run)) is not None:
                self.stepper.oom_retry.require_slices(note.slices)
                if self.ranks.is_first and note.step > self.progress.step:
                    self._tell_shortage(note)  # what was told before is cut off
            self._start_clock()
            if self.progress.validation_due:
                self._validate()
            finished, interrupted = self._finished(), self._agree()
            while not (finished or interrupted):
                batch, position = next(stream)
                step = self.progress.step = self.progress.step + 1
                self._step(batch, step)
                self.progress.position = position
                self.progress.target_tokens += batch.target_tokens
                self._take_results()
                if step % settings.validate_every == 0:
                    self._validate()
                finished, interrupted = self._finished(), self._agree()
                last = finished or bool(interrupted)
                if step % settings.checkpoint_every == 0 or last:
                    self._save(last=last)
            if not interrupted:
                return self._finish()
            if self.ranks.is_first:
                self.display.show_message(
                    f"stopped at step {self.progress.step:,}; everything is saved, continue with: "
                    f"dragoman train --resume {self.run}"
                )
            return self._outcome(None, None, interrupted)

    def _step(self, batch: Batch, step: int) -> None:
        """Learn from a batch, in smaller slices if memory asks for that."""
        self.reached(step)
        try:
            self.stepper.run(batch, step)
        except UnrecoverableOutOfMemoryError as error:
            if not error.is_single_row:
                save_record(self.run, error.record)
            raise TrainingError(self._without_memory(batch, error)) from None
        while records := self.stepper.oom_retry.records:
            shortage = records.pop(0)
            if self.ranks.is_first:
                save_record(self.run, shortage)
                self._tell_shortage(shortage)

    def _tell_shortage(self, shortage: OutOfMemoryRecord) -> None:
        self.metrics.write("out_of_memory", shortage.step, slices=shortage.slices)
        self.display.show_message(
            f"step {shortage.step:,}: out of memory; from here on each batch is computed in "
            f"{shortage.slices} slices"
        )

    def _without_memory(self, batch: Batch, error: UnrecoverableOutOfMemoryError) -> str:
        what = f"out of memory at step {error.record.step:,} on rank {self.ranks.rank}"
        if error.is_single_row:
            S, T = batch.source_ids.shape[1], batch.target_input.shape[1]
            return f"{what}: {describe_too_long_row(S, T)}"
        return (
            f"{what}; start all ranks again with: dragoman train --resume {self.run}, which "
            f"computes each batch in {error.record.slices} slices"
        )

    def _make_batches(self) -> Batches:
        settings, tokenizer = self.config.data, self.data.tokenizer
        sampling = settings.subword_sampling
        return Batches(
            self.data.train,
            batch_tokens=self.config.training.tokens,
            row_length=settings.row_length,
            seed=self.config.training.seed,
            sampler=SubwordSampler(tokenizer, sampling) if sampling else None,
            sample_targets=tokenizer.targets_are_text,
            workers=_workers(self.device, sampling, self.ranks.world_size),
        )

    def _open_run(self) -> None:
        self.run.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.run)
        remove_leftovers(self.run / "checkpoints")
        atomic_write(self.run / "config.toml", self.config.to_toml())

    def _take_results(self, *, wait: bool = False) -> None:
        """Record what came of the steps that are done; all of them before anything is saved."""
        for result in self.stepper.take_results(wait=wait):
            self._watch_for_bad_steps(result)
            self._log(result)

    def _watch_for_bad_steps(self, result: StepResult) -> None:
        if not result.skipped:
            self.progress.bad_steps = 0
            return
        self.progress.bad_steps += 1
        step, limit = result.step, self.config.training.max_bad_steps
        finite = math.isfinite(result.loss) and math.isfinite(result.norm)
        what = f"far above the steps before ({result.loss:.3g})" if finite else "not finite"
        if self.progress.bad_steps >= limit:
            raise TrainingError(
                f"the loss was {what} for {limit} steps in a row, the last at step {step:,}; "
                "lower training.learning_rate, or set training.clip_norm=1, and resume from the "
                f"last checkpoint: dragoman train --resume {self.run}"
            )
        if self.ranks.is_first:
            self.metrics.write("skipped", step)
            self.display.show_message(f"step {step:,}: the loss is {what}; the step is skipped")

    # --- what happens now and then ---

    def _validate(self) -> None:
        """Score the model; remember the best one and how long ago it was.

        A signal breaks this off; it is then done when the run is resumed.
        """
        self._take_results(wait=True)
        progress = self.progress
        with self._whole_model() as model:
            found, best = self._scored(model) if model is not None else (None, False)
        progress.validation_due = bool(self.patient.broadcast(self.ranks.is_first and not found)[0])
        if progress.validation_due:
            return
        if found is not None:
            values = {"loss": found.loss, "perplexity": found.perplexity}
            name = found.metric.lower()
            if found.score is not None:
                values[name] = found.score
            values |= {f"{name}/{other}": score for other, score in found.others.items()}
            self.metrics.write("valid", progress.step, **values)
            self.display.show_validation(
                progress.step,
                found,
                best=best,
            )
        if bool(self.ranks.broadcast(best)[0]):
            progress.validations_without_gain = 0
        else:
            progress.validations_without_gain += 1

    def _scored(self, model: Model) -> tuple[ValidationResult | None, bool]:
        """The scores, if no signal came, and whether they are the best so far: that is exported."""
        found = None
        if not self.signals.caught:
            with self._autocast(), self.signals.breaking_off():
                found = validate(model, self.data, self.config, self.held_out)
        if found is None:
            return None, False
        progress, score = self.progress, found.patience_value(self.config.training.patience_metric)
        best = progress.best_score is None or score > progress.best_score
        if best:
            progress.best_score, progress.best_step = score, progress.step
            self._export(self.run / "best", get_weights(model), found, "best step")
        return found, best

    def _save(self, *, last: bool) -> None:
        self._take_results(wait=True)
        progress = self.progress
        progress.seconds = self._seconds()
        if self.ranks.is_first:
            progress.metrics_bytes = self.metrics.bytes_written
        self.writer.save(progress, self._state(), self._generators(), last=last)

    def _restore(self) -> None:
        path = checkpoints.newest_valid_checkpoint(self.run, self._say_plainly)
        threads = self.progress.threads
        checkpoint = Checkpoint(path)
        checkpoint.load_into(self._state())
        self.stepper.refresh_bf16_copy()
        self.progress = checkpoint.progress
        if self.progress.threads != threads:
            self._say_plainly(
                f"the run had {self.progress.threads} CPU threads and goes on with {threads}: "
                "the last bits of its results will differ"
            )
        self.progress.threads, self.progress.ranks = threads, self.ranks.world_size
        # A rank that was not there before keeps its own seed.
        generators = checkpoint.generators(self.ranks.rank)
        if "cpu" in generators:
            torch.set_rng_state(generators["cpu"])
        if self.device.type == "cuda" and "cuda" in generators:
            torch.cuda.set_rng_state(generators["cuda"], self.device)

    def _state(self) -> dict[str, LocalRows]:
        return checkpoints.training_tensors(self.model, self.optimizer, self.average, local_rows)

    def _generators(self) -> dict[str, torch.Tensor]:
        """The state of every random generator of this rank."""
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return states

    def _checkpoint_writer(self) -> CheckpointWriter:
        return CheckpointWriter(
            self.run,
            keep=self.config.training.keep_checkpoints,
            newest=self.progress.step,
            ranks=self.ranks,
            before=self.metrics.sync if self.ranks.is_first else lambda: None,
            say=self.display.show_message,
        )

    def _log(self, result: StepResult) -> None:
        progress, settings = self.progress, self.config.training
        now = time.monotonic()
        self.window_tokens += result.tokens
        if result.step % settings.log_every and result.step != 1:
            return
        speed = self.window_tokens / max(1e-9, now - self.window_start)
        self.window_tokens, self.window_start = 0, now
        seconds = self._seconds()
        steps_here = progress.step - self.started_at
        left = (settings.steps - progress.step) * (now - self.started) / max(1, steps_here)
        if settings.minutes:
            left = min(left, 60 * settings.minutes - seconds)
        if not self.ranks.is_first:
            return
        self.metrics.write(
            "train",
            result.step,
            loss=result.loss,
            nll=result.nll,
            learning_rate=result.rate,
            gradient_norm=result.norm,
            tokens_per_second=round(speed),
            fill=result.fill,
            epoch=progress.position.epoch,
            seconds=round(seconds, 2),
            checkpoint_seconds=self.writer.take_wait_seconds(),
        )
        self.display.show_step(
            result.step, loss=result.loss, rate=result.rate, speed=speed, left=max(0.0, left)
        )

    # --- the end ---

    def _finished(self) -> bool:
        settings, progress = self.config.training, self.progress
        out_of_time = 0 < settings.minutes * 60 <= self._seconds()
        if settings.minutes and self.ranks.world_size > 1:  # clocks differ; the first rank's counts
            out_of_time = bool(self.ranks.broadcast(out_of_time)[0])
        out_of_patience = 0 < settings.patience <= progress.validations_without_gain
        return progress.step >= settings.steps or out_of_time or out_of_patience

    def _finish(self) -> Outcome:
        """Make the model: the average of the last checkpoints, or a clearly better best step."""
        if not self.ranks.is_first:
            return self._outcome(None, None, None)
        settings, progress = self.config.training, self.progress
        paths = checkpoints.valid_checkpoints(
            self.run, settings.average, self.display.show_message, up_to=progress.step
        )
        model = self._plain_model() if self.stepper.sharded else self.model
        set_weights(model, average_weights(paths), where=str(self.run))
        with self._autocast():
            found = validate(model, self.data, self.config)
        made_of = f"average of {len(paths)} checkpoints" if len(paths) > 1 else "last checkpoint"
        score = found.patience_value(settings.patience_metric)
        if progress.best_score is not None and score < progress.best_score - _margin(found, score):
            made_of = f"best step, {progress.best_step:,}"
            best = average_weights([self.run / "best"])
            set_weights(model, best, where=str(self.run / "best"))
            with self._autocast():
                found = validate(model, self.data, self.config)
        self._export(self.run / "model", get_weights(model), found, made_of)
        self.metrics.write(
            "final",
            progress.step,
            loss=found.loss,
            perplexity=found.perplexity,
            checkpoint_seconds=self.writer.take_wait_seconds(),
        )
        reached = "" if found.score is None else f", {found.metric} {found.score:.1f}"
        self.display.show_message(
            f"done: {progress.step:,} steps; {self.run / 'model'} is the {made_of}: validation "
            f"perplexity {found.perplexity:.2f}{reached}"
        )
        return self._outcome(self.run / "model", found, None)

    def _export(
        self, path: Path, weights: dict[str, torch.Tensor], found: ValidationResult, made_of: str
    ) -> None:
        card: dict[str, Any] = {
            "made_of": made_of,
            "steps": self.progress.step,
            "training_pairs": len(self.data.train),
            "target_tokens_seen": self.progress.target_tokens,
            "training_minutes": round(self._seconds() / 60, 2),
            "device": describe_device(self.device),
            "parameters": sum(tensor.numel() for tensor in weights.values()),
            "validation": {"perplexity": found.perplexity},
        }
        if found.score is not None:
            card["validation"][f"greedy {found.metric}"] = found.score
        save_model(path, weights, self.config, self.data.tokenizer, card)

    def _outcome(
        self, model: Path | None, found: ValidationResult | None, caught: int | None
    ) -> Outcome:
        return Outcome(
            run=self.run,
            model=model,
            step=self.progress.step,
            seconds=self._seconds(),
            score=found.score if found else None,
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

    def _agree(self) -> int | None:
        """The signal any rank has caught: all stop at the same step."""
        signals = self.ranks.sum(*(float(s in self.signals.caught) for s in SIGNALS))
        return next((s for s, n in zip(SIGNALS, signals, strict=True) if n), None)

    @contextmanager
    def _whole_model(self) -> Iterator[Model | None]:
        """On the first rank the model, with the moving average, if there is one, as its weights."""
        if not self.ranks.is_first and not self.stepper.sharded:
            yield None
            return
        if self.average is not None:
            self.average.swap()
        try:
            if self.stepper.sharded:
                yield gather_model(self.model, self._plain_model, self.ranks)
            else:
                yield self.model
        finally:
            if self.average is not None:
                self.average.swap()

    def _plain_model(self) -> Model:
        """One whose weights are still to be written; no random number is drawn for it."""
        with torch.device("meta"):
            model = build(self.config.model, *self.data.tokenizer.sizes)
        return model.to_empty(device=self.device)

    def _autocast(self) -> torch.autocast:
        enabled = uses_bf16(self.config.training.precision, self.device)
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    def _say_plainly(self, message: str) -> None:
        if self.ranks.is_first:
            ProgressDisplay(steps=0).show_message(message)


def _margin(found: ValidationResult, score: float) -> float:
    """By how much the best step must beat the average: a maximum over many is partly luck."""
    return 0.5 if score == found.score else 0.01


def _workers(device: torch.device, sampling: float, world: int) -> int:
    """Processes that build batches: none on a CPU, which has no core to spare."""
    if device.type == "cpu":
        return 0
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # ranks that share them
    # Drawing segmentations takes far longer than all the rest. Without, one process feeds four
    # GPUs; and every rank builds the batches of all, to take its rows of them.
    wanted = 14 if sampling else -(-world // 4)
    return max(1, min(14, wanted, available_cores() // here - 2))

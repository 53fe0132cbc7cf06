"""The training loop takes batches and makes a run directory.

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

from dragoman.config import Config, TrainingConfig
from dragoman.data.batching.batches import Batch, Batches
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError, TrainingError
from dragoman.messages import counted
from dragoman.model_directory import LoadedModel, save_model
from dragoman.models import Model, build
from dragoman.models.weights import get_weights, set_weights
from dragoman.system.atomic_files import atomic_write, remove_leftovers
from dragoman.system.cores import available_cores
from dragoman.system.malloc import keep_freed_memory
from dragoman.system.signals import SIGNALS, SignalCatcher
from dragoman.text.subword_sampling import SubwordSampler
from dragoman.training.checkpoints.averaging import average_weights
from dragoman.training.checkpoints.checkpoint import (
    Checkpoint,
    TrainingState,
    newest_valid_checkpoint,
    training_tensors,
    valid_checkpoints,
)
from dragoman.training.checkpoints.writer import CheckpointWriter
from dragoman.training.distributed.parallel import LocalRows, gather_model, local_rows
from dragoman.training.distributed.ranks import (
    Ranks,
    describe_device,
    join_process_group,
    pick_device,
)
from dragoman.training.distributed.watchdog import run_watchdog
from dragoman.training.memory import (
    OutOfMemoryRecord,
    UnrecoverableOutOfMemoryError,
    describe_too_long_row,
    load_record,
    plan_memory,
    save_record,
)
from dragoman.training.metrics_log import MetricsWriter
from dragoman.training.precision import deterministic_algorithms, uses_bf16
from dragoman.training.progress import ProgressDisplay
from dragoman.training.step import Stepper, StepResult
from dragoman.training.time_estimate import describe_estimate
from dragoman.training.validation import ValidationResult, load_test_sets, validate


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold how a run ended."""

    run: Path
    model: Path | None
    """This is the finished model; None if the run was interrupted."""
    step: int
    seconds: float
    score: float | None
    """This is the BLEU, or of a parser the F1, of the validation set."""
    perplexity: float | None
    signal: int | None
    """This is the signal that interrupted the run, if one did."""
    report: dict[str, Any] | None = None
    """This is what adapting a model has gained and lost; None if it was not adapted."""


def fit(
    config: Config,
    data: Prepared,
    run: Path,
    *,
    resume: bool = False,
    start_from: LoadedModel | None = None,
    quiet: bool = False,
) -> Outcome:
    """Train on prepared data, from the beginning or from the newest checkpoint of `run`.

    The beginning is random weights, or those of `start_from`.
    """
    if resume and config.training.batch_tokens == "auto":
        raise ConfigError(
            f"{run}: training.batch_tokens is fixed when a run begins; resume it without "
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
        SignalCatcher() as signals,  # around the watchdog, which a signal must not end
        join_process_group(device, timeout) as ranks,
        run_watchdog(ranks, run, timeout) as report_step,
    ):
        trainer = Trainer(
            config, data, run, device, ranks, signals, report_step, start_from, quiet=quiet
        )
        return trainer.train(resume=resume)


def make_batches(config: Config, data: Prepared, *, workers: int = 0) -> Batches:
    """Return the batches of a prepared corpus as the config has them."""
    settings, tokenizer = config.data, data.tokenizer
    sampling = settings.subword_sampling
    return Batches(
        data.train,
        batch_tokens=config.training.tokens,
        row_length=settings.row_length,
        seed=config.training.seed,
        sampler=SubwordSampler(tokenizer, sampling) if sampling else None,
        sample_targets=tokenizer.targets_are_text,
        workers=workers,
    )


class Trainer:
    """Train one run in one process, alone or as one of several ranks."""

    def __init__(
        self,
        config: Config,
        data: Prepared,
        run: Path,
        device: torch.device,
        ranks: Ranks,
        signals: SignalCatcher,
        report_step: Callable[[int], None],
        start_from: LoadedModel | None = None,
        *,
        quiet: bool,
    ) -> None:
        self.config, self.data, self.run, self.device = config, data, run, device
        self.ranks, self.signals, self.report_step = ranks, signals, report_step
        self.quiet = quiet or not ranks.is_first
        torch.manual_seed(config.training.seed)  # every rank begins with the same weights
        self.model = build(config.model, *data.tokenizer.sizes)
        if start_from is not None:
            first = get_weights(start_from.model)
            set_weights(self.model, first, where=str(start_from.path))
        torch.manual_seed(config.training.seed * 1_000_003 + ranks.rank)  # and its own dropout
        self.stepper = Stepper(config, self.model, device, ranks)
        self.batches = self._make_batches()
        self.config = plan_memory(config, self.stepper, self.batches.shape, self._show_on_first)
        if self.config != config:
            self.batches = self._make_batches()
        self.patient_ranks = ranks.separate_group()
        """These wait without a timeout, where one rank has more to do than the others."""
        self.test_sets = load_test_sets(run)
        self.state = TrainingState(threads=torch.get_num_threads(), ranks=ranks.world_size)
        self._estimate_shown = False

    def _make_batches(self) -> Batches:
        sampling = self.config.data.subword_sampling
        workers = _count_workers(self.device, sampling, self.ranks.world_size)
        return make_batches(self.config, self.data, workers=workers)

    # --- the loop ---

    def train(self, *, resume: bool) -> Outcome:
        """Train until the steps, the minutes or the patience are used up, or a signal comes."""
        settings, state = self.config.training, self.state
        if resume:
            state = self.state = self._restore()
        if self.ranks.is_first:
            self._open_run()
        self.model.train()
        with ExitStack() as stack:
            if self.ranks.is_first:
                metrics = MetricsWriter(self.run, start=state.metrics_bytes, step=state.step)
                self.metrics = stack.enter_context(closing(metrics))
            display = ProgressDisplay(steps=settings.steps, done=state.step, quiet=self.quiet)
            self.display = stack.enter_context(display)
            self.writer = stack.enter_context(self._make_checkpoint_writer())
            stream = stack.enter_context(closing(self.batches.stream(state.position)))
            self._use_earlier_slices()
            self.clock = _Clock(state)
            if state.validation_due:
                self._validate()
            finished, interrupted = self._is_finished(), self._caught_signal()
            while not (finished or interrupted):
                batch, position = next(stream)
                state.step += 1
                self._step(batch, state.step)
                state.position = position
                state.target_tokens += batch.target_tokens
                self._take_results()
                self._show_estimate()
                if state.step % settings.validate_every == 0:
                    self._validate()
                finished, interrupted = self._is_finished(), self._caught_signal()
                last = finished or bool(interrupted)
                if state.step % settings.checkpoint_every == 0 or last:
                    self._save(last=last)
            if not interrupted:
                return self._finish()
            if self.ranks.is_first:
                self.display.show_message(
                    f"stopped at step {state.step:,}; everything is saved. Continue with: "
                    f"dragoman train --resume {self.run}"
                )
            return self._make_outcome(None, None, interrupted)

    def _open_run(self) -> None:
        self.run.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.run)
        remove_leftovers(self.run / "checkpoints")
        atomic_write(self.run / "config.toml", self.config.to_toml())

    def _is_finished(self) -> bool:
        settings, state = self.config.training, self.state
        out_of_time = 0 < settings.minutes * 60 <= self.clock.seconds()
        if settings.minutes and self.ranks.world_size > 1:  # clocks differ; the first rank's counts
            out_of_time = bool(self.ranks.broadcast(out_of_time)[0])
        out_of_patience = 0 < settings.patience <= state.validations_without_gain
        return state.step >= settings.steps or out_of_time or out_of_patience

    def _caught_signal(self) -> int | None:
        """Return the signal that any rank has caught, so that all stop at the same step."""
        counts = self.ranks.sum(*(float(s in self.signals.caught) for s in SIGNALS))
        return next((s for s, count in zip(SIGNALS, counts, strict=True) if count), None)

    # --- a step ---

    def _step(self, batch: Batch, step: int) -> None:
        """Learn from a batch, in smaller slices if memory runs out."""
        self.report_step(step)
        try:
            self.stepper.run(batch, step)
        except UnrecoverableOutOfMemoryError as error:
            if not error.is_single_row:
                save_record(self.run, error.record)
            raise TrainingError(self._describe_out_of_memory(batch, error)) from None
        while records := self.stepper.oom_retry.records:
            record = records.pop(0)
            if self.ranks.is_first:
                save_record(self.run, record)
                self._report_out_of_memory(record)

    def _use_earlier_slices(self) -> None:
        """Begin with as many slices as an earlier process of this run has needed."""
        if (record := load_record(self.run)) is not None:
            self.stepper.oom_retry.require_slices(record.slices)
            if self.ranks.is_first and record.step > self.state.step:
                self._report_out_of_memory(record)  # resuming has cut off the earlier report

    def _report_out_of_memory(self, record: OutOfMemoryRecord) -> None:
        self.metrics.write("out_of_memory", record.step, slices=record.slices)
        self.display.show_message(
            f"step {record.step:,}: out of memory; from here on each batch is computed in "
            f"{record.slices} slices"
        )

    def _describe_out_of_memory(self, batch: Batch, error: UnrecoverableOutOfMemoryError) -> str:
        what = f"out of memory at step {error.record.step:,} on rank {self.ranks.rank}"
        if error.is_single_row:
            S, T = batch.source_ids.shape[1], batch.target_input.shape[1]
            return f"{what}: {describe_too_long_row(S, T)}"
        return (
            f"{what}; start all ranks again with: dragoman train --resume {self.run}, which "
            f"computes each batch in {error.record.slices} slices"
        )

    def _take_results(self, *, wait: bool = False) -> None:
        """Record the results of finished steps; before anything is saved, wait for all of them."""
        for result in self.stepper.take_results(wait=wait):
            self._check_for_bad_step(result)
            self._log(result)

    def _show_estimate(self) -> None:
        """Say once, after the first steps on a CPU, how long the run will take."""
        if self._estimate_shown or self.quiet or self.device.type != "cpu":
            return
        if not self.clock.is_measured(self.state.step):
            return
        self._estimate_shown = True
        seconds = self.clock.seconds_left(self.state.step, self.config.training)
        if message := describe_estimate(self.config, len(self.data.train), seconds):
            self.display.show_message(message)

    def _check_for_bad_step(self, result: StepResult) -> None:
        if not result.skipped:
            self.state.bad_steps = 0
            return
        self.state.bad_steps += 1
        step, limit = result.step, self.config.training.max_bad_steps
        finite = math.isfinite(result.loss) and math.isfinite(result.gradient_norm)
        what = f"far above that of the steps before ({result.loss:.3g})" if finite else "not finite"
        if self.state.bad_steps >= limit:
            raise TrainingError(
                f"the loss was {what} for {limit} steps in a row, the last at step {step:,}; "
                "lower training.learning_rate, or set training.clip_norm=1, and resume from the "
                f"last checkpoint: dragoman train --resume {self.run}"
            )
        if self.ranks.is_first:
            self.metrics.write("skipped", step)
            self.display.show_message(f"step {step:,}: the loss is {what}; the step is skipped")

    def _log(self, result: StepResult) -> None:
        self.clock.count_step(result.step, result.tokens)
        if result.step % self.config.training.log_every and result.step != 1:
            return
        speed, seconds = self.clock.tokens_per_second(), self.clock.seconds()
        if not self.ranks.is_first:
            return
        self.metrics.write(
            "train",
            result.step,
            loss=result.loss,
            nll=result.nll,
            learning_rate=result.rate,
            gradient_norm=result.gradient_norm,
            tokens_per_second=round(speed),
            fill=result.fill,
            epoch=self.state.position.epoch,
            seconds=round(seconds, 2),
            checkpoint_seconds=self.writer.take_wait_seconds(),
        )
        left = self.clock.seconds_left(self.state.step, self.config.training)
        self.display.show_step(
            result.step, loss=result.loss, rate=result.rate, speed=speed, left=left
        )

    # --- validation ---

    def _validate(self) -> None:
        """Score the model; remember the best one and how many validations ago it was.

        A signal interrupts this; the validation is then repeated when the run is resumed.
        """
        self._take_results(wait=True)
        state = self.state
        with self._whole_model() as model:
            found, best = self._score(model) if model is not None else (None, False)
        was_interrupted = self.ranks.is_first and not found
        state.validation_due = bool(self.patient_ranks.broadcast(was_interrupted)[0])
        if state.validation_due:
            return
        if found is not None:
            values = {"loss": found.loss, "perplexity": found.perplexity}
            name = found.metric.lower()
            if found.score is not None:
                values[name] = found.score
            values |= {f"{name}/{other}": score for other, score in found.test_scores.items()}
            self.metrics.write("valid", state.step, **values)
            self.display.show_validation(state.step, found, best=best)
        if bool(self.ranks.broadcast(best)[0]):
            state.validations_without_gain = 0
        else:
            state.validations_without_gain += 1

    def _score(self, model: Model) -> tuple[ValidationResult | None, bool]:
        """Return the scores, if no signal came, and whether they are the best; then export it."""
        found = None
        if not self.signals.caught:
            with self._autocast(), self.signals.interruptible():
                found = validate(model, self.data, self.config, self.test_sets)
        if found is None:
            return None, False
        state, score = self.state, found.patience_value(self.config.training.patience_metric)
        best = state.best_score is None or score > state.best_score
        if best:
            state.best_score, state.best_step = score, state.step
            self._export(self.run / "best", get_weights(model), found, "best step")
        return found, best

    @contextmanager
    def _whole_model(self) -> Iterator[Model | None]:
        """Yield the model on the first rank, with the moving average, if any, as its weights."""
        if not self.ranks.is_first and not self.stepper.sharded:
            yield None
            return
        average = self.stepper.average
        if average is not None:
            average.swap()
        try:
            if self.stepper.sharded:
                yield gather_model(self.model, self._make_empty_model, self.ranks)
            else:
                yield self.model
        finally:
            if average is not None:
                average.swap()

    def _make_empty_model(self) -> Model:
        """Return a model without weights yet, for which no random number is drawn."""
        with torch.device("meta"):
            model = build(self.config.model, *self.data.tokenizer.sizes)
        return model.to_empty(device=self.device)

    def _autocast(self) -> torch.autocast:
        """Return a context in which the fp32 weights are validated with the run's arithmetic."""
        enabled = uses_bf16(self.config.training.precision, self.device)
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    # --- checkpoints ---

    def _save(self, *, last: bool) -> None:
        self._take_results(wait=True)
        self.state.seconds = self.clock.seconds()
        if self.ranks.is_first:
            self.state.metrics_bytes = self.metrics.bytes_written
        generators = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            generators["cuda"] = torch.cuda.get_rng_state(self.device)
        self.writer.save(self.state, self._training_tensors(), generators, last=last)

    def _restore(self) -> TrainingState:
        """Load the newest valid checkpoint, and return the state it was saved with."""
        checkpoint = Checkpoint(newest_valid_checkpoint(self.run, self._show_on_first))
        checkpoint.load_into(self._training_tensors())
        self.stepper.refresh_bf16_copy()
        state, threads = checkpoint.state, self.state.threads
        if state.threads != threads:
            self._show_on_first(
                f"the run had {counted(state.threads, 'CPU thread')} and continues with {threads}: "
                "the last bits of its results will differ"
            )
        state.threads, state.ranks = threads, self.ranks.world_size
        # A rank that was not there before keeps its own seed.
        generators = checkpoint.read_generators(self.ranks.rank)
        if "cpu" in generators:
            torch.set_rng_state(generators["cpu"])
        if self.device.type == "cuda" and "cuda" in generators:
            torch.cuda.set_rng_state(generators["cuda"], self.device)
        return state

    def _training_tensors(self) -> dict[str, LocalRows]:
        stepper = self.stepper
        return training_tensors(self.model, stepper.optimizer, stepper.average, local_rows)

    def _make_checkpoint_writer(self) -> CheckpointWriter:
        return CheckpointWriter(
            self.run,
            keep=self.config.training.keep_checkpoints,
            newest=self.state.step,
            ranks=self.ranks,
            before_write=self.metrics.sync if self.ranks.is_first else lambda: None,
            show_message=self.display.show_message,
        )

    # --- the end ---

    def _finish(self) -> Outcome:
        """Make the model: the average of the last checkpoints, or a clearly better best step."""
        if not self.ranks.is_first:
            return self._make_outcome(None, None, None)
        settings, state = self.config.training, self.state
        paths = valid_checkpoints(
            self.run, settings.average, self.display.show_message, up_to=state.step
        )
        model = self._make_empty_model() if self.stepper.sharded else self.model
        set_weights(model, average_weights(paths), where=str(self.run))
        with self._autocast():
            found = validate(model, self.data, self.config)
        made_of = f"average of {len(paths)} checkpoints" if len(paths) > 1 else "last checkpoint"
        score = found.patience_value(settings.patience_metric)
        if state.best_score is not None and score < state.best_score - _margin(found, score):
            made_of = f"best step, {state.best_step:,}"
            best = average_weights([self.run / "best"])
            set_weights(model, best, where=str(self.run / "best"))
            with self._autocast():
                found = validate(model, self.data, self.config)
        self._export(self.run / "model", get_weights(model), found, made_of)
        self.metrics.write(
            "final",
            state.step,
            loss=found.loss,
            perplexity=found.perplexity,
            checkpoint_seconds=self.writer.take_wait_seconds(),
        )
        reached = "" if found.score is None else f", {found.metric} {found.score:.1f}"
        self.display.show_message(
            f"done: {counted(state.step, 'step')}; {self.run / 'model'} is the {made_of}: "
            f"validation perplexity {found.perplexity:.2f}{reached}"
        )
        return self._make_outcome(self.run / "model", found, None)

    def _export(
        self, path: Path, weights: dict[str, torch.Tensor], found: ValidationResult, made_of: str
    ) -> None:
        card: dict[str, Any] = {
            "made_of": made_of,
            "steps": self.state.step,
            "training_pairs": len(self.data.train),
            "target_tokens_seen": self.state.target_tokens,
            "training_minutes": round(self.clock.seconds() / 60, 2),
            "device": describe_device(self.device),
            "parameters": sum(tensor.numel() for tensor in weights.values()),
            "validation": {"perplexity": found.perplexity},
        }
        if found.score is not None:
            card["validation"][f"greedy {found.metric}"] = found.score
        if tags := list(self.data.tokenizer.tags):
            card["formality"] = tags
        save_model(path, weights, self.config, self.data.tokenizer, card)

    def _make_outcome(
        self, model: Path | None, found: ValidationResult | None, signal: int | None
    ) -> Outcome:
        return Outcome(
            run=self.run,
            model=model,
            step=self.state.step,
            seconds=self.clock.seconds(),
            score=found.score if found else None,
            perplexity=found.perplexity if found else None,
            signal=signal,
        )

    def _show_on_first(self, message: str) -> None:
        """Show a message before the display is open, on the first rank only."""
        if self.ranks.is_first:
            ProgressDisplay(steps=0).show_message(message)


class _Clock:
    """Measure the time spent training, the speed, and the time left."""

    def __init__(self, state: TrainingState) -> None:
        self._started = self._window_start = time.monotonic()
        self._seconds_before = state.seconds
        self._steady_from, self._steady_step = self._started, state.step
        self._is_warm = False
        self._window_tokens = 0

    def seconds(self) -> float:
        """Return the time spent training, over all the times the run was started."""
        return self._seconds_before + time.monotonic() - self._started

    def count_step(self, step: int, tokens: int) -> None:
        """Count a finished step for the speed; the first is slow, and says nothing of the rest."""
        self._window_tokens += tokens
        if not self._is_warm:
            self._steady_from, self._steady_step, self._is_warm = time.monotonic(), step, True

    def tokens_per_second(self) -> float:
        """Return the speed since the last call of this."""
        now = time.monotonic()
        speed = self._window_tokens / max(1e-9, now - self._window_start)
        self._window_tokens, self._window_start = 0, now
        return speed

    def is_measured(self, step: int) -> bool:
        """Return whether the steps of this process tell how long one takes."""
        done, seconds = step - self._steady_step, time.monotonic() - self._steady_from
        return done >= 10 or (done >= 1 and seconds >= 10)

    def seconds_left(self, step: int, settings: TrainingConfig) -> float:
        """Return how long the run will still take at the pace of this process."""
        each = (time.monotonic() - self._steady_from) / max(1, step - self._steady_step)
        left = (settings.steps - step) * each
        if settings.minutes:
            left = min(left, 60 * settings.minutes - self.seconds())
        return max(0.0, left)


def _margin(found: ValidationResult, score: float) -> float:
    """Return by how much the best step must beat the average: a best of many is partly luck."""
    return 0.5 if score == found.score else 0.01


def _count_workers(device: torch.device, sampling: float, world_size: int) -> int:
    """Return how many processes build batches: none on a CPU, which has no core to spare."""
    if device.type == "cpu":
        return 0
    local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # which share the cores
    # Sampling segmentations takes far longer than all the rest. Without it, one process feeds four
    # GPUs; and every rank builds the batches of all ranks, to take its rows of them.
    wanted = 14 if sampling else -(-world_size // 4)
    return max(1, min(14, wanted, available_cores() // local_ranks - 2))

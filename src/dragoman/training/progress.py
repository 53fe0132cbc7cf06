"""The progress of a run is a bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from dragoman.training.validation import ValidationResult


class ProgressDisplay:
    """Show loss, speed, time left and validation scores; `quiet` shows messages only."""

    def __init__(self, *, steps: int, done: int = 0, quiet: bool = False) -> None:
        self._steps = steps
        self._done = done
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._score = ""

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not self._quiet:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("step {task.completed:,} of {task.total:,}"),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[facts]}"),
                console=Console(stderr=True),
                expand=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=self._steps, completed=self._done, facts="")
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show_step(self, step: int, *, loss: float, rate: float, speed: float, left: float) -> None:
        """Show the loss, the learning rate, the tokens a second and the seconds left."""
        eta = _format_duration(left)
        if self._bar is not None:
            facts = f"loss {loss:.3f}  {speed:,.0f} tokens/s  {eta} left{self._score}"
            self._bar.update(self._task, completed=step, facts=facts)
        elif not self._quiet:
            self._print(
                f"step {step:,} of {self._steps:,}  loss {loss:.3f}  learning rate {rate:.2e}  "
                f"{speed:,.0f} tokens/s  {eta} left"
            )

    def show_validation(self, step: int, found: ValidationResult, *, best: bool) -> None:
        """Show the scores of the validation set, and those of the test sets by their names."""
        score = "" if found.score is None else f"  {found.metric} {found.score:.1f}"
        self._score = score
        if not self._quiet:
            note = "  (best so far)" if best else ""
            more = "".join(f"  {name} {value:.1f}" for name, value in found.test_scores.items())
            self.show_message(
                f"validation at step {step:,}: perplexity {found.perplexity:.2f}{score}{more}{note}"
            )

    def show_message(self, message: str) -> None:
        """Show a message, whatever else is on the screen."""
        if self._bar is not None:
            self._bar.console.print(message, highlight=False, markup=False)
        else:
            self._print(message)

    def _print(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

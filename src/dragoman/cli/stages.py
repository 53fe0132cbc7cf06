"""What the commands that go through several stages have in common: they can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import typer

from dragoman.cli.console import counter, teller

if TYPE_CHECKING:
    from dragoman.training.run import Outcome

__all__ = ["carry_out"]


class Result(Protocol):
    """What has been made of a plan."""

    @property
    def outcome(self) -> Outcome | None:
        """Of training, if there was any this time."""


R = TypeVar("R", bound=Result)


def carry_out(
    do: Callable[..., R], plan: Any, out: Path, *, device: str, quiet: bool, **options: Any
) -> R:
    """Do what of a plan is not done yet in `out`; a signal ends it with a word on how to go on."""
    tell = teller(quiet)
    try:
        with counter("sentences") as progress:
            found = do(
                plan, out, device=device, quiet=quiet, tell=tell, progress=progress, **options
            )
    except KeyboardInterrupt:
        tell(f"stopped; the same command goes on in {out}")
        raise
    if found.outcome is not None and found.outcome.signal is not None:
        raise typer.Exit(128 + found.outcome.signal)
    return found

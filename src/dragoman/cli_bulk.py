"""What `dragoman translate --engine` does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dragoman.console import counter, say, show
from dragoman.errors import ConfigError

__all__ = ["translate_files"]


def translate_files(
    models: list[Path],
    files: list[Path],
    out: Path | None,
    *,
    engine: str,
    workers: int | None,
    part: int,
    device: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Translate files and directories in parts that are kept, to files of the same names."""
    from dragoman.bulk import translate_directory

    if out is None or not files:
        raise ConfigError(
            "--engine translates files to files: name them, or a directory, and --out"
        )
    try:
        with counter("parts") as progress:
            found = translate_directory(
                models,
                files,
                out,
                engine=engine,
                workers=workers,
                part=part,
                device=device,
                tell=say,
                progress=progress,
                **options,
            )
    except KeyboardInterrupt:
        say(f"stopped; the same command goes on in {out}")
        raise
    paths = list(map(str, found.files))
    show(asdict(found) | {"files": paths} if as_json else "\n".join(paths))

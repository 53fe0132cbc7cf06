"""`export`: write beside, compare, and only then put in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from dragoman.interop.parity import Parity, Reference, sample_texts
from dragoman.interop.support import PACKAGES, check_fit, require
from dragoman.model_directory import LoadedModel
from dragoman.system.atomic_files import atomic_directory

__all__ = ["export"]


def export(
    loaded: LoadedModel,
    directory: Path,
    to: str,
    *,
    texts: Sequence[str] = (),
    **options: Any,
) -> Parity:
    """Write a model for a runtime; the directory appears when the runtime has agreed with ours.

    `texts` are compared besides the usual sample. Options are those of the runtime's `write`.
    """
    check_fit(loaded.config, to)
    require(*PACKAGES[to])
    runtime = import_module(f"dragoman.interop.{to}")
    write: Callable[..., None] = runtime.write
    check: Callable[..., Parity] = runtime.check
    reference = Reference(loaded, sample_texts(loaded, texts))
    with atomic_directory(directory) as temporary:
        write(loaded, temporary, **options)
        return check(temporary, reference, **options)

"""A model is exported to another runtime if that can run it, and translates as ours does.

Whether a model can be exported is decided by its config alone, before anything is trained, and
without PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.models.supported_settings import unsupported
from dragoman.system.atomic_files import atomic_directory
from dragoman.system.packages import has_package, pip_command

if TYPE_CHECKING:
    from dragoman.interop.parity import Parity
    from dragoman.model_directory import LoadedModel

Runtime: TypeAlias = Literal["huggingface", "ctranslate2", "onnx", "marian"]
RUNTIMES: Final[tuple[Runtime, ...]] = get_args(Runtime)
"""The runtimes that a model can be exported to; each is a module of this package."""

PACKAGES: Final = {
    "huggingface": ("transformers",),
    "ctranslate2": ("ctranslate2",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "marian": ("pymarian",),
}
"""The packages that each runtime needs."""


def export(
    loaded: LoadedModel, directory: Path, to: str, *, texts: Sequence[str] = (), **options: Any
) -> Parity:
    """Write a model for a runtime; the directory appears once the runtime translates as ours does.

    `texts` are compared besides the usual sample. Options are those of the runtime's `write`.
    """
    from dragoman.interop.parity import Reference, sample_texts

    loaded.require_whole_weights("exporting")
    check_exportable(loaded.config, to, options.get("quantization"))
    require_packages(*PACKAGES[to])
    runtime = import_module(f"dragoman.interop.{to}")
    write: Callable[..., None] = runtime.write
    check: Callable[..., Parity] = runtime.check
    reference = Reference(loaded, sample_texts(loaded, texts))
    with atomic_directory(directory) as temporary:
        write(loaded, temporary, **options)
        return check(temporary, reference, **options)


def check_exportable(config: Config, to: str, quantization: str | None = None) -> None:
    """Raise ConfigError, naming the setting, if a runtime cannot run such a model."""
    runtime = next((runtime for runtime in RUNTIMES if runtime == to), None)
    if runtime is None:
        raise ConfigError(f"--to {to}: there is no such runtime; choose {', '.join(RUNTIMES)}")
    found = find_obstacle(config, runtime, quantization)
    if found is None:
        return
    others = [other for other in RUNTIMES if find_obstacle(config, other) is None]
    if runtime in others:
        raise ConfigError(
            f"{found} cannot be exported to {to} in {quantization}: it has such a model in float32 "
            "alone"
        )
    advice = f"try --to {others[0]}" if others else "no other runtime has it either"
    raise ConfigError(f"{found} cannot be exported to {to}: it has no such model; {advice}")


def find_obstacle(config: Config, to: Runtime, quantization: str | None = None) -> str | None:
    """Return the first setting that a runtime does not support, as `key = value`, or None."""
    if config.data.task != "translation":
        return f"data.task = {config.data.task}"
    in_int8 = to == "marian" and quantization == "int8"
    return unsupported(config.model, "marian int8" if in_int8 else to)


def require_packages(*packages: str) -> None:
    """Raise ConfigError if one of these packages is not installed."""
    for name in packages:
        if not has_package(name):
            raise ConfigError(f"{name} is not installed; install it with: {pip_command(name)}")

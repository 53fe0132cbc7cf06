"""Models are loaded for use from directories, on a device, in a precision.

`Predictor` is what translators and parsers have in common.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from dragoman.config import Config, ModelConfig
from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.inference.cpu import CpuEngine, open_cpu_engine, why_no_cpu_engine
from dragoman.inference.cpu.kernel_library import used_instruction_set, why_no_kernel, why_slow
from dragoman.inference.cpu.shortlist import read_shortlist
from dragoman.inference.engine import DEFAULT_WINDOW, Engine
from dragoman.model_directory import LoadedModel, load_model, open_model
from dragoman.models.supported_settings import unsupported
from dragoman.system.cores import available_cores
from dragoman.system.malloc import keep_freed_memory
from dragoman.system.packages import has_package, require_package
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.models import Model

Precision = Literal["auto", "int8", "float32"]
"""A model is computed in these numbers; int8 is for a CPU."""

COMPILE_KERNEL: Final = (
    "install a C compiler and run: pip install --force-reinstall --no-deps --no-cache-dir dragoman"
)
FIRST_WINDOW: Final = 64
"""So many lines are translated first, so that there is something to read soon."""
SECONDS_OF_A_WINDOW: Final = 5.0
"""Windows grow until one takes this long, so that results keep coming."""
CHARACTERS_OF_A_LINE: Final = 500
"""A window of lines that are longer on average than this has fewer of them."""

log = logging.getLogger("dragoman.inference")


def load_for_inference(
    paths: Sequence[Path | str], device: str, precision: Precision
) -> tuple[list[LoadedModel], Engine | None]:
    """Load a model or an ensemble, and the engine of the model where one supports it.

    `auto` uses an engine wherever there is one for the model: in int8 on a CPU, in bf16 on a GPU.
    """
    if precision not in get_args(Precision):
        raise ConfigError(f"precision {precision} does not exist; use auto, int8 or float32")
    device = choose_device(device)
    if device != "cpu":
        return _load_on_gpu(paths, device, precision)
    first = open_model(paths[0])
    ensemble = len(paths) > 1
    obstacle = (
        "an ensemble is computed by PyTorch" if ensemble else why_no_cpu_engine(first.config.model)
    )
    if precision == "int8" and obstacle:
        raise ConfigError(f"{first.path}: cannot run in int8 ({obstacle}); use precision float32")
    if not obstacle and precision != "float32":
        return [first], open_cpu_engine(first)
    if why_no_kernel() and not has_package("torch"):
        raise ConfigError(f"{first.path}: nothing can run it: {describe_cpu_path()}")
    reason = f"a model that the CPU engine cannot run ({obstacle})" if obstacle else "float32"
    require_package("torch", f"{first.path}: {reason}")
    if precision == "auto" and not ensemble:
        _warn_of_missing_kernel()
    keep_freed_memory()
    return [load_model(one) for one in paths], None


def _load_on_gpu(
    paths: Sequence[Path | str], device: str, precision: Precision
) -> tuple[list[LoadedModel], Engine | None]:
    if precision == "int8":
        raise ConfigError("int8 is for the CPU; leave out the precision, or use device cpu")
    if precision == "auto" and len(paths) == 1:
        from dragoman.inference.gpu import open_gpu_engine, why_no_gpu_engine

        loaded = open_model(paths[0], device)
        if not why_no_gpu_engine(loaded.config.model, device):
            return [loaded], open_gpu_engine(loaded, device)
    return [load_model(one, device) for one in paths], None


# --- what computes on a CPU ---


def describe_cpu_path(config: ModelConfig | None = None) -> str:
    """Return one line that says what computes on this machine's CPU: such a model, or any."""
    if reason := why_no_kernel():
        instead = (
            "so PyTorch computes on the CPU, about 7 times slower"
            if has_package("torch")
            else "and PyTorch, which could compute instead, is not installed"
        )
        return f"{reason}, {instead}; {COMPILE_KERNEL}"
    if config is not None and (setting := unsupported(config, "cpu engine")):
        return f"PyTorch computes in float32, because the CPU engine does not support {setting}"
    threads = available_cores()
    line = (
        f"the CPU engine computes in int8, with instructions for {used_instruction_set()}, "
        f"in {threads} thread{'s' if threads > 1 else ''}"
    )
    return f"{line}; slow, because {reason}" if (reason := why_slow()) else line


@cache
def _warn_of_missing_kernel() -> None:
    """Log once, where the kernel cannot be used, that PyTorch is slower, and what to do about it.

    Where logging is not set up, Python writes the line to stderr.
    """
    if why_no_kernel():
        log.warning("dragoman: %s", describe_cpu_path())


# --- what an engine can be given besides its model ---


def attach_draft_model(loaded: LoadedModel, engine: Engine | None, path: Path | str) -> None:
    """Let the model at `path` draft for a model in the CPU engine; the results stay the same."""
    draft = open_model(path)
    if not isinstance(engine, CpuEngine):
        raise ConfigError(
            f"{loaded.path}: cannot use a draft, which needs int8 on a CPU; leave out {draft.path}"
        )
    if draft.tokenizer != loaded.tokenizer:
        raise ModelError(
            f"{draft.path}: has other pieces than {loaded.path}; a draft is trained with the same "
            "tokeniser, as dragoman distill does"
        )
    if obstacle := why_no_cpu_engine(draft.config.model):
        raise ConfigError(f"{draft.path}: cannot be a draft without int8 ({obstacle})")
    engine.draft = open_cpu_engine(draft)


def attach_shortlist(loaded: LoadedModel, engine: Engine | None) -> None:
    """Let the CPU engine compute only the pieces that the model's shortlist has for a sentence."""
    if not isinstance(engine, CpuEngine):
        raise ConfigError(
            f"{loaded.path}: cannot use a shortlist, which needs int8 on a CPU; leave it out"
        )
    engine.use_shortlist(read_shortlist(loaded))


class Predictor:
    """Hold one or several models with the same pieces, and an engine; the first speaks for all."""

    def __init__(
        self, loaded: LoadedModel, *others: LoadedModel, engine: Engine | None = None
    ) -> None:
        """Use an `engine` of the same weights for what it supports, and PyTorch for the rest."""
        self._loaded = (loaded, *others)
        self._engine = engine
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.config: Config = loaded.config
        self.card: dict[str, Any] = loaded.card
        self.path: Path = loaded.path
        self.warn: Callable[[str], None] = lambda message: None
        """This is called with a message when a sentence is unusually long or had to be cut."""

    @cached_property
    def model(self) -> Model:
        """Return the model or the ensemble; it is read now if the engine was enough until now."""
        first, *others = (one.model for one in self._loaded)
        if not others:
            return first
        from dragoman.models.ensemble import Ensemble

        return Ensemble([first, *others])

    def _windows(self, lines: Iterable[str], count: int | None) -> Iterator[list[str]]:
        """Yield `count` lines at a time, about 500 characters each at most; the last may be empty.

        Without a count the first are few, to come soon, and then ever more, until they take some
        seconds, or are as many as the engine is used best with. Where a line cannot be read, those
        before it come first.
        """
        most = DEFAULT_WINDOW if self._engine is None else self._engine.window
        count, most = (min(FIRST_WINDOW, most), most) if count is None else (count, count)
        waiting: list[str] = []
        number = size = 0
        try:
            for line in lines:
                waiting.append(line)
                number += max(1, line.count("\n"))  # a text may have several
                size += len(line)
                if number >= count or size > CHARACTERS_OF_A_LINE * count:
                    begin = time.monotonic()
                    yield waiting
                    waiting, number, size = [], 0, 0
                    if time.monotonic() - begin < SECONDS_OF_A_WINDOW:
                        count = min(2 * count, most)
        except DragomanError:
            yield waiting
            raise
        yield waiting


CUDA_DRIVER: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""NVIDIA's driver installs this library for programs to load."""
DRIVER_FILES: Final = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/nvmap")
"""These exist where the driver runs: on a server, under Windows' Linux and on a Jetson."""


def choose_device(device: str) -> str:
    """Return the device of this name; auto is the GPU if there is one.

    PyTorch is imported only where there may be a GPU, or one is asked for.
    """
    if device == "cpu" or (device == "auto" and not _may_have_gpu()):
        return "cpu"
    require_package("torch", f"device {device}")
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise ConfigError(f"there is no device '{device}' here; try cpu or auto") from None
    return device


def _may_have_gpu() -> bool:
    """Return False only where PyTorch could use none: it is built for none, or has no driver."""
    if sys.modules.get("torch") is not None:
        return True
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    built = _read_torch_version(Path(spec.origin).with_name("version.py"))
    if getattr(built, "hip", "unknown") is not None:
        return True
    return getattr(built, "cuda", "unknown") is not None and _has_cuda_driver()


def _read_torch_version(file: Path) -> ModuleType | None:
    """Run the small file in which PyTorch says what it is built for, without the rest of it."""
    spec = spec_from_file_location("torch_version", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception:  # then PyTorch itself has to say
        return None
    return module


def _has_cuda_driver() -> bool:
    """Return whether there is a driver; its library may lie where only PyTorch looks for it."""
    try:
        ctypes.CDLL(CUDA_DRIVER)
    except OSError:
        return any(Path(sign).exists() for sign in DRIVER_FILES)
    return True

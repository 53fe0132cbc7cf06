"""Start the worker process of a system, and send it one request at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Self

from dragoman.errors import DragomanError
from dragoman.inference.cpu.kernel_library import FORCED_ISA


class WorkerError(DragomanError):
    """Raised when a system could not do what it was asked, with its reason."""


class Worker:
    """Run `dragoman.bench.translation.worker`; the process ends with the `with` block."""

    def __init__(self, *, threads: int) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dragoman.bench.translation.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=worker_environment(threads),
            text=True,
            encoding="utf-8",
        )

    def load(self, name: str, **options: Any) -> dict[str, Any]:
        """Import, load and translate a text; return the seconds of both, and peak `memory`.

        The options are those of `load` in the worker.
        """
        return self._request("load", name=name, **options)

    def apply_settings(self, settings: dict[str, Any]) -> None:
        """Use these threads and batches from now on, and reset the peak of memory."""
        self._request("apply_settings", settings=settings)

    def translate(self, texts: Sequence[str], beam: int) -> dict[str, Any]:
        """Translate all at once; return `texts`, `seconds`, `cpu_seconds` and peak `memory`."""
        return self._request("translate", texts=list(texts), beam=beam)

    def translate_one_by_one(self, texts: Sequence[str], beam: int) -> dict[str, Any]:
        """Translate each by itself; return the `seconds` of each, and `cpu_seconds` of all."""
        return self._request("translate_one_by_one", texts=list(texts), beam=beam)

    def _request(self, action: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it has died: its output says more
            self._process.stdin.write(json.dumps({"do": action, "with": arguments}) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(self._failure_reason())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def _failure_reason(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        output = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"its process {ended}{': ' if output else ''}{output[-1] if output else ''}"

    def close(self) -> None:
        """End the worker process and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self._process.kill()
        self.close()


_HOLDING_VARIABLES: Final = (
    "CT2_FORCE_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
)
_HELD_TO: Final = {
    "avx2": ("AVX2", "AVX2", "AVX2", "avx2"),
    "avx_vnni": ("AVX2", "AVX2_E1", "AVX2_VNNI", "avx2"),
    "avx512": ("AVX512", "AVX512", "AVX512_CORE", "avx512"),
    "avx512_vnni": ("AVX512", "AVX512_E1", "AVX512_CORE_VNNI", "avx512"),
}
"""Where our kernel is held to an instruction set, so are others, by these values of the variables.

CTranslate2 multiplies with MKL on processors of Intel and with oneDNN on others, and its own
variable holds neither."""


def worker_environment(threads: int) -> dict[str, str]:
    """Return this process's environment, with so many threads, and nothing to be downloaded.

    Variables that hold a system to an instruction set are kept if they are set already.
    """
    count = str(threads)
    held = _HELD_TO.get(os.environ.get(FORCED_ISA, ""), ())
    return (
        dict(zip(_HOLDING_VARIABLES, held, strict=False))
        | os.environ
        | {
            "OMP_NUM_THREADS": count,
            "MKL_NUM_THREADS": count,
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
    )

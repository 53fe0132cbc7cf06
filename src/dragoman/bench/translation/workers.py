"""Workers seen from outside: one process for each system, asked one thing at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dragoman.errors import DragomanError

__all__ = ["Worker", "WorkerError"]


class WorkerError(DragomanError):
    """A system that could not do what it was asked, with its reason."""


class Worker:
    """A running `dragoman.bench.translation.worker`; it ends with the `with` block."""

    def __init__(self, *, threads: int) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dragoman.bench.translation.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(threads),
            text=True,
            encoding="utf-8",
        )

    def load(
        self,
        name: str,
        *,
        path: Path,
        model: Path,
        precision: str,
        shortlist: bool,
        search: dict[str, Any],
        settings: dict[str, Any],
        threads: int,
        text: str,
    ) -> dict[str, Any]:
        """Import, load, translate `text`: `imports_seconds`, `load_seconds`, peak `memory`."""
        options = {"path": str(path), "model": str(model), "precision": precision}
        return self._ask(
            "load",
            name=name,
            threads=threads,
            text=text,
            settings=settings,
            search=search,
            shortlist=shortlist,
            **options,
        )

    def use(self, settings: dict[str, Any]) -> None:
        """Take other threads or batches, and forget the peak of memory."""
        self._ask("use", settings=settings)

    def translate(self, texts: Sequence[str], beam: int) -> dict[str, Any]:
        """All at once: `texts`, `seconds`, `cpu_seconds` and the peak of `memory` since `use`."""
        return self._ask("translate", texts=list(texts), beam=beam)

    def one_by_one(self, texts: Sequence[str], beam: int) -> dict[str, Any]:
        """Each by itself: the `seconds` of each, and `cpu_seconds` of all."""
        return self._ask("one_by_one", texts=list(texts), beam=beam)

    def _ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it has died: its last words say more
            self._process.stdin.write(json.dumps({"do": what, "with": arguments}) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def _last_words(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"its process {ended}{': ' if said else ''}{said[-1] if said else ''}"

    def close(self) -> None:
        """End the process."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._process.kill()
        self.close()


def _environment(threads: int) -> dict[str, str]:
    """Of this process, with as many threads for all, and nothing fetched from anywhere."""
    count = str(threads)
    return os.environ | {
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }

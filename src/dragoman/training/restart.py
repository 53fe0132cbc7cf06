"""Knowing that torchrun has started this command again after a failure (``--max-restarts``)."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

__all__ = ["job", "restarted"]


def job() -> str:
    """What all starts of one job have in common; empty without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "")
    # Without a name of its own, a job is known by the torchrun that started this process.
    return f"{socket.gethostname()}:{os.getppid()}" if name == "none" else name


def restarted(run: Path) -> bool:
    """Whether an earlier start of this very job began the run.

    A run that was there before is another matter: the first start has refused to touch it, and
    torchrun tries again whatever the reason was.
    """
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return False
    if int(os.environ.get("RANK", "0")) != 0:
        return True  # the first rank decides: the others cannot go on without it
    try:
        began = json.loads((run / "run.json").read_text(encoding="utf-8"))["job"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(began == job())

"""The run that is killed: small, but with everything a run can have.

Each start of it is a process forked from this one, which has imported everything and started no
thread: a start costs a tenth of a second instead of three.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import sacrebleu  # noqa: F401
import torch
from tensorboard.compat.proto import event_pb2  # noqa: F401
from tensorboard.summary.writer import record_writer  # noqa: F401

from dragoman.cli import main
from dragoman.config import Config
from dragoman.phrasebook import generate
from dragoman.run_directory import list_checkpoints
from dragoman.training import run as _imported  # noqa: F401

PAIRS, INTERVAL, STEPS = 400, 5, 40
SETTINGS = [
    "tokenizer.vocabulary=400",
    "data.max_length=63",
    "data.row_length=64",
    "data.subword_sampling=0.1",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.heads=2",
    "model.dropout=0.1",
    f"training.steps={STEPS}",
    f"training.checkpoint_every={INTERVAL}",
    "training.validate_every=7",  # some at a checkpoint, most between two
    "training.validate_sentences=5",
    "search.max_extra=5",
    "training.keep_checkpoints=3",
    "training.average=2",
    "training.batch_tokens=512",
    "training.schedule=inverse-sqrt",
    "training.learning_rate=0.003",
    "training.warmup_steps=20",
    "training.ema=0.9",
    "training.threads=1",
    "training.log_every=1",
    "training.device=cpu",
]


def prepare(directory: Path) -> Path:
    """A corpus of the phrasebook, ready to train on."""
    texts = [directory / "corpus.en", directory / "corpus.de"]
    examples = list(generate("de", "train", PAIRS))
    texts[0].write_text("".join(f"{e.source}\n" for e in examples), encoding="utf-8")
    texts[1].write_text("".join(f"{e.target}\n" for e in examples), encoding="utf-8")
    preset = directory / "drill.toml"
    preset.write_text(Config().overridden(SETTINGS).to_toml(), encoding="utf-8")
    words = ["prepare", *texts, "--out", directory / "data", "--preset", preset, "--workers", "0"]
    status = wait(fork(lambda: _command(*words), directory / "prepare.log"))
    assert status == 0, (directory / "prepare.log").read_text()
    return directory / "data"


def start_or_resume(run: Path, data: Path, arm: Callable[[], None] = lambda: None) -> int:
    """Start or resume the run as a user would, after `arm`; the process's number."""

    def work() -> None:
        arm()
        if (run / "config.toml").exists():
            _command("train", "--resume", run, "--quiet")
        else:
            preset = data.parent / "drill.toml"
            _command("train", data, "--preset", preset, "--out", run, "--quiet")

    return fork(work, run.with_suffix(".log"))


def fork(work: Callable[[], None], log: Path) -> int:
    """Do some work in a copy of this process, whose output goes to a file."""
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a fork of threads does not live"
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    status = 1
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        work()
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait(pid: int) -> int:
    """How a process ended: its status, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read_metrics(run: Path) -> bytes:
    """The metrics so far."""
    file = run / "metrics.jsonl"
    return file.read_bytes() if file.exists() else b""


def newest_recorded_step(run: Path) -> int:
    """The last step that was recorded."""
    lines = read_metrics(run).split(b"\n")[:-1]  # the rest may be half a line
    return max((json.loads(line)["step"] for line in lines), default=0)


def newest_checkpoint_step(run: Path) -> int:
    """The step of the newest checkpoint."""
    return max((int(path.name.removeprefix("step-")) for path in list_checkpoints(run)), default=0)


def _command(*words: object) -> None:
    torch.set_num_threads(1)
    sys.argv = ["dragoman", *map(str, words)]
    main()

"""What every test shares: one thread, so that results and times do not depend on the neighbours."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
# The models of this clone are not installed for tests.
os.environ["DRAGOMAN_MODELS"] = ""

import io
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest
import torch

if not torch.cuda.is_available():
    # Kernels are tested in Triton's interpreter; it wants to know before anything imports Triton.
    os.environ["TRITON_INTERPRET"] = "1"

from dragoman.config import Config
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.training.run import train

# `make test` chooses it; `make thorough` goes on looking for other examples.
hypothesis.settings.register_profile("fixed", derandomize=True, max_examples=40, deadline=None)


def more_examples(times: float) -> hypothesis.settings:
    """Try so many times the examples that other tests try, for what only a rare one shows."""
    count = round(times * hypothesis.settings().max_examples)
    return hypothesis.settings(max_examples=count, deadline=None)


# A shell lets what it starts with & ignore Ctrl-C, and so would every process that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs a CUDA device")
        for item in items:
            if item.get_closest_marker("gpu"):  # keywords also hold names of directories
                item.add_marker(skip)


WORDS = ("red", "blue", "big", "small", "dog", "cat", "house", "tree", "sees", "eats", "old", "the")


def reversals(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of a language anyone can learn: every word, and their order, reversed."""
    draw = random.Random(seed)
    sources = [draw.choices(WORDS, k=draw.randint(3, 9)) for _ in range(count)]
    return [
        (" ".join(words), " ".join(word[::-1] for word in reversed(words))) for words in sources
    ]


def write_pairs(directory: Path, pairs: list[tuple[str, str]], name: str = "corpus") -> list[Path]:
    """Two aligned files, .en and .de."""
    paths = [directory / f"{name}.en", directory / f"{name}.de"]
    for side, path in enumerate(paths):
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return paths


TINY = [
    "tokenizer.vocabulary=330",
    "data.max_length=63",
    "data.row_length=64",
    "model.encoder_layers=2",
    "model.decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.heads=2",
    "training.batch_tokens=512",
    "training.schedule=constant",
    "training.learning_rate=0.003",
    "training.warmup_steps=5",
    "training.threads=1",
    "training.validate_sentences=20",
    "training.log_every=1",
    "training.device=cpu",
]


@pytest.fixture(scope="session")
def tiny() -> Config:
    """A model that trains in seconds."""
    return Config().overridden(TINY)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, tiny: Config) -> Prepared:
    """A small corpus of reversals, ready to train on; do not write to it."""
    directory = tmp_path_factory.mktemp("reversals")
    files = write_pairs(directory, reversals(1500))
    return prepare(open_parallel_corpus(files), directory / "data", tiny, workers=0)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, tiny: Config, prepared: Prepared) -> Path:
    """A finished run of a model that has learned little; do not write to it."""
    run = tmp_path_factory.mktemp("trained") / "run"
    config = tiny.overridden(
        ["training.steps=40", "training.validate_every=20", "training.checkpoint_every=20"]
    )
    train(config, prepared.path, run=run, quiet=True)
    return run


class Result(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Run the command line in this process: command("info", path, stdin=b"...")."""
    from dragoman.cli import main

    def run(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["dragoman", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        return Result(left.value.code, *capsys.readouterr())

    return run

"""Small models, a service of them in this process, and one outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
import torch
from fastapi import FastAPI
from starlette.testclient import TestClient

from dragoman.config import Config
from dragoman.inference.cpu import kernel_library
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.phrasebook import generate
from dragoman.serve.app import build_app, wrap_in_middleware
from dragoman.serve.authentication import hash_key
from dragoman.serve.limits import Limits
from dragoman.serve.service import TranslationService
from dragoman.serve.settings import NamedModel, Settings
from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.tree import leaves
from dragoman.trees.tree_tokenizer import TreeTokenizer

from ..conftest import reversals

SMALL = [
    "tokenizer.vocabulary=330",
    "data.max_length=63",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.heads=2",
    "search.max_extra=8",
]
ASK: dict[str, Any] = {"q": "the dog", "source": "en", "target": "de"}
needs_kernel = pytest.mark.skipif(
    kernel_library.load_kernel() is None, reason="the kernel is not compiled"
)
SENTENCES = [source for source, _ in reversals(40, seed=3)]


def translator(directory: Path, languages: str | None, seed: int) -> Path:
    """A model with weights as they were drawn, which prefers something."""
    config = Config().overridden(SMALL)
    if languages is not None:
        config = config.updated({"data": {"languages": languages.split("-")}})
    tokenizer = Tokenizer.train(
        (side for pair in reversals(300) for side in pair), config.tokenizer
    )
    torch.manual_seed(seed)
    model = build(config.model, *tokenizer.sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    save_model(directory, get_weights(model), config, tokenizer, {})
    return directory


def parser(directory: Path) -> Path:
    """A parser of the same kind."""
    config = Config().overridden([*SMALL, "data.task=parsing", "tokenizer.vocabulary=400"])
    trees = [example.source_tree for example in generate("de", "train", 100)]
    words = [" ".join(leaf.word for leaf in leaves(parse_tree(tree))) for tree in trees]
    tokenizer = TreeTokenizer.learn(
        list(zip(words, trees, strict=True)), config.tokenizer, config.trees
    )
    torch.manual_seed(1)
    model = build(config.model, *tokenizer.sizes)
    save_model(directory, get_weights(model), config, tokenizer, {})
    return directory


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of model directories: ende, deen, silent (of no languages) and trees."""
    home = tmp_path_factory.mktemp("models")
    translator(home / "ende", "en-de", 1)
    translator(home / "deen", "de-en", 2)
    parser(home / "trees")
    silent = home / "silent"
    shutil.copytree(home / "ende", silent)
    text = (silent / "config.toml").read_text(encoding="utf-8")
    text = text.replace('languages = ["en", "de"]', "languages = []")
    (silent / "config.toml").write_text(text, encoding="utf-8")
    return home


class Service(NamedTuple):
    """A service in this process."""

    inner: TranslationService
    app: FastAPI
    client: TestClient

    def post(self, path: str, body: Any, **options: Any) -> Any:
        return self.client.post(path, json=body, **options)


def start(paths: Sequence[Path | str], **settings: Any) -> Service:
    settings.setdefault("threads", 2)
    names = {field.name for field in fields(Limits)} & settings.keys()
    limits = Limits(**{name: settings.pop(name) for name in names})
    inner = TranslationService(
        Settings(
            models=tuple(NamedModel.parse(str(path)) for path in paths),
            device="cpu",
            limits=limits,
            **settings,
        )
    )
    app = build_app(inner)
    return Service(inner, app, TestClient(wrap_in_middleware(app), raise_server_exceptions=False))


@pytest.fixture(scope="session")
def service(models: Path) -> Iterator[Service]:
    """Two translators and a parser, for everyone; change nothing of it."""
    found = start([models / "ende", models / "deen", models / "trees"])
    yield found
    found.inner.close()


@pytest.fixture
def served(models: Path) -> Iterator[Callable[..., Service]]:
    """A service with settings of one's own: served(queue=4, keys=["secret"])."""
    opened: list[Service] = []

    def run(
        *, keys: tuple[str, ...] = (), names: tuple[str, ...] = ("ende",), **rest: Any
    ) -> Service:
        paths = [models / name for name in names]
        found = start(paths, keys=frozenset(map(hash_key, keys)), **rest)
        opened.append(found)
        return found

    yield run
    for one in opened:
        one.inner.close()


class Process:
    """A service outside, as `dragoman serve` runs it."""

    def __init__(self, *arguments: object) -> None:
        self.lines: list[dict[str, Any]] = []
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "serve", *map(str, arguments), "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        # Read all the time: a pipe that is full would stop the service.
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_for(lambda: bool(self.lines) or self.popen.poll() is not None, 60)
        assert self.lines, "it did not start"
        assert self.lines[0]["event"] == "listening"
        self.port = int(self.lines[0]["port"])
        self.url = f"http://127.0.0.1:{self.port}"

    def _read(self) -> None:
        assert self.popen.stderr is not None
        with self.popen.stderr as coming:
            for line in coming:
                self.lines.append(json.loads(line))

    def end(self) -> list[dict[str, Any]]:
        """Wait until it has ended, and return what it has logged."""
        self.popen.wait(40)
        self._reader.join()
        return self.lines


@pytest.fixture
def outside(models: Path) -> Iterator[Callable[..., Process]]:
    """Start a service as a process: outside("--queue", 4)."""
    started: list[Process] = []

    def run(*options: object, names: tuple[str, ...] = ("ende",)) -> Process:
        started.append(Process(*(models / name for name in names), *options))
        return started[-1]

    yield run
    for one in started:
        one.popen.kill()
        one.end()


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)

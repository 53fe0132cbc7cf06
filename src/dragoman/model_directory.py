"""A model on disk: everything needed to use it, in one directory, and nothing to unpickle.

``config.toml``, ``weights.safetensors``, ``tokenizer.model`` and ``tokenizer.json``, and the card:
``card.json`` for programs, ``README.md`` for people.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.system.atomic_files import atomic_directory
from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.tree_tokenizer import load_tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from dragoman.models import Model

__all__ = ["LoadedModel", "load_model", "open_model", "save_model"]

FORMAT = 1
WEIGHTS = "weights.safetensors"


class LoadedModel:
    """A model with what belongs to it; its weights are read when they are first needed."""

    def __init__(
        self,
        model: Model | None,
        tokenizer: Tokenizer,
        config: Config,
        card: dict[str, Any],
        path: Path,
        device: torch.device | str = "cpu",
    ) -> None:
        self._model = model
        self._device = device
        self.tokenizer = tokenizer
        self.config = config
        self.card = card
        self.path = path

    @property
    def model(self) -> Model:
        """The model itself, ready to be used."""
        if self._model is None:
            self._model = _read_model(self.weights, self.config, self.tokenizer, self._device)
        return self._model

    @property
    def weights(self) -> Path:
        """The file of its weights."""
        return self.path / WEIGHTS


def _read_model(
    file: Path, config: Config, tokenizer: Tokenizer, device: torch.device | str
) -> Model:
    import torch

    from dragoman.models import build
    from dragoman.models.weights import adopt_weights, read_tensors

    with torch.device("meta"):
        model = build(config.model, *tokenizer.sizes)
    adopt_weights(model, read_tensors(file), where=str(file))
    return model.to(device).eval()


def save_model(
    directory: Path,
    weights: dict[str, Tensor],
    config: Config,
    tokenizer: Tokenizer,
    card: dict[str, Any],
) -> None:
    """Write a model directory, replacing a model that is there and nothing else."""
    from dragoman.models.weights import write_tensors

    _refuse_others(directory)
    with atomic_directory(directory, replace=True) as temporary:
        card = {"format": FORMAT, **card}
        (temporary / "config.toml").write_text(config.to_toml(), encoding="utf-8")
        write_tensors(weights, temporary / WEIGHTS)
        tokenizer.save(temporary)
        text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
        (temporary / "card.json").write_text(text, encoding="utf-8")
        (temporary / "README.md").write_text(_render(card, config), encoding="utf-8")


def load_model(directory: Path | str, device: torch.device | str = "cpu") -> LoadedModel:
    """Read a model directory, or the model of a run directory."""
    loaded = open_model(directory, device)
    _ = loaded.model  # what is wrong with it is said now
    return loaded


def open_model(directory: Path | str, device: torch.device | str = "cpu") -> LoadedModel:
    """The same without its weights, which are read when they are needed, if ever."""
    path = _find(Path(directory))
    card = _read_card(path)
    try:
        config = Config.load(path / "config.toml")
    except ConfigError as error:
        raise ModelError(f"{error}; {path} is not a model of this version") from None
    return LoadedModel(None, load_tokenizer(path), config, card, path, device)


def _refuse_others(path: Path) -> None:
    if (path / "card.json").exists() or not path.exists():
        return
    if not path.is_dir() or any(path.iterdir()):
        raise ModelError(f"{path}: already exists and is not a model; choose another place")


def _find(path: Path) -> Path:
    if not path.exists():
        raise ModelError(f"{path}: no such model; give a directory that dragoman train made")
    for candidate in (path, path / "model", path / "best"):
        if (candidate / WEIGHTS).exists() and (candidate / "card.json").exists():
            return candidate
    if (path / "checkpoints").is_dir():
        raise ModelError(
            f"{path}: a run without a model yet; make one with: dragoman average {path}"
        )
    raise ModelError(f"{path}: not a model directory (no {WEIGHTS} and card.json in it)")


def _read_card(path: Path) -> dict[str, Any]:
    try:
        card: dict[str, Any] = json.loads((path / "card.json").read_text(encoding="utf-8"))
        version = int(card["format"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"{path / 'card.json'}: not the card of a Dragoman model") from None
    if version > FORMAT:
        raise ModelError(
            f"{path}: made by a newer Dragoman (format {version}, this one reads {FORMAT}); "
            "update Dragoman"
        )
    return card


def _render(card: dict[str, Any], config: Config) -> str:
    """The card as a page."""
    languages = config.data.languages
    parses = config.data.task == "parsing"
    other = "Parser" if parses else "Translator"
    title = f"{languages[0]} → {languages[1]}" if languages else other
    model = config.model
    lines = [
        f"# {title}",
        "",
        f"A Dragoman {model.architecture}: {model.encoder_layers}+{model.decoder_layers} layers, "
        f"d_model {model.d_model}, {model.heads} heads, {config.tokenizer.vocabulary:,} pieces.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {key.replace('_', ' ')} | {_cell(value)} |" for key, value in card.items()),
        "",
        "```",
        f"echo 'Some text.' | dragoman {'parse' if parses else 'translate'} PATH_TO_THIS_DIRECTORY",
        "```",
        "",
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)

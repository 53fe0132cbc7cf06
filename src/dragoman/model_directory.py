"""A model on disk is a directory that holds everything needed to use it, and nothing to unpickle.

    config.toml           every setting it was trained with; [model] says how to build it
    weights.safetensors   its tensors, by the names of the model's parameters
    tokenizer.model       the SentencePiece model
    tokenizer.json        the tokeniser's settings, and a fingerprint of tokenizer.model
    card.json             format, scores, corpus and licences, for programs
    README.md             the same for people

All but README.md must be there. `open_model` checks the card's format, every setting and the
tokeniser; `load_model` also that the weights have the names and shapes the settings ask for.
What does not fit is refused with a ModelError that names the file. A model that passes is safe to
use whoever made it. A directory made by a newer version (a higher format) is refused; older ones
are read. ``int8.safetensors`` and ``shortlist.safetensors`` may stand beside these files; they are
made from them by `dragoman quantize` and `dragoman shortlist`.
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

FORMAT = 1
"""The version of this layout; a reader refuses directories of a higher one."""
CONFIG_FILE = "config.toml"
CARD_FILE = "card.json"
WEIGHTS_FILE = "weights.safetensors"


class LoadedModel:
    """Hold a model directory's content; the weights are read when they are first needed."""

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
        """Return the model itself, ready to be used."""
        if self._model is None:
            self._model = _read_model(self.weights_file, self.config, self.tokenizer, self._device)
        return self._model

    @property
    def weights_file(self) -> Path:
        """Return the path of its weights."""
        return self.path / WEIGHTS_FILE


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

    _check_replaceable(directory)
    with atomic_directory(directory, replace=True) as temporary:
        card = {"format": FORMAT, **card}
        (temporary / CONFIG_FILE).write_text(config.to_toml(), encoding="utf-8")
        write_tensors(weights, temporary / WEIGHTS_FILE)
        tokenizer.save(temporary)
        text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
        (temporary / CARD_FILE).write_text(text, encoding="utf-8")
        (temporary / "README.md").write_text(_render_card(card, config), encoding="utf-8")


def load_model(directory: Path | str, device: torch.device | str = "cpu") -> LoadedModel:
    """Read a model directory, or the model of a run directory, weights included."""
    loaded = open_model(directory, device)
    _ = loaded.model  # so that weights that do not fit are refused now
    return loaded


def open_model(directory: Path | str, device: torch.device | str = "cpu") -> LoadedModel:
    """Read a model directory as `load_model` does, but its weights only if they are needed."""
    path = _find_model(Path(directory))
    card = _read_card(path)
    try:
        config = Config.load(path / CONFIG_FILE)
    except ConfigError as error:
        raise ModelError(f"{error}; {path} is not a model of this version") from None
    return LoadedModel(None, load_tokenizer(path), config, card, path, device)


def _check_replaceable(path: Path) -> None:
    if (path / CARD_FILE).exists() or not path.exists():
        return
    if not path.is_dir() or any(path.iterdir()):
        raise ModelError(f"{path}: already exists and is not a model; choose another place")


def _find_model(path: Path) -> Path:
    """Return the model directory itself, or that of a run: its final model, or its best so far."""
    if not path.exists():
        raise ModelError(f"{path}: no such model; give a directory that dragoman train made")
    for candidate in (path, path / "model", path / "best"):
        if (candidate / WEIGHTS_FILE).exists() and (candidate / CARD_FILE).exists():
            return candidate
    if (path / "checkpoints").is_dir():
        raise ModelError(
            f"{path}: a run without a model yet; make one with: dragoman average {path} --out DIR"
        )
    raise ModelError(f"{path}: not a model directory (no {WEIGHTS_FILE} and {CARD_FILE} in it)")


def _read_card(path: Path) -> dict[str, Any]:
    try:
        card: dict[str, Any] = json.loads((path / CARD_FILE).read_text(encoding="utf-8"))
        version = int(card["format"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"{path / CARD_FILE}: not the card of a Dragoman model") from None
    if version > FORMAT:
        raise ModelError(
            f"{path}: made by a newer Dragoman (format {version}, this one reads {FORMAT}); "
            "update Dragoman"
        )
    return card


def _render_card(card: dict[str, Any], config: Config) -> str:
    """Write the card as a page for people."""
    languages = config.data.languages
    parses = config.data.task == "parsing"
    task = "Parser" if parses else "Translator"
    title = f"{languages[0]} → {languages[1]}" if languages else task
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

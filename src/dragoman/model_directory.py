"""A model on disk is a directory that holds everything needed to use it, and nothing to unpickle.

    config.toml           every setting it was trained with; [model] says how to build it
    weights.safetensors   its tensors, by the names of the model's parameters
    int8.safetensors      the same rounded, as the CPU engine reads them
    tokenizer.model       the SentencePiece model
    tokenizer.json        the tokeniser's settings, and a fingerprint of tokenizer.model
    card.json             format, scores, corpus and licences, for programs
    README.md             the same for people

All but README.md must be there; of the two files of weights one is enough. A model that has only
``int8.safetensors`` is used like any other, and what needs PyTorch computes with the rounded
weights; it is not trained or exported. `open_model` checks the card's format, every setting and the
tokeniser; `load_model` also that the weights have the names and shapes the settings ask for.
What does not fit is refused with a ModelError that names the file. A model that passes is safe to
use whoever made it. A directory made by a newer version (a higher format) is refused; older ones
are read. `dragoman quantize` makes ``int8.safetensors``. ``shortlist.safetensors`` and
``calibration.json``, of the commands of these names, may stand beside these files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.models.int8_weights import (
    LAYOUT,
    PackedWeights,
    check_packed_weights,
    expected_shapes,
    pack_weights,
    serialize_packed,
    unpack_weights,
)
from dragoman.models.supported_settings import unsupported
from dragoman.models.weight_files import MappedSafetensors, check_shapes
from dragoman.system.atomic_files import atomic_directory, atomic_write
from dragoman.system.installed_models import describe_missing_model, find_installed_model
from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.tokenizer_kinds import load_tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from dragoman.models import Model

FORMAT = 1
"""The version of this layout; a reader refuses directories of a higher one."""
CONFIG_FILE = "config.toml"
CARD_FILE = "card.json"
WEIGHTS_FILE = "weights.safetensors"
INT8_FILE = "int8.safetensors"


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
            self._model = self._read_model()
        return self._model

    @property
    def has_only_int8(self) -> bool:
        """Return whether its only weights are rounded, so that it can be used and nothing more."""
        return (self.path / INT8_FILE).exists() and not (self.path / WEIGHTS_FILE).exists()

    @property
    def weights_file(self) -> Path:
        """Return the path of its weights: those in int8 only if there are no others."""
        return self.path / (INT8_FILE if self.has_only_int8 else WEIGHTS_FILE)

    def require_whole_weights(self, purpose: str) -> None:
        """Raise ModelError if its weights are rounded; `purpose` says what that is too little for.

        The purpose is one of words such as "exporting".
        """
        if self.has_only_int8:
            raise ModelError(
                f"{self.path}: has only int8 weights, and {purpose} needs {WEIGHTS_FILE}; give the "
                "model that dragoman quantize made it from"
            )

    def _read_model(self) -> Model:
        import torch

        from dragoman.models import build
        from dragoman.models.weights import adopt_weights, read_tensors

        with torch.device("meta"):
            model = build(self.config.model, *self.tokenizer.sizes)
        if self.has_only_int8:
            rounded = unpack_weights(read_int8_file(self), self.config.model, *self.tokenizer.sizes)
            weights = {name: torch.from_numpy(array) for name, array in rounded.items()}
        else:
            weights = read_tensors(self.weights_file)
        adopt_weights(model, weights, where=str(self.weights_file))
        return model.to(self._device).eval()


# --- int8 weights ---


def write_int8_file(loaded: LoadedModel) -> Path:
    """Write a model's int8 weights into its directory, and return the file."""
    file = loaded.path / INT8_FILE
    atomic_write(file, _serialize_int8(loaded))
    return file


def write_int8_model(loaded: LoadedModel, directory: Path) -> None:
    """Write a model directory with all that a model's has, but int8 weights alone."""
    if directory.resolve() == loaded.path.resolve():
        raise ModelError(f"{directory}: is the model itself; choose another place")
    _check_replaceable(directory)
    rounded = _serialize_int8(loaded)
    with atomic_directory(directory, replace=True) as temporary:
        for file in sorted(loaded.path.iterdir()):
            if file.is_file() and file.name not in (WEIGHTS_FILE, INT8_FILE):
                shutil.copyfile(file, temporary / file.name)
        (temporary / INT8_FILE).write_bytes(rounded)


def replace_card(loaded: LoadedModel, card: dict[str, Any], page: str) -> None:
    """Give a model of int8 weights alone another card, for programs and as a page to read.

    Its weights name the card they belong to, and are written again.
    """
    packed = {name: array.copy() for name, array in read_int8_file(loaded).items()}
    _write_card(loaded.path, card, page)
    metadata = {"layout": LAYOUT, "card": _hash_card(loaded.path)}
    atomic_write(loaded.path / INT8_FILE, serialize_packed(packed, metadata))


def _write_card(directory: Path, card: dict[str, Any], page: str) -> None:
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    (directory / CARD_FILE).write_text(text, encoding="utf-8")
    (directory / "README.md").write_text(page, encoding="utf-8")


def _serialize_int8(loaded: LoadedModel) -> bytes:
    """Return the int8 file of a model, rounded now from its weights."""
    if reason := unsupported(loaded.config.model, "cpu engine"):
        raise ConfigError(
            f"{loaded.path}: the CPU engine does not support {reason}; PyTorch runs this model"
        )
    loaded.require_whole_weights("quantising")
    metadata = {"layout": LAYOUT, "card": _hash_card(loaded.path)}
    return serialize_packed(_pack_whole_weights(loaded), metadata)


def read_packed_weights(loaded: LoadedModel) -> PackedWeights:
    """Return a model's weights as the CPU engine reads them: from its int8 file, or packed now."""
    if (loaded.path / INT8_FILE).exists():
        return read_int8_file(loaded)
    return _pack_whole_weights(loaded)


def read_int8_file(loaded: LoadedModel) -> PackedWeights:
    """Map the packed weights of an int8 file; refuse one that is damaged or of another model."""
    file = loaded.path / INT8_FILE
    try:
        if reason := unsupported(loaded.config.model, "cpu engine"):
            raise ModelError(f"{file}: of a model with {reason}, which has no int8 weights")
        mapped = MappedSafetensors(file)
        if mapped.metadata.get("layout") != LAYOUT:
            raise ModelError(f"{file}: written by another version of Dragoman")
        if mapped.metadata.get("card") != _hash_card(loaded.path):
            raise ModelError(f"{file}: does not belong to the model beside it")
        packed = mapped.map_all()
        check_packed_weights(packed, loaded.config.model, *loaded.tokenizer.sizes, where=str(file))
    except ModelError as error:
        raise ModelError(f"{error}; {_how_to_make_again(loaded)}") from None
    return packed


def _how_to_make_again(loaded: LoadedModel) -> str:
    if loaded.has_only_int8:
        return "the model has no other weights: copy it again from where it came"
    return f"make it again with: dragoman quantize {loaded.path}"


def _pack_whole_weights(loaded: LoadedModel) -> PackedWeights:
    """Pack a model's weights one after another from their file; refuse those of another model."""
    weights = MappedSafetensors(loaded.weights_file)
    vocabulary, targets = loaded.tokenizer.sizes
    wanted = expected_shapes(loaded.config.model, vocabulary)
    check_shapes(weights.shapes, wanted, where=str(loaded.weights_file))
    return pack_weights(weights, loaded.config.model, targets)


def count_weights(loaded: LoadedModel) -> int:
    """Return how many weights a model has, each shared one once, if its files fit its settings.

    PyTorch is imported only for a model that the CPU engine does not support.
    """
    if unsupported(loaded.config.model, "cpu engine"):
        return sum(parameter.numel() for parameter in loaded.model.parameters())
    wanted = expected_shapes(loaded.config.model, loaded.tokenizer.sizes[0])
    if loaded.has_only_int8:
        read_int8_file(loaded)
    else:
        found = MappedSafetensors(loaded.weights_file).shapes
        check_shapes(found, wanted, where=str(loaded.weights_file))
    return sum(map(prod, wanted.values()))


def _hash_card(directory: Path) -> str:
    return hashlib.sha256((directory / CARD_FILE).read_bytes()).hexdigest()


# --- all of it ---


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
        _write_card(temporary, card, _render_card(card, config))


def load_model(directory: Path | str, device: torch.device | str = "cpu") -> LoadedModel:
    """Read a model directory, or the model of a run directory, weights included."""
    loaded = open_model(directory, device)
    _ = loaded.model  # so that weights that do not fit are refused now
    return loaded


def open_model(directory: Path | str, device: torch.device | str = "cpu") -> LoadedModel:
    """Read a model directory as `load_model` does, but its weights only if they are needed."""
    path = find_model_directory(directory)
    config, card = read_description(path)
    return LoadedModel(None, load_tokenizer(path), config, card, path, device)


def read_description(path: Path) -> tuple[Config, dict[str, Any]]:
    """Read the settings and the card of a model directory, and nothing else that is in it."""
    card = _read_card(path)
    try:
        return Config.load(path / CONFIG_FILE), card
    except ConfigError as error:
        raise ModelError(f"{error}; {path} is not a model of this version") from None


def _check_replaceable(path: Path) -> None:
    if (path / CARD_FILE).exists() or not path.exists():
        return
    if not path.is_dir() or any(path.iterdir()):
        raise ModelError(f"{path}: already exists and is not a model; choose another place")


def find_model_directory(given: Path | str) -> Path:
    """Return a model's directory, given itself, its run, or the name of an installed model.

    Of a run it is the final model, or the best so far. A directory comes before a name.
    """
    path = Path(given)
    if not path.is_dir():
        installed = find_installed_model(str(given))
        if installed is None and not path.exists():
            raise ModelError(describe_missing_model(str(given)))
        path = installed or path
    if (found := _model_in(path)) is not None:
        return found
    if (path / "checkpoints").is_dir():
        raise ModelError(
            f"{path}: a run without a model yet; make one with: dragoman average {path} --out DIR"
        )
    raise ModelError(
        f"{path}: not a model directory, which has {CARD_FILE}, and {WEIGHTS_FILE} or {INT8_FILE}"
    )


def names_a_model(given: str) -> bool:
    """Return whether this is a directory of a model or a run, or the name of an installed model."""
    path = Path(given)
    if path.is_dir():
        return _model_in(path) is not None or (path / "checkpoints").is_dir()
    return find_installed_model(given) is not None


def _model_in(path: Path) -> Path | None:
    """Return the directory of the model that a directory, or the run in it, holds."""
    for candidate in (path, path / "model", path / "best"):
        weights = (candidate / name for name in (WEIGHTS_FILE, INT8_FILE))
        if (candidate / CARD_FILE).exists() and any(file.exists() for file in weights):
            return candidate
    return None


def read_languages(directory: Path) -> tuple[str, ...]:
    """Return the two languages of the translator in a directory, and nothing for other models.

    Nothing else of it is read or checked.
    """
    data = _read_data_settings(directory)
    try:
        languages = tuple(map(str, data["languages"]))
    except (KeyError, TypeError):
        return ()
    translates = data.get("task", "translation") == "translation"
    return languages if translates and len(languages) == 2 else ()


def is_parser(directory: Path) -> bool:
    """Return whether the model in a directory parses; nothing else of it is read or checked."""
    return _read_data_settings(directory).get("task") == "parsing"


def _read_data_settings(directory: Path) -> dict[str, Any]:
    """Return what a model's settings say of its data, and nothing where they cannot be read."""
    try:
        table = tomllib.loads((directory / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    data = table.get("data")
    return data if isinstance(data, dict) else {}


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
    if isinstance(value, list):
        return ", ".join(f"`{_cell(item)}`" for item in value)
    return f"{value:,}" if isinstance(value, int) else str(value)

"""The settings of a run are frozen dataclasses, read from TOML and ``section.key=value`` overrides.

A preset states only what differs from the defaults, and the defaults are the paper's base model.
Every field is explained by the string under it; ``docs/config.md`` is made from those strings.
An unknown key or an impossible value is refused with a suggestion, never ignored.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
import types
import typing
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, Self

from dragoman.errors import ConfigError


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _check_at_least(section: str, settings: object, minimum: float, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        _require(
            value >= minimum, f"{section}.{name} = {value} is too small; the minimum is {minimum:g}"
        )


def _check_fraction(section: str, settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        _require(
            0 <= value < 1, f"{section}.{name} = {value} must be at least 0 and below 1; try 0.1"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """These settings say how text becomes pieces of one SentencePiece model for both languages."""

    kind: Literal["bpe", "unigram"] = "bpe"
    """The algorithm: byte-pair encoding as in the paper, or a unigram language model."""
    vocabulary: int = 37_000
    """How many pieces, all special symbols and the 256 bytes of the fallback included."""
    normalization: Literal["nfc", "nfkc", "plain", "none"] = "nfc"
    """Unicode form the text is brought to; plain: NFC, and quotation marks, apostrophes and dashes
    as a keyboard has them. White space is always made single, see docs/data.md."""
    symbols: tuple[str, ...] = ()
    """Strings that are always one piece, such as tags and placeholders."""
    character_coverage: float = 0.9998
    """Share of the characters that get a piece of their own; the rest is spelt in bytes."""
    sample_sentences: int = 2_000_000
    """At most this many sentences, drawn at random, are used to learn the pieces."""

    def __post_init__(self) -> None:
        _check_at_least("tokenizer", self, 300, "vocabulary")
        _check_at_least("tokenizer", self, 1, "sample_sentences")
        _require(
            0.9 <= self.character_coverage <= 1,
            f"tokenizer.character_coverage = {self.character_coverage} must be between 0.9 and 1",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """These settings say which pairs are kept, and how sentences are laid out in batches."""

    task: Literal["translation", "parsing"] = "translation"
    """Whether the pairs are sentences and their translations, or sentences and their trees."""
    languages: tuple[str, ...] = ()
    """ISO codes of source and target; by default those that the files tell: by names such as
    corpus.en or corpus.en-de.tsv, by columns, keys or units (docs/data.md)."""
    max_length: int = 200
    """Pairs with a side of more pieces than this are dropped; translation splits longer lines."""
    max_ratio: float = 4.0
    """Pairs where one side has this many times the pieces of the other are dropped (0: keep);
    a side counts as at least 10 pieces, so that short sentences may differ more."""
    drop_duplicates: bool = True
    """Drop a pair that has occurred before, both sides alike."""
    drop_copies: bool = True
    """Drop a pair whose two sides are the same text."""
    identify_languages: tuple[str, ...] = ()
    """ISO codes of source and target; pairs identified as other languages are dropped."""
    formality: float = 0.0
    """Share of the pairs whose target addresses its reader in a known way, German or Korean, that
    get a tag before the source, so that `translate --formality` can ask for it (0: no tags; 0.5 is
    usual, so that the model also works without them)."""
    subword_sampling: float = 0.0
    """Draw another segmentation of every sentence each epoch: the merge dropout of BPE, or the
    smoothing of the unigram model's sampling (0: off; 0.1 is usual)."""
    row_length: int = 256
    """Sentences are packed into rows of at most this many positions, the side with fewer pieces
    into shorter ones; at least max_length + 1. Some room above max_length packs better."""

    def __post_init__(self) -> None:
        _check_at_least("data", self, 2, "max_length", "row_length")
        _check_at_least("data", self, 0, "max_ratio")
        _check_fraction("data", self, "subword_sampling", "formality")
        for name in ("languages", "identify_languages"):
            codes = getattr(self, name)
            _require(
                len(codes) in (0, 2),
                f'data.{name} = {list(codes)} needs two codes, source and target; try ["en", "de"]',
            )

    @property
    def target_language(self) -> str | None:
        """Return the ISO code of the target language, or None if the languages are not known."""
        return self.languages[1] if self.languages else None


@dataclass(frozen=True, kw_only=True, slots=True)
class TreesConfig:
    """These settings say how trees become sequences of actions; a translator ignores them."""

    linearization: Literal["brackets", "in-order", "bottom-up"] = "in-order"
    """A constituent is named before its children (§6.3), after the first, or after the last."""
    tags: bool = True
    """Whether tags are predicted; without them every word is tagged XX."""
    collapse_unary: bool = True
    """Take a chain of constituents with one child each as one: fewer actions, more labels."""
    announcements: int = 512
    """Symbols, beside those of tokenizer.vocabulary, by which each word is announced to the
    decoder, so that it need not count them; 0: none, as in §6.3."""

    def __post_init__(self) -> None:
        _check_at_least("trees", self, 0, "announcements")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """These settings make the model, by default the paper's base Transformer (§3, Table 3)."""

    architecture: Literal[
        "transformer", "feed-forward", "recurrent", "gnmt", "convs2s", "bytenet"
    ] = "transformer"
    """Which model: the Transformer, or one of those that came before it."""
    encoder_layers: int = 6
    """N of the encoder."""
    decoder_layers: int = 6
    """N of the decoder."""
    d_model: int = 512
    """Width of the residual stream and of the embeddings."""
    d_ff: int = 2048
    """Inner width of the position-wise feed-forward layers."""
    heads: int = 8
    """h, the number of attention heads."""
    d_k: int = 0
    """Width of a head's queries and keys (0: d_model / heads)."""
    d_v: int = 0
    """Width of a head's values (0: d_model / heads)."""
    dropout: float = 0.1
    """Dropout on each sub-layer's output and on the sums of embeddings and positions (§5.4)."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights; not in the paper's text."""
    activation_dropout: float = 0.0
    """Dropout on the inner activations of the feed-forward layers; not in the paper's text."""
    positions: Literal["sinusoidal", "learned", "rotary", "relative"] = "sinusoidal"
    """How the model knows the order: the paper's sinusoids, learned vectors (Table 3 row E),
    rotated queries and keys, or a learned bias for each distance and head."""
    max_positions: int = 1024
    """How many positions learned vectors exist for; the others need no limit."""
    max_distance: int = 16
    """Relative positions: distances beyond this share one bias."""
    norm: Literal["post", "pre"] = "post"
    """LayerNorm(x + Sublayer(x)) as in the paper, or x + Sublayer(LayerNorm(x))."""
    norm_kind: Literal["layer", "rms"] = "layer"
    """LayerNorm, or RMSNorm without mean and bias."""
    norm_epsilon: float = 1e-6
    """Added to the variance before the square root."""
    activation: Literal["relu", "gelu", "swish", "swiglu"] = "relu"
    """The activation function of the feed-forward layers."""
    window: int = 0
    """Restricted self-attention (§4): a position sees this many on each side (0: all)."""
    experts: int = 0
    """Feed-forward layers of which each position takes `experts_used` (0: one for all)."""
    experts_used: int = 2
    """Experts that each position takes, chosen by a learned gate."""
    cell: Literal["rnn", "lstm", "gru"] = "lstm"
    """Recurrent models: tanh units, LSTM or GRU."""
    source_attention: Literal["none", "dot", "additive"] = "none"
    """Recurrent models: the source as one fixed vector, or attention to all of it, scored by the
    product s·h or by a small network v·tanh(Ws + Uh)."""
    kernel: int = 3
    """Convolutional models: positions a convolution sees; odd."""
    shared_embeddings: bool = True
    """One matrix for source, target and the pre-softmax projection (§3.4); false: three."""
    attention_bias: bool = False
    """Transformers: biases of queries, keys, values and their output, as Marian has them."""
    output_bias: bool = False
    """Transformers: a number for each piece, added to its score, as Marian has it."""

    def __post_init__(self) -> None:
        _check_at_least(
            "model", self, 1, "encoder_layers", "decoder_layers", "d_model", "d_ff", "heads"
        )
        _check_at_least("model", self, 0, "d_k", "d_v", "window", "experts")
        _check_at_least("model", self, 1, "experts_used", "kernel")
        _require(
            self.experts == 0 or self.experts_used <= self.experts,
            f"model.experts_used = {self.experts_used} is more than model.experts = "
            f"{self.experts}; try {min(2, self.experts)}",
        )
        _require(
            self.kernel % 2 == 1,
            f"model.kernel = {self.kernel} must be odd; try {self.kernel + 1}",
        )
        _check_at_least("model", self, 1, "max_positions", "max_distance")
        _require(
            self.norm_epsilon > 0,
            f"model.norm_epsilon = {self.norm_epsilon} must be above 0; try 1e-6",
        )
        _check_fraction("model", self, "dropout", "attention_dropout", "activation_dropout")
        for name in ("d_k", "d_v"):
            if getattr(self, name) == 0:
                _require(
                    self.d_model % self.heads == 0,
                    f"model.heads = {self.heads} does not divide model.d_model = {self.d_model}; "
                    f"try {_nearest_divisor(self.d_model, self.heads)}, or set model.{name}",
                )
                object.__setattr__(self, name, self.d_model // self.heads)
        _require(
            self.d_model % 2 == 0 or self.positions != "sinusoidal",
            f"model.d_model = {self.d_model} must be even for sinusoidal positions",
        )
        _require(
            self.d_k % 2 == 0 or self.positions != "rotary",
            f"model.d_k = {self.d_k} must be even for rotary positions",
        )


def _nearest_divisor(number: int, wanted: int) -> int:
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    return min(divisors, key=lambda d: (abs(d - wanted), -d))


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """These settings choose the optimiser, the schedule, and what is written when (§5)."""

    steps: int = 100_000
    """Optimiser steps; the run may end earlier by `patience` or `minutes`."""
    minutes: float = 0.0
    """Stop after this many minutes of training, resumed time included (0: no limit)."""
    batch_tokens: int | Literal["auto"] = 25_344
    """Positions of a step's batch on each side, padding included, over all devices; auto: as many
    as fit in 90% of the GPUs' memory, found out before the first step; 4096 on a CPU. The default
    is the paper's 25,000, rounded to 99 rows of 256, which fill a GPU of 132 multiprocessors."""
    accumulate: int = 1
    """Slices a step's batch is computed in; more slices need less memory, same result."""
    optimizer: Literal["adam", "muon"] = "adam"
    """Adam (AdamW when `weight_decay` is not 0), or Muon, which makes the momentum of the linear
    layers' matrices orthogonal and leaves the rest to Adam; takes Adam's learning rates."""
    beta1: float = 0.9
    """Decay of Adam's first moment."""
    beta2: float = 0.98
    """Decay of Adam's second moment."""
    epsilon: float = 1e-9
    """Adam's ε."""
    weight_decay: float = 0.0
    """Decoupled weight decay of the matrices."""
    schedule: Literal["paper", "inverse-sqrt", "cosine", "linear", "constant"] = "paper"
    """The paper's (eq. 3), or one that warms up to `learning_rate` and then falls with the square
    root of the step, along a cosine to a tenth at `steps`, on a line to 0 at `steps`, or stays."""
    learning_rate: float = 1.0
    """Factor of the paper's schedule; the peak of the others."""
    warmup_steps: int = 4000
    """Steps over which the learning rate rises."""
    label_smoothing: float = 0.1
    """ε_ls (§5.4)."""
    clip_norm: float = 0.0
    """Largest norm of the gradient (0: not clipped, as in the paper)."""
    r_drop: float = 0.0
    """Weight of the divergence between two passes with different dropout (0: one pass)."""
    ema: float = 0.0
    """Decay of a moving average of the weights, used to validate and as the result (0: none)."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """bf16 arithmetic with fp32 weights; auto: bf16 on a GPU that has it, fp32 elsewhere."""
    validate_every: int = 1000
    """Steps between validations."""
    validate_sentences: int = 2000
    """At most this many validation sentences are translated for BLEU, or parsed for F1
    (0: loss only)."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""
    keep_checkpoints: int = 5
    """Checkpoints kept besides the best one."""
    average: int = 5
    """The final model is the average of this many last checkpoints (§6.1); 1: the last one."""
    patience: int = 0
    """Stop after this many validations without a better score (0: never)."""
    patience_metric: Literal["score", "loss"] = "score"
    """What `patience` and the best checkpoint are judged by: BLEU (a parser: F1) or the loss."""
    log_every: int = 50
    """Steps between lines of metrics.jsonl."""
    seed: int = 1
    """Seed of initialisation, data order, dropout and sampling."""
    threads: int = 0
    """CPU threads of arithmetic (0: as many as cores); the number changes the last bits."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto: on the GPU if there is one."""
    sharding: Literal["auto", "none", "full"] = "auto"
    """Whether each rank keeps all weights, moments and gradients, or a share of them (full: FSDP2);
    auto: a share if all would fill more than 60% of a GPU's memory."""
    timeout_seconds: float = 600.0
    """If a rank gives no sign of life for this long, or keeps the others waiting for this long, all
    ranks stop and report which one it was."""
    spike: float = 10.0
    """A step is skipped if its loss is this many times the recent mean, or not finite."""
    max_bad_steps: int = 5
    """Steps in a row that are skipped before the run stops."""
    deterministic: bool = False
    """Only kernels that give the same bits every time; matters on a GPU, where it costs a little
    speed and makes a resumed run equal an uninterrupted one bit for bit."""

    @property
    def tokens(self) -> int:
        """Return `batch_tokens` as a number, also where the memory that fits is not known yet."""
        return 4096 if self.batch_tokens == "auto" else self.batch_tokens

    def __post_init__(self) -> None:
        _check_at_least(
            "training", self, 1, "steps", "accumulate", "warmup_steps", "timeout_seconds"
        )
        if self.batch_tokens != "auto":
            _check_at_least("training", self, 1, "batch_tokens")
        _check_at_least(
            "training", self, 1, "validate_every", "checkpoint_every", "keep_checkpoints"
        )
        _check_at_least("training", self, 1, "average", "log_every", "max_bad_steps")
        _check_at_least(
            "training", self, 0, "minutes", "weight_decay", "clip_norm", "r_drop", "patience"
        )
        _check_at_least("training", self, 0, "validate_sentences", "threads", "seed")
        _require(self.spike > 1, f"training.spike = {self.spike} must be above 1; try 10")
        _check_fraction("training", self, "beta1", "beta2", "label_smoothing", "ema")
        _require(
            self.learning_rate > 0,
            f"training.learning_rate = {self.learning_rate} must be above 0",
        )
        _require(self.epsilon > 0, f"training.epsilon = {self.epsilon} must be above 0; try 1e-9")
        _require(
            self.average <= self.keep_checkpoints,
            f"training.average = {self.average} is more than training.keep_checkpoints = "
            f"{self.keep_checkpoints}; keep as many",
        )
        _require(
            self.schedule == "paper" or self.learning_rate <= 0.1,
            f"training.learning_rate = {self.learning_rate} is the peak of the {self.schedule} "
            "schedule and far too large; try 0.0007",
        )
        _require(
            self.patience_metric == "loss" or self.patience == 0 or self.validate_sentences > 0,
            "training.patience is judged by the score, but training.validate_sentences = 0; "
            'try training.patience_metric="loss"',
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig:
    """These settings say how a translation is found (§6.1)."""

    beam: int = 4
    """Hypotheses kept at each step; 1 is greedy."""
    length_penalty: float = 0.6
    """α of GNMT's ((5 + |Y|) / 6)^α."""
    max_extra: int = 50
    """A translation has at most this many pieces more than its source."""
    min_length: int = 0
    """A translation has at least this many pieces."""
    batch_tokens: int = 4096
    """Source positions translated at a time."""

    def __post_init__(self) -> None:
        _check_at_least("search", self, 1, "beam", "batch_tokens")
        _check_at_least("search", self, 0, "length_penalty", "max_extra", "min_length")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Hold everything that determines a run, section by section."""

    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    trees: TreesConfig = field(default_factory=TreesConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        _require(
            self.data.row_length > self.data.max_length,
            f"data.row_length = {self.data.row_length} cannot hold a sentence of data.max_length = "
            f"{self.data.max_length} and its end mark; try {self.data.max_length + 1}",
        )
        _require(
            self.training.batch_tokens == "auto"
            or self.training.batch_tokens >= self.data.row_length * self.training.accumulate,
            f"training.batch_tokens = {self.training.batch_tokens} is less than "
            f"training.accumulate = {self.training.accumulate} rows of data.row_length = "
            f"{self.data.row_length}; try {self.data.row_length * self.training.accumulate}",
        )
        _require(
            self.model.positions != "learned" or self.model.max_positions >= self.data.row_length,
            f"model.max_positions = {self.model.max_positions} is less than data.row_length = "
            f"{self.data.row_length}; learned positions need at least that many",
        )

    @classmethod
    def from_dict(cls, tables: dict[str, Any], *, where: str = "config") -> Self:
        """Build from nested tables, refusing unknown sections, keys and types."""
        return cls().updated(tables, where=where)

    def updated(self, tables: dict[str, Any], *, where: str = "config") -> Self:
        """Return these settings with those in `tables` put in their place."""
        sections = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name, table in tables.items():
            if name not in sections:
                raise ConfigError(
                    f"{where}: there is no section '{name}'{_suggest(name, sections)}"
                )
            if not isinstance(table, dict):
                raise ConfigError(f"{where}: '{name}' is a section; write [{name}] and its keys")
            sections[name] = _replace(sections[name], name, table, where)
        return type(self)(**sections)

    def overridden(self, assignments: typing.Iterable[str]) -> Self:
        """Return these settings after ``section.key=value`` strings; values are TOML or a word."""
        return self.updated(parse_assignments(assignments), where="--set")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a TOML file."""
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such file") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{path}: not a readable TOML file ({error})") from None
        tables.pop("paper", None)  # a copy of a preset is a config
        training = tables.get("training")
        if isinstance(training, dict) and training.get("patience_metric") == "bleu":
            training["patience_metric"] = "score"  # its name before there were parsers
        return cls.from_dict(tables, where=str(path))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return every setting, resolved, as nested tables."""
        return dataclasses.asdict(self)

    def to_toml(self) -> str:
        """Return every setting, resolved, as TOML."""
        lines: list[str] = []
        for name, table in self.to_dict().items():
            lines += [
                f"[{name}]",
                *(f"{key} = {write_value(value)}" for key, value in table.items()),
                "",
            ]
        return "\n".join(lines)


def write_value(value: object) -> str:
    """Return a setting's value as TOML."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(write_value(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # not in TOML
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def parse_assignments(assignments: typing.Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return ``section.key=value`` strings as nested tables; values are TOML or a word."""
    tables: dict[str, dict[str, Any]] = {}
    for text in assignments:
        path, equals, value = text.partition("=")
        section, dot, key = path.strip().partition(".")
        if not equals or not dot:
            raise ConfigError(f"--set {text}: write section.key=value, as in training.steps=1000")
        tables.setdefault(section, {})[key] = _parse_value(value.strip())
    return tables


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a plain word: --set model.norm=pre


def _suggest(name: str, known: typing.Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; choose from: {', '.join(known)}"


def _replace(settings: Any, section: str, table: dict[str, Any], where: str) -> Any:
    hints = typing.get_type_hints(type(settings))
    changes = {}
    for key, value in table.items():
        if key not in hints:
            raise ConfigError(
                f"{where}: there is no setting '{section}.{key}'{_suggest(key, hints)}"
            )
        changes[key] = _coerce(value, hints[key], f"{where}: {section}.{key}")
    # d_k and d_v follow d_model / heads unless they are set too.
    if section == "model" and changes.keys() & {"d_model", "heads"}:
        for key in ("d_k", "d_v"):
            if getattr(settings, key) == settings.d_model // settings.heads:
                changes.setdefault(key, 0)
    return dataclasses.replace(settings, **changes)


def _coerce(value: Any, hint: Any, where: str) -> Any:
    """Return the value as the field's type; TOML's integers may stand where a float is meant."""
    origin = typing.get_origin(hint)
    if origin is typing.Union:  # a number, or a word in its place
        number, words = typing.get_args(hint)
        if isinstance(value, str) and value not in typing.get_args(words):
            (word,) = typing.get_args(words)
            raise ConfigError(f"{where} = {value!r} must be a whole number, or {word}")
        return value if isinstance(value, str) else _coerce(value, number, where)
    if origin is Literal:
        choices = [str(choice) for choice in typing.get_args(hint)]
        if value in typing.get_args(hint):
            return value
        raise ConfigError(f"{where} = {value!r} is not allowed{_suggest(str(value), choices)}")
    if origin is tuple:
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise ConfigError(f'{where} = {value!r} must be a list of strings, as in ["a", "b"]')
    wanted: type = hint if not isinstance(hint, types.UnionType) else object
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if wanted is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    right_type = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    if not right_type or (isinstance(value, float) and not math.isfinite(value)):
        kind = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        raise ConfigError(f"{where} = {value!r} must be {kind.get(wanted, wanted.__name__)}")
    return value


def _presets() -> Traversable:
    return resources.files("dragoman") / "presets"


def preset_names() -> list[str]:
    """Return the name of every preset that ships with Dragoman, the paper's first."""
    names = sorted(
        item.name.removesuffix(".toml")
        for item in _presets().iterdir()
        if item.name.endswith(".toml")
    )
    first = [name for name in ("base", "big") if name in names]
    return first + [name for name in names if name not in first]


def _preset_text(name: str) -> str:
    names = preset_names()
    if name not in names:
        raise ConfigError(f"there is no preset '{name}'{_suggest(name, names)}")
    return (_presets() / f"{name}.toml").read_text(encoding="utf-8")


def preset_title(name: str) -> str:
    """Return the first comment of a preset, which says what it is in one line."""
    return _preset_text(name).splitlines()[0].removeprefix("#").strip()


def preset_paper_figures(name: str) -> dict[str, float]:
    """Return what the paper prints for a model: parameters in millions, perplexity, BLEU."""
    figures: dict[str, float] = tomllib.loads(_preset_text(name)).get("paper", {})
    return figures


def preset_parameters() -> dict[str, int]:
    """Return how many weights a model of each preset has, by its name.

    They are counted when a preset is added, since counting takes PyTorch and seconds.
    """
    text = (_presets() / "parameters.json").read_text(encoding="utf-8")
    counts: dict[str, int] = json.loads(text)
    return counts


def load_preset(name: str) -> Config:
    """Read a preset by its name, or any TOML file by its path."""
    if name.endswith(".toml"):
        return Config.load(Path(name))
    tables = tomllib.loads(_preset_text(name))
    tables.pop("paper", None)
    return Config.from_dict(tables, where=f"preset {name}")


class PresetAdvice(typing.NamedTuple):
    """Say for how many sentence pairs a preset is made."""

    name: str
    least: int
    most: int | None

    @property
    def pairs(self) -> str:
        """Return the numbers of pairs for people."""
        if self.most is None:
            return f"more than {self.least:,} pairs"
        return f"{self.least:,} to {self.most:,} pairs"


PRESET_ADVICE: typing.Final = (
    PresetAdvice("tiny", 5_000, 100_000),
    PresetAdvice("small", 100_000, 1_000_000),
    PresetAdvice("base", 1_000_000, None),
)
"""Which preset suits which corpus, smaller ones first; README's table says the same."""


def advise_preset(pairs: int) -> PresetAdvice:
    """Return the preset to train a translator with on so many sentence pairs."""
    return next(one for one in PRESET_ADVICE if one.most is None or pairs <= one.most)

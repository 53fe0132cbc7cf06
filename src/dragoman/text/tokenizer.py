"""The tokeniser turns text to ids and back, with SentencePiece inside.

It normalises before it encodes, knows every byte, and hence never loses anything:
``decode(encode(text)) == normalize(text)`` whatever the text. There are two other kinds: see
`dragoman.text.pair_tokenizer` and `dragoman.trees.tree_tokenizer`, where `load_tokenizer` reads a
tokeniser of any kind.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import random
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast, get_args

import sentencepiece

from dragoman.config import TokenizerConfig
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.messages import counted
from dragoman.system.atomic_files import atomic_write
from dragoman.text.normalization import SPACE_MARK, Form, collapse_spaces, normalize
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

Kind = Literal["bpe", "unigram"]

MODEL_FILE = "tokenizer.model"
SETTINGS_FILE = "tokenizer.json"
_FORMAT = 1

# SentencePiece leaves out lines of more than 4192 bytes; we give it the beginning of such a line.
_LONGEST_TRAINING_TEXT = 1000

LEAST_VOCABULARY = 300
"""The smallest that TokenizerConfig allows: special symbols, bytes, and a few characters."""
_REMEMBERED_WORDS = 200_000
_LONGEST_REMEMBERED_WORD = 32


class VocabularyTooLargeError(ConfigError):
    """Raised when a corpus does not have as many different pieces as are to be learned."""

    def __init__(self, message: str, *, largest: int) -> None:
        super().__init__(message)
        self.largest = largest
        """The largest vocabulary that the corpus allows."""


class Tokenizer:
    """Hold a vocabulary of pieces, and cut text into them."""

    settings_key: ClassVar[str | None] = None
    """Under this key ``tokenizer.json`` holds what a tokeniser of this kind adds, if anything."""
    targets_are_text: ClassVar[bool] = True
    """Whether targets are cut into pieces like sources; a parser's are made of actions."""

    def __init__(self, model: bytes, *, kind: Kind, normalization: Form) -> None:
        self.kind: Kind = kind
        self.normalization: Form = normalization
        self.model = model
        self._words: dict[str, list[int]] = {}
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise ModelError("not a SentencePiece model; train the tokeniser again") from None
        ids = [self._processor.PieceToId(f"<0x{byte:02X}>") for byte in range(256)]
        special = (self._processor.pad_id(), self._processor.bos_id(), self._processor.eos_id())
        if special != (PAD, BOS, EOS) or not all(map(self._processor.IsByte, ids)):
            raise ModelError("a SentencePiece model not made by Dragoman; train one with Dragoman")

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        config: TokenizerConfig,
        *,
        additional: int = 0,
        tags: Sequence[str] = (),
        threads: int = 2,
    ) -> Tokenizer:
        """Learn `config.vocabulary` pieces and `additional` ones from sentences of both languages.

        The `tags` are pieces that no text is ever encoded to, and that are decoded to nothing.
        The sentences are read once, and memory holds at most `config.sample_sentences` of them.
        The same sentences, settings and number of threads give the same tokeniser. Of a very long
        line the beginning is used.
        """
        _check_symbols(config)
        if taken := sorted(set(tags) & set(config.symbols)):
            raise ConfigError(f"tokenizer.symbols: {taken[0]!r} is taken by a tag; leave it out")
        # SentencePiece can sample too, but draws otherwise in every process.
        sample = _sample(_training_texts(sentences, config.normalization), config.sample_sentences)
        count = len(sample)
        model = io.BytesIO()
        options: dict[str, Any] = {
            "model_type": config.kind,
            "vocab_size": config.vocabulary + additional,
            "character_coverage": config.character_coverage,
            "user_defined_symbols": list(config.symbols),
            "control_symbols": list(tags),
            "shuffle_input_sentence": False,
            "byte_fallback": True,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "pad_id": PAD,
            "bos_id": BOS,
            "eos_id": EOS,
            "unk_id": UNK,
            "num_threads": threads,
            "minloglevel": 3,
        }

        def learn() -> None:
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=_drain(sample), model_writer=model, **options
            )

        try:
            _run_interruptibly(learn)
        except RuntimeError as error:
            raise _explain_failure(str(error), config, count, additional) from None
        return cls(model.getvalue(), kind=config.kind, normalization=config.normalization)

    def save(self, directory: Path) -> None:
        """Write ``tokenizer.model`` and ``tokenizer.json``."""
        settings: dict[str, Any] = {
            "format": _FORMAT,
            "kind": self.kind,
            "normalization": self.normalization,
            "fingerprint": self.fingerprint,
        }
        if self.settings_key is not None:
            settings[self.settings_key] = self._additional_settings
        atomic_write(directory / MODEL_FILE, self.model)
        atomic_write(directory / SETTINGS_FILE, json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read what `save` wrote; a file that is missing, foreign or changed is refused."""
        settings = read_tokenizer_settings(directory)
        model = _read(directory, MODEL_FILE)
        kind, form = settings.get("kind"), settings.get("normalization")
        if kind not in ("bpe", "unigram") or form not in get_args(Form):
            raise ModelError(
                f"{directory / SETTINGS_FILE}: kind {kind!r} or normalization {form!r} is unknown"
            )
        additional = settings.get(cls.settings_key) if cls.settings_key else None
        if settings.get("fingerprint") != _fingerprint(model, kind, str(form), additional):
            raise ModelError(
                f"{directory / MODEL_FILE}: truncated, or not the one {SETTINGS_FILE} was written "
                "for; copy the directory again"
            )
        try:
            return cls._build(model, kind, cast(Form, form), additional)
        except ModelError as error:
            raise ModelError(f"{directory / MODEL_FILE}: {error}") from None

    @classmethod
    def _build(
        cls, model: bytes, kind: Kind, normalization: Form, additional: dict[str, Any] | None
    ) -> Self:
        settings = {cls.settings_key: additional} if cls.settings_key else {}
        return cls(model, kind=kind, normalization=normalization, **settings)

    @property
    def _additional_settings(self) -> dict[str, Any] | None:
        """Return what `settings_key` holds, as JSON can."""
        return None

    def __len__(self) -> int:
        return int(self._processor.GetPieceSize())

    # --- the target side, where that is not text like the source ---

    @property
    def sizes(self) -> tuple[int, int]:
        """Return how many ids there are, and how many of them, from 0 on, targets may have."""
        return len(self), len(self)

    @property
    def longest_target(self) -> int:
        """Return the most characters that one id of a target can stand for."""
        return self.longest_piece

    def normalize_target(self, text: str) -> str:
        """Return a target as this tokeniser sees it."""
        return self.normalize(text)

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of targets that have been through `normalize_target`."""
        return self.encode_normalized(texts)

    def decode_target(self, ids: Sequence[int], source: str) -> str:
        """Return the text of a target's ids; `source` is what they were made of."""
        return self.decode(ids)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.model, self.kind, self.normalization, self._additional_settings
        return type(self)._build, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash that is equal for tokenisers that do the same, and only for those."""
        settings = self._additional_settings
        return _fingerprint(self.model, self.kind, self.normalization, settings)

    @cached_property
    def longest_piece(self) -> int:
        """Return the length of the longest piece in characters.

        A text has at least its own length divided by this many pieces.
        """
        return max(
            len(surface.decode("utf-8", "replace"))
            for surface in map(self._surfaces.__getitem__, range(len(self)))
        )

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """Return the ids that spell a byte of a character without a piece of its own."""
        return frozenset(filter(self._processor.IsByte, range(len(self))))

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Return the ids of the learned pieces, which come after special symbols and bytes."""
        return {self._processor.IdToPiece(i): i for i in range(max(self.byte_ids) + 1, len(self))}

    @cached_property
    def scores(self) -> list[float]:
        """Return a score for each id: BPE's order of merges, or a unigram's log-probability."""
        return [self._processor.GetScore(i) for i in range(len(self))]

    @cached_property
    def symbols(self) -> list[str]:
        """Return what the user wants as one piece, as `vocabulary` would have it."""
        taken = {PAD, UNK, BOS, EOS, *self.byte_ids}
        taken.update(self.tags.values())
        first = max(self.byte_ids) + 1
        return [self._processor.IdToPiece(i) for i in range(first) if i not in taken]

    @cached_property
    def tags(self) -> dict[str, int]:
        """Return the ids of the tags that may stand before a source, which no text contains."""
        first = min(self.byte_ids)
        marks = [i for i in range(first) if self._processor.IsControl(i)]
        return {self._processor.IdToPiece(i): i for i in marks if i not in (PAD, BOS, EOS)}

    def best_segmentations(self, text: str, count: int) -> list[list[int]]:
        """Return a unigram model's likeliest ways to cut a normalised text, best first."""
        ids: list[list[int]] = self._processor.NBestEncodeAsIds(text, count)
        return ids

    def normalize(self, text: str) -> str:
        """Return the text as this tokeniser sees it."""
        return normalize(text, self.normalization)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end marks."""
        ids: list[int] = self._processor.Encode(self.normalize(text), out_type=int)
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of several texts."""
        return self.encode_normalized([self.normalize(text) for text in texts])

    def encode_normalized(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts that have been through `normalize`."""
        if self.kind == "bpe":
            return self._encode_by_words(texts)
        return self._encode_directly(list(texts))

    def _encode_by_words(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each different word once: no piece of BPE reaches from one into the next.

        This is more than twice as fast on running text. The unigram model's sums are rounded over
        the whole text, so that its words could come out otherwise; and it is fast by itself.
        """
        lines = [text.split(" ") for text in texts]
        # Of this call alone: another thread may forget words meanwhile.
        known = {word: self._words.get(word) for line in lines for word in line}
        new = [word for word, ids in known.items() if ids is None]
        found = dict(zip(new, self._encode_directly(new), strict=True))
        known.update(found)
        if len(self._words) > _REMEMBERED_WORDS:
            self._words.clear()
        short = {w: ids for w, ids in found.items() if len(w) <= _LONGEST_REMEMBERED_WORD}
        self._words.update(short)
        return [list(chain.from_iterable(known[word] or () for word in line)) for line in lines]

    def _encode_directly(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self._processor.Encode(texts, out_type=int, num_threads=1)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of any ids as one line; marks are skipped, broken bytes become U+FFFD."""
        surfaces, size = self._surfaces, len(self)
        data = b"".join([surfaces[i] for i in ids if 0 <= i < size])
        return collapse_spaces(data.decode("utf-8", "replace"))

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Return the texts of several sequences of ids."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces as SentencePiece spells them: ▁ is a space, <0x41> a byte."""
        size = len(self)
        return [
            self._processor.IdToPiece(int(i)) if 0 <= i < size else self._processor.IdToPiece(UNK)
            for i in ids
        ]

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        """Return for each id which word of ``decode(ids).split()`` it belongs to.

        A piece that is only a space, or a byte of an unfinished character, belongs to the word it
        leads to. Ids that say nothing (begin, end, padding) belong to none: -1.
        """
        size = len(self)
        surfaces = [self._surfaces[i] if 0 <= i < size else b"" for i in ids]
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        starts: list[int] = []  # for each id, how many characters there were before it
        text = ""
        for surface in surfaces:
            if surface and not 0x80 <= surface[0] < 0xC0:  # no continuation of what came before
                text += decoder.decode(b"", final=True)
            starts.append(len(text))
            text += decoder.decode(surface)
        text += decoder.decode(b"", final=True)
        word_of = _word_of_each_character(text)
        return [
            word_of[start] if surface else -1
            for surface, start in zip(surfaces, starts, strict=True)
        ]

    @cached_property
    def _surfaces(self) -> dict[int, bytes]:
        """Return what each id stands for, as bytes."""
        return _Surfaces(self._processor)


class _Surfaces(dict[int, bytes]):
    """Find out what an id stands for when it is first asked for: a sentence has few of all."""

    def __init__(self, processor: Any) -> None:
        super().__init__()
        self._processor = processor

    def __missing__(self, id_: int) -> bytes:
        piece = self._processor.IdToPiece(int(id_))
        if self._processor.IsByte(int(id_)):
            surface = bytes([int(piece[3:5], 16)])
        elif self._processor.IsControl(int(id_)):
            surface = b""
        elif self._processor.IsUnknown(int(id_)):
            surface = " \u2047 ".encode()
        else:
            surface = piece.replace(SPACE_MARK, " ").encode()
        self[id_] = surface
        return surface


def read_tokenizer_settings(directory: Path) -> dict[str, Any]:
    """Return the content of ``tokenizer.json``; refuse one that is missing, foreign or newer."""
    place = directory / SETTINGS_FILE
    try:
        settings = json.loads(_read(directory, SETTINGS_FILE))
    except ValueError:
        raise ModelError(f"{place}: not a tokeniser's settings") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("format"), int):
        raise ModelError(f"{place}: not a tokeniser's settings")
    if settings["format"] > _FORMAT:
        raise ModelError(
            f"{place}: written by a newer Dragoman (format {settings['format']}, this one reads "
            f"{_FORMAT}); update Dragoman"
        )
    return settings


def _read(directory: Path, name: str) -> bytes:
    try:
        return (directory / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(
            f"{error.filename}: no such file; {directory} lacks its tokeniser"
        ) from None
    except OSError as error:
        raise ModelError(f"{error.filename}: cannot be read ({error.strerror})") from None


def _fingerprint(model: bytes, kind: str, form: str, additional: dict[str, Any] | None) -> str:
    rest = "" if additional is None else json.dumps(additional)
    return hashlib.sha256(f"{kind} {form} {rest}".encode() + model).hexdigest()[:32]


def _training_texts(sentences: Iterable[str], form: Form) -> Iterator[str]:
    """Normalise the sentences, leave out empty ones, and of a very long one keep the beginning."""
    for sentence in sentences:
        text = normalize(sentence[: 2 * _LONGEST_TRAINING_TEXT], form)
        if len(text) > _LONGEST_TRAINING_TEXT:
            text = text[:_LONGEST_TRAINING_TEXT]
            text = text.rpartition(" ")[0] or text
        if text:
            yield text


def _sample(texts: Iterable[str], size: int) -> deque[str]:
    """Draw at most `size` of the texts, each with the same chance, and always the same ones."""
    sample: list[str] = []
    draw = random.Random(0).random
    for count, text in enumerate(texts, 1):
        if count <= size:
            sample.append(text)
        elif (place := int(draw() * count)) < size:
            sample[place] = text
    return deque(sample)


def _drain(sample: deque[str]) -> Iterator[str]:
    while sample:  # SentencePiece keeps a copy, so ours need not stay in memory
        yield sample.popleft()


def _run_interruptibly(work: Callable[[], None]) -> None:
    """Run `work` in a thread, so that Ctrl-C is heard while SentencePiece computes."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _word_of_each_character(text: str) -> list[int]:
    """Return the word a character belongs to or comes before; after the last word, that one."""
    words: list[int] = []
    number, inside = -1, False
    for character in text:
        if collapse_spaces(character):
            number += not inside
            inside = True
        elif character.isspace():
            inside = False
        words.append(number if inside else number + 1)
    return [min(word, number) for word in [*words, number]]


def _check_symbols(config: TokenizerConfig) -> None:
    for symbol in config.symbols:
        if not symbol or " " in symbol or normalize(symbol, config.normalization) != symbol:
            raise ConfigError(
                f"tokenizer.symbols: {symbol!r} can never occur in a normalised text as one "
                "piece; leave out white space and unusual characters"
            )
        if re.fullmatch(r"<(pad|s|/s|unk|0x[0-9A-F]{2})>", symbol):
            raise ConfigError(f"tokenizer.symbols: {symbol!r} is taken; choose another")
    if len(set(config.symbols)) < len(config.symbols):
        raise ConfigError("tokenizer.symbols: a symbol is listed twice; list each once")


def _explain_failure(
    message: str, config: TokenizerConfig, count: int, additional: int
) -> ConfigError | DataError:
    """Return the error that tells a user what SentencePiece's message means for the settings."""
    if count == 0:
        return DataError("there is no text to learn the pieces from; every line is empty")
    if found := re.search(r"Vocabulary size too high .*value <= (\d+)", message):
        most = int(found[1]) - additional
        if most < LEAST_VOCABULARY:
            return DataError(
                f"{counted(count, 'line')} of text: too little to learn pieces from; add more"
            )
        return VocabularyTooLargeError(
            f"tokenizer.vocabulary = {config.vocabulary} is too large for "
            f"{counted(count, 'line')} of text; set tokenizer.vocabulary={most} or less",
            largest=most,
        )
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return ConfigError(
            f"tokenizer.vocabulary = {config.vocabulary} is too small for the characters of this "
            f"corpus; set tokenizer.vocabulary={int(found[1]) - additional} or more, or a smaller "
            "tokenizer.character_coverage"
        )
    return ConfigError(f"the tokeniser cannot be trained ({message.strip()}); change [tokenizer]")

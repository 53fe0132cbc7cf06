"""Text that a model cannot be adapted to is refused before anything is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from dragoman.config import Config
from dragoman.data.readers.parallel import Corpus
from dragoman.errors import ConfigError, DataError
from dragoman.model_directory import LoadedModel
from dragoman.text.languages import language_name, same_language
from dragoman.text.special_tokens import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.wrong_language import find_other_language

_LOOKED_AT: Final = 20_000
"""So many pairs are looked at to know what their characters are."""
_JUDGED: Final = 60
"""So many texts, spread over those, are judged together to know their language."""
_UNKNOWN_LIMIT: Final = 0.05
"""Where a larger share of the characters than this has no piece, the model cannot learn the text"""
_SHOWN: Final = 12


def check_task(model: LoadedModel, files: Sequence[Path]) -> None:
    """Raise ConfigError if the model does not translate."""
    if model.config.data.task != "translation":
        raise ConfigError(
            f"{model.path}: a parser, and {' '.join(map(str, files))} would be read as sentences "
            "and their translations; give a translator, or trees with --task parsing"
        )


def check_languages(model: LoadedModel, languages: Sequence[str], files: Sequence[Path]) -> None:
    """Raise ConfigError if the files are said to be of other languages than the model's."""
    own = model.config.data.languages
    if not own or not languages or all(map(same_language, own, languages)):
        return
    names = " ".join(map(str, files))
    turned = all(map(same_language, own, reversed(languages)))
    advice = "give the files in the other order" if turned else "give another model, or other files"
    raise ConfigError(
        f"{model.path}: translates from {language_name(own[0])} to {language_name(own[1])}, but "
        f"{names} {'are' if len(files) > 1 else 'is'} {language_name(languages[0])} and "
        f"{language_name(languages[1])}; {advice}"
    )


def check_text(
    model: LoadedModel, corpus: Corpus, config: Config, tell: Callable[[str], None]
) -> int:
    """Refuse pairs in other languages than the model's, or in characters that it has no pieces for.

    Some characters without pieces are told only. Return how many different sources were seen.
    """
    pairs = list(islice(corpus, _LOOKED_AT))
    if not pairs:
        raise DataError(f"{corpus.name}: contains no pairs")
    languages = model.config.data.languages or config.data.languages
    encoders = (model.tokenizer.encode_batch, _target_encoder(model.tokenizer))
    for side, encode in enumerate(encoders):
        texts = [pair.target if side else pair.source for pair in pairs]
        where = corpus.locate(pairs[0].number, target=bool(side)).rpartition(",")[0]
        if languages:
            check_language(texts, languages[side], where=where)
        check_characters(texts, encode, model, where=where, tell=tell)
    return len({pair.source for pair in pairs})


def check_language(texts: Sequence[str], expected: str, *, where: str) -> None:
    """Raise DataError if texts are together surely in another language than the one expected."""
    sample = " ".join(texts[:: max(1, len(texts) // _JUDGED)][:_JUDGED])
    other = find_other_language(sample, expected)
    if other is not None:
        raise DataError(
            f"{where}: is in {language_name(other)}, and the model has {language_name(expected)} "
            "on this side; give the files in the order of the model's languages, or another model"
        )


def check_characters(
    texts: Sequence[str],
    encode: Callable[[Sequence[str]], list[list[int]]],
    model: LoadedModel,
    *,
    where: str,
    tell: Callable[[str], None],
) -> None:
    """Raise DataError if many characters have no piece of their own; tell which, if some have."""
    tokenizer = model.tokenizer
    normalized: Iterable[str] = map(tokenizer.normalize, texts)
    if symbols := tokenizer.symbols:  # which are pieces as a whole
        pattern = re.compile("|".join(map(re.escape, symbols)))
        normalized = (pattern.sub("", text) for text in normalized)
    counts = Counter(c for text in normalized for c in text if c != " ")
    spelled = tokenizer.byte_ids | {UNK}
    characters = list(counts)
    encoded = zip(characters, encode(characters), strict=True)
    unknown = {c: counts[c] for c, ids in encoded if spelled.intersection(ids)}
    total, missing = counts.total(), sum(unknown.values())
    if not missing:
        return
    most = [c for c, _ in Counter(unknown).most_common(_SHOWN)]
    shown = " ".join(most) + (" …" if len(unknown) > _SHOWN else "")
    share = f"{missing:,} of {total:,} characters ({100 * missing / total:.1f}%)"
    if missing > _UNKNOWN_LIMIT * total:
        raise DataError(
            f"{where}: {share} have no piece in the tokeniser of {model.path}, which was not made "
            f"for such text: {shown}; give another model, or train a new one"
        )
    tell(f"{where}: {share} have no piece of their own and are spelt in bytes or lost: {shown}")


def _target_encoder(tokenizer: Tokenizer) -> Callable[[Sequence[str]], list[list[int]]]:
    def encode(texts: Iterable[str]) -> list[list[int]]:
        return tokenizer.encode_targets(list(map(tokenizer.normalize_target, texts)))

    return encode

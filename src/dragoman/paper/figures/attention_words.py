"""A model's attention is computed between the words of a sentence and of its translation."""

# H heads, T and S pieces or words, target or source; P pieces, W words

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.inference import Translator
from dragoman.models.attention import record_attention
from dragoman.search.batching import source_rows, target_rows
from dragoman.text.scripts import has_no_spaces
from dragoman.text.tokenizer import Tokenizer

END: Final = "<EOS>"
MAX_WORDS: Final = 120

Weights: TypeAlias = NDArray[np.floating[Any]]

_UNFINISHED: Final = "\ufffd"


@dataclass(frozen=True, slots=True)
class SentenceAttention:
    """Hold what the words of a sentence and of its translation attend to; both end with END."""

    sentence: str
    translation: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    encoder: dict[str, Weights]
    """Holds H S S weights by the attention's name, in the order of the layers."""
    to_source: dict[str, Weights]
    """Holds H T S weights: what the decoder attends to for each target word."""


@torch.no_grad()
def compute_attention(
    translator: Translator, sentence: str, target: str | None = None, *, pieces: bool = False
) -> SentenceAttention:
    """Return a model's attention within a sentence and from its translation, by default its own.

    A word of several pieces attends as they do on average, and is attended to as much as they are
    together; with `pieces` each piece is shown by itself, marked if it continues a word.
    """
    tokenizer, model = translator.tokenizer, translator.model
    if target is None:
        target = translator.translate(sentence, raw=True).text
    ids = tokenizer.encode(sentence), tokenizer.encode(target)
    if not ids[0]:
        raise DataError("the sentence is empty; give one with words in it")
    source, spoken = (WordPieces.of(tokenizer, row, pieces) for row in ids)
    if (longest := max(len(source.texts), len(spoken.texts)) - 1) > MAX_WORDS:
        raise DataError(
            f"a sentence or translation of {longest} words does not fit in a picture; give at most "
            f"{MAX_WORDS}"
        )
    device = next(model.parameters()).device
    with record_attention(model) as seen:
        model.features(source_rows([ids[0]], device), target_rows([ids[1]], device))
    weights = {name: tensor[0].float().cpu().numpy() for name, tensor in seen.items()}
    return SentenceAttention(
        sentence,
        target,
        source.texts,
        spoken.texts,
        {
            n: _pieces_to_words(w, source, source)
            for n, w in weights.items()
            if n.startswith("encoder")
        },
        # Row t of the decoder reads piece t - 1 and predicts piece t, the last one the end.
        {
            n: _pieces_to_words(w, spoken, source)
            for n, w in weights.items()
            if "source_attention" in n
        },
    )


@dataclass(frozen=True, slots=True)
class WordPieces:
    """Hold the words of a sentence, and which of them each piece belongs to."""

    texts: tuple[str, ...]
    member_WP: Weights

    @classmethod
    def of(cls, tokenizer: Tokenizer, ids: Sequence[int], pieces: bool) -> WordPieces:
        """Group ids into words, and add END."""
        words = _group_pieces(tokenizer, ids)
        if pieces:
            first = {group[0] for group in words}
            texts = [_readable(tokenizer, [id_]) for id_ in ids]
            texts = [text if p in first else f"·{text}" for p, text in enumerate(texts)]
            return cls((*texts, END), np.eye(len(ids) + 1, dtype=np.float32))
        member = np.zeros((len(words) + 1, len(ids) + 1), np.float32)
        for number, group in enumerate([*words, [len(ids)]]):
            member[number, group] = 1
        texts = [_readable(tokenizer, [ids[p] for p in group]) for group in words]
        return cls((*texts, END), member)


def _group_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[int]]:
    """Return the positions of each word's pieces; punctuation is a word, as in the paper."""
    words: list[list[int]] = []
    numbers = tokenizer.word_indices(ids)
    for place, id_ in enumerate(ids):
        if place and numbers[place] == numbers[place - 1] >= 0:
            so_far = tokenizer.decode([ids[p] for p in words[-1]])
            if _continues_word(so_far, tokenizer.decode([id_])):
                words[-1].append(place)
                continue
        words.append([place])
    return words


def _continues_word(word: str, piece: str) -> bool:
    """Return whether a piece continues the word before it, from which no space separates it."""
    if not word or _UNFINISHED in word:  # a space that leads to it, or bytes
        return True
    return not any(_is_mark(text) or any(map(has_no_spaces, text)) for text in (word, piece))


def _is_mark(text: str) -> bool:
    return bool(text) and text != _UNFINISHED and not any(map(str.isalnum, text))


def _readable(tokenizer: Tokenizer, group: Sequence[int]) -> str:
    """Return pieces as text or, if alone they are none, as the tokeniser spells them."""
    text = tokenizer.decode(group)
    if text and _UNFINISHED not in text:
        return text
    return "".join(tokenizer.pieces(group)).replace("▁", "␣")


def _pieces_to_words(weights_HTS: Weights, queries: WordPieces, keys: WordPieces) -> Weights:
    """Return weights between words: the mean over a query's pieces, the sum over a key's."""
    mean_WT = queries.member_WP / queries.member_WP.sum(1, keepdims=True)
    folded: Weights = mean_WT @ weights_HTS @ keys.member_WP.T
    return folded

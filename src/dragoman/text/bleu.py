"""BLEU is computed by sacreBLEU, with the tokeniser that suits the target language.

Training, evaluation and distillation all score with what `make_bleu` returns, so that their
figures compare with each other.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from dragoman.errors import ConfigError
from dragoman.text.languages import bleu_tokenizer
from dragoman.text.ngram_overlap import ngram_overlaps


def make_bleu(
    language: str | None = None,
    *,
    tokenize: str | None = None,
    lowercase: bool = False,
    effective_order: bool = False,
) -> BLEU:
    """Return sacreBLEU's BLEU for a target language.

    `tokenize` names another tokeniser than the language's. `effective_order` is for single
    sentences, which may be too short to have 4-grams.
    """
    name = tokenize or bleu_tokenizer(language)
    known = [known for known in BLEU.TOKENIZERS if known != "spm"]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"choose from: {', '.join(known)}"
        raise ConfigError(f"sacreBLEU has no tokeniser '{name}'; {hint}")
    try:
        # force: whoever scores tokenised text wants that, and the signature says so.
        return BLEU(lowercase=lowercase, tokenize=name, effective_order=effective_order, force=True)
    except (RuntimeError, ImportError):
        extra = name.removesuffix("-mecab")
        raise ConfigError(
            f"sacreBLEU's tokeniser '{name}' is not installed; "
            f"try: pip install 'sacrebleu[{extra}]', or 'char'"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"sacreBLEU's tokeniser '{name}' cannot be fetched ({error}); try '13a'"
        ) from None


def pairwise_bleu(texts: Sequence[str], language: str | None = None) -> NDArray[np.float64]:
    """Return BLEU, from 0 to 100, of each text (rows) with each as its reference (columns), N N.

    It is sacreBLEU's of one sentence, smoothed and with effective order, without its loop over
    pairs.
    """
    bleu = make_bleu(language, effective_order=True)
    numbers: dict[str, int] = {}
    words = [
        [numbers.setdefault(word, len(numbers)) for word in bleu._preprocess_segment(text).split()]
        for text in texts
    ]
    lengths_N = np.array([len(one) for one in words], np.int64)
    sums_NN = np.zeros((len(texts), len(texts)))
    orders_N1 = np.zeros((len(texts), 1))
    matches_NN, halvings_NN = np.zeros((2, len(texts), len(texts)), np.int64)
    for counts_N, shared_NN in ngram_overlaps(words, bleu.max_ngram_order):
        counts_N1 = counts_N[:, None]
        none_NN = (shared_NN == 0) & (counts_N1 > 0)
        halvings_NN += none_NN
        precisions_NN = 100 * np.where(none_NN, 0.5**halvings_NN, shared_NN)
        precisions_NN /= np.maximum(counts_N1, 1)
        sums_NN += np.log(precisions_NN, out=np.zeros_like(sums_NN), where=counts_N1 > 0)
        orders_N1 += counts_N1 > 0
        matches_NN += shared_NN
    shorter_NN = lengths_N[None] / np.maximum(lengths_N[:, None], 1)
    brevity_NN = np.exp(np.minimum(0, 1 - shorter_NN))
    scores_NN = brevity_NN * np.exp(sums_NN / np.maximum(orders_N1, 1))
    return np.asarray(np.where(matches_NN > 0, scores_NN, 0.0))

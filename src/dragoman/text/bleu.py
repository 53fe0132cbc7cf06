"""BLEU is computed by sacreBLEU, with the tokeniser that suits the target language.

Training, evaluation and distillation all score with what `make_bleu` returns, so that their
figures compare with each other.
"""

from __future__ import annotations

import difflib

from sacrebleu.metrics.bleu import BLEU

from dragoman.errors import ConfigError
from dragoman.text.languages import bleu_tokenizer


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

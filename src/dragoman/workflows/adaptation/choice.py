"""Of the weights between the first model's and the trained ones, those that serve best are chosen.

Averages of a model's weights before and after fine-tuning lose less of what the model knew than
they lose of what it has learned (Wortsman et al., 2022). So the model goes only as far from the
first one as its text needs, and stays where it was if that is best.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from dragoman.evaluation.metrics import score
from dragoman.inference import Translator, load
from dragoman.model_directory import LoadedModel, save_model
from dragoman.models.weights import get_weights
from dragoman.system.atomic_files import TEMPORARY_PREFIX
from dragoman.workflows.adaptation.text_sets import TextSet

SHARES: Final = (1.0, 0.75, 0.5, 0.25)
"""The weights that are tried have these shares of the trained ones."""
GENERAL_LOSS: Final = 1.0
"""So many BLEU may be lost on general text for a gain on the user's own."""
_PRICE: Final = 4.0
"""A point lost beyond that counts like so many points less gained."""
_ENOUGH: Final = 0.95
"""Less of the trained weights is taken if it has this much of the best candidate's value."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Hold what a candidate gains on the sets that the model is chosen by."""

    share: float
    """So much of the trained weights it has; the rest is the first model's."""
    gain: float
    """On the user's text, in the mean of BLEU and chrF."""
    general_loss: float | None
    """On general text, in BLEU; None if there is none with references."""

    @property
    def value(self) -> float:
        """Return what candidates are ranked by; 0 is the first model."""
        return self.gain - _PRICE * max(0.0, (self.general_loss or 0.0) - GENERAL_LOSS)

    def to_json(self) -> dict[str, Any]:
        """Return a table that `json.dumps` takes."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """Hold a set with what the first model makes of it."""

    texts: TextSet
    before: list[str]


def translate_set(translator: Translator, texts: TextSet) -> list[str]:
    """Return what a model makes of a set, a sentence as one."""
    return [found.text for found in translator.translate_lines(texts.source, raw=True)]


def mix_weights(
    first: dict[str, Tensor], trained: dict[str, Tensor], share: float
) -> dict[str, Tensor]:
    """Return the weights at a share of the way from the first to the trained ones."""
    if share == 1.0:
        return trained
    return {name: first[name].lerp(weight, share) for name, weight in trained.items()}


def choose_share(
    first: LoadedModel,
    trained: LoadedModel,
    domain: MeasuredSet,
    general: MeasuredSet | None,
    *,
    run: Path,
    device: str,
    tell: Callable[[str], None],
) -> list[Judgement]:
    """Return the judgements of all candidates, the chosen one first."""
    language = trained.config.data.target_language
    judged = []
    for share in SHARES:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=run) as folder:
            weights = mix_weights(get_weights(first.model), get_weights(trained.model), share)
            place = Path(folder) / "model"
            save_model(place, weights, trained.config, trained.tokenizer, {})
            translator = load(place, device=device)
            gain = _gain(translator, domain, language, ("bleu", "chrf"))
            loss = None if general is None else -_gain(translator, general, language, ("bleu",))
        judged.append(Judgement(share, gain, loss))
        lost = "" if loss is None else f", {-loss:+.1f} BLEU on general text"
        tell(
            f"{100 * share:.0f}% of the way to the trained weights: {gain:+.1f} in the mean of "
            f"BLEU and chrF{lost}"
        )
    return rank(judged)


def rank(judged: Sequence[Judgement]) -> list[Judgement]:
    """Return the judgements, first the nearest to the first model that is about as good as any.

    If no candidate is better than the first model, that comes first, with a share of 0.
    """
    best = max(one.value for one in judged)
    if best <= 0:
        return [Judgement(0.0, 0.0, 0.0), *judged]
    chosen = min((one for one in judged if one.value >= _ENOUGH * best), key=lambda one: one.share)
    return [chosen, *(one for one in judged if one is not chosen)]


def _gain(
    translator: Translator, measured: MeasuredSet, language: str | None, metrics: tuple[str, ...]
) -> float:
    """Return how much better than the first model a translator is, in the mean of the metrics."""
    references = measured.texts.target
    now = score(
        translate_set(translator, measured.texts), references, language=language, metrics=metrics
    )
    then = score(measured.before, references, language=language, metrics=metrics)
    return sum(now[name] - then[name] for name in metrics) / len(metrics)

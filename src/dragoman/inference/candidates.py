"""Of several translations that a search found, another than the likeliest may be the best.

Two rules choose: minimum Bayes risk, and a noisy channel with a model of the other direction. What
they choose from is what any search finds: a beam, diverse beams or samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dragoman.errors import ConfigError
from dragoman.inference.minimum_bayes_risk import MinimumBayesRisk
from dragoman.inference.noisy_channel import DEFAULT_WEIGHT, NoisyChannel
from dragoman.inference.translation_types import Candidate, DecodingSettings
from dragoman.search.options import Hypothesis

if TYPE_CHECKING:
    from dragoman.inference.translator import Translator

MAX_CANDIDATES: Final = 256
"""There may be so many candidates: the work of minimum Bayes risk grows with their square."""


def add_choice(
    settings: DecodingSettings,
    languages: tuple[str, str],
    mbr: str | None,
    rerank: Translator | None,
    candidates: int | None,
    rerank_weight: float | None,
    length_reward: float | None,
) -> DecodingSettings:
    """Return settings whose search finds candidates, and that say how to choose among these.

    Without `mbr` and `rerank` they are as they were. `languages` are the source's and the target's.
    """
    if rerank is None and not (rerank_weight is None and length_reward is None):
        raise ConfigError("rerank_weight and length_reward need rerank; name a reverse model")
    if mbr is None and rerank is None:
        if candidates is not None:
            raise ConfigError("candidates are what mbr and rerank choose from; add one of these")
        return settings
    if mbr is not None and rerank is not None:
        raise ConfigError("mbr and rerank are two ways to choose; leave out one")
    search, sampling = settings.search, settings.sampling
    if sampling is not None:
        sampling = replace(sampling, samples=candidates or sampling.samples)
    count = candidates or (search.beam if sampling is None else sampling.samples)
    if count < 2:
        raise ConfigError(f"{count} candidate leaves nothing to choose; the least is 2")
    if count > MAX_CANDIDATES:
        raise ConfigError(f"{count} candidates are too many; the most is {MAX_CANDIDATES}")
    if search.n_best > count:
        raise ConfigError(
            f"search.n_best = {search.n_best} cannot be chosen from {count} candidates; ask for "
            "more candidates"
        )
    if sampling is None and count > search.beam:
        raise ConfigError(
            f"{count} candidates are more than search.beam = {search.beam} can find; "
            "leave out the beam"
        )
    choice: MinimumBayesRisk | NoisyChannel
    if rerank is None:
        choice = MinimumBayesRisk(mbr or "", languages[1], drawn=sampling is not None)
    else:
        weight = DEFAULT_WEIGHT if rerank_weight is None else rerank_weight
        choice = NoisyChannel(rerank, weight, length_reward or 0.0)
        choice.check_languages(*languages)
    return replace(settings, sampling=sampling, candidates=count, choice=choice)


def choose_candidates(
    settings: DecodingSettings,
    sources: Sequence[str],
    found: Sequence[Sequence[Hypothesis]],
    decode: Callable[[Sequence[int]], str],
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each source that are chosen, best first, as many as asked for."""
    assert settings.choice is not None
    possible = [[one for one in each if one.log_probs] or list(each) for each in found]
    candidates = [
        [Candidate(decode(one.ids), len(one.ids), one.score, one.log_prob) for one in each]
        for each in possible
    ]
    ranked = settings.choice.rank(sources, candidates)
    return [
        [each[number] for number in numbers[: settings.search.n_best]]
        for each, numbers in zip(possible, ranked, strict=True)
    ]

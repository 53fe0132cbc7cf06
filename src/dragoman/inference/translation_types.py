"""A translator takes and returns these: requests, settings, translations, scores, alternatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, Protocol

from dragoman.search import SamplingOptions, SearchOptions

DEFAULT_CANDIDATES: Final = 16
"""A beam has so many hypotheses to choose from where nothing else is asked for."""

IssueKind = Literal["empty", "damaged", "looping", "length", "sentences", "item", "language", "cut"]
"""What can be wrong with a translation: nothing was said; a character is broken; something was said
again and again; it is far too short or long; one sentence became several; a number, URL or other
item is not as it must be; the text is not in the language that the model translates from; a
sentence was too long and was cut."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Say what was found wrong with a translation, and whether it could be mended."""

    kind: IssueKind
    detail: str
    """This names it in a few words: the number that is missing, the language that was found."""
    repaired: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return this as JSON holds it."""
        return {"kind": self.kind, "detail": self.detail, "repaired": self.repaired}


class Word(NamedTuple):
    """Hold a word of a translation."""

    text: str
    confidence: float
    """It is right with this probability."""


@dataclass(frozen=True, slots=True)
class Translation:
    """Hold one translation of one text."""

    source: str
    text: str
    score: float
    """This is the log-probability / length penalty, summed over the segments of a long line."""
    tokens: tuple[str, ...]
    """These are the target pieces as the model produced them."""
    alignment: tuple[tuple[int, int], ...] = ()
    """These are pairs (source word, target word) of white-space words, if asked for."""
    alternatives: tuple[Translation, ...] = ()
    """With n_best or samples these are the others, best first."""
    log_prob: float = 0.0
    """This is the sum of the model's log-probabilities of every piece and of the end."""
    issues: tuple[Issue, ...] = ()
    """These were found wrong with it, those that were mended too."""
    log_probs: tuple[float, ...] = ()
    """These are the log-probabilities of its tokens, and of the end."""
    confidence: float | None = None
    """This is how much of it is probably right, from 0 to 1, where the model is calibrated."""
    words: tuple[Word, ...] = ()
    """These are its words with the probability that each is right, where it is calibrated."""
    sentences: tuple[Translation, ...] = ()
    """These are the translations of its sentences, unless each text was one sentence (`raw`)."""

    @property
    def pharaoh(self) -> str:
        """Return the alignment as Pharaoh writes it: 0-0 1-2 …"""
        return " ".join(f"{source}-{target}" for source, target in self.alignment)

    def to_dict(self) -> dict[str, Any]:
        """Return this as JSON holds it."""
        table: dict[str, Any] = {
            "text": self.text,
            "score": _finite(self.score),
            "log_prob": _finite(self.log_prob),
            "tokens": list(self.tokens),
        }
        if self.alignment:
            table["alignment"] = [list(pair) for pair in self.alignment]
        if self.confidence is not None:
            table["confidence"] = self.confidence
            table["words"] = [list(word) for word in self.words]
            if len(self.sentences) > 1:
                table["sentences"] = [[one.text, one.confidence] for one in self.sentences]
        if self.issues:
            table["issues"] = [one.to_dict() for one in self.issues]
        if self.alternatives:
            table["alternatives"] = [other.to_dict() for other in self.alternatives]
        return table


def _finite(score: float) -> float:
    """Return a score that JSON can write, which has no infinity."""
    return round(max(score, -1e9), 6)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Hold a word that a translation could go on with."""

    word: str
    """An empty word means that the translation ends."""
    probability: float
    """The word has this probability after the prefix, in all spellings that were found."""
    translation: str
    """This is the best translation that begins so."""
    score: float
    """That translation has this score."""

    def to_dict(self) -> dict[str, Any]:
        """Return this as JSON holds it."""
        return {
            "word": self.word,
            "probability": round(self.probability, 6),
            "translation": self.translation,
            "score": round(self.score, 6),
        }


@dataclass(frozen=True, slots=True)
class ScoredTranslation:
    """Hold how probable a model finds a given translation."""

    tokens: tuple[str, ...]
    """These are its pieces, and the end."""
    log_probs: tuple[float, ...]
    """Each piece has this log-probability."""
    log_prob: float
    score: float
    """This is `log_prob` / length penalty, which search ranks by."""

    def to_dict(self, *, tokens: bool = False) -> dict[str, Any]:
        """Return this as JSON holds it, with every piece if asked for."""
        table: dict[str, Any] = {
            "log_prob": round(self.log_prob, 6),
            "score": round(self.score, 6),
            "pieces": len(self.tokens),
        }
        if tokens:
            table["tokens"] = list(self.tokens)
            table["log_probs"] = [round(one, 6) for one in self.log_probs]
        return table


@dataclass(frozen=True, slots=True)
class Request:
    """Hold a text to translate, and what its translation must be."""

    text: str
    prefix: str = ""
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    group: int = -1
    """Requests of one group are sentences of one text: one of them must contain what all must."""
    align: bool = False
    """Its translation is to have a word alignment, whatever the settings say."""


TranslateFunction = Callable[[Sequence[Request]], list[Translation]]
"""Such a function translates some requests, with alignments."""


class Candidate(NamedTuple):
    """Hold a translation that may be chosen, and what the model says of it."""

    text: str
    pieces: int
    score: float
    """This is the log-probability / length penalty."""
    log_prob: float


class CandidateChoice(Protocol):
    """Put the candidates of each source in order."""

    def rank(
        self, sources: Sequence[str], candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[int]]:
        """Return the numbers of each source's candidates, best first; equal texts count as one."""
        ...


@dataclass(frozen=True, slots=True)
class DecodingSettings:
    """Say how to search, and what to do with what is found."""

    search: SearchOptions
    sampling: SamplingOptions | None = None
    align: bool = False
    """All translations have word alignments, read off the attention."""
    checked: bool = False
    """Faults are looked for, and searched again."""
    choice: CandidateChoice | None = None
    """This chooses among what is found; without it the likeliest is taken, or what is drawn."""
    candidates: int = 0
    """It has so many to choose from."""
    tag: int | None = None
    """This id stands before every source, and asks for a kind of translation."""

    def without_choice(self) -> DecodingSettings:
        """Return settings that take the likeliest, of a search, where these choose; or these."""
        if self.choice is None:
            return self
        return replace(self, sampling=None, candidates=0, choice=None)


@dataclass(frozen=True, slots=True)
class Segment:
    """Hold a part of a text that is searched at once."""

    request: int
    """This is the number of the request it belongs to."""
    text: str
    prefix: str
    must: tuple[str, ...]
    must_not: tuple[str, ...]
    separator: str | None
    """This joins its translation with the next segment's; None means it is the last."""
    group: int
    """Segments of one group are parts of one text."""
    align: bool
    """Its translation is to have a word alignment."""

    @property
    def constrained(self) -> bool:
        """Return whether there is something that its translation must be."""
        return bool(self.prefix or self.must or self.must_not)

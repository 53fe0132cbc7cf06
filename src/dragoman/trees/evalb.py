"""EVALB's rules count how well predicted trees match gold ones.

EVALB (Sekine and Collins, 1997) is what F1 on the Penn Treebank means. A bracket is a constituent:
its label and the words it spans; tags are not brackets. docs/brackets.md states the rules.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, compress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dragoman.errors import ConfigError, DataError
from dragoman.trees.tree import Leaf, Span, Tree, leaves, spans

Pairs: TypeAlias = tuple[tuple[str, str], ...]

_VERSION: Final = 1
"""The version of the rules; a score by other rules is another score."""
_FUNCTION: Final = re.compile("[-=].*", re.DOTALL)  # NP-SBJ and NP=2 are NP


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalbParameters:
    """Say what counts as a bracket (by default all), and what as equal (by default no more)."""

    delete_labels: tuple[str, ...] = ()
    """A word with such a tag is taken out; a constituent loses its bracket, not its words."""
    delete_labels_for_length: tuple[str, ...] = ()
    """A word with such a tag does not make its sentence longer."""
    equal_labels: Pairs = ()
    """Labels that count as equal, pair by pair: A = B and B = C do not make A = C. Tags too."""
    equal_words: Pairs = ()
    """Words that count as equal, pair by pair."""
    labelled: bool = True
    """Whether a bracket needs the right label to be right."""
    cutoff_length: int = 40
    """Sentences of up to so many words have figures of their own."""
    gold_punctuation: bool = False
    """Whether the gold tree's tags say which words of a prediction are taken out. EVALB goes by the
    prediction's own: one comma with a wrong tag, and it drops the sentence from its figures."""

    @property
    def signature(self) -> str:
        """Return the rules in one line, for a score to carry."""
        rules = "prm:COLLINS"
        if replace(self, gold_punctuation=False) != COLLINS:
            rules = "|".join(
                [
                    f"labelled:{'yes' if self.labelled else 'no'}",
                    f"delete:{' '.join(self.delete_labels) or 'none'}",
                    f"uncounted:{' '.join(self.delete_labels_for_length) or 'none'}",
                    f"equal:{' '.join(map('='.join, self.equal_labels)) or 'none'}",
                    f"words:{' '.join(map('='.join, self.equal_words)) or 'none'}",
                    f"cutoff:{self.cutoff_length}",
                ]
            )
        punctuation = "|punctuation:gold" if self.gold_punctuation else ""
        return f"evalb|{rules}{punctuation}|version:{_VERSION}"


COLLINS: Final = EvalbParameters(
    delete_labels=("TOP", "-NONE-", ",", ":", "``", "''", "."),
    delete_labels_for_length=("-NONE-",),
    equal_labels=(("ADVP", "PRT"),),
)
"""EVALB's COLLINS.prm, by which figures on the Penn Treebank are made."""
PREDICTED_TAGS: Final = replace(COLLINS, gold_punctuation=True)
"""The same for trees whose tags are predicted too: a wrong tag costs its tag and nothing else."""

_KEYWORDS: Final = {
    "DELETE_LABEL": r"\S+",
    "DELETE_LABEL_FOR_LENGTH": r"\S+",
    "EQ_LABEL": r"\S+\s+\S+",
    "EQ_WORD": r"\S+\s+\S+",
    "LABELED": r"\d+",
    "CUTOFF_LEN": r"\d+",
    "MAX_ERROR": r"\d+",
    "DEBUG": r"\d+",
}


def read_parameters(path: Path) -> EvalbParameters:
    """Read EVALB's parameter file: a keyword and its value a line, # starts a comment line.

    DEBUG and MAX_ERROR change nothing: every error is reported and none ends the scoring.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: this parameter file cannot be read: {error}") from None
    found: defaultdict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        keyword, *rest = line.split(maxsplit=1)
        value = "".join(rest).rstrip()
        if (form := _KEYWORDS.get(keyword)) is None:
            known = ", ".join(_KEYWORDS)
            raise ConfigError(
                f"{path}:{number}: '{keyword}' is not a parameter; choose from: {known}"
            )
        if not re.fullmatch(form, value):
            raise ConfigError(f"{path}:{number}: {keyword} cannot be '{value}'")
        found[keyword].append(value)
    return EvalbParameters(
        delete_labels=tuple(found["DELETE_LABEL"]),
        delete_labels_for_length=tuple(found["DELETE_LABEL_FOR_LENGTH"]),
        equal_labels=_pairs(found["EQ_LABEL"]),
        equal_words=_pairs(found["EQ_WORD"]),
        labelled=int((found["LABELED"] or ["1"])[-1]) != 0,
        cutoff_length=int((found["CUTOFF_LEN"] or ["40"])[-1]),
    )


def _pairs(values: list[str]) -> Pairs:
    return tuple((one, other) for one, other in map(str.split, values))


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceBrackets:
    """Hold the counts of one sentence; those after `unscored` are 0 unless it was scored."""

    line: int
    """The sentence's number, from 1."""
    status: Literal["scored", "error", "skipped"]
    reason: str = ""
    """Why it was not scored."""
    length: int
    """Words of the gold tree, punctuation among them."""
    unscored: int = 0
    """Gold brackets that count nowhere, because the sentence was not scored."""
    gold: int = 0
    predicted: int = 0
    matched: int = 0
    """Each gold bracket matches at most one predicted bracket."""
    crossing: int = 0
    """Predicted brackets that share words with a gold bracket, neither being within the other."""
    words: int = 0
    """Words that were not taken out."""
    tags: int = 0
    """Words with the right tag."""

    @property
    def complete(self) -> bool:
        """Return whether every bracket is right and none is missing."""
        return self.gold == self.predicted == self.matched


@dataclass(frozen=True, kw_only=True, slots=True)
class BracketFigures:
    """Hold what EVALB prints of a set of sentences, in percent; 0 where nothing is counted."""

    sentences: int
    errors: int
    """Sentences whose words differ from the gold tree's. They count in no figure below."""
    skipped: int
    """Sentences without a prediction, or without a word left in it. These do not count either."""
    gold: int
    predicted: int
    matched: int
    recall: float
    precision: float
    f1: float
    complete_match: float
    """Sentences with every bracket right and none missing."""
    average_crossing: float
    """Crossing brackets a sentence; not in percent."""
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float

    @classmethod
    def from_sentences(cls, sentences: Sequence[SentenceBrackets]) -> BracketFigures:
        """Add up brackets and words over the sentences, then divide."""
        scored = [one for one in sentences if one.status == "scored"]
        gold, predicted, matched, words, tags = (
            sum(getattr(one, name) for one in scored)
            for name in ("gold", "predicted", "matched", "words", "tags")
        )
        return cls(
            sentences=len(sentences),
            errors=sum(one.status == "error" for one in sentences),
            skipped=sum(one.status == "skipped" for one in sentences),
            gold=gold,
            predicted=predicted,
            matched=matched,
            recall=_percent(matched, gold),
            precision=_percent(matched, predicted),
            f1=_percent(2 * matched, gold + predicted),
            complete_match=_percent(sum(one.complete for one in scored), len(scored)),
            average_crossing=sum(one.crossing for one in scored) / max(1, len(scored)),
            no_crossing=_percent(sum(one.crossing == 0 for one in scored), len(scored)),
            two_or_less_crossing=_percent(sum(one.crossing <= 2 for one in scored), len(scored)),
            tagging_accuracy=_percent(tags, words),
        )


@dataclass(frozen=True, slots=True)
class BracketScores:
    """Hold the figures of a test set, and the counts of every sentence in it."""

    parameters: EvalbParameters
    all: BracketFigures
    short: BracketFigures
    """The figures of the sentences of up to `cutoff_length` words."""
    sentences: tuple[SentenceBrackets, ...]

    @property
    def f1(self) -> float:
        """Return F1 over all sentences that were scored."""
        return self.all.f1

    @property
    def left_out(self) -> list[SentenceBrackets]:
        """Return the sentences that could not be scored, each with its reason."""
        return [one for one in self.sentences if one.status != "scored"]

    @property
    def f1_all_lines(self) -> float:
        """Return F1 as if no bracket had been found in the sentences left out.

        EVALB has no such figure. It tells a parser that answers seldom but well from others.
        """
        missed = sum(one.unscored for one in self.left_out)
        return _percent(2 * self.all.matched, self.all.gold + missed + self.all.predicted)

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return {
            "signature": self.parameters.signature,
            **asdict(self.all),
            "cutoff_length": self.parameters.cutoff_length,
            "short": asdict(self.short),
            "f1_all_lines": self.f1_all_lines,
            "left_out": [
                {"line": one.line, "status": one.status, "reason": one.reason}
                for one in self.left_out
            ],
        }

    def __str__(self) -> str:
        name = "labelled F1" if self.parameters.labelled else "unlabelled F1"
        lines = [f"{name}|{self.parameters.signature} = {self.f1:.2f}"]
        lines.append(f"{'':<22}{'all':>9}{f'<= {self.parameters.cutoff_length} words':>13}")
        for (key, one), two in zip(
            asdict(self.all).items(), asdict(self.short).values(), strict=True
        ):
            kind = ",d" if isinstance(one, int) else ".2f"
            lines.append(f"{key.replace('_', ' '):<22}{one:>9{kind}}{two:>13{kind}}")
        if self.left_out:
            lines.append(
                f"{len(self.left_out)} of {len(self.sentences)} sentences count nowhere above; "
                f"with their brackets as missed, F1 would be {self.f1_all_lines:.2f}:"
            )
            lines += [
                f"  line {one.line}: {one.status}: {one.reason}" for one in self.left_out[:20]
            ]
            if len(self.left_out) > 20:
                lines.append(f"  and {len(self.left_out) - 20} more; to_json has them all")
        return "\n".join(lines)


def score_trees(
    gold: Sequence[Tree], predicted: Sequence[Tree | None], parameters: EvalbParameters = COLLINS
) -> BracketScores:
    """Compare predicted trees with gold ones, line by line; None is a sentence without a parse."""
    if len(gold) != len(predicted):
        raise DataError(
            f"there are {len(gold)} gold trees but {len(predicted)} predicted ones; "
            "they must correspond line by line"
        )
    if not gold:
        raise DataError("there is nothing to score: there are no trees")
    sentences = tuple(
        _compare(line, right, guess, parameters)
        for line, (right, guess) in enumerate(zip(gold, predicted, strict=True), 1)
    )
    short = [one for one in sentences if one.length <= parameters.cutoff_length]
    return BracketScores(
        parameters,
        BracketFigures.from_sentences(sentences),
        BracketFigures.from_sentences(short),
        sentences,
    )


@dataclass(frozen=True, slots=True)
class _CountedTree:
    """Hold the words and brackets of a tree that count."""

    words: list[Leaf]
    brackets: list[Span]
    length: int

    @classmethod
    def from_tree(
        cls, tree: Tree | None, parameters: EvalbParameters, like: Tree | None = None
    ) -> _CountedTree:
        """Take out what does not count, by the tags of `like` if it has as many words."""
        if tree is None:
            return cls([], [], 0)
        every = list(leaves(tree))
        tags = [leaf.tag for leaf in (leaves(like) if like is not None else every)]
        if len(tags) != len(every):
            tags = [leaf.tag for leaf in every]
        stays = [tag not in parameters.delete_labels for tag in tags]
        words = list(compress(every, stays))
        length = sum(tag not in parameters.delete_labels_for_length for tag in tags)
        # Where a span begins and ends once the words taken out no longer hold a place.
        place = [0, *accumulate(stays)]
        brackets = []
        for label, start, end in spans(tree):
            bare = _FUNCTION.sub("", label)
            deleted = any(
                _same(bare, other, parameters.equal_labels) for other in parameters.delete_labels
            )
            if place[start] < place[end] and not deleted:
                brackets.append(Span(bare, place[start], place[end]))
        return cls(words, brackets, length)


def _compare(
    line: int, right: Tree, guess: Tree | None, parameters: EvalbParameters
) -> SentenceBrackets:
    gold = _CountedTree.from_tree(right, parameters)
    like = right if parameters.gold_punctuation else None
    predicted = _CountedTree.from_tree(guess, parameters, like)
    if problem := _find_problem(gold, guess, predicted, parameters):
        return SentenceBrackets(
            line=line,
            status="error" if predicted.words else "skipped",
            reason=problem,
            length=gold.length,
            unscored=len(gold.brackets),
        )
    return SentenceBrackets(
        line=line,
        status="scored",
        length=gold.length,
        gold=len(gold.brackets),
        predicted=len(predicted.brackets),
        matched=_count_matched(gold.brackets, predicted.brackets, parameters),
        crossing=_count_crossing(gold, predicted),
        words=len(gold.words),
        tags=sum(
            _same(right.tag, found.tag, parameters.equal_labels)
            for right, found in zip(gold.words, predicted.words, strict=True)
        ),
    )


def _find_problem(
    gold: _CountedTree, guess: Tree | None, predicted: _CountedTree, parameters: EvalbParameters
) -> str:
    if guess is None:
        return "no tree"
    if not predicted.words:
        return "every word of the prediction has a tag that is deleted"
    if len(gold.words) != len(predicted.words):
        counts = f"{len(predicted.words)} instead of {len(gold.words)}"
        return f"words: {counts}, those with deleted tags left aside"
    for right, found in zip(gold.words, predicted.words, strict=True):
        if not _same(right.word, found.word, parameters.equal_words):
            return f"the word '{found.word}' instead of '{right.word}'"
    return ""


def _count_matched(gold: list[Span], predicted: list[Span], parameters: EvalbParameters) -> int:
    """Count matches in EVALB's order, parents first: equal labels need not be transitive."""
    waiting: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for label, start, end in predicted:
        waiting[start, end].append(label)
    matched = 0
    for label, start, end in gold:
        for index, other in enumerate(waiting[start, end]):
            if not parameters.labelled or _same(label, other, parameters.equal_labels):
                del waiting[start, end][index]
                matched += 1
                break
    return matched


def _count_crossing(gold: _CountedTree, predicted: _CountedTree) -> int:
    """Count crossing brackets: one crosses if it crosses the innermost gold one around its edge."""
    whole = Span("", 0, len(gold.words))
    innermost = [whole] * (len(gold.words) + 1)  # that has this gap between words inside it
    for bracket in gold.brackets:  # parents come first, children write over them
        inside = range(bracket.start + 1, bracket.end)
        innermost[inside.start : inside.stop] = [bracket] * len(inside)
    return sum(
        innermost[start].end < end or start < innermost[end].start
        for _, start, end in predicted.brackets
    )


def _same(one: str, other: str, pairs: Pairs) -> bool:
    return one == other or (one, other) in pairs or (other, one) in pairs


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0

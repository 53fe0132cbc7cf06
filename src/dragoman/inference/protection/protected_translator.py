"""Translate texts so that what must not change does not.

Each item goes through the model as its kind does best (`Carriage`): as it is, as a word that the
model copies, or not at all. Where it did not come out whole, and what it became is not evident, the
text is translated again with the item carried in the next safer way. Numbers are checked and, where
that is evident, put right. What had to be mended or could not be is said in the issues.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from dragoman.inference.protection.damaged_items import find_damaged
from dragoman.inference.protection.item_placement import CutItem, cut_span, place_items
from dragoman.inference.protection.number_check import check_numbers
from dragoman.inference.protection.numbers_in_text import (
    NumberToken,
    localize_number,
    localize_numbers,
)
from dragoman.inference.protection.protected_items import Carriage, Item, find_items, find_symbols
from dragoman.inference.protection.stand_ins import (
    StandIns,
    choose_stand_ins,
    find_copies,
    joins,
)
from dragoman.inference.protection.text_edits import (
    Edit,
    OffsetsAfter,
    apply_edits,
    overlaps,
    words_after,
    words_before,
)
from dragoman.inference.protection.unit_check import says_sign
from dragoman.inference.protection.unknown_characters import UnknownCharacters
from dragoman.inference.translation_types import Issue, Request, TranslateFunction, Translation
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.normalization import normalize
from dragoman.text.tokenizer import Tokenizer

_NEXT: Final = {
    Carriage.AS_IS: Carriage.STAND_IN,
    Carriage.STAND_IN: Carriage.CUT,
    Carriage.CUT: Carriage.CUT,
}
_ATTEMPTS: Final = 3
_SYMBOLS: Final = frozenset("{}\\~^|#$")
_LETTER: Final = lazy_pattern(r"[^\W\d_]")
_DIGIT: Final = lazy_pattern(r"\d")
_MAX_SEARCHED: Final = 20
_LONGEST_SEARCHED: Final = 2000
"""What became of items is looked for only if few are missing in an output that is not long."""
_SPACES: Final = lazy_pattern(" {2,}")
_BRACES: Final = lazy_pattern(
    r"[%$#]?\{[^\w{}]{0,3}[A-Za-z\d_.]{0,20}[^\w{}]{0,3}\}|[%$#]?\{\d{0,3}|\}"
)
"""What a model makes of {1} where it does not copy it, or of one that it has only read of."""
_PERCENTS: Final = lazy_pattern(r"%(?:\d\$)?[ds]+(?![^\W_])")
"""Placeholders of programs that a model has read of."""
_OPENING: Final = "([{<\"'“„«‘‚¿¡"
Spans = list[tuple[int, int]]


@dataclass(slots=True)
class ProtectedText:
    """Hold a text as the model gets it, and what it was."""

    request: Request
    text: str
    """This is the text with its items, in characters that the model knows where it can."""
    items: list[Item]
    ways: list[Carriage]
    """Each item goes through the model in this way."""
    edits: list[Edit]
    """These make of the text what the model gets."""
    stand_ins: dict[int, str]
    """This maps the number of an item to what stands for it."""
    cut: dict[int, CutItem]
    """These items were taken out."""
    strict: bool = False
    """Rare letters of the source's own language were protected, too."""

    @property
    def bare(self) -> str:
        """Return what the model gets."""
        return apply_edits(self.text, self.edits)

    @property
    def has_words(self) -> bool:
        """Return whether there is something to translate beside the items."""
        rest = apply_edits(self.text, [Edit(item.start, item.end, " ") for item in self.items])
        return _LETTER.search(rest) is not None


class ProtectedTranslator:
    """Protect what must not change, with one translator."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        source_language: str = "",
        target_language: str = "",
        *,
        probe: TranslateFunction,
    ) -> None:
        """Use `probe`, a quick search, to find out what the model copies, if that is needed."""
        self._tokenizer = tokenizer
        self._languages = source_language, target_language
        self._unknown = UnknownCharacters(tokenizer, source_language, target_language)
        self._probe = probe

    @cached_property
    def stand_ins(self) -> StandIns:
        """Return what the model copies, found once."""
        vocabulary = [piece[1:] for piece in self._tokenizer.vocabulary if piece.startswith("▁")]
        return choose_stand_ins(self._probe, self._languages[0], vocabulary)

    def translate(
        self, requests: Sequence[Request], run: TranslateFunction, *, aligned: bool = False
    ) -> list[Translation]:
        """Return what `run` gives for the texts, with everything in them that must be.

        Alternatives that lack something are left out. Where something was taken out of a text `run`
        is asked for an alignment, which only `aligned` translations keep.
        """
        plans = [self._plan(request) for request in requests]
        results: dict[int, Translation] = {}
        for number, plan in enumerate(plans):
            if plan is not None and not plan.has_words:
                results[number] = self._copy(plan)
        waiting = [number for number in range(len(requests)) if number not in results]
        earlier: dict[int, list[Issue]] = {}
        for attempt in range(_ATTEMPTS):
            asked = [_ask(requests[number], plans[number], attempt) for number in waiting]
            again = []
            for number, found in zip(waiting, run(asked) if asked else (), strict=True):
                last = attempt == _ATTEMPTS - 1
                plan = plans[number]
                if plan is None:
                    if found.text and not self._unknown.find_damage(found.text, ""):
                        results[number] = found
                        continue
                    plan = self._empty_plan(requests[number])
                restored = _Restoration(plan, found, self._languages, self._unknown, last=last)
                if restored.failed and not last:
                    plans[number] = self._carry_otherwise(plan, restored)
                    earlier.setdefault(number, []).extend(restored.failures)
                    again.append(number)
                elif restored.damaged and not last and (strict := self._strict_plan(plan)):
                    plans[number] = strict
                    again.append(number)
                else:
                    results[number] = self._finish(restored, found, earlier.get(number, ()))
            waiting = again
        return [
            replace(found, source=request.text)
            if aligned or request.align
            else _without_alignment(replace(found, source=request.text))
            for request, found in zip(
                requests, map(results.__getitem__, range(len(requests))), strict=True
            )
        ]

    # --- before the search ---

    def _plan(self, request: Request, *, strict: bool = False) -> ProtectedText | None:
        """Return a text as the model is to get it, or None if it has nothing to protect."""
        raw = normalize(request.text, "none")
        text = self._unknown.replace_lookalikes(raw)
        items = find_items(text)
        items += self._unknown.find(text, items, strict=strict)
        if not text.isascii() or not _SYMBOLS.isdisjoint(text):
            covered = {place for item in items for place in range(item.start, item.end)}
            items += [one for one in find_symbols(text) if one.start not in covered]
        if (
            not items
            and text == raw
            and _DIGIT.search(text) is None
            and _LETTER.search(text) is not None
        ):
            return None
        items.sort(key=lambda item: item.start)
        ways = [item.carriage for item in items]
        return self._carry(
            ProtectedText(request, text, items, ways, [], {}, {}, strict), first=True
        )

    def _empty_plan(self, request: Request) -> ProtectedText:
        return ProtectedText(request, normalize(request.text, "none"), [], [], [], {}, {})

    def _strict_plan(self, plan: ProtectedText) -> ProtectedText | None:
        """Return a plan that protects all unknown characters, if that is another one."""
        if plan.strict:
            return None
        strict = self._plan(plan.request, strict=True)
        return strict if strict is not None and len(strict.items) > len(plan.items) else None

    def _carry(self, plan: ProtectedText, *, first: bool = False) -> ProtectedText:
        """Fill in how each item goes through the model in its way."""
        pinned = "\0".join((plan.request.prefix, *plan.request.must, *plan.request.must_not))
        names: dict[str, list[str]] = {}
        plan.edits, plan.stand_ins, plan.cut = [], {}, {}
        for number, item in enumerate(plan.items):
            if item.text in pinned:
                plan.ways[number] = Carriage.AS_IS
            elif plan.ways[number] is Carriage.STAND_IN:
                if item.kind not in names:
                    names[item.kind] = self.stand_ins.usable(plan.text, item.kind)
                name = _free_name(plan, item, names[item.kind])
                if name:
                    plan.stand_ins[number] = name
                    plan.edits.append(Edit(item.start, item.end, name))
                    continue
                known = first and item.kind != "unknown"
                plan.ways[number] = Carriage.AS_IS if known else Carriage.CUT
            if plan.ways[number] is Carriage.CUT:
                self._cut(plan, number)
        offsets = OffsetsAfter(plan.edits)
        for number, cut in plan.cut.items():  # where they stood in what is left
            plan.cut[number] = replace(cut, at=offsets[cut.at])
        return plan

    def _cut(self, plan: ProtectedText, number: int) -> None:
        item = plan.items[number]
        start, end, gap, touches = cut_span(plan.text, item.start, item.end, item.kind)
        neighbours = (
            plan.items[number - 1].end if number else 0,
            (plan.items[number + 1].start if number + 1 < len(plan.items) else len(plan.text)),
        )
        if start < neighbours[0] or end > neighbours[1] or overlaps(plan.edits[-1:], start, end):
            start, end = item.start, item.end
        kept = plan.text[start:end].strip()
        plan.cut[number] = CutItem(kept, start, touches, item.kind)
        plan.edits.append(Edit(start, end, gap))

    def _copy(self, plan: ProtectedText) -> Translation:
        """Return a text without words as it is, but for its numbers."""
        raw = normalize(plan.request.text, "none")
        edits = localize_numbers(raw, self._languages, _spans(find_items(raw)))
        pairs = tuple(enumerate(words_after(raw, edits)))
        return Translation(plan.request.text, apply_edits(raw, edits), 0.0, (), pairs)

    # --- after the search ---

    def _carry_otherwise(self, plan: ProtectedText, restored: _Restoration) -> ProtectedText:
        """Return the plan for another attempt: what failed goes another way, lost numbers too."""
        rows = [
            (item, _NEXT[way] if number in restored.failed_items else way)
            for number, (item, way) in enumerate(zip(plan.items, plan.ways, strict=True))
        ]
        rows += [
            (Item(token.start, token.end, token.text, "number"), Carriage.STAND_IN)
            for token in restored.lost
        ]
        rows.sort(key=lambda row: row[0].start)
        items, ways = [item for item, _ in rows], [way for _, way in rows]
        again = ProtectedText(plan.request, plan.text, items, ways, [], {}, {}, plan.strict)
        return self._carry(again)

    def _finish(
        self, restored: _Restoration, found: Translation, earlier: Iterable[Issue]
    ) -> Translation:
        """Return the translation with everything in it, its issues, and the whole alternatives."""
        others = []
        for other in found.alternatives:
            one = _Restoration(restored.plan, other, self._languages, self._unknown)
            if not one.failed:
                others.append(one.translation)
        mended = {issue.detail for issue in restored.issues}
        issues = [issue for issue in earlier if issue.detail not in mended]
        return replace(
            restored.translation,
            alternatives=tuple(others),
            issues=tuple(dict.fromkeys([*found.issues, *issues, *restored.issues])),
        )


class _Restoration:
    """Put everything back into one translation."""

    def __init__(
        self,
        plan: ProtectedText,
        found: Translation,
        languages: tuple[str, str],
        unknown: UnknownCharacters,
        *,
        last: bool = False,
    ) -> None:
        """Prepare; where it is the `last` attempt, what is missing is put where it may belong."""
        self.plan, self._found, self._languages, self._last = plan, found, languages, last
        self._output = found.text
        self._edits: list[Edit] = []
        self._taken: Spans = []
        self._covered: set[int] = set()
        """These characters of the output are taken."""
        self._bare = plan.bare
        self.issues: list[Issue] = []
        self.failed_items: set[int] = set()
        self.missing_symbols: list[int] = []
        self.lost: list[NumberToken] = []
        wanted = "".join((plan.text, plan.request.prefix, *plan.request.must))
        damage = unknown.find_damage(self._output, wanted)
        self.damaged = bool(damage)
        # What must be there must be whole words.
        gap = " " if plan.request.must else ""
        self._edits += [Edit(start, end, gap) for start, end in damage]
        self._restore_stand_ins()
        self._restore_copies()
        self._drop_placeholders(wanted)
        self._check_numbers()
        if last or not self.failed:
            self._put_missing()

    @property
    def failed(self) -> bool:
        """Return whether something is missing."""
        return bool(self.failed_items or self.lost)

    @property
    def failures(self) -> list[Issue]:
        """Return what was missing, as issues that another attempt has mended."""
        missing = [self.plan.items[number].text for number in sorted(self.failed_items)]
        missing += [token.text for token in self.lost]
        return [Issue("item", text, repaired=True) for text in missing]

    def _write(self, number: int) -> str:
        """Return what is written for an item."""
        item = self.plan.items[number]
        return localize_number(item.text, self._languages) if item.kind == "number" else item.text

    def _write_apart(self, number: int, start: int, end: int) -> str:
        """Return what is written for an item at a place, apart from words that it did not touch."""
        item, source, text = self.plan.items[number], self.plan.text, self._write(number)
        before, after = self._output[max(0, start - 1) : start], self._output[end : end + 1]
        if after and joins(text[-1], after):
            text += " "
        touched = source[max(0, item.start - 1) : item.start].strip()
        if before and not touched and (joins(before, text[0]) or text[0] in "<[#@"):
            text = f" {text}"
        return text

    def _take(self, start: int, end: int, text: str) -> None:
        self._taken.append((start, end))
        self._covered.update(range(start, end))
        if self._output[start:end] != text:
            self._edits.append(Edit(start, end, text))

    def _restore_stand_ins(self) -> None:
        for number, name in self.plan.stand_ins.items():
            spans = find_copies(name, self._output)
            if not spans and name[0] == "{":
                spans = find_copies(name[:-1], self._output)  # the model did not close it
            if len(spans) == 1 or (spans and self._last):
                for place, span in enumerate(spans):
                    self._take(*span, "" if place else self._write_apart(number, *span))
            else:
                self.failed_items.add(number)

    def _restore_copies(self) -> None:
        """Find the items that went through as they are; what has become of one is put right."""
        groups: dict[str, list[int]] = {}
        for number, way in enumerate(self.plan.ways):
            if way is Carriage.AS_IS:
                groups.setdefault(self.plan.items[number].text, []).append(number)
        missing = []
        for text in sorted(groups, key=len, reverse=True):
            numbers, item = groups[text], self.plan.items[groups[text][0]]
            spans = [
                span
                for span in find_copies(text, self._output)
                or find_copies(normalize(text, "plain"), self._output)
                if self._covered.isdisjoint(range(*span))
            ]
            for span in spans[: len(numbers)]:
                self._take(*span, text)
            if len(spans) > len(numbers) and item.counted and text not in self.plan.request.prefix:
                if self._last:
                    for span in spans[len(numbers) :]:
                        self._take(*span, "")
                else:
                    self.failed_items.update(numbers)
            missing += numbers[len(spans) :]
        for number in missing:
            item = self.plan.items[number]
            if item.kind in ("symbol", "sign"):
                self.missing_symbols.append(number)
                continue
            few = len(missing) <= _MAX_SEARCHED and len(self._output) <= _LONGEST_SEARCHED
            damaged = find_damaged(item, self._output, self._taken, self.plan.text) if few else None
            if damaged is None:
                self.failed_items.add(number)
            else:
                self._take(*damaged, item.text)
                self.issues.append(Issue("item", item.text, repaired=True))

    def _drop_placeholders(self, wanted: str) -> None:
        """Take out braces and placeholders that are of no item, where the source has none."""
        patterns = [] if "{" in wanted or "}" in wanted else [_BRACES]
        if _PERCENTS.search(wanted) is None:
            patterns.append(_PERCENTS)
        for match in (one for pattern in patterns for one in pattern.finditer(self._output)):
            start, end = match.span()
            if self._covered.isdisjoint(range(start, end)):
                before, after = self._output[max(0, start - 1) : start], self._output[end : end + 1]
                self._take(start, end, " " if after.isalnum() and before not in _OPENING else "")

    def _check_numbers(self) -> None:
        kept = [item for item in self.plan.items if item.kind != "sign"]
        hidden = _spans(kept), self._taken
        report = check_numbers(self.plan.text, self._output, self._languages, hidden)
        begin = len(self.plan.request.prefix)
        edits = [
            edit
            for edit in report.edits
            if edit.start >= begin and self._covered.isdisjoint(range(edit.start, edit.end))
        ]
        changed = apply_edits(self._output, edits)
        if not all(one in changed for one in self.plan.request.must if one in self._output):
            edits = []
        self._edits += edits
        whole = len(edits) == len(report.edits)
        self.issues += [Issue("item", text, repaired=whole) for text in report.repaired]
        self.lost = report.lost

    def _put_missing(self) -> None:
        """Put in what was taken out, and at last what is missing."""
        cut, offsets = dict(self.plan.cut), OffsetsAfter(self.plan.edits)
        inserted = "".join(edit.text for edit in self._edits)
        symbols = [
            number
            for number in self.missing_symbols
            if self.plan.items[number].kind == "symbol"
            or not says_sign(self.plan.items[number].text, self._output + inserted)
        ]
        for number in (*self.failed_items, *symbols):
            item = self.plan.items[number]
            touches = _touches(self.plan.text, item.start, item.end)
            cut[number] = CutItem(self._write(number), offsets[item.start], touches, item.kind)
            if number in self.failed_items:
                self.issues.append(Issue("item", item.text, repaired=item.kind != "number"))
        for number, one in list(cut.items()):
            if self.plan.items[number].kind == "number":
                self.issues.append(Issue("item", self.plan.items[number].text))
                cut[number] = replace(one, text=self._write(number))
        items = [cut[number] for number in sorted(cut)]
        for token in self.lost:
            touches = _touches(self.plan.text, token.start, token.end)
            text = localize_number(token.text, self._languages)
            items.append(CutItem(text, offsets[token.start], touches, "number"))
            self.issues.append(Issue("item", token.text))
        items.sort(key=lambda one: one.at)
        changed = [(edit.start, edit.end) for edit in self._edits]
        blocked = sorted(span for span in {*self._taken, *changed} if span[1] - span[0] > 1)
        for edit in place_items(self._bare, self._output, items, self._found.alignment):
            place = self._move_out(edit.start, blocked)
            end = edit.end if place == edit.start else place
            self._edits.append(Edit(place, end, edit.text))

    def _move_out(self, place: int, blocked: Spans) -> int:
        """Return a place that is not inside what is replaced or kept."""
        last = bisect_left(blocked, (place, 0)) - 1
        if last >= 0 and place < blocked[last][1]:
            start, end = blocked[last]
            return start if place - start <= end - place else end
        return max(place, min(len(self.plan.request.prefix), len(self._output)))

    @property
    def translation(self) -> Translation:
        """Return the translation with everything in its place."""
        if not self._edits and not self.plan.edits:
            return replace(self._found, alternatives=())
        pairs: tuple[tuple[int, int], ...] = ()
        if self._found.alignment:
            sources = words_before(self.plan.text, self.plan.edits)
            targets = words_after(self._output, self._edits)
            pairs = tuple(
                sorted(
                    {
                        (sources[s], targets[t])
                        for s, t in self._found.alignment
                        if s < len(sources) and t < len(targets)
                    }
                )
            )
        text = _SPACES.sub(" ", apply_edits(self._output, self._edits)).strip(" ")
        return replace(self._found, text=text, alignment=pairs, alternatives=())


def _ask(request: Request, plan: ProtectedText | None, attempt: int) -> Request:
    """Return the request for a text as the model gets it, and for an alignment if that helps."""
    if plan is None:
        return request
    bare = plan.bare
    helps = attempt == _ATTEMPTS - 1 or any(
        cut.kind == "tag" or (_LETTER.search(bare[: cut.at]) and _LETTER.search(bare[cut.at :]))
        for cut in plan.cut.values()
    )
    return replace(request, text=bare, align=request.align or helps)


def _free_name(plan: ProtectedText, item: Item, usable: Iterable[str]) -> str:
    """Return a word to stand for an item that none has taken and that does not grow together."""
    before, after = (
        plan.text[max(0, item.start - 1) : item.start],
        plan.text[item.end : item.end + 1],
    )
    taken = plan.stand_ins.values()
    for name in usable:
        if (
            name not in taken
            and not (before and joins(before, name[0]))
            and not (after and joins(name[-1], after))
        ):
            return name
    return ""


def _without_alignment(found: Translation) -> Translation:
    others = tuple(replace(other, alignment=()) for other in found.alternatives)
    return replace(found, alignment=(), alternatives=others)


def _spans(items: Iterable[Item]) -> Spans:
    return [(item.start, item.end) for item in items]


def _touches(text: str, start: int, end: int) -> tuple[bool, bool]:
    return bool(text[max(0, start - 1) : start].strip()), bool(text[end : end + 1].strip())

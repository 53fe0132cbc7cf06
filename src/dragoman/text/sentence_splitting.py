"""`sentence_spans` says where each sentence of a paragraph begins and ends.

It is written here because no kept library reaches the goal: pysbd is slow, unmaintained and without
Korean, and the neural splitters bring a runtime of their own. A point is judged by the word before
it and the word after it (`abbreviations.py` holds the words), a mark of a script without capitals
by its quotation marks and brackets. All looks around a mark are of bounded length, so that the time
is in proportion to the text.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.text.abbreviations import SentenceWords, sentence_words
from dragoman.text.languages import primary_code
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.scripts import CHINESE_AND_JAPANESE

_FULL_WIDTH: Final = "。！？｡"
_STRONG: Final = "!?؟۔।॥։።፧။៕។⁇⁈⁉‼"
_MARKS: Final = _FULL_WIDTH + _STRONG + ".…‥．"
_CLOSING: Final = "'”’»«›‹)]}）」』】〉》〕］｝*_~`"
_FULL_WIDTH_SET, _STRONG_SET = frozenset(_FULL_WIDTH), frozenset(_STRONG)
_NEVER_FIRST: Final = ",;:，；：、)]}）」』】》”" + _MARKS
_OPENING: Final = "\"'“„«»‘‚‹›([{（「『【〈《〔［｛¿¡*_~`–—―-<"
_OPENER: Final = dict(
    zip("”’»«)]}）」』】〉》〕］｝\"'", "“‘«»([{（「『【〈《〔［｛\"'", strict=True)
)

_END: Final = (
    r"(?<![%s])[%s](?:[%s]"
    r"|\[\d{1,3}\]|\]\([^\s()]{1,200}\)|</\w{1,12}>"  # references, links, closing tags
    rf"|[{re.escape(_CLOSING)}]"
    r'|(?<!")"|[“‘](?!\w)'  # these may open as well
    r"|[ \xa0\u202f]»(?=[\s.,;:!?)]|$)"  # « Oui ! »
    r"|[ \xa0]\.(?=[ \xa0.]|$))*"  # . . .
    r"|(?<=[다요죠까네])(?:[~～]++| ?\^\^| ?[ㅋㅎㅠㅜ]{2,}+)(?=\s|$)"  # 좋아요~, 좋아요 ㅋㅋ
    r"|(?<=[\u3040-\u30ff])[♪♫☆★♡]++(?=\s|$)"  # です♪
)


def _end_pattern(marks: str) -> re.Pattern[str]:
    """Return what finds marks with all that closes after them; it starts at a run's first mark."""
    escaped = re.escape(marks)
    return lazy_pattern(_END % (escaped, escaped, escaped))


_ENDS: Final = _end_pattern(_MARKS)
_GREEK_ENDS: Final = _end_pattern(_MARKS + ";\u037e")
_SPACE: Final = lazy_pattern(r"\s+")
_NEXT: Final = lazy_pattern(rf"(?:<\w[^<>]{{0,100}}>|[{re.escape(_OPENING)}])*\s?")
_WORD: Final = lazy_pattern(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_EMOJI: Final = (
    "[\U0001f000-\U0001faff☀-⛿✅✊-✍✨❄❌❎❓-❗❣❤⭐⭕\ufe0f\u200d\U000e0020-\U000e007f]"
)
_TAIL: Final = lazy_pattern(
    rf"(?:\s*(?:{_EMOJI}+|[:;=]['’]?-?[()DPpdO3/|\\\]\[*]+(?=\s|$)|<3+(?=\s|$)"
    r"|[xX]D+(?=\s|$)|[ㅋㅎㅠㅜㄷ]{2,}~*|\^_?\^;*|ㅡ_?ㅡ|[（(][笑泣汗爆][)）]|[wｗ]+(?=\s|$)))+"
)
"""What people write after a mark, and mean with the sentence before it."""
_STARTS_WITH_EMOJI: Final = lazy_pattern(rf"\s*{_EMOJI}")

_LIST_MARKER: Final = lazy_pattern(
    r"[(（]?(?:\d{1,3}(?:\.\d{1,3})*|[a-zA-Z가나다라마바사아자차카타파하]|[ivxIVX]{1,4}|[一二三四五六七八九十]{1,3})"
)
_INITIALS: Final = lazy_pattern(r"(?:[^\W\d_]\.[ \xa0]?-?){1,6}[^\W\d_]$")
_ROMAN: Final = lazy_pattern(r"[IVXLC]+")
_NUMBER: Final = lazy_pattern(r"\d{1,3}(?:[-–/]\d{1,3})?")
_DATE: Final = lazy_pattern(r"\d{4}\. ?\d{1,2}\. ?\d{1,2}$")
_SHORT_NUMBER_NEXT: Final = lazy_pattern(r"\d{1,2}\.(?!\d)")
_NO_VOWELS: Final = lazy_pattern(r"[bcdfghj-np-tv-xzß]{2,5}", re.IGNORECASE)
_BEFORE_KEY: Final = lazy_pattern(
    r"(?:^|\s)-{1,2}$"
    r"|(?:\b(?:ctrl|control|strg|alt|altgr|cmd|command|shift|umschalt|win|fn)|[⌘⌥⇧])\s?[+-]\s?$",
    re.IGNORECASE,
)
_ELIDED: Final = lazy_pattern(r"[^\W\d_]{1,2}['’](?=\w)")
_UNITS: Final = frozenset(
    ("kg", "km", "cm", "mm", "ml", "kwh", "mhz", "ghz", "kb", "mb", "gb", "tb")
)
_CHAT_WORDS: Final = frozenset(("brb", "hmm", "np", "pls", "pst", "thx"))
"""Neither have a vowel, and yet they are no abbreviations that need a point."""
_CHAT_FIRST: Final = frozenset(
    (
        *("brb", "btw", "bye", "ciao", "cu", "cya", "danke", "haha", "hehe", "hihi", "hmm", "idk"),
        *("jk", "lg", "lmao", "lol", "merci", "mfg", "np", "ok", "okay", "omg", "pls", "plz"),
        *("thanks", "thx", "ttyl", "ty", "vg", "yay", "yep", "yup"),
    )
)
"""People begin a sentence with these in lower case, in whatever case they write otherwise."""
_CONJUNCTIONS: Final = frozenset(("and", "but", "et", "mais", "oder", "or", "ou", "und"))
_CASUAL_AND_CAPITAL: Final = lazy_pattern(r"[.!?]\s+[^\W\d_a-zà-ÿ]")
_NAMES_WITH_MARKS: Final = frozenset({"Yahoo", "Jeopardy", "Yum", "モーニング娘"})

_POINT_AFTER_BRACKET: Final = lazy_pattern(r"[)\]][\"'”’»]?\.$")
"""Within a run of marks this is the sentence's own point, whatever stands in the bracket."""

_HANGUL: Final = lazy_pattern("[가-힣]")
_KOREAN_QUOTING: Final = lazy_pattern(
    r"\s?(?:이?라고|이?라는|이?라며|이?라면서|이?란|하고|하며|하면서|하는|하던|했다|하자|고)(?![가-힣]{3})"
)
"""What goes on after a Korean quotation, with or without a space."""
_KOREAN_FINAL: Final = lazy_pattern("[가-힣](?:다|요|까|죠|네|음|함|임|됨|듯|어|야|해|지|군)$")
"""A word that ends so may end a sentence before an ellipsis."""
_KOREAN_SURELY_FINAL: Final = lazy_pattern("[가-힣](?:다|요|까|죠|니|해|어|야)$")
_JAPANESE_FINAL: Final = lazy_pattern("(?:です|ます|ません|でした|ました|ください)$")
_JAPANESE_QUOTING: Final = lazy_pattern(
    r"って|と(?!ても|ころ|にかく|りあえず|もだち|き|なり|う|お)|という"
)
_JAPANESE_PARTICLE: Final = lazy_pattern(
    r"って|と(?!ても|ころ|にかく|りあえず|もだち|き|なり|う|お)|の(?!び)|が(?!ん)|を|へ(?!え)"
    r"|は(?!い|じ|や|る)|に(?!こ|ほ)|で(?!も|は)|も(?!う|し|ち|っと)|や(?!っ|は|め)|など|だ(?!か|っ|が|け)"
    r"|です|から|まで|より"
)
_CHINESE_GOING_ON: Final = lazy_pattern(
    r"(?:[^\W\d_]{1,6}?(?:[说説說问問喊叫道答想]|回答|笑道|喊道))(?=[，。,：:！!]|道|着|著)|[的之等和与與或吗嗎呢了]"
)
_CJK: Final = lazy_pattern(f"[{CHINESE_AND_JAPANESE}]")
_WINDOW: Final = 300
"""An opening quotation mark or bracket is looked for so far back, and a closing one so far on."""


def ends_sentence(text: str, *, also: str = "") -> bool:
    """Return whether a text ends with a mark of a sentence's end, or with one of `also`.

    Quotation marks and brackets may close after it.
    """
    last = text.rstrip(_CLOSING + '"“')[-1:]
    return last != "" and last in _MARKS + also


def sentence_spans(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """Return where the sentences of a paragraph begin and end, without the white space around them.

    Every character that is not white space lies in exactly one span. Line ends count as spaces.
    """
    return _Paragraph(text, language).split()


class _Paragraph:
    """Walk through the marks of one paragraph; `_start` is where the present sentence begins."""

    def __init__(self, text: str, language: str | None) -> None:
        self._text = text
        self._words: SentenceWords = sentence_words(language)
        self._language = primary_code(language)
        self._start = 0
        self._casual: bool | None = None
        self._quotes, self._quotes_counted = 0, 0

    def split(self) -> list[tuple[int, int]]:
        text = self._text
        spans: list[tuple[int, int]] = []
        end_of_text = len(text.rstrip())
        self._start = len(text) - len(text.lstrip())
        tails = not _STARTS_WITH_EMOJI.match(text)
        pattern = _GREEK_ENDS if self._language == "el" else _ENDS
        for match in pattern.finditer(text, self._start, end_of_text):
            at, end = match.span()
            if at < self._start or end >= end_of_text:
                continue
            if tails and (tail := _TAIL.match(text, end, end_of_text)):
                end = tail.end()
                if end == end_of_text:
                    continue
            space = _SPACE.match(text, end)
            if space is None and not self._may_end_without_space(at, end, match[0]):
                continue
            after = space.end() if space else end
            if not self._has_words(end):
                continue
            if self._ends(at, match.end(), match[0], after):
                spans.append((self._start, end))
                self._start = after
        if spans and not self._has_words(end_of_text):
            self._start = spans.pop()[0]
        if self._start < end_of_text:
            spans.append((self._start, end_of_text))
        return spans

    # --- without a space ---

    def _may_end_without_space(self, at: int, end: int, run: str) -> bool:
        """Return whether a mark may end a sentence though no space follows; in doubt it may not."""
        text = self._text
        if not _FULL_WIDTH_SET.isdisjoint(run):
            return True
        before, after = text[at - 1 : at], text[end]
        if run[0] == "…":
            return bool(_JAPANESE_FINAL.search(text[max(0, at - 5) : at]) and _CJK.match(after))
        if not before.isalpha() or not after.isalpha():
            return bool(end > at + len(run) and after.isalpha())  # an emoji stands between them
        if _CJK.match(before) and _CJK.match(after):
            return (run == "." or set(run) <= {"!", "?"}) and bool(
                _CJK.match(text[at - 2 : at - 1])
            )
        word = self._word_before(at)
        if _HANGUL.match(before) and _HANGUL.match(after):
            return run[0] in "!?" or (
                run == "." and bool(_KOREAN_SURELY_FINAL.search(word)) and "." not in word
            )
        if (
            len(run) > 1
            or not before.islower()
            or len(word) < 2
            or re.search(r"[./@:_\\#=&]", word)
        ):
            return False
        found = _WORD.match(text, end, end + 30)
        if not found or not after.isupper() or not (found[0] == "I" or found[0][1:].islower()):
            return False
        if text[found.end() : found.end() + 1] not in (" ", ",", "\xa0", ""):
            return False
        if run in "!?":
            return word not in _NAMES_WITH_MARKS
        return found[0].lower() in self._words.first and run == "."

    # --- the decision ---

    def _ends(self, at: int, end: int, run: str, after: int) -> bool:
        """Return whether the sentence ends with the marks at `at`; the next begins at `after`."""
        text = self._text
        if text[after] in _NEVER_FIRST and not (
            text[after] == "." and text[after + 1 : after + 2].isalnum()
        ):
            return False
        next_at = _NEXT.match(text, after).end()  # type: ignore[union-attr]  # matches anything
        first = text[next_at : next_at + 1]
        if first and first in _NEVER_FIRST and next_at > after:
            return False
        if not _FULL_WIDTH_SET.isdisjoint(run):
            return self._ends_without_case(at, end, run, after)
        if first.isalpha() and not first.isupper() and not first.islower():
            return self._ends_before_caseless(at, end, run, after)
        lower = first.islower() and not self._is_mixed_case(next_at)
        if not _STRONG_SET.isdisjoint(run):
            ends = self._strong_ends(at, run, next_at, lower)
        elif run[0] in "…‥" or run.startswith(("..", ". .")):
            word = self._word_before(at).lower()
            ends = not lower and not first.isdigit() and word not in self._words.unfinished
        elif _POINT_AFTER_BRACKET.search(run):
            ends = not lower
        else:
            ends = self._point_ends(at, next_at, lower, run)
        return ends and not self._closes_inner_bracket(at, run)

    def _strong_ends(self, at: int, run: str, next_at: int, lower: bool) -> bool:
        """Return whether "!" or "?" ends the sentence; in lower case it mostly goes on."""
        if lower:
            if run[-1] not in _STRONG:
                return False
            word = self._next_word(next_at)
            loud = sum(mark in _STRONG for mark in run) > 1 and word not in _CONJUNCTIONS
            begins = word in self._words.casual_first or word in _CHAT_FIRST
            return loud or begins or self._is_casual()
        word = self._word_before(at)
        if word in _NAMES_WITH_MARKS:
            return self._next_word(next_at) in self._words.first
        return not (run[-1] in "\"'”’" and self._says_who_speaks(next_at))

    def _says_who_speaks(self, at: int) -> bool:
        """Return whether something like "Tom said" or "I asked" follows a quotation."""
        words = self._text[at : at + 60].split(maxsplit=3)[:3]
        return any(
            word.strip(".,;:") in self._words.speech_verbs
            for word in words[1:]
            if words[0][0].isupper()
        )

    def _point_ends(self, at: int, next_at: int, lower: bool, run: str) -> bool:
        """Return whether a single point ends the sentence, by the words beside it."""
        words, text = self._words, self._text
        word = self._word_before(at)
        if self._is_list_marker(at, word, run):
            return False
        first = text[next_at : next_at + 1]
        initials = _INITIALS.search(text, max(self._start, at - 20), at)
        whole = "".join(initials[0].split()) if initials else word
        kind = self._kind(whole, word, at)
        if lower:
            if kind or (len(word) < 2 and not word.isdigit()):
                return False
            following = self._next_word(next_at)
            return self._is_casual() or (
                len(word) > 2 and (following in words.casual_first or following in _CHAT_FIRST)
            )
        if kind == "never":
            return False
        following = self._next_word(next_at)
        if kind == "number" and len(word) == 1 and first.isalpha():
            kind = "maybe"
        if kind == "number":
            return not (
                first.isdigit()
                or first in "§#"
                or (len(following) == 1 and following != "i")
                or (word[:1].isupper() and self._is_before_number(next_at))  # Tel. No. 5
            )
        if first.isdigit():
            digits = word.rsplit("(", 1)[-1]
            if (
                digits.isdigit()
                and len(digits) in (1, 2, 4)
                and _SHORT_NUMBER_NEXT.match(text, next_at)
            ):
                return False
            return kind != "maybe" and not _DATE.search(text, max(self._start, at - 14), at)
        if kind == "maybe":
            return following in words.first and not self._is_initial(next_at)
        if word[:1].isdigit() and words.after_ordinals and _NUMBER.fullmatch(word):
            return not self._is_ordinal(at - len(word), following)
        if words.after_ordinals and _ROMAN.fullmatch(word):
            return following in words.first
        return True

    def _kind(self, whole: str, word: str, at: int) -> str:
        """Return what sort of abbreviation stands before the point at `at`, or nothing.

        `whole` is the word with what belongs to it: "z.B" where the word is "B".
        """
        words = self._words
        for candidate in (whole, whole.lower()) if len(whole) > 1 else (whole,):
            for name, listed in (
                ("never", words.never_last),
                ("number", words.before_numbers),
                ("maybe", words.may_be_last),
                ("last", words.last),
            ):
                if candidate in listed:
                    return name
        if whole != word and len(whole) > 1:
            return "maybe"  # J. R. R., U.N.
        part = re.split(r"[-–/.]", word)[-1]
        if len(part) == 1 and self._is_key_or_switch(at - len(part)):
            return ""
        if len(part) == 1 and part.isalpha() and (len(word) == 1 or "." in word):
            return "" if self._word_before_is(at - len(word), words.lettered) else "maybe"
        if any(word.endswith(ending) for ending in words.endings):
            return "maybe"
        if part and part != word and (kind := self._kind(part, part, at)) != "last":
            return kind
        if (
            _NO_VOWELS.fullmatch(word)
            and not word.isupper()
            and word.lower() not in _UNITS | _CHAT_WORDS
        ):
            return "maybe"
        return ""

    def _is_key_or_switch(self, at: int) -> bool:
        """Return whether the letter at `at` is that of a key, "Ctrl + U", or a switch, "-t"."""
        return bool(_BEFORE_KEY.search(self._text[max(self._start, at - 15) : at]))

    def _is_ordinal(self, at: int, following: str) -> bool:
        """Return whether the number at `at` with its point is an ordinal, as in German."""
        words = self._words
        if following in words.after_ordinals:
            return True
        if following in words.first:
            return False
        return self._word_before_is(at, words.before_ordinals)

    def _word_before_is(self, at: int, listed: frozenset[str]) -> bool:
        """Return whether the word that ends before `at` is one of these."""
        before = self._text[max(self._start, at - 25) : at].split()
        return bool(before) and before[-1].lower() in listed

    # --- scripts without capitals ---

    def _ends_before_caseless(self, at: int, end: int, run: str, after: int) -> bool:
        """Decide where a letter without case follows, after marks that are not of full width."""
        text = self._text
        if run[0] in "…‥" or run.startswith(".."):
            word = self._word_before(at)
            if not (_KOREAN_FINAL.search(word) or _JAPANESE_FINAL.search(word)):
                return False
        elif run[0] == ".":
            word = self._word_before(at)
            if self._is_list_marker(at, word, run):
                return False
            if word.isascii() and word:
                if word[-1].isdigit():
                    if _DATE.search(text, max(self._start, at - 14), at):
                        return False
                else:
                    kind = self._kind(word, word, at)
                    if kind == "never":
                        return False
                    if len(word) == 1 and word.isupper():
                        previous = text[max(self._start, at - 4) : at - 1].rstrip()
                        if not previous or previous.endswith("."):
                            return False
                    elif kind == "maybe" and self._next_word(after) not in self._words.first:
                        return False
        return self._ends_without_case(at, end, run, after)

    def _ends_without_case(self, at: int, end: int, run: str, after: int) -> bool:
        """Decide by quotation marks, brackets and what goes on after them."""
        text = self._text
        if self._word_before(at) in _NAMES_WITH_MARKS:
            return False
        directly = after == end
        last = max(map(run.rfind, _MARKS)) + 1
        closers = [one for one in run[last:] if one in _OPENER]
        if closers:
            if _KOREAN_QUOTING.match(text, end) or (directly and _HANGUL.match(text, after)):
                return False
            if directly and _JAPANESE_PARTICLE.match(text, after):
                return False
            if directly and closers[0] in '”’」』"' and _CHINESE_GOING_ON.match(text, after):
                return False
            return not self._opens_inside(closers[0], at)
        if directly and run[-1] in "？?！!" and _JAPANESE_QUOTING.match(text, after):
            return False
        if run[-1] in "?!" and _KOREAN_QUOTING.match(text, after) and directly:
            return False
        return not self._is_inside_quotation_that_goes_on(at + last, end)

    def _opens_inside(self, closer: str, at: int) -> bool:
        """Return whether what closes here opened in the midst of the sentence, with no colon."""
        text = self._text
        opened = text.rfind(_OPENER[closer], max(self._start, at - _WINDOW), at)
        if opened <= self._start:
            return False
        return text[max(0, opened - 2) : opened].rstrip()[-1:] not in tuple(",:：，—–" + _MARKS)

    def _is_inside_quotation_that_goes_on(self, at: int, end: int) -> bool:
        """Return whether a quotation is open here, and a sentence goes on after it."""
        text = self._text
        low = max(self._start, at - _WINDOW)
        for opener, closer in ("「」", "『』", "“”", "‘’"):
            opened = text.rfind(opener, low, at)
            if opened >= 0 and text.rfind(closer, opened, at) < 0:
                return self._goes_on_after(text.find(closer, end, end + _WINDOW))
        self._quotes += text.count('"', self._quotes_counted, at)
        self._quotes_counted = at
        if self._quotes % 2:
            opened = text.rfind('"', low, at)
            if opened >= 0:
                return self._goes_on_after(text.find('"', end, end + _WINDOW))
        return False

    def _goes_on_after(self, closed: int) -> bool:
        """Return whether a sentence goes on after the quotation mark that closes at `closed`."""
        text = self._text
        if closed < 0:
            return False
        follows = closed + 1
        if _KOREAN_QUOTING.match(text, follows) or _HANGUL.match(text, follows):
            return True
        return bool(_JAPANESE_PARTICLE.match(text, follows))

    # --- looking around ---

    def _has_words(self, end: int) -> bool:
        """Return whether the sentence up to `end` holds more than marks; a long one surely does."""
        return end - self._start > 20 or any(map(str.isalnum, self._text[self._start : end]))

    def _is_list_marker(self, at: int, word: str, run: str) -> bool:
        """Return whether the sentence so far is something like "1." or "b."."""
        at_start = at - len(word) <= self._start + 1
        return at_start and run == "." and _LIST_MARKER.fullmatch(word) is not None

    def _closes_inner_bracket(self, at: int, run: str) -> bool:
        closer = next((one for one in run if one in ")]）"), "")
        if not closer or run[-1] == ".":  # the sentence's own point follows the bracket
            return False
        return "[" not in run and self._opens_inside(closer, at)

    def _word_before(self, at: int) -> str:
        """Return the characters before a mark back to a space, without what opens before them."""
        piece = self._text[max(self._start, at - 40) : at]
        word = piece.rsplit(None, 1)[-1] if piece and not piece[-1].isspace() else ""
        word = word.lstrip(_OPENING)
        elided = _ELIDED.match(word)
        return word[elided.end() :] if elided else word

    def _next_word(self, at: int) -> str:
        found = _WORD.match(self._text, at, at + 30)
        return found[0].lower().replace("’", "'") if found else ""

    def _is_before_number(self, at: int) -> bool:
        """Return whether an abbreviation stands here that a number follows."""
        word = self._next_word(at)
        return word in self._words.before_numbers and self._text[at + len(word) :][:1] == "."

    def _is_initial(self, at: int) -> bool:
        return self._text[at + 1 : at + 2] == "."

    def _is_mixed_case(self, at: int) -> bool:
        """Return whether a word such as iPhone or eBay stands here."""
        found = _WORD.match(self._text, at, at + 30)
        return found is not None and not found[0].islower()

    def _is_casual(self) -> bool:
        """Return whether the text was written without capitals where sentences begin."""
        if self._casual is None:
            letter = re.search(r"[^\W\d_]", self._text)
            self._casual = (
                letter is not None
                and letter[0].islower()
                and not _CASUAL_AND_CAPITAL.search(self._text)
            )
        return self._casual

"""Running English text is cut into the words of a treebank: "They don't." is They, do, n't and ".".

Nothing is rewritten, quotes and brackets least of all: the words joined are the text without its
white space.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final


def split_words(text: str, *, hyphens_apart: bool = True) -> list[str]:
    """Cut a line into words as a Penn-style treebank does, in time linear in the text.

    With `hyphens_apart` wild-type is three words, and so is and/or, but non-linear is one: so have
    it OntoNotes, CRAFT and GUM. Without, all three are one word, as in the Wall Street Journal
    part. Every character but white space is in some word, control characters too.
    """
    return _words(hyphens_apart).findall(text)


# The patterns are verbose, capture nothing, and go back over a few characters at most. The first
# that matches makes the next word.

_MARK: Final = (  # ends a word of letters unless a rule says otherwise
    r"!-/:-@\[-^`{-~¡-©«¬¯-±´¶-¸»¿×÷"  # ASCII without the low line, Latin-1
    r"\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f"
    r"\u3001-\u3004\u3008-\u3020\u3030\ufe30-\ufe6f"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe0-\uffee"
    r"\U0001f000-\U0001faff"
)
_LETTER: Final = rf"[^\s{_MARK}]"  # digits and accents are letters here
_NO_MORE: Final = rf"(?!{_LETTER})"
_APOSTROPHE: Final = "['’]"
_HYPHEN: Final = "[-‐‑–]"

_ADDRESSES: Final = rf"""
    # of a page or a paper, without the punctuation after it and with brackets in pairs only
    (?: (?:https?|ftp):// | www\.(?={_LETTER}) | (?:doi:)?10\.\d{{4,9}}/
      | (?<![\w.@-]) (?:[a-z\d-]{{1,63}}+\.){{1,8}} (?:com|edu|gov|info|net|org|uk)/ )
    (?: [\w/=&\#%~@+-]++ | [.,:;!?'*$]++(?=[\w/=&\#%~@+-]) | \([^\s()]*+\) )+
    # of a person; tried only where one can start, or many hyphens would take long
  | (?<![\w.+-]) [\w.+-]++ @ [\w-]++ (?:\.[\w-]++)+
  | (?<![\w@\#]) [@\#] [^\W\d]\w*+
"""

_PICTURE: Final = r"[\u2190-\u2bff\U0001f000-\U0001faff]"
_VARIED: Final = r"[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*+"
_EMOJI: Final = rf"""
    [\U0001f1e6-\U0001f1ff]{{2}}
  | {_PICTURE} {_VARIED} (?: \u200d {_PICTURE} {_VARIED} )*
  | (?<!\S) (?: [:;=] ['’]? -? [()DPO|/\\] | <3 ) (?!\S)
"""

_CLITIC: Final = rf"(?i: {_APOSTROPHE} (?:s|re|ve|ll|d|m) {_NO_MORE} )"
_SHORT_FORMS: Final = rf"""
    {_CLITIC}
  | (?i: (?: ai|are|ca|could|dare|did|do|does|had|has|have|is|may|might|must|need|ought|sha|should
           | was|were|wo|would ) (?= n{_APOSTROPHE}t {_NO_MORE} )
       | n{_APOSTROPHE}t {_NO_MORE}
       | can (?= not {_NO_MORE} )
       | (?:gon|wan) (?= na {_NO_MORE} )
       | got (?= ta {_NO_MORE} )
       | (?:gim|lem) (?= me {_NO_MORE} )
       | more (?= {_APOSTROPHE}n {_NO_MORE} )
         # a space is between them where they have been split before
       | {_APOSTROPHE}t (?= \s*+ (?:is|was) {_NO_MORE} )
       | y{_APOSTROPHE} (?= \s*+ all {_NO_MORE} )
       | d{_APOSTROPHE} (?= \s*+ ye {_NO_MORE} )
         # 'em, the '60s, rock 'n' roll
       | [‘'’] (?: \d\ds? | bout | cause | cuz | em | neath | till? ) {_NO_MORE}
       | {_APOSTROPHE}n{_APOSTROPHE}? {_NO_MORE} )
"""

_PERIOD: Final = rf"\. (?! \. | {_LETTER} )"
_LINE_GOES_ON: Final = r"""(?! (?: ["'”’»)\]}] | [^\S\n] )* (?: \n | \Z ) )"""
_ABBREVIATIONS: Final = rf"""
    [^\W\d_]{{1,3}} (?:\.[^\W\d_]{{1,3}})+ {_PERIOD}
  | (?: al | [Aa]pprox | ca | [Cc]f | [Ee]tc | v | viz | vs
      | Mr | Mrs | Ms | Mx | Drs? | Prof | Mlle | Mme | Jr | Sr | Inc | Corp | Ltd | Bros
    ) {_PERIOD}
    # at the end of a line these are words
  | (?: [A-HJ-Z] | Figs? | Eqs? | Refs? | St | Mt | Ft | Co | Gen | Col | Lt | Sgt | Capt | Cmdr
      | Maj | Adm | Rev | Hon | Gov | Sen | Rep | Pres | Supt | Ave | Blvd | Rd | Dept | Univ
      | Assoc | Jan | Feb | Mar | Apr | Jun | Jul | Aug | Sept? | Oct | Nov | Dec | Mon | Tues?
      | Wed | Thu | Thurs? | Fri | Sat | Ala | Ariz | Ark | Calif | Colo | Conn | Del | Fla | Ga
      | Ill | Ind | Kan | Ky | La | Md | Mass | Mich | Minn | Miss | Mo | Neb | Nev | Okla | Ore
      | Pa | Tenn | Tex | Va | Vt | Wash | Wis
    ) {_PERIOD} {_LINE_GOES_ON}
    # and these before anything but a number, 5 or SC-5
  | (?i: art | c | cat | ch | chr | eqs? | figs? | nos? | pp? | refs? | sec | vols? )
    {_PERIOD} (?= \s*+ [A-Z\#]{{0,6}} \s*+ -? \s*+ \d )
"""

_NUMBERS: Final = rf"""
    \d{{4}}-\d\d-\d\d {_NO_MORE}
  | \d{{1,2}} / \d{{1,2}} / \d{{2,4}} {_NO_MORE}
  | (?<![\d:]) \d{{1,2}} (?: :[0-5]\d ){{1,2}} (?! [\d:] | ,\d )
  | (?<![\d/]) \d{{1,2}} / \d{{1,2}} (?! {_LETTER} | / | ,\d )
  | (?<!{_LETTER}) (?<![.)\]]) \.\d++
    # of a section, at the start of its line
  | (?<![^\n]) \d{{1,2}} (?:\.\d{{1,2}})* {_PERIOD} {_LINE_GOES_ON}
  | (?:US|NZ|HK|[AC])\$
  | °[CFK] {_NO_MORE}
"""

# O'Brien, R&D, E13.5, 1,000; but 3,4 is a list
_SIMPLE: Final = rf"""
    {_LETTER}++
    (?: (?: \. | (?!{_CLITIC})['’‘] | & | (?<=\d),(?=\d{{3}}(?!\d)) ) {_LETTER}++ )*
"""
# Ca2+, C++, but Brca2+/+ is a genotype; Foo., is an abbreviation
_ENDING: Final = r"(?: \+{1,2}+ (?![\w/]) | \. (?=\s*+[,;:]) )?"
_PREFIX: Final = rf"""
    (?i: anti | auto | bi | co | counter | cross | extra | hetero | inter | intra | macro | micro
       | mid | mini | multi | non | over | peri | post | pre | pro | pseudo | re | semi | sub
       | super | ultra | un
    ) {_HYPHEN} (?={_LETTER}) (?! (?:and|or|to){_HYPHEN} )
"""
_APART: Final = rf"""
    (?: [Ee]{_HYPHEN}mails? | X{_HYPHEN}rays? ) {_NO_MORE}
  | (?:{_PREFIX})? {_SIMPLE}
    (?: {_HYPHEN} (?:fold|most|wise) {_NO_MORE}
      | - (?! [^\s—–] | \s++ (?:and|or|to) {_NO_MORE} )  # unfin- unfinished; one - and two-fold
      | {_ENDING} )
"""
_COMPOUND: Final = rf"{_SIMPLE} (?: \.? (?:{_HYPHEN}|/) {_SIMPLE} )+ (?: -(?!-) )?"
_WHOLE: Final = rf"{_SIMPLE} (?: -(?!-) | {_ENDING} )"

_MARKS: Final = rf"""
    '' | `` | -++ | –++ | —++ | \.++ | …++ | \*++ | \+++ | =++ | ~++ | \#++
  | [{_MARK}] [\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f]*+
"""


@cache
def _words(hyphens_apart: bool) -> re.Pattern[str]:
    inner = (_SHORT_FORMS, _ABBREVIATIONS, _NUMBERS)
    words = (*inner, _APART) if hyphens_apart else (_COMPOUND, *inner, _WHOLE)
    return re.compile("|".join((_ADDRESSES, _EMOJI, *words, _MARKS)), re.VERBOSE)

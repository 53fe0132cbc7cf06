"""Running text cut into the words of a treebank."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.phrasebook import generate
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.tree import leaves
from dragoman.trees.word_tokenizer import split_words

# Each with a space where the words part and the text has none, "|" where it has one.
CUTS = [
    "The|dog|barks .",
    "“ Stop ! ”|she|said ,|\" ' Why|? ' \"|( see|[ 3 ] ;|{ b } ) :",
    # short forms
    "They 're|sure|I 'd 've|said|we|do n't ,|ca n't|and|WO N'T .",
    "The|dog 's|bone ,|the|dogs '|bones ,|the|U.S. 's|and|it 's .",
    "'T is ,|I|can not ,|gon na ,|wan na ,|got ta ,|gim me ,|lem me ,|y' all ,|d' ye ,|more 'n",
    "O'Brien ,|d'Alembert|and|L'Enfant|at|five|o'clock ,|Jūsan'ya ,|Hawai‘i ,|Don'ts",
    "give|'em|the|'60s ,|rock|'n'|roll|'til|noon",
    "' hello '|and|' so '",
    # numbers
    "1,000.5|and|1,000,000|but|3 , 4 ,|5 , 10|and|.5 ;|E13.5|and|19p13.2",
    "$ 5|US$ 5|£ 3m|5 %|37 °C|90 °|~ 5|± 3|n = 4|P < 0.05",
    "at|10:30|on|2024-02-29|or|12/25/1999 ,|1/2|cup ,|diluted|1 : 500|or|1 : 10,000",
    # periods
    "Dr.|Smith|of|the|U.S.|Army ,|e.g. ,|J.|Q.|Public|Jr. ,|Ph.D. ,|vs.|Foo|Inc. ,|et|al.|[ 3 ]",
    "in|the|U.S.",
    "apples ,|etc.",
    "vitamin|D .",
    "( vitamin|D . )|\"",
    "( in|Fig.|3 )|and|Figs.|S1|of|No.|7 ,|No.|SC - 100|of|vol.|3",
    "No .|He|said|no .|So|did|I .|It|ends .|It|starts .",
    "Proc .|Natl. ,|Acad. ;",
    "2.1.|Methods",
    "Wait ...|what|… ?|a .. b|-- c --- d — e",
    # compounds
    "wild - type|and / or|1990 – 2000|BMP2 - deficient|Apcs − / −|+ / +|Brca2 + / +|Ca2+|C++",
    "non-linear|co-star|anti-E - cadherin|Pre–war|2-fold|posterior-most|e-mail|X-rays",
    "mid - to - late|one -|and|two - sided|a|th-|three ,|wild ‑ type|non‑linear|e‑mail",
    # addresses and pictures
    "See|http://a.org/b?c=d&e=1.2#f .|Or|( www.b.com/x_(y) ) ,|cra.org/a-b ;|doi:10.1371/a.b-c .",
    "Write|to|a.b-c+d@e-f.co.uk ,|@you ;|#argument|# 1|R&D|AT&T|Smith|&|Sons",
    "👩‍👩‍👧 👍🏽 😀 😀 🇩🇪 🇰🇷 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿|:-)|:)|a : )",
    "** p|*** a|“ ˈlɑ̃fɑ̃ ”|naïve|naïve|हिन्दी|x_y",
]  # fmt: skip


def parts(cut):
    return cut.replace("|", " ").split()


def written(cut):
    return cut.replace(" ", "").replace("|", " ")


@pytest.mark.parametrize("cut", CUTS)
def test_text_is_cut_as_in_a_treebank(cut):
    assert split_words(written(cut)) == parts(cut)


@pytest.mark.parametrize("cut", CUTS)
def test_words_already_apart_stay_as_they_are(cut):
    assert split_words(" ".join(parts(cut))) == parts(cut)


@pytest.mark.parametrize("cut", [cut for cut in CUTS if "@" not in cut and "://" not in cut])
def test_a_curly_apostrophe_is_an_apostrophe(cut):
    cut = cut.replace("'", "’")
    assert split_words(written(cut)) == parts(cut)


@pytest.mark.parametrize(
    "cut",
    [
        "wild-type|and/or|1990–91|the|U.S.-based|one-|and|two-fold|mother-in-law 's|-- yes -- no",
        "non-linear|$ 1.5-billion|O'Brien-Smith|do n't|1,000-strong ,|twenty-five .",
        "so-called -- well-known --- it -- is",
    ],
)
def test_compounds_stay_whole_where_the_treebank_has_them_so(cut):
    assert split_words(written(cut), hyphens_apart=False) == parts(cut)


def test_the_sentences_of_the_phrasebook_have_the_words_of_their_trees():
    for pair in generate("de", "train", 500):
        words = " ".join(leaf.word for leaf in leaves(parse_tree(pair.source_tree)))
        assert split_words(pair.source) == words.replace("cannot", "can not").split()


words = """
    's n't can not gon na http:// www. a.com/ 10.1234/ x@y.z U.S. e.g. Mr Fig No etc and to anti
    fold X-ray y' all 't is 'em '60s 'n d' ye US$ 1,000 10:30 2020-01-01 1/2 .5 :) <3
"""
marks = "-–—./:;,'’‘\"“”()[]+*#@&$%°~=<>!?…`_ \0\u0301\u200b\u200d\ufe0f\u00a0\t\n😀🏽🇩"
fragments = [*words.split(), *marks, *"abAICD15é한", *[" "] * 8]
any_text = st.text() | st.lists(st.sampled_from(fragments), max_size=12).map("".join)
lines = any_text.map(lambda text: text.replace("\n", " "))


@given(any_text, st.booleans())
@example("\0 \x1c\u2028\ud800 \u200b", True)
def test_the_words_joined_are_the_text_without_its_white_space(text, hyphens_apart):
    words = split_words(text, hyphens_apart=hyphens_apart)
    assert "".join(words) == "".join(text.split())
    assert all(words)


@given(lines)
def test_splitting_again_changes_nothing(line):
    words = split_words(line)
    assert split_words(" ".join(words)) == words


def test_every_white_space_separates_and_no_other_character_vanishes():
    characters = [chr(code) for code in range(0x10000)]
    for space in filter(str.isspace, characters):
        assert split_words(f"{space}a{space}b{space}") == ["a", "b"]
    others = [character for character in characters if not character.isspace()]
    assert "".join(split_words(" ".join(others))) == "".join(others)


long_runs = """
    ' a a- a. A.) a@ a.b- 1, 1/ http:// http://a( www. 10.1234/ ( anti- a+ . -
"""


@pytest.mark.slow
@pytest.mark.parametrize("hyphens_apart", [True, False])
@pytest.mark.parametrize("run", [*long_runs.split(), "a. ", "y' ", "A.\n", " ", "😀\u200d"])
def test_a_long_line_takes_no_more_time_than_its_length_asks(run, hyphens_apart):
    for end in ("!", "--"):
        text = run * (40_000 // len(run)) + end
        start = time.process_time()
        split_words(text, hyphens_apart=hyphens_apart)
        assert time.process_time() - start < 1

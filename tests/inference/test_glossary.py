"""A glossary: terms get the translations it gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DataError
from dragoman.inference import Glossary, Translation, Translator
from dragoman.inference.glossary import GlossaryTranslator
from dragoman.inference.translation_types import Request
from dragoman.text.word_boundaries import contains_phrase


def one_line(error: Exception) -> None:
    assert "\n" not in str(error)


def terms(*pairs: tuple[str, str], **options: bool) -> GlossaryTranslator:
    glossary = Glossary([(*pair, number) for number, pair in enumerate(pairs, 1)])
    return GlossaryTranslator(glossary, lambda text: " ".join(text.split()), **options)


def found(text: str, *pairs: tuple[str, str], **options: bool) -> list[tuple[str, list[int]]]:
    return [(m.translation, list(m.words)) for m in terms(*pairs, **options).matches(text)]


def test_a_term_is_found_as_whole_words() -> None:
    assert found("a cat, a caterpillar, a tomcat", ("cat", "Katze")) == [("Katze", [1])]
    assert found("cat-like (cat)!", ("cat", "Katze")) == [("Katze", [0]), ("Katze", [1])]


def test_of_several_terms_at_one_place_the_longest_wins() -> None:
    pairs = ("fire", "Feuer"), ("fire engine", "Löschzug"), ("engine", "Motor")
    assert found("the fire engine and the engine", *pairs) == [("Löschzug", [1, 2]), ("Motor", [5])]


def test_small_letters_match_in_any_case_and_capitals_as_they_are() -> None:
    pairs = ("us", "uns"), ("US", "USA"), ("May", "Mai")
    assert found("Us US us may May", *pairs) == [
        ("uns", [0]),
        ("USA", [1]),
        ("uns", [2]),
        ("Mai", [4]),
    ]


def test_without_spaces_between_words_a_term_is_found_anywhere() -> None:
    assert found("私は猫が好き", ("猫", "cat")) == []
    assert found("私は猫が好き", ("猫", "cat"), source_has_spaces=False) == [("cat", [0])]


def _run(text: str, log_prob: float, alignment: Sequence[tuple[int, int]]) -> Callable[..., object]:
    """A translator that says `text`, and with something it must contain only that."""

    def run(requests: Sequence[Request]) -> list[Translation]:
        return [
            Translation(r.text, " ".join(r.must), 0, (), (), log_prob=log_prob)
            if r.must
            else Translation(r.text, text, 0, (), tuple(alignment), log_prob=-1.0)
            for r in requests
        ]

    return run


def test_what_the_model_says_anyway_is_left_as_it_is() -> None:
    run = _run("der Hund schläft", -2.0, ())
    [one] = terms(("dog", "Hund")).translate([Request("the dog sleeps")], run)  # type: ignore[arg-type]
    assert one.text == "der Hund schläft"


def test_what_costs_the_model_little_is_searched_for() -> None:
    run = _run("der Wauwau schläft", -3.0, ())
    [one] = terms(("dog", "Hund")).translate([Request("the dog sleeps")], run)  # type: ignore[arg-type]
    assert one.text == "Hund"


def test_what_costs_it_much_replaces_the_aligned_words_and_keeps_their_marks() -> None:
    run = _run("der „große Hund“, schläft.", -50.0, [(0, 0), (1, 1), (1, 2), (2, 3)])
    [one] = terms(("dog", "böse alte Köter")).translate([Request("the dog sleeps")], run)  # type: ignore[arg-type]
    assert one.text == "der „böse alte Köter“, schläft."
    assert one.alignment == ((0, 0), (1, 1), (1, 2), (1, 3), (2, 4))


def test_what_is_aligned_with_nothing_is_searched_for_at_any_cost() -> None:
    run = _run("der Hund schläft", -50.0, [(0, 0), (2, 2)])
    [one] = terms(("dog", "Köter")).translate([Request("the dog sleeps")], run)  # type: ignore[arg-type]
    assert one.text == "Köter"


def test_a_replacement_does_not_break_what_else_was_asked_for() -> None:
    run = _run("der Hund schläft", -50.0, [(0, 0), (1, 1), (2, 2)])
    asked = Request("the dog sleeps", must_not=("der Köter",))
    [one] = terms(("dog", "Köter")).translate([asked], run)  # type: ignore[arg-type]
    assert one.text == "Köter"


@pytest.mark.slow
def test_every_term_of_every_line_has_its_translation(reverser: Translator) -> None:
    glossary = Glossary([("dog", "Dackel", 1), ("red cat", "Rotkatze 7", 2), ("the", "eht", 3)])
    lines = ["the old dog sees", "red cat eats the dog", "", "tree", "Dog dog THE"]
    for line, one in zip(
        lines, reverser.translate(lines, glossary=glossary, n_best=2, protect=False), strict=True
    ):
        for each in (one, *one.alternatives):
            wanted = [m.translation for m in reverser._glossary_translator(glossary).matches(line)]
            assert all(contains_phrase(word, each.text) for word in wanted), (line, each.text)
        if one.alignment:
            assert {t for _, t in one.alignment} <= set(range(len(one.text.split())))


@pytest.mark.slow
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pairs=st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), max_size=4),
    more=st.text(max_size=20),
)
def test_any_glossary_works_or_is_refused_in_one_line(
    pairs: list[tuple[str, str]], more: str, reverser: Translator
) -> None:
    line = " ".join(" ".join([*(term for term, _ in pairs), "dog", more]).split())
    try:
        glossary = Glossary([(*pair, number) for number, pair in enumerate(pairs, 1)])
        [one] = reverser.translate([line], glossary=glossary, protect=False)
    except (ConfigError, DataError) as error:
        one_line(error)
        return
    if one.issues:  # what loops is cut, whatever it must contain
        return
    for match in reverser._glossary_translator(glossary).matches(line):
        assert contains_phrase(match.translation, one.text)


# --- files ---


def write(directory: Path, text: str, name: str = "terms.tsv") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_has_terms_comments_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "# ours\n\ncar\tAuto\n  dog \t Hund\ncar\tAuto\n")
    assert [(e.term, e.translation, e.line) for e in Glossary.read(path).entries] == [
        ("car", "Auto", 3),
        ("dog", "Hund", 4),
    ]
    path = write(tmp_path, 'car,Auto\n"salt, pepper","Salz, Pfeffer"\n', "terms.csv")
    assert Glossary.read(path).entries[1].translation == "Salz, Pfeffer"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("car\tAuto\n# no\ncar\tWagen\n", "lines 1 and 3: 'car' is to be 'Auto' and 'Wagen'; keep"),
        ("car Auto\n", "line 1: not a term and its translation with a tab between them"),
        ("a\tb\nc\td\te\n", "line 2: not a term and its translation"),
        ("a\tb\n\tc\n", "line 2: the term is empty; fill it in"),
        ("a\t \n", "line 1: the translation is empty; fill it in"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_its_lines(
    text: str, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=f"terms.tsv, {message}"):
        Glossary.read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Glossary.read(tmp_path / "none.tsv")

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
from dragoman.inference.translation_types import Request, ScoredTranslation
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
        term = match.translation.casefold()  # a sentence begins with a capital
        assert contains_phrase(term, one.text.casefold())


# --- forms ---


def said(
    pair: tuple[str, str],
    source: str,
    translations: dict[str, tuple[str, str]],
    languages: tuple[str, str] = ("en", "de"),
    **asked: tuple[str, ...],
) -> Translation:
    """What becomes of a source; a translation comes with its alignment as Pharaoh writes it."""

    def run(requests: Sequence[Request]) -> list[Translation]:
        found = []
        for request in requests:
            text, alignment = translations.get(request.text, ("?", ""))
            pairs = [one.split("-") for one in alignment.split()]
            links = tuple((int(s), int(t)) for s, t in pairs)
            if request.must != asked.get("must", ()):
                text, links = f"searched {' '.join(request.must)}", ()
            found.append(Translation(request.text, text, 0, (), links, log_prob=-1.0))
        return found

    translator = GlossaryTranslator(
        Glossary([(*pair, 1)]),
        lambda text: " ".join(text.split()),
        source_language=languages[0],
        target_language=languages[1],
    )
    [one] = translator.translate([Request(source, **asked)], run)  # type: ignore[arg-type]
    return one


def matched(text: str, *pairs: tuple[str, str], languages: tuple[str, str]) -> list[str]:
    glossary = Glossary([(*pair, number) for number, pair in enumerate(pairs, 1)])
    translator = GlossaryTranslator(
        glossary, str.strip, source_language=languages[0], target_language=languages[1]
    )
    return [match.translation for match in translator.matches(text)]


@pytest.mark.parametrize(
    ("text", "pair", "languages", "count"),
    [
        ("Birds eat a bird's birdseed", ("bird", "Vogel"), ("en", "de"), 2),
        ("the children of a child", ("child", "Kind"), ("en", "de"), 2),
        ("BIRDS", ("bird", "Vogel"), ("en", "de"), 1),
        ("good news for a new house", ("new", "nouveau"), ("en", "fr"), 1),
        ("he books books on booking", ("book", "Buch"), ("en", "de"), 2),
        ("he booked, is booking and books", ("book", "buchen"), ("en", "de"), 3),
        ("GPUs and a GPU, gpus", ("GPU", "Grafikkarte"), ("en", "de"), 2),
        ("Adam and the Adams family", ("Adam", "Adam"), ("en", "de"), 1),
        ("its US, USs", ("US", "USA"), ("en", "de"), 1),
        ("mit roten Karten, der Roten Karte", ("rote Karte", "red card"), ("de", "en"), 1),
        ("den Vögeln des Vogels im Vogelhaus", ("Vogel", "bird"), ("de", "en"), 2),
        ("er wusch und hat gewaschen", ("waschen", "wash"), ("de", "en"), 2),
        ("les chevaux du cheval", ("cheval", "horse"), ("fr", "en"), 2),
        ("새들이 새로운 새를 새로 봤다", ("새", "bird"), ("ko", "en"), 2),
    ],
)
def test_a_term_is_found_in_its_other_forms(
    text: str, pair: tuple[str, str], languages: tuple[str, str], count: int
) -> None:
    assert len(matched(text, pair, languages=languages)) == count


def test_what_is_written_just_so_comes_before_another_form() -> None:
    pairs = ("bird", "Vogel"), ("birds", "Geflügel"), ("black bird", "Amsel")
    languages = ("en", "de")
    assert matched("birds", *pairs, languages=languages) == ["Geflügel"]
    assert matched("black birds", *pairs, languages=languages) == ["Amsel"]


def test_a_term_that_is_there_in_another_form_is_left() -> None:
    plain = "Die Vögel singen den Vögeln."
    one = said(("bird", "Vogel"), "The birds sing.", {"The birds sing.": (plain, "0-0 1-1 2-2")})
    assert one.text == plain


@pytest.mark.parametrize(
    ("term", "source", "plain", "alignment", "wanted"),
    [
        ("Köter", "the dogs sleep", "die Hunde schlafen", "0-0 1-1 2-2", "die Köter schlafen"),
        ("Köter", "with the dogs", "mit den Hunden", "0-0 1-1 2-2", "mit den Kötern"),
        ("Zwerg", "with the dog", "mit dem Hund", "0-0 1-1 2-2", "mit dem Zwerg"),
        ("Held", "with the dog", "mit dem Hund", "0-0 1-1 2-2", "mit dem Helden"),
        ("Katze", "the old dog", "der alte Hund", "0-0 1-1 2-2", "die alte Katze"),
        ("Katze", "a dog that", "ein Hund, der", "0-0 1-1 2-2", "eine Katze, die"),
        ("Pferd", "in the dog", "im Hund", "0-0 1-0 2-1", "im Pferd"),
        ("Stadt", "in the dog", "im Hund", "0-0 1-0 2-1", "in der Stadt"),
        ("Esel", "in the dogs", "in Hunden", "0-0 1-0 2-1", "in Eseln"),
        ("Katze", "the dog's bone", "Knochen des Hundes", "0-1 1-2 2-0", "Knochen der Katze"),
        ("böse Katze", "the dog", "der Hund", "0-0 1-1", "die böse Katze"),
        ("rot", "a dog house", "ein altes Haus", "0-0 1-1 2-2", "ein rotes Haus"),
        ("Köter", "the dog", "„der Hund“!", "0-0 1-1", "„der Köter“!"),
    ],
)  # fmt: skip
def test_a_german_term_has_the_form_that_its_place_asks_for(
    term: str, source: str, plain: str, alignment: str, wanted: str
) -> None:
    assert said(("dog", term), source, {source: (plain, alignment)}).text == wanted


def test_words_without_content_stay_where_they_are() -> None:
    source, plain = "he hopes to wash it", "er hofft es zu waschen"
    one = said(("wash", "reinigen"), source, {source: (plain, "0-0 1-1 2-3 3-3 3-4 4-2")})
    assert one.text == "er hofft es zu reinigen"
    source, plain = "the bird sings", "der Vogel singt"
    one = said(("bird", "Fink"), source, {source: (plain, "1-0 1-1 2-2")})
    assert one.text == "der Fink singt"


def test_a_compound_is_not_lost_with_its_end() -> None:
    source, plain = "the cook book", "das Kochbuch"
    one = said(("book", "Heft"), source, {source: (plain, "0-0 1-1 2-1")})
    assert one.text == "das Kochheft"
    source, plain = "the bird house", "das Vogelhaus"
    one = said(("bird", "Vogel"), source, {source: (plain, "0-0 1-1 2-1")})
    assert one.text == plain


def test_a_noun_of_another_gender_takes_the_sentence_with_it() -> None:
    source = "the dog sees that it is old"
    translations = {
        source: ("der Hund sieht, dass er alt ist", "0-0 1-1 2-2 3-3 4-4 5-6 6-5"),
        "the woman sees that it is old": (
            "die Frau sieht, dass sie alt ist",
            "0-0 1-1 2-2 3-3 4-4 5-6 6-5",
        ),
    }
    assert said(("dog", "Katze"), source, translations).text == "die Katze sieht, dass sie alt ist"


@pytest.mark.parametrize(
    ("term", "plain", "wanted"),
    [
        ("강아지", "개는 잡니다.", "강아지는 잡니다."),
        ("말", "개는 잡니다.", "말은 잡니다."),
        ("말", "개로 갑니다.", "말로 갑니다."),
        ("책", "개로 갑니다.", "책으로 갑니다."),
        ("고양이", "학생이 갑니다.", "고양이가 갑니다."),
        ("말", "개들에게서는 좋습니다.", "말들에게서는 좋습니다."),
        ("GPU", "책을 샀습니다.", "GPU를 샀습니다."),
        ("기계 학습", "개가 좋습니다.", "기계 학습이 좋습니다."),
    ],
)
def test_a_korean_particle_fits_the_term(term: str, plain: str, wanted: str) -> None:
    one = said(("dog", term), "the dog does", {"the dog does": (plain, "1-0 2-1")}, ("en", "ko"))
    assert one.text == wanted


def test_a_noun_that_korean_repeats_is_replaced_in_both_places() -> None:
    source, plain = "we hear a bird and help it", "우리는 새를 듣고 그 새를 돕습니다"
    one = said(("bird", "말"), source, {source: (plain, "0-0 1-2 3-1 5-5 6-3 6-4")}, ("en", "ko"))
    assert one.text == "우리는 말을 듣고 그 말을 돕습니다"


def test_english_articles_and_possessives_fit_the_term() -> None:
    source, plain = "ein Hund", "a dog's bone"
    one = said(("Hund", "owl"), source, {source: (plain, "0-0 1-1")}, ("de", "en"))
    assert one.text == "an owl's bone"
    source, plain = "die Hunde", "the dogs"
    one = said(("Hund", "owl"), source, {source: (plain, "0-0 1-1")}, ("de", "en"))
    assert one.text == "the owls"


def test_a_french_article_is_elided_before_the_term_or_not() -> None:
    source = "the bird"
    one = said(("bird", "chien"), source, {source: ("l'oiseau", "0-0 1-0")}, ("en", "fr"))
    assert one.text == "le chien"
    one = said(("bird", "oie"), source, {source: ("le chien", "0-0 1-1")}, ("en", "fr"))
    assert one.text == "l'oie"


def test_a_term_at_the_beginning_of_a_sentence_has_a_capital() -> None:
    source = "Hunde bellen"
    one = said(("Hund", "hound"), source, {source: ("Dogs bark", "0-0 1-1")}, ("de", "en"))
    assert one.text == "Hounds bark"


def test_part_of_a_compound_in_the_source_may_be_said_otherwise() -> None:
    source, plain = "a cat-like dog", "ein katzenartiger Hund"
    one = said(("cat", "Katze"), source, {source: (plain, "0-0 1-1 2-2")})
    assert one.text == plain


def test_the_model_chooses_the_form() -> None:
    def score(sources: Sequence[str], targets: Sequence[str]) -> list[ScoredTranslation]:
        wanted = "the hounds bark"
        values = [0.0 if text == wanted else -9.0 for text in targets]
        return [ScoredTranslation(("▁x", "</s>"), (v, 0.0), v, v) for v in values]

    translator = GlossaryTranslator(
        Glossary([("개", "hound", 1)]),
        str.strip,
        source_language="ko",
        target_language="en",
        score=score,
    )

    def run(requests: Sequence[Request]) -> list[Translation]:
        return [Translation(r.text, "the dogs bark", 0, (), ((0, 1), (1, 2))) for r in requests]

    [one] = translator.translate([Request("개가 짖는다")], run)
    assert one.text == "the hounds bark"
    assert one.tokens == ("▁x",)
    assert one.alignment == ((0, 1), (1, 2))


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

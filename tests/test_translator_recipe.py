"""The recipe of the translators in models/ mends the text that they learn from."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

MODELS = Path(__file__).resolve().parents[1] / "models"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a script of models/."""
    monkeypatch.setattr(sys, "path", [str(MODELS), *sys.path])
    return importlib.import_module(name)


@pytest.mark.parametrize(
    ("text", "formal"),
    [
        ("그는 의사이다.", "그는 의사입니다."),
        ("그는 의사다.", "그는 의사입니다."),
        ("물을 마신다.", "물을 마십니다."),
        ("밥을 먹는다.", "밥을 먹습니다."),
        ("집을 만든다.", "집을 만듭니다."),
        ("회의가 있었다.", "회의가 있었습니다."),
        ("길이 길다.", "길이 깁니다."),
        ("필요하다.", "필요합니다."),
        ("“물이 없다.” 그가 말했다.", "“물이 없습니다.” 그가 말했습니다."),
        ("설정을 확인하세요.", "설정을 확인하십시오."),
        ("내 책이에요.", "내 책입니다."),
        ("파이를 구웠어.", "파이를 구웠습니다."),
        ("비가 올 거야.", "비가 올 것입니다."),
        ("준비가 돼요!", "준비가 됩니다!"),
        ("이미 정중합니다.", "이미 정중합니다."),
        ("저장하다", "저장하다"),
        ("어디에 있어?", "어디에 있어?"),
        ("버전마다 다르다고 한다", "버전마다 다르다고 한다"),
        ("Linux에서도 된다.", "Linux에서도 됩니다."),
        ("", ""),
    ],
)
def test_korean_is_brought_to_one_level_of_politeness(
    text: str, formal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load("korean_style", monkeypatch).formal(text) == formal


def test_every_everyday_phrase_is_in_three_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = load("build_corpus", monkeypatch)
    for language in ("de", "ko"):
        phrases = corpus.read_phrases(language)
        assert ("Thank you.", {"de": "Danke.", "ko": "감사합니다."}[language]) in phrases
        assert all(one.strip() == one != "" for pair in phrases for one in pair)
        assert len(set(phrases)) == len(phrases)


def test_marks_of_keyboard_accelerators_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    strip = load("build_corpus", monkeypatch).strip_accelerators
    assert strip("_Open", "열기(_O)") == ("Open", "열기")
    assert strip("&Save as", "Speichern &unter") == ("Save as", "Speichern unter")
    assert strip("snake_case and other_names", "snake_case und other_names") == (
        "snake_case and other_names",
        "snake_case und other_names",
    )


def test_translations_of_a_length_far_off_are_not_learned_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plausible = load("train_translator", monkeypatch).is_plausible
    assert plausible(("The house is small.", "집이 작습니다."))
    assert not plausible(("The house is small.", ""))
    assert not plausible(("The house.", "집 " * 40))


def test_the_general_part_of_a_corpus_is_like_general_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = load("build_corpus", monkeypatch)
    manual = [f"Klicken Sie im Menü {n} auf die Schaltfläche Speichern." for n in range(70)]
    general = [f"Der Fluss {n} fließt durch die alte Stadt zum Meer." for n in range(30)]
    german = [*manual, *general]
    corpus.write(tmp_path / "corpus.de", german)
    corpus.write(tmp_path / "corpus.en", (f"A sentence of six words: {text}" for text in german))
    wanted = ["Der Fluss fließt durch die Stadt.", "Das Meer ist alt."]
    corpus.write_general(tmp_path, ("corpus.en", "corpus.de"), wanted)
    chosen = (tmp_path / "general.de").read_text(encoding="utf-8").splitlines()
    assert chosen[:30] == general  # the 30% most alike, in the order of the corpus
    assert set(chosen[30:]) < set(manual)
    assert len(chosen) == 37
    english = (tmp_path / "general.en").read_text(encoding="utf-8").splitlines()
    assert english == [f"A sentence of six words: {text}" for text in chosen]


def test_a_teacher_marks_and_a_student_takes_text_as_the_reverse_model_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("train_translator", monkeypatch)
    files = (tmp_path / "reversed.de", tmp_path / "reversed.en")
    module.write_pairs(files, [("Hallo Welt", "Hello world")])
    recipe = object.__new__(module.Recipe)
    for name, value in {"out": tmp_path, "source": "de", "target": "en"}.items():
        object.__setattr__(recipe, name, value)
    assert recipe.mark([]) == []
    [marked] = recipe.mark([files])
    assert [module.read(file) for file in marked] == [["<bt> Hallo Welt"], ["Hello world"]]
    assert module.read(files[0]) == ["Hallo Welt"]


def test_a_recipe_with_formality_tags_sources_and_asks_the_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("train_translator", monkeypatch)
    ran: list[list[str]] = []
    monkeypatch.setattr(module, "dragoman", lambda *words: ran.append(list(map(str, words))))

    def make(**changes: object) -> object:
        fields = dict.fromkeys(module.Recipe.__dataclass_fields__, 1)
        paths = {"corpus": tmp_path, "out": tmp_path, "source": "en", "target": "ko"}
        return module.Recipe(**fields | paths | {"valid": ("a", "b"), "formality": 0.0} | changes)

    def translate(self: object, model: object, texts: list[str], beam: int, wish: str) -> list[str]:
        return [{"more": f"{text} 갑니다.", "less": "가요."}[wish] for text in texts]

    monkeypatch.setattr(module.Recipe, "translate", translate)
    plain, tagged = make(), make(formality=0.5)
    for recipe in (plain, tagged):
        recipe.make_tokenizers()
        recipe.prepare("first", "teacher", [(tmp_path / "a", tmp_path / "b")])
    assert ["data.formality=0.5" in words for words in ran] == [False] * 3 + [True] * 3
    assert (plain.style("간다."), tagged.style("간다.")) == ("갑니다.", "간다.")
    asked = tagged.ask_for_formality(tmp_path, list("abcdefgh"))
    assert asked == [("a", "a 갑니다."), ("b", "b 갑니다.")], "that it is polite was not asked for"
    assert plain.ask_for_formality(tmp_path, list("abcdefgh")) == []

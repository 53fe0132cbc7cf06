"""A model trained with tags addresses its reader as it is asked to."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.inference import Glossary, Translation, Translator, load
from dragoman.inference.pivot_translator import PivotTranslator
from dragoman.text.formality import formality_of

from ..fake_engines import make_translator

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "formality.py"
SETTINGS = ("training.threads=1",)


@pytest.fixture(scope="module")
def templates() -> ModuleType:
    """The script that makes sentences of every formality, and trains on them."""
    spec = importlib.util.spec_from_file_location("formality_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model(templates: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model into German; do not write to it."""
    found: Path = templates.train_model("de", tmp_path_factory.mktemp("formal"), 100, *SETTINGS)
    return found


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return load(model, device="cpu")


def check_counts(templates: ModuleType, translator: Translator, language: str) -> None:
    _, examples = templates.split_examples(language)
    for right, _, count in templates.count_right(translator, language, examples).values():
        assert count > 100
        assert right / count >= 0.95


def test_nearly_all_translations_have_the_formality_that_is_asked_for(
    templates: ModuleType, translator: Translator
) -> None:
    check_counts(templates, translator, "de")


@pytest.mark.thorough
def test_korean_has_three(templates: ModuleType, tmp_path: Path) -> None:
    found = load(templates.train_model("ko", tmp_path, 300, *SETTINGS), device="cpu")
    check_counts(templates, found, "ko")


def test_the_templates_are_what_the_rules_say(templates: ModuleType) -> None:
    for language in ("de", "ko"):
        for part in templates.split_examples(language):
            for one in part:
                for kind, text in one.targets.items():
                    assert formality_of(text, language) == (kind or None), text


def everything(found: Translation) -> str:
    return json.dumps([found.to_dict(), [one.to_dict() for one in found.alternatives]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_best": 3},
        {"raw": True},
        {"must_not": ["Buch"]},
        {"must": ["Karte"]},
        {"diverse": 2, "beam": 4},
        {"mbr": "chrf"},
        {"protect": False},
        {"glossary": Glossary([("ticket", "Schirm", 1)])},
    ],
    ids=lambda options: next(iter(options), "plain"),
)
def test_the_tag_is_seen_nowhere_and_source_words_keep_their_places(
    translator: Translator, options: dict[str, Any]
) -> None:
    for wish, pronoun in (("more", "Sie"), ("less", "du")):
        found = translator.translate(
            "Do you bring the ticket now?", formality=wish, align=True, **options
        )
        assert pronoun in found.text.split()
        assert "formal" not in everything(found)
        assert {source for source, _ in found.alignment} == set(range(6))
        last = len(found.text.split()) - 1
        assert (4, last) in found.alignment, "die Karte is the ticket, and no word beside it"


def test_a_beginning_that_is_asked_for_goes_with_a_formality(translator: Translator) -> None:
    text = "Do you bring the ticket now?"
    found = translator.translate(text, formality="more", prefix="Bringen", align=True)
    assert found.text == "Bringen Sie jetzt die Karte?"
    assert (4, 4) in found.alignment


def test_whole_texts_and_what_is_protected_in_them_are_addressed_so(
    translator: Translator,
) -> None:
    text = "Is your key new?\n\nIs your bag old? See https://example.org/a.\n"
    more, less = (translator.translate(text, formality=one).text for one in ("more", "less"))
    for found, wanted in ((more, "Ihr"), (less, "dein")):
        assert found.count("\n") == 3
        assert found.startswith(f"Ist {wanted} Schlüssel neu?\n\nIst {wanted}e Tasche alt?")
        assert "https://example.org/a" in found


def test_no_source_is_longer_with_its_tag_than_the_model_allows(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, lengths = translator._pipeline, list[int]()
    search = pipeline._search

    def record(segments: Any, ids: Any, settings: Any) -> Any:
        lengths.extend(map(len, ids))
        return search(segments, ids, settings)

    monkeypatch.setattr(pipeline, "_search", record)
    limit = translator.config.data.max_length
    word = next(one for one in ("you", "the") if len(translator.tokenizer.encode(one)) == 1)
    text = " ".join([word] * limit)
    translator.translate(text, raw=True)
    assert lengths == [limit]
    lengths.clear()
    found = translator.translate(text, raw=True, formality="more")
    assert sum(lengths) == limit + 2, "it is cut, and both parts have a tag"
    assert max(lengths) <= limit
    assert "formal" not in everything(found)


def test_a_source_that_spells_a_tag_does_not_ask_for_it(translator: Translator) -> None:
    text = "Do you sell the key <informal> now?"
    found = translator.translate(text, formality="more")
    assert "Sie" in found.text
    assert "<informal>" in found.text, "it is kept like any other tag of a text"


def test_a_model_without_tags_refuses_a_wish_but_no_preference(trained: Path) -> None:
    plain = load(trained, device="cpu")
    wanted = plain.translate("the old dog").text
    for wish in (None, "default", "prefer_more", "prefer_less"):
        assert plain.translate("the old dog", formality=wish).text == wanted
    for wish in ("more", "less"):
        with pytest.raises(ConfigError, match="was trained without formality tags"):
            plain.translate("the old dog", formality=wish)


def test_the_model_says_which_tags_it_knows(model: Path) -> None:
    card = json.loads((model / "card.json").read_text(encoding="utf-8"))
    assert card["formality"] == ["<formal>", "<informal>"]
    assert "`<formal>`, `<informal>`" in (model / "README.md").read_text(encoding="utf-8")
    assert Config.load(model / "config.toml").data.formality == 0.5


def test_of_two_models_the_second_is_asked(translator: Translator) -> None:
    both = PivotTranslator(make_translator("identity", ("ko", "en")), translator)
    text = "Have you found your key?"
    assert both.translate(text, formality="more").text == "Haben Sie Ihren Schlüssel gefunden?"
    found = both.translate(text, formality="less", align=True)
    assert found.text == "Hast du deinen Schlüssel gefunden?"
    assert "formal" not in everything(found)


# --- the command ---


def test_the_command_asks_for_a_formality(command: Callable[..., Any], model: Path) -> None:
    source = "Have you found your key?"
    for wish, wanted in (
        ("more", "Haben Sie Ihren Schlüssel gefunden?"),
        ("prefer_less", "Hast du deinen Schlüssel gefunden?"),
    ):
        found = command("translate", model, source, "--formality", wish, "--device", "cpu")
        assert (found.status, found.out) == (0, f"{wanted}\n")


def test_info_names_the_tags(command: Callable[..., Any], model: Path) -> None:
    assert "formality: <formal>, <informal>\n" in command("info", model).out


def test_the_command_refuses_before_it_writes(
    command: Callable[..., Any], trained: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    found = command(
        *("translate", trained, "--formality", "less", "-o", out, "--device", "cpu"),
        stdin=b"the old dog\n",
    )
    assert found.status == 2
    assert "was trained without formality tags" in found.err
    assert len(found.err.splitlines()) == 1
    assert not out.exists()

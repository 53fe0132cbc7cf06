"""The scripts that make a parser do what their first lines say, on trees of the phrasebook."""

from __future__ import annotations

import importlib.util
import lzma
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from dragoman.model_directory import open_model, replace_card, write_int8_model
from dragoman.phrasebook import generate
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.tree import leaves

from .kernel import needs_kernel
from .serve.service_fixtures import parser

SCRIPTS = Path(__file__).parents[1] / "models"


@pytest.fixture(scope="module")
def scripts() -> Iterator[Path]:
    """The folder of the scripts, from which they import each other."""
    before, known = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(SCRIPTS))
    yield SCRIPTS
    sys.path[:] = before
    for name in set(sys.modules) - known:
        if (SCRIPTS / f"{name}.py").exists():
            del sys.modules[name]


def load(scripts: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, scripts / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora as the scripts want them: small, and of the phrasebook."""
    home = tmp_path_factory.mktemp("corpora")

    def write(name: str, lines: list[str]) -> None:
        path = home / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))

    for number, name in enumerate(("craft", "gum")):
        trees = [one.source_tree for one in generate("de", "train", 60)][number::2]
        dev = [one.source_tree for one in generate("de", "test", 6)][number::2]
        write(f"trees/{name}.train.txt.xz", [*trees, f"(ROOT {dev[0]})"])
        write(f"trees/{name}.dev.txt.xz", dev)
    write("tatoeba/train.en-de.en.xz", ["I like it here.", "I like it here.", "Yes."])
    write("europarl/train1.en-de.en.xz", ["The debate is closed."])
    return home


def read(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def words_of(tree: str) -> str:
    return " ".join(leaf.word for leaf in leaves(parse_tree(tree)))


def test_trees_that_are_scored_on_are_not_learned_from(
    scripts: Path, data: Path, tmp_path: Path
) -> None:
    recipe = load(scripts, "train_parser")
    recipe.make_trees(data, tmp_path)
    learned = [read(path) for path in recipe.training_trees(tmp_path)]
    assert len(learned) == 4, "craft, gum twice, varied"
    assert learned[1] == learned[2] != learned[0]
    sentences = {words_of(tree) for trees in learned[:3] for tree in trees}
    for name in ("craft", "gum"):
        dev = read(recipe.trees_path(tmp_path, f"{name}.dev.trees"))
        assert len(dev) == 3
        assert sentences.isdisjoint(map(words_of, dev))
    assert len(learned[3]) >= 10
    assert sentences.isdisjoint(map(words_of, learned[3]))
    text = read(recipe.trees_path(tmp_path, "text.txt"))
    assert sorted(text) == ["I like it here.", "The debate is closed."]


def test_a_varied_tree_has_its_sentence_in_other_letters_or_without_its_end(scripts: Path) -> None:
    recipe = load(scripts, "train_parser")
    tree = "(S (NP (NNP Ann)) (VP (VBZ sings)) (. .))"
    found = {recipe.vary("Ann sings .", tree, random.Random(seed)) for seed in range(40)}
    assert found == {
        "(S (NP (NNP Ann)) (VP (VBZ sings)))",
        "(S (NP (NNP ann)) (VP (VBZ sings)) (. .))",
        "(S (NP (NNP ann)) (VP (VBZ sings)))",
        "(S (NP (NNP ANN)) (VP (VBZ SINGS)) (. .))",
        "(S (NP (NNP ANN)) (VP (VBZ SINGS)))",
    }
    nothing = {recipe.vary(".", "(FRAG (. .))", random.Random(seed)) for seed in range(9)}
    assert nothing == {None}, "no word would be left, or none is changed"


@needs_kernel
def test_a_card_tells_scores_terms_and_limits(
    scripts: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_card = load(scripts, "write_parser_card")
    model = tmp_path / "parse-en"
    write_int8_model(open_model(parser(tmp_path / "whole")), model)
    made = open_model(model)
    replace_card(made, made.card | {"parameters": 1234, "steps": 5}, "")
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits/parse-en.md").write_text("It knows nothing.\n")
    monkeypatch.setattr(write_card, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["write_parser_card.py", str(model), str(data)])
    write_card.main()
    capsys.readouterr()
    card = open_model(model).card
    assert card["license"] == "CC BY 4.0"
    assert card["language"] == "en"
    assert card["scores"].keys() == {"GUM dev F1", "CRAFT dev F1"}
    assert card["data"] == {"gum": 31, "craft": 31}
    for one in card["test_sets"].values():
        assert one["signature"] == "evalb|prm:COLLINS|punctuation:gold|version:1"
        assert 0 <= one["F1, beam 4"] <= 100
        assert one["sentences"] == 3
    page = (model / "README.md").read_text(encoding="utf-8")
    assert "It knows nothing." in page
    assert "CC BY 3.0" in page
    assert "Zeldes" in page
    assert "| CRAFT dev | 3 | beam 4 |" in page
    assert "Tatoeba" not in page, "it was not self-trained"
    tree = page.split("$ dragoman parse parse-en 'The cat sat on the mat.'\n")[1].split("\n")[0]
    assert words_of(tree) == "The cat sat on the mat ."

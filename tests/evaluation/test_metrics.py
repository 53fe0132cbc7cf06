from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import sacrebleu

from dragoman.errors import ConfigError, DataError
from dragoman.evaluation import bleu, score

REFERENCES = [
    "Ein Hund läuft schnell über die grüne Wiese.",
    "Zwei Männer, beide mit Hut, warten auf den Bus.",
    "Das Mädchen liest ein Buch und trinkt Tee.",
    "Der Zug nach Hamburg ist heute pünktlich.",
]
HYPOTHESES = [
    "Ein Hund läuft schnell über eine grüne Wiese.",
    "zwei Männer mit Hut warten auf den Bus.",
    "Das Mädchen liest ein Buch und trinkt Kaffee.",
    "Der Zug nach Hamburg ist heute zu spät.",
]


def test_the_figures_are_sacrebleus_with_its_signatures() -> None:
    found = score(HYPOTHESES, REFERENCES)
    for name, metric in [
        ("bleu", sacrebleu.BLEU()),
        ("chrf", sacrebleu.CHRF()),
        ("ter", sacrebleu.TER()),
    ]:
        expected = metric.corpus_score(HYPOTHESES, [REFERENCES])
        assert found[name] == expected.score
        assert found.values[name].name == expected.name
        assert found.values[name].signature == str(metric.get_signature())
    assert bleu(HYPOTHESES, REFERENCES) == found["bleu"]
    assert 0 < found["bleu"] < 100


def test_the_signature_is_written_out() -> None:
    version = sacrebleu.__version__
    found = score(HYPOTHESES, REFERENCES, lowercase=True)
    assert [s.signature for s in found.values.values()] == [
        f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}",
        f"nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:{version}",
        f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{version}",
    ]
    assert found["bleu"] > score(HYPOTHESES, REFERENCES)["bleu"]  # "zwei" is no longer wrong


def test_figures_are_text_and_json() -> None:
    found = score(HYPOTHESES, REFERENCES)
    first, *_ = str(found).splitlines()
    assert first == f"BLEU|{found.values['bleu'].signature} = {found['bleu']:.2f}"
    read = json.loads(json.dumps(found.to_json()))
    assert read["sentences"] == 4
    assert read["chrf"] == {
        "name": "chrF2",
        "score": found["chrf"],
        "signature": found.values["chrf"].signature,
    }


def test_bleu_of_tokenised_text_equals_multi_bleu_worked_by_hand() -> None:
    # 1-grams: 4 of 5, 2-grams: 3 of 4, 3-grams: 2 of 3, 4-grams: 1 of 2; 5 words against 6.
    hypotheses, references = ["a dog/cat 's paw ."], ["the dog/cat 's paw . yes"]
    expected = math.exp(1 - 6 / 5) * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4) * 100
    assert score(hypotheses, references, tokenize="none")["bleu"] == pytest.approx(expected)
    # 13a makes three words of dog/cat and so counts differently.
    assert score(hypotheses, references, tokenize="13a")["bleu"] != pytest.approx(expected)


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        (None, "13a"),
        ("de", "13a"),
        ("zh", "zh"),
        ("zh-TW", "zh"),
        ("ZH_cn", "zh"),
        ("ja", "char"),
        ("ko", "char"),
    ],
)
def test_the_target_language_chooses_the_tokeniser(language: str | None, tokenizer: str) -> None:
    found = score(["今日は 天気。"], ["今日の 天気。"], language=language)
    assert f"|tok:{tokenizer}|" in found.values["bleu"].signature


def test_chinese_and_japanese_edits_are_counted_in_characters() -> None:
    found = score(["我喜欢红茶"], ["我喜欢绿茶"], language="zh", metrics=["ter"])
    assert found["ter"] == pytest.approx(100 / 5)
    assert "asian:yes" in found.values["ter"].signature


def test_only_the_metrics_asked_for_are_computed() -> None:
    assert list(score(HYPOTHESES, REFERENCES, metrics=["ter", "bleu"]).values) == ["ter", "bleu"]


def test_unequal_counts_and_nothing_are_refused() -> None:
    with pytest.raises(DataError, match="there are 3 hypotheses but 4 references; they must"):
        score(HYPOTHESES[:3], REFERENCES)
    with pytest.raises(DataError, match="nothing to score"):
        score([], [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenize": "14a"}, "no tokeniser '14a'; did you mean '13a'"),
        ({"tokenize": "ko-mecab"}, r"pip install 'sacrebleu\[ko\]'"),
        ({"metrics": ["blue"]}, "no metric 'blue'; choose from: bleu, chrf, ter"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, str], message: str) -> None:
    if options.get("tokenize") == "ko-mecab":
        try:
            import mecab_ko  # noqa: F401
        except ImportError:
            pass
        else:
            pytest.skip("mecab-ko is installed")
    with pytest.raises(ConfigError, match=message):
        score(HYPOTHESES, REFERENCES, **options)


@pytest.mark.slow
def test_metrics_need_no_torch() -> None:
    code = "import sys, dragoman.evaluation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""What is wrong with a corpus, said before anything is trained on it."""

import gzip
import itertools
import json
import random
from itertools import pairwise

import pytest

from dragoman.config import Config, PresetAdvice
from dragoman.data.doctor.examination import choose_preset, examine
from dragoman.data.readers.parallel import ConcatenatedCorpus, open_parallel_corpus
from dragoman.text.tokenizer import Tokenizer

CONFIG = Config().overridden(["tokenizer.vocabulary=330", "data.max_length=60"])
WORDS = ["haus", "baum", "gehen", "sehen", "rot", "grün", "schnell", "langsam", "kind", "hund"]


def sentences(count, seed=0):
    draw = random.Random(seed)
    return [
        tuple(" ".join([*draw.choices(WORDS, k=length), str(n)]) + "." for _ in range(2))
        for n in range(count)
        for length in [draw.randint(3, 12)]
    ]


def put(directory, name, pairs):
    for side, suffix in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (directory / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    return open_parallel_corpus([directory / f"{name}.en", directory / f"{name}.de"])


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([text for pair in sentences(300) for text in pair], CONFIG.tokenizer)


@pytest.fixture
def diagnose(tmp_path, tokenizer):
    def run(pairs, **options):
        options = {"config": CONFIG, "tokenizer": tokenizer, **options}
        return examine(put(tmp_path, "a", pairs), **options)

    return run


def found(diagnosis, severity, check):
    """The only finding of its kind."""
    (finding,) = (f for f in diagnosis.findings if (f.severity, f.check) == (severity, check))
    return finding


def severities(diagnosis):
    return [finding.severity for finding in diagnosis.findings]


def test_a_sound_corpus_gets_no_error_and_no_warning(diagnose):
    diagnosis = diagnose(sentences(400))
    assert set(severities(diagnosis)) == {"ok"}
    assert not diagnosis.has_errors
    assert diagnosis.lines()[-1] == "0 errors, 0 warnings"
    assert diagnosis.figures["pairs"] == 400


def test_every_odd_thing_is_counted_and_placed(diagnose, tmp_path):
    pairs = sentences(400)
    pairs[10] = ("", "leer.")
    pairs[20] = ("gleich 7.", "gleich 7.")
    pairs[30] = pairs[29]
    pairs[40] = ("schön 40.", "schÃ¶n 40.")
    pairs[50] = ("\ufffd 50.", "fünfzig 50.")
    pairs[60] = ("scho\u0308n 60.", "sechzig 60.")
    diagnosis = diagnose(pairs)
    for check, place in [
        ("empty", "a.en, line 11"),
        ("copy", "a.en, line 21"),
        ("duplicate", "a.en, line 31"),
        ("mojibake", "a.de, line 41"),
        ("replacement", "a.en, line 51"),
    ]:
        assert found(diagnosis, "warning", check).where == str(tmp_path / place)
        assert diagnosis.figures[check] == 1
    assert found(diagnosis, "ok", "form").where == f"{tmp_path / 'a.en'}, line 61"
    as_it_is = CONFIG.overridden(["tokenizer.normalization=none"])
    assert "nfc" in found(diagnose(pairs, config=as_it_is), "warning", "form").message
    assert not diagnosis.has_errors


@pytest.mark.parametrize(
    "text", ["Ã¼ber", "groÃŸ", "itâ€™s", "â€œso", "Â© 2020", "Ã\u00a0 la carte"]
)
def test_mojibake_is_recognised(diagnose, text):
    diagnosis = diagnose([*sentences(100), (f"{text} 100.", "richtig 100.")])
    assert found(diagnosis, "warning", "mojibake").message.startswith("1 line (1.0%)")


@pytest.mark.parametrize("text", ["SÃO PAULO", "Âge", "à la carte", "über – „so“", "â", "100 €"])
def test_what_is_no_mojibake_is_not(diagnose, text):
    diagnosis = diagnose([*sentences(100), (f"{text} 100.", "richtig 100.")])
    assert diagnosis.figures["mojibake"] == 0


def test_every_line_that_cannot_be_read_is_listed(tmp_path, tokenizer):
    put(tmp_path, "a", sentences(100))
    raw = (tmp_path / "a.de").read_bytes().split(b"\n")
    raw[3], raw[7], raw[9] = b"sch\xf6n", b"nul \0 byte", b"\xff"
    (tmp_path / "a.de").write_bytes(b"\n".join(raw))
    pairs = open_parallel_corpus([tmp_path / "a.en", tmp_path / "a.de"])
    diagnosis = examine(pairs, config=CONFIG, tokenizer=tokenizer)
    reading = [f.message for f in diagnosis.findings if f.check == "reading"]
    assert [message.partition(": ")[0] for message in reading] == [
        f"{tmp_path / 'a.de'}, line {number}" for number in (4, 8, 10)
    ]
    assert diagnosis.has_errors
    assert diagnosis.figures["pairs"] == 100


def test_a_file_that_breaks_off_is_reported_with_what_could_be_read(
    tmp_path, tokenizer, monkeypatch
):
    monkeypatch.setattr("dragoman.data.readers.parallel._BUFFER", 1000)
    put(tmp_path, "a", sentences(3000))
    data = gzip.compress((tmp_path / "a.de").read_bytes())
    (tmp_path / "a.de.gz").write_bytes(data[: len(data) // 2])
    pairs = open_parallel_corpus([tmp_path / "a.en", tmp_path / "a.de.gz"])
    diagnosis = examine(pairs, config=CONFIG, tokenizer=tokenizer)
    assert "is truncated" in found(diagnosis, "error", "reading").message
    assert 0 < diagnosis.figures["pairs"] < 3000


def test_many_unreadable_lines_are_summed_up(tmp_path, tokenizer):
    put(tmp_path, "a", sentences(100))
    (tmp_path / "a.de").write_bytes(b"\xff\n" * 100)
    pairs = open_parallel_corpus([tmp_path / "a.en", tmp_path / "a.de"])
    messages = [f.message for f in examine(pairs, config=CONFIG, tokenizer=tokenizer).findings]
    assert any("80 more errors like these" in message for message in messages)


def test_a_missing_line_is_found_and_both_counts_are_named(tmp_path, tokenizer):
    pairs = sentences(1000)
    put(tmp_path, "a", pairs)
    targets = [target for _, target in pairs]
    del targets[612]
    (tmp_path / "a.de").write_text("".join(f"{target}\n" for target in targets))
    broken = open_parallel_corpus([tmp_path / "a.en", tmp_path / "a.de"])
    diagnosis = examine(broken, config=CONFIG, tokenizer=tokenizer)
    counts = found(diagnosis, "error", "reading").message
    assert "a.en has 1,000 lines" in counts
    assert "a.de has 999" in counts
    misalignment = found(diagnosis, "error", "alignment")
    assert "1 target line probably missing" in misalignment.message
    assert abs(int(misalignment.where.rpartition(" ")[2]) - 613) <= 3


def test_a_shift_in_one_of_several_corpora_is_placed_there(tmp_path, tokenizer):
    good, pairs = put(tmp_path, "good", sentences(500, seed=1)), sentences(500, seed=2)
    shifted = [(source, target) for (source, _), (_, target) in pairwise(pairs)]
    bad = put(tmp_path, "bad", [*pairs[:200], *shifted[200:]])
    diagnosis = examine(ConcatenatedCorpus([good, bad]), config=CONFIG, tokenizer=tokenizer)
    where = found(diagnosis, "error", "alignment").where
    assert where.startswith(f"{tmp_path / 'bad.en'}, line ")
    assert abs(int(where.rpartition(" ")[2]) - 201) <= 3
    assert found(diagnosis, "ok", "alignment").where == good.name
    assert diagnosis.figures["pairs"] == 999


def test_overlap_with_test_and_validation_is_counted_and_placed(diagnose, tmp_path):
    pairs, new = sentences(400), sentences(30, seed=9)
    test = put(tmp_path, "test", [*new[:10], *pairs[100:105], (pairs[7][0], "anders.")])
    valid = put(tmp_path, "valid", [*new[10:], pairs[50]])
    diagnosis = diagnose(pairs, test=test, valid=valid)
    error = found(diagnosis, "error", "overlap")
    assert error.message.startswith("5 of 16 test pairs found in training")
    assert error.where == f"{tmp_path / 'test.en'}, line 11 = {tmp_path / 'a.en'}, line 101"
    warnings = [
        f.message for f in diagnosis.findings if (f.check, f.severity) == ("overlap", "warning")
    ]
    assert len(warnings) == 2
    assert diagnosis.figures["test_overlap"] == {
        "pairs": 16,
        "in_training": 5,
        "source_in_training": 1,
    }
    clean = diagnose(pairs, test=put(tmp_path, "test", new))
    assert "none of the 30 test pairs" in found(clean, "ok", "overlap").message


def test_a_pair_that_is_too_long_is_named(diagnose, tmp_path):
    pairs = sentences(200)
    pairs[77] = (" ".join(WORDS * 30), "lang 77.")
    pairs[78] = ("wort " * 100_000, "lang 78.")
    diagnosis = diagnose(pairs)
    longest = found(diagnosis, "warning", "longest")
    assert "2 pairs above data.max_length = 60" in longest.message
    assert "99 rows of 256 positions" in longest.message
    assert longest.where == f"{tmp_path / 'a.en'}, line 79"
    words = next(f for f in diagnosis.findings if "source words" in f.message)
    assert "longest 100,000" in words.message
    assert words.where == f"{tmp_path / 'a.en'}, line 79"


def test_words_are_counted_exactly(diagnose):
    pairs = [(" ".join(["w"] * n), f"w{n}") for n in range(1, 101)]
    assert diagnose(pairs).figures["source_words"] == [50, 90, 99, 100]


def test_a_tokeniser_for_other_text_is_noticed(diagnose):
    pairs = [(f"한국어 문장 {n}", f"日本語の文章です {n}") for n in range(100)]
    diagnosis = diagnose(pairs)
    for name in ("source", "target"):
        assert diagnosis.figures[f"{name}_pieces"]["bytes"] > 0.5
    warnings = [f for f in diagnosis.findings if (f.check, f.severity) == ("tokenizer", "warning")]
    assert len(warnings) == 2
    assert "right tokeniser" in warnings[0].message


def test_without_a_tokeniser_one_is_learned_and_an_impossible_vocabulary_is_said(diagnose):
    diagnosis = diagnose(sentences(300), tokenizer=None, config=Config())
    pieces = diagnosis.figures["vocabulary"]["learned"]
    assert found(diagnosis, "warning", "tokenizer").message == (
        f"vocabulary: {pieces:,} pieces instead of 37,000: the corpus has too few different words"
    )
    assert not diagnosis.has_errors
    assert diagnosis.figures["source_pieces"]["a_word"] >= 1
    fine = diagnose(sentences(300), tokenizer=None)
    assert not fine.has_errors


def test_a_vocabulary_is_not_called_impossible_from_a_sample(diagnose):
    diagnosis = diagnose(sentences(300), tokenizer=None, config=Config(), sample=100)
    assert not diagnosis.has_errors
    assert diagnosis.figures["sample"]["pairs"] == 100
    message = found(diagnosis, "warning", "tokenizer").message
    assert message.startswith("vocabulary: 100 pairs drawn at random allow ")
    assert message.endswith("and not 37,000; the whole corpus may allow more")


@pytest.mark.parametrize(
    ("pairs", "name"),
    [(10, "tiny"), (100_000, "tiny"), (100_001, "small"), (1_000_000, "small"), (9**8, "base")],
)
def test_a_preset_is_chosen_by_the_number_of_pairs(pairs, name):
    class Counted:
        def read(self, on_error=None):
            return itertools.repeat(None, pairs)

    assert choose_preset(Counted()).name == name


def test_it_says_which_preset_the_corpus_was_judged_for(diagnose, monkeypatch):
    advice = (PresetAdvice("tiny", 50, 200), PresetAdvice("base", 200, None))
    monkeypatch.setattr("dragoman.config.PRESET_ADVICE", advice)
    monkeypatch.setattr("dragoman.data.doctor.examination.PRESET_ADVICE", advice)

    def judged(pairs, preset):
        diagnosis = diagnose(sentences(pairs), preset=preset)
        (finding,) = (f for f in diagnosis.findings if f.check == "preset")
        return finding.severity, finding.message, diagnosis.figures["preset"]["advised"]

    suits = "judged for --preset tiny, which is for 50 to 200 pairs"
    assert judged(100, "tiny") == ("ok", suits, "tiny")
    assert judged(300, "tiny") == (
        "warning",
        f"{suits}; for 300 pairs --preset base is better",
        "base",
    )
    few = "judged for --preset tiny; fewer than 50 pairs make a poor translator: add more text"
    assert judged(49, "tiny") == ("warning", few, "tiny")
    assert judged(100, "big") == ("ok", "judged for --preset big", "tiny")
    assert not any(f.check == "preset" for f in diagnose(sentences(100)).findings)


def test_what_cleaning_would_drop_is_foretold(diagnose):
    pairs = sentences(90)
    pairs += [(f"viel {' '.join(WORDS[:7] * 5)} {n}.", str(n)) for n in range(10)]
    finding = found(diagnose(pairs), "warning", "cleaning")
    assert finding.message.startswith(
        "prepare would drop 10.0% of 100 pairs drawn at random: length ratio 10"
    )


@pytest.mark.parametrize("pairs", [[], [("", "")], [("a", "b")]])
def test_next_to_nothing_is_examined_too(diagnose, pairs):
    diagnosis = diagnose(pairs, tokenizer=None)
    assert diagnosis.has_errors == (pairs != [("", "")])


def test_the_report_is_sorted_and_fits_programs(diagnose, tmp_path):
    pairs = sentences(300)
    pairs[5] = ("", "leer.")
    diagnosis = diagnose(
        pairs, test=put(tmp_path, "t", sentences(1)), tokenizer=None, config=Config()
    )
    order = ["error", "warning", "ok"]
    assert severities(diagnosis) == sorted(severities(diagnosis), key=order.index)
    values = json.loads(json.dumps(diagnosis.to_json()))
    assert values["findings"][0]["severity"] == "error"
    assert set(values["findings"][0]) == {"severity", "check", "message", "where"}
    assert all("\n" not in line for line in diagnosis.lines())

"""From a corpus to a directory that training can start from."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.config import Config
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.text.tokenizer import Tokenizer

CONFIG = Config().overridden(["tokenizer.vocabulary=330", "data.max_length=60"])


def sentences(count, seed=0):
    draw = random.Random(seed)
    words = ["haus", "baum", "gehen", "sehen", "rot", "grün", "schnell", "langsam", "kind", "hund"]
    return [
        (
            f"{' '.join(draw.choices(words, k=draw.randint(3, 8)))} {n}",
            f"satz {n} {draw.choice(words)}",
        )
        for n in range(count)
    ]


def put(directory, name, pairs):
    for side, suffix in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (directory / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    return open_parallel_corpus([directory / f"{name}.en", directory / f"{name}.de"])


def decoded(prepared, store):
    decode = prepared.tokenizer.decode
    return [(decode(store.source(i)), decode(store.target(i))) for i in range(len(store))]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([text for pair in sentences(300) for text in pair], CONFIG.tokenizer)


def test_a_prepared_corpus_is_the_corpus_and_its_validation_set(tmp_path):
    pairs, held = sentences(300), sentences(20, seed=1)
    valid = put(tmp_path, "dev", held)
    prepared = prepare(put(tmp_path, "a", pairs), tmp_path / "out", CONFIG, valid=valid, workers=0)
    assert decoded(prepared, prepared.train) == pairs
    assert decoded(prepared, prepared.valid) == held
    assert prepared.valid_source == [source for source, _ in held]
    assert prepared.valid_target == [target for _, target in held]
    assert prepared.config == CONFIG
    assert prepared.report.read == prepared.report.kept == 300
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert {"tokenizer.model", "tokenizer.json", "config.toml", "report.json"} <= names
    assert {"train/meta.json", "valid/meta.json", "valid/source.txt", "valid/target.txt"} <= names


def test_a_held_out_sample_depends_on_the_text_alone_and_leaves_training(tmp_path, tokenizer):
    pairs = sentences(900)
    one = prepare(put(tmp_path, "a", pairs), tmp_path / "1", CONFIG, tokenizer=tokenizer)
    shuffled = random.Random(3).sample(pairs, len(pairs))
    two = prepare(put(tmp_path, "b", shuffled), tmp_path / "2", CONFIG, tokenizer=tokenizer)
    held = decoded(one, one.valid)
    assert len(held) == one.report.held_out == 9
    assert sorted(held) == sorted(decoded(two, two.valid))
    assert held == [pair for pair in pairs if pair in held]  # in the order of the corpus
    assert list(zip(one.valid_source, one.valid_target, strict=True)) == held
    assert sorted(decoded(one, one.train) + held) == sorted(pairs)


def test_a_large_corpus_holds_out_no_more_than_the_limit(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("dragoman.data.prepare._HELD_OUT", 5)
    monkeypatch.setattr("dragoman.data.prepare._CHUNK_PAIRS", 100)
    pairs = sentences(1000)
    prepared = prepare(
        put(tmp_path, "a", pairs), tmp_path / "out", CONFIG, tokenizer=tokenizer, workers=0
    )
    held = decoded(prepared, prepared.valid)
    assert len(held) == 5
    assert sorted(decoded(prepared, prepared.train) + held) == sorted(pairs)


@pytest.mark.parametrize("given", [True, False])
def test_no_pair_of_the_validation_set_stays_in_training(tmp_path, tokenizer, given):
    config = CONFIG.overridden(["data.drop_duplicates=false"])
    pairs = sentences(150)
    valid = put(tmp_path, "dev", pairs[10:20]) if given else None
    prepared = prepare(
        put(tmp_path, "a", pairs * 3), tmp_path / "out", config, valid=valid, tokenizer=tokenizer
    )
    held = set(decoded(prepared, prepared.valid))
    assert len(held) == len(prepared.valid) == (10 if given else 4)
    assert not held & set(decoded(prepared, prepared.train))
    assert prepared.report.dropped == {"in validation": 30 if given else 8}
    assert len(prepared.train) == 450 - 3 * len(held)


def test_what_is_dropped_is_counted_with_its_place(tmp_path, tokenizer):
    pairs = sentences(200)
    pairs[10] = ("", "leer")
    pairs[20] = ("x" * 1_000_000, "lang")
    pairs[30] = ("a b c d e f g h i j k l m n o p q r s t u v w", "kurz")
    pairs[40] = ("gleich", " gleich ")
    pairs[50] = pairs[49]
    start = time.monotonic()
    prepared = prepare(
        put(tmp_path, "a", pairs), tmp_path / "out", CONFIG, tokenizer=tokenizer, workers=0
    )
    assert time.monotonic() - start < 5  # a line of a megabyte is not tokenised
    path = tmp_path / "a.en"
    assert prepared.report.examples == {
        "empty": [f"{path}, line 11"],
        "too long": [f"{path}, line 21"],
        "length ratio": [f"{path}, line 31"],
        "copy": [f"{path}, line 41"],
        "duplicate": [f"{path}, line 51"],
    }
    assert prepared.report.kept == 195 == len(prepared.train) + len(prepared.valid)
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == prepared.report.to_json()
    assert prepared.train.meta.longest_source <= 60


@pytest.mark.slow
def test_worker_processes_change_nothing(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("dragoman.data.prepare._CHUNK_PAIRS", 50)
    pairs = sentences(600)
    pairs[70:75] = pairs[:5]
    stages = []
    for workers in (0, 2):
        prepare(
            put(tmp_path, "a", pairs),
            tmp_path / str(workers),
            CONFIG,
            tokenizer=tokenizer,
            workers=workers,
            progress=lambda *stage: stages.append(stage),
        )
    files = sorted(path for path in (tmp_path / "0").rglob("*") if path.is_file())
    assert len(files) == 16
    for path in files:
        other = tmp_path / "2" / path.relative_to(tmp_path / "0")
        assert path.read_bytes() == other.read_bytes()
    assert stages[-1] == ("encoding", 600, None)


def test_long_lines_of_a_given_validation_set_are_kept_as_text(tmp_path, tokenizer):
    held = [("kind", "hund"), ("x y z " * 50, "lang"), ("", "leer"), ("a\u2028b\r", "c")]
    prepared = prepare(
        put(tmp_path, "a", sentences(50)),
        tmp_path / "out",
        CONFIG,
        valid=put(tmp_path, "dev", held),
        tokenizer=tokenizer,
    )
    assert len(prepared.valid) == 2
    assert prepared.valid_source == ["kind", "x y z " * 50, "", "a\u2028b"]
    said = " ".join(prepared.lines())
    assert "2 of them not in the loss (empty or above" in said
    assert "dev.en, line 2; " in said
    assert "dev.en, line 3" in said


def test_pairs_too_long_to_learn_from_are_told_with_their_places(tmp_path, tokenizer):
    pairs = [*sentences(50), *[(f"x{n} y z " * 50, "lang") for n in range(3)]]
    out = tmp_path / "out"
    prepared = prepare(put(tmp_path, "a", pairs), out, CONFIG, tokenizer=tokenizer)
    assert prepared.describe_too_long() == (
        f"3 of 53 pairs have more than data.max_length = {CONFIG.data.max_length} pieces and are "
        f"not learned from: {tmp_path / 'a.en'}, line 51; {tmp_path / 'a.en'}, line 52; …"
    )
    some = prepare(put(tmp_path, "b", sentences(50)), tmp_path / "b", CONFIG, tokenizer=tokenizer)
    assert some.describe_too_long() is None


def test_the_settings_that_are_saved_are_those_of_a_given_tokeniser(tmp_path, tokenizer):
    config = Config()  # 37,000 pieces
    prepared = prepare(
        put(tmp_path, "a", sentences(9)), tmp_path / "o", config, tokenizer=tokenizer
    )
    assert prepared.config.tokenizer.vocabulary == 330
    assert prepared.config.data == config.data


def refused(run, directory, match):
    """The call fails with one line, and leaves nothing."""
    before = sorted(directory.iterdir())
    with pytest.raises(DragomanError, match=match) as caught:
        run()
    assert "\n" not in str(caught.value)
    assert sorted(directory.iterdir()) == before


def test_nothing_left_to_train_on_is_refused_with_the_reasons(tmp_path, tokenizer):
    source = put(tmp_path, "a", [("", "x"), ("same", "same"), ("x", "")])
    refused(
        lambda: prepare(source, tmp_path / "out", CONFIG, tokenizer=tokenizer),
        tmp_path,
        r"of 3 pairs none is left to train on \(empty: 2, copy: 1\)",
    )
    one = put(tmp_path, "b", [("one", "pair")])
    refused(
        lambda: prepare(one, tmp_path / "out", CONFIG, tokenizer=tokenizer),
        tmp_path,
        "of 1 pair none is left",
    )


def test_a_bad_corpus_leaves_nothing(tmp_path, tokenizer):
    source = put(tmp_path, "a", sentences(50))
    with (tmp_path / "a.de").open("ab") as file:
        file.write(b"\xff\n")
    for given in (None, tokenizer):
        refused(
            lambda given=given: prepare(source, tmp_path / "out", CONFIG, tokenizer=given),
            tmp_path,
            r"a\.de, line 51: byte 0xFF",
        )


def test_a_place_that_is_taken_is_refused_before_any_work(tmp_path, tokenizer):
    source = put(tmp_path, "a", sentences(50))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    refused(
        lambda: prepare(source, tmp_path / "out", CONFIG, progress=pytest.fail),
        tmp_path,
        "already exists and is not empty",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "report.json").unlink(), "not a prepared corpus"),
        (lambda path: (path / "report.json").write_text("{"), "damaged"),
        (lambda path: (path / "report.json").write_text('{"x": 1}'), "damaged"),
        (lambda path: (path / "config.toml").unlink(), "no such file"),
        (lambda path: (path / "tokenizer.model").write_bytes(b""), "truncated"),
        (lambda path: (path / "train" / "source.ids").write_bytes(b""), "truncated"),
        (lambda path: (path / "valid" / "source.txt").unlink(), "damaged"),
    ],
)
def test_a_damaged_directory_is_refused(tmp_path, tokenizer, damage, message):
    prepare(put(tmp_path, "a", sentences(50)), tmp_path / "out", CONFIG, tokenizer=tokenizer)
    damage(tmp_path / "out")
    with pytest.raises(DataError, match=message):
        Prepared.open(tmp_path / "out")


def test_a_store_of_another_tokeniser_is_refused(tmp_path, tokenizer):
    source = put(tmp_path, "a", sentences(50))
    prepare(source, tmp_path / "out", CONFIG, tokenizer=tokenizer)
    other = CONFIG.overridden(["tokenizer.vocabulary=320"])
    prepare(source, tmp_path / "other", other)
    (tmp_path / "out" / "train").rename(tmp_path / "old")
    (tmp_path / "other" / "train").rename(tmp_path / "out" / "train")
    with pytest.raises(DataError, match="a different tokeniser"):
        Prepared.open(tmp_path / "out")


def children(process):
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.slow
def test_a_worker_that_is_killed_is_an_error_and_not_a_hang(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("dragoman.data.prepare._CHUNK_PAIRS", 10)
    source = put(tmp_path, "a", sentences(5000))

    def kill(stage, done, total):
        for child in children(os.getpid()):
            os.kill(child, signal.SIGKILL)

    refused(
        lambda: prepare(
            source, tmp_path / "out", CONFIG, tokenizer=tokenizer, workers=2, progress=kill
        ),
        tmp_path,
        "ended",
    )


INTERRUPTED = """
import sys
from pathlib import Path
import dragoman.data.prepare as module
from dragoman.config import Config
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.text.tokenizer import Tokenizer
module._CHUNK_PAIRS = 10
here = Path(sys.argv[1])
config = Config().overridden(["tokenizer.vocabulary=330"])
module.prepare(
    open_parallel_corpus([here / "a.en", here / "a.de"]), here / "out", config,
    tokenizer=Tokenizer.load(here / "tokenizer") if sys.argv[2] == "encoding" else None,
    workers=2, progress=lambda stage, done, total: print(stage, flush=True),
)
"""


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["encoding", "learning pieces"])
def test_an_interrupt_leaves_nothing_and_no_process(tmp_path, tokenizer, stage):
    put(tmp_path, "a", sentences(60_000))
    tokenizer.save(tmp_path / "tokenizer")
    before = sorted(tmp_path.iterdir())
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path), stage],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline().strip() == stage
        workers = children(process.pid)
        assert len(workers) == (2 if stage == "encoding" else 0)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(timeout=20) != 0
    assert not any(alive(worker) for worker in workers)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_too_large_becomes_one_of_the_words_there_are(tmp_path, kind):
    pairs = sentences(200)
    config = CONFIG.overridden(["tokenizer.vocabulary=20000", f"tokenizer.kind={kind}"])
    said = []
    out = tmp_path / "out"
    prepared = prepare(put(tmp_path, "a", pairs), out, config, workers=0, show_message=said.append)
    pieces = len(prepared.tokenizer)
    words = {word for pair in pairs for text in pair for word in text.split()}
    characters = set().union(*words)
    assert pieces <= 300 + len(words) + len(characters)
    assert prepared.config.tokenizer.vocabulary == pieces
    message = f"vocabulary: {pieces:,} pieces instead of 20,000: the corpus has too few different"
    assert said == [f"{message} words"]
    lone = prepared.tokenizer.encode("haus")
    assert len(lone) == 1  # the words of the corpus are pieces


def test_a_vocabulary_of_text_without_spaces_shrinks_too(tmp_path):
    draw = random.Random(1)
    letters = [chr(0x4E00 + n) for n in range(400)]
    pairs = [tuple("".join(draw.choices(letters, k=9)) for _ in range(2)) for _ in range(300)]
    config = CONFIG.overridden(["tokenizer.vocabulary=20000", "data.max_length=100"])
    prepared = prepare(put(tmp_path, "a", pairs), tmp_path / "out", config, workers=0)
    assert 660 < len(prepared.tokenizer) < 20_000
    held = list(zip(prepared.valid_source, prepared.valid_target, strict=True))
    assert decoded(prepared, prepared.valid) == held


# --- tags of formality ---

FORMAL = CONFIG.overridden(["data.formality=0.5", 'data.languages=["en","de"]'])


def address(count):
    """Pairs of which a third is formal, a third informal, and a third neither."""
    kinds = ["haben sie {} gesehen", "hast du {} gesehen", "es hat {} gesehen"]
    return [
        (f"{source} seen", kinds[n % 3].replace("haben sie", "Haben Sie").format(target))
        for n, (source, target) in enumerate(sentences(count))
    ]


def tags_of(prepared, store):
    names = {number: name for name, number in prepared.tokenizer.tags.items()}
    return [names.get(int(store.source(i)[0])) for i in range(len(store))]


@pytest.mark.parametrize("held_out", [True, False])
def test_half_of_the_sources_whose_targets_tell_get_their_tag(tmp_path, held_out):
    pairs, valid = address(900), None if held_out else put(tmp_path, "dev", address(910)[900:])
    prepared = prepare(put(tmp_path, "a", pairs), tmp_path / "o", FORMAL, valid=valid, workers=0)
    found = tags_of(prepared, prepared.train)
    wanted = {"Haben": "<formal>", "hast": "<informal>", "es": None}
    kinds = [wanted[target.split()[0]] for _, target in decoded(prepared, prepared.train)]
    assert all(tag in (None, kind) for tag, kind in zip(found, kinds, strict=True))
    for kind in ("<formal>", "<informal>"):
        assert 0.4 < found.count(kind) / kinds.count(kind) < 0.6
    counts = ", ".join(
        f"{tag} before {found.count(tag)} sources" for tag in prepared.tokenizer.tags
    )
    assert f"tags: {counts}" in prepared.lines()
    assert set(tags_of(prepared, prepared.valid)) == {None}, "it is translated without"
    texts = [*decoded(prepared, prepared.train), *decoded(prepared, prepared.valid)]
    assert set(pairs) <= set(texts), "a tag is no text"


def test_without_the_setting_there_are_no_tags(tmp_path):
    prepared = prepare(put(tmp_path, "a", address(300)), tmp_path / "o", CONFIG, workers=0)
    assert prepared.tokenizer.tags == {}


def test_a_tokenizer_without_tags_cannot_have_them(tmp_path, tokenizer):
    corpus = put(tmp_path, "a", address(300))
    with pytest.raises(ConfigError, match="needs a tokeniser with the tag <formal>, and this one"):
        prepare(corpus, tmp_path / "o", FORMAL, tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('data.languages=["de","en"]', "there are no rules for English"),
        ("data.languages=[]", "there are no rules for a language that is not named"),
        ("data.formality=1", "must be at least 0 and below 1"),
    ],
)
def test_tags_that_cannot_be_are_refused(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message):
        prepare(put(tmp_path, "a", address(300)), tmp_path / "o", FORMAL.overridden([change]))

"""The command line, verb by verb."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dragoman
from dragoman.cli.options import expand_paired_files
from dragoman.config import Config, preset_names
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.models.weights import read_tensors
from dragoman.run_directory import list_checkpoints
from dragoman.training.checkpoints.checkpoint import Checkpoint

from ..conftest import TINY, Result, reversals, write_pairs
from ..kernel import needs_kernel

Command = Callable[..., Result]

VERBS = ["demo", "prepare", "doctor", "train", "average", "translate", "evaluate"]
VERBS += ["presets", "info", "plot", "score", "alternatives", "quantize", "export", "import"]
VERBS += ["parse", "selftrain", "distill"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_pairs(tmp_path_factory.mktemp("corpus"), reversals(400, seed=1))


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_pairs(tmp_path_factory.mktemp("dev"), reversals(12, seed=2), "dev")


@pytest.fixture(scope="module")
def preset(tiny: Config, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("preset") / "tiny.toml"
    file.write_text(tiny.to_toml(), encoding="utf-8")
    return ["--preset", str(file)]


def good(result: Result) -> str:
    assert result.status == 0, result.err
    return result.out


# --- the installation ---


@needs_kernel
def test_info_without_a_path_describes_the_installation(command: Command) -> None:
    facts = json.loads(good(command("info", "--json")))
    assert facts["dragoman"] == dragoman.__version__
    assert facts["pytorch"] == torch.__version__
    assert facts["on this CPU"].startswith("the CPU engine computes in int8, with instructions for")


@needs_kernel
def test_an_instruction_set_that_the_machine_lacks_is_refused_in_a_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "info"],
        env=os.environ | {"DRAGOMAN_ISA": "abacus"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"dragoman: DRAGOMAN_ISA=abacus: .* it has plain.*\n", done.stderr)


# --- languages ---


def _as_tsv(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in [("ko", "fr"), *pairs])


def _as_json_lines(pairs: list[tuple[str, str]]) -> str:
    return "".join(json.dumps({"ko": source, "fr": target}) + "\n" for source, target in pairs)


def _as_tmx(pairs: list[tuple[str, str]]) -> str:
    units = (
        f'<tu><tuv xml:lang="ko-KR"><seg>{source}</seg></tuv>'
        f'<tuv xml:lang="fr"><seg>{target}</seg></tuv></tu>'
        for source, target in pairs
    )
    return f'<tmx version="1.4"><header srclang="ko"/><body>{"".join(units)}</body></tmx>'


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.tsv", _as_tsv), ("a.jsonl", _as_json_lines), ("a.tmx", _as_tmx)],
)
def test_languages_survive_from_the_file_to_the_model(
    name: str,
    write: Callable[[list[tuple[str, str]]], str],
    preset: list[str],
    command: Command,
    tmp_path: Path,
) -> None:
    pairs = reversals(200)
    (tmp_path / name).write_text(write(pairs), encoding="utf-8")
    out = good(command("prepare", tmp_path / name, *preset, "--out", tmp_path / "data"))
    assert out.splitlines()[-1] == "languages: ko → fr"
    assert out.startswith("200 pairs read")
    if name != "a.tsv":
        return
    settings = ["--set", "training.steps=1", "--quiet"]
    good(command("train", tmp_path / "data", *preset, *settings, "--out", tmp_path / "run"))
    assert Config.load(tmp_path / "run/model/config.toml").data.languages == ("ko", "fr")


# --- what a prepared corpus was made with ---


@pytest.fixture(scope="module")
def data(tiny: Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared corpus of 60 pairs, from English to German; do not write to it."""
    directory = tmp_path_factory.mktemp("data")
    files = write_pairs(directory, reversals(60))
    config = tiny.updated({"data": {"languages": ["en", "de"]}})
    return prepare(open_parallel_corpus(files), directory / "data", config, workers=0).path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--set", "tokenizer.vocabulary=340"],
            "tokenizer.vocabulary = 340, but {} was prepared with tokenizer.vocabulary = 330; "
            "leave it out, or run dragoman prepare again with --set 'tokenizer.vocabulary=340'",
        ),
        (["--set", "tokenizer.kind=unigram"], 'tokenizer.kind = "unigram", but {} was prepared'),
        (["--set", "data.max_length=50"], "data.max_length = 50, but {} was prepared with data."),
        (["--set", "data.drop_copies=false"], "data.drop_copies = false, but {} was prepared"),
        (["--languages", "en,fr"], 'data.languages = ["en", "fr"], but {} was prepared with data'),
        (["--set", "data.max_lenght=5"], "--set: there is no setting 'data.max_lenght'; did you"),
    ],
)
def test_a_setting_that_a_prepared_corpus_contradicts_is_refused(
    options: list[str],
    message: str,
    data: Path,
    preset: list[str],
    command: Command,
    tmp_path: Path,
) -> None:
    result = command("train", data, *preset, *options, "--out", tmp_path / "run")
    assert result.status == 2
    assert result.err.startswith("dragoman: " + message.format(data))
    assert result.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "tokenizer.vocabulary=330", "--set", "data.max_length=63"],
        ["--languages", "en, de"],
        ["--set", "data.row_length=80", "--set", "data.subword_sampling=0.1"],
        ["--preset", "tiny"],
    ],
)
def test_what_agrees_or_was_not_typed_is_not_refused(
    options: list[str], data: Path, preset: list[str], tmp_path: Path, command: Command
) -> None:
    """A preset's own vocabulary is not the user's word; the corpus's holds."""
    if options == ["--preset", "tiny"]:
        options = [*options, *(f"--set={change}" for change in TINY if "data." not in change)]
    else:
        options = [*preset, *options]
    run = tmp_path / "run"
    good(command("train", data, *options, "--steps", 1, "--quiet", "--out", run))
    config = Config.load(run / "config.toml")
    assert (config.tokenizer.vocabulary, config.data.max_length) == (330, 63)
    assert config.data.languages == ("en", "de")


def test_languages_that_a_prepared_corpus_does_not_name_can_be_given(
    prepared: Prepared, preset: list[str], tmp_path: Path, command: Command
) -> None:
    run = tmp_path / "run"
    options = ["--languages", "ko,en", "--steps", 1, "--quiet"]
    good(command("train", prepared.path, *preset, *options, "--out", run))
    assert Config.load(run / "model/config.toml").data.languages == ("ko", "en")
    result = command("train", "--resume", run, "--set", "tokenizer.vocabulary=500")
    assert result.status == 2
    assert "was prepared with tokenizer.vocabulary = 330" in result.err


# --- how long to train ---


def test_steps_and_epochs_say_how_long_to_train(
    data: Path, preset: list[str], command: Command, tmp_path: Path
) -> None:
    out = good(command("train", data, *preset, "--steps", 2, "--json", "--out", tmp_path / "a"))
    assert json.loads(out)["steps"] == 2
    result = command("train", data, *preset, "--epochs", 2, "--json", "--out", tmp_path / "b")
    steps = json.loads(good(result))["steps"]
    assert re.search(
        rf"^2 epochs: {steps} steps, {steps // 2} for each pass over 59 pairs$", result.err, re.M
    )
    entries = [json.loads(line) for line in (tmp_path / "b/metrics.jsonl").read_text().splitlines()]
    assert max(entry.get("epoch", 0) for entry in entries) == 2  # where the next batch would be
    again = command("train", "--resume", tmp_path / "b", "--epochs", 3, "--json")
    assert json.loads(good(again))["steps"] == steps * 3 // 2
    more = command("train", "--resume", tmp_path / "a", "--steps", 3, "--json")
    assert json.loads(good(more))["steps"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", 5, "--epochs", 2], "--steps and --epochs contradict each other; give only"),
        (
            ["--steps", 5, "--set", "training.steps=6"],
            "--steps and --set training.steps contradict each other; give only one of them",
        ),
        (["--epochs", 5, "--set", "training.steps=6"], "--epochs and --set training.steps contra"),
        (["--epochs", 0], "0 epochs are impossible; give a number above 0"),
        (["--steps", 0], "training.steps = 0 is too small; the minimum is 1"),
        (
            ["--epochs", 1, "--set", "training.batch_tokens=auto"],
            "with training.batch_tokens=auto the steps of an epoch are not known beforehand; give",
        ),
    ],
)
def test_contradictory_lengths_are_refused(
    options: list[object], message: str, data: Path, preset: list[str], command: Command
) -> None:
    result = command("train", data, *preset, *options)
    assert result.status == 2
    assert result.err.startswith(f"dragoman: {message}")


# --- asking for help, and mistakes in asking ---


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["", *VERBS, "tokenizer"])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help(verb: str, option: str, command: Command) -> None:
    text = good(command(*verb.split(), option))
    assert "Usage: dragoman" in text
    if not verb:
        assert all(name in text for name in [*VERBS, "tokenizer"])


@pytest.mark.parametrize("verb", ["train", "encode", "decode"])
def test_every_command_of_the_tokeniser_has_help(verb: str, command: Command) -> None:
    assert f"Usage: dragoman tokenizer {verb}" in good(command("tokenizer", verb, "--help"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("dragoman tran", ["translate"]),
        ("dragoman train --ep", ["--epochs"]),
        ("dragoman train --preset ti", ["tiny"]),
        (
            "dragoman doctor --preset table3-d-s",
            ["table3-d-smoothing-0.0", "table3-d-smoothing-0.2"],
        ),
    ],
)
def test_the_shell_completes_commands_options_and_presets(
    words: str, completions: list[str]
) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "dragoman"],
        env=os.environ | asked | {"_DRAGOMAN_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == completions


def test_the_version_is_printed(command: Command) -> None:
    assert good(command("--version")) == f"dragoman {dragoman.__version__}\n"


def test_no_command_at_all_gives_help(command: Command) -> None:
    result = command()
    assert result.status == 2
    assert "Usage: dragoman" in result.out + result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("trian a b", "dragoman: no such command 'trian'; did you mean 'train'?\n"),
        ("tokenizer encod x", "dragoman: no such command 'encod'; did you mean 'encode'"),
        ("train a b --vlaid c", "dragoman: no such option: --vlaid; did you mean --valid?\n"),
        ("xyz", "dragoman: no such command 'xyz'; see dragoman --help\n"),
        ("inspect", "dragoman: missing argument 'model'; see dragoman inspect --help\n"),
        ("prepare a b", "dragoman: missing option '--out'; see dragoman prepare --help\n"),
        ("translate x --beam many", "dragoman: invalid value for '--beam': "),
        ("train a b --set training.step=5", "dragoman: --set: there is no setting 'training.step'"),
        ("train a b --preset smal", "dragoman: there is no preset 'smal'; did you mean 'small'?\n"),
        ("train", "dragoman: nothing to train on; give two aligned files, as in: dragoman train "),
        ("train a b --resume c", "dragoman: --resume RUN takes only --set, --steps and --epochs; "),
        (
            "evaluate m",
            "dragoman: --reference is missing: name the file of correct translations, or trees\n",
        ),
        (
            "evaluate --reference r",
            "dragoman: give either a model or --hypotheses with translations",
        ),
        ("evaluate m --reference r", "dragoman: --source is missing: name the file to translate\n"),
        ("demo --language xx", "dragoman: the phrasebook has no language 'xx'; choose from de, ko"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    arguments: str, message: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = command(*arguments.split())
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "spread"),
    [
        ("train a b --valid c d --out e", "train a b --valid c --valid d --out e"),
        ("train a b --valid c.tsv --out e", "train a b --valid c.tsv --out e"),
        ("doctor --test c.jsonl.gz a b", "doctor --test c.jsonl.gz a b"),
        ("doctor a b --test c d --valid e f", "doctor a b --test c --test d --valid e --valid f"),
        ("prepare a b --add c d --add e.tmx", "prepare a b --add c --add d --add e.tmx"),
        ("train --valid c --out e", "train --valid c --out e"),
        ("train --valid", "train --valid"),
    ],
)
def test_two_files_may_follow_one_option(given: str, spread: str) -> None:
    assert expand_paired_files(given.split()) == spread.split()


# --- presets ---


@pytest.mark.slow
def test_presets_are_listed_with_their_parameters_beside_the_papers(command: Command) -> None:
    lines = good(command("presets")).splitlines()
    assert len(lines) == 1 + len(preset_names())
    assert re.match(r"base +63\.05M +65M  The paper's base model", lines[1])
    assert re.match(r"big +214\.17M +213M  The paper's big model", lines[2])
    rows = {row["name"]: row for row in json.loads(good(command("presets", "--json")))}
    # The equations with 37,000 pieces, beside what Table 3 prints.
    found = {name: (rows[name]["parameters"], rows[name]["paper_millions"]) for name in rows}
    encoder = 6 * (4 * 512**2 + 2 * 512 * 2048 + 2048 + 512 + 2 * 1024)
    decoder = 6 * (8 * 512**2 + 2 * 512 * 2048 + 2048 + 512 + 3 * 1024)
    assert found["base"] == (37_000 * 512 + encoder + decoder, 65)
    for name, (count, paper) in found.items():
        if paper:
            assert count == pytest.approx(paper * 1e6, rel=0.07), name


def test_a_preset_is_printed_in_full(command: Command, tmp_path: Path) -> None:
    text = good(command("presets", "big"))
    (tmp_path / "big.toml").write_text(text, encoding="utf-8")
    assert Config.load(tmp_path / "big.toml") == dragoman.load_preset("big")
    table = json.loads(good(command("presets", "big", "--json")))
    assert Config.from_dict(table) == dragoman.load_preset("big")


# --- corpora ---


def test_prepare_makes_a_directory_and_reports(
    corpus: list[Path],
    dev: list[Path],
    preset: list[str],
    command: Command,
    tmp_path: Path,
) -> None:
    out = tmp_path / "data"
    text = good(command("prepare", *corpus, "--valid", *dev, "--out", out, *preset, "--workers", 0))
    assert re.match(r"400 pairs read, \d+ kept", text)
    prepared = Prepared.open(out)
    assert prepared.config.data.languages == ("en", "de")
    assert len(prepared.valid_source) == 12
    again = tmp_path / "again"
    options = ["--languages", "xx,yy", "--tokenizer", out, "--add", *dev, "--json"]
    report = json.loads(good(command("prepare", *corpus, "--out", again, *preset, *options)))
    assert report["read"] == 412
    assert Prepared.open(again).config.data.languages == ("xx", "yy")
    assert Prepared.open(again).tokenizer == prepared.tokenizer
    refused = command("prepare", *corpus, "--out", again, *preset)
    assert refused.status == 2
    assert "already exists and is not empty" in refused.err


@pytest.mark.slow
def test_the_doctor_finds_nothing_wrong_and_finds_what_is(
    corpus: list[Path], dev: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    text = good(command("doctor", *corpus, "--test", *dev, *preset))
    assert "400" in text
    short = tmp_path / "short.de"
    short.write_text("".join(corpus[1].read_text().splitlines(keepends=True)[:-1]))
    result = command("doctor", corpus[0], short, *preset)
    assert result.status == 2
    assert "399" in result.out
    result = command("doctor", corpus[0], short, *preset, "--json")
    assert result.status == 2
    assert json.loads(result.out)


def test_the_doctor_judges_for_the_preset_that_suits_the_corpus(
    corpus: list[Path], command: Command
) -> None:
    found = json.loads(good(command("doctor", *corpus, "--json")))["figures"]
    assert found["preset"] == {"judged_for": "tiny", "advised": "tiny"}
    assert found["vocabulary"]["wanted"] == 8000
    found = json.loads(good(command("doctor", *corpus, "--preset", "small", "--json")))["figures"]
    assert found["preset"] == {"judged_for": "small", "advised": "tiny"}
    assert found["vocabulary"]["wanted"] == 16_000


def test_a_tokeniser_is_trained_and_turns_lines_into_pieces_and_back(
    corpus: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    out = tmp_path / "tokenizer"
    text = good(command("tokenizer", "train", *corpus, "--out", out, *preset))
    assert text == f"{out}: bpe, 330 pieces\n"
    lines = "the old dog\n\n한국 cat".encode()
    pieces = good(command("tokenizer", "encode", out, stdin=lines)).split("\n")
    assert pieces[0].replace(" ", "").replace("▁", " ") == " the old dog"
    assert pieces[1] == ""
    ids = good(command("tokenizer", "encode", out, "--ids", stdin=lines))
    back = good(command("tokenizer", "decode", out, stdin=ids.encode()))
    assert back == "the old dog\n\n한국 cat\n"
    bad = command("tokenizer", "decode", out, stdin=b"5 6\nhello\n")
    assert (bad.status, bad.err) == (
        2,
        "dragoman: standard input, line 2: these are not ids; give what encode --ids printed\n",
    )


# --- training ---


@pytest.mark.slow
def test_train_resume_average_info_and_plot(
    corpus: list[Path], dev: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    settings = [*preset, "--set", "training.validate_every=2"]
    settings += ["--set", "training.checkpoint_every=1", "--set", "training.steps=4"]
    result = command("train", *corpus, "--valid", *dev, "--out", run, *settings)
    assert good(result) == f"{run / 'model'}\n"
    assert "step 4 of 4  loss " in result.err
    assert "validation at step 2: perplexity " in result.err
    assert Config.load(run / "config.toml").data.languages == ("en", "de")

    resumed = command("train", "--resume", run, "--set", "training.steps=5", "--quiet", "--json")
    outcome = json.loads(good(resumed))
    assert outcome["steps"] == 5
    assert outcome["model"] == str(run / "model")
    assert resumed.err.count("\n") == 1, "quiet says only that it is done"

    text = good(command("average", run, "--out", tmp_path / "mean", "--last", 2))
    assert text == f"{tmp_path / 'mean'}: average of 2: step-00000004, step-00000005\n"
    two = [Checkpoint(path).read_weights() for path in list_checkpoints(run)[-2:]]
    mean = read_tensors(tmp_path / "mean/weights.safetensors")
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, (two[0][name] + two[1][name]) / 2)

    facts = good(command("info", run))
    assert "kind: run\n" in facts
    assert "steps planned: 5\n" in facts
    assert re.search(r"last valid: step 4, loss \d", facts)
    assert "kind: prepared corpus\n" in good(command("info", run / "data"))
    facts = good(command("info", run / "model"))
    assert "languages: en → de\n" in facts
    assert "architecture: transformer, 2+1 layers, d_model 32, d_ff 64, 2 heads\n" in facts
    assert re.search(r"validation: perplexity \d+\.\d\d, greedy BLEU \d+\.\d\d\n", facts)
    assert json.loads(good(command("info", run / "model", "--json")))["steps"] in (4, 5)

    assert good(command("plot", run)) == f"{run / 'curves.png'}\n"
    assert (run / "curves.png").read_bytes().startswith(b"\x89PNG")
    both = tmp_path / "both.svg"
    assert good(command("plot", run, run, "--out", both)) == f"{both}\n"
    assert both.exists()


@pytest.mark.slow
def test_a_run_that_ended_before_its_first_checkpoint_begins_again(
    prepared: Prepared, preset: list[str], command: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    settings = [*preset, "--set", "training.steps=2", "--set", "training.validate_every=2"]
    good(command("train", prepared.path, "--out", run, *settings, "--quiet"))
    expected = (run / "model/weights.safetensors").read_bytes()
    for path in list_checkpoints(run):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    (run / "model/weights.safetensors").unlink()
    good(command("train", "--resume", run, "--quiet"))
    assert (run / "model/weights.safetensors").read_bytes() == expected


def test_training_never_replaces_a_directory_that_is_not_its_own(
    corpus: list[Path],
    preset: list[str],
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`dragoman train data/corpus.en data/corpus.de --out .` must not eat data/."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    write_pairs(Path("data"), reversals(50))
    options = [*preset, "--set", "training.steps=1", "--quiet"]
    result = command("train", "data/corpus.en", "data/corpus.de", *options, "--out", ".")
    assert result.status == 2
    assert result.err.startswith("dragoman: data: not a prepared corpus, and would be replaced by")
    assert sorted(path.name for path in Path("data").iterdir()) == ["corpus.de", "corpus.en"]
    result = command("average", "data", "--out", "data")
    assert result.status == 2
    assert sorted(path.name for path in Path("data").iterdir()) == ["corpus.de", "corpus.en"]


# --- translating ---


@pytest.fixture(scope="module")
def expected(trained: Path) -> dict[str, str]:
    """Translations by the Python API."""
    translator = dragoman.load(trained)
    texts = ["the old dog sees", "red cat", "small tree", ""]
    return {text: translator.translate(text).text for text in texts}


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CR LF"])
@pytest.mark.parametrize("last", [True, False], ids=["with", "without"])
def test_lines_from_stdin_keep_their_order_and_number(
    end: bytes, last: bool, trained: Path, expected: dict[str, str], command: Command
) -> None:
    lines = [b"the old dog sees", b"", b"red cat", b"", b"small tree"]
    text = end.join(lines) + (end if last else b"")
    found = good(command("translate", trained, stdin=text))
    ends = [end.decode()] * 4 + [end.decode() if last else "\n"]
    texts = [expected[line.decode()] + one for line, one in zip(lines, ends, strict=True)]
    assert found == "".join(texts)


def test_files_are_translated_one_after_another(
    trained: Path, expected: dict[str, str], command: Command, tmp_path: Path
) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("red cat")
    two.write_text("\nsmall tree\n")
    found = good(command("translate", trained, one, two, "--window", 1))
    assert found == f"{expected['red cat']}\n\n{expected['small tree']}\n"
    assert good(command("translate", trained, stdin=b"")) == ""


def test_json_is_an_object_a_line(
    trained: Path, expected: dict[str, str], command: Command
) -> None:
    text = good(command("translate", trained, "--json", "--align", stdin=b"red cat\n\n"))
    cat, nothing = map(json.loads, text.splitlines())
    assert cat["text"] == expected["red cat"]
    assert cat["score"] < 0
    assert "".join(cat["tokens"]).startswith("▁") or cat["tokens"]
    assert all(0 <= s < 2 for s, _ in cat["alignment"])
    assert nothing == {"text": "", "score": 0.0, "log_prob": 0.0, "tokens": []}
    several = good(command("translate", trained, "--json", "--n-best", 3, stdin=b"red cat\n"))
    assert len(json.loads(several)["alternatives"]) == 2


def test_n_best_names_the_line_of_each(
    trained: Path, expected: dict[str, str], command: Command
) -> None:
    text = good(command("translate", trained, "--n-best", 3, stdin=b"red cat\n\nsmall tree\n"))
    rows = [line.split("\t") for line in text.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    assert rows[0][2] == expected["red cat"]
    scores = [float(row[1]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
def test_sampling_obeys_its_seed_and_options(trained: Path, command: Command) -> None:
    def draw(*options: object) -> list[str]:
        command_line = ["translate", trained, "--sample", 3, "--raw", *options]
        text = good(command(*command_line, stdin=b"red cat\n"))
        return [line.split("\t")[2] for line in text.splitlines()]

    first = draw("--seed", 5)
    assert len(first) == 3
    assert draw("--seed", 5) == first
    assert draw("--seed", 6) != first
    greedy = good(command("translate", trained, "--beam", 1, "--raw", stdin=b"red cat\n"))
    assert [f"{text}\n" for text in draw("--top-k", 1)] == [greedy] * 3


def test_options_of_the_search_are_passed_on(trained: Path, command: Command) -> None:
    found = good(command("translate", trained, "--prefix", "tac der", stdin=b"red cat\n"))
    assert found.startswith("tac der")
    text = good(command("translate", trained, "--json", "--min-length", 20, stdin=b"dog\n"))
    assert len(json.loads(text)["tokens"]) >= 20
    text = good(command("translate", trained, "--json", "--max-extra", 0, stdin=b"dog\n"))
    assert len(json.loads(text)["tokens"]) <= 3
    refused = command("translate", trained, "--beam", 0, stdin=b"dog\n")
    assert refused == Result(2, "", "dragoman: search.beam = 0 is too small; the minimum is 1\n")


@pytest.mark.slow
def test_a_sentence_cut_is_said_on_stderr_only(trained: Path, command: Command) -> None:
    result = command("translate", trained, "--beam", 1, stdin=b"the dog sees " * 40)
    assert good(result).count("\n") == 1
    assert result.err.startswith("dragoman: a sentence of more than 63 pieces was cut into parts: ")


# --- evaluating ---


@pytest.mark.slow
def test_a_model_is_evaluated(
    trained: Path, dev: list[Path], command: Command, tmp_path: Path
) -> None:
    options = ["--source", dev[0], "--reference", dev[1]]
    text = good(command("evaluate", trained, *options, "--out", tmp_path / "found.de"))
    assert re.search(r"^BLEU\|nrefs:1\|case:mixed\|eff:no\|tok:13a\|.* = \d+\.\d\d$", text, re.M)
    assert re.search(r"^chrF2\|.* = \d+\.\d\d$", text, re.M)
    assert re.search(r"^TER\|.* = \d+\.\d\d$", text, re.M)
    assert re.search(r"^perplexity = \d+\.\d+ a piece", text, re.M)
    written = (tmp_path / "found.de").read_text(encoding="utf-8")
    assert written == good(command("translate", trained, "--raw", dev[0]))
    table = json.loads(good(command("evaluate", trained, *options, "--json", "--lowercase")))
    assert "case:lc" in json.dumps(table)
    assert table["perplexity"]


@pytest.mark.slow
def test_translations_are_evaluated_and_compared_with_files_and_models(
    trained: Path, dev: list[Path], command: Command
) -> None:
    source, reference = ["--source", dev[0]], ["--reference", dev[1]]
    right = ["--hypotheses", dev[1], *reference]
    text = good(command("evaluate", *right))
    assert re.search(r"^BLEU\|.* = 100\.00$", text, re.M)
    assert "perplexity" not in text
    text = good(command("evaluate", *right, "--against", dev[0]))
    assert "against the baseline, by paired bootstrap:" in text
    table = json.loads(good(command("evaluate", *right, *source, "--against", trained, "--json")))
    assert table["comparison"]
    text = good(command("evaluate", trained, *source, *reference, "--against", trained / "model"))
    assert re.search(r"^BLEU\|.*, \+0\.00 .*p = 1\.0", text, re.M)
    refused = command("evaluate", *right, "--against", trained)
    assert refused.err == "dragoman: --source is missing: name the file to translate\n"


def test_a_test_set_of_unequal_files_is_refused(
    trained: Path, dev: list[Path], corpus: list[Path], command: Command
) -> None:
    result = command("evaluate", trained, "--source", dev[0], "--reference", corpus[1])
    assert result.status == 2
    assert result.err.startswith("dragoman: there are 12 source lines but 400 references")


# --- in real processes ---


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 100_000], ids=["at the end", "in the middle"])
def test_a_reader_that_leaves_early_causes_no_traceback(
    lines: int, prepared: Prepared, tmp_path: Path
) -> None:
    text = tmp_path / "lines.txt"
    text.write_bytes(b"the dog\n" * lines)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with (
        text.open("rb") as lines_in,
        subprocess.Popen(
            [sys.executable, "-m", "dragoman", "tokenizer", "encode", str(prepared.path)],
            stdin=lines_in,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


@pytest.mark.slow
def test_the_installed_command_and_the_module_are_the_same() -> None:
    script = Path(sys.executable).parent / "dragoman"
    both = [
        subprocess.run([*command, "presets", "base"], capture_output=True, check=True).stdout
        for command in ([str(script)], [sys.executable, "-m", "dragoman"])
    ]
    assert both[0] == both[1]
    assert both[0].startswith(b"[tokenizer]\n")

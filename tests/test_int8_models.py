"""A model directory of int8 weights alone: how it is made, used, and refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.errors import ModelError
from dragoman.inference import Translator, load
from dragoman.inference.glossary import Glossary
from dragoman.model_directory import INT8_FILE, load_model, open_model, write_int8_model
from dragoman.search import SamplingOptions

from .conftest import Result
from .kernel import needs_kernel

pytestmark = needs_kernel

Command = Callable[..., Result]
SOURCE = "the old dog sees"


@pytest.fixture(scope="module")
def small(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a model; do not write to it."""
    place = tmp_path_factory.mktemp("small") / "model"
    write_int8_model(open_model(trained), place)
    return place


@pytest.fixture
def copied(small: Path, tmp_path: Path) -> Path:
    """One that may be written to."""
    return Path(shutil.copytree(small, tmp_path / "model"))


def test_it_has_all_that_a_model_has_but_the_weights(trained: Path, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(trained / "model", tmp_path / "whole"))
    for name in ("calibration.json", "shortlist.safetensors", "NOTICE"):
        (whole / name).write_text(name)
    (whole / "folder").mkdir()
    write_int8_model(open_model(whole), tmp_path / "out")
    files = {file.name: file.read_bytes() for file in whole.iterdir() if file.is_file()}
    del files["weights.safetensors"]
    made = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    del made[INT8_FILE]
    assert made == files


def test_it_translates_as_the_whole_model_does(trained: Path, small: Path) -> None:
    wanted, found = (load(path).translate(SOURCE, n_best=3) for path in (trained, small))
    assert found == wanted


@pytest.fixture(scope="module")
def translator(small: Path) -> Translator:
    return load(small, device="cpu")


USES: dict[str, Callable[[Translator], object]] = {
    "alignment": lambda t: t.translate(SOURCE, align=True).alignment,
    "prefix": lambda t: t.translate(SOURCE, prefix="tac").text.startswith("tac"),
    "must": lambda t: "tac" in t.translate(SOURCE, must=["tac"]).text.split(),
    "must not": lambda t: "dog" not in t.translate(SOURCE, must_not=["dog"]).text.split(),
    "glossary": lambda t: (
        "Dackel" in t.translate("the dog", glossary=Glossary([("dog", "Dackel", 1)])).text
    ),
    "diverse": lambda t: t.translate(SOURCE, n_best=2, diverse=2).text,
    "samples": lambda t: t.translate(SOURCE, sampling=SamplingOptions()).text,
    "score": lambda t: t.score([SOURCE], ["sees god dlo eht"])[0].log_prob < 0,
    "alternatives": lambda t: t.alternatives(SOURCE),
    "pictures": lambda t: t.inspect(SOURCE)._repr_html_(),
}


@pytest.mark.parametrize("use", USES)
def test_whatever_a_translator_can_do_it_does(use: str, translator: Translator) -> None:
    assert USES[use](translator)


def test_what_pytorch_computes_is_near_what_the_engine_does(
    trained: Path, translator: Translator
) -> None:
    target = translator.translate(SOURCE)
    scored = translator.score([SOURCE], [target.text])[0]
    whole = load(trained, precision="float32").score([SOURCE], [target.text])[0]
    assert scored.log_prob == pytest.approx(whole.log_prob, rel=0.02)
    assert scored.log_prob != whole.log_prob


def test_two_such_models_are_an_ensemble(small: Path) -> None:
    assert load(small, small).translate(SOURCE).text


def test_commands_make_describe_and_use_it(command: Command, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = command("quantize", trained, "--out", out)
    assert (made.status, made.out.partition(":")[0]) == (0, str(out / INT8_FILE))
    assert not (trained / "model" / INT8_FILE).exists()
    described = command("info", out)
    assert described.status == 0
    assert ", in int8 only\n" in described.out
    whole = command("info", trained / "model").out
    assert described.out.replace(", in int8 only", "") == whole
    assert command("translate", out, stdin=b"the dog\n").out.strip()
    assert command("quantize", trained, "--out", out).status == 0, "it replaces a model"


def test_what_needs_the_weights_as_they_were_is_refused(
    command: Command, small: Path, tmp_path: Path
) -> None:
    needs = "has only int8 weights, and {} needs weights.safetensors; give the model that dragoman"
    asked: dict[str, tuple[object, ...]] = {
        "exporting": ("export", small, tmp_path / "out"),
        "quantising": ("quantize", small),
        "averaging": ("average", small, small, "--out", tmp_path / "out"),
        "comparing it with others": (
            *(
                "bench",
                "translate",
                small,
                "--source",
                small / "README.md",
                "--against",
                "huggingface",
            ),
        ),
    }
    for purpose, words in asked.items():
        done = command(*words)
        assert done.status == 2, words
        said = done.err.splitlines()[-1]
        assert said == f"dragoman: {small}: {needs.format(purpose)} quantize made it from"
    assert not (tmp_path / "out").exists()


def test_a_model_is_not_replaced_by_its_own_int8(trained: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(trained / "model", tmp_path / "model"))
    (tmp_path / "other").symlink_to(model)
    for place in (model, tmp_path / "other", tmp_path / "x/../model"):
        with pytest.raises(ModelError, match="is the model itself; choose another place"):
            write_int8_model(open_model(model), place)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/cat.jpg").write_bytes(b"irreplaceable")
    with pytest.raises(ModelError, match="photos: already exists and is not a model"):
        write_int8_model(open_model(model), tmp_path / "photos")
    assert (model / "weights.safetensors").exists()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (
        lambda m: (m / INT8_FILE).write_bytes((m / INT8_FILE).read_bytes()[:-100]),
        "truncated or not a safetensors file",
    ),
    "empty": (lambda m: (m / INT8_FILE).write_bytes(b""), "truncated or not a safetensors file"),
    "another card": (
        lambda m: (m / "card.json").write_text('{"format": 1}'),
        "does not belong to the model beside it",
    ),
    "another config": (
        lambda m: (m / "config.toml").write_text(
            (m / "config.toml").read_text().replace("d_ff = 64", "d_ff = 128")
        ),
        "encoder.0.inner.weight is missing, or belongs to another model",
    ),
    "a config without int8": (
        lambda m: (m / "config.toml").write_text(
            (m / "config.toml").read_text().replace('"sinusoidal"', '"rotary"')
        ),
        "of a model with model.positions = rotary, which has no int8 weights",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_refused_in_one_line(damage: str, copied: Path) -> None:
    break_it, message = DAMAGES[damage]
    break_it(copied)
    advice = "; the model has no other weights: copy it again from where it came"
    for use in (load, load_model):
        with pytest.raises(ModelError) as caught:
            use(copied)
        said = str(caught.value)
        assert said.startswith(f"{copied / INT8_FILE}: ")
        assert message in said
        assert said.endswith(advice)
        assert "\n" not in said


def test_half_a_directory_is_refused(copied: Path) -> None:
    (copied / INT8_FILE).unlink()
    with pytest.raises(ModelError, match=r"not a model directory, which has card\.json, and"):
        load(copied)

"""Training can begin with the weights of a model, to adapt it to other text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.conftest import reversals, write_pairs

from dragoman.config import Config
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers import open_corpus
from dragoman.errors import ConfigError
from dragoman.model_directory import load_model, open_model, write_int8_model
from dragoman.models.weights import get_weights
from dragoman.training.run import resume, train

NO_CHANGE = (
    *("training.schedule=constant", "training.learning_rate=1e-30", "training.steps=2"),
    *("training.validate_every=2", "training.average=1"),
)


def same_weights(one: Path, other: Path) -> bool:
    """Return whether two models have the same weights, to the bit."""
    first, second = get_weights(load_model(one).model), get_weights(load_model(other).model)
    return all(first[name].equal(second[name]) for name in first)


def test_a_run_begins_with_the_weights_of_the_model_it_starts_from(
    tmp_path: Path, tiny: Config, prepared: Prepared, trained: Path
) -> None:
    kept = train(
        *(tiny, prepared.path), start_from=trained, run=tmp_path / "run", assignments=NO_CHANGE
    )
    assert kept.model is not None
    assert same_weights(kept.model, trained)
    new = train(tiny, prepared.path, run=tmp_path / "new", assignments=NO_CHANGE)
    assert new.model is not None
    assert not same_weights(new.model, trained)


def test_files_are_encoded_with_the_pieces_of_the_model(
    tmp_path: Path, tiny: Config, trained: Path
) -> None:
    files = write_pairs(tmp_path, reversals(300, seed=9))
    outcome = train(tiny, *files, start_from=trained, run=tmp_path / "run", assignments=NO_CHANGE)
    assert outcome.model is not None
    assert load_model(outcome.model).tokenizer == load_model(trained).tokenizer
    assert same_weights(outcome.model, trained)


def test_a_run_killed_before_its_first_checkpoint_begins_with_the_same_weights_again(
    tmp_path: Path, tiny: Config, prepared: Prepared, trained: Path
) -> None:
    run = tmp_path / "run"
    train(tiny, prepared.path, start_from=trained, run=run, assignments=NO_CHANGE)
    for checkpoint in (run / "checkpoints").iterdir():
        for file in checkpoint.iterdir():
            file.unlink()
        checkpoint.rmdir()
    assert not Path(json.loads((run / "run.json").read_text())["from"]).is_absolute()
    outcome = resume(run)
    assert outcome.model is not None
    assert same_weights(outcome.model, trained)


def test_settings_that_contradict_the_model_are_refused(
    tmp_path: Path, tiny: Config, prepared: Prepared, trained: Path
) -> None:
    with pytest.raises(ConfigError, match=r"model\.encoder_layers = 7 contradicts"):
        train(
            *(tiny, prepared.path),
            start_from=trained,
            run=tmp_path / "run",
            assignments=["model.encoder_layers=7"],
        )
    assert not (tmp_path / "run").exists()


def test_a_corpus_prepared_with_another_tokeniser_is_refused(
    tmp_path: Path, tiny: Config, trained: Path
) -> None:
    files = write_pairs(tmp_path, reversals(200, seed=3))
    config = tiny.overridden(["tokenizer.vocabulary=310"])
    prepare(open_corpus(files, config.data), tmp_path / "data", config, workers=0)
    with pytest.raises(ConfigError, match="prepared with another tokeniser"):
        train(tiny, tmp_path / "data", start_from=trained, run=tmp_path / "run")


def test_a_model_of_int8_weights_alone_is_trained_from_as_it_was_rounded(
    tmp_path: Path, tiny: Config, prepared: Prepared, trained: Path
) -> None:
    write_int8_model(open_model(trained), tmp_path / "small")
    outcome = train(
        *(tiny, prepared.path),
        start_from=tmp_path / "small",
        run=tmp_path / "run",
        assignments=NO_CHANGE,
    )
    assert outcome.model is not None
    weights = [
        get_weights(load_model(model).model) for model in (outcome.model, tmp_path / "small")
    ]
    # The smallest step that there is moves a weight that was rounded to 0.
    assert all(weights[0][name].allclose(weights[1][name], 0, 1e-20) for name in weights[0])
    assert not same_weights(outcome.model, trained)


def test_a_run_that_names_its_first_model_by_the_old_key_is_resumed(
    tmp_path: Path, tiny: Config, prepared: Prepared, trained: Path
) -> None:
    train(tiny, prepared.path, start_from=trained, run=tmp_path, assignments=NO_CHANGE)
    table = json.loads((tmp_path / "run.json").read_text())
    table["start_from"] = table.pop("from")
    (tmp_path / "run.json").write_text(json.dumps(table))
    shutil.rmtree(tmp_path / "checkpoints")
    outcome = resume(tmp_path)
    assert outcome.model is not None
    assert same_weights(outcome.model, trained)

"""Settings: presets, overrides, refusals, and the page that explains them.

``python tests/test_config.py`` writes docs/config.md again after a change of config.py, and how
many weights the presets have.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import typing
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.config import (
    PRESET_ADVICE,
    Config,
    DataConfig,
    ModelConfig,
    SearchConfig,
    TokenizerConfig,
    TrainingConfig,
    TreesConfig,
    advise_preset,
    load_preset,
    preset_names,
    preset_paper_figures,
    preset_parameters,
    preset_title,
)
from dragoman.errors import ConfigError
from dragoman.models import count_parameters

SECTIONS: dict[str, Any] = {
    "tokenizer": TokenizerConfig,
    "data": DataConfig,
    "trees": TreesConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
    "search": SearchConfig,
}
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "config.md"
PARAMETERS = ROOT / "src/dragoman/presets/parameters.json"


def refused(*assignments: str) -> str:
    """The one line that refuses these assignments."""
    with pytest.raises(ConfigError) as caught:
        Config().overridden(assignments)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- presets ---

# Table 3: what a row changes, and what the paper prints: perplexity, BLEU, millions of parameters.
TABLE_3: dict[str, tuple[dict[str, dict[str, Any]], float, float, float | None]] = {
    "base": ({}, 4.92, 25.8, 65),
    "table3-a-heads-1": ({"model": {"heads": 1, "d_k": 512, "d_v": 512}}, 5.29, 24.9, None),
    "table3-a-heads-4": ({"model": {"heads": 4, "d_k": 128, "d_v": 128}}, 5.00, 25.5, None),
    "table3-a-heads-16": ({"model": {"heads": 16, "d_k": 32, "d_v": 32}}, 4.91, 25.8, None),
    "table3-a-heads-32": ({"model": {"heads": 32, "d_k": 16, "d_v": 16}}, 5.01, 25.4, None),
    "table3-b-d_k-16": ({"model": {"d_k": 16, "d_v": 64}}, 5.16, 25.1, 58),
    "table3-b-d_k-32": ({"model": {"d_k": 32, "d_v": 64}}, 5.01, 25.4, 60),
    "table3-c-layers-2": ({"model": {"encoder_layers": 2, "decoder_layers": 2}}, 6.11, 23.7, 36),
    "table3-c-layers-4": ({"model": {"encoder_layers": 4, "decoder_layers": 4}}, 5.19, 25.3, 50),
    "table3-c-layers-8": ({"model": {"encoder_layers": 8, "decoder_layers": 8}}, 4.88, 25.5, 80),
    "table3-c-d_model-256": ({"model": {"d_model": 256, "d_k": 32, "d_v": 32}}, 5.75, 24.5, 28),
    "table3-c-d_model-1024": (
        {"model": {"d_model": 1024, "d_k": 128, "d_v": 128}},
        4.66,
        26.0,
        168,
    ),
    "table3-c-d_ff-1024": ({"model": {"d_ff": 1024}}, 5.12, 25.4, 53),
    "table3-c-d_ff-4096": ({"model": {"d_ff": 4096}}, 4.75, 26.2, 90),
    "table3-d-dropout-0.0": ({"model": {"dropout": 0.0}}, 5.77, 24.6, None),
    "table3-d-dropout-0.2": ({"model": {"dropout": 0.2}}, 4.95, 25.5, None),
    "table3-d-smoothing-0.0": ({"training": {"label_smoothing": 0.0}}, 4.67, 25.3, None),
    "table3-d-smoothing-0.2": ({"training": {"label_smoothing": 0.2}}, 5.47, 25.7, None),
    "table3-e-learned": ({"model": {"positions": "learned"}}, 4.92, 25.7, None),
    "big": (
        {
            "model": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
            "training": {"steps": 300_000, "average": 20, "keep_checkpoints": 20}
            | {"checkpoint_every": 600, "validate_every": 3000},
        },
        4.33,
        26.4,
        213,
    ),
}


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_says_what_it_is(name: str) -> None:
    config = load_preset(name)
    assert Config.from_dict(config.to_dict()) == config
    assert len(preset_title(name)) > 10


@pytest.mark.parametrize("name", TABLE_3)
def test_every_row_of_table_3_is_a_preset_that_changes_just_what_the_paper_changed(
    name: str,
) -> None:
    changes, perplexity, bleu, millions = TABLE_3[name]
    assert load_preset(name) == load_preset("base").updated(changes)
    printed = {"perplexity": perplexity, "bleu": bleu}
    assert preset_paper_figures(name) == printed | ({"parameters": millions} if millions else {})


def test_no_other_preset_claims_to_be_of_table_3() -> None:
    assert {n for n in preset_names() if n.startswith("table3")} <= TABLE_3.keys()
    assert preset_names()[:2] == ["base", "big"]


def test_the_base_model_is_the_papers() -> None:
    config = load_preset("base")
    model, training, search = config.model, config.training, config.search
    assert (model.encoder_layers, model.decoder_layers, model.d_model) == (6, 6, 512)
    assert (model.d_ff, model.heads, model.d_k, model.d_v) == (2048, 8, 64, 64)
    assert (model.dropout, model.positions, model.norm, model.activation) == (
        0.1,
        "sinusoidal",
        "post",
        "relu",
    )
    assert model.shared_embeddings
    assert (training.beta1, training.beta2, training.epsilon) == (0.9, 0.98, 1e-9)
    assert (training.schedule, training.warmup_steps, training.learning_rate) == ("paper", 4000, 1)
    assert (training.label_smoothing, training.steps, training.average) == (0.1, 100_000, 5)
    assert training.batch_tokens == 25_344
    assert (search.beam, search.length_penalty, search.max_extra) == (4, 0.6, 50)
    assert (config.tokenizer.kind, config.tokenizer.vocabulary) == ("bpe", 37_000)


def test_the_parser_is_the_papers() -> None:
    config = load_preset("parsing")
    assert (config.model.encoder_layers, config.model.d_model) == (4, 1024)
    assert config.tokenizer.vocabulary == 16_000
    assert (config.search.beam, config.search.length_penalty) == (21, 0.3)
    assert config.search.max_extra == 300


def test_a_misspelt_preset_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"no preset 'smal'; did you mean 'small'\?"):
        load_preset("smal")


def test_a_copy_of_a_preset_is_a_config(tmp_path: Path) -> None:
    import dragoman

    preset = Path(dragoman.__file__).parent / "presets" / "big.toml"
    (tmp_path / "mine.toml").write_bytes(preset.read_bytes())
    assert load_preset(str(tmp_path / "mine.toml")) == load_preset("big")


# --- refusals ---


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("trainign.steps=5", "--set: there is no section 'trainign'; did you mean 'training'?"),
        ("training.step=5", "--set: there is no setting 'training.step'; did you mean 'steps'?"),
        ("model.zzz=5", "--set: there is no setting 'model.zzz'; choose from: architecture, "),
        ("steps=5", "--set steps=5: write section.key=value, as in training.steps=1000"),
        ("training.steps", "--set training.steps: write section.key=value, as in "),
        ("model.norm=Pre", "--set: model.norm = 'Pre' is not allowed; did you mean 'pre'?"),
        ("model.norm=rms", "--set: model.norm = 'rms' is not allowed; choose from: post, pre"),
        ("training.steps=many", "--set: training.steps = 'many' must be a whole number"),
        ("training.steps=1.5", "--set: training.steps = 1.5 must be a whole number"),
        ("training.steps=true", "--set: training.steps = True must be a whole number"),
        ("model.dropout=lots", "--set: model.dropout = 'lots' must be a number"),
        ("model.dropout=nan", "--set: model.dropout = nan must be a number"),
        ("data.drop_copies=1", "--set: data.drop_copies = 1 must be true or false"),
        ("data.languages=en", "--set: data.languages = 'en' must be a list of strings, as in "),
        ("data.languages=[1,2]", "--set: data.languages = [1, 2] must be a list of strings"),
    ],
)
def test_what_is_not_a_setting_is_refused_with_a_suggestion(assignment: str, message: str) -> None:
    assert refused(assignment).startswith(message)


def test_a_section_that_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'model' is a section; write \[model\] and its keys"):
        Config.from_dict({"model": 5})


IMPOSSIBLE = {
    "model.heads=7": "model.heads = 7 does not divide model.d_model = 512; try 8, or set model.d_k",
    "model.heads=0": "model.heads = 0 is too small; the minimum is 1",
    "model.d_model=-4": "model.d_model = -4 is too small; the minimum is 1",
    "model.dropout=1": "model.dropout = 1.0 must be at least 0 and below 1; try 0.1",
    "model.d_model=511 model.d_k=8 model.d_v=8": "model.d_model = 511 must be even for sinusoidal "
    "positions",
    "model.d_k=5 model.positions=rotary": "model.d_k = 5 must be even for rotary positions",
    "model.positions=learned model.max_positions=100": "model.max_positions = 100 is less than "
    "data.row_length = 256; learned positions need at least that many",
    "tokenizer.vocabulary=256": "tokenizer.vocabulary = 256 is too small; the minimum is 300",
    "tokenizer.character_coverage=0.5": "tokenizer.character_coverage = 0.5 must be between 0.9 "
    "and 1",
    'data.languages=["en"]': "data.languages = ['en'] needs two codes, source and target; try "
    '["en", "de"]',
    "data.row_length=200": "data.row_length = 200 cannot hold a sentence of data.max_length = 200 "
    "and its end mark; try 201",
    "data.subword_sampling=1.0": "data.subword_sampling = 1.0 must be at least 0 and below 1",
    "training.batch_tokens=100": "training.batch_tokens = 100 is less than training.accumulate = 1 "
    "rows of data.row_length = 256; try 256",
    "training.batch_tokens=0": "training.batch_tokens = 0 is too small; the minimum is 1",
    "training.batch_tokens=many": "--set: training.batch_tokens = 'many' must be a whole number, "
    "or auto",
    "training.batch_tokens=1.5": "--set: training.batch_tokens = 1.5 must be a whole number",
    "training.timeout_seconds=0": "training.timeout_seconds = 0.0 is too small; the minimum is 1",
    "training.steps=0": "training.steps = 0 is too small; the minimum is 1",
    "training.average=6": "training.average = 6 is more than training.keep_checkpoints = 5; keep "
    "as many",
    "training.learning_rate=0": "training.learning_rate = 0.0 must be above 0",
    "training.schedule=cosine": "training.learning_rate = 1.0 is the peak of the cosine schedule "
    "and far too large; try 0.0007",
    "training.epsilon=0": "training.epsilon = 0.0 must be above 0; try 1e-9",
    "training.patience=3 training.validate_sentences=0": "training.patience is judged by the "
    "score, but training.validate_sentences = 0; try ",
    "search.beam=0": "search.beam = 0 is too small; the minimum is 1",
}


@pytest.mark.parametrize("assignments", IMPOSSIBLE)
def test_an_impossible_config_is_refused_in_one_line(assignments: str) -> None:
    assert refused(*assignments.split()).startswith(IMPOSSIBLE[assignments])


def test_a_file_that_is_no_config_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    with pytest.raises(ConfigError, match=r"a\.toml: no such file"):
        Config.load(path)
    for content in (b"[model", b"\xff\xfe", b"x = 1\x00"):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=r"a\.toml: not a readable TOML file") as caught:
            Config.load(path)
        assert "\n" not in str(caught.value)
    path.write_text("[model]\nhedas = 4\n")
    with pytest.raises(ConfigError, match=r"a\.toml: there is no setting 'model\.hedas'; did you"):
        Config.load(path)


def test_a_batch_size_that_is_still_to_be_found_is_written_and_read_as_a_word(
    tmp_path: Path,
) -> None:
    config = Config().overridden(["training.batch_tokens=auto"])
    path = tmp_path / "a.toml"
    path.write_text(config.to_toml(), encoding="utf-8")
    assert 'batch_tokens = "auto"' in config.to_toml()
    assert Config.load(path) == config
    assert config.training.tokens == 4096
    assert config.overridden(["training.batch_tokens=8192"]).training.tokens == 8192


# --- overrides ---


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("training.steps=1000", 1000),
        ("training.steps=1_000", 1000),
        ("training.steps=1e3", 1000),
        ("training.steps = 7", 7),
        ("training.batch_tokens=8192", 8192),
        ("training.batch_tokens=8e3", 8000),
        ("training.batch_tokens=auto", "auto"),
        ("model.dropout=0.25", 0.25),
        ("model.dropout=0", 0.0),
        ("training.epsilon=1e-3", 1e-3),
        ("model.norm=pre", "pre"),
        ('model.norm="pre"', "pre"),
        ("data.drop_copies=false", False),
        ('data.languages=["en", "de"]', ("en", "de")),
        ('tokenizer.symbols=["<a=b>"]', ("<a=b>",)),
        ("data.languages=[]", ()),
    ],
)
def test_an_assignment_may_be_any_toml_value_or_a_word(assignment: str, value: object) -> None:
    section, _, key = assignment.split("=")[0].strip().partition(".")
    found = getattr(getattr(Config().overridden([assignment]), section), key)
    assert found == value
    assert type(found) is type(value)


def test_later_assignments_win_and_the_original_stays() -> None:
    config = Config()
    assert config.overridden(["training.steps=1", "training.steps=2"]).training.steps == 2
    assert config == Config()


def test_d_k_and_d_v_follow_d_model_and_heads_unless_they_are_set() -> None:
    def widths(*assignments: str, config: Config | None = None) -> tuple[int, int]:
        model = (config or Config()).overridden(assignments).model
        return model.d_k, model.d_v

    assert widths() == (64, 64)
    assert widths("model.heads=4") == (128, 128)
    assert widths("model.d_model=256") == (32, 32)
    assert widths("model.d_model=256", "model.heads=2") == (128, 128)
    assert widths("model.heads=4", "model.d_k=64") == (64, 128)
    narrow = Config().overridden(["model.d_k=16"])
    assert widths("model.heads=16", config=narrow) == (16, 32)
    assert widths("model.heads=7", "model.d_k=10", "model.d_v=10") == (10, 10)


def test_a_config_cannot_be_changed() -> None:
    config = Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.model.heads = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        ModelConfig(8)  # type: ignore[misc]


# --- files ---


@pytest.mark.parametrize("name", preset_names())
def test_a_config_survives_its_file(name: str, tmp_path: Path) -> None:
    config = load_preset(name)
    (tmp_path / "config.toml").write_text(config.to_toml(), encoding="utf-8")
    assert Config.load(tmp_path / "config.toml") == config


fractions = st.floats(0, 1, exclude_max=True)
texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4)


@pytest.mark.slow
@example(  # TOML has characters that JSON does not escape
    symbols=('"\\\x7f\x85\n', "한"),
    dropout=0.1,
    epsilon=1e-9,
    minutes=0.0,
    seed=1,
    norm="post",
    copies=True,
)
@given(
    symbols=texts.map(tuple),
    dropout=fractions,
    epsilon=st.floats(1e-300, 1.0),
    minutes=st.floats(0, 1e300),
    seed=st.integers(0, 2**63 - 1),
    norm=st.sampled_from(["pre", "post"]),
    copies=st.booleans(),
)
def test_any_values_survive_the_file(
    tmp_path_factory: pytest.TempPathFactory,
    symbols: tuple[str, ...],
    dropout: float,
    epsilon: float,
    minutes: float,
    seed: int,
    norm: Literal["pre", "post"],
    copies: bool,
) -> None:
    config = Config(
        tokenizer=TokenizerConfig(symbols=symbols),
        data=DataConfig(drop_copies=copies),
        model=ModelConfig(dropout=dropout, norm=norm),
        training=TrainingConfig(epsilon=epsilon, minutes=minutes, seed=seed),
    )
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(config.to_toml().encode())
    assert Config.load(path) == config


# --- explanations ---


def explain(section: type) -> dict[str, str]:
    """Return each field of a section with the string under it."""
    body = ast.parse(inspect.getsource(section)).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            texts[before.target.id] = " ".join(str(after.value.value).split())
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_explained(section: str) -> None:
    names = [field.name for field in dataclasses.fields(SECTIONS[section])]
    texts = explain(SECTIONS[section])
    assert list(texts) == names
    assert all(len(text) > 5 and text.endswith(".") for text in texts.values())


def page() -> str:
    """docs/config.md, from the dataclasses and the strings under their fields."""
    lines = [
        "# Every setting",
        "",
        "Made from `src/dragoman/config.py` by `python tests/test_config.py`; a test keeps both "
        "equal. The defaults are the paper's base model; a preset states what differs "
        "(`dragoman presets`, `dragoman presets base`).",
        "",
        "A setting is changed with `--set section.key=value`, as often as needed, or in a TOML "
        "file given to `--preset`. The value is TOML, or a plain word: `--set model.norm=pre`, "
        '`--set training.learning_rate=1e-3`, `--set \'data.languages=["en", "de"]\'`. What is '
        "misspelt or impossible is refused:",
        "",
        "```",
        "$ dragoman train corpus.en corpus.de --set model.heads=7",
        f"dragoman: {_refusal('model.heads=7')}",
        "$ dragoman train corpus.en corpus.de --set training.step=1000",
        f"dragoman: {_refusal('training.step=1000')}",
        "```",
    ]
    for name, section in SECTIONS.items():
        lines += ["", f"## [{name}]", "", section.__doc__ or "", ""]
        lines += ["| key | default | meaning |", "|---|---|---|"]
        hints = typing.get_type_hints(section)
        defaults = {field.name: field.default for field in dataclasses.fields(section)}
        for key, text in explain(section).items():
            choices = typing.get_args(hints[key]) if is_choice(hints[key]) else ()
            meaning = text.replace("|", "\\|")
            if len(choices) > 1:
                meaning += f" One of: {', '.join(map(str, choices))}."
            lines.append(f"| `{key}` | {_shown(defaults[key])} | {meaning} |")
    return "\n".join(lines) + "\n"


def is_choice(hint: object) -> bool:
    return typing.get_origin(hint) is Literal


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _refusal(assignment: str) -> str:
    try:
        Config().overridden([assignment])
    except ConfigError as error:
        return str(error)
    raise AssertionError(f"{assignment} is possible")


def test_the_preset_advised_for_so_many_pairs_is_the_one_in_the_readme() -> None:
    readme = (PAGE.parent.parent / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (5,000 to .*|100,000 to .*|more) \| `(\w+)`", readme, re.M)
    assert [name for _, name in rows] == [advice.name for advice in PRESET_ADVICE]
    million = f"{PRESET_ADVICE[1].pairs.removesuffix(' pairs')}".replace("1,000,000", "a million")
    assert [row for row, _ in rows] == [PRESET_ADVICE[0].pairs[:-6], million, "more"]
    assert [advise_preset(n).name for n in (0, 99_999, 100_001, 2_000_000)] == [
        *("tiny", "tiny", "small", "base")
    ]


def test_the_page_of_settings_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_config.py"


def count_preset_parameters() -> dict[str, int]:
    """How many weights the model of each preset has."""
    configs = {name: load_preset(name) for name in preset_names()}
    return {
        name: count_parameters(config.model, config.tokenizer.vocabulary)
        for name, config in configs.items()
    }


@pytest.mark.slow
def test_the_weights_of_presets_are_counted_again_when_one_changes() -> None:
    assert preset_parameters() == count_preset_parameters(), "run: python tests/test_config.py"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PARAMETERS.write_text(f"{json.dumps(count_preset_parameters(), indent=2)}\n", encoding="utf-8")

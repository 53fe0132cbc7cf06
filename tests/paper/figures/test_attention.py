"""The paper's figures: what is drawn is what the model saw, and the rules choose as they say."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import dragoman
from dragoman.errors import ConfigError, DataError, DragomanError, ModelError
from dragoman.inference import Translator
from dragoman.model_directory import LoadedModel
from dragoman.models import Model, Rows
from dragoman.models.api import State
from dragoman.models.attention import record_attention
from dragoman.paper.figures import all_figures, attention
from dragoman.paper.figures.all_figures import draw_all, read_list
from dragoman.paper.figures.attention import (
    LAW_SENTENCE,
    SPIRIT_SENTENCE,
    THRESHOLD,
    FigureOptions,
    Panel,
    different_heads,
    draw_figure3,
    draw_figure4,
    draw_figure5,
    draw_lines,
    draw_source_attention,
    farthest_word,
    find_word,
    head_colour,
    paper_layer,
    sharpest_heads,
    sharpest_word,
    visible_lines,
)
from dragoman.paper.figures.attention_words import (
    END,
    SentenceAttention,
    WordPieces,
    compute_attention,
)
from dragoman.paper.figures.formulas import draw_learning_rate, draw_positions, measure_dot_products
from dragoman.search.batching import source_rows, target_rows

WORDS = ("my", "dog", "sees", "trees", END)


def weights(heads: int = 3, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed).dirichlet(np.full(len(WORDS), 0.3), (heads, len(WORDS)))
    return draw.astype(np.float32)


def weights_with(*places: tuple[int, int, int, float], heads: int = 3, size: int = 6) -> np.ndarray:
    """Weights (head, from, to, weight); what is left of a row is on the end."""
    table = np.zeros((heads, size, size))
    for head, t, s, weight in places:
        table[head, t, s] = weight
    table[:, :, -1] += 1 - table.sum(-1)
    return table


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return dragoman.load(trained / "model")


@pytest.fixture(scope="module")
def law(translator: Translator) -> SentenceAttention:
    return compute_attention(translator, LAW_SENTENCE, "old dog")


# ------------------------------------------------------------------------------------- drawing


def strokes(path: Path, name: str) -> list[tuple[tuple[float, ...], str, float]]:
    """Of a group of an SVG: the four numbers of each line, its colour and its opacity."""
    found = []
    for group in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}g"):
        if group.get("id") == name:
            for line in group:
                style = line.attrib["style"]
                opacity = re.search(r"(?:stroke|fill)-opacity: ([\d.]+)", style)
                hue = re.search(r"(?:stroke|fill): (#\w+)", style)
                assert hue
                numbers = tuple(map(float, re.findall(r"[\d.]+", line.attrib["d"])))
                found.append((numbers, hue[1], float(opacity[1]) if opacity else 1.0))
    return found


def test_lines_are_the_weights_above_the_threshold() -> None:
    table = weights()
    found = {(h, t, s): w for h, t, s, w in visible_lines(table, Panel((0, 2)))}
    assert found == {
        (h, t, s): float(table[h, t, s])
        for h in (0, 2)
        for t in range(5)
        for s in range(5)
        if table[h, t, s] >= THRESHOLD
    }
    assert 10 < len(found) < 50, "some are above and some below"
    assert all(t == 1 for _, t, _, _ in visible_lines(table, Panel((0, 1, 2), word=1)))
    assert {h for h, _, _, _ in visible_lines(table, Panel((0, 1, 2), word=1))} == {0, 1, 2}


def test_a_line_goes_from_word_to_word_and_its_opacity_is_the_weight(tmp_path: Path) -> None:
    table = weights()
    table[1, 2] = (0, 0, 1, 0, 0)
    draw_lines(table, WORDS, WORDS, [Panel((1,)), Panel((0, 2))], tmp_path / "a.svg")
    for panel, heads in ((1, (1,)), (2, (0, 2))):
        for head in heads:
            wanted = visible_lines(table, Panel((head,)))
            drawn = strokes(tmp_path / "a.svg", f"panel-{panel}-head-{head + 1}")
            assert [o for _, _, o in drawn] == pytest.approx([w for *_, w in wanted], abs=1e-5)
            rows = [(y1 / 14.4, y2 / 14.4) for (_, y1, _, y2), _, _ in drawn]  # 0.2 inches each
            top = min(y for y, _ in rows)
            assert [round(y - top) for y, _ in rows] == [t for _, t, _, _ in wanted]
            assert [round(y - top) for _, y in rows] == [s for _, _, s, _ in wanted]
    assert not strokes(tmp_path / "a.svg", "panel-1-head-1")
    assert not strokes(tmp_path / "a.svg", "panel-1-head-2-squares")


def test_a_word_has_a_square_for_every_line_of_every_head(tmp_path: Path) -> None:
    table = weights()
    draw_lines(table, WORDS, WORDS, [Panel((0, 1, 2), word=3)], tmp_path / "a.svg")
    for head in range(3):
        drawn = strokes(tmp_path / "a.svg", f"panel-1-head-{head + 1}")
        squares = strokes(tmp_path / "a.svg", f"panel-1-head-{head + 1}-squares")
        assert [s[1:] for s in squares] == [line[1:] for line in drawn]
        assert len(squares) == sum(table[head, 3] >= THRESHOLD)


@pytest.mark.parametrize("heads", [2, 4, 8, 16])
def test_head_colours_differ(heads: int) -> None:
    hues = np.array([head_colour(head, heads) for head in range(heads)])
    apart = np.abs(hues[:, None] - hues).sum(-1)[~np.eye(heads, dtype=bool)]
    assert apart.min() > 0.15
    assert hues.max() < 0.95, "and are seen on white"


def test_lines_of_different_heads_have_different_colours(tmp_path: Path) -> None:
    draw_lines(weights(8), WORDS, WORDS, [Panel(tuple(range(8)))], tmp_path / "a.svg")
    groups = [strokes(tmp_path / "a.svg", f"panel-1-head-{n}") for n in range(1, 9)]
    hues = [{hue for _, hue, _ in group} for group in groups]
    assert all(len(hue) == 1 for hue in hues)
    assert len(set.union(*hues)) == 8


def test_words_are_written_as_they_are_and_no_two_in_one_place(tmp_path: Path) -> None:
    words = ["안녕", "$x$", "<a&b>", "x" * 100, END]
    panels = [Panel((0,), "한 head"), Panel((0, 1), word=2)]
    for name in ("a.svg", "a.png"):
        draw_lines(weights(), words, words, panels, tmp_path / name, columns=("from", "to"))
    texts = [
        ("".join(e.itertext()), e.attrib.get("transform", e.attrib.get("style", "")), e.attrib)
        for e in ElementTree.parse(tmp_path / "a.svg").iter("{http://www.w3.org/2000/svg}text")
    ]
    said = [text for text, _, _ in texts]
    for word in (*words[:3], "x" * 27 + "…"):
        assert said.count(word) == 4, "twice in each panel"
    places = [(a.get("x"), a.get("y"), a.get("transform")) for _, _, a in texts]
    assert len(set(places)) == len(places)


def test_pictures_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DragomanError, match="3 × 5 × 5 do not fit 4 query words and 5 key words"):
        draw_lines(weights(), WORDS[:4], WORDS, [Panel((0,))], tmp_path / "a.png")
    with pytest.raises(DragomanError, match=r"one of \.png"):
        draw_lines(weights(), WORDS, WORDS, [Panel((0,))], tmp_path / "a.bmp")
    assert not list(tmp_path.iterdir())


# --------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("layers", "layer"), [(1, 1), (2, 2), (3, 2), (4, 3), (6, 5), (8, 7), (12, 10)]
)
def test_the_layer_is_the_papers_5_of_6(layers: int, layer: int) -> None:
    assert paper_layer(layers) == layer


def test_the_farthest_word_is_by_weight_times_distance_over_all_heads() -> None:
    table = weights_with((0, 1, 4, 0.9), (0, 2, 3, 1.0), (1, 2, 3, 1.0), (2, 2, 3, 0.6))
    assert farthest_word(table, range(5)) == 1, "2.7 against 2.6"
    assert farthest_word(table, [0, 2, 3]) == 2
    table = weights_with((0, 1, 4, 0.8), (0, 2, 3, 1.0), (1, 2, 3, 1.0), (2, 2, 3, 0.6))
    assert farthest_word(table, range(5)) == 2, "2.4 against 2.6"


def test_looks_at_the_end_and_at_oneself_count_nowhere() -> None:
    table = weights_with(
        (0, 0, 0, 1.0), (1, 3, 1, 0.2), (2, 4, 4, 1.0)
    )  # all else looks at the end
    assert farthest_word(table, range(5)) == 3
    assert sharpest_word(table, range(5)) == 3
    assert sharpest_heads(table, 3) == (1, 0)
    assert different_heads(table)[0] == 1


def test_the_sharpest_word_is_not_one_that_looks_at_its_neighbour() -> None:
    table = weights_with((0, 1, 2, 0.95), (1, 3, 1, 0.5), (1, 4, 0, 0.4))
    assert sharpest_word(table, range(5)) == 3
    assert sharpest_word(table, [0, 1, 2, 4]) == 4


def test_the_sharpest_heads_of_a_word_come_sharpest_first() -> None:
    table = weights_with((0, 2, 1, 0.3), (1, 2, 1, 0.2), (1, 2, 3, 0.2), (2, 2, 4, 0.8))
    assert sharpest_heads(table, 2) == (2, 0)
    assert sharpest_heads(table, 2, count=3) == (2, 0, 1)
    assert sharpest_heads(table[:1], 2) == (0,)


def test_the_second_head_is_sharp_where_the_first_does_not_look() -> None:
    back = [(0, t, t - 1, 0.9) for t in range(1, 5)]
    almost_the_same = [(1, t, t - 1, 0.8) for t in range(1, 5)]
    elsewhere = [(2, t, 0, 0.3) for t in range(2, 5)]
    table = weights_with(*back, *almost_the_same, *elsewhere)
    assert different_heads(table) == (0, 2)
    assert different_heads(table[:1]) == (0,)


def test_between_two_sentences_the_same_place_is_not_the_same_word() -> None:
    straight = [(1, t, t, 0.9) for t in range(5)]
    crossed = [(0, t, 4 - t, 0.5) for t in range(5)]
    table = weights_with(*straight, *crossed)
    assert different_heads(table, itself=False) == (1, 0)
    assert different_heads(table) == (0, 1)


def test_a_word_is_found_in_any_case_and_else_the_words_are_named() -> None:
    assert find_word(["It", "it", "is"], "it") == 1
    assert find_word(["It", "is"], "it") == 0
    with pytest.raises(ConfigError, match="no word 'was'; choose one of: It is"):
        find_word(["It", "is"], "was")


# --------------------------------------------------------------------------------------- words


def test_pieces_become_the_words_of_the_paper(translator: Translator) -> None:
    tokenizer = translator.tokenizer
    for sentence in (SPIRIT_SENTENCE, LAW_SENTENCE, "naïve café, “so”: 3.5", "Größe?!"):
        wanted = re.findall(r"\w+|[^\w\s]", sentence)
        assert len(tokenizer.encode(sentence)) > len(wanted)
        words = WordPieces.of(tokenizer, tokenizer.encode(sentence), pieces=False)
        found = words.texts
        assert "".join(found) == "".join(wanted) + END
        if sentence in (SPIRIT_SENTENCE, LAW_SENTENCE):
            assert list(found) == [*wanted, END]


def test_scripts_without_spaces_keep_their_characters(translator: Translator) -> None:
    tokenizer = translator.tokenizer
    assert WordPieces.of(tokenizer, tokenizer.encode("東京に"), False).texts == (
        "東",
        "京",
        "に",
        END,
    )
    assert WordPieces.of(tokenizer, tokenizer.encode("안녕 하세요"), False).texts == (
        "안녕",
        "하세요",
        END,
    )


def test_single_pieces_are_readable_and_marked_where_a_word_goes_on(translator: Translator) -> None:
    tokenizer = translator.tokenizer
    ids = tokenizer.encode("the zebra é")
    texts = WordPieces.of(tokenizer, ids, pieces=True).texts
    assert len(texts) == len(ids) + 1
    assert texts[0] == "the"
    assert not {"▁", "\ufffd"} & set("".join(texts))
    joined = "".join(text if text[0] == "·" else f" {text}" for text in texts[:-1])
    assert re.sub("[·␣]", "", joined).split() == ["the", "zebra", "<0xC3><0xA9>"]


def test_a_word_looks_as_its_pieces_do_on_average_and_is_looked_at_by_sum(
    translator: Translator,
) -> None:
    tokenizer, sentence = translator.tokenizer, "the zebra sees"
    ids = tokenizer.encode(sentence)
    seen = compute_attention(translator, sentence, "red dog")
    device = torch.device("cpu")
    with torch.no_grad(), record_attention(translator.model) as raw:
        translator.model(
            source_rows([ids], device), target_rows([tokenizer.encode("red dog")], device)
        )
    (name, folded), *_ = seen.encoder.items()
    pieces = raw[name][0].numpy()
    zebra = [p for p, word in enumerate(tokenizer.word_indices(ids)) if word == 1]
    assert len(zebra) > 1
    assert seen.source == ("the", "zebra", "sees", END)
    np.testing.assert_allclose(
        folded[:, 1, 1], pieces[:, zebra][:, :, zebra].sum(-1).mean(-1), rtol=1e-5
    )
    np.testing.assert_allclose(folded[:, 1, -1], pieces[:, zebra, -1].mean(-1), rtol=1e-5)
    for tables in (seen.encoder, seen.to_source):
        for table in tables.values():
            np.testing.assert_allclose(table.sum(-1), 1, rtol=1e-5)
    assert list(seen.encoder) == ["encoder.0.attention.attention", "encoder.1.attention.attention"]
    assert list(seen.to_source) == ["decoder.0.source_attention"]
    assert seen.to_source["decoder.0.source_attention"].shape == (2, len(seen.target), 4)


def test_the_models_own_translation_is_read_if_none_is_given(translator: Translator) -> None:
    sentence = "the old dog sees"
    assert (
        compute_attention(translator, sentence).translation
        == translator.translate(sentence, raw=True).text
    )


def test_sentences_that_cannot_be_drawn_are_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match="the sentence is empty"):
        compute_attention(translator, "  ", "x")
    with pytest.raises(DataError, match="200 words does not fit in a picture"):
        compute_attention(translator, "dog " * 200, "x")


# ------------------------------------------------------------------------------------- figures


@pytest.mark.slow
@pytest.mark.usefixtures("only_attention")
def test_the_papers_words_are_drawn_in_its_sentences(
    translator: Translator, law: SentenceAttention, tmp_path: Path
) -> None:
    drawn = draw_figure3(compute_attention(translator, SPIRIT_SENTENCE, ""), tmp_path)
    assert (drawn.word, drawn.layer, drawn.heads) == ("making", 2, (1, 2))
    assert "layer 2 of 2" in drawn.caption
    assert "five sixths" in drawn.caption
    assert "Word: the paper's." in drawn.caption
    assert draw_figure4(law, tmp_path).word == "its"
    assert draw_figure5(law, tmp_path).word is None


@pytest.mark.slow
@pytest.mark.usefixtures("only_attention")
def test_what_is_asked_for_is_drawn_and_no_rule_is_claimed(
    law: SentenceAttention, tmp_path: Path
) -> None:
    choice = FigureOptions(layer=1, heads=(2,), word="law")
    for draw in (draw_figure3, draw_figure4, draw_figure5):
        drawn = draw(law, tmp_path, choice)
        assert (drawn.layer, drawn.heads) == (1, (2,))
        assert drawn.word in ("Law", None)
        assert "Layer:" not in drawn.caption
        assert "Word:" not in drawn.caption
        assert "Heads:" not in drawn.caption
    wanted = visible_lines(law.encoder["encoder.0.attention.attention"], Panel((1,), word=1))
    drawn_lines = strokes(tmp_path / "figure3.svg", "panel-1-head-2")
    assert [o for *_, o in drawn_lines] == pytest.approx([w for *_, w in wanted], abs=1e-5)


def test_any_other_sentence_is_drawn_by_the_rules(tmp_path: Path) -> None:
    table = weights_with((0, 1, 4, 0.9), (1, 2, 0, 0.95), (2, 3, 1, 0.5))
    words = ("a", "b", "c", "d", "e", END)
    looks = SentenceAttention("a b c d e", "", words, (END,), {"encoder.0": table}, {})
    assert draw_figure3(looks, tmp_path).word == "b"
    four = draw_figure4(looks, tmp_path)
    assert (four.word, four.heads) == ("c", (2, 1))
    assert "most weight on a word that is not its neighbour" in four.caption
    assert draw_figure5(looks, tmp_path).heads == (2, 1)


def test_layers_and_heads_that_are_not_there_are_refused(
    law: SentenceAttention, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="layer 3 of an encoder of 2; choose 1 to 2"):
        draw_figure3(law, tmp_path, FigureOptions(layer=3))
    with pytest.raises(ConfigError, match="head 9 of a layer with 2; choose 1 to 2"):
        draw_figure5(law, tmp_path, FigureOptions(heads=(9,)))
    with pytest.raises(ConfigError, match="no word 'making'"):
        draw_figure4(law, tmp_path, FigureOptions(word="making"))
    assert not list(tmp_path.iterdir())


def test_attention_to_the_source_is_between_the_two_sentences(
    translator: Translator, tmp_path: Path
) -> None:
    looks = compute_attention(translator, "the old dog", "red tree cat house")
    drawn = draw_source_attention(looks, tmp_path)
    assert drawn.files == ("source-attention.svg", "source-attention.png")
    text = (tmp_path / "source-attention.svg").read_text(encoding="utf-8")
    for word in ("the", "old", "dog", "red", "tree", "cat", "house"):
        assert text.count(f">{word}<") == 2, "once in each panel"
    table = looks.to_source["decoder.0.source_attention"]
    head = drawn.heads[0]
    assert len(strokes(tmp_path / "source-attention.svg", f"panel-1-head-{head}")) == np.sum(
        table[head - 1] >= THRESHOLD
    )


@pytest.mark.slow
def test_everything_is_drawn_listed_and_the_same_again(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = partial(measure_dot_products, queries=100)
    monkeypatch.setattr(all_figures, "measure_dot_products", few)
    files = draw_all(translator, tmp_path / "a", sentence="the old dog")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(
        path.name for path in files
    )
    draw_figure3(compute_attention(translator, "the old dog", ""), tmp_path / "b")
    for name in ("figure3.svg", "figure3.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    drawn = read_list(tmp_path / "a")
    assert [one.name for one in drawn] == [
        *("figure3", "figure4", "figure5", "source-attention"),
        *("positions", "learning-rate", "dot-products"),
    ]
    assert [one.sentence for one in drawn] == ["the old dog"] * 4 + [None] * 3
    for one in drawn:
        assert one.caption.endswith(".")
        assert one.files == (f"{one.name}.svg", f"{one.name}.png")
        ElementTree.parse(tmp_path / "a" / one.files[0])
        png = (tmp_path / "a" / one.files[1]).read_bytes()
        assert png.startswith(b"\x89PNG")
        assert png.endswith(b"IEND\xaeB`\x82")


@pytest.fixture
def only_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn that needs no model, and everything once."""
    monkeypatch.setattr(all_figures, "_draw_formulas", lambda found, out: [])
    monkeypatch.setattr(attention, "FORMATS", (".svg",))


@pytest.mark.slow
@pytest.mark.usefixtures("only_attention")
def test_without_a_sentence_the_papers_are_drawn(translator: Translator, tmp_path: Path) -> None:
    names = [path.name for path in draw_all(translator, tmp_path)]
    assert names == [
        *("figure3.svg", "figure4.svg", "figure5.svg", "source-attention.svg"),
        *("dot-products.json", "figures.json"),
    ]
    drawn = read_list(tmp_path)
    assert [one.sentence for one in drawn] == [
        SPIRIT_SENTENCE,
        LAW_SENTENCE,
        LAW_SENTENCE,
        LAW_SENTENCE,
    ]
    assert [one.word for one in drawn] == ["making", "its", None, None]


@pytest.mark.slow
def test_without_a_model_the_formulas_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = partial(measure_dot_products, queries=100)
    monkeypatch.setattr(all_figures, "measure_dot_products", few)
    monkeypatch.setattr(all_figures, "FORMATS", (".svg",))
    draw_all(None, tmp_path)
    names = [one.name for one in read_list(tmp_path)]
    assert names == ["positions", "learning-rate", "dot-products"]


class Attentionless(Model):
    """Reads and says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 2))

    def features(self, source: Rows, target: Rows) -> Tensor:
        return self.weight[target.ids_RL * 0]

    def output_weight(self) -> Tensor:
        return self.weight

    def start(self, source: Rows) -> State:
        raise NotImplementedError

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, State]:
        raise NotImplementedError


def test_a_model_without_attention_is_refused_in_one_line(
    translator: Translator, tmp_path: Path
) -> None:
    loaded = LoadedModel(
        Attentionless(), translator.tokenizer, translator.config, {}, translator.path
    )
    with pytest.raises(ModelError, match=r"^no layer of this model's encoder attends.*$") as error:
        draw_all(Translator(loaded), tmp_path, sentence="red dog", target="god der")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ModelError, match="no attention to the source"):
        draw_source_attention(compute_attention(Translator(loaded), "red dog", "god der"), tmp_path)


def test_a_word_needs_its_sentence(translator: Translator, tmp_path: Path) -> None:
    for given in ({"word": "its"}, {"target": "das Gesetz"}):
        with pytest.raises(ConfigError, match="give --sentence, too"):
            draw_all(translator, tmp_path, **given)  # type: ignore[arg-type]


def test_a_list_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no figures here"):
        read_list(tmp_path)
    for text in ("[", "{}x", '[{"name": "figure3"}]', "3"):
        (tmp_path / "figures.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"figures\.json: not a list of figures"):
            read_list(tmp_path)


# ------------------------------------------------------------------------------------ formulas


def test_the_peaks_of_the_learning_rate_are_those_of_equation_3(tmp_path: Path) -> None:
    draw_learning_rate(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for d_model, warmup in ((512, 4000), (512, 8000), (512, 16000), (256, 4000), (1024, 4000)):
        peak = (d_model * warmup) ** -0.5
        assert f"d_model {d_model}, warm-up {warmup:,}: at most {peak:.2e}" in text


def test_positions_are_a_map_and_curves(tmp_path: Path) -> None:
    draw_positions(tmp_path / "a.svg", positions=30, d_model=64)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "<image" in text
    for label in ("position", "dimension", "PE, d_model 64", "some dimensions"):
        assert f">{label}<" in text

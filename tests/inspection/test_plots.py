from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.errors import DataError, DragomanError
from dragoman.inspection.attention import draw_attention
from dragoman.inspection.plotting import has_missing_glyphs
from dragoman.inspection.training_curves import draw_curves

SOURCE = ["▁the", "▁let", "ter", "</s>"]
TARGET = ["▁der", "▁Brief", "</s>"]


def attention(heads: int, target: int = 3, source: int = 4) -> np.ndarray:
    weights = np.random.default_rng(0).random((heads, target, source)).astype(np.float32)
    return weights / weights.sum(-1, keepdims=True)


# ----------------------------------------------------------------------------------- attention


@pytest.mark.slow
def test_a_png_is_written(tmp_path: Path) -> None:
    draw_attention(attention(2), SOURCE, TARGET, tmp_path / "deep" / "a.png", title="layer 6")
    data = (tmp_path / "deep" / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 5000


@pytest.mark.slow
def test_every_head_and_their_mean_have_a_panel_with_the_tokens(tmp_path: Path) -> None:
    draw_attention(attention(8), SOURCE, TARGET, tmp_path / "a.svg", title="layer 6")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for label in ["layer 6", "mean", "head 1", "head 8", *SOURCE[:3], *TARGET[:2], "&lt;/s&gt;"]:
        assert f">{label}<" in text
    assert "head 9" not in text


@pytest.mark.slow
@pytest.mark.parametrize("weights", [attention(1), attention(1)[0]])
def test_a_single_matrix_is_one_panel(weights: np.ndarray, tmp_path: Path) -> None:
    draw_attention(weights, SOURCE, TARGET, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text.count("<image") == 2  # the panel and the scale
    assert "mean" not in text
    assert "head" not in text


@pytest.mark.slow
def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg", "a.png", "b.png", "a.pdf", "b.pdf"):
        draw_attention(attention(2), SOURCE, TARGET, tmp_path / name)
    for kind in ("svg", "png", "pdf"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


@pytest.mark.slow
def test_any_script_and_any_sign_can_be_drawn(tmp_path: Path) -> None:
    tokens = ["▁안녕", "하세요", "$x$ \\frac", "\U0001f600"]
    for name in ("a.png", "a.svg"):
        draw_attention(attention(2), tokens, ["1", "2", "3"], tmp_path / name, title="짧은 문장")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "하세요" in text
    assert "$x$ \\frac" in text


@pytest.mark.slow
def test_weights_that_do_not_fit_the_tokens_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DragomanError, match="2 × 3 × 4 do not belong to 4 target and 3 source"):
        draw_attention(attention(2), TARGET, SOURCE, tmp_path / "a.png")
    with pytest.raises(DragomanError, match=r"one of \.png, \.svg, \.pdf"):
        draw_attention(attention(2), SOURCE, TARGET, tmp_path / "a.bmp")
    (tmp_path / "file").touch()
    with pytest.raises(DragomanError, match="choose another place"):
        draw_attention(attention(2), SOURCE, TARGET, tmp_path / "file" / "a.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.slow
def test_importing_costs_no_matplotlib() -> None:
    code = (
        "import sys, dragoman.inspection.training_curves, dragoman.inspection.attention;"
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -------------------------------------------------------------------------------------- curves


def run_with(path: Path, lines: list[dict[str, Any]], end: str = "") -> Path:
    path.mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines) + end
    (path / "metrics.jsonl").write_text(text, encoding="utf-8")
    return path


def events(bleu: bool = True, metric: str = "bleu") -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for step in range(50, 1001, 50):
        lines.append(
            {"kind": "train", "step": step, "loss": 9 - step / 200, "nll": 8 - step / 200}
            | {"learning_rate": step / 1e6, "tokens_per_second": 1000 + step}
        )
        if step % 250 == 0:
            valid = {"kind": "valid", "step": step, "loss": 6 - step / 300, "perplexity": 3.0}
            lines.append(valid | ({metric: 20 + step / 300} if bleu else {}))
    return lines


@pytest.mark.slow
def test_curves_go_beside_the_metrics(tmp_path: Path) -> None:
    run = run_with(tmp_path / "base", events())
    assert draw_curves(run) == run / "curves.png"
    assert (run / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_every_curve_has_its_panel(tmp_path: Path) -> None:
    run = run_with(tmp_path / "base", events(), end='{"kind": "train", "st')
    text = draw_curves(run, tmp_path / "c.svg").read_text(encoding="utf-8")
    for label in ("base", "loss, nats a piece", "validation BLEU", "learning rate", "23.3"):
        assert f">{label}<" in text
    assert ">target tokens a second<" in text


@pytest.mark.slow
def test_what_was_not_measured_has_no_panel(tmp_path: Path) -> None:
    odd = [
        {"kind": "train", "step": 1, "loss": float("nan"), "learning_rate": None},
        {"kind": "train", "step": 2, "loss": 3.0, "tokens_per_second": "fast"},
        {"kind": "skipped", "step": 3},
        {"kind": "valid", "step": 3},
        {"step": 4},
    ]
    text = draw_curves(run_with(tmp_path / "odd", odd), tmp_path / "c.svg").read_text("utf-8")
    assert "loss, nats a piece" in text
    for label in ("BLEU", "learning rate", "tokens a second"):
        assert label not in text


@pytest.mark.slow
def test_runs_are_compared_in_one_picture(tmp_path: Path) -> None:
    runs = [run_with(tmp_path / name, events(name != "c")) for name in ("a", "b", "c")]
    text = draw_curves(runs, tmp_path / "all.svg").read_text("utf-8")
    assert text.count("BLEU 23.3<") == 2
    assert ">c<" in text
    assert draw_curves(runs) == runs[0] / "curves.png"


def test_runs_without_curves_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: has no metrics\.jsonl; give"):
        draw_curves(tmp_path / "nowhere")
    with pytest.raises(DataError, match="nothing to draw yet"):
        draw_curves(run_with(tmp_path / "empty", []))
    with pytest.raises(DataError, match="nothing to draw yet"):
        draw_curves(run_with(tmp_path / "begun", [], end='{"kind": "tr'))
    with pytest.raises(DataError, match=r"metrics\.jsonl:2: not a line of metrics"):
        draw_curves(run_with(tmp_path / "foreign", events()[:1], end="step,loss\n1,2\n"))
    with pytest.raises(DataError, match=r"metrics\.jsonl:1: not a line of metrics"):
        draw_curves(run_with(tmp_path / "list", [], end="[1]\n"))
    with pytest.raises(DataError, match="give at least one"):
        draw_curves([])
    assert not list(tmp_path.glob("*/*.png"))


def test_letters_no_font_has_are_known_beforehand() -> None:
    assert not has_missing_glyphs("Größe, “so”: 12 → 3")
    assert has_missing_glyphs("\U0001f9ff nobody draws \U00100000")


@pytest.mark.slow
def test_the_curves_of_further_sets_are_named(tmp_path: Path) -> None:
    lines = [
        {"kind": "valid", "step": step, "loss": 2.0, "bleu": 20.0 + step, "bleu/news": 9.0 + step}
        for step in (1, 2, 3)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text, encoding="utf-8")
    picture = draw_curves(tmp_path, tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert "news" in picture


@pytest.mark.slow
def test_a_parser_has_f1_in_place_of_bleu(tmp_path: Path) -> None:
    run = run_with(tmp_path / "parser", events(metric="f1"))
    text = draw_curves(run, tmp_path / "c.svg").read_text("utf-8")
    assert ">validation F1<" in text
    assert "BLEU" not in text

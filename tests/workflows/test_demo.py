"""The parsing demo, as short as it can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.workflows import demo


@pytest.mark.slow
def test_the_parsing_demo_trains_scores_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SPLIT_SIZES", {"train": 2000, "valid": 3, "test": 5})
    demo.run_parsing_demo(tmp_path, steps=2)
    out = capsys.readouterr().out
    assert "2,000 English trees to train on, 5 to test on" in out
    assert "labelled F1|evalb|prm:COLLINS|punctuation:gold" in out
    assert f"dragoman parse {tmp_path / 'run' / 'model'} --pretty" in out
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8").startswith("<svg")
    demo.run_parsing_demo(tmp_path, steps=2)
    assert "already exists and is continued" in capsys.readouterr().out

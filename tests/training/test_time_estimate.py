"""How long a run on a CPU takes is said early, and only where it helps."""

from __future__ import annotations

import re

import pytest
import torch

from dragoman.config import Config, load_preset
from dragoman.messages import counted
from dragoman.training import loop, time_estimate
from dragoman.training.time_estimate import describe_estimate

HOUR = 3600.0
HERE = f"on this CPU ({counted(torch.get_num_threads(), 'thread')}), not counting validation"


def test_a_short_run_needs_no_estimate() -> None:
    assert describe_estimate(load_preset("base"), 20_000, 100) is None


def test_a_run_of_minutes_gets_its_time_alone() -> None:
    assert describe_estimate(load_preset("base"), 20_000, 600) == f"about 10 min of training {HERE}"


def test_a_long_run_is_told_which_preset_takes_less() -> None:
    found = describe_estimate(load_preset("base"), 20_000, 100 * HOUR)
    assert found is not None
    start = f"about 4 days 4 h of training {HERE}; --preset tiny, for 5,000 to 100,000 pairs, takes"
    assert found.startswith(start)
    base, tiny = (load_preset(name) for name in ("base", "tiny"))
    share = (9.4 / 63) * (tiny.training.tokens / base.training.tokens) * 0.1  # 10,000 steps
    minutes = 6000 * share
    said = re.search(r"takes about (?:(\d+) h )?(\d+) min$", found)
    assert said is not None
    assert 60 * int(said[1] or 0) + int(said[2]) == pytest.approx(minutes, rel=0.1)


def test_the_preset_advised_for_the_corpus_is_named_first() -> None:
    found = describe_estimate(load_preset("big"), 300_000, 100 * HOUR)
    assert "--preset small, for 100,000 to 1,000,000 pairs, takes about" in str(found)
    # For millions of pairs base is advised, and this is base: what takes less is the smallest.
    assert "--preset tiny" in str(describe_estimate(load_preset("base"), 3_000_000, 100 * HOUR))


def test_nothing_takes_less_than_the_smallest_preset() -> None:
    found = describe_estimate(load_preset("tiny"), 20_000, 5 * HOUR)
    assert found == f"at most about 5 h of training {HERE}"  # by its patience it may end earlier


def test_a_parser_is_not_told_of_translators() -> None:
    assert "--preset" not in str(describe_estimate(load_preset("parsing"), 20_000, 50 * HOUR))


def test_the_estimate_comes_once_after_the_first_steps(
    prepared, tiny: Config, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(time_estimate, "_WORTH_SAYING", 0.0)
    settings = ["training.steps=14", "training.log_every=2", "training.validate_every=100"]
    config = tiny.overridden([*settings, "training.checkpoint_every=100"])
    loop.fit(config, prepared, tmp_path / "run")
    lines = capsys.readouterr().err.splitlines()
    (place,) = (i for i, line in enumerate(lines) if "of training on this CPU" in line)
    assert lines[place - 1].startswith("step 10 of 14")
    loop.fit(config, prepared, tmp_path / "other", quiet=True)
    assert "on this CPU" not in capsys.readouterr().err

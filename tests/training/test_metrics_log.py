"""A run's records, as TensorBoard and others read them."""

from __future__ import annotations

import json
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from dragoman.training.metrics_log import MetricsWriter


def test_what_a_killed_run_recorded_after_its_checkpoint_is_struck_out(tmp_path: Path) -> None:
    first = MetricsWriter(tmp_path)
    for step in range(1, 4):
        first.write("train", step, loss=10.0 - step, note="text is for the lines alone")
    saved = first.bytes_written
    for step in range(4, 6):
        first.write("train", step, loss=99.0)
    # No close: the process was killed here.
    second = MetricsWriter(tmp_path, start=saved, step=3)
    for step in range(4, 8):
        second.write("train", step, loss=10.0 - step)
    second.close()
    first.close()
    expected = [(step, 10.0 - step) for step in range(1, 8)]
    lines = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert [(line["step"], line["loss"]) for line in lines] == expected
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert [(event.step, event.value) for event in board.Scalars("train/loss")] == expected

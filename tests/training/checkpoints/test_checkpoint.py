"""Checkpoints as files: written by any number of ranks, read by any other, trusted if whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from dragoman.data.batching.batches import Position
from dragoman.errors import DragomanError, ModelError, TrainingError
from dragoman.run_directory import checkpoint_path, list_checkpoints
from dragoman.training.checkpoints import checkpoint, writer
from dragoman.training.checkpoints.averaging import average_weights
from dragoman.training.checkpoints.checkpoint import (
    Checkpoint,
    TrainingState,
    newest_valid_checkpoint,
    prune_checkpoints,
    valid_checkpoints,
)
from dragoman.training.checkpoints.writer import save_checkpoint
from dragoman.training.distributed.parallel import all_rows
from dragoman.training.distributed.ranks import Ranks

from ..thread_ranks import run_on_ranks, shard_rows

STATE = TrainingState(
    step=7, position=Position(1, 2, 3), seconds=0.1 + 0.2, best_score=31.4, ranks=2
)


def tensors(seed: int = 0) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return {
        "weights/table": torch.randn(7, 3, generator=draw),
        "weights/one row": torch.randn(1, 5, generator=draw),
        "weights/half": torch.randn(4, 2, generator=draw).bfloat16(),
        "weights/vector": torch.randn(5, generator=draw),
        "optimizer/table/steps": torch.tensor(3.0 + seed),
        "optimizer/counts": torch.arange(6),
    }


def generators(rank: int) -> dict[str, Tensor]:
    return {"cpu": torch.full((5,), rank, dtype=torch.uint8)}


def save(run: Path, world: int = 1, *, step: int = 7, shared: tuple[str, ...] = ()) -> Path:
    """A checkpoint as `world` ranks write it; tensors named in `shared` are sharded by rows."""

    def work(ranks: Ranks) -> Path:
        everything = {n: all_rows(t) for n, t in tensors(step).items()}
        for name in shared:
            everything[name] = shard_rows(everything[name].tensor, ranks.rank, world)
        state = TrainingState(**{**STATE.to_dict(), "step": step, "position": STATE.position})
        return save_checkpoint(run, state, everything, generators(ranks.rank), ranks)

    (path,) = set(run_on_ranks(world, work))
    assert isinstance(path, Path), path
    return path


EVERY = tuple(tensors())


# --- shards ---


@pytest.mark.parametrize("readers", [1, 2, 3, 4])
@pytest.mark.parametrize("writers", [1, 2, 3, 5])
def test_what_some_ranks_wrote_any_number_of_ranks_can_read(
    writers: int, readers: int, tmp_path: Path
) -> None:
    path = save(tmp_path, writers, shared=EVERY)
    expected = tensors(7)
    for rank in range(readers):
        state = {n: shard_rows(torch.zeros_like(t), rank, readers) for n, t in expected.items()}
        Checkpoint(path).load_into(state)
        for name, rows in state.items():
            mine = shard_rows(expected[name], rank, readers)
            assert rows.tensor.dtype == mine.tensor.dtype
            assert torch.equal(rows.tensor, mine.tensor), (name, rank)


def test_any_rows_can_be_asked_for(tmp_path: Path) -> None:
    found = Checkpoint(save(tmp_path, 3, shared=EVERY)).shards
    table = tensors(7)["weights/table"]
    for start in range(8):
        for stop in range(start, 8):
            assert torch.equal(found.read_rows("weights/table", start, stop), table[start:stop])


def test_progress_and_generators_come_back(tmp_path: Path) -> None:
    checkpoint = Checkpoint(save(tmp_path, 2))
    assert checkpoint.state == STATE
    for rank in (0, 1):
        assert torch.equal(checkpoint.read_generators(rank)["cpu"], generators(rank)["cpu"])
    assert checkpoint.read_generators(2) == {}


def test_what_all_ranks_hold_alike_is_written_once_by_the_first(tmp_path: Path) -> None:
    path = save(tmp_path, 2, shared=("weights/table",))
    names = []
    for rank in (0, 1):
        with safe_open(path / f"rank-000{rank}.safetensors", framework="pt") as shard:
            names.append(set(shard.keys()))
    assert names[0] == {*EVERY, "generators/cpu/0"}
    assert names[1] == {"weights/table", "generators/cpu/1"}


def test_the_index_says_where_every_row_is(tmp_path: Path) -> None:
    path = save(tmp_path, 2, shared=("weights/table",))
    index = json.loads((path / "state.json").read_text())
    assert index["tensors"]["weights/table"] == {
        "shape": [7, 3],
        "dtype": "F32",
        "rows": [["rank-0000.safetensors", 0, 4], ["rank-0001.safetensors", 4, 7]],
    }
    for name, checksum in index["files"].items():
        data = (path / name).read_bytes()
        assert checksum == {"bytes": len(data), "crc32": zlib.crc32(data)}


def test_nothing_temporary_is_left_and_others_may_read(tmp_path: Path) -> None:
    path = save(tmp_path, 2)
    assert [p.name for p in path.parent.iterdir()] == ["step-00000007"]
    assert {p.name for p in path.iterdir()} == {
        "rank-0000.safetensors",
        "rank-0001.safetensors",
        "state.json",
    }
    modes = {oct(p.stat().st_mode & 0o777) for p in path.iterdir()}
    assert len(modes) == 1, "all as the umask says"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the name of an open file")
def test_everything_is_on_the_disk_before_a_checkpoint_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(handle: int) -> None:
        events.append(str(Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)))
        fsync(handle)

    def noted_rename(path: Path, target: Path) -> Path:
        events.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    save(tmp_path)
    temporary = "checkpoints/.tmp-step-00000007"
    assert events == [
        f"{temporary}/rank-0000.safetensors",
        f"{temporary}/state.json",
        temporary,
        "rename",
        "checkpoints",
        ".",
    ]


# --- damage ---


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("damage", [truncate, flip, empty, Path.unlink])
@pytest.mark.parametrize("file", ["rank-0000.safetensors", "rank-0001.safetensors", "state.json"])
def test_damage_to_any_file_falls_back_to_the_checkpoint_before(
    file: str, damage: Callable[[Path], None], tmp_path: Path
) -> None:
    sound, newest = (save(tmp_path, 2, step=step, shared=EVERY) for step in (3, 7))
    said: list[str] = []
    assert newest_valid_checkpoint(tmp_path, said.append) == newest
    assert said == []
    damage(newest / file)
    assert newest_valid_checkpoint(tmp_path, said.append) == sound
    (line,) = said
    assert line.startswith(str(newest))
    assert line.endswith("; using the checkpoint before it instead")


def rewrite(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the index and make its checksum right again."""
    state = json.loads((path / "state.json").read_text())
    del state["crc32"]
    change(state)
    state["crc32"] = zlib.crc32(json.dumps(state).encode())
    (path / "state.json").write_text(json.dumps(state))


WRONG: dict[str, tuple[Callable[[dict[str, object]], None], str]] = {
    "names a file that is not there": (
        lambda s: s["files"].update({"rank-0009.safetensors": {"bytes": 1, "crc32": 1}}),  # type: ignore[attr-defined]
        "rank-0009.safetensors: no such file; the checkpoint is incomplete",
    ),
    "has rows in a file it does not name": (
        lambda s: s["files"].pop("rank-0001.safetensors"),  # type: ignore[attr-defined]
        "not a checkpoint of this version of Dragoman",
    ),
    "leaves out rows": (
        lambda s: s["tensors"]["weights/table"]["rows"].pop(),  # type: ignore[index]
        "not a checkpoint of this version of Dragoman",
    ),
    "has no progress": (
        lambda s: s.pop("progress"),
        "not a checkpoint of this version of Dragoman",
    ),
    "is of a later format": (
        lambda s: s.update(format=99),
        "made by a newer Dragoman (format 99, this one reads 1); update Dragoman",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_index_that_cannot_be_right_is_refused(what: str, tmp_path: Path) -> None:
    change, message = WRONG[what]
    path = save(tmp_path, 2, shared=EVERY)
    rewrite(path, lambda state: None)
    Checkpoint(path).shards.verify()
    rewrite(path, change)
    with pytest.raises(DragomanError) as refused:
        Checkpoint(path).shards.verify()
    assert str(refused.value).startswith(str(path))
    assert str(refused.value).endswith(message)


def test_a_checkpoint_of_a_later_dragoman_is_not_fallen_back_from(tmp_path: Path) -> None:
    save(tmp_path, step=3)
    rewrite(save(tmp_path), lambda state: state.update(format=99))
    with pytest.raises(TrainingError, match="made by a newer Dragoman"):
        newest_valid_checkpoint(tmp_path, print)


def test_a_changed_digit_of_progress_does_not_go_unnoticed(tmp_path: Path) -> None:
    path = save(tmp_path)
    text = (path / "state.json").read_text()
    assert '"step": 7' in text
    (path / "state.json").write_text(text.replace('"step": 7', '"step": 8'))
    with pytest.raises(ModelError, match=r"state\.json: damaged \(its checksum is wrong\)"):
        Checkpoint(path)


def test_without_a_checkpoint_or_with_damaged_ones_alone_there_is_no_going_on(
    tmp_path: Path,
) -> None:
    with pytest.raises(TrainingError, match="no checkpoint to resume from; start the run again"):
        newest_valid_checkpoint(tmp_path, print)
    empty(save(tmp_path) / "state.json")
    with pytest.raises(TrainingError, match="every checkpoint is damaged; start the run again"):
        newest_valid_checkpoint(tmp_path, lambda line: None)


# --- disks that fail ---

CALLS = {
    "mkdir": (Path, "mkdir"),
    "the shard": (checkpoint, "write_tensors"),
    "fsync": (os, "fsync"),
    "the index": (writer, "write_state_file"),
    "rename": (Path, "rename"),
}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", CALLS)
def test_a_write_that_fails_leaves_nothing_and_the_checkpoint_before(
    call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = save(tmp_path, step=3)

    def fails(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(*CALLS[call], fails)
        with pytest.raises(OSError, match=os.strerror(number)) as failed:
            save_checkpoint(tmp_path, STATE, {}, generators(0), Ranks())
    assert failed.value.errno == number
    assert list(before.parent.iterdir()) == [before]
    Checkpoint(before).shards.verify()


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_whichever_rank_fails_all_know_and_nothing_is_left(
    broken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = checkpoint.write_tensors

    def full(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
        plain(tensors, path, metadata)
        if path.name == f"rank-000{broken}.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "write_tensors", full)
    ends = run_on_ranks(
        3, lambda ranks: save_checkpoint(tmp_path, STATE, {}, generators(ranks.rank), ranks)
    )
    assert [isinstance(e, OSError) and e.errno for e in ends] == [errno.ENOSPC] * 3
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_an_error_that_is_not_the_disks_is_not_taken_for_one(tmp_path: Path) -> None:
    def broken() -> None:
        raise RuntimeError("a bug")

    ends = run_on_ranks(
        2,
        lambda ranks: save_checkpoint(
            tmp_path,
            STATE,
            {},
            generators(ranks.rank),
            ranks,
            before_write=broken if ranks.rank == 1 else lambda: None,
        ),
    )
    assert isinstance(ends[0], OSError)
    assert isinstance(ends[1], RuntimeError)


# --- many checkpoints ---


def steps(run: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in list_checkpoints(run)]


def test_pruning_keeps_the_newest_and_does_not_count_damaged_ones(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4, 5):
        save(tmp_path, step=step)
    truncate(checkpoint_path(tmp_path, 4) / "rank-0000.safetensors")
    prune_checkpoints(tmp_path, 2, newest=5)
    assert steps(tmp_path) == [3, 4, 5], "3 and 5 are sound"
    save(tmp_path, step=6)
    prune_checkpoints(tmp_path, 2, newest=6)
    assert steps(tmp_path) == [5, 6]
    assert not list((tmp_path / "checkpoints").glob(".tmp*"))


def test_what_somebody_has_set_aside_is_left_alone(tmp_path: Path) -> None:
    aside = save(tmp_path, step=1).rename(tmp_path / "checkpoints/step-00000001-good")
    save(tmp_path, step=2)
    prune_checkpoints(tmp_path, 1, newest=2)
    assert steps(tmp_path) == [2]
    Checkpoint(aside).shards.verify()


def test_a_future_that_was_passed_over_is_pruned_and_never_averaged(tmp_path: Path) -> None:
    for step in (1, 2, 9):
        save(tmp_path, step=step)
    found = valid_checkpoints(tmp_path, 5, print, up_to=2)
    assert [path.name for path in found] == ["step-00000001", "step-00000002"]
    prune_checkpoints(tmp_path, 5, newest=2)
    assert steps(tmp_path) == [1, 2]


def test_a_checkpoint_is_written_over_a_damaged_one_of_the_same_step(tmp_path: Path) -> None:
    empty(save(tmp_path) / "state.json")
    Checkpoint(save(tmp_path)).shards.verify()
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step-00000007"]


def test_checkpoints_of_any_number_of_ranks_are_averaged(tmp_path: Path) -> None:
    paths = [save(tmp_path, 1, step=1), save(tmp_path, 3, step=2, shared=EVERY)]
    mean = average_weights(paths)
    assert set(mean) == {"table", "one row", "half", "vector"}
    for name, tensor in mean.items():
        two = [tensors(step)[f"weights/{name}"].double() for step in (1, 2)]
        assert torch.equal(tensor, ((two[0] + two[1]) / 2).float())


def test_a_damaged_checkpoint_is_not_averaged(tmp_path: Path) -> None:
    paths = [save(tmp_path, 2, step=1), save(tmp_path, 2, step=2)]
    flip(paths[1] / "rank-0001.safetensors")
    with pytest.raises(ModelError, match=r"rank-0001\.safetensors: damaged"):
        average_weights(paths)


def test_a_checkpoint_can_be_moved_and_read_elsewhere(tmp_path: Path) -> None:
    path = shutil.move(save(tmp_path / "here", 2, shared=EVERY), tmp_path / "there")
    found = Checkpoint(Path(path)).shards.read_all()
    assert all(torch.equal(tensor, found[name]) for name, tensor in tensors(7).items())


def test_a_run_with_a_moving_average_needs_one(tmp_path: Path) -> None:
    checkpoint = Checkpoint(save(tmp_path))
    state = {n: all_rows(torch.zeros_like(t)) for n, t in tensors().items()}
    state["average/table"] = all_rows(torch.zeros(7, 3))
    with pytest.raises(TrainingError, match=r"has no moving average; resume with training\.ema=0"):
        checkpoint.load_into(state)

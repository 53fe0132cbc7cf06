"""Id sequences on disk."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.store import Store, StoreWriter
from dragoman.errors import DataError

side = st.lists(st.integers(0, 69_999), max_size=6)


def write(directory, pairs, vocabulary=100):
    directory.mkdir(exist_ok=True)
    with StoreWriter(directory, vocabulary=vocabulary, tokenizer="f00d") as writer:
        for source, target in pairs:
            writer.append(source, target)
        writer.close({"kept": len(pairs)})
    return Store.open(directory)


@pytest.mark.slow
@given(st.lists(st.tuples(side, side), max_size=8))
def test_what_is_written_is_read(tmp_path_factory, pairs):
    store = write(tmp_path_factory.mktemp("store"), pairs, vocabulary=70_000)
    assert len(store) == len(pairs)
    for index, (source, target) in enumerate(pairs):
        assert store.source(index).tolist() == source
        assert store.target(index).tolist() == target
    lengths = [len(source) for source, _ in pairs]
    assert store.source_lengths(slice(None)).tolist() == lengths
    assert store.meta.source_pieces == sum(lengths)
    assert store.meta.longest_source == max(lengths, default=0)
    backwards = np.arange(len(pairs))[::-1]
    assert store.target_lengths(backwards).tolist() == [len(t) for _, t in reversed(pairs)]


@pytest.mark.parametrize(("vocabulary", "bytes_an_id"), [(65_536, 2), (65_537, 4)])
def test_ids_are_as_narrow_as_the_vocabulary_allows(tmp_path, vocabulary, bytes_an_id):
    store = write(tmp_path, [([vocabulary - 1], [0, 1])], vocabulary)
    assert store.source(0).tolist() == [vocabulary - 1]
    assert (tmp_path / "target.ids").stat().st_size == 2 * bytes_an_id


def test_many_pairs_at_once_equal_one_by_one(tmp_path):
    pairs = [([1, 2], [3]), ([], [4, 5, 6]), ([7], [])]
    one = write(tmp_path / "one", pairs)
    (tmp_path / "many").mkdir()
    writer = StoreWriter(tmp_path / "many", vocabulary=100, tokenizer="f00d")
    none = np.zeros(0, np.int64)
    writer.extend(none, none, none, none)
    for group in (pairs[:2], pairs[2:]):
        sides = list(zip(*group, strict=True))
        flat = [np.array([i for ids in side for i in ids], np.int64) for side in sides]
        lengths = [np.array([len(ids) for ids in side]) for side in sides]
        writer.extend(flat[0], lengths[0], flat[1], lengths[1])
    writer.close({"kept": 3})
    assert Store.open(tmp_path / "many").meta == one.meta
    for name in ("source.ids", "source.offsets", "target.ids", "target.offsets", "meta.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_lengths_of_a_slice(tmp_path):
    store = write(tmp_path, [([1] * n, [2]) for n in (3, 0, 5, 1)])
    assert store.source_lengths(slice(1, 3)).tolist() == [0, 5]
    assert store.source_lengths(slice(3, 99)).tolist() == [1]
    assert store.source_lengths(slice(4, 2)).tolist() == []


def test_sequences_are_views_that_cannot_be_written_to(tmp_path):
    store = write(tmp_path, [([1, 2], [3])])
    with pytest.raises(ValueError, match="read-only"):
        store.source(0)[0] = 9


def test_a_store_travels_to_another_process(tmp_path):
    store = pickle.loads(pickle.dumps(write(tmp_path, [([1, 2], [3])])))
    assert store.source(0).tolist() == [1, 2]
    assert store.meta.report == {"kept": 1}


def edit_meta(**changes):
    def damage(directory):
        meta = json.loads((directory / "meta.json").read_text())
        (directory / "meta.json").write_text(json.dumps(meta | changes))

    return damage


def truncate(name):
    return lambda directory: (directory / name).write_bytes((directory / name).read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate("source.ids"), r"source\.ids: has 3 bytes instead of 4"),
        (truncate("target.offsets"), r"target\.offsets: has 15 bytes"),
        (lambda directory: (directory / "target.ids").unlink(), r"target\.ids: cannot be read"),
        (lambda directory: (directory / "meta.json").unlink(), "not a store"),
        (lambda directory: (directory / "meta.json").write_text("{}"), "not a store"),
        (lambda directory: (directory / "meta.json").write_text("what"), "not a store"),
        (edit_meta(format=2), "newer Dragoman"),
        (edit_meta(pairs="many"), "not a store"),
        (edit_meta(pairs=7), "instead of 64"),
    ],
)
def test_a_damaged_store_is_refused_with_its_file(damage, message, tmp_path):
    write(tmp_path, [([1, 2], [3])])
    damage(tmp_path)
    with pytest.raises(DataError, match=message) as caught:
        Store.open(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_an_unfinished_store_is_refused(tmp_path):
    with StoreWriter(tmp_path, vocabulary=100, tokenizer="f00d") as writer:
        writer.append([1], [2])
    with pytest.raises(DataError, match="not a store"):
        Store.open(tmp_path)

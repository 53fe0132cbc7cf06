"""Which pairs are worth training on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import DataConfig
from dragoman.data.cleaning import Cleaner, CleaningReport, HashSet, pair_hash
from dragoman.errors import ConfigError


@pytest.mark.parametrize(
    ("source", "target", "pieces", "reason"),
    [
        ("a", "b", (1, 1), None),
        ("", "b", (0, 1), "empty"),
        ("a", "", (1, 0), "empty"),
        ("a", "b", (200, 200), None),
        ("a", "b", (201, 200), "too long"),
        ("a", "b", (200, 201), "too long"),
        ("a", "b", (1, 39), None),  # a side counts as at least 10
        ("a", "b", (1, 40), "length ratio"),
        ("a", "b", (40, 1), "length ratio"),
        ("a", "b", (20, 79), None),
        ("a", "b", (20, 80), "length ratio"),
        ("a", "a", (1, 1), "copy"),
    ],
)
def test_each_rule_at_its_edge(source, target, pieces, reason):
    assert Cleaner(DataConfig()).reason_to_drop(source, target, *pieces) == reason


def test_rules_can_be_switched_off():
    lenient = Cleaner(DataConfig(max_ratio=0, drop_copies=False))
    assert lenient.reason_to_drop("a", "a", 1, 200) is None


GERMAN = "Das ist ein ganz gewöhnlicher deutscher Satz."
ENGLISH = "This is quite an ordinary English sentence."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (ENGLISH, GERMAN, None),
        (GERMAN, ENGLISH, "language"),
        (ENGLISH, "Ceci est une phrase tout à fait ordinaire.", "language"),
        ("Merci !", "Danke!", None),  # too short to tell
    ],
)
def test_other_languages_are_dropped(source, target, reason):
    cleaner = Cleaner(DataConfig(identify_languages=("en", "de")))
    assert cleaner.reason_to_drop(source, target, 9, 9) == reason


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match="'xx' is not a language that can be identified"):
        Cleaner(DataConfig(identify_languages=("en", "xx")))


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(1, 300) | st.integers(1, 2**64 - 1), max_size=60)))
def test_a_hash_set_is_a_set(batches):
    table, reference = HashSet(), set()
    for batch in batches:
        expected = []
        for value in batch:
            expected.append(value not in reference)
            reference.add(value)
        assert table.add(np.array(batch, np.uint64)).tolist() == expected
        assert len(table) == len(reference)


@pytest.mark.slow
def test_a_hash_set_grows_and_still_knows_everything():
    values = np.random.default_rng(1).integers(1, 2**63, 50_000, dtype=np.uint64)
    # Hashes that differ only above the table's bits all want the same slot.
    values[:500] = (np.arange(1, 501, dtype=np.uint64) << np.uint64(40)) | np.uint64(7)
    table = HashSet()
    for batch in np.split(values, 50):
        assert table.add(batch).all()
    assert not table.add(values[::-1]).any()
    assert len(table) == 50_000


def test_the_hash_of_a_pair_tells_the_sides_apart_and_never_changes():
    assert pair_hash("a", "b") != pair_hash("b", "a")
    assert pair_hash("a b", "c") != pair_hash("a", "b c")
    assert pair_hash("a", "b") == 6888081726617775527


def test_the_report_counts_and_keeps_the_first_places():
    report = CleaningReport(read=2000, kept=1988)
    report.drop("empty", (f"a.en, line {n}" for n in range(1, 99)), 9)
    report.drop("empty", ["a.en, line 100"])
    report.drop("duplicate", ["a.en, line 7", "a.en, line 8"], 2)
    assert report.dropped == {"empty": 10, "duplicate": 2}
    assert report.examples["empty"] == [f"a.en, line {n}" for n in range(1, 6)]
    assert report.lines() == [
        "2,000 pairs read, 1,988 kept (99.4%)",
        "  empty                  10  a.en, line 1; a.en, line 2; …",
        "  duplicate               2  a.en, line 7; a.en, line 8",
    ]
    assert CleaningReport.from_json(report.to_json()) == report

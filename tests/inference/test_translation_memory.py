"""A translation memory finds what was translated before, and keeps what is new."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from lxml import etree

from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.inference import translation_memory
from dragoman.inference.translation_memory import TranslationMemory, translate_with_memory
from dragoman.inference.translation_types import Issue, Request, Translation

FOREIGN = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="other" srclang="*all*" segtype="sentence" datatype="xml"
    creationtoolversion="1" o-tmf="x" adminlang="en"><prop type="x">kept</prop></header>
  <body>
    <tu tuid="7"><note>kept</note>
      <tuv xml:lang="de-DE"><seg>Das <bpt i="1">&lt;b&gt;</bpt>Haus<ept i="1">&lt;/b&gt;</ept>.</seg></tuv>
      <tuv xml:lang="en-GB"><seg>The house &amp; more.</seg></tuv>
      <tuv xml:lang="fr"><seg>La maison.</seg></tuv>
    </tu>
  </body>
</tmx>
"""  # noqa: E501


def memory(*pairs: tuple[str, str]) -> TranslationMemory:
    made = TranslationMemory("de", "en")
    made.add(pairs)
    return made


def test_the_same_sentence_has_its_translation() -> None:
    found = memory(("Das Haus.", "The house.")).lookup("  Das \n Haus. ")
    assert found is not None
    assert (found.text, found.similarity) == ("The house.", 1.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Seite 13 von 40.", "Page 13 of 40."),
        ("Seite 13 von 40!", "Page 13 of 40!"),
        ("Seite 12 von 30", "Page 12 of 30"),
        ("Seite 1 von 30.", None),
        ("Seite 1.200 von 30.", None),
        ("„Seite 12 von 30.", None),
        ("Seite zwölf von 30.", None),
        ("Die Seite 12 von 30.", None),
    ],
)
def test_other_numbers_and_final_marks_are_put_in_if_that_is_certain(
    text: str, expected: str | None
) -> None:
    found = memory(("Seite 12 von 30.", "Page 12 of 30.")).lookup(text)
    assert (found.text if found else None) == expected


def test_a_number_that_the_translation_writes_otherwise_is_not_replaced() -> None:
    kept = memory(("Es kostet 1,50 Euro.", "It costs 1.50 euros."), ("7 mal 7", "7 times 7"))
    for text in ("Es kostet 2,50 Euro.", "8 mal 7"):
        found = kept.lookup(text)
        assert found is None or found.text is None


def test_a_similar_sentence_is_a_suggestion() -> None:
    kept = memory(("Der Hund schläft im Garten.", "The dog sleeps."), ("Ganz anders.", "No."))
    found = kept.lookup("Der Hund spielt im Garten.")
    assert found is not None
    assert found.source == "Der Hund schläft im Garten."
    assert found.text is None
    assert 0.75 <= found.similarity < 1
    assert kept.lookup("Der Hund spielt im Garten.", least=0.95) is None
    assert kept.lookup("Nichts davon kommt hier vor") is None
    assert kept.lookup("") is None


def test_only_what_it_lacks_is_translated_and_learned() -> None:
    kept = memory(("eins", "one"))
    asked: list[str] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(request.text for request in requests)
        return [Translation(one.text, one.text.upper(), -1.0, ()) for one in requests]

    requests = [Request("eins"), Request("zwei"), Request("zwei"), Request("eins", prefix="An")]
    found = translate_with_memory(requests, run, kept)
    assert [one.text for one in found] == ["one", "ZWEI", "ZWEI", "EINS"]
    assert asked == ["zwei", "eins"]
    assert kept.used == 1
    assert kept.lookup("eins").text == "one"  # type: ignore[union-attr]
    assert kept.lookup("zwei").text == "ZWEI"  # type: ignore[union-attr]
    assert kept.added == 2
    assert [one.text for one in translate_with_memory(requests[:1], run, None)] == ["EINS"]


@pytest.mark.parametrize(("repaired", "learned"), [(True, 1), (False, 0)])
def test_what_is_wrong_is_not_learned(repaired: bool, learned: int) -> None:
    def run(requests: Sequence[Request]) -> list[Translation]:
        issues = (Issue("item", "7", repaired),)
        return [Translation(one.text, "x", 0.0, (), issues=issues) for one in requests]

    made = memory()
    made.translate([Request("sieben 7")], run)
    assert made.added == learned


@pytest.mark.parametrize("kept", ["Click Save now.", "Now click Save.", "Press Save, please."])
def test_what_it_has_is_aligned_by_what_the_model_says(kept: str) -> None:
    def run(requests: Sequence[Request]) -> list[Translation]:
        pairs = ((0, 1), (1, 0), (2, 2))
        return [Translation(one.text, "Click save now!", 0.0, (), pairs) for one in requests]

    made = memory(("Speichern anklicken jetzt", kept))
    (found,) = made.translate([Request("Speichern anklicken jetzt")], run, aligned=True)
    assert found.text == kept
    save = [word.strip(",.") for word in kept.split()].index("Save")
    assert [t for s, t in found.alignment if s == 0] == [save]
    assert all(t < 3 for _, t in found.alignment)


def test_pairs_come_back_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new.tmx"
    pairs = [('Das <b> & "Haus"', "The <b> & 'house'"), ("한국어 😀", "Korean\x01 x"), ("a", "b")]
    kept = TranslationMemory.open(path, "de", "en")
    kept.add(pairs)
    assert kept.added == 3
    kept.write(path)
    assert kept.added == 3
    again = TranslationMemory.open(path, "de", "en")
    assert len(again) == 3
    assert again.lookup(pairs[0][0]).text == pairs[0][1]  # type: ignore[union-attr]
    assert again.lookup("한국어 😀").text == "Korean x"  # type: ignore[union-attr]
    root = etree.parse(path).getroot()
    assert root.get("version") == "1.4"
    assert set(root.find("header").attrib) == {
        *("creationtool", "creationtoolversion", "segtype", "o-tmf", "adminlang", "srclang"),
        "datatype",
    }


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1"])
def test_another_program_s_file_stays_as_it_is_but_for_new_pairs(
    tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "theirs.tmx"
    path.write_bytes(FOREIGN.format(encoding=encoding).encode(encoding))
    kept = TranslationMemory.read(path, "de", "en")
    assert kept.lookup("Das Haus.").text == "The house & more."  # type: ignore[union-attr]
    kept.add([("grün 한", "green")])
    kept.write(path)
    text = path.read_bytes().decode(encoding)
    head = FOREIGN.format(encoding=encoding).split("  </body>")[0]
    assert text.startswith(head)
    assert len(TranslationMemory.read(path, "de", "en")) == 2
    assert TranslationMemory.read(path, "de", "en").lookup("grün 한") is not None


def test_nothing_new_is_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "theirs.tmx"
    path.write_text(FOREIGN.format(encoding="UTF-8"))
    before = path.stat().st_mtime_ns
    kept = TranslationMemory.read(path, "de", "en")
    kept.add([("Das Haus.", "The house & more.")])
    kept.write(path)
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no xml",
        b"<tmx><body>",
        b"\xff\xfe\x00",
        FOREIGN.format(encoding="UTF-8").encode()[:-60],
    ],
)
def test_broken_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.tmx"
    path.write_bytes(content)
    with pytest.raises(DataError) as raised:
        TranslationMemory.open(path, "de", "en")
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_other_languages_are_refused_with_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "theirs.tmx"
    path.write_text(FOREIGN.format(encoding="UTF-8"))
    with pytest.raises(DataError, match=r"de-DE|de-de"):
        TranslationMemory.read(path, "ko", "ja")


def test_what_cannot_be_a_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.tmx"):
        TranslationMemory.open(tmp_path / "x.csv", "de", "en")
    with pytest.raises(ConfigError, match="languages"):
        TranslationMemory.open(tmp_path / "x.tmx", "", "")
    (tmp_path / "file").touch()
    with pytest.raises(DragomanError):
        memory(("a", "b")).write(tmp_path / "file" / "y.tmx")


def test_a_large_memory_is_searched_quickly() -> None:
    kept = TranslationMemory("de", "en")
    names = [
        f"Der {a} {b} steht im {c}." for a in "abcdefghij" for b in range(30) for c in range(30)
    ]
    kept.add((name, name.upper()) for name in names)
    kept.lookup("Der a 5 steht unter dem Baum.")  # makes the index
    began = time.process_time()
    for n in range(20):
        kept.lookup(f"Der x {n} liegt im Garten.")
    assert time.process_time() - began < 1


CORRECTIONS = (
    '{"source": "Das Haus.", "target": "The house.", "source_lang": "de", "target_lang": "en"}\n'
    '{"source": "Home.", "target": "Haus.", "source_lang": "en", "target_lang": "de"}\n'
    '{"source": "Das  Haus.", "target": "The home.", "source_lang": "de", "target_lang": "en"}\n'
    '{"source": "Das Haus.", "target": "The ho'
)


def test_corrections_are_a_memory_that_is_only_read(tmp_path: Path) -> None:
    """The last of a sentence counts, one direction is not the other, a torn line is no pair."""
    file = tmp_path / "corrections.jsonl"
    file.write_text(CORRECTIONS, encoding="utf-8")
    known = TranslationMemory.open(file, "de", "en")
    asked = [Request("Das Haus."), Request("Haus."), Request("Das Tal.")]
    found = known.translate(
        asked, lambda some: [Translation(one.text, "new", 0.0, ()) for one in some]
    )
    assert [one.text for one in found] == ["The home.", "new", "new"]
    assert (len(known), known.added) == (1, 0)
    with pytest.raises(ConfigError, match="nothing is added"):
        known.write(file)
    assert file.read_text(encoding="utf-8") == CORRECTIONS
    with pytest.raises(DataError, match="no such file"):
        TranslationMemory.open(tmp_path / "none.jsonl", "de", "en")


def test_thousands_of_sentences_that_differ_in_a_number_delay_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = memory(*((f"Kiste {n} ist offen.", f"Box {n} is open.") for n in range(2, 3000)))
    found = known.find_translation("Kiste 5000 ist offen!")
    assert found is not None
    assert found.text == "Box 5000 is open!"
    tried: list[str] = []
    monkeypatch.setattr(translation_memory, "_adapt", lambda text, *_: tried.append(text))
    assert known.find_translation("(Kiste 5000 ist offen.") is None
    assert 0 < len(tried) <= 100

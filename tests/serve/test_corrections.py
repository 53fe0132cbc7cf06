"""Corrections are kept in a file, used at once, and harm nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.errors import ConfigError, DataError
from dragoman.inference.translation_memory import TranslationMemory
from dragoman.serve import corrections as module
from dragoman.serve.authentication import hash_key
from dragoman.serve.corrections import Correction, CorrectionFile, make_corrections

from .service_fixtures import SENTENCES, Process, Service, wait_for

ASK: dict[str, Any] = {"q": SENTENCES[0], "source": "en", "target": "de"}
SUGGEST = ASK | {"s": "der Köter & Ähnliches"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "corrections.jsonl"


def made(text: str, correction: str) -> list[Correction]:
    return make_corrections(text, correction, ("en", "de"))


def ignore(_: list[Correction]) -> None:
    """Be told of corrections, as a translation memory is, and do nothing with them."""


def read(file: Path) -> list[tuple[str, str]]:
    records = [json.loads(line) for line in file.read_bytes().splitlines()]
    return [(one["source"], one["target"]) for one in records]


# --- LibreTranslate's contract ---


def test_without_a_file_suggestions_are_refused_as_libretranslate_does(service: Service) -> None:
    for answer in (
        service.post("/suggest", SUGGEST),
        service.post("/suggest", {}),
        service.client.post("/suggest", data=SUGGEST),
        service.post("/v1/corrections", {"text": ["a"], "translation": ["b"]}),
    ):
        assert answer.status_code == 403
        assert answer.json() == {"error": "Suggestions are disabled on this server."}
    assert service.client.get("/frontend/settings").json()["suggestions"] is False
    assert service.client.get("/v1/corrections").json() == {"file": None}


def test_a_suggestion_is_taken_as_json_and_as_both_kinds_of_form(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file)
    assert service.client.get("/frontend/settings").json()["suggestions"] is True
    assert service.client.get("/v1/corrections").json() == {"file": "corrections.jsonl"}
    bodies = [SUGGEST | {"q": text} for text in SENTENCES[:3]]
    parts = {name: (None, value) for name, value in bodies[2].items()}
    for answer in (
        service.post("/suggest", bodies[0]),
        service.client.post("/suggest", data=bodies[1] | {"source": "auto"}),
        service.client.post("/suggest", files=parts),
    ):
        assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert read(file) == [(text, SUGGEST["s"]) for text in SENTENCES[:3]]


@pytest.mark.parametrize("field", ["q", "s", "source", "target"])
def test_a_suggestion_that_lacks_a_field_is_refused(
    served: Callable[..., Service], file: Path, field: str
) -> None:
    service = served(corrections=file)
    without = {name: value for name, value in SUGGEST.items() if name != field}
    for body in (without, SUGGEST | {field: ""}):
        answer = service.post("/suggest", body)
        assert answer.status_code == 400
        assert answer.json() == {"error": f"Invalid request: missing {field} parameter"}
    assert file.read_bytes() == b""


# --- used at once ---


def test_a_correction_is_the_translation_of_the_very_next_request(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file, names=("ende", "deen"))
    before = service.post("/translate", ASK).json()["translatedText"]
    assert before != SUGGEST["s"]
    service.post("/suggest", SUGGEST)
    said, text = SUGGEST["s"], SENTENCES[0]
    assert service.post("/translate", ASK).json()["translatedText"] == said
    deepl = service.post("/v2/translate", {"text": [text], "target_lang": "DE"}).json()
    assert deepl["translations"][0]["text"] == said
    for asked in ({"align": True}, {"n_best": 3}, {"beam": 2, "pairs": True}):
        body = {"text": text, "model": "ende"} | asked
        assert service.post("/v1/translate", body).json()["translations"][0]["text"] == said
    stream = service.post("/v1/translate/stream", {"text": text, "model": "ende"}).text
    assert json.dumps(said, ensure_ascii=False) in stream
    upload = {"file": ("a.txt", text.encode())}
    url = service.client.post("/translate_file", files=upload, data=ASK).json()["translatedFileUrl"]
    assert service.client.get(url).text.strip() == said
    around = service.post("/translate", ASK | {"q": f"{text}. {SENTENCES[1]}."}).json()
    assert around["translatedText"].startswith(f"{said}.")
    other = ASK | {"q": said, "source": "de", "target": "en"}
    assert service.post("/translate", other).json()["translatedText"] != text


def test_a_later_correction_wins_and_the_same_one_is_kept_once(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file)
    for wanted in ("eins", "eins", "zwei"):
        service.post("/suggest", SUGGEST | {"s": wanted})
        service.post("/suggest", SUGGEST | {"q": f"  {SENTENCES[0]} ", "s": f"{wanted}\n"})
        assert service.post("/translate", ASK).json()["translatedText"] == wanted
    assert read(file) == [(SENTENCES[0], "zwei")]


def test_what_was_corrected_before_is_used_after_a_restart_and_over_other_memories(
    served: Callable[..., Service], file: Path, tmp_path: Path
) -> None:
    tmx = tmp_path / "known.tmx"
    known = TranslationMemory("en", "de")
    known.add([(SENTENCES[0], "alt"), (SENTENCES[1], "bekannt")])
    known.write(tmx)
    served(corrections=file).post("/suggest", SUGGEST)
    service = served(corrections=file, memories=(tmx,))
    found = service.post("/translate", ASK | {"q": SENTENCES[:2]}).json()["translatedText"]
    assert found == [SUGGEST["s"], "bekannt"]


def test_the_file_is_a_memory_and_a_corpus_as_it_is(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file, names=("ende", "deen"))
    service.post("/suggest", SUGGEST)
    service.post("/suggest", {"q": "Hallo", "s": "Hello", "source": "de", "target": "en"})
    memory = TranslationMemory.open(file, "en", "de")
    match = memory.find_translation(SENTENCES[0])
    assert match is not None
    assert (match.text, len(memory)) == (SUGGEST["s"], 1)
    corpus = open_parallel_corpus([file], languages=("en", "de"))
    pairs = [(pair.source, pair.target) for pair in corpus]
    assert pairs == [(SENTENCES[0], SUGGEST["s"]), ("Hello", "Hallo")]


def test_a_text_is_corrected_sentence_by_sentence(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file)
    text, said = "The dog sleeps. The cat eats.", "Der Hund schläft. Die Katze frisst."
    assert service.post("/suggest", SUGGEST | {"q": text, "s": said}).status_code == 200
    assert read(file) == [
        ("The dog sleeps.", "Der Hund schläft."),
        ("The cat eats.", "Die Katze frisst."),
    ]
    assert service.post("/translate", ASK | {"q": text}).json()["translatedText"] == said
    one = service.post("/suggest", SUGGEST | {"q": "The dog eats.", "s": "Er frisst. Der Hund."})
    assert one.status_code == 200
    assert read(file)[-1] == ("The dog eats.", "Er frisst. Der Hund.")
    merged = service.post("/suggest", SUGGEST | {"q": text, "s": "Der Hund schläft."})
    assert merged.status_code == 400
    assert "2 sentences and its correction 1" in merged.json()["error"]


# --- what is refused ---


@pytest.mark.parametrize(
    ("text", "correction", "reason"),
    [
        ("the dog", " \n", "no words"),
        ("the dog", "…!", "no words"),
        ("...", "der Hund", "no word in the text"),
        ("the dog", "der Hund " * 40, "359 characters and its source 7"),
        ("the dog " * 120, "Hund", "4 characters and its source 959"),
        ("the dog", "der\0Hund", "U+0000"),
        ("the dog", "der\x1b[31mHund", "U+001B"),
        ("the\x7fdog", "der Hund", "U+007F"),
        ("the dog", "der \u202eHund", "U+202E"),
    ],
)
def test_what_cannot_be_a_correction_is_refused_in_one_line(
    text: str, correction: str, reason: str
) -> None:
    with pytest.raises(DataError) as refusal:
        made(text, correction)
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_looks_like_markup_stays_text(served: Callable[..., Service], file: Path) -> None:
    service = served(corrections=file)
    hostile = '<script>alert("1")</script> & <b>so</b>'
    service.post("/suggest", SUGGEST | {"s": hostile})
    assert service.post("/translate", ASK).json()["translatedText"] == hostile
    for source in (SENTENCES[0], f"<p>{SENTENCES[0]}</p>", f"<p><i>{SENTENCES[0]}</i></p>"):
        body = ASK | {"q": source, "format": "html"}
        found = service.post("/translate", body).json()["translatedText"]
        assert "alert" in found
        assert "<script" not in found
        assert "<b>" not in found


def test_limits_keys_and_rates_hold_for_corrections(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file, keys=("secret",), max_characters=100, rate=6)
    assert service.post("/suggest", SUGGEST).status_code == 400
    assert service.post("/suggest", SUGGEST | {"api_key": "wrong"}).status_code == 403
    allowed = SUGGEST | {"api_key": "secret"}
    assert service.post("/suggest", allowed | {"s": "x" * 101}).status_code == 413
    assert service.post("/suggest", allowed | {"q": "x " * 51}).status_code == 413
    native = {"text": [SENTENCES[1]], "translation": ["b"], "model": "ende"}
    headers = {"authorization": "Bearer secret"}
    assert service.post("/v1/corrections", native, headers=headers).status_code == 200
    assert service.post("/suggest", allowed).status_code == 200
    refused = service.post("/suggest", allowed)
    assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [one["by"] for one in records] == [hash_key("secret")[:12]] * 2
    assert "secret" not in file.read_text(encoding="utf-8")


def test_native_corrections_are_kept_all_or_none(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file, names=("ende", "trees"))
    body = {"text": SENTENCES[:2], "translation": ["a", "…"], "model": "ende"}
    assert service.post("/v1/corrections", body).status_code == 400
    assert service.post("/v1/corrections", body | {"translation": ["a"]}).status_code == 400
    assert service.post("/v1/corrections", body | {"model": "trees"}).status_code == 400
    assert file.read_bytes() == b""
    kept = service.post("/v1/corrections", body | {"translation": ["a", "b"]})
    assert (kept.status_code, kept.json()) == (200, {"file": "corrections.jsonl"})
    assert [one[1] for one in read(file)] == ["a", "b"]


def test_a_full_file_takes_no_more_but_what_replaces(
    served: Callable[..., Service], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CORRECTIONS", 2)
    service = served(corrections=file)
    answers = [service.post("/suggest", SUGGEST | {"q": text}) for text in SENTENCES[:3]]
    assert [one.status_code for one in answers] == [200, 200, 503]
    assert "is full" in answers[2].json()["error"]
    assert service.post("/suggest", SUGGEST | {"s": "neu"}).status_code == 200
    monkeypatch.setattr(module, "CORRECTION_BYTES", file.stat().st_size + 5)
    assert service.post("/suggest", SUGGEST | {"s": "neu und lang"}).status_code == 503
    assert [one[1] for one in read(file)] == ["neu", SUGGEST["s"]]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://testserver", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://testserver"}, 200),
        ({"origin": "https://behind.example", "sec-fetch-site": "same-origin"}, 200),
        ({"origin": "https://mine.example", "sec-fetch-site": "cross-site"}, 200),
    ],
)
def test_no_other_sites_page_can_send_corrections(
    served: Callable[..., Service], file: Path, headers: dict[str, str], status: int
) -> None:
    service = served(corrections=file, origins=("https://mine.example",))
    assert service.client.post("/suggest", data=SUGGEST, headers=headers).status_code == status


def test_a_file_that_cannot_be_written_is_one_line_and_in_the_log(
    served: Callable[..., Service],
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = served(corrections=file)
    service.post("/suggest", SUGGEST | {"q": SENTENCES[1]})
    before, write = file.read_bytes(), os.write

    def fill_up(handle: int, data: Any) -> int:
        if len(data) > 10:
            return write(handle, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", fill_up)
        patch.setattr(module, "memoryview", lambda data: memoryview(data)[:20], raising=False)
        answer = service.post("/suggest", SUGGEST)
    assert answer.status_code == 500
    assert "no space" not in answer.text
    assert str(file.parent) not in answer.text
    assert file.read_bytes() == before
    assert service.post("/translate", ASK).json()["translatedText"] != SUGGEST["s"]
    assert "corrections cannot be kept" in caplog.text
    assert service.post("/suggest", SUGGEST).status_code == 200


# --- the file ---


@pytest.mark.parametrize("torn", [1, 20, 60, 100])
def test_a_torn_last_line_is_ignored_and_mended_at_the_next_start(file: Path, torn: int) -> None:
    CorrectionFile(file).add([*made("one", "eins"), *made("two", "zwei — ähnlich")], ignore)
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    file.write_bytes(whole[: first + torn])
    again = CorrectionFile(file)
    assert [one.source for one in again] == ["one"]
    assert file.read_bytes() == whole[:first]
    again.add(made("two", "zwei"), ignore)
    assert read(file) == [("one", "eins"), ("two", "zwei")]


def test_a_last_line_that_lacks_only_its_end_is_kept(file: Path) -> None:
    CorrectionFile(file).add(made("one", "eins"), ignore)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert len(CorrectionFile(file)) == 1
    assert file.read_bytes() == whole


def test_what_a_killed_service_was_writing_anew_is_removed(file: Path) -> None:
    (file.parent / f".tmp-{file.name}-abc").write_bytes(b"half")
    (file.parent / ".tmp-other-abc").write_bytes(b"half")
    CorrectionFile(file)
    assert [one.name for one in file.parent.glob(".tmp-*")] == [".tmp-other-abc"]


@pytest.mark.parametrize("bad", ["{", "[1]", '{"source": "a"}', "x\x00"])
def test_a_damaged_line_before_the_last_is_refused_and_nothing_lost(file: Path, bad: str) -> None:
    CorrectionFile(file).add(made("one", "eins"), ignore)
    damaged = f"{bad}\n".encode() + file.read_bytes()
    file.write_bytes(damaged)
    with pytest.raises(DataError, match="line 1: not a correction"):
        CorrectionFile(file)
    assert file.read_bytes() == damaged


def test_a_file_of_another_kind_or_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.jsonl"):
        CorrectionFile(tmp_path / "known.tmx")


def test_what_others_write_meanwhile_is_kept_and_learned(file: Path) -> None:
    """Two services with one file, or a person with an editor."""
    first, second = CorrectionFile(file), CorrectionFile(file)
    first.add(made("one", "eins"), ignore)
    learned: list[Correction] = []
    second.add(made("two", "zwei"), learned.extend)
    assert [one.source for one in learned] == ["one", "two"]
    first.add(made("one", "einmal"), ignore)
    assert read(file) == [("one", "einmal"), ("two", "zwei")]


def test_eight_threads_that_post_lose_and_mix_nothing(
    served: Callable[..., Service], file: Path
) -> None:
    service = served(corrections=file)

    def post(number: int) -> int:
        body = SUGGEST | {"q": f"dog number {number % 40} x", "s": f"Hund {number}"}
        return int(service.post("/suggest", body).status_code)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(post, range(120))) == {200}
    kept = dict(read(file))
    assert set(kept) == {f"dog number {number} x" for number in range(40)}
    asked = service.post("/translate", ASK | {"q": list(kept)}).json()["translatedText"]
    assert asked == list(kept.values())  # the last in the file is the one in use


WRITER = """
import sys
from pathlib import Path
from dragoman.serve.corrections import CorrectionFile, make_corrections
kept = CorrectionFile(Path(sys.argv[1]))
for number in range(100_000):
    text = f"sentence {number % 300}"
    kept.add(make_corrections(text, f"Satz {number} " + "ä" * 90, ("en", "de")), lambda _: None)
    print(number, flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_has_kept_what_it_acknowledged(file: Path) -> None:
    """In the middle of appending, and of writing the file anew."""
    for tried in (0, 2, 5):
        file.unlink(missing_ok=True)
        command = [sys.executable, "-c", WRITER, str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline() for _ in range(20 + 90 * tried)]
            time.sleep(0.003 * tried)
            writer.kill()
            said += writer.stdout.readlines()
        acknowledged = int([one for one in said if one.endswith("\n")][-1])
        kept = {one.source: one.target for one in CorrectionFile(file)}
        for number in range(max(0, acknowledged - 299), acknowledged + 1):
            found = int(kept[f"sentence {number % 300}"].split()[1])
            assert found in (number, number + 300)
        assert file.read_bytes().endswith(b"\n")
        assert not list(file.parent.glob(".tmp-*"))


@pytest.mark.slow
def test_a_service_that_is_killed_goes_on_where_it_was(
    outside: Callable[..., Process], file: Path
) -> None:
    import httpx

    first = outside("--corrections", file)
    assert httpx.post(f"{first.url}/suggest", json=SUGGEST).json() == {"success": True}
    first.popen.kill()
    first.popen.wait(20)
    with file.open("ab") as torn:
        torn.write('{"source": "ä'.encode()[:-1])
    second = outside("--corrections", file)
    wait_for(lambda: len(second.lines) > 1, 20)
    found = httpx.post(f"{second.url}/translate", json=ASK).json()
    assert found == {"translatedText": SUGGEST["s"]}
    assert len(read(file)) == 1

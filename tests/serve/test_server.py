"""The service as a process: its clients, its signals, and those who leave."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest

from dragoman.inference.cpu import kernel_library

from .service_fixtures import SENTENCES, Process, wait_for

ASK: dict[str, Any] = {"q": "the dog", "source": "en", "target": "de"}
LONG: dict[str, Any] = {"text": SENTENCES * 2, "beam": 16, "max_extra": 400}
"""Seconds of work."""


@pytest.fixture(scope="module")
def running(models: Path) -> Iterator[Process]:
    process = Process(models / "ende", models / "deen", "--deadline", 60)
    yield process
    process.popen.kill()
    process.end()


def test_the_log_says_which_models_there_are(running: Process) -> None:
    wait_for(lambda: len(running.lines) >= 3)
    found = [line for line in running.lines[:3] if line["event"] == "model"]
    kept = [{k: v for k, v in one.items() if k not in ("time", "level", "event")} for one in found]
    common = {"task": "translation", "default": True}
    assert kept == [
        {"name": "ende", "source": "en", "target": "de", **common},
        {"name": "deen", "source": "de", "target": "en", **common},
    ]


@pytest.mark.slow
def test_libretranslates_client_is_served(running: Process) -> None:
    package = pytest.importorskip("libretranslatepy", reason="needs libretranslatepy")
    client = package.LibreTranslateAPI(running.url)
    want = httpx.post(f"{running.url}/translate", json=ASK, timeout=30).json()["translatedText"]
    assert client.translate("the dog", "en", "de") == want
    assert [one["code"] for one in client.languages()] == ["en", "de"]
    found = client.detect("The weather is very nice today.")
    assert found[0]["language"] == "en"
    assert found[0]["confidence"] > 50


@pytest.mark.slow
def test_deepls_client_is_served(running: Process, tmp_path: Path) -> None:
    deepl = pytest.importorskip("deepl", reason="needs deepl")
    client = deepl.Translator("anything", server_url=running.url, send_platform_info=False)
    want = httpx.post(f"{running.url}/translate", json=ASK, timeout=30).json()["translatedText"]
    found = client.translate_text(["the dog", "the cat"], source_lang="EN", target_lang="DE")
    assert found[0].text == want
    assert (found[0].detected_source_lang, found[0].billed_characters) == ("EN", 7)
    assert client.translate_text("the dog", source_lang="DE", target_lang="EN-US").text
    assert [one.code for one in client.get_source_languages()] == ["EN", "DE"]
    assert [one.code for one in client.get_target_languages()] == ["DE", "EN"]
    assert client.get_usage().character.count >= 14
    with pytest.raises(deepl.DeepLException, match="not supported"):
        client.translate_text("the dog", source_lang="EN", target_lang="FR")
    letter, result = tmp_path / "letter.html", tmp_path / "letter.de.html"
    letter.write_text("<p>the dog</p>\n<pre>the cat</pre>\n")
    client.translate_document_from_filepath(letter, result, source_lang="EN", target_lang="DE")
    assert result.read_text() == f"<p>{want}</p>\n<pre>the cat</pre>\n"
    letter.with_suffix(".docx").write_bytes(b"no document")
    with pytest.raises(deepl.DocumentTranslationException, match="Word document"):
        client.translate_document_from_filepath(
            letter.with_suffix(".docx"), tmp_path / "x.docx", target_lang="DE"
        )
    assert not (tmp_path / "x.docx").exists()
    client.close()


@pytest.mark.slow
def test_deepls_client_is_refused_without_its_key(
    outside: Callable[..., Process], tmp_path: Path
) -> None:
    deepl = pytest.importorskip("deepl", reason="needs deepl")
    (tmp_path / "keys").write_text("right\n", encoding="utf-8")
    process = outside("--keys", tmp_path / "keys")
    wrong = deepl.Translator("wrong", server_url=process.url)
    with pytest.raises(deepl.AuthorizationException):
        wrong.translate_text("the dog", target_lang="DE")
    right = deepl.Translator("right", server_url=process.url)
    assert right.translate_text("the dog", target_lang="DE").text
    wrong.close()
    right.close()


def running_sentences(process: Process) -> float:
    lines = httpx.get(f"{process.url}/metrics", timeout=30).text.splitlines()
    wanted = [line for line in lines if line.startswith("dragoman_running_sentences{")]
    return sum(float(line.split()[-1]) for line in wanted)


@pytest.mark.skipif(kernel_library.load_kernel() is None, reason="the kernel is not compiled")
def test_who_leaves_frees_the_places_at_once(running: Process) -> None:
    body = json.dumps({**LONG, "source": "en", "target": "de"}).encode()
    head = f"POST /v1/translate HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        connection.sendall(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        wait_for(lambda: running_sentences(running) > 4)
    wait_for(lambda: running_sentences(running) == 0, 3)
    metrics = httpx.get(f"{running.url}/metrics", timeout=30).text
    assert "dragoman_accepted_sentences 0.0" in metrics


@pytest.mark.slow
@pytest.mark.skipif(kernel_library.load_kernel() is None, reason="the kernel is not compiled")
def test_sigterm_loses_nothing_that_was_accepted(outside: Callable[..., Process]) -> None:
    process = outside("--linger", 0.1)
    with ThreadPoolExecutor(8) as pool, httpx.Client(base_url=process.url, timeout=30) as watch:
        body = {"text": SENTENCES[:2], "beam": 16, "max_extra": 300}
        accepted = [pool.submit(httpx.post, f"{process.url}/v1/translate", json=body, timeout=30)
                    for _ in range(8)]  # fmt: skip
        wait_for(lambda: "dragoman_accepted_sentences 16.0" in watch.get("/metrics").text)
        process.popen.send_signal(signal.SIGTERM)
        wait_for(lambda: not listens(process.port))
        assert not any(one.done() for one in accepted)
        assert [one.result().status_code for one in accepted] == [200] * 8
    began = time.monotonic()
    lines = process.end()
    assert time.monotonic() - began < 10
    assert process.popen.returncode in (0, -signal.SIGTERM)
    assert sum(one.get("status") == 200 and one["route"] == "/v1/translate" for one in lines) == 8


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_answers_do_not_wait_for_acknowledgements(running: Process) -> None:
    """The head and the body of an answer are sent apart, on a connection that stays."""
    times = []
    with httpx.Client(base_url=running.url, timeout=30) as client:
        for _ in range(9):
            began = time.monotonic()
            assert client.post("/translate", json={"q": "a"}).status_code == 400
            times.append(time.monotonic() - began)
    assert median(times) < 0.03


def test_it_listens_here_alone_unless_told(running: Process) -> None:
    listening = next(one for one in running.lines if one["event"] == "listening")
    assert listening["host"] == "127.0.0.1"
    assert listening["url"] == running.url

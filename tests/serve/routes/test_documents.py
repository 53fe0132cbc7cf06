"""Files are translated in their own formats, and fetched afterwards."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from ..service_fixtures import SENTENCES, Service
from .test_libretranslate import expected


def upload(service: Service, name: str, content: bytes, source: str = "en") -> Any:
    return service.client.post(
        "/translate_file",
        data={"source": source, "target": "de"},
        files={"file": (name, content, "application/octet-stream")},
    )


def fetched(service: Service, name: str, content: bytes) -> bytes:
    found = upload(service, name, content)
    assert found.status_code == 200, found.text
    url = found.json()["translatedFileUrl"]
    answer = service.client.get(url)
    assert answer.headers["content-disposition"].startswith("attachment")
    content_found: bytes = answer.content
    return content_found


def test_a_text_file_is_translated_line_by_line(service: Service) -> None:
    content = f"{SENTENCES[0]}\r\n\r\n{SENTENCES[1]}\n".encode()
    wanted = f"{expected(service, SENTENCES[0])}\r\n\r\n{expected(service, SENTENCES[1])}\n"
    assert fetched(service, "a.txt", content).decode() == wanted


def test_subtitles_keep_their_numbers_and_times(service: Service) -> None:
    head = "1\n00:00:01,000 --> 00:00:02,500\n"
    found = fetched(service, "a.SRT", f"{head}{SENTENCES[0]}\n\n".encode()).decode()
    assert found == f"{head}{expected(service, SENTENCES[0])}\n\n"


def test_a_table_keeps_its_columns(service: Service) -> None:
    found = fetched(service, "a.tsv", f"7\t{SENTENCES[0]}\n8\t\n".encode()).decode()
    assert found == f"7\t{expected(service, SENTENCES[0])}\n8\t\n"


def test_a_web_page_stays_one(service: Service) -> None:
    found = fetched(service, "a.html", f"<h1>{SENTENCES[0]}</h1>".encode()).decode()
    assert found == f"<h1>{expected(service, SENTENCES[0])}</h1>"


def test_a_document_is_translated_by_paragraphs(service: Service) -> None:
    docx = pytest.importorskip("docx", reason="reading docx needs python-docx")
    document = docx.Document()
    paragraph = document.add_paragraph(SENTENCES[0][:5])
    paragraph.add_run(SENTENCES[0][5:]).bold = True
    document.add_table(1, 1).cell(0, 0).text = SENTENCES[1]
    out = io.BytesIO()
    document.save(out)
    found = docx.Document(io.BytesIO(fetched(service, "a.docx", out.getvalue())))
    assert found.paragraphs[0].text == expected(service, SENTENCES[0])
    assert found.tables[0].cell(0, 0).text == expected(service, SENTENCES[1])


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("a.exe", b"MZ", 400),
        ("noend", b"the dog", 400),
        ("a.txt", b"\xff\xfe\x00", 400),
        ("a.docx", b"PK", 400),
        ("../../etc/passwd.txt", b"the dog", 200),
        ("a.txt", b"", 200),
    ],
)
def test_files_that_cannot_be_read_are_refused(
    service: Service, name: str, content: bytes, status: int
) -> None:
    if name.endswith("docx"):
        pytest.importorskip("docx", reason="reading docx needs python-docx")
    assert upload(service, name, content).status_code == status


def test_a_packed_file_that_swells_is_refused(served: Callable[..., Service]) -> None:
    pytest.importorskip("docx", reason="reading docx needs python-docx")
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b" " * 2_000_000)
    found = upload(served(max_body=100_000), "a.docx", out.getvalue())
    assert found.status_code == 413


def test_only_what_was_translated_can_be_fetched(service: Service) -> None:
    for name in ("x.txt", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd"):
        assert service.client.get(f"/download_file/{name}").status_code == 404


KOREAN = "안녕하세요. 저는 학생입니다. 오늘은 날씨가 아주 좋습니다."


@pytest.mark.parametrize("source", ["en", "auto"])
def test_a_file_in_another_language_is_told_of(source: str, served: Callable[..., Service]) -> None:
    service = served(names=("ende",))
    korean = upload(service, "a.txt", KOREAN.encode(), source=source).json()
    assert korean["issues"] == [{"kind": "language", "detail": "ko", "repaired": False}]
    english = upload(service, "a.txt", b"The weather is very nice today.", source=source).json()
    assert "issues" not in english
    if source == "auto":
        assert korean["detectedLanguage"] == {"confidence": 0.0, "language": "en"}
        assert english["detectedLanguage"] == {"confidence": 100.0, "language": "en"}
    else:
        assert set(english) == {"translatedFileUrl"}
    wanted = 'dragoman_issues_total{kind="language",model="ende",repaired="no"} 1.0'
    assert wanted in service.client.get("/metrics").text

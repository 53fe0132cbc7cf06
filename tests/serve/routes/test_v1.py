"""Everything the models can do, over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.inference import Glossary, load
from dragoman.inference.cpu import kernel_library
from dragoman.inference.loading import load_for_inference
from dragoman.serve import model_registry
from dragoman.serve.limits import MAX_BEAM

from ..service_fixtures import SENTENCES, Service

PAIR = {"source": "en", "target": "de"}


def ask(service: Service, **body: Any) -> Any:
    found = service.post("/v1/translate", PAIR | body)
    assert found.status_code == 200, found.text
    return found.json()["translations"]


def test_n_best_scores_and_tokens_are_the_translators(service: Service) -> None:
    translator = service.inner.registry.models[0].translator
    want = translator.translate(SENTENCES[0], n_best=3, beam=5, raw=True)
    (found,) = ask(service, text=SENTENCES[0], n_best=3, beam=5, raw=True)
    assert found["text"] == want.text
    assert found["score"] == pytest.approx(want.score, abs=1e-5)
    assert found["log_prob"] == pytest.approx(want.log_prob, abs=1e-5)
    assert found["tokens"] == list(want.tokens)
    assert [one["text"] for one in found["alternatives"]] == [o.text for o in want.alternatives]


@pytest.mark.parametrize("rule", [{"mbr": "chrf"}, {"mbr": "bleu"}, {"rerank": True}], ids=str)
def test_the_best_of_several_candidates_is_the_translators(
    rule: dict[str, Any], service: Service
) -> None:
    registry = service.inner.registry
    there, back = (registry.find_pair(*pair).translator for pair in (("en", "de"), ("de", "en")))
    options = rule if "mbr" in rule else {"rerank": back}
    want = there.translate(SENTENCES[:3], candidates=6, n_best=2, raw=True, **options)
    found = ask(service, text=SENTENCES[:3], candidates=6, n_best=2, raw=True, **rule)
    assert [one["text"] for one in found] == [one.text for one in want]
    assert [one["alternatives"][0]["text"] for one in found] == [
        one.alternatives[0].text for one in want
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"mbr": "comet"}, "mbr"),
        ({"mbr": "chrf", "candidates": 1}, "candidates"),
        ({"mbr": "chrf", "candidates": MAX_BEAM + 1}, "candidates"),
        ({"candidates": 4}, "candidates are what mbr and rerank choose from"),
        ({"mbr": "chrf", "rerank": True}, "two ways to choose; leave out one"),
        ({"mbr": "chrf", "beam": 1}, "1 candidate leaves nothing to choose"),
    ],
    ids=str,
)
def test_choices_that_make_no_sense_are_refused(
    body: dict[str, Any], message: str, service: Service
) -> None:
    found = service.post("/v1/translate", PAIR | {"text": "the dog"} | body)
    assert found.status_code == 400
    assert message in found.text


def test_reranking_needs_a_served_model_of_the_other_direction(
    served: Callable[..., Service],
) -> None:
    found = served(names=("ende",)).post("/v1/translate", {"text": "the dog", "rerank": True})
    assert found.status_code == 400
    assert "rerank needs a model from de to en, and none is served; leave it out" in found.text


@pytest.mark.skipif(kernel_library.load_kernel() is None, reason="the kernel is not compiled")
def test_a_plain_search_joins_the_batch_and_others_do_not(served: Callable[..., Service]) -> None:
    service = served()

    def steps() -> int:
        text = service.client.get("/metrics").text
        found = re.search(r'batch_fill_count{model="ende"} (\d+)', text)
        return int(found[1]) if found else 0

    ask(service, text=SENTENCES[0], n_best=2, max_extra=0)
    before = steps()
    assert before > 0
    ask(service, text=SENTENCES[0], must_not=["dog"])
    assert steps() == before


def test_sentences_come_with_their_translations_if_asked_for(service: Service) -> None:
    text = "- the red dog\n- the old house"
    (plain,) = ask(service, text=text)
    assert "pairs" not in plain
    (found,) = ask(service, text=text, pairs=True)
    assert [source for source, _ in found["pairs"]] == ["the red dog", "the old house"]
    assert found["text"] == "\n".join(f"- {translated}" for _, translated in found["pairs"])
    (found,) = ask(service, text="the red dog", pairs=True, raw=True)
    assert found["pairs"] == [["the red dog", found["text"]]]


def test_constraints_glossary_and_alignment_are_the_translators(service: Service) -> None:
    translator = service.inner.registry.models[0].translator
    text = "the dog sees the old house"
    for body, options in (
        ({"must": ["esuoh"]}, {"must": ["esuoh"]}),
        ({"must_not": ["dog"]}, {"must_not": ["dog"]}),
        ({"prefix": "esuoh"}, {"prefix": "esuoh"}),
        ({"align": True}, {"align": True}),
        ({"glossary": {"house": "esuoh"}}, {"glossary": Glossary([("house", "esuoh", 1)])}),
    ):
        want = translator.translate(text, **options)  # type: ignore[arg-type]
        (found,) = ask(service, text=text, **body)
        assert found["text"] == want.text, body
        if "align" in body:
            assert found["alignment"] == [list(pair) for pair in want.alignment]
    assert "esuoh" in ask(service, text=text, must=["esuoh"])[0]["text"]


@pytest.mark.parametrize("source", ["en", "auto", None])
def test_another_language_is_an_issue_of_its_text(
    source: str | None, served: Callable[..., Service]
) -> None:
    service = served(names=("ende",))
    texts = [SENTENCES[0], "안녕하세요. 저는 학생입니다. 오늘은 날씨가 좋습니다."]
    plain, korean = ask(service, text=texts, source=source)
    assert "language" not in [one["kind"] for one in plain.get("issues", [])]
    assert {"kind": "language", "detail": "ko", "repaired": False} in korean["issues"]
    wanted = 'dragoman_issues_total{kind="language",model="ende",repaired="no"} 1.0'
    assert wanted in service.client.get("/metrics").text
    detected = service.post("/translate", {"q": texts, "source": "auto", "target": "de"}).json()
    assert [one["confidence"] for one in detected["detectedLanguage"]] == [100.0, 0.0]


def test_a_parser_gives_trees(service: Service) -> None:
    words = [["the", "dog", "sees"], ["a", "cat"]]
    parser = service.inner.registry.models[2].parser
    found = service.post("/v1/parse", {"words": words, "n_best": 2})
    assert found.status_code == 200, found.text
    want = [one and one.to_dict() for one in parser.parse(words, n_best=2)]
    assert [one["tree"] for one in found.json()["parses"]] == [one["tree"] for one in want if one]
    running = service.post("/v1/parse", {"text": "the dog sees\na cat"}).json()["parses"]
    assert [one["words"] for one in running] == words
    several = service.post("/v1/parse", {"text": "The dog sees. A cat!"}).json()["parses"]
    assert [one["words"] for one in several] == [["The", "dog", "sees", "."], ["A", "cat", "!"]]
    assert service.post("/v1/parse", {"text": ""}).json() == {"parses": [None]}
    assert service.post("/v1/parse", {"words": [["a b"]]}).status_code == 400


def test_scores_and_alternatives_are_the_translators(service: Service) -> None:
    translator = service.inner.registry.models[0].translator
    (want,) = translator.score(["the dog"], ["god eht"])
    body = {**PAIR, "text": ["the dog"], "translation": ["god eht"], "tokens": True}
    assert service.post("/v1/score", body).json() == {"scores": [want.to_dict(tokens=True)]}
    assert service.post("/v1/score", body | {"text": []}).status_code == 400
    found = service.post("/v1/alternatives", {**PAIR, "text": "the dog", "count": 3})
    ours = translator.alternatives("the dog", count=3)
    assert found.json() == {"alternatives": [one.to_dict() for one in ours]}


def test_models_are_listed_and_chosen_by_name(service: Service) -> None:
    listed = service.client.get("/v1/models").json()
    assert [(one["name"], one["task"]) for one in listed] == [
        ("ende", "translation"),
        ("deen", "translation"),
        ("trees", "parsing"),
    ]
    found = service.post("/v1/translate", {"text": SENTENCES[0], "model": "deen"}).json()
    want = service.inner.registry.models[1].translator.translate(SENTENCES[0]).text
    assert found["translations"][0]["text"] == want
    for body, status in (
        ({"model": "nobody"}, 404),
        ({"model": "trees"}, 400),
        ({}, 400),
        ({"source": "en"}, 400),
    ):
        assert service.post("/v1/translate", {"text": "a", **body}).status_code == status


def test_a_field_that_does_not_exist_is_refused(service: Service) -> None:
    found = service.post("/v1/translate", {**PAIR, "text": "the dog", "beams": 4})
    assert found.status_code == 400
    assert "beams" in found.json()["error"]


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [(head[7:], json.loads(data[6:])) for head, data in blocks]


@pytest.mark.skipif(kernel_library.load_kernel() is None, reason="the kernel is not compiled")
@pytest.mark.parametrize("beam", [1, 4])
def test_tokens_come_in_order_then_the_whole(service: Service, beam: int) -> None:
    text = f"{SENTENCES[0]}\n{SENTENCES[1]}"
    options = {"beam": beam, "raw": True}
    found = service.post("/v1/translate/stream", {**PAIR, "text": text, **options})
    assert found.headers["content-type"].startswith("text/event-stream")
    *tokens, (last, whole) = events(found.text)
    assert last == "translation"
    want = ask(service, text=SENTENCES[:2], **options)
    assert whole["text"] == "\n".join(one["text"] for one in want)
    assert [one["token"] for _, one in tokens] == [t for one in want for t in one["tokens"]]
    assert {kind for kind, _ in tokens} == {"token"}
    ends = {one["line"]: one["text"] for _, one in tokens}
    assert list(ends.values()) == [one["text"] for one in want]


@pytest.mark.skipif(kernel_library.load_kernel() is None, reason="the kernel is not compiled")
def test_a_stream_ends_with_what_is_translated_otherwise(service: Service) -> None:
    text = f"  {SENTENCES[0]}\n\n{SENTENCES[1]} \n"
    found = service.post("/v1/translate/stream", {**PAIR, "text": text})
    last, whole = events(found.text)[-1]
    assert last == "translation"
    (want,) = ask(service, text=text)
    assert whole["text"] == want["text"]


def test_a_stream_is_refused_before_it_begins(served: Callable[..., Service]) -> None:
    service = served(queue=1)
    found = service.post("/v1/translate/stream", {"text": "the dog\nthe cat"})
    assert found.status_code == 413
    service.inner.admission.draining = True
    found = service.post("/v1/translate/stream", {"text": "the dog"})
    assert found.status_code == 503
    assert "error" in found.json()


def test_a_stream_that_fails_says_so(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(deadline=0.0001)
    found = service.post("/v1/translate/stream", {"text": SENTENCES[0]})
    kind, facts = events(found.text)[-1]
    assert (kind, facts["status"]) == ("error", 504)
    service = served(precision="float32")
    monkeypatch.setattr(service.inner.registry.models[0].translator, "translate", lambda _: 1 / 0)
    found = service.post("/v1/translate/stream", {"text": SENTENCES[0]})
    kind, facts = events(found.text)[-1]
    assert (kind, facts["status"]) == ("error", 500)


def test_models_that_pytorch_computes_are_served_too(served: Callable[..., Service]) -> None:
    service = served(precision="float32")
    assert service.client.get("/v1/models").json()[0]["batched"] is False
    translator = service.inner.registry.models[0].translator
    found = ask(service, text=SENTENCES[:20])
    assert [one["text"] for one in found] == [o.text for o in translator.translate(SENTENCES[:20])]


@pytest.mark.skipif(kernel_library.load_kernel() is None, reason="the kernel is not compiled")
def test_an_engine_of_another_kind_is_asked_as_it_is(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a GPU's: by one thread, through the translator."""
    asked: list[tuple[str, int]] = []

    class Other:
        def __init__(self, engine: Any) -> None:
            self.supports, self.window, self._engine = engine.supports, engine.window, engine

        def search(self, sentences: Any, options: Any, to_parse: Any = None) -> Any:
            asked.append((threading.current_thread().name, len(sentences)))
            return self._engine.search(sentences, options, to_parse)

    def open_other(*arguments: Any) -> Any:
        loaded, engine = load_for_inference(*arguments)
        return loaded, Other(engine)

    monkeypatch.setattr(model_registry, "load_for_inference", open_other)
    service = served()
    assert service.client.get("/v1/models").json()[0]["batched"] is False
    found = ask(service, text=SENTENCES[:20], raw=True)
    want = load(service.inner.registry.models[0].translator.path, device="cpu")
    wanted = want.translate(SENTENCES[:20], raw=True)
    assert [one["text"] for one in found] == [one.text for one in wanted]
    assert asked == [("serial_queue_0", 8), ("serial_queue_0", 8), ("serial_queue_0", 4)]

"""The page in a browser, driven as a person would; what its console complains of is an error."""

from __future__ import annotations

import re
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import uvicorn

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.serve.app import wrap_in_middleware
from dragoman.training.run import train

from .service_fixtures import Service, start, wait_for

playwright = pytest.importorskip(
    "playwright.sync_api", reason="browser tests need playwright: pip install playwright"
)
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
     if (path := shutil.which(name))),
    None,
)  # fmt: skip
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="browser tests need Chromium; none here"),
    pytest.mark.thorough,
]
TEXT = "the red dog sees the big tree"


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory, tiny: Config, prepared: Prepared) -> Path:
    """A run of a model that has learned enough to say several words."""
    run = tmp_path_factory.mktemp("speaking") / "run"
    config = tiny.overridden(
        ["training.steps=120", "training.validate_every=120", "training.checkpoint_every=120"]
    )
    train(config, prepared.path, run=run, quiet=True)
    return run


@pytest.fixture(scope="module")
def corrections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the service keeps corrections in."""
    return tmp_path_factory.mktemp("kept") / "corrections.jsonl"


@pytest.fixture(scope="module")
def service(models: Path, speaking: Path, corrections: Path) -> Iterator[Service]:
    """A translator that says words, another, and a parser."""
    served = [speaking, models / "deen", models / "trees"]
    found = start(served, pairs={speaking.name: ("en", "de")}, corrections=corrections)
    yield found
    found.inner.close()


@pytest.fixture(scope="module")
def url(service: Service) -> Iterator[str]:
    config = uvicorn.Config(
        wrap_in_middleware(service.app), port=0, log_config=None, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started, 20)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM)
        yield found
        found.close()


class Visit:
    """A page that is open, and what its console has said."""

    def __init__(self, context: Any, url: str) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "request", lambda request: request.url.startswith(url) or self._went(request.url)
        )

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _went(self, address: str) -> None:
        if not address.startswith("data:"):
            self.elsewhere.append(address)

    def write(self, text: str = TEXT) -> None:
        """Type a text and wait for its translation."""
        self.page.fill("#source", text)
        self.page.wait_for_selector(".word")

    def view(self, name: str) -> None:
        self.page.click(f"#tab-{name}")


@pytest.fixture
def open_page(browser: Any, url: str) -> Iterator[Callable[..., Visit]]:
    """Open the page; the console must stay silent, and nothing be loaded from elsewhere."""
    contexts, visits = [], []

    def run(path: str = "/", **options: Any) -> Visit:
        contexts.append(browser.new_context(**({"locale": "en-US"} | options)))
        visits.append(Visit(contexts[-1], url))
        visits[-1].page.goto(url + path)
        visits[-1].page.wait_for_selector("[role=tab]")
        return visits[-1]

    yield run
    for context in contexts:
        context.close()
    for visit in visits:
        assert visit.complaints == []
        assert visit.elsewhere == []


@pytest.fixture
def visit(open_page: Callable[..., Visit]) -> Visit:
    return open_page()


# ---------------------------------------------------------------------------------------- translate


def test_what_is_typed_is_translated(visit: Visit, service: Service) -> None:
    visit.write()
    body = {"text": TEXT, "model": "run", "n_best": 4, "beam": 4}
    (best,) = service.post("/v1/translate", body).json()["translations"]
    assert visit.page.inner_text("#target").split() == best["text"].split()
    others = visit.page.locator(".other span:first-child").all_inner_texts()
    assert others == [one["text"] for one in best["alternatives"]]
    visit.page.click(".other >> nth=1")
    assert visit.page.inner_text("#target").split() == others[1].split()
    visit.page.fill("#source", "")
    visit.page.wait_for_selector(".word", state="detached")


def test_words_light_up_with_those_they_come_from(visit: Visit) -> None:
    with visit.page.expect_response(
        lambda answer: '"align":true' in (answer.request.post_data or "")
    ) as coming:
        visit.write()
    pairs = coming.value.json()["translations"][0]["alignment"]
    visit.page.wait_for_timeout(50)
    visit.page.hover(".word >> nth=0")
    wanted = [TEXT.split()[s] for s, t in pairs if t == 0]
    assert visit.page.locator(".marks .lit").all_inner_texts() == wanted
    # And from a word of the source, to those of the translation.
    box = visit.page.locator(".marks span >> nth=0").bounding_box()
    visit.page.mouse.move(box["x"] + 4, box["y"] + 4)
    lit = visit.page.locator("#target .lit")
    assert lit.count() == len({t for s, t in pairs if s == 0})


def test_a_word_can_be_changed_and_the_sentence_is_completed(visit: Visit) -> None:
    visit.write()
    words = visit.page.inner_text("#target").split()
    visit.page.click(".word >> nth=1")
    visit.page.wait_for_selector("[role=menuitem]")
    items = visit.page.locator("[role=menuitem] .what").all_inner_texts()
    chosen = next(i for i, word in enumerate(items) if word not in (words[1], "(end)"))
    visit.page.click(f"[role=menuitem] >> nth={chosen}")
    wait_for_page(visit, lambda: visit.page.inner_text(".word >> nth=1") == items[chosen])
    assert visit.page.inner_text("#target").split()[:2] == [words[0], items[chosen]]
    assert visit.page.locator(".choices").is_hidden()


def test_the_menu_of_a_word_obeys_the_keyboard(visit: Visit) -> None:
    visit.write()
    visit.page.focus(".word >> nth=0")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector("[role=menuitem]")
    focused = "document.activeElement === document.querySelectorAll('[role=menuitem]')[{}]"
    wait_for_page(visit, lambda: visit.page.evaluate(focused.format(0)))
    visit.page.keyboard.press("ArrowDown")
    assert visit.page.evaluate(focused.format(1))
    visit.page.keyboard.press("Escape")
    assert visit.page.locator(".choices").is_hidden()
    assert visit.page.evaluate("document.activeElement.dataset.word") == "0"


def test_an_older_answer_never_covers_a_newer_one(visit: Visit) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        if '"the red dog"' in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    visit.page.route("**/v1/translate", hold)
    visit.page.fill("#source", "the red dog")
    wait_for_page(visit, lambda: bool(held))
    visit.page.fill("#source", "the old house")
    visit.page.wait_for_selector(".word")
    shown = visit.page.inner_text("#target")
    answer = '{"translations": [{"text": "an older one", "score": -1.0, "tokens": []}]}'
    for route in held:
        with suppress(playwright.Error):  # it was called off
            route.fulfill(body=answer, content_type="application/json")
    visit.page.wait_for_timeout(300)
    assert visit.page.inner_text("#target") == shown


def test_a_glossary_is_kept_to(visit: Visit) -> None:
    visit.write()
    visit.page.click("summary:has-text('Glossary')")
    visit.page.fill("#glossary", "dog = god house\n")
    wait_for_page(visit, lambda: "god house" in visit.page.inner_text("#target"))


def test_an_error_is_one_line_on_the_page(visit: Visit) -> None:
    visit.page.route(
        "**/v1/translate",
        lambda route: route.fulfill(status=503, json={"error": "too many requests at once"}),
    )
    visit.page.fill("#source", TEXT)
    visit.page.wait_for_selector("[role=alert]:has-text('too many requests at once')")
    visit.page.unroute("**/v1/translate")
    visit.write("the old dog")
    assert visit.page.locator("[role=alert]").is_hidden()
    assert visit.complaints  # Chromium tells of every 503
    assert all("503" in text for text in visit.complaints)
    visit.complaints.clear()


def test_lines_stay_lines(visit: Visit) -> None:
    visit.write("the red dog\n\nthe old house")
    assert visit.page.locator("#target p").count() == 3
    assert visit.page.inner_text("#target p >> nth=1").strip() == ""
    assert visit.page.locator("#target p >> nth=2").locator(".word").count() > 0


MAIL = """\
Dear Tom,

> the red dog sees the big tree and the old house and the small cat eats the
> blue tree and the big dog sees the red house of the old cat, which is not so
> far away. It was a big dog.

  - the red dog
  - the old house
"""


def test_a_pasted_mail_is_translated_as_the_command_does(visit: Visit, service: Service) -> None:
    with visit.page.expect_request("**/v1/translate") as asked:
        visit.write(MAIL)
    assert asked.value.post_data_json["text"] == MAIL
    body = {"text": MAIL, "model": "run", "n_best": 4, "beam": 4}
    (best,) = service.post("/v1/translate", body).json()["translations"]
    lines = visit.page.locator("#target p").all_text_contents()
    assert lines == best["text"].split("\n")
    assert lines[2].startswith("> ")
    assert [line[:4] for line in lines[-3:]] == ["  - ", "  - ", ""]


def test_a_word_of_any_sentence_can_be_changed(visit: Visit) -> None:
    visit.write("the red dog sees the cat.\n\n- the big tree\n- the old house")
    before = visit.page.locator("#target p").all_text_contents()
    chosen = visit.page.locator("#target p >> nth=3").locator(".word >> nth=1")
    with visit.page.expect_request("**/v1/alternatives") as asked:
        chosen.click()
    assert asked.value.post_data_json["text"] == "the old house"
    assert asked.value.post_data_json["prefix"] == ""
    visit.page.wait_for_selector("[role=menuitem]")
    items = visit.page.locator("[role=menuitem] .what").all_inner_texts()
    other = next(i for i, word in enumerate(items) if not before[3].startswith(f"- {word} "))
    visit.page.click(f"[role=menuitem] >> nth={other}")
    wait_for_page(visit, lambda: chosen.inner_text() == items[other])
    after = visit.page.locator("#target p").all_text_contents()
    assert after[:3] == before[:3]
    assert after[3].startswith(f"- {items[other]}")


def test_the_model_can_be_chosen(visit: Visit, service: Service) -> None:
    visit.write()
    before = visit.page.inner_text("#target")
    visit.page.select_option("select", "deen")
    wait_for_page(visit, lambda: visit.page.inner_text("#target") != before)


def test_a_key_is_asked_for_where_one_is_needed(open_page: Callable[..., Visit]) -> None:
    visit = open_page()
    keys: list[str | None] = []

    def answer(route: Any) -> None:
        keys.append(route.request.headers.get("authorization"))
        if keys[-1] == "Bearer secret":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": "an API key is needed"})

    visit.page.route("**/v1/translate", answer)
    visit.page.fill("#source", TEXT)
    visit.page.fill("[role=alert] input", "secret")
    visit.page.click("[role=alert] button")
    visit.page.wait_for_selector(".word")
    assert keys[0] is None
    visit.complaints[:] = [text for text in visit.complaints if "401" not in text]


# -------------------------------------------------------------------------------------- corrections


def test_a_translation_can_be_corrected_and_is_used_at_once(
    visit: Visit, corrections: Path
) -> None:
    visit.write("the old cat sees the dog. the big house.")
    words = visit.page.inner_text("#target")
    visit.page.click("text=Correct this translation")
    consent = visit.page.inner_text(".consent")
    assert "kept on this server in corrections.jsonl" in consent
    assert "later translations" in consent
    assert "training" in consent
    assert visit.page.locator("textarea.corrected").count() == 2
    visit.page.fill("textarea.corrected >> nth=1", "<b>das</b> große Haus.")
    assert corrections.read_bytes() == b""
    visit.page.click("text=Keep my correction")
    wait_for_page(visit, lambda: "<b>das</b> große Haus." in visit.page.inner_text("#target"))
    assert visit.page.locator("#target b").count() == 0
    assert "is kept" in visit.page.inner_text(".correction")
    assert visit.page.inner_text("#target").split()[:2] == words.split()[:2]
    (line,) = corrections.read_text(encoding="utf-8").splitlines()
    assert '"source": "the big house.", "target": "<b>das</b> große Haus."' in line


def test_nothing_is_kept_that_was_not_changed(open_page: Callable[..., Visit]) -> None:
    visit = open_page(locale="ko-KR")
    visit.write()
    visit.page.click("text=번역 고치기")
    assert "corrections.jsonl" in visit.page.inner_text(".consent")
    assert "학습" in visit.page.inner_text(".consent")
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.page.click("text=고친 번역 남기기")
    visit.page.wait_for_selector("text=바뀐 것이 없어")
    assert not any("corrections" in url for url in asked)


def test_what_is_refused_is_one_line_and_can_be_mended(visit: Visit) -> None:
    visit.write()
    visit.page.click("text=Correct this translation")
    visit.page.fill("textarea.corrected", "…")
    visit.page.click("text=Keep my correction")
    visit.page.wait_for_selector("[role=alert]:has-text('the correction has no words')")
    assert visit.page.input_value("textarea.corrected") == "…"
    visit.complaints[:] = [text for text in visit.complaints if "400" not in text]


def test_a_server_that_keeps_none_offers_no_correction(open_page: Callable[..., Visit]) -> None:
    visit = open_page()
    visit.page.route("**/v1/corrections", lambda route: route.fulfill(json={"file": None}))
    visit.page.reload()
    visit.write()
    assert visit.page.locator(".correction").is_hidden()


# ---------------------------------------------------------------------------------------- attention


@pytest.fixture
def attention(visit: Visit) -> Visit:
    visit.write()
    visit.view("attention")
    visit.page.wait_for_selector(".head")
    return visit


def test_every_head_can_be_looked_at(attention: Visit) -> None:
    page = attention.page
    for part, layers in (("Encoder", 2), ("Decoder", 1), ("Cross", 1)):
        page.click(f".choice button:has-text('{part}')")
        assert page.locator(".head").count() == layers * 2
        page.click(".head >> nth=1")
        assert page.get_attribute(".head >> nth=1", "aria-pressed") == "true"
        assert page.inner_text(".picture .chip") == "1.2"
        assert page.locator(".strokes line").count() > 0
        assert page.locator(".picture .grid canvas").count() == 1


def test_a_word_shows_where_it_looks(attention: Visit, service: Service) -> None:
    page = attention.page
    page.click(".head >> nth=0")
    page.hover(".side:not(.right) .piece >> nth=0")
    told = page.inner_text(".picture .told >> nth=0")
    body = {"text": TEXT, "model": "run", "translation": service_translation(service)}
    cross = service.post("/v1/attention", body).json()["parts"]["cross"]
    sent = cross["layers"][0]
    weights = np.frombuffer(b64decode(sent["u16"]), "<u2").reshape(sent["shape"]) / 65535
    best = int(weights[0, 0].argmax())
    wanted = f"“{cross['columns'][best]}” {round(100 * weights[0, 0, best])} %"
    assert told.startswith(f"“{cross['rows'][0]}” looks at {wanted}")
    drawn = page.locator(".strokes line").count()
    assert drawn == int((weights[0, 0] >= 0.02).sum())
    # A click holds the word when the pointer leaves it.
    page.click(".side:not(.right) .piece >> nth=0")
    page.mouse.move(0, 0)
    assert page.locator(".strokes line").count() == drawn


def test_several_heads_are_drawn_together(attention: Visit) -> None:
    page = attention.page
    page.click(".layer >> nth=0")
    assert page.locator(".picture .chip").count() == 2
    page.click("button:has-text('Several heads')")
    assert page.locator(".picture .chip").count() == 1


def test_heads_are_switched_off_and_the_sentence_is_translated_again(attention: Visit) -> None:
    page = attention.page
    before = page.locator(".down span").all_inner_texts()
    page.click(".layer >> nth=0")
    page.click(".switch")
    assert page.locator(".head.off").count() == 2
    page.click(".again")
    page.wait_for_selector(".compared")
    texts = page.locator(".compared p").all_inner_texts()
    assert page.locator("del, ins").count() > 0
    assert texts[0] != texts[1]
    shown = "".join(page.locator(".down span").all_inner_texts()[:-1]).replace("·", "")
    assert shown == "".join(texts[1].split())
    page.click("button:has-text('Switch all on')")
    page.wait_for_selector(".compared", state="detached")
    assert page.locator(".head.off").count() == 0
    assert page.locator(".down span").all_inner_texts() == before


def test_the_search_is_a_tree_step_by_step(attention: Visit, service: Service) -> None:
    page = attention.page
    page.click("summary:has-text('Beam search')")
    page.wait_for_selector(".tree")
    found = service.post("/v1/beam", {"text": TEXT, "model": "run", "beam": 4}).json()
    assert page.locator(".results li").all_inner_texts() == found["results"]
    last = max(one["step"] for one in found["branches"])
    assert page.inner_text(".search .count") == f"Step {last} of {last}"
    assert page.locator(".branch.winner .rank").text_content() == "#1"
    page.click(".search button:has-text('←')")
    assert page.inner_text(".search .count") == f"Step {last - 1} of {last}"
    page.locator(".search input[type=range]").fill("1")
    first = [one for one in found["branches"] if one["step"] == 1]
    assert page.locator(".search tbody tr").count() == len(first)
    assert page.locator(".branch").count() == len(first) + 1
    page.select_option(".search select", "2")
    wait_for_page(attention, lambda: page.locator(".results li").count() == 2)


# ------------------------------------------------------------------------------------- how it works


def test_every_step_can_be_walked_through(visit: Visit) -> None:
    visit.write()
    visit.view("how")
    page = visit.page
    page.wait_for_selector(".step h2")
    titles = [page.inner_text(".step h2")]
    while page.locator(".moves .primary").is_enabled():
        page.click(".moves .primary")
        titles.append(page.inner_text(".step h2"))
        assert page.locator(".step .heat, .step table, .step .chances").count() > 0
    assert len(titles) == len(set(titles)) == page.locator(".steps button").count() == 15
    page.click(".moves .quiet")
    assert page.inner_text(".step h2") == titles[-2]
    page.keyboard.press("Enter")  # the button still has the focus
    assert page.inner_text(".step h2") == titles[-3]


def test_the_numbers_are_the_models(visit: Visit, service: Service) -> None:
    visit.write()
    visit.view("how")
    page = visit.page
    page.wait_for_selector(".step h2")
    with page.expect_response("**/v1/steps"):
        page.get_by_label("Attention of").select_option("decoder")
    page.get_by_label("Head", exact=True).select_option(index=1)
    body = {"text": TEXT, "model": "run", "translation": service_translation(service)}
    found = service.post("/v1/steps", body | {"part": "decoder", "layer": 0}).json()

    go_to(page, "Queries, keys and values")
    shown = table_of(page, ".sheet table >> nth=0")
    packed = found["matrices"]["q"]["first"]
    q = np.frombuffer(b64decode(packed["f32"]), "<f4").reshape(packed["shape"])[1]
    assert np.abs(shown - q[:, :6]).max() <= 0.0051

    go_to(page, "Mask")
    assert page.locator(".step td:has-text('−∞')").count() > 0
    go_to(page, "Softmax")
    packed = found["squares"]["weights"]
    weights = np.frombuffer(b64decode(packed["f32"]), "<f4").reshape(packed["shape"])[1]
    assert np.abs(table_of(page, ".cells") - weights).max() <= 0.0051
    page.click(".cells .piece >> nth=2")
    listed = [float(text) for text in page.locator(".worked td:last-child").all_inner_texts()]
    assert np.abs(np.array(listed) - weights[2]).max() <= 0.00051

    go_to(page, "Softmax over the vocabulary")
    assert page.locator(".chances .what").all_inner_texts() == [one[0] for one in found["next"][2]]


# -------------------------------------------------------------------------------------------- parse


def test_a_sentence_is_drawn_as_a_tree(visit: Visit, service: Service) -> None:
    visit.view("parse")
    page = visit.page
    page.fill("#to-parse", "the red dog\nthe house")
    wait_for_page(visit, lambda: page.locator(".parse-tree").count() == 2)
    (first, _) = service.post("/v1/parse", {"text": "the red dog\nthe house"}).json()["parses"]
    drawn = page.locator(".parse-tree >> nth=0").locator(".word").all_text_contents()
    assert drawn == first["words"]
    labels = re.findall(r"\((\S+) \(", first["tree"])
    assert page.locator(".parse-tree >> nth=0").locator(".label").all_text_contents() == labels


# ---------------------------------------------------------------------------------------- the whole


def test_korean_and_english(open_page: Callable[..., Visit]) -> None:
    visit = open_page(locale="ko-KR")
    assert visit.page.inner_text("#tab-how") == "작동 원리"
    assert visit.page.get_attribute("html", "lang") == "ko"
    visit.page.click("button:has-text('EN')")
    assert visit.page.inner_text("#tab-how") == "How it works"
    visit.page.reload()
    visit.page.wait_for_selector("#tab-how:has-text('How it works')")


def test_light_and_dark(open_page: Callable[..., Visit]) -> None:
    visit = open_page(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = visit.page.evaluate(ground)
    visit.page.click("button:has-text('Light')")
    light = visit.page.evaluate(ground)
    assert dark != light
    visit.page.click("button:has-text('Auto')")
    assert visit.page.evaluate(ground) == dark


def test_tabs_obey_the_arrow_keys(visit: Visit) -> None:
    visit.write()
    visit.page.focus("#tab-translate")
    for name in ("attention", "how", "parse", "translate"):
        visit.page.keyboard.press("ArrowRight")
        assert visit.page.get_attribute(f"#tab-{name}", "aria-selected") == "true"
        assert visit.page.evaluate("document.activeElement.id") == f"tab-{name}"


def test_everything_that_can_be_used_has_a_name_and_fits_a_phone(
    open_page: Callable[..., Visit],
) -> None:
    visit = open_page(viewport={"width": 390, "height": 844})
    visit.write()
    nameless = """[...document.querySelectorAll('button, input, textarea, select, canvas[role]')]
        .filter(one => !one.innerText?.trim() && !one.getAttribute('aria-label')
            && !one.closest('label')?.innerText.trim() && !one.title)
        .map(one => one.outerHTML.slice(0, 80))"""
    for name in ("translate", "attention", "how", "parse"):
        visit.view(name)
        if name == "parse":
            visit.page.fill("#to-parse", "the red dog sees the house")
        visit.page.wait_for_selector(
            {"translate": ".word", "attention": ".head", "how": ".step", "parse": ".parse-tree"}[
                name
            ]
        )
        assert visit.page.evaluate(nameless) == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_saved_page_works_from_a_file(browser: Any, speaking: Path, tmp_path: Path) -> None:
    from dragoman.inference import load

    file = load(speaking, device="cpu").inspect(TEXT).save(tmp_path / "page.html")
    context = browser.new_context(locale="en-US", offline=True)
    visit = Visit(context, file.as_uri())
    page = visit.page
    page.goto(file.as_uri())
    page.wait_for_selector(".head")
    page.hover(".side .piece >> nth=1")
    assert "looks at" in page.inner_text(".told >> nth=0")
    assert page.locator(".switch").count() == 0  # there is no model to ask
    page.click("#tab-how")
    page.wait_for_selector(".step h2")
    for number in range(page.locator(".steps button").count()):
        page.click(f".steps button >> nth={number}")
    page.get_by_label("Attention of").select_option("cross")
    assert page.locator(".chances li").count() == 8
    page.click("#tab-beam")
    assert page.locator(".branch.winner").count() > 1
    page.click("button:has-text('한국어')")
    assert page.inner_text("#tab-beam") == "빔 탐색"
    context.close()
    assert visit.complaints == []
    assert visit.elsewhere == []


# ------------------------------------------------------------------------------------------- shared


def go_to(page: Any, title: str) -> None:
    page.click(f'.steps button[aria-label="{title}"]')
    assert page.inner_text(".step h2") == title


def table_of(page: Any, selector: str) -> Any:
    """The numbers of a table."""
    rows = page.locator(selector).locator("tbody tr").all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    return np.array([[float(cell.replace("−", "-")) for cell in row] for row in cells])


def service_translation(service: Service) -> str:
    body = {"text": TEXT, "model": "run", "n_best": 4, "beam": 4}
    text: str = service.post("/v1/translate", body).json()["translations"][0]["text"]
    return text


def wait_for_page(visit: Visit, condition: Callable[[], bool]) -> None:
    """Until something is so, while the page goes on."""
    for _ in range(300):
        if condition():
            return
        visit.page.wait_for_timeout(20)
    raise AssertionError("it never came to that")


# ---------------------------------------------------------------------------------------- reference


def test_requests_can_be_tried_in_the_reference(browser: Any, url: str) -> None:
    context = browser.new_context(locale="en-US")
    visit = Visit(context, url)
    visit.page.goto(f"{url}/docs")
    form = visit.page.locator('form[data-path="/languages"]')
    form.locator("button").click()
    form.locator(".answer").wait_for()
    wait_for_page(visit, lambda: '"code": "en"' in form.locator(".answer").inner_text())
    assert form.locator("output").inner_text().startswith("200, ")
    form = visit.page.locator('form[data-path="/translate"]')
    form.locator("textarea").fill("{")
    form.locator("button").click()
    wait_for_page(visit, lambda: "not JSON" in form.locator("output").inner_text())
    context.close()
    assert (visit.complaints, visit.elsewhere) == ([], [])

// View 1 translates as you type, with alternatives for the sentence and at every word, and the alignment.

import { latestOnly } from "./api.js";
import { debounce, formatFixed, h, replaceContent } from "./dom.js";
import { formatPercent, shareBar } from "./formulas.js";
import { languageName, localize } from "./texts.js";

const BEST = 4;
const WAIT = 220;
const UNSURE = 0.4; // a word less probable than this is marked

export function translateView(root, { shared, showError, modelChoice, example }) {
  const quick = latestOnly();
  const slow = latestOnly();
  const asked = latestOnly();
  let lines = []; // { source, found: { text, score, alignment, alternatives } | null }

  const input = h("textarea", {
    id: "source", rows: "5", spellcheck: "true", placeholder: localize("type"), value: shared.text, "aria-label": localize("source"),
  });
  const marks = h("div", { class: "marks", "aria-hidden": "true" });
  const output = h("div", { class: "output", id: "target", role: "group", "aria-label": localize("target") });
  const spoken = h("p", { class: "hidden", "aria-live": "polite" });
  const others = h("section", { class: "others", hidden: true });
  const notes = h("div", { class: "notes", role: "status" });
  const choices = h("div", { class: "choices", role: "menu", hidden: true });
  const glossary = h("textarea", {
    id: "glossary", rows: "3", placeholder: localize("glossary.hint"), value: shared.glossary, "aria-label": localize("glossary"),
  });
  const state = h("span", { class: "state", "aria-hidden": "true" });

  replaceContent(root,
    h("div", { class: "bar" }, modelChoice(() => begin())),
    h("div", { class: "panes" },
      h("div", { class: "pane" }, h("div", { class: "writing" }, marks, input)),
      h("div", { class: "pane reading" }, output, state, choices)),
    spoken, notes, others,
    h("details", { class: "glossary", open: Boolean(shared.glossary) }, h("summary", {}, localize("glossary")),
      h("p", { class: "hint" }, localize("glossary.how")), glossary));

  const question = () => {
    const pairs = shared.glossary.split("\n").map((line) => line.split("=").map((side) => side.trim()));
    const terms = Object.fromEntries(pairs.filter(([term, wanted]) => term && wanted));
    return { model: shared.model, n_best: BEST, beam: BEST, glossary: terms };
  };

  async function begin() {
    close();
    shared.text = input.value;
    const written = input.value.split("\n");
    const texts = written.map((line) => line.trim()).filter(Boolean);
    if (!texts.length) {
      quick.stop();
      slow.stop();
      aligned.cancel();
      state.classList.remove("busy");
      lines = [];
      shared.sentence = shared.translation = "";
      return draw();
    }
    state.classList.add("busy");
    try {
      const found = await quick("/v1/translate", { ...question(), text: texts });
      if (!found) return;
      take(written, found.translations);
      showError(null);
      state.classList.remove("busy");
      spoken.textContent = lines.map((line) => line.found?.text ?? "").join("\n");
      aligned(written, texts);
    } catch (error) {
      state.classList.remove("busy");
      showError(error);
    }
  }

  const aligned = debounce(300, async (written, texts) => {
    try {
      const found = await slow("/v1/translate", { ...question(), text: texts, align: true });
      if (found && input.value === written.join("\n")) take(written, found.translations);
    } catch (error) {
      if (error.status !== 400) showError(error); // a model without attention has no alignment
    }
  });

  function take(written, translations) {
    const coming = [...translations];
    const before = lines.map((line) => line.found?.text);
    lines = written.map((line) => ({ source: line, found: line.trim() ? coming.shift() : null }));
    const first = lines.find((line) => line.found);
    shared.sentence = first.source.trim();
    shared.translation = first.found.text;
    // Only the alignment is new: leave the words, one of them may have been chosen.
    if (before.length !== lines.length || lines.some((line, l) => line.found?.text !== before[l])) draw();
  }

  // --- drawing ---

  function draw() {
    const { line, word } = output.contains(document.activeElement) ? document.activeElement.dataset : {};
    replaceContent(output, lines.length ? lines.map((line, l) => h("p", {}, words(line, l))) : hint());
    drawMarks();
    if (word !== undefined) wordAt(output, line, word)?.focus();
    const found = lines.filter((line) => line.found);
    const wrong = [...new Set(found.flatMap((line) => (line.found.issues ?? []).map((issue) => describeIssue(issue, line.found.source))).filter(Boolean))];
    replaceContent(notes, wrong.map((text) => h("p", { class: "hint" }, text)));
    const several = found.length === 1 ? found[0].found.alternatives ?? [] : [];
    others.hidden = !several.length;
    replaceContent(others, h("h2", {}, localize("alternatives")), h("ol", {}, several.map((one) =>
      h("li", {}, h("button", { type: "button", class: "other", onclick: () => adopt(one) },
        h("span", {}, one.text), h("span", { class: "score", title: localize("score") }, formatFixed(one.score)))))));
  }

  function words(line, l) {
    if (!line.found) return [h("br")];
    const sure = line.found.words ?? [];
    return line.found.text.split(/\s+/).filter(Boolean).flatMap((word, w) => [
      h("button", {
        type: "button", class: sure[w]?.[1] < UNSURE ? "word unsure" : "word",
        title: sure[w] ? localize("confidence", { share: formatPercent(sure[w][1]) }) : null, "data-line": l, "data-word": w, "aria-haspopup": "menu",
        onclick: () => open(l, w),
        onmouseenter: () => light(l, w, 1), onmouseleave: dark, onfocus: () => light(l, w, 1), onblur: dark,
      }, word), " "]);
  }

  // The source again behind the field, so that its words can be marked.
  function drawMarks() {
    replaceContent(marks, input.value.split("\n").flatMap((line, l) => {
      let w = 0;
      const parts = line.split(/(\s+)/).filter(Boolean);
      const marked = (part) => h("span", { "data-line": l, "data-word": w++ }, part);
      return [...parts.map((part) => (/^\s/.test(part) ? part : marked(part))), "\n"];
    }));
    marks.scrollTop = input.scrollTop;
  }

  // The words on the other side of a word: side 0 is the source, 1 the translation.
  function light(l, w, side) {
    dark();
    const pairs = lines[l]?.found?.alignment ?? [];
    if (!pairs.length) return;
    const [mine, theirs] = side ? [output, marks] : [marks, output];
    wordAt(mine, l, w)?.classList.add("lit");
    for (const pair of pairs) if (pair[side] === w) wordAt(theirs, l, pair[1 - side])?.classList.add("lit");
  }

  function dark() {
    for (const one of root.querySelectorAll(".lit")) one.classList.remove("lit");
  }

  input.addEventListener("mousemove", (event) => {
    const { clientX: x, clientY: y } = event;
    const over = [...marks.children].find((span) => [...span.getClientRects()].some((box) =>
      box.left <= x && x <= box.right && box.top <= y && y <= box.bottom));
    if (over?.dataset.word) light(Number(over.dataset.line), Number(over.dataset.word), 0);
    else dark();
  });
  input.addEventListener("mouseleave", dark);
  input.addEventListener("scroll", () => (marks.scrollTop = input.scrollTop));
  const caret = () => {
    const before = input.value.slice(0, input.selectionStart);
    const l = before.split("\n").length - 1;
    light(l, before.split("\n")[l].split(/\s+/).filter(Boolean).length - (/\S$/.test(before) ? 1 : 0), 0);
  };
  input.addEventListener("keyup", (event) => event.key.startsWith("Arrow") && caret());
  input.addEventListener("click", caret);

  // --- alternatives at a word ---

  async function open(l, w) {
    const text = lines[l].source.trim();
    const prefix = lines[l].found.text.split(/\s+/).slice(0, w).join(" ");
    const list = h("div", { class: "list" }, h("p", { class: "hint" }, "…"));
    replaceContent(choices, list);
    choices.hidden = false;
    place(l, w);
    try {
      const found = await asked("/v1/alternatives", { model: shared.model, text, prefix, count: 6 });
      if (!found) return;
      replaceContent(list, found.alternatives.map((one) => h("button", {
        type: "button", role: "menuitem",
        onclick: () => complete(l, [prefix, one.word].filter(Boolean).join(" "), one),
      }, shareBar(one.probability), h("span", { class: "what" }, one.word || localize("end")),
        h("span", { class: "score" }, formatPercent(one.probability)))));
      place(l, w);
      list.querySelector("button")?.focus();
      light(l, w, 1);
    } catch (error) {
      close();
      showError(error);
    }
  }

  function place(l, w) {
    const button = wordAt(output, l, w);
    if (!button) return close();
    const pane = choices.parentElement.getBoundingClientRect();
    const box = button.getBoundingClientRect();
    choices.style.top = `${box.bottom - pane.top + 6}px`;
    choices.style.left = `${Math.max(8, Math.min(box.left - pane.left, pane.width - choices.offsetWidth - 8))}px`;
    choices.owner = button;
  }

  function close() {
    choices.hidden = true;
    dark();
  }

  choices.addEventListener("keydown", (event) => {
    const items = [...choices.querySelectorAll("button")];
    const here = items.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) items[(here + step + items.length) % items.length]?.focus();
    else if (event.key === "Escape") {
      close();
      choices.owner?.focus();
    } else return;
    event.preventDefault();
  });
  root.addEventListener("click", (event) => {
    if (!choices.contains(event.target) && !event.target.classList.contains("word")) close();
  });

  // The sentence, completed anew from a word on.
  async function complete(l, prefix, one) {
    close();
    show(l, { text: one.translation, score: one.score, alternatives: [] });
    spoken.textContent = one.translation;
    wordAt(output, l, prefix.split(" ").length - 1)?.focus();
    const { source } = lines[l];
    try {
      const found = await slow("/v1/translate", { ...question(), text: source.trim(), prefix, align: true });
      const [best] = found?.translations ?? [];
      if (!best || lines[l]?.source !== source) return;
      const all = [best, ...(best.alternatives ?? [])];
      const chosen = all.find((other) => other.text === one.translation) ?? { text: one.translation, score: one.score };
      show(l, { ...chosen, alternatives: all.filter((other) => other !== chosen) });
    } catch (error) {
      showError(error);
    }
  }

  function show(l, found) {
    lines[l].found = found;
    if (lines[l].source.trim() === shared.sentence) shared.translation = found.text;
    draw();
  }

  function adopt(one) {
    const l = lines.findIndex((line) => line.found);
    const before = lines[l].found;
    show(l, { ...one, alternatives: [before, ...before.alternatives].filter((other) => other !== one) });
  }

  const typed = debounce(WAIT, begin);
  input.addEventListener("input", () => {
    drawMarks();
    typed();
  });
  glossary.addEventListener("input", () => {
    shared.glossary = glossary.value;
    typed();
  });
  // What stands where a translation will be.
  function hint() {
    const first = example();
    const use = () => {
      input.value = first;
      begin();
    };
    return h("p", { class: "hint" }, localize("target.hint"), " ",
      first ? h("button", { type: "button", class: "link", onclick: use }, localize("example")) : null);
  }

  draw();
  if (shared.text) begin();
  if (matchMedia("(min-width: 700px)").matches) input.focus();
}

function wordAt(side, line, word) {
  return side.querySelector(`[data-line="${line}"][data-word="${word}"]`);
}

// What the reader should know of something wrong with a translation; nothing if it was mended.
function describeIssue({ kind, detail, repaired }, source) {
  if (repaired) return "";
  if (kind === "language") return localize("issue.language", { language: languageName(detail), source: languageName(source) });
  if (kind === "item") return localize("issue.item", { item: detail });
  return kind === "cut" ? "" : localize("issue.doubtful");
}

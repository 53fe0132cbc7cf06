// View 1 translates as you type, with alternatives for the sentence and at every word, and the alignment.

import { latestOnly } from "./api.js";
import { correctionForm } from "./correction.js";
import { debounce, formatFixed, h, replaceContent } from "./dom.js";
import { formatPercent, shareBar } from "./formulas.js";
import { countWords, replaceSentence, sentenceAt } from "./sentences.js";
import { languageName, localize } from "./texts.js";

const BEST = 4;
const WAIT = 220;
const UNSURE = 0.4; // a word less probable than this is marked

export function translateView(root, { shared, showError, modelChoice, example }) {
  const quick = latestOnly();
  const slow = latestOnly();
  const asked = latestOnly();
  let found = null; // { text, score, pairs, alignment, alternatives, issues, words }

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
  let said = []; // the sentences' translations as the server gave them
  const correction = correctionForm({
    file: shared.corrections, showError, model: () => shared.model, kept: () => begin(),
    current: () => ({ pairs: found?.pairs ?? [], said }),
  });
  const state = h("span", { class: "state", "aria-hidden": "true" });

  replaceContent(root,
    h("div", { class: "bar" }, modelChoice(() => begin())),
    h("div", { class: "panes" },
      h("div", { class: "pane" }, h("div", { class: "writing" }, marks, input)),
      h("div", { class: "pane reading" }, output, state, choices)),
    spoken, notes, correction.root, others,
    h("details", { class: "glossary", open: Boolean(shared.glossary) }, h("summary", {}, localize("glossary")),
      h("p", { class: "hint" }, localize("glossary.how")), glossary));

  const question = () => {
    const pairs = shared.glossary.split("\n").map((line) => line.split("=").map((side) => side.trim()));
    const terms = Object.fromEntries(pairs.filter(([term, wanted]) => term && wanted));
    return { model: shared.model, n_best: BEST, beam: BEST, glossary: terms, pairs: true };
  };

  async function begin() {
    close();
    shared.text = input.value;
    const text = input.value;
    if (!text.trim()) {
      quick.stop();
      slow.stop();
      aligned.cancel();
      state.classList.remove("busy");
      found = null;
      shared.sentence = shared.translation = "";
      return draw();
    }
    state.classList.add("busy");
    try {
      const answer = await quick("/v1/translate", { ...question(), text });
      if (!answer) return;
      take(answer.translations[0]);
      showError(null);
      state.classList.remove("busy");
      spoken.textContent = found.text;
      aligned(text);
    } catch (error) {
      state.classList.remove("busy");
      showError(error);
    }
  }

  const aligned = debounce(300, async (text) => {
    try {
      const answer = await slow("/v1/translate", { ...question(), text, align: true });
      if (answer && input.value === text) take(answer.translations[0]);
    } catch (error) {
      if (error.status !== 400) showError(error); // a model without attention has no alignment
    }
  });

  function take(translation) {
    const before = found?.text;
    found = translation;
    said = found.pairs.map(([, translated]) => translated);
    [shared.sentence, shared.translation] = found.pairs[0] ?? ["", ""];
    // Only the alignment is new: leave the words, one of them may have been chosen.
    if (found.text !== before) draw();
  }

  // --- drawing ---

  function draw() {
    const { word } = output.contains(document.activeElement) ? document.activeElement.dataset : {};
    replaceContent(output, found ? words() : hint());
    drawMarks();
    if (word !== undefined) wordAt(output, word)?.focus();
    const wrong = (found?.issues ?? []).map((issue) => describeIssue(issue, found.source)).filter(Boolean);
    replaceContent(notes, [...new Set(wrong)].map((text) => h("p", { class: "hint" }, text)));
    const several = found && !found.text.trim().includes("\n") ? found.alternatives ?? [] : [];
    correction.close();
    others.hidden = !several.length;
    replaceContent(others, h("h2", {}, localize("alternatives")), h("ol", {}, several.map((one) =>
      h("li", {}, h("button", { type: "button", class: "other", onclick: () => adopt(one) },
        h("span", {}, one.text), h("span", { class: "score", title: localize("score") }, formatFixed(one.score)))))));
  }

  // The lines of the translation, with their spaces; words are numbered through.
  function words() {
    const sure = [...(found.words ?? [])];
    let w = 0;
    const button = (word, number, share) => h("button", {
      type: "button", class: share < UNSURE ? "word unsure" : "word",
      title: share === undefined ? null : localize("confidence", { share: formatPercent(share) }), "data-word": number, "aria-haspopup": "menu",
      onclick: () => open(number),
      onmouseenter: () => light(number, 1), onmouseleave: dark, onfocus: () => light(number, 1), onblur: dark,
    }, word);
    // What is no word of a sentence, such as the mark of a list item, has no confidence.
    const part = (text) => /^\s/.test(text) ? text : button(text, w++, sure[0]?.[0] === text ? sure.shift()[1] : undefined);
    return found.text.split("\n").map((line) => h("p", {}, line.trim() ? line.split(/(\s+)/).filter(Boolean).map(part) : h("br")));
  }

  // The source again behind the field, so that its words can be marked.
  function drawMarks() {
    let w = 0;
    const marked = (part) => (/^\s/.test(part) ? part : h("span", { "data-word": w++ }, part));
    replaceContent(marks, input.value.split(/(\s+)/).filter(Boolean).map(marked), "\n");
    marks.scrollTop = input.scrollTop;
  }

  // The words on the other side of a word: side 0 is the source, 1 the translation.
  function light(w, side) {
    dark();
    const pairs = found?.alignment ?? [];
    if (!pairs.length) return;
    const [mine, theirs] = side ? [output, marks] : [marks, output];
    wordAt(mine, w)?.classList.add("lit");
    for (const pair of pairs) if (pair[side] === w) wordAt(theirs, pair[1 - side])?.classList.add("lit");
  }

  function dark() {
    for (const one of root.querySelectorAll(".lit")) one.classList.remove("lit");
  }

  input.addEventListener("mousemove", (event) => {
    const { clientX: x, clientY: y } = event;
    const over = [...marks.children].find((span) => [...span.getClientRects()].some((box) =>
      box.left <= x && x <= box.right && box.top <= y && y <= box.bottom));
    if (over?.dataset.word) light(Number(over.dataset.word), 0);
    else dark();
  });
  input.addEventListener("mouseleave", dark);
  input.addEventListener("scroll", () => (marks.scrollTop = input.scrollTop));
  const caret = () => {
    const before = input.value.slice(0, input.selectionStart);
    light(countWords(before) - (/\S$/.test(before) ? 1 : 0), 0);
  };
  input.addEventListener("keyup", (event) => event.key.startsWith("Arrow") && caret());
  input.addEventListener("click", caret);

  // --- alternatives at a word ---

  async function open(w) {
    const sentence = sentenceAt(found, w);
    if (!sentence) return close();
    const { number, prefix } = sentence;
    const [text] = found.pairs[number];
    const list = h("div", { class: "list" }, h("p", { class: "hint" }, "…"));
    replaceContent(choices, list);
    choices.hidden = false;
    place(w);
    try {
      const answer = await asked("/v1/alternatives", { model: shared.model, text, prefix, count: 6 });
      if (!answer) return;
      replaceContent(list, answer.alternatives.map((one) => h("button", {
        type: "button", role: "menuitem",
        onclick: () => complete(w, number, [prefix, one.word].filter(Boolean).join(" "), one),
      }, shareBar(one.probability), h("span", { class: "what" }, one.word || localize("end")),
        h("span", { class: "score" }, formatPercent(one.probability)))));
      place(w);
      list.querySelector("button")?.focus();
      light(w, 1);
    } catch (error) {
      close();
      showError(error);
    }
  }

  function place(w) {
    const button = wordAt(output, w);
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

  // A sentence, completed anew from a word on.
  async function complete(w, number, prefix, one) {
    close();
    const [before, [text]] = [found, found.pairs[number]];
    show(replaceSentence(before, shared.text, number, { text: one.translation, score: one.score }));
    spoken.textContent = one.translation;
    wordAt(output, w)?.focus();
    const shown = found;
    try {
      const answer = await slow("/v1/translate", { ...question(), text, prefix, align: true });
      const [best] = answer?.translations ?? [];
      if (!best || found !== shown) return;
      const all = [best, ...(best.alternatives ?? [])];
      const chosen = all.find((other) => other.text === one.translation) ?? { text: one.translation, score: one.score };
      const alternatives = all.filter((other) => other !== chosen);
      show(replaceSentence(before, shared.text, number, { ...chosen, alternatives }));
    } catch (error) {
      showError(error);
    }
  }

  function show(translation) {
    found = translation;
    [shared.sentence, shared.translation] = found.pairs[0];
    draw();
  }

  function adopt(one) {
    const pairs = found.pairs.length === 1 ? [[found.pairs[0][0], one.text]] : found.pairs;
    const alternatives = [found, ...found.alternatives].filter((other) => other !== one);
    show({ ...found, words: [], alignment: [], ...one, pairs, alternatives });
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

function wordAt(side, word) {
  return side.querySelector(`[data-word="${word}"]`);
}

// What the reader should know of something wrong with a translation; nothing if it was mended.
function describeIssue({ kind, detail, repaired }, source) {
  if (repaired) return "";
  if (kind === "language") return localize("issue.language", { language: languageName(detail), source: languageName(source) });
  if (kind === "item") return localize("issue.item", { item: detail });
  return kind === "cut" ? "" : localize("issue.doubtful");
}

// The page: four views of the same sentence.

import { latestOnly, request, ServiceError, setKey } from "./api.js";
import { attentionView } from "./attention.js";
import { buttonGroup, h, replaceContent, select, tab } from "./dom.js";
import { howView } from "./how_it_works.js";
import { parseView } from "./parse.js";
import { translateView } from "./translate.js";
import { language, LANGUAGES, localize, setLanguage, THEMES } from "./texts.js";

const VIEWS = { translate: translateView, attention: attentionView, how: howView, parse: parseView };
const EXAMPLES = {
  en: "The law will never be perfect, but its application should be just.",
  de: "Das Gesetz wird nie vollkommen sein, aber seine Anwendung sollte gerecht sein.",
  ko: "법은 결코 완벽하지 않겠지만, 그 적용은 공정해야 한다.",
};

// The model, the sentence and its translation, which the views share.
const shared = { models: [], corrections: null, model: null, text: "", translation: "", sentence: "", glossary: "", parse: "" };
let view = "translate";
const panel = h("main", { id: "panel", role: "tabpanel", tabindex: "-1" });
const message = h("p", { class: "message", role: "alert", hidden: true });

const translators = () => shared.models.filter((one) => one.task === "translation");
const parsers = () => shared.models.filter((one) => one.task === "parsing");

// Shows what went wrong in one line; null removes it.
function showError(error) {
  const text = error ? (error instanceof ServiceError && error.status === 0 ? localize("unreachable") : error.message) : "";
  message.hidden = !text;
  replaceContent(message, text);
  if (error?.status === 401 || error?.status === 403) replaceContent(message, text, keyForm());
}

function keyForm() {
  const label = localize("key");
  const field = h("input", { type: "password", autocomplete: "off", "aria-label": label, placeholder: label });
  const use = (event) => {
    event.preventDefault();
    setKey(field.value);
    showError(null);
    render();
  };
  return h("form", { class: "inline", onsubmit: use }, field, h("button", {}, localize("use")));
}

// Makes the requests of the views that show what the model computes for the shared sentence.
function source() {
  const asker = { attention: latestOnly(), steps: latestOnly(), beam: latestOnly() };
  const sentence = { model: shared.model, text: shared.sentence };
  const pair = { ...sentence, translation: shared.translation || undefined };
  return {
    ablates: true,
    attention: (off) => asker.attention("/v1/attention", off.length ? { ...sentence, off } : pair),
    steps: (part, layer) => asker.steps("/v1/steps", { ...pair, part, layer }),
    beam: (beam) => asker.beam("/v1/beam", { ...sentence, beam }),
  };
}

const context = {
  shared, showError, source, translators, parsers,
  example: () => EXAMPLES[shared.models.find((one) => one.name === shared.model)?.source] ?? "",
  modelChoice,
};

// Two models that translate one after another have no attention of their own to look at.
const canBeShown = (one) => view === "translate" || !one.through;

function modelChoice(change) {
  const choices = translators().filter(canBeShown);
  if (choices.length < 2) return null;
  const names = choices.map((one) => [one.name, `${one.source} → ${one.through ? `${one.through} → ` : ""}${one.target} · ${one.name}`]);
  return select(localize("model"), names, shared.model, (name) => {
    shared.model = name;
    shared.translation = "";
    change();
  });
}

function tabs() {
  const names = Object.keys(VIEWS).filter((name) => name === "parse" ? parsers().length : translators().length);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = names[(names.indexOf(view) + step + names.length) % names.length];
    go(next);
    document.getElementById(`tab-${next}`).focus();
  };
  return h("div", { class: "tabs", role: "tablist", "aria-label": localize("views"), onkeydown: move },
    names.map((name) => tab(name, localize(`tab.${name}`), name === view, go)));
}

function theme() {
  const now = localStorage.getItem("dragoman-theme") ?? "auto";
  const set = (value) => {
    localStorage.setItem("dragoman-theme", value);
    paint();
    render();
  };
  return buttonGroup(localize("theme"), THEMES.map((name) => [name, localize(`theme.${name}`)]), now, set);
}

function paint() {
  const value = localStorage.getItem("dragoman-theme") ?? "auto";
  document.documentElement.dataset.theme = value;
}

function go(name) {
  if (name === view) return;
  view = name;
  history.replaceState(null, "", `#${name}`);
  render();
}

function render() {
  showError(null);
  document.documentElement.lang = language();
  const speak = (code) => {
    setLanguage(code);
    render();
  };
  replaceContent(document.getElementById("app"),
    h("header", { class: "top" },
      h("a", { class: "name", href: "/", "aria-label": "Dragoman" }, "Dragoman"),
      tabs(),
      h("div", { class: "settings" }, buttonGroup(localize("language"), LANGUAGES, language(), speak), theme())),
    message, panel);
  panel.setAttribute("aria-labelledby", `tab-${view}`);
  panel.className = `view ${view}`;
  if (!translators().filter(canBeShown).some((one) => one.name === shared.model)) {
    shared.model = translators().find(canBeShown)?.name ?? null;
    shared.translation = "";
  }
  const content = h("div", {}); // a new one each time: what listened to the last one is gone
  replaceContent(panel, content);
  VIEWS[view](content, context);
}

async function start() {
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  try {
    shared.models = await request("/v1/models");
    shared.corrections = (await request("/v1/corrections")).file; // the file's name, if corrections are kept
  } catch (error) {
    render();
    showError(error);
    return;
  }
  shared.model = translators()[0]?.name ?? null;
  const wanted = location.hash.slice(1);
  view = wanted in VIEWS && (wanted === "parse" ? parsers() : translators()).length ? wanted
    : translators().length ? "translate" : "parse";
  render();
}

start();

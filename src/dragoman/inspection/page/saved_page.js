// The page of one sentence that inspection saves: all it shows is in its file, and it needs no service.

import { attentionPictures } from "./attention.js";
import { beamTree } from "./beam.js";
import { buttonGroup, h, replaceContent, tab } from "./dom.js";
import { howItWorks } from "./how_it_works.js";
import { language, LANGUAGES, localize, setLanguage, THEMES } from "./texts.js";

const data = JSON.parse(document.getElementById("data").textContent);
const views = ["attention", ...(data.steps ? ["how"] : []), "beam"];
let view = "attention";
let theme = "auto";
const place = {};
const source = {
  ablates: false,
  steps: async (part, layer) => data.steps[part][layer],
};

function render() {
  document.documentElement.lang = language();
  document.documentElement.dataset.theme = theme;
  const panel = h("main", {
    id: "panel", role: "tabpanel", class: `view ${view}`, "aria-labelledby": `tab-${view}`,
  });
  const go = (name) => {
    view = name;
    render();
  };
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    go(views[(views.indexOf(view) + step + views.length) % views.length]);
    document.getElementById(`tab-${view}`).focus();
  };
  replaceContent(document.getElementById("app"),
    h("header", { class: "top" }, h("span", { class: "name" }, "Dragoman"),
      h("div", { class: "tabs", role: "tablist", "aria-label": localize("views"), onkeydown: move },
        views.map((name) => tab(name, localize(name === "beam" ? "beam" : `tab.${name}`), name === view, go))),
      h("div", { class: "settings" },
        buttonGroup(localize("language"), LANGUAGES, language(), (code) => {
          setLanguage(code);
          render();
        }),
        buttonGroup(localize("theme"), THEMES.map((name) => [name, localize(`theme.${name}`)]), theme, (name) => {
          theme = name;
          render();
        }))),
    h("div", { class: "pair" },
      h("p", { lang: data.languages[0] }, data.attention.text),
      h("p", { lang: data.languages[1] }, data.attention.translation)),
    panel);
  if (view === "attention") replaceContent(panel, attentionPictures(data.attention, source, () => {}));
  else if (view === "beam") replaceContent(panel, h("p", { class: "hint" }, localize("beam.how")), beamTree(data.beam, null));
  else howItWorks(panel, source, () => {}, place);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
render();

// View 3 shows the model's own numbers for the sentence, one step of the paper a screen.

import { h, replaceContent, select } from "./dom.js";
import { formatNumber, formula, formulaParts } from "./formulas.js";
import { sentenceBar } from "./sentence_bar.js";
import { steps } from "./steps.js";
import { localize } from "./texts.js";

const PARTS = ["encoder", "decoder", "cross"];

export function howView(root, context) {
  const { showError } = context;
  const body = h("div", {});
  let stop = null;
  const begin = () => {
    stop?.();
    showError(null);
    if (context.shared.sentence) stop = howItWorks(body, context.source(), showError, context.place ??= {});
    else replaceContent(body, h("p", { class: "hint" }, localize("sentence.none")));
  };
  replaceContent(root, sentenceBar(context, () => {
    delete context.place;
    begin();
  }), body);
  begin();
}

// Shows one step at a time; `place` remembers the part, layer, head, step and word that are shown.
export function howItWorks(root, source, showError, place) {
  const spoken = h("p", { class: "hidden", "aria-live": "polite" });
  let alive = true;
  let n = null;
  place.part ??= "encoder";
  place.layer ??= 0;
  place.head ??= 0;
  place.step ??= 0;
  place.focus ??= 0;

  async function load() {
    if (!root.childElementCount) replaceContent(root, h("p", { class: "hint" }, localize("loading")));
    root.classList.add("busy");
    try {
      const found = await source.steps(place.part, place.layer);
      if (!found || !alive) return;
      n = found;
      place.head = Math.min(place.head, n.facts.heads - 1);
      place.focus = Math.min(place.focus, n.rows.length - 1);
      draw();
    } catch (error) {
      if (alive) {
        if (!n) replaceContent(root);
        showError(error);
      }
    }
    root.classList.remove("busy");
  }

  const go = (step) => {
    place.step = step;
    draw();
  };
  const focus = (row) => {
    place.focus = row;
    draw();
    root.querySelector('.piece[aria-pressed="true"]')?.focus();
  };

  function draw() {
    const all = steps(n);
    const step = all[place.step];
    spoken.textContent = localize(`how.${step.name}`);
    replaceContent(root, choices(), numbered(all), spoken,
      h("section", { class: "step" },
        h("h2", {}, localize(`how.${step.name}`)),
        h("p", { class: "why" }, formulaParts(why(step))),
        (step.formulas ?? []).map(formula),
        step.draw(n, place, focus)),
      moves(all.length));
  }

  function why(step) {
    const facts = { ...n.facts, layer: place.layer + 1, head: place.head + 1, root: formatNumber(Math.sqrt(n.facts.d_k)) };
    return localize(step.text ?? `how.${step.name}.why`, facts);
  }

  // Which attention, layer and head.
  function choices() {
    const { layers, heads } = n.facts;
    const counted = (count) => Array.from({ length: count }, (_, i) => [i, i + 1]);
    const parts = PARTS.map((name) => [name, localize(`part.${name}`)]);
    return h("div", { class: "bar" },
      select(localize("part"), parts, place.part, (name) => {
        Object.assign(place, { part: name, layer: Math.min(place.layer, layers[name] - 1), focus: 0 });
        load();
      }),
      select(localize("layer"), counted(layers[place.part]), place.layer, (layer) => {
        place.layer = Number(layer);
        load();
      }),
      select(localize("head"), counted(heads), place.head, (head) => {
        place.head = Number(head);
        draw();
      }));
  }

  // All steps, to go to any.
  function numbered(all) {
    return h("nav", { class: "steps", "aria-label": localize("how.steps") }, all.map((one, i) => {
      const name = localize(`how.${one.name}`);
      return h("button", {
        type: "button", "aria-current": i === place.step ? "step" : null, "aria-label": name, title: name, onclick: () => go(i),
      }, i + 1);
    }));
  }

  function moves(count) {
    const move = (by, kind, text) => {
      const next = place.step + by;
      return h("button", { type: "button", class: kind, disabled: next < 0 || next >= count, onclick: () => go(next) }, text);
    };
    return h("div", { class: "bar moves" },
      move(-1, "quiet", `← ${localize("previous")}`),
      h("span", { class: "count" }, `${place.step + 1} / ${count}`),
      move(1, "primary", `${localize("next")} →`));
  }

  load();
  return () => (alive = false);
}

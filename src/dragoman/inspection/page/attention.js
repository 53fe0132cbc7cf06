// View 2 shows the attention of every layer and head, what changes without some heads, and the search.

import { mean, unpackArray } from "./arrays.js";
import { beamSection } from "./beam.js";
import { buttonGroup, formatFixed, h, headColour, replaceContent, toggle } from "./dom.js";
import { drawAttentionLines, drawHeatmap, drawMatrix } from "./plots.js";
import { sentenceBar } from "./sentence_bar.js";
import { localize } from "./texts.js";

const fullName = (layer, head) => localize("head.of", { layer: layer + 1, head: head + 1 });
const shortName = (layer, head) => `${layer + 1}.${head + 1}`;
const key = ({ part, layer, head }) => `${part}-${layer}-${head}`;

export function attentionView(root, context) {
  const { showError } = context;
  const body = h("div", {});
  let source = context.source();
  replaceContent(root, sentenceBar(context, () => {
    source = context.source();
    begin();
  }), body);

  async function begin() {
    showError(null);
    if (!context.shared.sentence) return replaceContent(body, h("p", { class: "hint" }, localize("sentence.none")));
    if (!body.childElementCount) replaceContent(body, h("p", { class: "hint" }, localize("loading")));
    body.classList.add("busy");
    try {
      const found = await source.attention([]);
      if (found) replaceContent(body, attentionPictures(found, source, showError), beamSection(source, showError));
    } catch (error) {
      replaceContent(body);
      showError(error);
    }
    body.classList.remove("busy");
  }
  begin();
}

// Draws an answer of /v1/attention.
export function attentionPictures(found, source, showError) {
  const parts = Object.keys(found.parts);
  let part = parts.includes("cross") ? "cross" : parts[0];
  const off = new Map(); // heads switched off
  const decoded = {};
  let chosen = [];
  let several = false;

  const root = h("div", { class: "pictures" });
  const controls = h("div", { class: "bar" });
  const heads = h("div", { class: "heads" });
  const picture = h("div", { class: "picture" });
  const changed = h("section", { class: "changed", "aria-live": "polite" });
  replaceContent(root, controls, heads, picture, changed);

  // Arrays of a part's layers, unpacked when they are first drawn.
  function layers(name) {
    decoded[name] ??= found.parts[name].layers.map(unpackArray);
    return decoded[name];
  }

  function fresh() {
    for (const name of Object.keys(decoded)) delete decoded[name];
  }

  function pick(layer, head, event) {
    const same = chosen.findIndex((one) => one.layer === layer && one.head === head);
    if (several || event?.shiftKey || event?.ctrlKey || event?.metaKey) {
      if (same >= 0 && chosen.length > 1) chosen.splice(same, 1);
      else if (same < 0) chosen.push({ layer, head });
    } else chosen = [{ layer, head }];
    draw();
  }

  function drawControls() {
    replaceContent(controls,
      buttonGroup(localize("part"), parts.map((name) => [name, localize(`part.${name}`)]), part, (name) => {
        part = name;
        chosen = [];
        drawAll();
      }),
      toggle(localize("several"), several, () => {
        several = !several;
        if (!several) chosen = chosen.slice(-1);
        drawAll();
      }));
  }

  function drawHeads() {
    const all = layers(part);
    const count = all[0].shape[0];
    const table = h("div", { class: "multiples", role: "group", "aria-label": localize("heads") });
    table.style.setProperty("--heads", count);
    table.append(h("span", {}));
    for (let head = 0; head < count; head++) table.append(h("span", { class: "number", "aria-hidden": "true" }, head + 1));
    all.forEach((layer, l) => {
      const title = localize("layer.all", { layer: l + 1 });
      table.append(h("button", {
        type: "button", class: "layer", title, "aria-label": title,
        onclick: () => {
          several = true;
          chosen = Array.from({ length: count }, (_, head) => ({ layer: l, head }));
          drawAll();
        },
      }, l + 1));
      for (let head = 0; head < count; head++) {
        table.append(h("button", {
          type: "button", class: "head", "data-layer": l, "data-head": head, "aria-label": fullName(l, head),
          onclick: (event) => pick(l, head, event),
        }, drawHeatmap(layer.get(head))));
      }
    });
    replaceContent(heads, h("p", { class: "axis" }, localize("heads.axis")), table);
  }

  function draw() {
    const all = layers(part);
    const { rows, columns } = found.parts[part];
    if (!chosen.length) chosen = [sharpest(all)];
    for (const button of heads.querySelectorAll(".head")) {
      const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
      button.setAttribute("aria-pressed", String(chosen.some((one) => one.layer === layer && one.head === head)));
      button.classList.toggle("off", off.has(key({ part, layer, head })));
    }
    const count = all[0].shape[0];
    const shown = chosen.map(({ layer, head }) => ({ head, weights: all[layer].get(head) }));
    const names = chosen.map(({ layer, head }) => {
      const name = h("span", { class: "chip" }, shortName(layer, head));
      name.style.setProperty("--hue", headColour(head, count));
      return name;
    });
    const share = (one) => `“${one.text}” ${Math.round(100 * one.share)} %`;
    const looks = (text, best) => localize("looks", { text, best: best.map(share).join(", ") });
    const spelled = chosen.map(({ layer, head }) => fullName(layer, head)).join(", ");
    replaceContent(picture,
      h("div", { class: "bar" }, h("h2", {}, localize(`part.${part}`)), h("span", { class: "names" }, names),
        source.ablates ? offButton() : null),
      h("p", { class: "hint" }, localize(`look.${part}`)),
      drawAttentionLines(shown, count, rows, columns, looks),
      h("h3", {}, localize(chosen.length > 1 ? "matrix.mean" : "matrix")),
      drawMatrix(mean(shown.map((one) => one.weights)), rows, columns, localize("matrix.of", { heads: spelled })));
    if (source.ablates) drawOff();
  }

  function offButton() {
    const are = chosen.every((one) => off.has(key({ part, ...one })));
    return h("button", { type: "button", class: "quiet switch", onclick: () => {
      for (const one of chosen) {
        const head = { part, layer: one.layer, head: one.head };
        if (are) off.delete(key(head));
        else off.set(key(head), head);
      }
      draw();
    } }, localize(are ? "switch.on" : "switch.off"));
  }

  // --- what changes without some heads ---

  let result = null;

  function drawOff() {
    if (!off.size && !result) return replaceContent(changed);
    replaceContent(changed, h("h2", {}, localize("off")),
      h("p", { class: "chips" }, [...off.values()].map((head) => h("button", {
        type: "button", class: "chip removable", "aria-label": localize("switch.on.one", { head: name(head) }),
        onclick: () => {
          off.delete(key(head));
          draw();
        },
      }, name(head), " ×"))),
      h("div", { class: "bar" },
        h("button", {
          type: "button", class: "primary again", disabled: !off.size, onclick: () => again([...off.values()]),
        }, localize("again")),
        h("button", { type: "button", class: "quiet", onclick: () => {
          off.clear();
          result = null;
          again([]);
        } }, localize("switch.all"))),
      result ? compared(result) : null);
  }

  const name = ({ part: where, layer, head }) => `${localize(`part.${where}`)} ${shortName(layer, head)}`;

  async function again(heads) {
    changed.classList.add("busy");
    try {
      const next = await source.attention(heads);
      if (!next) return;
      found = next;
      result = next.before ? next : null;
      fresh();
      drawAll();
      showError(null);
    } catch (error) {
      showError(error);
    }
    changed.classList.remove("busy");
  }

  function compared({ before, after }) {
    const marked = difference(before.text.split(/\s+/), after.text.split(/\s+/));
    const line = (label, words, tag, score) => h("div", { class: "compared" },
      h("span", { class: "label" }, label),
      h("p", {}, words.map(([word, same]) => [same ? word : h(tag, {}, word), " "])),
      h("span", { class: "score" }, formatFixed(score)));
    return h("div", { class: "result" },
      line(localize("before"), marked[0], "del", before.score),
      line(localize("after"), marked[1], "ins", after.score),
      before.text === after.text ? h("p", { class: "hint" }, localize("unchanged")) : null);
  }

  function drawAll() {
    drawControls();
    drawHeads();
    draw();
  }

  drawAll();
  return root;
}

// Returns the head with the sharpest attention, not counting what goes to the end of the sentence.
function sharpest(layers) {
  let best = { sure: -1 };
  layers.forEach((values, layer) => {
    const [heads, rows, columns] = values.shape;
    for (let head = 0; head < heads; head++) {
      const weights = values.get(head);
      let sure = 0;
      for (let row = 0; row < rows; row++) sure += Math.max(0, ...weights.row(row).subarray(0, columns - 1));
      if (sure > best.sure) best = { sure, layer, head };
    }
  });
  return { layer: best.layer, head: best.head };
}

// Marks the words of two lists that are in their longest common subsequence.
function difference(left, right) {
  const table = Array.from({ length: left.length + 1 }, () => new Int32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      table[i][j] = left[i] === right[j] ? 1 + table[i + 1][j + 1] : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const marked = [left.map((word) => [word, false]), right.map((word) => [word, false])];
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) marked[0][i++][1] = marked[1][j++][1] = true;
    else if (table[i + 1][j] >= table[i][j + 1]) i++;
    else j++;
  }
  return marked;
}

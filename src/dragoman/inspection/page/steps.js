// The steps of “How it works”: the text of each, and how its numbers are drawn.

import { unpackArray, unpackMatrix } from "./arrays.js";
import { h, select } from "./dom.js";
import { formatNumber, formatPercent, formulaParts, shareBar } from "./formulas.js";
import { drawMatrix, drawSignedHeatmap, frameMatrix } from "./plots.js";
import { localize } from "./texts.js";

const WRITTEN_COLUMNS = 12; // the widest matrix of scores that is written in numbers
const FIRST = 6; // numbers of a row that are written

// Returns the steps for an answer of /v1/steps, each { name, text, formulas, draw(n, place, focus) }.
export function steps(n) {
  const { activation, norm_kind: kind, positions, shared_embeddings: shared } = n.facts;
  const pre = n.facts.norm === "pre";
  const norm = kind === "rms" ? "RMSNorm" : "LayerNorm";
  const around = (layer) => (pre ? `x + ${layer}(${norm}(x))` : `${norm}(x + ${layer}(x))`);
  const cross = n.part === "cross";
  const sines = positions === "sinusoidal";
  const added = Boolean(n.matrices.positions);
  const relu = activation === "relu";
  const inner = Boolean(n.matrices.ff_inner);
  const asked = pre ? "x̂" : "x";
  const answers = cross ? "m" : asked;
  const wave = (place, of) => `PE_{(pos, ${place})} = ${of}(pos / 10000^{2i/d_{model}})`;
  const scaled = n.squares.bias ? "Q K^{T} / √d_{k} + b" : "Q K^{T} / √d_{k}";
  return [
    { name: "pieces", text: n.part === "encoder" ? null : "how.pieces.decoder", draw: pieces },
    { name: "embedding", formulas: ["x = E[id] · √d_{model}"], draw: table("E · √d_{model}", "pieces") },
    {
      name: "positions",
      text: !added ? "how.positions.inside" : sines ? null : "how.positions.learned",
      formulas: sines ? [wave("2i", "sin"), wave("2i+1", "cos")] : [],
      draw: added ? table("PE", "positions") : () => null,
    },
    {
      name: "sum",
      formulas: [`x = E[id] · √d_{model}${added ? " + PE" : ""}`],
      draw: stack(table("x", "embedded"),
        (n.layer > 0 || cross) && table(localize("how.sum.layer", { layer: n.layer + 1 }), "x")),
    },
    {
      name: "qkv",
      text: cross ? "how.qkv.cross" : null,
      formulas: [
        ...(pre ? [`x̂ = ${norm}(x)`] : []),
        `Q = ${asked} W^{Q}_{i}`, `K = ${answers} W^{K}_{i}`, `V = ${answers} W^{V}_{i}`,
      ],
      draw: stack(table("Q", "q"), table("K", "k", "columns"), table("V", "v", "columns")),
    },
    { name: "scores", formulas: ["Q K^{T}"], draw: square("scores") },
    { name: "scaled", text: n.squares.bias ? "how.scaled.bias" : null, formulas: [scaled], draw: square("scaled") },
    {
      name: "mask",
      text: n.seen ? null : "how.mask.none",
      formulas: n.seen ? [`${scaled}, −∞`] : [],
      draw: square("masked"),
    },
    { name: "softmax", formulas: [`softmax(${scaled})`], draw: square("weights") },
    {
      name: "weighted",
      formulas: [`head_{i} = softmax(${scaled}) V`],
      draw: stack(mixture, table("head_{i}", "heads")),
    },
    {
      name: "concat",
      formulas: ["MultiHead(Q, K, V) = Concat(head_{1}, …, head_{h}) W^{O}"],
      draw: stack(table("Concat", "joined"), table("Concat · W^{O}", "attended")),
    },
    {
      name: "add",
      text: pre ? "how.add.pre" : null,
      formulas: [around("Attention")],
      draw: stack(table("x", "x"), table("x + Attention", "attention_sum"), !pre && table(norm, "attention_out")),
    },
    {
      name: "ff",
      text: !inner ? "how.ff.experts" : relu ? null : "how.ff.other",
      formulas: relu && inner ? ["FFN(x) = max(0, x W_{1} + b_{1}) W_{2} + b_{2}"] : [],
      draw: stack(inner && table("x W_{1} + b_{1}", "ff_inner"),
        inner && table(relu ? "max(0, ·)" : activation, "ff_active"), table("FFN(x)", "ff_output")),
    },
    {
      name: "add2",
      text: pre ? "how.add.pre" : null,
      formulas: [around("FFN")],
      draw: stack(table("x + FFN(x)", "ff_sum"), !pre && table(norm, "ff_out")),
    },
    { name: "next", formulas: [`P(y_{t} | y_{<t}, x) = softmax(x ${shared ? "E" : "W"}^{T})`], draw: nextWords },
  ];
}

// ------------------------------------------------------------------------------------------ drawing

function stack(...parts) {
  return (...given) => h("div", { class: "stack" }, parts.filter(Boolean).map((one) => one(...given)));
}

// Draws a matrix by its name; its rows are the pieces that attend, or those attended to.
function table(name, key, rows = "rows") {
  return (n, place, focus) => numbers(name, n.matrices[key], n[rows], place, rows === "rows" ? focus : null);
}

// Makes a word that can be chosen to be shown in detail.
function word(text, row, place, focus) {
  if (!focus) return h("span", { class: "piece" }, text);
  const pressed = String(row === place.focus);
  return h("button", { type: "button", class: "piece", "aria-pressed": pressed, onclick: () => focus(row) }, text);
}

function pieces(n) {
  return h("ol", { class: "pieces" }, n.rows.map((text, i) =>
    h("li", {}, h("span", { class: "text" }, text), h("span", { class: "score" }, n.ids[i]))));
}

// Draws a matrix as its words, the first numbers of each row, and a colour map.
function numbers(name, packed, rows, place, focus) {
  const m = unpackMatrix(packed, place.head);
  const coloured = m.map.shape.at(-1);
  const first = Array.from({ length: Math.min(m.first.shape.at(-1), FIRST) }, (_, d) => d);
  const strip = drawSignedHeatmap(m.map.values, m.rows, coloured, 127, { role: "img", "aria-label": localize("how.map", { name }) });
  const which = localize(coloured === m.columns ? "how.all" : "how.first", { shown: coloured, columns: m.columns });
  const row = (text, r) => h("tr", { class: focus && r === place.focus ? "lit" : null },
    h("th", { scope: "row" }, word(text, r, place, focus)), first.map((d) => h("td", {}, formatNumber(m.first.at(r, d)))));
  return h("figure", { class: "numbers" },
    h("figcaption", {}, h("b", {}, formulaParts(name)),
      h("span", {}, `${m.rows} × ${m.columns.toLocaleString()}`), h("span", { class: "hint" }, which)),
    h("div", { class: "sheet" },
      h("table", {},
        h("thead", {}, h("tr", {}, h("th", {}), first.map((d) => h("th", { scope: "col" }, d + 1)))),
        h("tbody", {}, rows.map(row))),
      h("div", { class: "strip" }, strip)));
}

// Draws the scores in one of their four states, as numbers if they fit, else in colours; and the row in focus.
function square(state) {
  return (n, place, focus) => {
    const values = stateOf(n, place.head, state);
    const draw = n.columns.length <= WRITTEN_COLUMNS ? cells : state === "weights" ? weightsOf : coloursOf;
    return h("div", { class: "two" }, draw(n, values, state, place, focus), worked(n, place, state, focus));
  };
}

// Returns the scores of a head as they are, scaled, masked, or as weights; only these are sent as such.
function stateOf(n, head, state) {
  if (state === "weights") return unpackArray(n.squares.weights).get(head);
  const scores = unpackArray(n.squares.scores).get(head);
  if (state === "scores") return scores;
  const bias = n.squares.bias ? unpackArray(n.squares.bias).get(head) : null;
  const seen = state === "masked" && n.seen ? unpackArray(n.seen) : null;
  const root = Math.sqrt(n.facts.d_k);
  return scores.map((value, i) => (seen && !seen.values[i] ? -Infinity : value / root + (bias?.values[i] ?? 0)));
}

function peakOf(values) {
  return values.values.reduce((peak, value) => (Number.isFinite(value) ? Math.max(peak, Math.abs(value)) : peak), 0);
}

function cells(n, values, state, place, focus) {
  const weights = state === "weights";
  const peak = weights ? 1 : peakOf(values) || 1;
  const number = (value) => {
    const cell = h("td", { class: value < 0 ? "below" : "above" }, weights ? value.toFixed(2) : formatNumber(value));
    cell.style.setProperty("--strength", Number.isFinite(value) ? Math.abs(value) / peak : 0);
    return cell;
  };
  const row = (text, r) => h("tr", { class: r === place.focus ? "lit" : null },
    h("th", { scope: "row" }, word(text, r, place, focus)), n.columns.map((_, c) => number(values.at(r, c))));
  return h("div", { class: "scroll" }, h("table", { class: "cells" },
    h("thead", {}, h("tr", {}, h("th", {}), n.columns.map((text) => h("th", { scope: "col" }, h("span", {}, text))))),
    h("tbody", {}, n.rows.map(row))));
}

function weightsOf(n, values) {
  return drawMatrix(values, n.rows, n.columns, localize("how.softmax"));
}

function coloursOf(n, values, state) {
  const looks = { role: "img", "aria-label": localize(`how.${state === "masked" ? "mask" : state}`) };
  const picture = drawSignedHeatmap(values.values, n.rows.length, n.columns.length, peakOf(values), looks);
  return h("div", { class: "matrix" }, h("div", { class: "scroll" }, frameMatrix(picture, n.rows, n.columns).frame));
}

// Lists one word's row, from the product to the weight.
function worked(n, place, state, focus) {
  const order = ["scores", "scaled", "masked", "weights"];
  const shown = order.slice(0, order.indexOf(state) + 1).filter((name) => name !== "masked" || n.seen);
  const arrays = shown.map((name) => [name, stateOf(n, place.head, name)]);
  const scaled = n.squares.bias ? "/ √d_{k} + b" : "/ √d_{k}";
  const heading = { scores: "q · k", scaled, masked: localize("how.mask"), weights: "softmax" };
  const number = (name, value) => h("td", {}, name === "weights" ? [shareBar(value), value.toFixed(3)] : formatNumber(value));
  return h("div", { class: "worked" },
    select(localize("how.word"), n.rows.map((text, i) => [i, text]), place.focus, (row) => focus(Number(row))),
    h("table", { class: "small" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, localize("how.key")),
        shown.map((name) => h("th", { scope: "col" }, formulaParts(heading[name]))))),
      h("tbody", {}, n.columns.map((text, c) => h("tr", {}, h("th", { scope: "row" }, text),
        arrays.map(([name, values]) => number(name, values.at(place.focus, c))))))));
}

// Writes out the weighted sum for the first number of the word in focus.
function mixture(n, place) {
  const weights = unpackArray(n.squares.weights).get(place.head).row(place.focus);
  const values = unpackMatrix(n.matrices.v, place.head).first;
  const result = unpackMatrix(n.matrices.heads, place.head).first.at(place.focus, 0);
  const terms = n.columns.map((text, c) => ({ text, weight: weights[c], value: values.at(c, 0) }));
  terms.sort((a, b) => b.weight - a.weight);
  const rest = terms.slice(4).reduce((sum, one) => sum + one.weight * one.value, 0);
  const term = ({ text, weight, value }, i) => [i ? " + " : "",
    h("span", { class: "term" }, `${weight.toFixed(3)} · ${formatNumber(value)}`, h("small", {}, text))];
  return h("p", { class: "sum" }, h("b", {}, n.rows[place.focus]), localize("how.weighted.first"), " ",
    terms.slice(0, 4).map(term),
    terms.length > 4 ? [` + ${formatNumber(rest)}`, h("small", {}, ` ${localize("how.weighted.rest")}`)] : null,
    " = ", h("b", {}, formatNumber(result)));
}

// Lists the likeliest next pieces after the softmax over the vocabulary.
function nextWords(n, place, focus) {
  const read = [localize("how.bos"), ...n.said.slice(0, -1)];
  const at = Math.min(place.target ?? (n.part === "encoder" ? 0 : place.focus), n.said.length - 1);
  const chance = ([text, logit, share]) => h("li", { class: text === n.said[at] ? "said" : null },
    h("span", { class: "what" }, text), shareBar(share), h("span", { class: "score" }, formatPercent(share)),
    h("span", { class: "score pale" }, localize("how.logit", { logit: logit.toFixed(2) })));
  return h("div", { class: "stack" },
    numbers("x", n.matrices.features, read, place, null),
    select(localize("how.after"), read.map((text, i) => [i, `${i + 1}. ${text}`]), at, (target) => {
      place.target = Number(target);
      focus(place.focus);
    }),
    h("p", { class: "so-far" }, n.said.slice(0, at).join(" ").replaceAll(" ·", ""), " ", h("b", {}, "?")),
    h("ol", { class: "chances" }, n.next[at].map(chance)));
}

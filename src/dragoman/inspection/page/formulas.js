// Writes numbers and formulas as HTML.

import { h } from "./dom.js";

export function formatNumber(value) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const text = size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
  return text.replace("-", Number(text) === 0 ? "" : "−");
}

export function formatPercent(share) {
  return share >= 0.1 ? `${Math.round(share * 100)} %` : `${(share * 100).toFixed(1)} %`;
}

// Writes x^{a} with a superscript, x_{b} with a subscript, and x^{a}_{b} with both.
export function formulaParts(text) {
  const inside = "\\{((?:[^{}]|\\{[^{}]*\\})*)\\}";
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(new RegExp(`\\^${inside}_${inside}|([_^])${inside}`, "g"))) {
    parts.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    const [, above, below, mark, only] = found;
    parts.push(mark
      ? h(mark === "_" ? "sub" : "sup", {}, formulaParts(only))
      : h("span", { class: "both" }, h("sup", {}, formulaParts(above)), h("sub", {}, formulaParts(below))));
  }
  return [...parts, text.slice(end)].filter(Boolean);
}

export function formula(text) {
  return h("p", { class: "formula" }, formulaParts(text));
}

// Draws a share as the length of a bar.
export function shareBar(share) {
  const filled = h("i", {});
  filled.style.width = `${100 * share}%`;
  return h("span", { class: "bar-of" }, filled);
}

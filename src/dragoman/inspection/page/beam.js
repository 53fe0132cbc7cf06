// Draws beam search as a tree that grows step by step.

import { formatFixed, h, replaceContent, s, select } from "./dom.js";
import { localize } from "./texts.js";

const SIZES = [1, 2, 3, 4, 5, 6, 8];
const [WIDE, HIGH, BOX, EDGE] = [118, 46, 92, 14]; // pixels: of a step, a hypothesis, its box, around all

export function beamSection(source, showError) {
  const body = h("div", {});
  let beam = 4;
  const section = h("details", { class: "beam" },
    h("summary", {}, localize("beam")), h("p", { class: "hint" }, localize("beam.how")), body);
  section.addEventListener("toggle", () => section.open && !body.childElementCount && begin());

  async function begin() {
    section.classList.add("busy");
    try {
      const found = await source.beam(beam);
      if (found) {
        beam = found.beam;
        const sizes = select(localize("beam.size"), SIZES.map((n) => [n, n]), beam, (n) => {
          beam = Number(n);
          begin();
        });
        replaceContent(body, beamTree(found, sizes));
      }
    } catch (error) {
      showError(error);
    }
    section.classList.remove("busy");
  }
  return section;
}

// Draws an answer of /v1/beam.
export function beamTree(found, sizes) {
  const nodes = found.branches.map((one, id) => ({ ...one, id }));
  const last = Math.max(...nodes.map((one) => one.step));
  const winner = new Set();
  for (let id = nodes.findIndex((one) => one.rank === 1); id >= 0; id = nodes[id].parent) winner.add(id);
  const lanes = place(nodes, last);
  let step = last;

  const drawing = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": localize("beam") });
  const told = h("div", { class: "told", "aria-live": "polite" });
  const range = h("input", {
    type: "range", min: 1, max: last, value: step, "aria-label": localize("beam.step"),
    oninput: (event) => to(Number(event.target.value)),
  });
  const count = h("span", { class: "count" });
  const move = (by) => to(Math.max(1, Math.min(last, step + by)));

  function to(next) {
    step = next;
    range.value = step;
    draw();
  }

  function draw() {
    replaceContent(count, localize("beam.at", { step, last }));
    // Candidates that were let go are drawn for the step that is looked at, and only there.
    const shown = nodes.filter((one) => one.step === step || (one.step < step && one.fate !== "dropped"));
    const high = 1 + Math.max(...shown.map((one) => lanes.get(one.id)));
    const x = (one) => EDGE + one.step * WIDE;
    const y = (one) => EDGE + lanes.get(one.id) * HIGH;
    const [width, height] = [2 * EDGE + step * WIDE + BOX, 2 * EDGE + high * HIGH - 8];
    const path = (one) => {
      const from = nodes[one.parent];
      const [x1, y1, x2, y2] = [x(from) + BOX, y(from) + 16, x(one), y(one) + 16];
      return s("path", { class: kind(one), d: `M${x1} ${y1}C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}` });
    };
    const box = (one) => s("g", { class: `branch ${kind(one)}`, transform: `translate(${x(one)} ${y(one)})` },
      s("title", {}, describe(one)),
      s("rect", { width: BOX, height: 34, rx: 7 }),
      s("text", { x: BOX / 2, y: 15, class: "piece" }, short(one.piece)),
      s("text", { x: BOX / 2, y: 28, class: "sum" }, one.step ? formatFixed(one.score ?? one.total) : ""),
      one.rank ? s("text", { x: BOX - 6, y: 11, class: "rank" }, `#${one.rank}`) : null);
    const view = { width, height, viewBox: `0 0 ${width} ${height}` };
    const picture = s("svg", { class: "tree", ...view, role: "img", "aria-label": localize("beam") },
      s("g", { class: "joints" }, shown.filter((one) => one.parent >= 0).map(path)), shown.map(box));
    replaceContent(drawing, picture);
    requestAnimationFrame(() => (drawing.scrollLeft = width));
    const here = shown.filter((one) => one.step === step);
    const heading = ["hypothesis", "piece", "total", "fate"].map((name) => h("th", { scope: "col" }, localize(`beam.${name}`)));
    replaceContent(told, h("table", { class: "small" },
      h("thead", {}, h("tr", {}, heading)),
      h("tbody", {}, here.sort((a, b) => b.total - a.total).map((one) => h("tr", { class: one.fate },
        h("td", {}, spelled(one)), h("td", {}, formatFixed(one.log_prob, 2)), h("td", {}, formatFixed(one.total, 2)),
        h("td", {}, localize(`fate.${one.fate}`), one.score === null ? "" : ` ${formatFixed(one.score, 2)}`))))));
  }

  const kind = (one) => `${one.fate}${winner.has(one.id) ? " winner" : ""}`;
  const describe = (one) => `${spelled(one)}\n${formatFixed(one.log_prob, 3)}, ${localize("beam.total")} ${formatFixed(one.total, 3)}`;

  function spelled(one) {
    const pieces = [];
    for (let at = one; at.parent >= 0; at = nodes[at.parent]) pieces.unshift(at.piece);
    return pieces.join(" ").replaceAll(" ·", "").replace(/ ([.,;:!?])/g, "$1");
  }

  const root = h("div", { class: "search" },
    h("div", { class: "bar" }, sizes,
      arrow("←", localize("previous"), () => move(-1)), range, arrow("→", localize("next"), () => move(1)), count),
    drawing, told,
    h("ol", { class: "results" }, found.results.map((text) => h("li", {}, text))));
  draw();
  return root;
}

function arrow(text, label, act) {
  return h("button", { type: "button", class: "quiet", "aria-label": label, onclick: act }, text);
}

// Gives every hypothesis of a step a row: first those kept, then those ended, then those dropped.
function place(nodes, last) {
  const lanes = new Map();
  const order = { kept: 0, ended: 1, dropped: 2 };
  for (let step = 0; step <= last; step++) {
    const here = nodes.filter((one) => one.step === step);
    here.sort((a, b) => order[a.fate] - order[b.fate] || b.total - a.total);
    here.forEach((one, lane) => lanes.set(one.id, lane));
  }
  return lanes;
}

function short(text) {
  return text.length > 12 ? `${text.slice(0, 11)}…` : text;
}

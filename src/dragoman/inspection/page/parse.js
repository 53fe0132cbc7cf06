// View 4 shows parses as trees.

import { latestOnly } from "./api.js";
import { debounce, h, replaceContent, s, select } from "./dom.js";
import { localize } from "./texts.js";

const [STEP, GAP, TOP] = [50, 18, 22];

export function parseView(root, { shared, showError, parsers }) {
  const question = latestOnly();
  let parser = parsers()[0].name;
  const input = h("textarea", {
    id: "to-parse", rows: "3", placeholder: localize("parse.type"), value: shared.parse, "aria-label": localize("parse.sentence"),
  });
  const trees = h("div", { class: "trees", "aria-live": "polite" });
  replaceContent(root, h("div", { class: "bar" }, parsers().length < 2 ? null
    : select(localize("model"), parsers().map((one) => [one.name, one.name]), parser, (name) => {
        parser = name;
        begin();
      })), h("div", { class: "pane" }, input), trees);

  async function begin() {
    shared.parse = input.value;
    const text = input.value.split("\n").filter((line) => line.trim()).join("\n");
    if (!text) {
      question.stop();
      return replaceContent(trees, h("p", { class: "hint" }, localize("parse.hint")));
    }
    trees.classList.add("busy");
    try {
      const found = await question("/v1/parse", { text, model: parser });
      if (!found) return;
      replaceContent(trees, found.parses.filter(Boolean).map(figure));
      showError(null);
    } catch (error) {
      showError(error);
    }
    trees.classList.remove("busy");
  }
  input.addEventListener("input", debounce(400, begin));
  begin();
  if (matchMedia("(min-width: 700px)").matches) input.focus();
}

function figure(parse) {
  const confidence = localize("parse.confidence", { share: (100 * parse.confidence).toFixed(1) });
  return h("figure", {}, h("div", { class: "scroll" }, treePicture(parse)),
    h("figcaption", {},
      h("span", { class: "score", title: localize("parse.confidence.what") }, confidence),
      h("details", {}, h("summary", {}, localize("parse.brackets")), h("code", {}, parse.tree))));
}

// Reads a bracketing as nested { label, children, word }; the words come from a list of their own.
export function readTree({ tree, words }) {
  const coming = [...words];
  const root = { label: "", children: [] };
  const open = [root];
  for (const token of tree.match(/\(|\)|[^\s()]+/g)) {
    if (token === "(") {
      const node = { label: null, children: [] };
      open.at(-1).children.push(node);
      open.push(node);
    } else if (token === ")") open.pop();
    else if (open.at(-1).label === null) open.at(-1).label = token;
    else open.at(-1).word = coming.shift();
  }
  return root.children[0];
}

// Draws labels above their children, and the words on one line below.
export function treePicture(parse) {
  const tree = readTree(parse);
  const measure = ruler();
  let right = GAP;
  let deepest = 0;
  const nodes = [];
  (function arrange(node, depth) {
    node.depth = depth;
    nodes.push(node);
    deepest = Math.max(deepest, depth);
    if (node.word !== undefined) {
      const width = Math.max(measure(node.word, "word"), measure(node.label, "tag"));
      node.x = right + width / 2;
      right += width + GAP;
      return;
    }
    for (const child of node.children) arrange(child, depth + 1);
    node.x = (node.children[0].x + node.children.at(-1).x) / 2;
  })(tree, 0);
  const bottom = TOP + deepest * STEP;
  const y = (node) => (node.word === undefined ? TOP + node.depth * STEP : bottom);
  const [width, height] = [Math.ceil(right), bottom + 42];
  const joints = nodes.flatMap((node) => node.children.map((child) => {
    const turn = TOP + child.depth * STEP - 20;
    return `M${node.x} ${y(node) + 8}L${child.x} ${turn}${y(child) - 20 > turn ? `V${y(child) - 20}` : ""}`;
  }));
  const view = { width, height, viewBox: `0 0 ${width} ${height}` };
  return s("svg", { class: "parse-tree", ...view, role: "img", "aria-label": parse.tree },
    s("path", { class: "joints", d: joints.join("") }),
    nodes.map((node) => node.word === undefined
      ? s("text", { class: "label", x: node.x, y: y(node) }, node.label)
      : [s("text", { class: "tag", x: node.x, y: bottom }, node.label),
          s("text", { class: "word", x: node.x, y: bottom + 26 }, node.word)]));
}

function ruler() {
  const context = h("canvas").getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;
  return (text, kind) => {
    context.font = `${kind === "word" ? 16 : 13}px ${family}`;
    return context.measureText(text).width;
  };
}

// Draws attention as a heat map, as a matrix, and with lines as the paper does.

import { cssColour, h, headColour, replaceContent, s } from "./dom.js";

const ROW = 24; // pixels of a word
const THRESHOLD = 0.02; // a weight below this could not be seen

// Draws weights as pixels, the greater the stronger.
export function drawHeatmap(weights, attributes) {
  const [rows, columns] = weights.shape;
  const canvas = h("canvas", { width: columns, height: rows, class: "heat", ...attributes });
  const ink = cssColour("accent");
  paint(canvas, rows, columns, (i) => [...ink, 255 * Math.min(1, weights.values[i]) ** 0.6]);
  return canvas;
}

// Draws signed numbers as pixels, in one colour above 0 and another below; `peak` is the strongest.
export function drawSignedHeatmap(values, rows, columns, peak, attributes) {
  const canvas = h("canvas", { width: columns, height: rows, class: "heat", ...attributes });
  const [above, below] = [cssColour("accent"), cssColour("contrast")];
  paint(canvas, rows, columns, (i) => {
    const v = Number.isFinite(values[i]) ? values[i] / (peak || 1) : 0;
    return [...(v < 0 ? below : above), 255 * Math.min(1, Math.abs(v)) ** 0.7];
  });
  return canvas;
}

function paint(canvas, rows, columns, pixel) {
  if (!rows || !columns) return;
  const image = new ImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) image.data.set(pixel(i), 4 * i);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// Draws a line from each word to those it attends to, as opaque as the weight, in its head's colour.
// `heads` are [{ head, weights }]. Pointing at a word shows its lines alone, and a click keeps them.
export function drawAttentionLines(heads, count, rows, columns, words) {
  let held = null;
  let over = null;
  const height = ROW * Math.max(rows.length, columns.length);
  const drawing = s("svg", {
    class: "strokes", viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", "aria-hidden": "true",
  });
  drawing.style.height = `${height}px`;
  const piece = (what, ...inside) => h("button", {
    type: "button", class: "piece", "aria-pressed": "false", onclick: () => hold(what),
    onmouseenter: () => point(what), onmouseleave: () => point(null),
    onfocus: () => point(what), onblur: () => point(null),
  }, ...inside);
  const left = rows.map((text, t) => piece({ row: t }, text));
  const right = columns.map((text, c) => piece({ column: c }, h("span", { class: "squares" }), text));
  const told = h("p", { class: "told", "aria-live": "polite" });

  function point(what) {
    over = what;
    draw();
  }

  function hold(what) {
    held = held && held.row === what.row && held.column === what.column ? null : what;
    left.forEach((button, t) => button.setAttribute("aria-pressed", String(held?.row === t)));
    right.forEach((button, c) => button.setAttribute("aria-pressed", String(held?.column === c)));
    draw();
  }

  function draw() {
    const from = over ?? held;
    const strokes = [];
    const hues = heads.map(({ head }) => headColour(head, count));
    heads.forEach(({ weights }, place) => {
      const shift = 10 * ((place + 0.5) / heads.length - 0.5);
      for (let t = 0; t < rows.length; t++) {
        if (from?.row !== undefined && from.row !== t) continue;
        for (let c = 0; c < columns.length; c++) {
          if (from?.column !== undefined && from.column !== c) continue;
          const weight = weights.at(t, c);
          if (weight < THRESHOLD) continue;
          strokes.push(s("line", {
            x1: 0, y1: ROW * (t + 0.5), x2: 100, y2: ROW * (c + 0.5) + shift,
            stroke: hues[place], "stroke-opacity": Math.min(1, weight),
          }));
        }
      }
    });
    replaceContent(drawing, strokes);
    const strength = (t, c) => Math.max(...heads.map(({ weights }) => weights.at(t, c)));
    // Says whether a word is neither pointed at nor attended to much from there.
    const pale = (mine, other) => Boolean(from) && !mine && !(other >= 0.1);
    left.forEach((button, t) => button.classList.toggle("pale", pale(from?.row === t, strength(t, from?.column))));
    right.forEach((button, c) => {
      button.classList.toggle("pale", pale(from?.column === c, strength(from?.row, c)));
      replaceContent(button.firstChild, from?.row === undefined ? [] : heads.map(({ weights }, place) => {
        const square = h("i", { title: `${(100 * weights.at(from.row, c)).toFixed(1)} %` });
        square.style.background = hues[place];
        square.style.opacity = weights.at(from.row, c);
        return square;
      }));
    });
    replaceContent(told, from?.row === undefined ? "" : words(rows[from.row], best(from.row)));
  }

  // Returns the words that a word attends to most, over the heads.
  function best(t) {
    const shares = columns.map((text, c) => {
      const sum = heads.reduce((total, { weights }) => total + weights.at(t, c), 0);
      return { text, share: sum / heads.length };
    });
    return shares.sort((a, b) => b.share - a.share).slice(0, 3).filter((one) => one.share >= 0.005);
  }

  draw();
  return h("div", { class: "lines" },
    h("div", { class: "drawing" },
      h("div", { class: "side" }, left), drawing, h("div", { class: "side right" }, right)),
    told);
}

// Puts the words of a matrix beside its picture; returns { frame, down, across, size of a cell }.
export function frameMatrix(picture, rows, columns) {
  const size = Math.max(8, Math.min(26, Math.floor(Math.min(520, innerWidth - 150) / columns.length)));
  picture.style.width = `${size * columns.length}px`;
  picture.style.height = `${size * rows.length}px`;
  const down = h("div", { class: "down" }, rows.map((text) => h("span", {}, text)));
  const across = h("div", { class: "across" }, columns.map((text) => h("span", {}, text)));
  const frame = h("div", { class: "grid" }, h("div", {}), across, down, picture);
  frame.style.setProperty("--cell", `${size}px`);
  return { frame, down, across, size };
}

// Draws a matrix with its words: those of the rows attend to those of the columns.
export function drawMatrix(weights, rows, columns, label) {
  const picture = drawHeatmap(weights, { role: "img", "aria-label": label });
  const { frame, down, across, size } = frameMatrix(picture, rows, columns);
  const told = h("p", { class: "told", "aria-hidden": "true" }, "\u00a0");
  const mark = (t, c) => {
    [...down.children].forEach((one, i) => one.classList.toggle("lit", i === t));
    [...across.children].forEach((one, i) => one.classList.toggle("lit", i === c));
  };
  picture.addEventListener("mousemove", (event) => {
    const box = picture.getBoundingClientRect();
    const place = (length, offset) => Math.min(length - 1, Math.max(0, Math.floor(offset / size)));
    const [t, c] = [place(rows.length, event.clientY - box.top), place(columns.length, event.clientX - box.left)];
    mark(t, c);
    replaceContent(told, `${rows[t]} → ${columns[c]}: ${(100 * weights.at(t, c)).toFixed(1)} %`);
  });
  picture.addEventListener("mouseleave", () => {
    mark(-1, -1);
    replaceContent(told, "\u00a0");
  });
  return h("div", { class: "matrix" }, h("div", { class: "scroll" }, frame), told);
}

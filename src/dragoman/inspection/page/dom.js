// Elements, made in one line each.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => (child ?? false) !== false));
  return element;
}

// An HTML element; a function under "onclick" and the like listens.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// An SVG element.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// New children instead of the old; what had the focus has it again, if there is one like it.
export function replaceContent(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? named(document.activeElement) : null;
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  const all = focused ? [...parent.querySelectorAll("button, select, input, textarea")] : [];
  all.find((one) => named(one) === focused)?.focus();
  return parent;
}

function named(element) {
  return `${element.tagName} ${element.id || element.getAttribute("aria-label") || element.textContent}`;
}

// A button that stays pressed.
export function toggle(text, pressed, act, attributes) {
  const looks = { type: "button", class: "toggle", "aria-pressed": String(pressed), onclick: act };
  return h("button", { ...looks, ...attributes }, text);
}

// One tab of a list of them.
export function tab(name, text, chosen, act) {
  return h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", "aria-selected": String(chosen),
    tabindex: chosen ? "0" : "-1", onclick: () => act(name),
  }, text);
}

// One of several, side by side: buttons of which one is pressed.
export function buttonGroup(label, options, chosen, act) {
  return h("div", { class: "choice", role: "group", "aria-label": label },
    options.map(([value, text]) => toggle(text, value === chosen, () => act(value))));
}

export function select(label, options, chosen, act) {
  return h("label", { class: "field" }, h("span", {}, label),
    h("select", { "aria-label": label, onchange: (event) => act(event.target.value) },
      options.map(([value, text]) => h("option", { value, selected: String(value) === String(chosen) }, text))));
}

// A number with so many places, and a true minus.
export function formatFixed(value, places = 2) {
  return value.toFixed(places).replace("-", "−");
}

// Calls of the last moment become one.
export function debounce(milliseconds, act) {
  let timer = 0;
  const wait = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
  wait.cancel = () => clearTimeout(timer);
  return wait;
}

// A colour of the style sheet as [red, green, blue].
export function cssColour(name) {
  const probe = h("span", { class: `probe ${name}` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
}

// The colour of a head, of its own hue.
export function headColour(head, heads) {
  const { colorScheme } = getComputedStyle(document.documentElement);
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches;
  const dark = colorScheme === "dark" || (colorScheme !== "light" && preferred);
  return `hsl(${Math.round((head / heads) * 360 + 215) % 360} ${dark ? "70% 68%" : "65% 42%"})`;
}

// Makes elements in one line each.

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

// Makes an HTML element; a function under "onclick" and the like becomes its listener.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// Makes an SVG element.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Replaces the children; an element like the one that had the focus gets it again.
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

// Makes a button that stays pressed.
export function toggle(text, pressed, act, attributes) {
  const defaults = { type: "button", class: "toggle", "aria-pressed": String(pressed), onclick: act };
  return h("button", { ...defaults, ...attributes }, text);
}

// Makes one tab of a list of tabs.
export function tab(name, text, chosen, act) {
  return h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", "aria-selected": String(chosen),
    tabindex: chosen ? "0" : "-1", onclick: () => act(name),
  }, text);
}

// Makes a row of buttons of which one is pressed.
export function buttonGroup(label, options, chosen, act) {
  return h("div", { class: "choice", role: "group", "aria-label": label },
    options.map(([value, text]) => toggle(text, value === chosen, () => act(value))));
}

export function select(label, options, chosen, act) {
  return h("label", { class: "field" }, h("span", {}, label),
    h("select", { "aria-label": label, onchange: (event) => act(event.target.value) },
      options.map(([value, text]) => h("option", { value, selected: String(value) === String(chosen) }, text))));
}

// Writes a number with so many decimal places, and with a true minus sign.
export function formatFixed(value, places = 2) {
  return value.toFixed(places).replace("-", "−");
}

// Returns a function that acts once it has not been called again for so long.
export function debounce(milliseconds, act) {
  let timer = 0;
  const wait = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
  wait.cancel = () => clearTimeout(timer);
  return wait;
}

// Returns a colour of the style sheet as [red, green, blue].
export function cssColour(name) {
  const probe = h("span", { class: `probe ${name}` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
}

// Returns the colour of a head; each has its own hue.
export function headColour(head, heads) {
  const { colorScheme } = getComputedStyle(document.documentElement);
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches;
  const dark = colorScheme === "dark" || (colorScheme !== "light" && preferred);
  return `hsl(${Math.round((head / heads) * 360 + 215) % 360} ${dark ? "70% 68%" : "65% 42%"})`;
}

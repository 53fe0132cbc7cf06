// Lets requests be tried on the page of the API's reference.

const KEY = "dragoman-key"; // the same as on the main page
const keyField = document.getElementById("key");

function start() {
  const theme = localStorage.getItem("dragoman-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  keyField.parentElement.hidden = false;
  keyField.value = sessionStorage.getItem(KEY) ?? "";
  keyField.addEventListener("input", () => sessionStorage.setItem(KEY, keyField.value));
  for (const form of document.querySelectorAll("form.try")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form);
    });
  }
}

// Returns the address and the options of fetch for what a form holds.
function makeRequest(form) {
  const { api, method } = form.dataset;
  const headers = {};
  const key = keyField.value.trim();
  if (key && api === "DeepL") headers.authorization = `DeepL-Auth-Key ${key}`;
  else if (key) headers.authorization = `Bearer ${key}`;
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const fields = new FormData();
  for (const input of form.querySelectorAll("input")) {
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.type === "file" && input.files.length) fields.append(input.name, input.files[0]);
    else if (input.dataset.in === "form" && input.value) fields.append(input.name, input.value);
    else if (input.dataset.in === "query" && input.value) query.append(input.name, input.value);
  }
  const options = { method: method.toUpperCase(), headers };
  const text = form.querySelector("textarea");
  if (text) {
    headers["content-type"] = "application/json";
    const body = JSON.parse(text.value);
    if (key && api === "LibreTranslate") body.api_key = key;
    options.body = JSON.stringify(body);
  } else if (options.method === "POST") {
    if (key && api === "LibreTranslate") fields.set("api_key", key);
    options.body = fields;
  }
  return [`${query}` ? `${path}?${query}` : path, options];
}

async function send(form) {
  const status = form.querySelector("output");
  const answer = form.querySelector(".answer");
  const button = form.querySelector("button");
  answer.hidden = true;
  button.disabled = true;
  const began = performance.now();
  try {
    const response = await fetch(...makeRequest(form));
    const note = () => `${response.status}, ${Math.round(performance.now() - began)} ms`;
    status.textContent = note();
    answer.textContent = "";
    answer.hidden = false;
    await read(response, answer);
    status.textContent = note();
  } catch (error) {
    const isJson = error instanceof SyntaxError;
    status.textContent = isJson ? `The body is not JSON: ${error.message}` : "The service does not answer.";
  } finally {
    button.disabled = false;
  }
}

// Writes an answer as it comes; JSON is laid out when it is complete.
async function read(response, place) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    place.textContent += decoder.decode(part.value, { stream: true });
  }
  if (!response.headers.get("content-type")?.startsWith("application/json")) return;
  place.textContent = JSON.stringify(JSON.parse(place.textContent), null, 2);
}

start();

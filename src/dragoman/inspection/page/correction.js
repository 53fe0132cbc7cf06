// A form to correct a translation, sentence by sentence; the server keeps what was changed, if it keeps corrections.

import { request } from "./api.js";
import { h, replaceContent } from "./dom.js";
import { localize } from "./texts.js";

// Makes the form, closed behind a button. `current` returns { pairs, said }: each sentence with its translation as the
// page shows it, and the translations as the server gave them. `kept` is called when corrections are kept.
export function correctionForm({ file, current, model, kept, showError }) {
  const root = h("section", { class: "correction", hidden: true });
  const status = h("p", { class: "hint", role: "status" });

  let answered = { sentences: "", message: "" };
  const sentences = () => JSON.stringify(current().pairs.map(([text]) => text));

  // What became of a correction is said as long as the same sentences are shown.
  function say(message) {
    answered = { sentences: sentences(), message };
    close();
  }

  function close() {
    root.hidden = !file || !current().pairs.length;
    status.textContent = answered.sentences === sentences() ? answered.message : "";
    replaceContent(root, status, h("button", { type: "button", class: "quiet", onclick: open }, localize("correct")));
  }

  function open() {
    const { pairs, said } = current();
    const fields = pairs.map(([, translated], n) => h("textarea", {
      rows: "2", value: translated, "aria-labelledby": `corrected-${n}`, class: "corrected",
    }));
    const send = async (event) => {
      event.preventDefault();
      const changed = pairs.map(([text], n) => [text, fields[n].value.trim(), said[n]])
        .filter(([, wanted, before]) => wanted !== before.trim());
      if (!changed.length) return say(localize("correct.same"));
      try {
        await request("/v1/corrections", {
          model: model(), text: changed.map(([text]) => text), translation: changed.map(([, wanted]) => wanted),
        });
        showError(null);
        say(localize("correct.kept"));
        kept();
      } catch (error) {
        showError(error);
      }
    };
    replaceContent(root, h("form", { onsubmit: send },
      h("h2", {}, localize("correct")),
      pairs.map(([text], n) => h("div", { class: "sentence-pair" }, h("p", { class: "hint", id: `corrected-${n}` }, text), fields[n])),
      h("p", { class: "consent" }, localize("correct.consent", { file })),
      h("div", { class: "bar" },
        h("button", { class: "primary" }, localize("correct.keep")),
        h("button", { type: "button", class: "quiet", onclick: () => close() }, localize("correct.cancel")))));
    fields[0]?.focus();
  }

  return { root, close };
}

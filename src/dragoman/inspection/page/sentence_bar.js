// The field above views 2 and 3 for the sentence that they show.

import { h } from "./dom.js";
import { localize } from "./texts.js";

export function sentenceBar(context, change) {
  const { shared, example } = context;
  shared.sentence ||= shared.text.split("\n").map((line) => line.trim()).find(Boolean) ?? example();
  const field = h("input", {
    type: "text", value: shared.sentence, placeholder: localize("type"), "aria-label": localize("sentence"), autocomplete: "off",
  });
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim() !== shared.sentence) {
      shared.sentence = field.value.trim();
      shared.text = shared.sentence;
      shared.translation = "";
    }
    change();
  };
  return h("form", { class: "sentence", onsubmit: submit },
    context.modelChoice(change), field, h("button", { class: "primary" }, localize("look")));
}

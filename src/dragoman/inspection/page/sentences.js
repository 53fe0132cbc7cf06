// The sentences of a text and of its translation: where each stands, and how one is put in place of another.

const LETTER = /[\p{L}\p{N}]/gu;

export function countWords(text) {
  return text.split(/\s+/).filter(Boolean).length;
}

// Where sentences stand in the text that they make up, or null for one that cannot be found. Only letters and digits
// are compared: a line may have been broken anywhere within a sentence, and its lines may be quoted.
export function locate(whole, sentences) {
  const all = [...whole.matchAll(LETTER)];
  let next = 0;
  return sentences.map((sentence) => {
    const wanted = [...sentence.matchAll(LETTER)];
    let first = next;
    while (first + wanted.length <= all.length && wanted.some((one, i) => all[first + i][0] !== one[0])) first++;
    if (!wanted.length || first + wanted.length > all.length) return null;
    next = first + wanted.length;
    const [lead, tail] = [sentence.slice(0, wanted[0].index), sentence.slice(endOf(wanted.at(-1)))];
    const [start, end] = [all[first].index, endOf(all[next - 1])];
    return {
      start: whole.slice(0, start).endsWith(lead) ? start - lead.length : start,
      end: whole.startsWith(tail, end) ? end + tail.length : end,
    };
  });
}

const endOf = (match) => match.index + match[0].length;

// The number of the sentence that a word of a translation stands in, and what of the sentence stands before the word.
export function sentenceAt({ text, pairs }, word) {
  const at = [...text.matchAll(/\S+/g)][word].index;
  const spans = locate(text, pairs.map(([, translated]) => translated));
  const number = spans.findIndex((span) => span && span.start <= at && at < span.end);
  if (number < 0) return null;
  const translated = pairs[number][1];
  const before = [...text.slice(spans[number].start, at).matchAll(LETTER)].length;
  const place = [...translated.matchAll(LETTER)][before]?.index ?? translated.length;
  return { number, prefix: translated.slice(0, translated.lastIndexOf(" ", place) + 1).trim() };
}

// A translation of a source with another translation of one sentence, whose words keep their alignment.
export function replaceSentence(found, source, number, one) {
  const span = locate(found.text, found.pairs.map(([, translated]) => translated))[number];
  const place = locate(source, found.pairs.map(([sentence]) => sentence))[number];
  const first = countWords(found.text.slice(0, span.start));
  const end = first + countWords(found.text.slice(span.start, span.end));
  const moved = countWords(one.text) - (end - first);
  const sourceFirst = place ? countWords(source.slice(0, place.start)) : 0;
  const others = (found.alignment ?? []).filter(([, t]) => t < first || t >= end).map(([s, t]) => [s, t < end ? t : t + moved]);
  return {
    ...found,
    text: found.text.slice(0, span.start) + one.text + found.text.slice(span.end),
    score: one.score,
    words: [],
    pairs: found.pairs.map((pair, n) => (n === number ? [pair[0], one.text] : pair)),
    alignment: [...others, ...(one.alignment ?? []).map(([s, t]) => [s + sourceFirst, t + first])],
    alternatives: found.pairs.length === 1 ? one.alternatives ?? [] : [],
  };
}

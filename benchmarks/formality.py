"""Measure how often a translation addresses its reader as it was asked to.

    python benchmarks/formality.py OUT --language de --steps 600

Pairs of English and German or Korean are made from templates, each sentence in every formality
that the language has; no English sentence of the test set occurs in training. A small model is
trained on them in OUT with `data.formality`, as any corpus would be, and translates the test set
with each wish, and with none. What is counted is how many translations have the formality that was
asked for, by the rules of `dragoman.text.formality`, and how many are the very sentence.
"""

from __future__ import annotations

import argparse
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from dragoman.inference import Translator, load
from dragoman.text.formality import FORMALITIES, formality_of
from dragoman.training.run import train

WISHES = {"formal": "more", "polite": "polite", "informal": "less"}
"""What a user asks for to get a formality."""
SETTINGS = (
    "tokenizer.vocabulary=600",
    "model.d_model=64",
    "model.d_ff=256",
    "training.batch_tokens=1024",
    "training.learning_rate=0.006",
    "training.warmup_steps=40",
    "training.validate_sentences=20",
    "training.checkpoint_every=100000",
    "training.validate_every=100000",
    "training.device=cpu",
)


class Example(NamedTuple):
    """Hold an English sentence, and its translation in each formality, if it has any."""

    source: str
    targets: dict[str, str]


# --- German ---

GERMAN_NOUNS = {
    "key": ("der", "Schlüssel"), "book": ("das", "Buch"), "bag": ("die", "Tasche"),
    "ticket": ("die", "Karte"), "letter": ("der", "Brief"), "bicycle": ("das", "Fahrrad"),
    "camera": ("die", "Kamera"), "coat": ("der", "Mantel"), "phone": ("das", "Telefon"),
    "umbrella": ("der", "Schirm"), "watch": ("die", "Uhr"), "suitcase": ("der", "Koffer"),
}  # fmt: skip
GERMAN_VERBS = {  # the past participle of English; infinitive, du, imperative, past participle
    "buy": ("bought", "kaufen", "kaufst", "kauf", "gekauft"),
    "find": ("found", "finden", "findest", "finde", "gefunden"),
    "sell": ("sold", "verkaufen", "verkaufst", "verkauf", "verkauft"),
    "bring": ("brought", "bringen", "bringst", "bring", "gebracht"),
    "show": ("shown", "zeigen", "zeigst", "zeig", "gezeigt"),
    "paint": ("painted", "malen", "malst", "mal", "gemalt"),
    "clean": ("cleaned", "putzen", "putzt", "putz", "geputzt"),
    "need": ("needed", "brauchen", "brauchst", "brauch", "gebraucht"),
}
GERMAN_ADVERBS = {
    "today": "heute", "tomorrow": "morgen", "now": "jetzt", "here": "hier", "again": "wieder",
}  # fmt: skip
GERMAN_ADJECTIVES = {"new": "neu", "old": "alt", "red": "rot", "heavy": "schwer"}
ACCUSATIVE = {"der": "den", "das": "das", "die": "die"}
POSSESSIVE_ENDINGS = {"der": "en", "das": "", "die": "e"}


def german() -> Iterator[Example]:
    """Yield every sentence that the German templates make."""
    for (noun, (article, word)), (verb, forms) in product(
        GERMAN_NOUNS.items(), GERMAN_VERBS.items()
    ):
        done, infinitive, du, imperative, participle = forms
        thing, ending = f"{ACCUSATIVE[article]} {word}", POSSESSIVE_ENDINGS[article]
        formal, informal = f"Ihr{ending} {word}", f"dein{ending} {word}"
        yield Example(
            f"Have you {done} your {noun}?",
            {
                "formal": f"Haben Sie {formal} {participle}?",
                "informal": f"Hast du {informal} {participle}?",
            },
        )
        for english, adverb in GERMAN_ADVERBS.items():
            yield Example(
                f"Do you {verb} the {noun} {english}?",
                {
                    "formal": f"{infinitive.capitalize()} Sie {adverb} {thing}?",
                    "informal": f"{du.capitalize()} du {adverb} {thing}?",
                },
            )
            yield Example(
                f"{english.capitalize()} you must {verb} the {noun}.",
                {
                    "formal": f"{adverb.capitalize()} müssen Sie {thing} {infinitive}.",
                    "informal": f"{adverb.capitalize()} musst du {thing} {infinitive}.",
                },
            )
            yield Example(
                f"Please {verb} your {noun} {english}.",
                {
                    "formal": f"Bitte {infinitive} Sie {adverb} {formal}.",
                    "informal": f"Bitte {imperative} {adverb} {informal}.",
                },
            )
    for (noun, (article, word)), (english, adjective) in product(
        GERMAN_NOUNS.items(), GERMAN_ADJECTIVES.items()
    ):
        own = "e" if article == "die" else ""
        yield Example(
            f"Is your {noun} {english}?",
            {
                "formal": f"Ist Ihr{own} {word} {adjective}?",
                "informal": f"Ist dein{own} {word} {adjective}?",
            },
        )
        for other, translation in GERMAN_ADVERBS.items():  # these address nobody
            said = f"{article.capitalize()} {word} ist {translation} {adjective}."
            yield Example(f"The {noun} is {english} {other}.", {"": said})


# --- Korean ---

KOREAN_NOUNS = {
    "key": "열쇠", "book": "책", "bag": "가방", "ticket": "표", "letter": "편지",
    "bicycle": "자전거", "camera": "카메라", "coat": "코트", "phone": "전화기",
    "umbrella": "우산", "watch": "시계", "picture": "그림",
}  # fmt: skip
KOREAN_VERBS = {  # the past participle of English; 합니다, 해요, 하니, 한다, and the past stem
    "buy": ("bought", "삽니", "사요", "사니", "산다", "샀"),
    "look for": ("looked for", "찾습니", "찾아요", "찾니", "찾는다", "찾았"),
    "sell": ("sold", "팝니", "팔아요", "파니", "판다", "팔았"),
    "see": ("seen", "봅니", "봐요", "보니", "본다", "봤"),
    "bring": ("brought", "가져옵니", "가져와요", "가져오니", "가져온다", "가져왔"),
    "use": ("used", "씁니", "써요", "쓰니", "쓴다", "썼"),
    "wash": ("washed", "씻습니", "씻어요", "씻니", "씻는다", "씻었"),
    "draw": ("drawn", "그립니", "그려요", "그리니", "그린다", "그렸"),
}
KOREAN_ADVERBS = {
    "today": "오늘", "tomorrow": "내일", "now": "지금", "here": "여기에서", "again": "다시",
}  # fmt: skip
KOREAN_ADJECTIVES = {
    "small": ("작습니다", "작아요", "작다"), "large": ("큽니다", "커요", "크다"),
    "expensive": ("비쌉니다", "비싸요", "비싸다"), "good": ("좋습니다", "좋아요", "좋다"),
}  # fmt: skip


def korean() -> Iterator[Example]:
    """Yield every sentence that the Korean templates make."""
    for (noun, word), (verb, forms) in product(KOREAN_NOUNS.items(), KOREAN_VERBS.items()):
        done, formal, polite, asked, plain, past = forms
        thing = word + ("을" if _has_final(word) else "를")
        yield _korean_example(
            f"Have you {done} the {noun}?", f"{thing} {past}", "습니까?", "어요?", "어?"
        )
        for english, adverb in KOREAN_ADVERBS.items():
            before = f"{adverb} {thing} "
            yield _korean_example(
                f"Do you {verb} the {noun} {english}?",
                *(before, f"{formal}까?", f"{polite[:-1]}요?", f"{asked}?"),
            )
            yield _korean_example(
                f"I {verb} the {noun} {english}.",
                *(before, f"{formal}다.", f"{polite}.", f"{plain}."),
            )
            yield _korean_example(
                f"{english.capitalize()} I have {done} the {noun}.",
                *(f"{before}{past}", "습니다.", "어요.", "다."),
            )
    for (noun, word), (english, forms) in product(KOREAN_NOUNS.items(), KOREAN_ADJECTIVES.items()):
        topic = word + ("은" if _has_final(word) else "는")
        for other, adverb in KOREAN_ADVERBS.items():
            yield _korean_example(
                f"The {noun} is {english} {other}.",
                f"{topic} {adverb} ",
                *(f"{form}." for form in forms),
            )


def _korean_example(source: str, before: str, *endings: str) -> Example:
    kinds = FORMALITIES["ko"]
    return Example(source, {k: before + end for k, end in zip(kinds, endings, strict=True)})


def _has_final(word: str) -> bool:
    return (ord(word[-1]) - ord("가")) % 28 > 0


# --- training and testing ---

TEMPLATES = {"de": german, "ko": korean}


def split_examples(language: str) -> tuple[list[Example], list[Example]]:
    """Return examples to train on, and a tenth to test with, by the English sentence."""
    sets: tuple[list[Example], list[Example]] = ([], [])
    for one in TEMPLATES[language]():
        sets[zlib.crc32(one.source.encode()) % 10 == 0].append(one)
    return sets


def train_model(language: str, out: Path, steps: int, *settings: str) -> Path:
    """Train a small model on the templates, and return its directory."""
    out.mkdir(parents=True, exist_ok=True)
    examples, _ = split_examples(language)
    pairs = [(one.source, target) for one in examples for target in one.targets.values()]
    files = [out / f"corpus.{code}" for code in ("en", language)]
    for side, file in enumerate(files):
        file.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    assignments = [*SETTINGS, "data.formality=0.5", f"training.steps={steps}", *settings]
    outcome = train("phrasebook", *files, run=out / "run", assignments=assignments, quiet=True)
    assert outcome.model is not None
    return outcome.model


def count_right(
    translator: Translator, language: str, examples: list[Example]
) -> dict[str, tuple[int, int, int]]:
    """Return for each formality how many translations have it, are exact, and were asked for."""
    found = {}
    addressed = [one for one in examples if "" not in one.targets]
    for kind in FORMALITIES[language]:
        said = translator.translate([one.source for one in addressed], formality=WISHES[kind])
        texts = [one.text for one in said]
        right = sum(formality_of(text, language) == kind for text in texts)
        exact = sum(text == one.targets[kind] for text, one in zip(texts, addressed, strict=True))
        found[kind] = (right, exact, len(texts))
    return found


def main() -> None:
    """Train, translate and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--language", choices=TEMPLATES, default="de")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    values = parser.parse_args()
    language = values.language
    model = train_model(language, values.out, values.steps, *values.set)
    translator = load(model, device="cpu")
    _, examples = split_examples(language)
    for kind, (right, exact, count) in count_right(translator, language, examples).items():
        print(f"{WISHES[kind]}: {right} of {count} {kind}, {right / count:.1%}; exact: {exact}")
    plain = translator.translate([one.source for one in examples])
    kinds = Counter(formality_of(one.text, language) or "none" for one in plain)
    exact = sum(
        found.text in one.targets.values() for found, one in zip(plain, examples, strict=True)
    )
    print(f"default: {dict(kinds)}; exact in any: {exact} of {len(plain)}")


if __name__ == "__main__":
    main()

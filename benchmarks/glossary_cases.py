"""Count how often a glossary's terms stand in a sentence as they should.

    python benchmarks/glossary_cases.py --model de=runs/demo-de/run/model \\
        --model ko=runs/demo-ko/run/model

The cases are sentences of the phrasebook with one noun of theirs in a glossary, in all the numbers
and cases that occur: its own translation, that of another noun that the model knows, or a word that
it has never seen. The phrasebook itself says how the sentence would be with that word: with the
article, the adjective, the relative pronoun and the particle that go with it.
"""

from __future__ import annotations

import argparse
import collections
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from random import Random

import dragoman
from dragoman.inference import Glossary, Translator
from dragoman.phrasebook.annotated_tree import leaves_and_bracketing, text
from dragoman.phrasebook.english import sentences as english
from dragoman.phrasebook.german import sentences as german
from dragoman.phrasebook.german import words as german_words
from dragoman.phrasebook.german.words import GermanNoun
from dragoman.phrasebook.korean import sentences as korean
from dragoman.phrasebook.korean import words as korean_words
from dragoman.phrasebook.lexicon import NOUNS
from dragoman.phrasebook.meaning import NounPhrase
from dragoman.phrasebook.sampling import SentenceSampler
from dragoman.phrasebook.split import is_test

NEW_GERMAN = [
    GermanNoun("m", "Köter", "Köter"), GermanNoun("m", "Wagen", "Wagen"),
    GermanNoun("m", "Kollege", "Kollegen", weak=True), GermanNoun("m", "Gaul", "Gäule"),
    GermanNoun("m", "Turm", "Türme"), GermanNoun("m", "Elefant", "Elefanten", weak=True),
    GermanNoun("m", "Gegenstand", "Gegenstände"), GermanNoun("m", "Frühling", "Frühlinge"),
    GermanNoun("f", "Bleibe", "Bleiben"), GermanNoun("f", "Hütte", "Hütten"),
    GermanNoun("f", "Limonade", "Limonaden"), GermanNoun("f", "Wohnung", "Wohnungen"),
    GermanNoun("f", "Chefin", "Chefinnen"), GermanNoun("f", "Person", "Personen"),
    GermanNoun("f", "Eigenschaft", "Eigenschaften"), GermanNoun("f", "Wand", "Wände"),
    GermanNoun("n", "Fahrzeug", "Fahrzeuge"), GermanNoun("n", "Gebäude", "Gebäude"),
    GermanNoun("n", "Kätzchen", "Kätzchen"), GermanNoun("n", "Domizil", "Domizile"),
    GermanNoun("n", "Kinderbuch", "Kinderbücher"), GermanNoun("n", "Ereignis", "Ereignisse"),
    GermanNoun("n", "Zentrum", "Zentren"), GermanNoun("n", "Geschenk", "Geschenke"),
]  # fmt: skip
NEW_KOREAN = """
강아지 자가용 물건 건물 동물 인형 꽃병 연필 지갑 담요
우산 호랑이 코끼리 별장 술 트럭 칼 로봇 골목길 마법사
"""
KINDS = ("own", "known", "new")
EXACT = "of what is exact without"


@dataclass(frozen=True)
class Case:
    """Hold a sentence, a term with its translation, and what the sentence should become."""

    kind: str
    source: str
    term: str
    translation: str
    plain: str
    """This is the sentence's translation without the glossary."""
    gold: str
    same_gender: bool


def make_cases(language: str, count: int, seed: int) -> list[Case]:
    """Return cases, as many of each kind, the same for the same arguments."""
    random = Random(f"glossary {language} {seed}")
    sampler = SentenceSampler(random)
    cases: list[Case] = []
    seen: set[str] = set()
    while len(cases) < count:
        sentence = sampler.sentence()
        if not is_test(sentence):
            continue
        nouns = sorted({one.noun for one in noun_phrases(sentence)})
        if not nouns:
            continue
        source = said(english.realise(sentence))
        if source in seen or source.count(" ") > 20:
            continue
        seen.add(source)
        noun = random.choice(nouns)
        kind = KINDS[len(cases) % len(KINDS)]
        realise = {"de": german.realise, "ko": korean.realise}[language]
        plain = said(realise(sentence))
        with swapped(language, noun, kind, random) as (translation, same_gender):
            gold = said(realise(sentence))
        cases.append(Case(kind, source, noun, translation, plain, gold, same_gender))
    return cases


def said(tree: object) -> str:
    """Return the sentence of a tree."""
    return text(leaves_and_bracketing(tree)[0])  # type: ignore[arg-type]


def noun_phrases(node: object) -> Iterator[NounPhrase]:
    """Yield the noun phrases of a meaning."""
    if isinstance(node, NounPhrase):
        yield node
    if is_dataclass(node):
        for field in fields(node):
            yield from noun_phrases(getattr(node, field.name))


@contextmanager
def swapped(language: str, noun: str, kind: str, random: Random) -> Iterator[tuple[str, bool]]:
    """Give a noun of the phrasebook another word for a while, and say which, and of what gender."""
    table = german_words.NOUNS if language == "de" else korean_words.NOUNS
    old = table[noun]
    others = [key for key in NOUNS if key != noun and NOUNS[key].kinds & NOUNS[noun].kinds]
    if kind == "own" or (kind == "known" and not others):
        new = old
    elif kind == "known":
        new = table[random.choice(others)]
    else:
        new = random.choice(NEW_GERMAN if language == "de" else NEW_KOREAN.split())
    if language == "ko":
        new = replace(old, word=new if isinstance(new, str) else new.word)
    table[noun] = new
    try:
        if language == "de":
            yield new.singular, new.gender == old.gender
        else:
            yield new.word, True
    finally:
        table[noun] = old


def judge(case: Case, output: str) -> tuple[bool, bool, bool]:
    """Return whether the term has its form, no other word is lost, and all is as it should be."""
    gold, plain, found = (tokens(one) for one in (case.gold, case.plain, output))
    if case.kind == "own":
        stem = case.translation[:3]
        forms = collections.Counter(w for w in gold.elements() if w[:3] == stem)
    else:
        forms = gold - plain
        stem = case.translation[: max(1, min(3, len(case.translation) - 1))]
        changed = collections.Counter(
            w for w in forms.elements() if w[:1] == stem[:1] or len(forms) == 1
        )
        forms = changed or forms
    return not forms - found, not (gold - forms) - found, output == case.gold


def tokens(sentence: str) -> collections.Counter[str]:
    """Return the words of a sentence."""
    return collections.Counter(re.findall(r"\w+", sentence))


def measure(translator: Translator, cases: list[Case], show: int) -> None:
    """Translate the cases and print a table."""
    started = time.perf_counter()
    rows: dict[str, list[tuple[bool, bool, bool]]] = collections.defaultdict(list)
    plain = translator.translate([case.source for case in cases])
    exact = sum(one.text == case.plain for one, case in zip(plain, cases, strict=True))
    for case, one in zip(cases, plain, strict=True):
        glossary = Glossary([(case.term, case.translation, 1)])
        output = translator.translate(case.source, glossary=glossary).text
        result = judge(case, output)
        gender = "" if case.kind != "new" else (" same" if case.same_gender else " other gender")
        rows[case.kind + gender].append(result)
        if one.text == case.plain:
            rows[EXACT].append(result)
        if not result[2] and show:
            show -= 1
            print(f"{case.kind}  {case.term} = {case.translation}  {result}")
            print(f"  {case.source}\n  {one.text}\n  {output}\n  {case.gold}")
    seconds = time.perf_counter() - started
    print(f"{len(cases)} cases, {exact} exact without a glossary, {seconds:.0f} s")
    every = [result for name, results in rows.items() if name != EXACT for result in results]
    for name, results in [*sorted(rows.items()), ("all", every)]:
        term, others, whole = (sum(column) for column in zip(*results, strict=True))
        print(f"{name:26} {len(results):5}  term {term:4}  others {others:4}  exact {whole:4}")


def main() -> None:
    """Measure the models that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", required=True, metavar="LANGUAGE=PATH")
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="wrong ones to print")
    arguments = parser.parse_args()
    for model in arguments.model:
        language, _, path = model.partition("=")
        print(f"English to {language}")
        cases = make_cases(language, arguments.count, arguments.seed)
        measure(dragoman.load(path), cases, arguments.show)


if __name__ == "__main__":
    main()

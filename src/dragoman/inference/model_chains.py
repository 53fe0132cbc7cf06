"""A chain is the model, or the two models one after another, that translate between two languages.

Everything that finds a model by languages does so here: the command line, the service and
`dragoman.load("de-ko")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import ConfigError, ModelError
from dragoman.model_directory import read_languages
from dragoman.system.installed_models import find_installed_model, installed_models
from dragoman.text.languages import language_name, parse_pair, primary_code, same_language
from dragoman.text.wrong_language import find_other_language, recognize_language

Pair = tuple[str, str]
"""These are the codes of a source's and a target's language."""


# --- joining pairs ---


def join_pairs(pairs: Sequence[Pair]) -> dict[Pair, tuple[int, ...]]:
    """Return every pair that some models can translate, with the numbers of the models it takes.

    The models have these `pairs`. Of several with one pair the first is taken; where no model has a
    pair, two are that share a language, English before others.
    """
    direct: dict[Pair, tuple[int, ...]] = {}
    for number, pair in enumerate(pairs):
        if _find(direct, *pair) is None:
            direct[pair] = (number,)
    joined: dict[Pair, tuple[int, ...]] = {}
    through_english = sorted(direct.items(), key=lambda one: not same_language(one[0][1], "en"))
    for (source, middle), first in through_english:
        for (other, target), second in direct.items():
            if not same_language(middle, other) or same_language(source, target):
                continue
            if _find(direct, source, target) is None and _find(joined, source, target) is None:
                joined[source, target] = (*first, *second)
    return direct | joined


def _find(known: Mapping[Pair, tuple[int, ...]], source: str, target: str) -> Pair | None:
    """Return the pair of two languages, whatever their regions."""
    for pair in known:
        if same_language(pair[0], source) and same_language(pair[1], target):
            return pair
    return None


# --- among installed models ---


@dataclass(frozen=True, slots=True)
class InstalledTranslator:
    """Hold where an installed translator is, and its languages."""

    name: str
    path: Path
    source: str
    target: str


class ModelChain(NamedTuple):
    """Hold the installed models that translate between two languages, in their order."""

    models: tuple[InstalledTranslator, ...]

    @property
    def pair(self) -> Pair:
        """Return the languages that it translates from and to."""
        return self.models[0].source, self.models[-1].target


def installed_translators() -> list[InstalledTranslator]:
    """Return the installed translators; one that is named by its languages comes first."""
    found = []
    for name, path in installed_models().items():
        if languages := read_languages(path):
            found.append(InstalledTranslator(name, path, *languages))
    return sorted(found, key=lambda one: one.name != f"{one.source}-{one.target}")


def installed_chains() -> list[ModelChain]:
    """Return what can be translated with the installed models, direct pairs first."""
    models = installed_translators()
    joined = join_pairs([(one.source, one.target) for one in models])
    return [ModelChain(tuple(models[i] for i in numbers)) for numbers in joined.values()]


def find_named_chain(name: Path | str) -> ModelChain | None:
    """Return the chain that a pair such as de-ko names, if it names nothing else that there is."""
    pair = parse_pair(str(name))
    if pair is None or Path(name).is_dir() or find_installed_model(str(name)) is not None:
        return None
    for chain in installed_chains():
        if all(map(same_language, chain.pair, pair)):
            return chain
    return None


def choose_chain(text: str, source: str | None = None, target: str | None = None) -> ModelChain:
    """Return the installed models for a text: from its language, or `source`, to `target`.

    Without a target there must be only one language that models translate to from the text's own.
    Raise an error that says what would help where there is no such chain.
    """
    chains = installed_chains()
    if not chains:
        name = f"{source or 'en'}-{target or 'de'}"
        raise ModelError(
            f"no translator is installed; get one, as in: dragoman get {name}, or give a model "
            "directory"
        )
    fitting = [
        one
        for one in chains
        if (source is None or same_language(one.pair[0], source))
        and (target is None or same_language(one.pair[1], target))
    ]
    if not fitting:
        raise ModelError(_describe_unreachable(chains, text, source, target))
    if source is None:
        source = _choose_source(chains, fitting, text, target)
        fitting = [one for one in fitting if same_language(one.pair[0], source)]
    direct = [one for one in fitting if len(one.models) == 1]
    if target is None and len(direct or fitting) > 1:
        choices = ", ".join(f"--to {one.pair[1]}" for one in fitting)
        raise ConfigError(f"several languages can be translated to from {source}; add {choices}")
    return (direct or fitting)[0]


def _choose_source(
    chains: Sequence[ModelChain], fitting: Sequence[ModelChain], text: str, target: str | None
) -> str:
    """Return the language of a text among those that can be translated to the target."""
    sources = list(dict.fromkeys(one.pair[0] for one in fitting))
    source = recognize_language(text, sources)
    other = find_other_language(text, source)
    if other is None or any(same_language(other, one) for one in sources):
        return source if other is None else other
    if target is not None and same_language(other, target):
        raise ConfigError(
            f"the text seems to be {language_name(target)} already; --from says what else it is"
        )
    raise ModelError(_describe_unreachable(chains, text, other, target))


def _describe_unreachable(
    chains: Sequence[ModelChain], text: str, source: str | None, target: str | None
) -> str:
    """Return what to say, and what to install, where no chain has these languages."""
    known = ", ".join("-".join(one.pair) for one in chains)
    guessed = source or recognize_language(text, list({one.pair[0]: None for one in chains}))
    if target is None:
        lacking, wanted = f"from {language_name(guessed)}", (guessed, "en")
    elif source is None:
        lacking, wanted = f"to {language_name(target)}", (guessed, target)
    else:
        lacking = f"from {language_name(source)} to {language_name(target)}"
        wanted = source, target
    name = "-".join(map(primary_code, wanted))
    advice = "" if same_language(*wanted) else f"try: dragoman get {name}; "
    return f"nothing installed translates {lacking}; {advice}there are {known}"

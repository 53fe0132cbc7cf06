"""The installed translators are tried on sentences of their own languages, without training."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from dragoman.errors import DragomanError
from dragoman.inference.model_chains import installed_chains
from dragoman.inference.pivot_translator import load_chain
from dragoman.text.languages import language_name, primary_code

_SENTENCES: Final = {
    "en": (
        "Good morning! Did you sleep well?",
        "The museum is closed on Mondays, but the garden is open every day.",
        "Your password has been changed. Please sign in again.",
    ),
    "de": (
        "Guten Morgen! Haben Sie gut geschlafen?",
        "Montags ist das Museum geschlossen, aber der Garten hat jeden Tag geöffnet.",
        "Ihr Passwort wurde geändert. Bitte melden Sie sich erneut an.",
    ),
    "ko": (
        "안녕하세요! 만나서 반갑습니다.",
        "박물관은 월요일에 문을 닫지만 정원은 매일 열려 있습니다.",
        "비밀번호가 변경되었습니다. 다시 로그인하세요.",
    ),
}
"""These are translated, by the code of their language; none is of any corpus."""


def try_installed_translators(say: Callable[[str], None] = print) -> bool:
    """Translate some sentences with each installed translator; return whether there was one."""
    tried = False
    for chain in installed_chains():
        source, target = chain.pair
        sentences = _SENTENCES.get(primary_code(source))
        if sentences is None:
            continue
        tried = True
        through = "".join(f" through {language_name(one.target)}" for one in chain.models[:-1])
        title = f"{language_name(source)} to {language_name(target)}{through}"
        names = " and ".join(one.name for one in chain.models)
        try:
            begin = time.monotonic()
            translator = load_chain(chain, device="cpu")
            found = translator.translate(list(sentences))
            seconds = time.monotonic() - begin
        except DragomanError as error:
            say(f"{title} ({names}): {error}\n")
            continue
        say(f"{title} ({names}, loaded and translated in {seconds:.1f} s):")
        for one in found:
            say(f"  {one.source}\n  → {one.text}")
        say(f'Try your own:  dragoman translate "{sentences[0]}" --to {target}\n')
    return tried

"""Regular expressions are compiled when they are first used, since most texts need few of them."""

from __future__ import annotations

import re
from typing import Any, Final, cast

METHODS: Final = (
    *("match", "fullmatch", "search", "findall", "finditer", "split", "sub", "subn"),
    *("flags", "groups", "groupindex"),
)


class LazyPattern:
    """Be a regular expression that is compiled at the first use of one of its methods.

    From then on its methods are those of the compiled one, and cost no more.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"a regular expression has no attribute {name!r}")
        compiled = re.compile(self.pattern, self._given_flags)
        for one in METHODS:
            setattr(self, one, getattr(compiled, one))
        return getattr(self, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what behaves as `re.compile` of the same, but is compiled when it is first used."""
    return cast("re.Pattern[str]", LazyPattern(pattern, flags))

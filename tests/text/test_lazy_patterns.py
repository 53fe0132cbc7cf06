"""Regular expressions that are compiled when they are used."""

from __future__ import annotations

import re

import pytest

from dragoman.text.lazy_patterns import METHODS, LazyPattern, lazy_pattern


def test_a_lazy_pattern_does_what_the_compiled_one_does() -> None:
    lazy, compiled = (make(r"(?P<word>\w+)-", re.IGNORECASE) for make in (lazy_pattern, re.compile))
    assert lazy.sub(r"<\1>", "a-b-c") == compiled.sub(r"<\1>", "a-b-c") == "<a><b>c"
    assert lazy.findall("a-b-c") == ["a", "b"]
    assert (lazy.pattern, lazy.flags) == (compiled.pattern, compiled.flags)
    assert {name for name in dir(compiled) if not name.startswith("_")} == {*METHODS, "pattern"} | {
        "scanner"
    }


def test_it_is_compiled_once_and_not_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_now = re.compile
    monkeypatch.setattr(re, "compile", lambda *a: compiled.append(a) or compile_now(*a))
    pattern = lazy_pattern("a+")
    assert pattern.pattern == "a+"
    assert compiled == []
    assert [bool(pattern.match(text)) for text in ("aa", "b")] == [True, False]
    assert pattern.search("baa")
    assert compiled == [("a+", 0)]


def test_a_misspelt_method_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'serch'"):
        _ = LazyPattern("a").serch  # type: ignore[attr-defined]

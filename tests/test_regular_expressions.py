"""Python 3.11.0 to 3.11.4 do not match possessive groups as later versions do: none is used.

Possessive repetition of one character (``\\d++``, ``[^"]*+``) is the same in all of them.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import dragoman
from dragoman.text.lazy_patterns import LazyPattern
from dragoman.trees import word_tokenizer


def possessive_groups(parsed: Any) -> Iterator[str]:
    """Yield a name for each atomic group and each possessive repetition of a group."""
    for operation, argument in parsed:
        if operation is _constants.ATOMIC_GROUP:
            yield "an atomic group"
        elif operation is _constants.POSSESSIVE_REPEAT and not _compiler._simple(argument[2]):
            yield "a possessive group"
        for part in _parts(argument):
            yield from possessive_groups(part)


def _parts(argument: Any) -> Iterator[Any]:
    """Yield the patterns within an operation's argument."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for one in argument:
            yield from _parts(one)


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        (r"(?:ab?c)*+", 1),
        (r"(?>a|b)", 1),
        (r"x(y(?:ab)?+|z)", 1),
        (r"(?=(?>a))", 1),
        (r"(a)\1{2,}+", 1),
        (r"\d++[^a]*+b?+", 0),
        (r"(?:[ab])++", 0),
        (r"(?:ab)*\+", 0),
    ],
)
def test_possessive_groups_are_recognised(pattern: str, count: int) -> None:
    assert len(list(possessive_groups(_parser.parse(pattern)))) == count


def patterns_in(value: Any) -> Iterator[re.Pattern[str]]:
    """Yield the patterns in a module's value: in itself, and in what it holds."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, LazyPattern):
        yield re.compile(value.pattern, value.flags)
    elif isinstance(value, dict):
        yield from patterns_in(tuple(value.values()))
    elif isinstance(value, tuple | list | frozenset):
        for one in value:
            yield from patterns_in(one)


@pytest.mark.slow
def test_no_pattern_of_a_module_has_possessive_groups() -> None:
    patterns = [word_tokenizer._words(hyphens_apart) for hyphens_apart in (False, True)]
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not module.name.endswith(("__main__", "_kernel")):  # the latter is no module
            patterns += patterns_in(tuple(vars(importlib.import_module(module.name)).values()))
    assert len(patterns) > 100
    found = {
        one.pattern: list(possessive_groups(_parser.parse(one.pattern, one.flags)))
        for one in patterns
    }
    assert {pattern: groups for pattern, groups in found.items() if groups} == {}


def test_no_text_in_a_file_looks_like_a_possessive_group() -> None:
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")
    found = []
    for file in Path(dragoman.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += [f"{file.name}: {one}" for one in possessive.findall(node.value)]
    assert found == []

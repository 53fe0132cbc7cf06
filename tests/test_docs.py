"""The documents say what is true: links lead somewhere, commands and settings exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from dragoman.cli import app
from dragoman.config import Config, load_preset, preset_names

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "README.ko.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def blocks(path: Path) -> list[str]:
    return re.findall(r"^```.*?\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


def commands(path: Path) -> list[str]:
    """Every use of the command line in a document."""
    text = path.read_text(encoding="utf-8")
    refused = re.compile(r"^\$ .*\n(?=dragoman: )", re.M)  # shown for the error it gives
    text = refused.sub("", text)
    found = re.findall(r"\$ (?:.*\| )?(dragoman [^|#\n]+)", text)
    found += re.findall(r"`(dragoman [^`]+)`", text)
    found += [f"dragoman {rest}" for rest in re.findall(r"-m dragoman ([^|#\n]+)", text)]
    return [line.strip() for line in found]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_options_settings_and_presets_exist(path: Path) -> None:
    for line in commands(path):
        verb = line.split()[1]
        if verb.startswith("-"):
            continue
        assert verb in COMMANDS, line
        command = COMMANDS[verb]
        known = {option for parameter in command.params for option in parameter.opts}
        if hasattr(command, "commands"):
            known |= {o for sub in command.commands.values() for p in sub.params for o in p.opts}
        for option in re.findall(r"(?<!\S)(--[a-z-]+)", line):
            assert option in known | {"--help"}, line
        for section, key in re.findall(r"--set (\w+)\.(\w+)=", line):
            assert key in Config().to_dict()[section], line
        for preset in re.findall(r"--preset (\w\S*)", line):
            assert preset in (*preset_names(), "NAME") or preset.endswith(".toml"), line


def test_the_korean_readme_shows_the_same_commands_and_output() -> None:
    english, korean = (blocks(ROOT / name) for name in ("README.md", "README.ko.md"))

    def without_comments(texts: list[str]) -> list[str]:
        return [re.sub(r"\s+#.*", "", text) for text in texts]

    # The last block is the tree of files, whose explanations are translated.
    assert without_comments(english)[:-1] == without_comments(korean)[:-1]
    names = [[line.split()[0] for line in texts[-1].splitlines()] for texts in (english, korean)]
    assert names[0] == names[1]


def test_every_preset_of_the_readme_exists() -> None:
    table = re.search(r"\| pairs \| preset \|\n(.*?)\n\n", (ROOT / "README.md").read_text(), re.S)
    assert table is not None
    for name in re.findall(r"`(\w+)`", table[1]):
        load_preset(name)


def test_every_file_that_contributors_are_pointed_to_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in re.findall(r"`([\w/]+\.(?:py|md|toml))`", text):
        if path.isupper() or "NAME" in path or "LANGUAGE" in path:
            continue
        places = (ROOT, ROOT / "src" / "dragoman")
        assert any((place / path).exists() for place in places) or "/" not in path, path

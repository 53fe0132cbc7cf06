"""What `import dragoman` promises."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman import errors

from .conftest import TINY, reversals, write_pairs


def test_everything_promised_can_be_imported_and_nothing_else_is_promised() -> None:
    assert dragoman.__all__ == sorted(dragoman.__all__)
    assert set(dragoman.__all__) == set(dragoman._HOMES)
    for name in dragoman.__all__:
        assert getattr(dragoman, name).__doc__, f"{name} is documented"
        assert name in dir(dragoman)
    namespace: dict[str, object] = {}
    exec("from dragoman import *", namespace)
    assert set(dragoman.__all__) == namespace.keys() - {"__builtins__"}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'transalte'"):
        dragoman.transalte  # noqa: B018


def test_the_names_the_types_see_are_the_names_that_are_there() -> None:
    source = inspect.getsource(dragoman)
    block = source[source.index("if TYPE_CHECKING:") : source.index("__all__")]
    imported = re.findall(r"from dragoman\.(\S+) import (.+)", block)
    homes = {name: home for home, names in imported for name in names.split(", ")}
    assert homes == dragoman._HOMES


@pytest.mark.slow
@pytest.mark.parametrize("module", ["dragoman", "dragoman.cli", "dragoman.config"])
def test_importing_is_instant_because_nothing_heavy_is_imported(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert module in imported
    assert not imported & {"torch", "numpy", "sacrebleu", "matplotlib", "sentencepiece", "pandas"}


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    assert errors.__doc__ is not None
    drawn = re.findall(r"^[├└]── (\w+) +(.+)$", errors.__doc__, re.MULTILINE)
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.DragomanError)
    ]
    assert {name for name, _ in drawn} == {c.__name__ for c in classes} - {"DragomanError"}
    for name, meaning in drawn:
        assert getattr(errors, name).__base__ is errors.DragomanError
        assert getattr(errors, name).__doc__ == f"Raised when {meaning}."
    assert set(errors.__all__) == {c.__name__ for c in classes} | {"first_line"}


@pytest.mark.slow
def test_every_error_in_the_package_is_in_the_tree() -> None:
    root = Path(dragoman.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name, base in re.findall(r"^class ([A-Z]\w+)\((\w*(?:Error|Exception))\):", text, re.M):
            assert base in errors.__all__ or path.name == "errors.py", f"{path.name}: {name}"


@pytest.mark.slow
def test_the_example_of_the_package_works(tmp_path: Path) -> None:
    """The five lines of `dragoman.__doc__`, on a small corpus and with a small preset."""
    write_pairs(tmp_path, reversals(400))
    config = dragoman.Config().overridden(
        [*TINY, "training.steps=4", "training.validate_every=4", "training.checkpoint_every=2"]
    )
    (tmp_path / "tiny.toml").write_text(config.to_toml(), encoding="utf-8")
    assert dragoman.__doc__ is not None
    example = dragoman.__doc__.partition("\n\n")[2].replace('"small"', '"tiny.toml"')
    assert len([line for line in example.splitlines() if line]) <= 5
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    (model,) = tmp_path.glob("runs/*/model")
    assert done.stdout == dragoman.load(model).translate("Hello, world!").text + "\n"

"""Check that what would be released works: python tests/release_check.py, or make release-check.

It builds the sdist, and the wheel from the sdist, looks into both, installs the wheel with what
training takes in an empty environment outside the source tree, and runs the README's commands with
it, on the phrasebook and with so few training steps that they take minutes. The models they leave
are then used in another environment that has the wheel alone, and no PyTorch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHORT = ["--set", "training.steps=30", "--set", "training.validate_every=30"]
SHORT += ["--set", "training.checkpoint_every=30"]
SENTENCE = "He must wash the birds in the dark house.\n"


def main() -> None:
    """Build, install, and run everything; the first thing that fails ends it with status 1."""
    with tempfile.TemporaryDirectory(prefix="dragoman-release-") as name:
        place = Path(name)
        wheel = build(place)
        program = install(place, "environment", f"{wheel}[train]")
        run_readme(program, place)
        use_models(install(place, "small", str(wheel)), place)
    print("release-check: all passed")


def build(place: Path) -> Path:
    """Build sdist and wheel in `place`, check what is in them, and return the wheel."""
    run([sys.executable, "-m", "build", "--outdir", str(place), str(ROOT)], cwd=place)
    (sdist,) = place.glob("*.tar.gz")
    (wheel,) = place.glob("*.whl")
    with tarfile.open(sdist) as archive:
        inside = {path.partition("/")[2] for path in archive.getnames()}
    kernel = "src/dragoman/inference/cpu/kernel"
    expect(inside >= {"LICENSE", "README.md", f"{kernel}.c", f"{kernel}.h"}, f"{sdist.name}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for part in ("dragoman/py.typed", "dragoman/presets/base.toml", "/licenses/LICENSE"):
        expect(any(part in one for one in names), f"{wheel.name} has {part}")
    expect(any("/_kernel" in one for one in names), f"{wheel.name} has the compiled kernel")
    expect(any(one.endswith("index.html") for one in names), f"{wheel.name} has the page")
    expect(not any(one.startswith("tests") for one in names), f"{wheel.name} has no tests")
    return wheel


def install(place: Path, name: str, wheel: str) -> list[str]:
    """Install the wheel in a new environment; return how to call the program."""
    run([sys.executable, "-m", "venv", name], cwd=place)
    python = place / name / "bin" / "python"
    (before,) = (place / name).glob("lib/python*/site-packages")
    empty = size_on_disk(before)
    run([str(python), "-m", "pip", "install", "--quiet", "--no-compile", wheel], cwd=place)
    print(f"          {(size_on_disk(before) - empty) / 1e6:,.0f} MB installed", flush=True)
    where = run([str(python), "-c", "import dragoman; print(dragoman.__file__)"], cwd=place)
    expect(str(place) in where, f"the installed package is used: {where.strip()}")
    return [str(python), "-m", "dragoman"]


def run_readme(program: list[str], place: Path) -> None:
    """Run the commands that the README shows, each on what the ones before it made."""

    def dragoman(*words: str, stdin: str = "") -> str:
        return run([*program, *words], cwd=place, stdin=stdin)

    expect(dragoman("--version").startswith("dragoman "), "--version")
    dragoman("demo", "--steps", "30", "--out", "demo")
    corpus, dev = ["demo/train.en", "demo/train.de"], ["demo/valid.en", "demo/valid.de"]
    dragoman("doctor", *corpus)
    small = ["--preset", "phrasebook", *SHORT]
    dragoman("train", *corpus, "--valid", *dev, *small, "--out", "runs/mine")
    dragoman("prepare", *corpus, "--valid", *dev, "--preset", "phrasebook", "--out", "data")
    dragoman("train", "data", *small, "--out", "runs/prepared")
    line = ["translate", "runs/mine"]
    expect(dragoman(*line, stdin=SENTENCE).count("\n") == 1, "a line for a line")
    expect(dragoman(*line, "--n-best", "3", stdin=SENTENCE).count("\n") == 3, "three best")
    expect('"alignment"' in dragoman(*line, "--json", "--align", stdin=SENTENCE), "alignments")
    text = "The dog sleeps. He must pay $99.99.\n\n> https://example.com 😀\n"
    found = dragoman(*line, stdin=text)
    expect(found.count("\n") == 3 and "https://example.com 😀" in found, "a text comes back whole")
    (place / "page.html").write_text("<p>The <b>dog</b> sleeps.</p>", encoding="utf-8")
    dragoman(*line, "page.html")
    page = (place / "page.de.html").read_text(encoding="utf-8")
    expect(page.startswith("<p>") and page.count("<b>") == 1, "a page is translated beside itself")
    test = ["--source", "demo/test.en", "--reference", "demo/test.de"]
    expect("BLEU|" in dragoman("evaluate", "runs/mine", *test, "--beam", "1"), "evaluate")
    dragoman("quantize", "runs/mine")
    dragoman("info", "runs/mine")
    dragoman("plot", "runs/mine")
    dragoman("presets")
    dragoman("alternatives", "runs/mine", SENTENCE.strip())
    dragoman("inspect", "runs/mine", SENTENCE.strip(), "-o", "birds.html")
    dragoman("paper", "table3")
    dragoman("paper", "figures", "runs/mine")
    dragoman("demo", "--task", "parsing", "--steps", "30", "--out", "trees")
    expect(dragoman("parse", "trees/run", stdin=SENTENCE).startswith("("), "parse")
    serve(program, place, "runs/mine")


def use_models(program: list[str], place: Path) -> None:
    """Use what the README's commands trained, as int8 models, where PyTorch is not installed."""

    def dragoman(*words: str, stdin: str = "") -> str:
        return run([*program, *words], cwd=place, stdin=stdin)

    missing = run(
        [program[0], "-c", "import importlib.util as u; print(u.find_spec('torch'))"], cwd=place
    )
    expect(missing.strip() == "None", "PyTorch is not there")
    dragoman("quantize", "runs/mine", "--out", "small-mine")
    dragoman("quantize", "trees/run", "--out", "small-trees")
    line = ["translate", "small-mine"]
    expect(dragoman(*line, stdin=SENTENCE).count("\n") == 1, "a line for a line")
    expect('"alignment"' in dragoman(*line, "--json", "--align", stdin=SENTENCE), "alignments")
    expect("Haus" in dragoman(*line, "--must", "Haus", stdin=SENTENCE), "a phrase that must occur")
    dragoman(*line, "page.html", "--out", "small.html")
    dragoman("alternatives", "small-mine", SENTENCE.strip())
    dragoman("info", "small-mine")
    expect(dragoman("parse", "small-trees", stdin=SENTENCE).startswith("("), "parse")
    serve(program, place, "small-mine")


def size_on_disk(directory: Path) -> int:
    """Return how many bytes the files in a directory have."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def serve(program: list[str], place: Path, model: str) -> None:
    """Start the service on a free port, ask it once, and stop it."""
    words = [*program, "serve", f"mine={model}", "--pair", "mine=en-de", "--port", "0"]
    log = place / f"{Path(model).name}.log"
    with log.open("w") as file:
        server = subprocess.Popen(words, cwd=place, stderr=file, stdout=file)
    try:
        deadline = time.monotonic() + 60
        while "http://" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.2)
        url = log.read_text().partition("http://")[2].split('"')[0].split()[0].rstrip("/,;")
        ask = (
            "import sys, urllib.request as r, urllib.parse as p;"
            "d = p.urlencode({'q': 'He must wash the birds.', 'source': 'en', 'target': 'de'});"
            "print(r.urlopen(sys.argv[1], d.encode()).read().decode())"
        )
        answer = run([program[0], "-c", ask, f"http://{url}/translate"], cwd=place)
        expect("translatedText" in answer, "the service answers")
    finally:
        server.terminate()
        server.wait(30)


def run(words: list[str], cwd: Path, stdin: str = "") -> str:
    """Run a command in `cwd`, show it, and return its output; a failure ends everything."""
    shown = " ".join(word.replace(str(cwd), ".") for word in words[-12:])
    start = time.monotonic()
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        words, cwd=cwd, input=stdin, capture_output=True, text=True, env=clean, check=False
    )
    print(f"{time.monotonic() - start:6.1f} s  {shown}", flush=True)
    if done.returncode != 0:
        sys.exit(f"release-check: failed with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def expect(true: bool, what: str) -> None:
    """End everything with a message unless it is true."""
    if not true:
        sys.exit(f"release-check: not so: {what}")


if __name__ == "__main__":
    main()

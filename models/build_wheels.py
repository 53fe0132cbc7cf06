"""Build a wheel of each model in this directory: python models/build_wheels.py OUT."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman import __version__
from dragoman.workflows.model_packages import build_wheel


def main() -> None:
    """Read the argument and build all wheels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    for card in sorted(Path(__file__).resolve().parent.glob("*/card.json")):
        model = card.parent
        print(build_wheel(model, model.name, __version__, out))


if __name__ == "__main__":
    main()

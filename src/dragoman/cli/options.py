"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Device", "Json", "Model", "Precision", "Quiet", "Set", "Shortlist", "Window"]

Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: the GPU if there is one.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Model = Annotated[Path, typer.Argument(help="A model directory, or a run's.")]
Precision = Annotated[
    str,
    typer.Option(help="auto: int8 on a CPU, bf16 on a GPU, if the model allows; or float32, int8."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say only what matters.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; docs/config.md."),
]
Shortlist = Annotated[
    bool, typer.Option("--shortlist", help="Look at likely pieces; see dragoman shortlist.")
]
Window = Annotated[
    int | None,
    typer.Option(help="Lines read before the first is written; default: 2000, on a GPU 20000."),
]

"""Several runs in the same processes, one after the other: starting torch takes longer than a run.

torchrun … many_ranks.py JOBS, where JOBS is JSON: {"data": …, "runs": [{"config", "run",
"copy_of", "accidents"}, …]}. A run that is there is resumed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import torch
from accidents import arrange
from torch.distributed import PrefixStore

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.training import loop
from dragoman.training.distributed.ranks import Ranks, joined


def do(job: dict[str, Any], data: Prepared, ranks: Ranks) -> None:
    run = Path(job["run"])
    if "copy_of" in job and ranks.first:
        shutil.copytree(job["copy_of"], run)
    ranks.total(0)  # all wait for the copy
    undo = arrange(*job.get("accidents", []))
    loop.fit(Config.from_dict(job["config"]), data, run, resume=run.exists(), quiet=True)
    undo()


def main(jobs: Path) -> None:
    work = json.loads(jobs.read_text(encoding="utf-8"))
    data = Prepared.open(Path(work["data"]))
    with joined(torch.device("cpu")) as ranks:
        numbers = count()

        @contextmanager
        def joined_already(device: torch.device, timeout: float) -> Iterator[Ranks]:
            own = PrefixStore(str(next(numbers)), ranks.store)  # none hears another's ranks
            yield replace(ranks, store=own)

        loop.joined = joined_already  # type: ignore[assignment]
        for job in work["runs"]:
            do(job, data, ranks)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

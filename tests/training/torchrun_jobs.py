"""Several runs in the same processes, one after the other: starting torch takes longer than a run.

torchrun … torchrun_jobs.py JOBS, where JOBS is JSON: {"data": …, "runs": [{"config", "run",
"copy_of", "faults"}, …]}. A run that is there is resumed.
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
from fault_injection import inject_faults
from torch.distributed import PrefixStore

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.training import loop
from dragoman.training.distributed.ranks import Ranks, join_process_group


def run_job(job: dict[str, Any], data: Prepared, ranks: Ranks) -> None:
    run = Path(job["run"])
    if "copy_of" in job and ranks.is_first:
        shutil.copytree(job["copy_of"], run)
    ranks.sum(0)  # all wait for the copy
    undo = inject_faults(*job.get("faults", []))
    loop.fit(Config.from_dict(job["config"]), data, run, resume=run.exists(), quiet=True)
    undo()


def main(jobs: Path) -> None:
    work = json.loads(jobs.read_text(encoding="utf-8"))
    data = Prepared.open(Path(work["data"]))
    with join_process_group(torch.device("cpu")) as ranks:
        numbers = count()

        @contextmanager
        def already_joined(device: torch.device, timeout: float) -> Iterator[Ranks]:
            own = PrefixStore(
                str(next(numbers)), ranks.store
            )  # runs do not see each other's heartbeats
            yield replace(ranks, store=own)

        loop.join_process_group = already_joined  # type: ignore[assignment]
        for job in work["runs"]:
            run_job(job, data, ranks)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

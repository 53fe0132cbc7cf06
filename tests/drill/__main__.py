"""The drill: kill a run again and again, resume it each time, and compare how it ends.

    python tests/drill --kills 200

One run is left in peace. Others are killed with SIGKILL, at random moments and at the points of
kill_points.py, and resumed with `dragoman train --resume` until they are done. Each must then equal
the undisturbed one, byte for byte. Controls resume without one part of the state; for each of them
the comparison must fail.
"""

from __future__ import annotations

import argparse
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")

import dataclasses
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

from comparison import compare
from kill_points import KILL_POINTS, slow_disk
from negative_controls import CONTROLS
from run_process import (
    INTERVAL,
    STEPS,
    newest_checkpoint_step,
    newest_recorded_step,
    prepare,
    read_metrics,
    start_or_resume,
    wait,
)

AT_RANDOM = "any moment"


class Drill:
    """The undisturbed run, the killed ones, and what was found."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.draw = place, Random(seed)
        self.data = prepare(place)
        began = time.monotonic()
        self.undisturbed = place / "undisturbed"
        assert wait(start_or_resume(self.undisturbed, self.data)) == 0, self.log(self.undisturbed)
        self.seconds = time.monotonic() - began
        self.kills: Counter[str] = Counter()
        self.lost: Counter[tuple[str, bool]] = Counter()
        """The most steps lost, by kill point, and by whether the disk was slow."""
        self.runs = self.unusable = self.damaged = 0
        self.compared: Counter[str] = Counter()
        self.differing: Counter[str] = Counter()

    def log(self, run: Path) -> str:
        """What a run has said."""
        return run.with_suffix(".log").read_text(encoding="utf-8")

    # --- killing ---

    def kill_many(self, kills: int) -> None:
        """Kill so often; every run is resumed to its end."""
        for number in count(1):
            if self.kills.total() >= kills:
                return
            run = self.place / f"run-{number}"
            while self.kill_once(run, killing=self.kills.total() < kills):
                pass
            if (run / "model").exists():
                self.tally(run)
            self.damaged += self.log(run).count("falling back")
            shutil.rmtree(run, ignore_errors=True)

    def kill_once(self, run: Path, *, killing: bool) -> bool:
        """Let a run live until it is killed; False if it came to its end instead.

        One start in three has a slow disk.
        """
        name = self.choose_kill_point() if killing else "none"
        kill_point = KILL_POINTS[name].arm(self.draw) if name in KILL_POINTS else lambda: None
        delay = self.draw.choice([0, 0, self.draw.uniform(0.02, self.seconds / 10)])

        def arm() -> None:
            slow_disk(delay)
            kill_point()

        before = read_metrics(run)
        pid = start_or_resume(run, self.data, arm)
        if name == AT_RANDOM:
            time.sleep(self.draw.uniform(0, self.seconds))
            os.kill(pid, signal.SIGKILL)
        status = wait(pid)
        if status != -signal.SIGKILL:
            if status:
                self.unusable += 1
                print(f"killed {name}, it could not be resumed:\n{self.log(run)}")
            return False
        self.kills[name] += 1
        # Killed before its first step it has lost nothing, and not yet cut off what others lost.
        lost = (
            newest_recorded_step(run) - newest_checkpoint_step(run)
            if read_metrics(run) != before
            else 0
        )
        self.lost[name, delay > 0] = max(self.lost[name, delay > 0], lost)
        return True

    def choose_kill_point(self) -> str:
        """The named one that was had least often, or in one of three cases any."""
        if self.draw.random() < 1 / 3:
            return AT_RANDOM
        return min(KILL_POINTS, key=lambda name: (self.kills[name], self.draw.random()))

    def tally(self, run: Path) -> None:
        """Compare a run that has ended with the undisturbed one."""
        self.runs += 1
        for part, (compared, differing) in compare(self.undisturbed, run).items():
            self.compared[part] += compared
            self.differing[part] += differing
        self.differing["leftovers"] += len(list(run.rglob(".tmp-*")))

    # --- controls ---

    def controls(self) -> dict[str, dict[str, int]]:
        """The bytes that differ, by part, when a run is resumed without this or that."""
        half = self.place / "half"
        saved = dataclasses.replace(KILL_POINTS["after the checkpoint has its name"], calls=1)
        while newest_checkpoint_step(half) < 2 * INTERVAL:
            assert wait(start_or_resume(half, self.data, saved.arm(self.draw))) == -signal.SIGKILL
        found = {}
        for number, (name, control) in enumerate(CONTROLS.items()):
            run = self.place / f"control-{number}"
            shutil.copytree(half, run)
            assert wait(start_or_resume(run, self.data, control)) == 0, self.log(run)
            counts = compare(self.undisturbed, run)
            found[name] = {part: differing for part, (_, differing) in counts.items() if differing}
        return found

    # --- the report ---

    def report(self) -> bool:
        """Say what was found; whether nothing was lost that should not be."""
        most = [
            max((lost for (_, was), lost in self.lost.items() if was == slow), default=0)
            for slow in (False, True)
        ]
        print(f"\n{'killed':36}{'times':>6}{'most steps lost':>18}{'on a slow disk':>16}")
        for name in (AT_RANDOM, *KILL_POINTS):
            lost = [self.lost[name, slow] for slow in (False, True)]
            print(f"{name:36}{self.kills[name]:6}{lost[0]:18}{lost[1]:16}")
        print(f"{'all':36}{self.kills.total():6}{most[0]:18}{most[1]:16}")
        print(f"\n{'compared':36}{'bytes':>14}{'differing':>12}")
        for name in (*self.compared, "leftovers"):
            print(f"{name:36}{self.compared[name]:14,}{self.differing[name]:12,}")
        print(f"{'all of ' + str(self.runs) + ' runs':36}", end="")
        print(f"{self.compared.total():14,}{self.differing.total():12,}")
        print(f"\nruns that could not be resumed: {self.unusable}")
        print(f"damaged checkpoints met: {self.damaged}")
        print(f"steps to a checkpoint: {INTERVAL}; lost at most {most[0]}, or {most[1]} if slow")
        # Steps done while a checkpoint is written are lost with it; the next one waits for it.
        within = max(most) <= 2 * INTERVAL
        return within and not (self.unusable or self.damaged or self.differing.total())


def main() -> int:
    """Run the drill; 0 if it went well."""
    parser = argparse.ArgumentParser(prog="drill", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="how often to kill (200)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (1)")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="drill-") as place:
        drill = Drill(Path(place), options.seed)
        print(f"undisturbed: {STEPS} steps in {drill.seconds:.1f} s")
        drill.kill_many(options.kills)
        well = drill.report()
        print(f"\n{'control: not restored':36}differing bytes, which there must be")
        for name, found in drill.controls().items():
            text = ", ".join(f"{part} {number:,}" for part, number in found.items())
            print(f"{name:36}{text or 'NONE: the comparison sees nothing'}")
            well = well and bool(found)
    minutes = (time.monotonic() - began) / 60
    print(f"\n{'PASSED' if well else 'FAILED'} in {minutes:.1f} minutes")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())

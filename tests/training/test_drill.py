"""A short drill: killed a dozen times a run ends the same, and what is not restored is seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DRILL = Path(__file__).parent.parent / "drill"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the drill forks, and looks into /proc")
def test_killed_a_dozen_times_a_run_ends_the_same_and_every_control_fails() -> None:
    done = subprocess.run(
        [sys.executable, str(DRILL), "--kills", "12"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout

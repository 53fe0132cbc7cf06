"""The command line with accidents, at the first start of a job: ACCIDENTS="killed 1 7, …".

They wait for the file or directory AFTER: checkpoints are written behind the back of the steps.
"""

from __future__ import annotations

import os

from accidents import arrange

from dragoman.cli import main

if __name__ == "__main__":
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        arrange(*os.environ["ACCIDENTS"].split(", "))
    main()

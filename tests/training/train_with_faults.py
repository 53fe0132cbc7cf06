"""The command line with faults at the first start of a job: FAULTS="kill 1 7, …".

They wait for the file or directory AFTER, because checkpoints are written asynchronously.
"""

from __future__ import annotations

import os

from fault_injection import inject_faults

from dragoman.cli import main

if __name__ == "__main__":
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        inject_faults(*os.environ["FAULTS"].split(", "))
    main()

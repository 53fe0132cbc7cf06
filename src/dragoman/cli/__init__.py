"""The command line has a file for each group of commands, a thin layer over the Python API.

Results go to stdout, everything else to stderr. torch is imported inside the commands, so that
help answers at once.
"""

from dragoman.cli.main import app, main

__all__ = ["app", "main"]

"""``python -m dragoman`` is the command line."""

from dragoman.cli import main

main()

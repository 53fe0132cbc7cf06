"""Export of models to other runtimes and import from them, each compared with ours first."""

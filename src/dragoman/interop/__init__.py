"""Models are exported to other runtimes and imported from them, each compared with ours first."""

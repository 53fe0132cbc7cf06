"""Models: they see ids, never text."""

"""Checkpoints: written whole, read by any number of ranks."""

"""Readers: parallel text and treebanks as they lie on disk."""

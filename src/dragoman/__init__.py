"""Dragoman: the system of "Attention Is All You Need" as software."""

"""Benchmarks: how fast a step is, where its time goes, and how fast others are."""

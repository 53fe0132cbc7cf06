"""Batching: from stored pairs to batches of one static shape."""

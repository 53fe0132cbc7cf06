"""Here stored pairs become batches of one static shape."""

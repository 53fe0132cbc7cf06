"""Table 3: variations on the Transformer."""

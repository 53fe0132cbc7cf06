"""Table 2: the Transformer and what came before it, on equal terms."""

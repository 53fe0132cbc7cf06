"""How fast models translate here, ours and others."""

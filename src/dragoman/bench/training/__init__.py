"""How fast models train here, ours and others."""

"""How fast models translate on this machine, ours and others."""

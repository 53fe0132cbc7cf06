"""How fast models train on this machine, ours and others."""

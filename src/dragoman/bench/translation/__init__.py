"""These modules measure how fast models translate on this machine, ours and others."""

"""These modules measure how fast models train on this machine, ours and others."""

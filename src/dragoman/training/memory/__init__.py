"""Memory: planned before the first step, and survived when it runs out."""

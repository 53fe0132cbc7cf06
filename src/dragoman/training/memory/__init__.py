"""Memory: planned before the first step, and recovered from when it runs out all the same."""

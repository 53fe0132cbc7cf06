"""Here meanings become English sentences."""

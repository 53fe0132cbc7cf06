"""Here meanings become German sentences."""

"""Here meanings become Korean sentences."""

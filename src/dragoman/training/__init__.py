"""Training: from a prepared corpus to a run directory."""

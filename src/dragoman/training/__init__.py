"""Training: from a prepared corpus to a run directory with checkpoints and a model."""

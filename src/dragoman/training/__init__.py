"""Training makes of a prepared corpus a run directory with checkpoints and a model."""

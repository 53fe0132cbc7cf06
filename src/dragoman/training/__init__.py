"""Training makes of a prepared corpus a run directory with checkpoints and a model."""

from dragoman.system.packages import require_package

require_package("torch", "training")

"""The learning-rate schedules say how large each step is: the paper's (§5.3), and others."""

from __future__ import annotations

import math

from dragoman.config import TrainingConfig


def learning_rate(config: TrainingConfig, d_model: int, step: int) -> float:
    """Return the learning rate of a step, counted from 1, by the schedule of the config."""
    peak, warmup = config.learning_rate, config.warmup_steps
    if config.schedule == "paper":  # eq. 3
        return float(peak * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
    if step < warmup:
        return peak * step / warmup
    if config.schedule == "inverse-sqrt":
        return peak * math.sqrt(warmup / step)
    if config.schedule == "cosine":
        done = min(1.0, (step - warmup) / max(1, config.steps - warmup))
        return peak * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)
    if config.schedule == "linear":
        return peak * max(0.0, config.steps - step) / max(1, config.steps - warmup)
    return peak

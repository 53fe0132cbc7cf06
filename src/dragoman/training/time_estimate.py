"""A run on a CPU says how long it will take, and with which preset it would take less."""

from __future__ import annotations

from typing import Final

import torch

from dragoman.config import PRESET_ADVICE, Config, PresetAdvice, advise_preset, load_preset
from dragoman.messages import counted, duration
from dragoman.models import count_parameters

_WORTH_SAYING: Final = 120.0
"""A run of fewer seconds is over before anyone has planned with its estimate."""
_LONG: Final = 3600.0
"""Of a run of more seconds it is said with which preset it would take less."""
_CLEARLY_LESS: Final = 0.5
"""Another preset is named if it has less than this share of the work."""


def describe_estimate(config: Config, pairs: int, seconds: float) -> str | None:
    """Say how long a run of so many seconds takes, and which preset would take less.

    A run of a few minutes needs no announcement.
    """
    if seconds < _WORTH_SAYING:
        return None
    threads = counted(torch.get_num_threads(), "thread")
    most = "at most " if config.training.patience else ""
    text = (
        f"{most}about {duration(seconds)} of training on this CPU ({threads}), not counting "
        "validation"
    )
    if seconds > _LONG and (advice := _find_less_work(config, pairs)):
        less = seconds * _work(_with_preset(config, advice)) / _work(config)
        text += f"; --preset {advice.name}, for {advice.pairs}, takes about {duration(less)}"
    return text


def _find_less_work(config: Config, pairs: int) -> PresetAdvice | None:
    """Return the preset advised for so many pairs, or else the smallest, if it has less work."""
    if config.data.task == "parsing":
        return None
    for advice in (advise_preset(pairs), PRESET_ADVICE[0]):
        if _work(_with_preset(config, advice)) < _CLEARLY_LESS * _work(config):
            return advice
    return None


def _with_preset(config: Config, advice: PresetAdvice) -> Config:
    """Return the preset as it would be trained on the corpus of this config."""
    preset = load_preset(advice.name)
    pieces = min(preset.tokenizer.vocabulary, config.tokenizer.vocabulary)
    return preset.overridden([f"tokenizer.vocabulary={pieces}"])


def _work(config: Config) -> float:
    """Return what the arithmetic of a run is in proportion to: parameters, tokens and steps.

    Measured on a CPU, this tells the time of base, small and tiny from each other's within 15%.
    """
    parameters = count_parameters(config.model, config.tokenizer.vocabulary)
    return float(parameters) * config.training.tokens * config.training.steps

"""Make a model with random weights to time: no training, and outputs of known lengths.

    python benchmarks/random_model.py models/en-de /tmp/base --preset base --set model.norm=pre
    dragoman bench translate /tmp/base --source newstest2013.en --against ctranslate2

The tokeniser is that of the model given first, and so is the shortlist, if it has one. A bias of
the output layer rules the end out and prefers one piece, so that every system goes on to its
limit, the length of the source, and a shortlist is sure of its choice. Biases of the feed-forward
networks leave as many of their inner units at zero as training does.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dragoman.config import Config, load_preset
from dragoman.inference.cpu.shortlist import SHORTLIST_FILE, read_shortlist
from dragoman.model_directory import open_model, save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.text.special_tokens import EOS, FIRST_PIECE

ZERO_SHARE = 0.9
"""So many of the inner units of a feed-forward network are zero."""
PREFERENCE = 100.0
"""What the output layer adds to the preferred piece and takes from the end."""


def make_weights(
    config: Config, vocabulary: int, preferred: int, seed: int
) -> dict[str, torch.Tensor]:
    """Return the weights of a new model that prefers one piece, and never the end."""
    torch.manual_seed(seed)
    weights = get_weights(build(config.model, vocabulary).eval())
    deviations = torch.special.ndtri(torch.tensor(ZERO_SHARE))
    with torch.no_grad():
        for name, weight in weights.items():
            if name.endswith("feed_forward.inner.weight"):
                # Normalised inputs have a variance of 1, each unit therefore that of its weights.
                bias = weights[name.replace("weight", "bias")]
                bias.copy_(-deviations * weight.square().sum(1).sqrt())
        output_bias = weights["projection_bias"]
        output_bias[EOS] -= PREFERENCE
        output_bias[preferred] += PREFERENCE
    return weights


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the model directory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", type=Path, metavar="MODEL", help="whose tokeniser is taken")
    parser.add_argument("out", type=Path)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    other = open_model(given.tokenizer)
    own = ["model.output_bias=true", "search.max_extra=0", *given.set]
    config = load_preset(given.preset)
    config = config.overridden(own)
    has_shortlist = (other.path / SHORTLIST_FILE).exists()
    listed = read_shortlist(other).common if has_shortlist else np.arange(len(other.tokenizer))
    preferred = int(listed[listed >= FIRST_PIECE][0])
    weights = make_weights(config, len(other.tokenizer), preferred, given.seed)
    save_model(given.out, weights, config, other.tokenizer, {"name": "random weights"})
    if has_shortlist:
        shutil.copy(other.path / SHORTLIST_FILE, given.out)


if __name__ == "__main__":
    main()

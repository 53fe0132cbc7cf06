"""All the randomness of sampling: engines that are given the same numbers draw the same pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.search.options import SamplingOptions


def random_numbers(
    source: Sequence[int], longest: int, options: SamplingOptions
) -> NDArray[np.float64]:
    """Return a number of [0, 1) for each piece, and the end, of each sample of a sentence: K T.

    They depend on the seed and on the sentence's ids, EOS left out, so that batch-mates change
    nothing; and those of one more sample, or of a longer output, leave the others as they are.
    """
    key = repr((options.seed, list(source))).encode()
    seed = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest())
    samples = [
        np.random.Generator(np.random.PCG64([seed, sample])).random(longest + 1)
        for sample in range(options.samples)
    ]
    return np.stack(samples)

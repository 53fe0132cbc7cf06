"""These numbers are printed in the paper's tables, and shown beside what is measured here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Complexity:
    """Hold a row of Table 1: what one layer costs as n and d grow."""

    layer: str
    operations: str
    sequential: str
    path: str


TABLE_1: Final = (
    Complexity("self-attention", "O(n²·d)", "O(1)", "O(1)"),
    Complexity("recurrent", "O(n·d²)", "O(n)", "O(n)"),
    Complexity("convolutional", "O(k·n·d²)", "O(1)", "O(logₖ n), contiguous O(n/k)"),
    Complexity("restricted self-attention", "O(r·n·d)", "O(1)", "O(n/r)"),
)


@dataclass(frozen=True, slots=True)
class Score:
    """Hold a row of Table 2: newstest2014 BLEU and training FLOPs."""

    model: str
    en_de: float | None = None
    en_fr: float | None = None
    flops_en_de: float | None = None
    flops_en_fr: float | None = None


TABLE_2: Final = (
    Score("ByteNet", 23.75),
    Score("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    Score("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    Score("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    Score("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    Score("Deep-Att + PosUnk ensemble", None, 40.4, None, 8.0e20),
    Score("GNMT + RL ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Score("ConvS2S ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Score("Transformer (base)", 27.3, 38.1, 3.3e18),
    Score("Transformer (big)", 28.4, 41.8, 2.3e19),
)


@dataclass(frozen=True, slots=True)
class Variation:
    """Hold a row of Table 3, newstest2013 English to German; all else is as in the base model."""

    row: str
    change: str
    preset: str
    perplexity: float
    bleu: float
    parameters: float | None = None
    """Counts parameters in millions."""


TABLE_3: Final = (
    Variation("base", "", "base", 4.92, 25.8, 65),
    Variation("A", "1 head of 512", "table3-a-heads-1", 5.29, 24.9),
    Variation("A", "4 heads of 128", "table3-a-heads-4", 5.00, 25.5),
    Variation("A", "16 heads of 32", "table3-a-heads-16", 4.91, 25.8),
    Variation("A", "32 heads of 16", "table3-a-heads-32", 5.01, 25.4),
    Variation("B", "d_k 16", "table3-b-d_k-16", 5.16, 25.1, 58),
    Variation("B", "d_k 32", "table3-b-d_k-32", 5.01, 25.4, 60),
    Variation("C", "2 layers", "table3-c-layers-2", 6.11, 23.7, 36),
    Variation("C", "4 layers", "table3-c-layers-4", 5.19, 25.3, 50),
    Variation("C", "8 layers", "table3-c-layers-8", 4.88, 25.5, 80),
    Variation("C", "d_model 256", "table3-c-d_model-256", 5.75, 24.5, 28),
    Variation("C", "d_model 1024", "table3-c-d_model-1024", 4.66, 26.0, 168),
    Variation("C", "d_ff 1024", "table3-c-d_ff-1024", 5.12, 25.4, 53),
    Variation("C", "d_ff 4096", "table3-c-d_ff-4096", 4.75, 26.2, 90),
    Variation("D", "dropout 0.0", "table3-d-dropout-0.0", 5.77, 24.6),
    Variation("D", "dropout 0.2", "table3-d-dropout-0.2", 4.95, 25.5),
    Variation("D", "smoothing 0.0", "table3-d-smoothing-0.0", 4.67, 25.3),
    Variation("D", "smoothing 0.2", "table3-d-smoothing-0.2", 5.47, 25.7),
    Variation("E", "learned positions", "table3-e-learned", 4.92, 25.7),
    Variation("big", "6 layers, d_model 1024, 16 heads", "big", 4.33, 26.4, 213),
)


@dataclass(frozen=True, slots=True)
class ParserScore:
    """Hold a row of Table 4: F1 on section 23 of the Wall Street Journal."""

    parser: str
    training: str
    f1: float


TABLE_4: Final = (
    ParserScore("Vinyals & Kaiser et al. (2014)", "WSJ only", 88.3),
    ParserScore("Petrov et al. (2006)", "WSJ only", 90.4),
    ParserScore("Zhu et al. (2013)", "WSJ only", 90.4),
    ParserScore("Dyer et al. (2016)", "WSJ only", 91.7),
    ParserScore("Transformer (4 layers)", "WSJ only", 91.3),
    ParserScore("Zhu et al. (2013)", "semi-supervised", 91.3),
    ParserScore("Huang & Harper (2009)", "semi-supervised", 91.3),
    ParserScore("McClosky et al. (2006)", "semi-supervised", 92.1),
    ParserScore("Vinyals & Kaiser et al. (2014)", "semi-supervised", 92.1),
    ParserScore("Transformer (4 layers)", "semi-supervised", 92.7),
    ParserScore("Luong et al. (2015)", "multi-task", 93.0),
    ParserScore("Dyer et al. (2016)", "generative", 93.3),
)

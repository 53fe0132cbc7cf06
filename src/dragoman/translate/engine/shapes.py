"""What the weights of a Transformer are called and how large each is, without making one."""

from __future__ import annotations

from dragoman.config import ModelConfig

__all__ = ["shapes"]


def shapes(config: ModelConfig, vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Of all weights of a model that the kernel can compute."""
    width, attended = config.d_model, config.heads * config.d_k
    found: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int, *, bias: bool) -> None:
        found[f"{name}.weight"] = outputs, inputs
        if bias:
            found[f"{name}.bias"] = (outputs,)

    def attention(name: str) -> None:
        for part in ("query", "key", "value"):
            linear(f"{name}.{part}", attended, width, bias=config.attention_bias)
        linear(f"{name}.output", width, attended, bias=config.attention_bias)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = found[f"{name}.bias"] = (width,)

    def layer(name: str) -> None:
        attention(f"{name}.attention.attention")
        norm(f"{name}.around_attention.norm")
        linear(f"{name}.feed_forward.inner", config.d_ff, width, bias=True)
        linear(f"{name}.feed_forward.outer", width, config.d_ff, bias=True)
        norm(f"{name}.around_feed_forward.norm")

    for number in range(config.encoder_layers):
        layer(f"encoder.{number}")
    for number in range(config.decoder_layers):
        layer(f"decoder.{number}")
        attention(f"decoder.{number}.source_attention")
        norm(f"decoder.{number}.around_source.norm")
    if config.norm == "pre":
        norm("encoder_norm")
        norm("decoder_norm")
    found["embedding.pieces.weight"] = vocabulary, width
    if not config.shared_embeddings:
        found["target_embedding.pieces.weight"] = found["projection.weight"] = vocabulary, width
    if config.positions == "learned":
        found["embedding.positions.weight"] = config.max_positions, width
    if config.output_bias:
        found["projection_bias"] = (vocabulary,)
    return found

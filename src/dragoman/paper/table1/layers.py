"""The four layers of Table 1 are computed here: n positions of width d to n of width d.

Both attentions are Dragoman's own multi-head attention with heads of 64, as in the paper; the
recurrent layer is `nn.RNN` with tanh, the cheapest there is (an LSTM computes four times as much);
the convolution is `nn.Conv1d` looking back, as a decoder's does. Recurrence and convolution thus
lead from the first position to the last and not the other way; the attentions lead both ways.
"""

# B sentences, L positions, D width, H heads, K head width; N blocks of W queries, C keys of a block

from __future__ import annotations

from typing import Any, ClassVar, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.models.attention import MultiHeadAttention

SELF_ATTENTION: Final = "self-attention"
RECURRENT: Final = "recurrent"
CONVOLUTIONAL: Final = "convolutional"
RESTRICTED: Final = "restricted self-attention"
DILATED: Final = "convolutional, dilated"
"""The same convolution in a stack whose layer i sees positions kernel^i apart; only its path is
measured."""

LAYERS: Final = (SELF_ATTENTION, RECURRENT, CONVOLUTIONAL, RESTRICTED)
"""The layers in the order of Table 1."""

HEAD_WIDTH: Final = 64


class Layer(nn.Module):
    """Map a sequence of vectors to one of equal length (§4)."""

    projections: ClassVar[frozenset[Any]] = frozenset()
    """Names the operators that every position computes alone and that Table 1 leaves out."""
    counted_on: ClassVar[str] = "meta"
    """Names where operations are counted: by shapes alone, unless that is the slower way."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Compute the whole layer."""
        raise NotImplementedError

    def propagate_once(self, x_BLD: Tensor) -> Tensor:
        """Compute what a signal passes once between two positions: mostly the whole layer."""
        y_BLD: Tensor = self(x_BLD)
        return y_BLD


class SelfAttention(Layer):
    """Let every position attend to every position."""

    projections = frozenset({torch.ops.aten.mm})  # Q, K, V and the output: 8·n·d² in all

    def __init__(self, d: int) -> None:
        super().__init__()
        heads = d // HEAD_WIDTH if d % HEAD_WIDTH == 0 else 1
        self.attention = MultiHeadAttention(ModelConfig(d_model=d, heads=heads))

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Project to queries, keys and values; then compute softmax(QKᵀ/√d_k)V W^O."""
        return self.attend(*self.project(x_BLD))

    def project(self, x_BLD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each B H L K."""
        own = self.attention
        return own.split(own.query(x_BLD)), own.split(own.key(x_BLD)), own.split(own.value(x_BLD))

    def attend(self, q_BHLK: Tensor, k_BHLK: Tensor, v_BHLK: Tensor) -> Tensor:
        """Let all positions attend to all, and return B L D."""
        return self.attention.attend(q_BHLK, k_BHLK, v_BHLK)


class RestrictedSelfAttention(SelfAttention):
    """Let a position attend to `window` positions on each side and itself: r = 2·window + 1.

    Queries go in blocks of `window`, and each block meets its own keys and those of a window on
    either side. That is 3·window keys a query, of which a mask of the block leaves r: O(r·n·d)
    in operations and memory, and nothing is ever n × n.
    """

    def __init__(self, d: int, window: int) -> None:
        super().__init__(d)
        self.window = window

    def attend(self, q_BHLK: Tensor, k_BHLK: Tensor, v_BHLK: Tensor) -> Tensor:
        """Let each position attend to its neighbours, and return B L D."""
        batch, length = len(q_BHLK), q_BHLK.shape[2]
        window = max(1, min(self.window, length - 1))  # wider than the sentence is waste
        blocks = -(-length // window)
        beyond = blocks * window - length
        q_BHNWK = F.pad(q_BHLK, (0, 0, 0, beyond)).unflatten(2, (blocks, window))

        def neighbours(x_BHLK: Tensor) -> Tensor:
            padded = F.pad(x_BHLK, (0, 0, window, window + beyond))
            x_BHNKC = padded.unfold(2, 3 * window, window)
            return x_BHNKC.permute(0, 2, 1, 4, 3).flatten(0, 1)

        mask_N1WC = self._mask(length, window, blocks, q_BHLK.device)
        merged = self.attention.attend(
            q_BHNWK.transpose(1, 2).flatten(0, 1),
            neighbours(k_BHLK),
            neighbours(v_BHLK),
            mask_N1WC.repeat(batch, 1, 1, 1),
        )
        y_BLD: Tensor = merged.unflatten(0, (batch, blocks)).flatten(1, 2)
        return y_BLD[:, :length]

    @staticmethod
    def _mask(length: int, window: int, blocks: int, device: torch.device) -> Tensor:
        queries_NW = torch.arange(blocks * window, device=device).view(blocks, window)
        first_N1 = queries_NW[:, :1] - window
        keys_NC = first_N1 + torch.arange(3 * window, device=device)
        near = (keys_NC[:, None] - queries_NW[..., None]).abs() <= window
        real = ((keys_NC >= 0) & (keys_NC < length))[:, None]
        # Padding at the end is cut off afterwards; it sees the last position at least.
        return (near & real)[:, None]


class Recurrent(Layer):
    """Compute h_t = tanh(W x_t + U h_{t−1})."""

    counted_on = "cpu"  # there PyTorch runs it step by step in C++; by shapes it does so in Python

    def __init__(self, d: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(d, d, batch_first=True)

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Compute all n steps, one after the other."""
        states_BLD: Tensor = self.rnn(x_BLD)[0]
        return states_BLD

    def propagate_once(self, x_BLD: Tensor, inputs_BLD: Tensor | None = None) -> Tensor:
        """Apply the recurrence once, from the state of each position to the next one's.

        All positions are computed at once, as if each were its own sentence of length one. The
        inputs are no part of the path; if none are given they are random.
        """
        if inputs_BLD is None:
            inputs_BLD = torch.randn_like(x_BLD)
        before_BLD = F.pad(x_BLD, (0, 0, 1, -1))
        after: Tensor = self.rnn(
            inputs_BLD.flatten(0, 1).unsqueeze(1), before_BLD.flatten(0, 1).unsqueeze(0)
        )[0]
        return after.view_as(x_BLD)


class Convolutional(Layer):
    """Let a position see itself and `kernel` − 1 positions before it, `dilation` apart."""

    def __init__(self, d: int, kernel: int, dilation: int = 1) -> None:
        super().__init__()
        self.left_padding = (kernel - 1) * dilation
        self.convolution = nn.Conv1d(d, d, kernel, dilation=dilation)

    def forward(self, x_BLD: Tensor) -> Tensor:
        """Multiply what each position sees with the weights."""
        past_BDL = F.pad(x_BLD.transpose(1, 2), (self.left_padding, 0))
        y_BLD: Tensor = self.convolution(past_BDL).transpose(1, 2)
        return y_BLD


def build_layer(layer: str, d: int, *, kernel: int = 3, window: int = 16, depth: int = 0) -> Layer:
    """Return a layer of this name with random weights; `depth` is its place in a stack, from 0."""
    if kernel < 2:
        raise ConfigError(f"kernel = {kernel} sees no neighbour; try 3")
    if window < 1:
        raise ConfigError(f"window = {window} sees no neighbour; try 16")
    match layer:
        case "self-attention":
            return SelfAttention(d)
        case "recurrent":
            return Recurrent(d)
        case "convolutional":
            return Convolutional(d, kernel)
        case "convolutional, dilated":
            return Convolutional(d, kernel, kernel**depth)
        case "restricted self-attention":
            return RestrictedSelfAttention(d, window)
    raise ConfigError(f"there is no layer {layer!r} in Table 1; try one of {', '.join(LAYERS)}")

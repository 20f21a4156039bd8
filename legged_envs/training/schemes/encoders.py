"""Encoders of a history: MLP, convolutions over time, and a mixture of experts."""

from collections.abc import Sequence

import torch
from rsl_rl.modules import MLP
from rsl_rl.utils import resolve_nn_activation
from torch import nn

from legged_envs.training.scheme_options import SchemeCfg
from legged_envs.training.schemes.history import KERNEL

EXPERTS = 4
"""Number of experts of a mixture."""


def make_encoder(cfg: SchemeCfg, frame_size: int, outputs: int) -> nn.Module:
    """Make the encoder that the options name.

    Args:
        cfg: Options of the scheme.
        frame_size: Size of the observation of one control step.
        outputs: Size of the code.

    Returns:
        Network of histories, the oldest frame first: (n, history · frame_size) → (n, outputs).
    """
    if cfg.encoder == "tcn":
        return TemporalConvolution(
            frame_size, cfg.history, outputs, cfg.encoder_hidden, cfg.activation
        )
    size = frame_size * cfg.history
    if cfg.encoder == "moe":
        return MixtureOfExperts(size, outputs, cfg.encoder_hidden, cfg.activation)
    return MLP(size, outputs, list(cfg.encoder_hidden), cfg.activation)


class TemporalConvolution(nn.Module):
    """Convolutions over the frames of a history (Bai et al. 2018), and a linear layer.

    The dilation doubles from layer to layer: 1, 2, 4, …

    Args:
        frame_size: Size of a frame.
        frames: Number of frames, at least as many as its convolutions need.
        outputs: Size of the code.
        channels: Number of channels of each convolution.
        activation: Name of the activation after each convolution.
    """

    def __init__(
        self, frame_size: int, frames: int, outputs: int, channels: Sequence[int], activation: str
    ):
        super().__init__()
        self.frames = frames
        layers: list[nn.Module] = []
        before = frame_size
        length = frames
        for depth, width in enumerate(channels):
            dilation = 2**depth
            length -= (KERNEL - 1) * dilation
            layers.append(nn.Conv1d(before, width, KERNEL, dilation=dilation))
            layers.append(resolve_nn_activation(activation))
            before = width
        self.layers = nn.Sequential(*layers)
        self.out = nn.Linear(before * length, outputs)

    def forward(self, history: torch.Tensor) -> torch.Tensor:
        """Return the codes of histories. Shape: (n, frames · frame_size) → (n, outputs)."""
        frames = history.unflatten(1, (self.frames, -1)).transpose(1, 2)
        return self.out(self.layers(frames).flatten(1))


class MixtureOfExperts(nn.Module):
    """Several MLPs with outputs that are weighted by the softmax of a gate (Jacobs et al. 1991).

    Args:
        size: Size of the input.
        outputs: Size of the code.
        hidden: Widths of the hidden layers of each expert. The gate has one
            hidden layer, with the last of these widths.
        activation: Name of the activation of the hidden layers.
    """

    def __init__(self, size: int, outputs: int, hidden: Sequence[int], activation: str):
        super().__init__()
        self.experts = nn.ModuleList(
            MLP(size, outputs, list(hidden), activation) for _ in range(EXPERTS)
        )
        self.gate = MLP(size, EXPERTS, [hidden[-1]], activation)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the weighted codes. Shape: (n, size) → (n, outputs)."""
        weights = torch.softmax(self.gate(inputs), dim=1)
        codes = torch.cat([expert(inputs).unsqueeze(1) for expert in self.experts], dim=1)
        return (weights.unsqueeze(2) * codes).sum(dim=1)


def to_unit_length(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors scaled to length 1. Shape: (n, size)."""
    return vectors / (vectors.square().sum(dim=1, keepdim=True) + 1e-8).sqrt()

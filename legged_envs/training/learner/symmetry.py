"""Networks that treat left and right equally: mirrored inputs give mirrored outputs.

A policy π of a symmetric robot needs only π(M s) = M π(s), and its value function only
V(M s) = V(s), where M exchanges left and right. An MLP has this property if the weights W of each
layer satisfy W = M_out W M_in. The units of a hidden layer form two halves, and mirroring exchanges
them. Source: Su et al. 2024, "Leveraging Symmetry in RL-based Legged Locomotion Control",
https://arxiv.org/abs/2403.17320.
"""

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import nn

from legged_envs.training.learner.networks import Actor, Image, Network
from legged_envs.training.learner.normalization import Normalization


class Halves:
    """Mirror image of a hidden layer: its two halves are exchanged.

    Args:
        width: Number of units of the layer. It must be even.
    """

    def __init__(self, width: int):
        self.index = torch.arange(width).roll(width // 2)
        """Index of the partner of each unit. Shape: (width,), int64."""
        self.sign = torch.ones(width)
        """Sign of each unit: 1. Shape: (width,)."""


class Unchanged:
    """Mirror image of values, which are the same for a state and its mirror image.

    Args:
        size: Number of values.
    """

    def __init__(self, size: int):
        self.index = torch.arange(size)
        """Index of each value. Shape: (size,), int64."""
        self.sign = torch.ones(size)
        """Sign of each value: 1. Shape: (size,)."""


class SymmetricNormalization(Normalization):
    """Running mean and variance of observations and of their mirror images.

    Args:
        size: Size of an observation.
        image: Mirror image of an observation.
    """

    index: torch.Tensor
    sign: torch.Tensor

    def __init__(self, size: int, image: Image):
        super().__init__(size)
        # Not a part of checkpoints: these are those of any other network.
        self.register_buffer("index", image.index, persistent=False)
        self.register_buffer("sign", image.sign, persistent=False)

    @torch.jit.unused
    def update(self, x: torch.Tensor) -> None:
        """Update the statistics with observations ``x`` and their images. Shape: (n, size)."""
        super().update(x)
        mean = self._mean[:, self.index] * self.sign
        difference = 0.5 * (self._mean - mean)
        variance = 0.5 * (self._var + self._var[:, self.index])
        # The variance of two groups of equal size: the mean of theirs, and that of their means.
        self._var.copy_(variance + difference.square())
        self._mean.copy_(0.5 * (self._mean + mean))
        self._std = self._var.sqrt()


def make_symmetric(network: Network, inputs: Image, outputs: Image | None = None) -> None:
    """Give a network the symmetry, and keep it during the training.

    Weights and gradients are averaged with their mirror images. All steps of Adam are elementwise,
    so that weights whose gradients are symmetric stay symmetric.

    Args:
        network: Network with newly initialized weights. It is changed.
        inputs: Mirror image of its observation.
        outputs: Mirror image of its outputs. None: they are values, which a state and its mirror
            image have in common.

    Raises:
        ValueError: If a hidden layer has an odd number of units.
    """
    if outputs is None:
        outputs = Unchanged(network.mlp[-1].out_features)
    network.obs_normalizer = SymmetricNormalization(len(inputs.index), inputs)
    network.images = (inputs, outputs)
    for layer, before, after in _layers(network, inputs, outputs):
        weight = partial(_symmetric_part, after=after, before=before)
        bias = partial(_symmetric_part, after=after)
        with torch.no_grad():
            # The mean of two independent weights has half of their variance.
            layer.weight.copy_(math.sqrt(2.0) * weight(layer.weight))
            layer.bias.copy_(bias(layer.bias))
        layer.weight.register_hook(weight)
        layer.bias.register_hook(bias)
    if isinstance(network, Actor):
        # Standard deviations have no sign: only their joints are exchanged.
        network.distribution.std_param.register_hook(
            lambda gradient: 0.5 * (gradient + gradient[outputs.index.to(gradient.device)])
        )


def is_symmetric(network: Network) -> bool:
    """Return whether a network that :func:`make_symmetric` changed still has the symmetry."""
    assert network.images is not None, "make_symmetric() comes before is_symmetric()"
    for layer, before, after in _layers(network, *network.images):
        if not torch.equal(layer.weight, _symmetric_part(layer.weight, after, before)):
            return False
    return True


def _layers(
    network: Network, inputs: Image, outputs: Image
) -> list[tuple[nn.Linear, Image, Image]]:
    """Return each layer of a network, with the mirror images of its inputs and its outputs."""
    linear: Sequence[nn.Linear] = [
        module for module in network.mlp.modules() if isinstance(module, nn.Linear)
    ]
    images: list[Image] = [inputs]
    for layer in linear[:-1]:
        if layer.out_features % 2:
            raise ValueError(
                "symmetric networks have hidden layers of an even width, "
                f"got {layer.out_features}: give even --hidden, or --symmetry batches"
            )
        images.append(Halves(layer.out_features))
    images.append(outputs)
    return list(zip(linear, images[:-1], images[1:], strict=True))


def _symmetric_part(
    values: torch.Tensor, after: Image, before: Image | None = None
) -> torch.Tensor:
    """Return ½ (W + M_out W M_in), or ½ (b + M_out b) for a bias.

    Args:
        values: Weights (outputs, inputs), or a bias (outputs,), or their gradient.
        after: Mirror image of the outputs.
        before: Mirror image of the inputs. None for a bias.
    """
    device = values.device
    image = values[after.index.to(device)]
    sign = after.sign.to(device)
    if before is not None:
        image = image[:, before.index.to(device)]
        sign = torch.outer(sign, before.sign.to(device))
    return 0.5 * (values + sign * image)

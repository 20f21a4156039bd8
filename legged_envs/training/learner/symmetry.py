"""Networks that treat left and right equally: mirrored inputs give mirrored outputs.

A policy π of a symmetric robot needs only π(M s) = M π(s), and its value function only
V(M s) = V(s), where M exchanges left and right. An MLP has this property if the weights W of each
layer satisfy W = M_out W M_in. The units of a hidden layer form two halves, and mirroring exchanges
them. Source: Su et al. 2024, "Leveraging Symmetry in RL-based Legged Locomotion Control",
https://arxiv.org/abs/2403.17320.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import nn

from legged_envs.mdp.symmetry import Mirror
from legged_envs.training.learner.networks import Actor, Image, Network
from legged_envs.training.learner.normalization import Normalization

SymmetricPart = Callable[[torch.Tensor], torch.Tensor]
"""Function of a parameter or its gradient that returns the mean of it and its mirror image."""

ROUNDING = 1e-5
"""Largest difference between a symmetric parameter and its mirror image."""


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
        # Not saved, so that checkpoints of symmetric networks have the entries of all others.
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


def image_of(mirror: Mirror) -> Image:
    """Return how a mirror exchanges left and right, as :func:`make_symmetric` takes it.

    Entry i of the mirror image of a vector v is ``sign[i] * v[index[i]]``.
    """
    return Image(mirror.index, mirror.sign)


def make_symmetric(network: Network, inputs: Image, outputs: Image | None = None) -> None:
    """Make a network treat left and right equally, also in its gradients.

    Weights and gradients are averaged with their mirror images, so that the steps of an optimizer
    keep the symmetry up to rounding. :func:`restore_symmetry` removes the rounding errors.

    Args:
        network: Network with newly initialized weights. It is changed.
        inputs: Mirror image of its observation.
        outputs: Mirror image of its outputs. None: they are values, which a state and its mirror
            image have in common.

    Raises:
        ValueError: If a hidden layer has an odd number of units.
    """
    if outputs is None:
        size = network.mlp[-1].out_features
        outputs = Image(torch.arange(size), torch.ones(size))
    network.obs_normalizer = SymmetricNormalization(len(inputs.index), inputs)
    network.images = (inputs, outputs)
    for layer, _, _ in _layers(network, inputs, outputs):
        # The mean of two independent weights has half of their variance.
        layer.weight.data.mul_(math.sqrt(2.0))
    restore_symmetry(network)
    for parameter, symmetric_part in _parameters(network):
        parameter.register_hook(symmetric_part)


@torch.no_grad()
def restore_symmetry(network: Network) -> None:
    """Remove the asymmetry that rounding in optimizer steps leaves in a symmetric network.

    Each parameter becomes the mean of itself and its mirror image.
    """
    for parameter, symmetric_part in _parameters(network):
        parameter.copy_(symmetric_part(parameter))


@torch.no_grad()
def is_symmetric(network: Network) -> bool:
    """Return whether the parameters of a network of :func:`make_symmetric` are symmetric, up to
    rounding."""
    for parameter, symmetric_part in _parameters(network):
        if not torch.allclose(parameter, symmetric_part(parameter), rtol=0.0, atol=ROUNDING):
            return False
    return True


def _parameters(network: Network) -> list[tuple[torch.Tensor, SymmetricPart]]:
    """Return each parameter of a network, and the function that returns its symmetric part."""
    assert network.images is not None, "make_symmetric() comes first"
    inputs, outputs = network.images
    parameters: list[tuple[torch.Tensor, SymmetricPart]] = []
    for layer, before, after in _layers(network, inputs, outputs):
        weight = partial(_symmetric_part, after=after, before=before)
        parameters.append((layer.weight, weight))
        parameters.append((layer.bias, partial(_symmetric_part, after=after)))
    if isinstance(network, Actor):
        # Standard deviations have no sign: only their joints are exchanged.
        joints = Image(outputs.index, torch.ones_like(outputs.sign))
        std = network.distribution.std_param
        parameters.append((std, partial(_symmetric_part, after=joints)))
    return parameters


def _layers(
    network: Network, inputs: Image, outputs: Image
) -> list[tuple[nn.Linear, Image, Image]]:
    """Return each linear layer of a network, with the mirror images of its inputs and its outputs.

    Raises:
        ValueError: If a hidden layer has an odd number of units.
    """
    linear: Sequence[nn.Linear] = [
        module for module in network.mlp.modules() if isinstance(module, nn.Linear)
    ]
    images = [inputs]
    for layer in linear[:-1]:
        width = layer.out_features
        if width % 2:
            raise ValueError(f"symmetric networks have hidden layers of even widths, got {width}")
        # Mirroring exchanges the two halves of the units.
        images.append(Image(torch.arange(width).roll(width // 2), torch.ones(width)))
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

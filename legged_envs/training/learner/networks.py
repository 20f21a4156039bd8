"""Actor and critic of tasks without a reference: an MLP over a normalized observation."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from rsl_rl.modules import MLP
from rsl_rl.modules.distribution import GaussianDistribution
from torch import nn

from legged_envs.training.learner.normalization import Normalization


@dataclass(frozen=True)
class Image:
    """Mirror image of a vector: entry i is ``sign[i]`` times the entry ``index[i]``."""

    index: torch.Tensor
    """Index of the source of each entry. Shape: (size,), int64."""
    sign: torch.Tensor
    """Sign, ±1, of each entry. Shape: (size,)."""


class Network(nn.Module):
    """MLP over a normalized observation.

    :meth:`normalize` and :meth:`evaluate` together are :meth:`forward`. An update normalizes its
    mini-batches once and evaluates them in every pass.

    Args:
        normalizer: Running mean and variance of the observation.
        mlp: The MLP.
    """

    def __init__(self, normalizer: Normalization, mlp: MLP):
        super().__init__()
        # The names are rsl_rl's, so that each package can start from networks of the other.
        self.obs_normalizer = normalizer
        self.mlp = mlp

        self.images: tuple[Image, Image] | None = None
        """Mirror images of observations and outputs, if mirrored observations give mirrored
        outputs. None: the network may treat left and right differently."""

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the outputs for observations. Shape: (n, size) → (n, outputs)."""
        return self.mlp(self.obs_normalizer(observation))

    @torch.no_grad()
    def normalize(self, observation: torch.Tensor) -> list[torch.Tensor]:
        """Return the arguments of :meth:`evaluate`. Shape: (n, size)."""
        return [self.obs_normalizer(observation)]

    def evaluate(self, normalized: torch.Tensor) -> torch.Tensor:
        """Return the outputs for normalized observations. Shape: (n, size) → (n, outputs)."""
        return self.mlp(normalized)

    def share_normalizers(self, other: "Network") -> None:
        """Use the running mean and variance of another network, which reads the same."""
        self.obs_normalizer = other.obs_normalizer

    def update_normalizers(self, observation: torch.Tensor) -> None:
        """Update the running mean and variance. Shape: (…, size)."""
        self.obs_normalizer.update(observation.flatten(0, -2))


def make_network(size: int, outputs: int, hidden: Sequence[int], activation: str) -> Network:
    """Make a network with newly initialized weights.

    Args:
        size: Size of the observation.
        outputs: Size of the output.
        hidden: Widths of the hidden layers.
        activation: Name of the activation of the hidden layers.
    """
    return Network(Normalization(size), MLP(size, outputs, list(hidden), activation))


class Actor(Network):
    """Gaussian policy of a task without a reference: a :class:`Network` and standard deviations.

    Args:
        size: Size of the observation.
        init_std: Initial standard deviation of each action. Shape: (num_actions,).
        hidden: Widths of the hidden layers.
        activation: Name of the activation of the hidden layers.
    """

    def __init__(self, size: int, init_std: torch.Tensor, hidden: Sequence[int], activation: str):
        num_actions = len(init_std)
        super().__init__(Normalization(size), MLP(size, num_actions, list(hidden), activation))
        self.num_actions = num_actions
        """Number of actions of a robot."""
        self.distribution = GaussianDistribution(num_actions, init_std)
        """Distribution of the actions for the observations of the last call."""

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the mean actions (n, num_actions) for observations (n, size).

        It also sets ``distribution`` to the distribution for these observations.
        """
        mean = super().forward(observation)
        self.distribution.update(mean)
        return mean

    def evaluate(self, normalized: torch.Tensor) -> torch.Tensor:
        """Return the mean actions for normalized observations, and set ``distribution``."""
        mean = super().evaluate(normalized)
        self.distribution.update(mean)
        return mean

    @property
    def output_std(self) -> torch.Tensor:
        """Standard deviation of each action. Shape: (num_actions,)."""
        return self.distribution.std_param.detach()

    def as_jit(self) -> Network:
        """Return a copy of the network of the mean on the CPU, for ``torch.jit.script``."""
        mean = Network(self.obs_normalizer, self.mlp)
        return copy.deepcopy(mean).cpu().eval()

    def as_onnx(self, verbose: bool = False) -> Network:
        """Return a copy of the network of the mean on the CPU, for ``torch.onnx.export``.

        Args:
            verbose: Not used; part of rsl_rl's interface.
        """
        return self.as_jit()

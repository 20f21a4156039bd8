"""Actors of the schemes, with the present observation and a code of the history as inputs."""

import copy

import torch
from rsl_rl.modules import MLP
from rsl_rl.modules.distribution import GaussianDistribution
from torch import nn

from legged_envs.training.learner.normalization import Normalization
from legged_envs.training.scheme_options import SchemeCfg
from legged_envs.training.schemes.encoders import make_encoder


class HistoryNetwork(nn.Module):
    """MLP over the present frame of a history and a code of all of its frames.

    Args:
        cfg: Options of the scheme.
        history_size: Size of a history: frames side by side, the oldest first.
        encoded: Size of the encoder's output.
        code_size: Size of the code, which :meth:`code_of` makes from the encoder's output.
        outputs: Size of the output.
    """

    def __init__(
        self, cfg: SchemeCfg, history_size: int, encoded: int, code_size: int, outputs: int
    ):
        super().__init__()
        assert cfg.hidden is not None, "prepare() completes the options"
        self.frames = cfg.history
        """Number of frames of a history."""
        self.frame_size = history_size // cfg.history
        """Size of a frame."""
        self.obs_normalizer = Normalization(self.frame_size)
        self.encoder = make_encoder(cfg, self.frame_size, encoded)
        self.mlp = MLP(self.frame_size + code_size, outputs, list(cfg.hidden), cfg.activation)

    def forward(self, history: torch.Tensor) -> torch.Tensor:
        """Return the outputs of the deployed policy. Shape: (n, history_size) → (n, outputs)."""
        normalized = self.normalized(history)
        return self.act(normalized, self.code(normalized))

    def normalized(self, history: torch.Tensor) -> torch.Tensor:
        """Return a history with normalized frames. Shape: (n, history_size)."""
        frames = history.unflatten(1, (self.frames, self.frame_size))
        return self.obs_normalizer(frames).flatten(1)

    def present(self, history: torch.Tensor) -> torch.Tensor:
        """Return the present frame of a history. Shape: (…, history_size) → (…, frame_size)."""
        return history[..., -self.frame_size :]

    def code(self, normalized: torch.Tensor) -> torch.Tensor:
        """Return the code of a normalized history. Shape: (n, code_size)."""
        return self.code_of(self.encoder(normalized))

    def code_of(self, encoded: torch.Tensor) -> torch.Tensor:
        """Return the code that the MLP sees, from the encoder's output. Shape: (n, code_size)."""
        return encoded

    def act(self, normalized: torch.Tensor, code: torch.Tensor) -> torch.Tensor:
        """Return the outputs for a normalized history and a code. Shape: (n, outputs)."""
        return self.mlp(torch.cat((normalized[:, -self.frame_size :], code), dim=1))


class HistoryActor(nn.Module):
    """Gaussian policy with a mean that a :class:`HistoryNetwork` computes.

    PPO has no influence on the encoder of the network: the scheme trains it. All passes of PPO over
    a rollout see the codes that the robots acted on.

    Args:
        network: Network of the mean actions.
        init_std: Initial standard deviation of each action. Shape: (num_actions,).
    """

    def __init__(self, network: HistoryNetwork, init_std: torch.Tensor):
        super().__init__()
        self.num_actions = len(init_std)
        """Number of actions of a robot."""
        self.network = network
        """Network of the mean actions."""
        self.distribution = GaussianDistribution(self.num_actions, init_std)
        """Distribution of the actions for the observations of the last call."""

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the mean actions, and set ``distribution``. Shape: (n, num_actions)."""
        return self.evaluate(*self.normalize(*inputs))

    @torch.no_grad()
    def normalize(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Return the arguments of :meth:`evaluate`: normalized history, and its code."""
        history = self.network.normalized(inputs[0])
        return [history, self.network.code(history)]

    def evaluate(self, *normalized: torch.Tensor) -> torch.Tensor:
        """Return the mean actions for normalized inputs, and set ``distribution``."""
        history = normalized[0]
        mean = self.network.act(history, self.code(*normalized))
        self.distribution.update(mean)
        return mean

    def code(self, *normalized: torch.Tensor) -> torch.Tensor:
        """Return the code that the policy acts on while it trains. Shape: (n, code_size)."""
        code = normalized[1]
        return code

    def update_normalizers(self, *inputs: torch.Tensor) -> None:
        """Update the running means and variances with a rollout. Shapes: (…, size)."""
        history = inputs[0]
        frames = self.network.present(history)
        self.network.obs_normalizer.update(frames.flatten(0, -2))

    @property
    def output_std(self) -> torch.Tensor:
        """Standard deviation of each action. Shape: (num_actions,)."""
        return self.distribution.std_param.detach()

    def as_jit(self) -> HistoryNetwork:
        """Return a copy of the network of the mean on the CPU, for ``torch.jit.script``."""
        return copy.deepcopy(self.network).cpu().eval()

    def as_onnx(self, verbose: bool = False) -> HistoryNetwork:
        """Return a copy of the network of the mean on the CPU, for ``torch.onnx.export``.

        Args:
            verbose: Not used; part of rsl_rl's interface.
        """
        return self.as_jit()

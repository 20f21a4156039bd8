"""Networks with a memory: cells, the trained policy and the deployed policy."""

import copy
from typing import Any, ClassVar

import torch
from rsl_rl.modules import MLP
from rsl_rl.modules.distribution import GaussianDistribution
from torch import nn
from torch.nn import functional

from legged_envs.training.learner.normalization import Normalization
from legged_envs.training.scheme_options import LSTMCfg

Recurrent = nn.LSTM | nn.GRU
"""A recurrent layer of PyTorch."""

State = tuple[torch.Tensor, ...]
"""State of a cell: (h, c) of an LSTM, (h,) of a GRU. Each (n, size)."""


class MemoryNetwork(nn.Module):
    """The deployed policy: one step of the cell, written as operations of tensors.

    Args:
        normalizer: Running mean and variance of the observation.
        recurrent: Recurrent layer with the weights.
        mlp: MLP over observation and output of the cell.
    """

    names: ClassVar[tuple[str, ...]]
    """Names of the parts of the state."""

    def __init__(self, normalizer: Normalization, recurrent: Recurrent, mlp: MLP):
        super().__init__()
        self.obs_normalizer = normalizer
        self.recurrent = recurrent
        self.mlp = mlp

        self.memory: dict[str, int] = dict.fromkeys(self.names, recurrent.hidden_size)
        """Size of each part of the state, by name."""

    def step(self, observation: torch.Tensor, state: State) -> tuple[torch.Tensor, ...]:
        """Return the mean actions (n, num_actions) for observations (n, size), and the state."""
        normalized = self.obs_normalizer(observation)
        after = cell_step(self.recurrent, normalized, state)
        return self.mlp(torch.cat((normalized, after[0]), dim=1)), *after


class LSTMNetwork(MemoryNetwork):
    """Deployed policy with an LSTM."""

    names = ("h", "c")

    def forward(
        self, observation: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return the mean actions, and h and c for the next step."""
        return self.step(observation, (h, c))


class GRUNetwork(MemoryNetwork):
    """Deployed policy with a GRU."""

    names = ("h",)

    def forward(self, observation: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the mean actions, and h for the next step."""
        return self.step(observation, (h,))


def cell_step(recurrent: Recurrent, inputs: torch.Tensor, state: State) -> State:
    """Return the state after one step of a recurrent layer, as PyTorch's layers compute it.

    Args:
        recurrent: Layer with the weights.
        inputs: Inputs of the step. Shape: (n, size).
        state: State before the step.

    Returns:
        h, and c of an LSTM. Each (n, size).
    """
    hidden = state[0]
    input_weight, hidden_weight, input_bias, hidden_bias = recurrent.all_weights[0]
    from_inputs = functional.linear(inputs, input_weight, input_bias)
    from_hidden = functional.linear(hidden, hidden_weight, hidden_bias)
    if isinstance(recurrent, nn.LSTM):
        input_gate, forget_gate, candidate, output_gate = (from_inputs + from_hidden).chunk(4, 1)
        kept = torch.sigmoid(forget_gate) * state[1]
        cell = kept + torch.sigmoid(input_gate) * torch.tanh(candidate)
        return torch.sigmoid(output_gate) * torch.tanh(cell), cell
    reset_in, update_in, new_in = from_inputs.chunk(3, 1)
    reset_hidden, update_hidden, new_hidden = from_hidden.chunk(3, 1)
    update = torch.sigmoid(update_in + update_hidden)
    new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_hidden) * new_hidden)
    return (new + update * (hidden - new),)


class MemoryActor(nn.Module):
    """Gaussian policy with a memory of each training environment.

    Args:
        cfg: Options of the scheme.
        size: Size of the observation.
        init_std: Initial standard deviation of each action. Shape: (num_actions,).
        num_envs: Number of training environments.
    """

    def __init__(self, cfg: LSTMCfg, size: int, init_std: torch.Tensor, num_envs: int):
        super().__init__()
        assert cfg.hidden is not None, "prepare() completes the options"
        self.num_actions = len(init_std)
        """Number of actions of a robot."""
        self.obs_normalizer = Normalization(size)
        layer = nn.LSTM if cfg.cell == "lstm" else nn.GRU
        self.recurrent: Recurrent = layer(size, cfg.memory)
        self.mlp = MLP(size + cfg.memory, self.num_actions, list(cfg.hidden), cfg.activation)

        self.distribution = GaussianDistribution(self.num_actions, init_std)
        """Distribution of the actions for the observations of the last call."""
        parts = 2 if cfg.cell == "lstm" else 1
        # A buffer, so that a checkpoint saves it and a resumed run continues with it.
        self.register_buffer("memory", torch.zeros(parts, num_envs, cfg.memory))
        self.memory: torch.Tensor

    @property
    def state(self) -> State:
        """State of the training environments before the next step. Each (num_envs, size)."""
        return tuple(self.memory)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the mean actions of a step of the rollout, and store the new state.

        It also sets ``distribution``. Shape: (num_envs, size) → (num_envs, num_actions).
        """
        normalized = self.obs_normalizer(observation)
        after = cell_step(self.recurrent, normalized, self.state)
        self._store(torch.stack(after))
        mean = self.mlp(torch.cat((normalized, after[0]), dim=1))
        self.distribution.update(mean)
        return mean

    def forget(self, ended: torch.Tensor) -> None:
        """Clear the memory of environments with an ended episode. Shape: (num_envs,), bool."""
        self._store(self.memory.masked_fill(ended.unsqueeze(1), 0.0))

    def _store(self, memory: torch.Tensor) -> None:
        # A tensor that was made in inference mode could not be loaded from a checkpoint later.
        with torch.inference_mode(False):
            self.memory = memory.clone()

    @torch.no_grad()
    def normalize(self, observation: torch.Tensor) -> list[torch.Tensor]:
        """Return normalized observations. Shape: (n, size)."""
        return [self.obs_normalizer(observation)]

    def evaluate(
        self, normalized: torch.Tensor, masks: torch.Tensor, *state: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean actions of whole trajectories, and set ``distribution``.

        Args:
            normalized: Normalized observations of all steps, without padding. Shape: (n, size).
            masks: True where a trajectory has a step. Shape: (num_steps, num_trajectories).
            state: State before each trajectory. Each (1, num_trajectories, size).

        Returns:
            Mean actions in the order of ``normalized``. Shape: (n, num_actions).
        """
        padded = normalized.new_zeros(*masks.shape, normalized.shape[1])
        padded[masks] = normalized
        before: Any = state if isinstance(self.recurrent, nn.LSTM) else state[0]
        outputs, _ = self.recurrent(padded, before)
        mean = self.mlp(torch.cat((normalized, outputs[masks]), dim=1))
        self.distribution.update(mean)
        return mean

    def update_normalizers(self, observation: torch.Tensor) -> None:
        """Update the running mean and variance with a rollout. Shape: (…, size)."""
        self.obs_normalizer.update(observation.flatten(0, -2))

    @property
    def output_std(self) -> torch.Tensor:
        """Standard deviation of each action. Shape: (num_actions,)."""
        return self.distribution.std_param.detach()

    def as_jit(self) -> MemoryNetwork:
        """Return a copy of the deployed network on the CPU."""
        kind = LSTMNetwork if isinstance(self.recurrent, nn.LSTM) else GRUNetwork
        network = kind(self.obs_normalizer, self.recurrent, self.mlp)
        return copy.deepcopy(network).cpu().eval()

    def as_onnx(self, verbose: bool = False) -> MemoryNetwork:
        """Return a copy of the deployed network on the CPU.

        Args:
            verbose: Not used; part of rsl_rl's interface.
        """
        return self.as_jit()

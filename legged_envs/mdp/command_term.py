"""What every kind of command has."""

from abc import ABC, abstractmethod
from typing import Protocol

import torch

from legged_envs.mdp.context import Env
from legged_envs.state import Stateful


class CommandTerm(Stateful, ABC):
    """One kind of command, for every environment; ``STATE`` names what its future depends on."""

    value: torch.Tensor
    """The present command. Shape: (num_envs, size)."""
    moving: torch.Tensor
    """1 where the command asks the robot to move, else 0. Shape: (num_envs,), float32."""
    still: torch.Tensor
    """1 − ``moving``."""

    @abstractmethod
    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw anew for ``env_ids``, before their robots are placed."""

    def placed(self, env_ids: torch.Tensor) -> None:
        """Take in that the robots of ``env_ids`` stand in their first pose."""

    @abstractmethod
    def advance(self) -> None:
        """Let one control step pass."""

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Take in that the episodes of ``env_ids`` are over, before they begin anew."""


class CommandTermCfg(Protocol):
    """Configuration of a command term, which it builds."""

    def build(self, env: Env) -> CommandTerm:
        """The term of an environment; ``env.random.stream(name)`` has its random numbers."""

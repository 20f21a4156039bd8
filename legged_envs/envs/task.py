"""What a task is: the hooks that the core environment calls, in one place."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import gymnasium as gym
import torch


class Evaluation(NamedTuple):
    """What a task says of the transition that the last physics steps made. N is the number of environments."""

    terminated: torch.Tensor
    """Whose episode the task ends. Shape: (N,), bool."""
    reward: torch.Tensor
    cost: torch.Tensor
    costs: torch.Tensor
    """The reward and the scalar cost, at least 0, (N,), and the cost terms in the order of ``cost_names``, (N, K)."""
    truncated: torch.Tensor | None = None
    """Whose episode the task cuts off for a reason that is no failure; None cuts off nobody's. Shape: (N,), bool."""


class TaskHooks(ABC):
    """What a subclass of :class:`~legged_envs.envs.core.CoreVectorEnv` fills; all run in inference mode."""

    num_envs: int
    device: torch.device
    cost_names: tuple[str, ...] = ()
    cost_limits: tuple[float, ...] = ()
    log_names: tuple[str, ...] = ()
    """Columns of ``info["costs"]``, what each may be on average per step, and columns of :meth:`_end_episodes`."""

    @abstractmethod
    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        """Build what the task needs; ``sim``, ``robot``, ``random`` and ``cfg`` are there. Returns the spaces of each
        observation group, ``"policy"`` among them, and of the actions, each of one environment."""

    @abstractmethod
    def _act(self, action: torch.Tensor) -> None:
        """Turn actions, finite and not clipped, into joint targets, and step the physics."""

    @abstractmethod
    def _evaluate(self) -> Evaluation:
        """Evaluate the transition; ``robot`` has read the simulation, its derived quantities are to be computed."""

    def _advance(self) -> None:
        """Let one control step pass for commands and pushes."""

    @abstractmethod
    def _observe(self, env_ids: torch.Tensor | None) -> dict[str, torch.Tensor]:
        """New tensors of at least the observation space's groups, of all environments or ``env_ids``."""

    def _place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        """Choose commands of ``env_ids`` (n,) and write their first poses; ``seeded`` if random streams began anew."""

    def _begin_episodes(self, env_ids: torch.Tensor) -> None:
        """Begin the histories of ``env_ids``, whose robots stand in their first pose."""

    def _end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """What the log is to say, (n, len(log_names)), of episodes that are over, each after ``steps`` (n,) steps."""
        return torch.zeros(
            len(env_ids), len(self.log_names), dtype=torch.float32, device=self.device
        )

    def _own_state(self) -> dict[str, Any]:
        """What the future depends on beside simulation, robot, random streams and observation, copied."""
        return {}

    def _check_own_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError if a state of the structure of :meth:`_own_state` is of another environment."""

    def _load_own_changes(self, state: dict[str, Any]) -> None:
        """Make what a state from :meth:`_own_state` needs; ValueError, and nothing changed, if that cannot be."""

    def _forget_this_moment(self) -> None:
        """Drop what observations remember of this step, which is observed once more."""

    def _load_own_state(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`_own_state`, whose structure is checked."""

"""What a term may read: the part of an environment that managers and terms see."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from legged_envs.rng import RandomStreams
    from legged_envs.sim import RobotState, Simulation


# Protocols, so that terms import neither managers nor environments, which import them.
class Actions(Protocol):
    """The last actions of every environment, as its action manager keeps them.

    All are clipped, and 0 where the episode had no action yet.
    """

    current: torch.Tensor
    """Action of this control step. Shape: (num_envs, num_actions)."""
    previous: torch.Tensor
    """Action of one control step before. Shape: (num_envs, num_actions)."""
    before_previous: torch.Tensor
    """Action of two control steps before. Shape: (num_envs, num_actions)."""


class Commands(Protocol):
    """The commands of every environment, as its command manager keeps them."""

    terms: dict[str, Any]
    """Name of each command → its :class:`~legged_envs.mdp.commands.CommandTerm`."""

    def __getitem__(self, name: str) -> torch.Tensor:
        """Return the present command called ``name``. Shape: (num_envs, size).

        Raises:
            KeyError: There is no command with that name.
        """


class Terminations(Protocol):
    """The failed episodes of an environment, as its termination manager keeps them."""

    terminated: torch.Tensor
    """True for episodes that a termination term ended in this step. Episodes that the time limit,
    or a term that only truncates, ended are False. Shape: (num_envs,), bool."""


class Rewards(Protocol):
    """The reward terms of an environment with a weight other than 0, as its reward manager keeps
    them."""

    names: tuple[str, ...]
    """Names of the terms."""
    weights: tuple[float, ...]
    """Weight of each term: the reward per second that it gives at a value of 1."""
    episode_sums: torch.Tensor
    """Σ weight · term · step_dt over the present episode, a column for each of ``names``.
    Shape: (num_envs, terms)."""

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of a term from the next step on.

        Raises:
            ValueError: There is no term with that name, or its weight was 0 so far, or the new
                weight is not finite.
        """


class Env(Protocol):
    """The environment as terms see it, with the managers that they read.

    Shapes of tensors start with ``num_envs``.
    """

    num_envs: int
    """Number of environments."""
    num_steps: int
    """Number of control steps that the environments have made."""
    device: torch.device
    """Device of all tensors."""
    step_dt: float
    """Duration of a control step, s."""
    max_episode_length_s: float
    """Time limit of an episode, s."""
    random: "RandomStreams"
    """Random streams by name."""
    sim: "Simulation"
    """The physics."""
    robot: "RobotState"
    """State of the first robot."""
    robots: "dict[str, RobotState]"
    """State of each robot by name; the first one is ``"robot"``."""

    @property
    def actions(self) -> Actions:
        """The last actions."""

    @property
    def commands(self) -> Commands:
        """The commands."""

    @property
    def terminations(self) -> Terminations:
        """The failed episodes."""

    @property
    def rewards(self) -> Rewards:
        """The reward terms."""

    @property
    def changes(self) -> Mapping[str, Any]:
        """Changes made by :meth:`reconfigure` since the environment was made, by path."""

    def reconfigure(self, changes: Mapping[str, Any]) -> None:
        """Change the task from now on (:meth:`~legged_envs.envs.CoreVectorEnv.reconfigure`).

        Args:
            changes: Path, such as ``"events.push.params.velocity"`` → new value.

        Raises:
            ValueError: A path cannot be changed. Nothing is changed then.
        """

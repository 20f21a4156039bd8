"""The part of an environment that managers and terms may use, as interfaces (protocols)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from legged_envs.rng import RandomStreams
    from legged_envs.sim import RobotState, Simulation

Average = Callable[[torch.Tensor], torch.Tensor]
"""Function that returns the mean of a tensor over all processes of a training."""


# Protocols, so that terms import neither managers nor environments, which import them.
class Actions(Protocol):
    """The last three actions of each environment, as its action manager keeps them.

    All are clipped to ±``action_limit``. They are 0 for steps before the start of the episode.
    """

    current: torch.Tensor
    """Action of the present control step. Shape: (num_envs, num_actions)."""
    previous: torch.Tensor
    """Action of the control step before the present one. Shape: (num_envs, num_actions)."""
    before_previous: torch.Tensor
    """Action of two control steps before the present one. Shape: (num_envs, num_actions)."""


class Commands(Protocol):
    """The commands of all environments by name, as the command manager keeps them."""

    terms: dict[str, Any]
    """Name of each command → its :class:`~legged_envs.mdp.commands.CommandTerm`."""

    def __getitem__(self, name: str) -> torch.Tensor:
        """Return the present command called ``name``. Shape: (num_envs, size).

        Raises:
            KeyError: There is no command with that name.
        """


class Terminations(Protocol):
    """The environments with a failure in the last step, as the termination manager keeps them."""

    terminated: torch.Tensor
    """True if a termination term ended the environment's episode in the last step.

    False for episodes that were truncated by the time limit or by a term. Shape: (num_envs,), bool.
    """


class Rewards(Protocol):
    """The reward terms with a weight other than 0, as the reward manager keeps them."""

    names: tuple[str, ...]
    """Names of the reward terms with a weight other than 0."""
    weights: tuple[float, ...]
    """Weight of each of ``names``: the reward per second for a term with value 1."""
    episode_sums: torch.Tensor
    """Sum of each weighted term over the steps of the present episode: Σ weight · term · step_dt.

    One column for each of ``names``. Shape: (num_envs, len(names)).
    """

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of a reward term from the next step on.

        Args:
            name: Name of the term, one of ``names``.
            weight: New weight, reward per second.

        Raises:
            ValueError: ``name`` is not one of ``names``, or the new weight is not finite.
        """


class Env(Protocol):
    """The interface of an environment that terms and managers may use.

    The first dimension of its tensors is ``num_envs``.
    """

    num_envs: int
    """Number of environments."""
    num_steps: int
    """Number of control steps since the environment was made. All environments step together."""
    device: torch.device
    """Device of all tensors."""
    step_dt: float
    """Duration of a control step, s."""
    decimation: int
    """Present number of physics steps in a control step."""
    max_episode_length_s: float
    """Time limit of an episode, s."""
    random: "RandomStreams"
    """Source of all random numbers of the environment: ``random.stream(name)``."""
    sim: "Simulation"
    """Physics simulation of all environments."""
    robot: "RobotState"
    """State of the first robot of each environment, which is the only robot in most tasks."""
    robots: "dict[str, RobotState]"
    """Name of a robot → its state in all environments. The first robot is ``"robot"``."""

    @property
    def actions(self) -> Actions:
        """Actions of the last three control steps."""

    @property
    def commands(self) -> Commands:
        """Present commands by name."""

    @property
    def terminations(self) -> Terminations:
        """Environments with a failure in the last step."""

    @property
    def rewards(self) -> Rewards:
        """Reward terms: their weights, and their sums over the present episode."""

    @property
    def changes(self) -> Mapping[str, Any]:
        """Path → new value of each change that :meth:`reconfigure` made in this environment."""

    def reconfigure(self, changes: Mapping[str, Any]) -> None:
        """Change fields of the task's configuration in the running environment.

        See :meth:`~legged_envs.envs.CoreVectorEnv.reconfigure`.

        Args:
            changes: Path of a field, such as ``"events.push.params.velocity"``, → new value.

        Raises:
            ValueError: A field cannot be changed. No change of the call is made in this case.
        """

"""What a term may read: the part of an environment that the managers and terms see."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

if TYPE_CHECKING:
    from legged_envs.rng import RandomStreams
    from legged_envs.sim import RobotState, Simulation

Function = TypeVar("Function", bound=Callable[..., Any])


def pure(function: Function) -> Function:
    """Mark a term as pure, so that a step can replay a recording of it: tensor operations on the environment's state
    alone, without a branch on their values, that change nothing and read nothing else that changes."""
    function.pure = function  # type: ignore[attr-defined]
    return function


def is_pure(function: Callable[..., Any]) -> bool:
    """Whether ``function`` itself is marked with :func:`pure`; a wrapper that copies its attributes is not."""
    return getattr(function, "pure", None) is getattr(function, "__func__", function)


class Actions(Protocol):
    """The last actions of every environment, as its action manager has them."""

    current: torch.Tensor
    previous: torch.Tensor
    before_previous: torch.Tensor
    """The actions of this control step, and of one and two steps before, clipped; 0 where the episode had none. Shape:
    (num_envs, num_actions)."""


class Commands(Protocol):
    """The commands of every environment, as its command manager has them."""

    terms: dict[str, Any]
    """Name of each command → its :class:`~legged_envs.mdp.commands.CommandTerm`."""

    def __getitem__(self, name: str) -> torch.Tensor:
        """The present command called ``name``, KeyError if there is none. Shape: (num_envs, size)."""


class Terminations(Protocol):
    """Which episodes have failed, as the termination manager of an environment has it."""

    terminated: torch.Tensor
    """Whose episode a termination term ended in this step, without the time limit and terms that only cut off. Shape:
    (num_envs,), bool."""


class Rewards(Protocol):
    """The reward terms of an environment whose weight is not 0, as its reward manager has them."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    """Names of the terms, and the reward per second that each gives at a value of 1."""
    episode_sums: torch.Tensor
    """Σ weight · term · step_dt over the present episode, a column for each of ``names``. Shape: (num_envs, terms)."""

    def set_weight(self, name: str, weight: float) -> None:
        """Weigh the term ``name`` anew from the next step on; ValueError if there is none, as with weight 0 so far, or
        the weight is not finite."""


class Env(Protocol):
    """The environment as terms see it, with what they read of the managers; tensors start with ``num_envs``."""

    num_envs: int
    num_steps: int
    """Environments, and control steps that they have made."""
    device: torch.device
    step_dt: float
    max_episode_length_s: float
    """Control time step and time limit of the task, s."""
    random: "RandomStreams"
    sim: "Simulation"
    robot: "RobotState"
    robots: "dict[str, RobotState]"
    """The first robot, and all by name, that one as ``"robot"``."""
    actions: Actions
    commands: Commands
    terminations: Terminations
    rewards: Rewards
    changes: Mapping[str, Any]
    """What was changed in the task since the environment was made, by path."""

    def reconfigure(self, changes: Mapping[str, Any]) -> None:
        """Change the task from now on, by paths such as ``"events.push.params.velocity"``; ValueError, and nothing
        changed, for one that cannot change: see :meth:`~legged_envs.envs.LeggedVectorEnv.reconfigure`."""

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
    current: torch.Tensor
    previous: torch.Tensor
    before_previous: torch.Tensor


class Commands(Protocol):
    terms: dict[str, Any]

    def __getitem__(self, name: str) -> torch.Tensor: ...


class Terminations(Protocol):
    terminated: torch.Tensor


class Rewards(Protocol):
    names: tuple[str, ...]
    weights: tuple[float, ...]
    episode_sums: torch.Tensor

    def set_weight(self, name: str, weight: float) -> None: ...


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

    def reconfigure(self, changes: Mapping[str, Any]) -> None: ...

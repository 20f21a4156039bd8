"""What a term may read: the part of an environment that the managers and terms see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from legged_envs.sim import RobotState, Simulation


class Actions(Protocol):
    """See :class:`legged_envs.managers.ActionManager`."""

    current: torch.Tensor
    previous: torch.Tensor
    before_previous: torch.Tensor


class Commands(Protocol):
    """See :class:`legged_envs.managers.CommandManager`."""

    @property
    def terms(self) -> Mapping[str, Any]: ...

    def __getitem__(self, name: str) -> torch.Tensor: ...

    def moving(self, name: str) -> torch.Tensor: ...

    def still(self, name: str) -> torch.Tensor: ...


class Terminations(Protocol):
    """See :class:`legged_envs.managers.TerminationManager`."""

    terminated: torch.Tensor


class Env(Protocol):
    """The environment as terms see it; every tensor starts with ``num_envs``."""

    num_envs: int
    device: torch.device
    step_dt: float
    """Control time step, s."""
    sim: Simulation
    robot: RobotState
    actions: Actions
    commands: Commands
    terminations: Terminations

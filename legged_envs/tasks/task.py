"""The configuration of a task, and changes to it by name."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from legged_envs.managers import (
    ActionCfg,
    CostTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from legged_envs.managers.command import CommandTermCfg
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg


@dataclass
class TaskCfg:
    """Everything that defines a task. The dicts are name → term; add or delete entries freely."""

    robot: RobotCfg
    sim: SimCfg = field(default_factory=SimCfg)
    action: ActionCfg = field(default_factory=ActionCfg)
    commands: dict[str, CommandTermCfg] = field(default_factory=dict)
    observations: dict[str, ObservationGroupCfg] = field(default_factory=dict)
    rewards: dict[str, RewardTermCfg] = field(default_factory=dict)
    only_positive_rewards: bool = True
    """Whether the sum of the rewards is floored at 0 (LeggedGym-Ex ``only_positive_rewards``)."""
    costs: dict[str, CostTermCfg] = field(default_factory=dict)
    terminations: dict[str, TerminationTermCfg] = field(default_factory=dict)
    events: dict[str, EventTermCfg] = field(default_factory=dict)


def override(cfg: TaskCfg, changes: Mapping[str, Any]) -> TaskCfg:
    """A copy of ``cfg`` with fields replaced, e.g. ``{"rewards.torques.weight": 0.0, "sim.dt": 0.004}``.

    Raises:
        ValueError: If a path names a field or term that does not exist.
    """
    cfg = copy.deepcopy(cfg)
    for path, value in changes.items():
        *parents, last = path.split(".")
        node: Any = cfg
        for depth, name in enumerate(parents):
            node = _child(node, name, ".".join(parents[:depth]), path)
        _child(node, last, ".".join(parents), path)
        if isinstance(node, dict):
            node[last] = value
        else:
            setattr(node, last, value)
    return cfg


def _child(node: Any, name: str, where: str, path: str) -> Any:
    if isinstance(node, dict):
        names = list(node)
    elif dataclasses.is_dataclass(node):
        names = [f.name for f in dataclasses.fields(node)]
    else:
        raise ValueError(f"cfg path {path!r}: {where!r} has no fields")
    if name not in names:
        raise ValueError(
            f"cfg path {path!r}: {where or 'the task'} has no {name!r}; it has: {', '.join(map(str, names))}"
        )
    return node[name] if isinstance(node, dict) else getattr(node, name)

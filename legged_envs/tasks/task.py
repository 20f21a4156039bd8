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
        cfg = _replaced(cfg, path.split("."), value, path, "the task")
    return cfg


def _replaced(node: Any, names: list[str], value: Any, path: str, where: str) -> Any:
    """``node`` with the field at ``names`` replaced; dataclasses are rebuilt, since some are frozen."""
    if not names:
        return value
    name, *rest = names
    if isinstance(node, dict):
        known = list(node)
    elif dataclasses.is_dataclass(node) and not isinstance(node, type):
        known = [f.name for f in dataclasses.fields(node)]
    else:
        raise ValueError(f"cfg path {path!r}: {where!r} has no fields")
    if name not in known:
        raise ValueError(f"cfg path {path!r}: {where} has no {name!r}; it has: {', '.join(map(str, known))}")
    child = node[name] if isinstance(node, dict) else getattr(node, name)
    below = name if where == "the task" else f"{where}.{name}"
    new = _replaced(child, rest, value, path, below)
    return {**node, name: new} if isinstance(node, dict) else dataclasses.replace(node, **{name: new})

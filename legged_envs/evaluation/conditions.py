"""What the evaluations of every kind of task have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg, replaced
from legged_envs.tasks import follows_velocity

PolicyFunction = Callable[..., torch.Tensor]
"""Observations of some groups, one argument each → actions."""
COMMAND_RANGES = {"lin_vel_x": (-1.0, 1.0), "lin_vel_y": (-0.5, 0.5), "ang_vel_z": (-1.0, 1.0)}
"""Commands of an evaluation, m/s and rad/s, as far as the task has them too."""
EVALUATED: dict[str, Any] = dict(
    array="torch", observations="dict", autoreset_mode="Disabled", max_episode_steps=10**9
)
"""Options of environments that a policy is evaluated or watched in: nothing but a termination ends an episode."""
SETTLING_SECONDS = 1.0
"""Time at the start of an episode in which a robot need not follow its velocity command yet."""
EPISODES = "/episodes"
"""How many episodes ended, in the log of a step."""


def command_ranges(cfg: TaskCfg) -> dict[str, tuple[float, float]]:
    """What ``COMMAND_RANGES`` and the task's own ranges have in common; the task's own where that is nothing."""
    ranges = {}
    for name, (low, high) in COMMAND_RANGES.items():
        own_low, own_high = getattr(cfg.commands["velocity"], name)
        common = max(low, own_low), min(high, own_high)
        ranges[name] = common if common[0] <= common[1] else (own_low, own_high)
    return ranges


def evaluation_cfg(cfg: TaskCfg) -> TaskCfg:
    """The task as it is evaluated: randomised and noisy as in training, undisturbed, one command an episode."""
    velocity: dict[str, Any] = {}
    if follows_velocity(cfg):
        velocity = {
            **command_ranges(cfg),
            "standing_fraction": 0.0,
            "resampling_time_s": (1e6, 1e6),
        }
    events = {name: event for name, event in cfg.events.items() if event.purpose != "disturb"}
    return replaced(
        cfg,
        {
            "events": events,
            **{f"commands.velocity.{name}": value for name, value in velocity.items()},
        },
    )


def command_errors(core: LeggedVectorEnv) -> dict[str, torch.Tensor]:
    """‖v_xy − c_xy‖ [m/s] and |ω_z − c_ω| [rad/s] of every robot. Shapes: (num_envs,)."""
    command, robot = core.commands["velocity"], core.robot
    return {
        "lin_vel_error": (command[:, :2] - robot.lin_vel_b[:, :2]).norm(dim=1),
        "ang_vel_error": (command[:, 2] - robot.ang_vel_b[:, 2]).abs(),
    }


def settled(alive: torch.Tensor, step_dt: float) -> torch.Tensor:
    """The steps of ``alive`` (steps, n) bool that are not among the first ``SETTLING_SECONDS``."""
    later = alive.clone()
    later[: round(SETTLING_SECONDS / step_dt)] = False
    return later


def mean_over_steps(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Mean over the steps that count, NaN where none does. Shapes: (steps, n, …), (steps, n) → (n, …)."""
    weight = counted.reshape(*counted.shape, *[1] * (values.ndim - 2)).to(torch.float32)
    return (values.nan_to_num() * weight).sum(0) / weight.sum(0)


def of_episodes(logs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What ``extras["log"]`` of several steps tells: sums of counts, means over the episodes that ended of the rest."""
    rows = [
        dict(
            zip(
                log,
                torch.stack([torch.as_tensor(x).double() for x in log.values()]).tolist(),
                strict=True,
            )
        )
        for log in logs
    ]
    told = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [(row[name], row.get(EPISODES, 1.0)) for row in rows if name in row]
        counted = name == EPISODES or name.startswith("/termination/")
        episodes = sum(weight for _, weight in values)
        told[name.lstrip("/")] = sum(
            x if counted else x * weight / episodes for x, weight in values
        )
    return told


def print_costs(costs: dict[str, float], limits: dict[str, float], console: Console) -> None:
    if not costs:
        return
    mean, limit = (Column(head, justify="right") for head in ("mean", "limit"))
    table = Table("cost", mean, limit, title="costs per step")
    for name, value in costs.items():
        table.add_row(name, f"{value:.4f}", f"{limits[name]:g}")
    console.print(table)

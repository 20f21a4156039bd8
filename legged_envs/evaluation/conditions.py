"""Conditions of an evaluation, and means over its steps and episodes, for every kind of task."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import apply_changes
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.tasks.kind import kind_of

PolicyFunction = Callable[..., torch.Tensor]
"""Observations of some groups, one argument each → actions."""

Range = tuple[float, float]
"""(low, high)."""

COMMAND_RANGES: dict[str, Range] = {
    "lin_vel_x": (-1.0, 1.0),
    "lin_vel_y": (-0.5, 0.5),
    "ang_vel_z": (-1.0, 1.0),
}
"""Velocity commands of an evaluation, m/s and rad/s, as far as the task has them too."""

EVALUATION_ENV_OPTIONS: dict[str, Any] = {
    "array": "torch",
    "observations": "dict",
    # An ended episode is not replaced by a new one: every environment gives one episode.
    "autoreset_mode": "Disabled",
    "max_episode_steps": 10**9,
}
"""Options of environments to evaluate or watch a policy in. Only terminations end episodes."""

SETTLING_SECONDS = 1.0
"""Time at the start of an episode in which a robot need not follow its velocity command yet, s."""

EPISODES_KEY = "/episodes"
"""Name of the number of finished episodes in the log of a step."""

TERMINATIONS_PREFIX = "/termination/"
"""Beginning of the names of counts of terminations in the log of a step."""


def command_ranges(cfg: TaskCfg) -> dict[str, Range]:
    """Return the ranges of velocity commands in which a task is evaluated, m/s and rad/s.

    These are the ranges that `COMMAND_RANGES` and the task have in common. Where they have nothing
    in common, it is the range of the task.
    """
    command = cast(VelocityCommandCfg, cfg.commands["velocity"])
    return {
        "lin_vel_x": _common_range(COMMAND_RANGES["lin_vel_x"], command.lin_vel_x),
        "lin_vel_y": _common_range(COMMAND_RANGES["lin_vel_y"], command.lin_vel_y),
        "ang_vel_z": _common_range(COMMAND_RANGES["ang_vel_z"], command.ang_vel_z),
    }


def _common_range(evaluated: Range, trained: Range) -> Range:
    # A policy is not judged by commands that it was never given.
    low = max(evaluated[0], trained[0])
    high = min(evaluated[1], trained[1])
    if low <= high:
        return low, high
    return trained[0], trained[1]


def evaluation_cfg(cfg: TaskCfg) -> TaskCfg:
    """Return the configuration in which a task is evaluated.

    It is randomised and noisy as in training, without disturbances, with one velocity command an
    episode.
    """
    # Pushes and the like would hide how well a command is followed.
    events = {name: event for name, event in cfg.events.items() if event.purpose != "disturb"}
    changes: dict[str, Any] = {"events": events}
    if kind_of(cfg).has_velocity_command:
        for name, span in command_ranges(cfg).items():
            changes[f"commands.velocity.{name}"] = span
        # Standing is evaluated in a rollout of its own.
        changes["commands.velocity.standing_fraction"] = 0.0
        # Longer than any episode: the command stays.
        changes["commands.velocity.resampling_time_s"] = (1e6, 1e6)
    return apply_changes(cfg, changes)


def command_errors(core: CoreVectorEnv) -> dict[str, torch.Tensor]:
    """Return how far each robot is from its velocity command.

    Returns:
        `lin_vel_error`, ‖v_xy − c_xy‖ in m/s, and `ang_vel_error`, |ω_z − c_ω| in rad/s. Shapes:
        (num_envs,).
    """
    command = core.commands["velocity"]
    lin_vel_error = command[:, :2] - core.robot.lin_vel_b[:, :2]
    ang_vel_error = command[:, 2] - core.robot.ang_vel_b[:, 2]
    return {
        "lin_vel_error": lin_vel_error.norm(dim=1),
        "ang_vel_error": ang_vel_error.abs(),
    }


def after_settling(alive: torch.Tensor, step_dt: float) -> torch.Tensor:
    """Return `alive` (steps, n) without the steps of the first `SETTLING_SECONDS`."""
    counted = alive.clone()
    counted[: round(SETTLING_SECONDS / step_dt)] = False
    return counted


def mean_over_steps(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Return the mean over the steps that count, NaN for environments without one.

    Args:
        values: Shape: (steps, n, …).
        counted: True for the steps that count. Shape: (steps, n).

    Returns:
        Shape: (n, …).
    """
    trailing = [1] * (values.ndim - 2)
    weight = counted.reshape(*counted.shape, *trailing).to(torch.float32)
    # 0 · NaN is NaN: a step that does not count must not be one.
    return (values.nan_to_num() * weight).sum(0) / weight.sum(0)


def combine_logs(logs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Combine the logs (`extras["log"]`) of several steps.

    Counts of episodes and terminations are added. Everything else becomes the mean over the
    episodes that ended. Leading slashes of the names are dropped.
    """
    # Name → its value and the number of finished episodes of each step that logged it.
    logged: dict[str, list[tuple[float, float]]] = {}
    for log in logs:
        numbers = _as_floats(log)
        episodes = numbers.get(EPISODES_KEY, 1.0)
        for name, value in numbers.items():
            logged.setdefault(name, []).append((value, episodes))
    combined = {}
    for name, steps in logged.items():
        if name == EPISODES_KEY or name.startswith(TERMINATIONS_PREFIX):
            total = sum(value for value, _ in steps)
        else:
            all_episodes = sum(episodes for _, episodes in steps)
            total = sum(value * episodes / all_episodes for value, episodes in steps)
        combined[name.lstrip("/")] = total
    return combined


def _as_floats(log: Mapping[str, Any]) -> dict[str, float]:
    # One copy from the device for all values.
    values = [torch.as_tensor(value).double() for value in log.values()]
    return dict(zip(log, torch.stack(values).tolist(), strict=True))


def print_costs(costs: Mapping[str, float], limits: Mapping[str, float], console: Console) -> None:
    """Print a table of costs and their limits, nothing if the task has no costs."""
    if not costs:
        return
    table = Table(
        "cost",
        Column("mean", justify="right"),
        Column("limit", justify="right"),
        title="costs per step",
    )
    for name, value in costs.items():
        table.add_row(name, f"{value:.4f}", f"{limits[name]:g}")
    console.print(table)

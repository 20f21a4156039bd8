"""Shared parts of evaluations: commands, environment options, and means over steps and episodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from typing import Any, cast

import torch
from rich.console import Console

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import apply_changes
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.gait_command import GaitCommandCfg
from legged_envs.tasks.kind import kind_of

PolicyFunction = Callable[..., torch.Tensor]
"""Function from observations, one tensor (num_envs, size) per group, to actions (num_envs,
num_actions)."""

Range = tuple[float, float]
"""Range of a quantity: (low, high), both included."""

COMMAND_RANGES: dict[str, Range] = {
    "lin_vel_x": (-1.0, 1.0),
    "lin_vel_y": (-0.5, 0.5),
    "ang_vel_z": (-1.0, 1.0),
}
"""Ranges of the velocity commands of an evaluation, m/s and rad/s. A task with smaller ranges is
evaluated within its own."""

EVALUATION_ENV_OPTIONS: dict[str, Any] = {
    "array": "torch",
    "observations": "dict",
    # An ended episode is not replaced by a new one: every environment gives one episode.
    "autoreset_mode": "Disabled",
    "max_episode_steps": -1,
}
"""Arguments of `make_vec` for environments in which a policy is evaluated or watched. Episodes have
no time limit: only terminations end them."""

SETTLING_SECONDS = 1.0
"""Time at the start of an episode that is excluded from means, because the robot is still
accelerating to its velocity command, s."""

EPISODES_KEY = "/episodes"
"""Key of the number of finished episodes in the log of a step."""

TERMINATIONS_PREFIX = "/termination/"
"""Prefix of the keys in the log of a step that count terminations by cause."""


def command_ranges(cfg: TaskCfg) -> dict[str, Range]:
    """Return the ranges of the velocity commands of an evaluation, by name, m/s and rad/s.

    Each is the intersection of the range in `COMMAND_RANGES` with the task's range. If the
    intersection is empty, it is the range of the task.
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
    """Return the configuration for evaluating a task.

    Randomization and observation noise are the same as in the training. Disturbances, such as
    pushes, are removed, and curricula, which change a task. The velocity command is drawn once per
    episode and does not change.
    """
    # Pushes and the like would hide how well a command is followed.
    events = {name: event for name, event in cfg.events.items() if event.purpose != "disturb"}
    changes: dict[str, Any] = {"events": events, "curriculum": {}}
    if kind_of(cfg).has_velocity_command:
        for name, span in command_ranges(cfg).items():
            changes[f"commands.velocity.{name}"] = span
        # Standing is evaluated in a separate rollout.
        changes["commands.velocity.standing_fraction"] = 0.0
        changes["commands.velocity.kind_ranges"] = {}
        # Longer than any episode: the command stays.
        changes["commands.velocity.resampling_time_s"] = (1e6, 1e6)
    for name, command in cfg.commands.items():
        if isinstance(command, GaitCommandCfg):
            # The whole ranges, which the curriculum opens in a training.
            changes[f"commands.{name}.level"] = 1.0
            changes[f"commands.{name}.resampling_time_s"] = (1e6, 1e6)
    return apply_changes(cfg, changes)


def command_errors(core: CoreVectorEnv) -> dict[str, torch.Tensor]:
    """Return the current errors between the velocity of each robot and its velocity command.

    Returns:
        `lin_vel_error`, ‖v_xy − c_xy‖ in m/s, and `ang_vel_error`, |ω_z − c_ω| in rad/s, in the
        base frame. Shapes: (num_envs,).
    """
    command = core.commands["velocity"]
    lin_vel_error = command[:, :2] - core.robot.lin_vel_b[:, :2]
    ang_vel_error = command[:, 2] - core.robot.ang_vel_b[:, 2]
    return {
        "lin_vel_error": lin_vel_error.norm(dim=1),
        "ang_vel_error": ang_vel_error.abs(),
    }


def after_settling(alive: torch.Tensor, step_dt: float) -> torch.Tensor:
    """Return a copy of `alive` that is False in the first `SETTLING_SECONDS`.

    Args:
        alive: True until an episode terminates. Shape: (steps, n).
        step_dt: Duration of a control step, s.

    Returns:
        Mask of the steps to count. Shape: (steps, n).
    """
    counted = alive.clone()
    counted[: round(SETTLING_SECONDS / step_dt)] = False
    return counted


def mean_over_steps(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Return the mean of each environment over its counted steps.

    Args:
        values: Values at each step. Shape: (steps, n, …).
        counted: True for the steps to include. Shape: (steps, n).

    Returns:
        Means. NaN for environments without a counted step. Shape: (n, …).
    """
    trailing = [1] * (values.ndim - 2)
    weight = counted.reshape(*counted.shape, *trailing).to(torch.float32)
    # 0 · NaN is NaN: a step that does not count must not be one.
    return (values.nan_to_num() * weight).sum(0) / weight.sum(0)


def combine_logs(logs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Combine the logs (`extras["log"]`) of several steps into one.

    Counts of episodes and terminations are summed. All other numbers are averaged over the finished
    episodes. Leading slashes of the names are removed.
    """
    # Name → its value and the number of finished episodes of each step that logged it.
    logged: dict[str, list[tuple[float, float]]] = {}
    for log in logs:
        numbers = as_floats(log)
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


def as_floats(log: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a log, some of which are tensors, as floats."""
    # One copy from the device for all values.
    values = [torch.as_tensor(value).double() for value in log.values()]
    return dict(zip(log, torch.stack(values).tolist(), strict=True))


def format_measure(value: float, style: str) -> str:
    """Return a measure as text, "-" for NaN, which stands for a measure without a step.

    Args:
        value: The measure.
        style: Format of the number, as in ``format``, such as ``".3f"``.
    """
    return "-" if isnan(value) else format(value, style)


def print_why_unmeasured(values: Iterable[float], console: Console) -> None:
    """Print why measures have no value, if one of them has none."""
    if any(map(isnan, values)):
        console.print(
            f"-: no episode lasted longer than the {SETTLING_SECONDS:g} s at its start that "
            "are not measured"
        )

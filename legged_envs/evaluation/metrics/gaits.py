"""Metrics of a task with a gait command: how well each gait and its style are followed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import CoreVectorEnv
from legged_envs.evaluation.conditions import after_settling, format_measure, mean_over_steps
from legged_envs.evaluation.metrics.task import Measures, Rollout
from legged_envs.evaluation.metrics.velocity import VelocityEvaluation, VelocityMetrics
from legged_envs.mdp.gait_command import STYLE, GaitChoice, GaitCommand

LEAST_SWING = 0.05
"""Shortest swing that counts, s. A shorter one is a foot that bounces as it lands."""

STYLE_UNITS = {"period": "s", "clearance": "m", "height": "m", "pitch": "rad"}
"""Unit of each number of a style."""


@dataclass
class GaitResult:
    """How well the episodes of one gait followed their style.

    Each episode has its own style. Errors are absolute differences between its command and its
    measured mean, averaged over episodes.
    """

    episodes: int
    """Number of episodes with this gait."""
    falls: float
    """Fraction of these episodes that a termination ended, such as a fall."""
    lin_vel_error: float
    """Error of the horizontal velocity relative to its command, m/s."""
    on_schedule: float
    """Fraction of the time during which a foot is on the ground, or not, as the gait asks."""
    commanded: dict[str, float]
    """Mean command of each number of the style, s, m, m and rad."""
    measured: dict[str, float]
    """Mean of each measured number of the style, s, m, m and rad."""
    errors: dict[str, float]
    """Mean absolute error of each number of the style, s, m, m and rad."""
    period_error: float
    """Mean absolute error of the period relative to its command, as a fraction."""


@dataclass
class GaitEvaluation(VelocityEvaluation):
    """Result of the evaluation of a policy on a task with gait commands."""

    gaits: dict[str, GaitResult] | None = None
    """Results of the episodes of each gait, by its name."""

    def print(self, console: Console) -> None:
        """Print the tables of `VelocityEvaluation`, one of the gaits, and one of their styles."""
        super().print(console)
        assert self.gaits is not None
        names = ("episodes", "falls", "velocity error", "on schedule")
        table = Table("gait", *(Column(name, justify="right") for name in names))
        for gait, result in self.gaits.items():
            table.add_row(
                gait,
                str(result.episodes),
                format_measure(result.falls, ".1%"),
                format_measure(result.lin_vel_error, ".3f") + " m/s",
                format_measure(result.on_schedule, ".1%"),
            )
        console.print(table)
        console.print(_style_table(self.gaits))


def _style_table(gaits: Mapping[str, GaitResult]) -> Table:
    """Return a table of the commanded and the measured style of each gait."""
    names = ("commanded", "measured", "mean error")
    table = Table("gait", "quantity", *(Column(name, justify="right") for name in names))
    for gait, result in gaits.items():
        for name in STYLE:
            error = format_measure(result.errors[name], ".3f")
            if name == "period":
                error += f" ({format_measure(result.period_error, '.1%')})"
            table.add_row(
                gait,
                f"{name} [{STYLE_UNITS[name]}]",
                format_measure(result.commanded[name], ".3f"),
                format_measure(result.measured[name], ".3f"),
                error,
            )
        table.add_section()
    return table


class GaitMetrics(VelocityMetrics):
    """Metrics of a task with a gait command.

    Each episode has one gait and one style, which the evaluation draws from the whole ranges.
    """

    _schedule: torch.Tensor
    """Probability that each foot should be on the ground in the step that is measured next. Shape:
    (num_envs, num_feet)."""

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        observation = super().start(envs, seed, still)
        self._schedule = find_gait_command(self._core).contact_schedule
        return observation

    def measures(self, info: Mapping[str, Any]) -> Measures:
        measures = super().measures(info)
        robot = self._core.robot
        command = find_gait_command(self._core)
        # The command already belongs to the next step: the contacts are compared with the schedule
        # that the step began with, as in the rewards.
        should_stand = self._schedule > 0.5
        self._schedule = command.contact_schedule
        agrees = robot.foot_contact == should_stand
        measures["on_schedule"] = agrees.float().mean(1)
        # With the nose down by p, gravity points to sin p ahead.
        measures["pitch"] = robot.projected_gravity[:, 0].clamp(-1.0, 1.0).asin()
        measures["gait_index"] = command.gait_index.float()
        measures["style"] = command.value[:, 3:]
        return measures

    def result(
        self, values: Measures, alive: torch.Tensor, standing: Rollout | None = None
    ) -> GaitEvaluation:
        walk = super().result(values, alive, standing)
        return GaitEvaluation(**asdict(walk), gaits=self._gait_results(values, alive))

    def _gait_results(self, values: Measures, alive: torch.Tensor) -> dict[str, GaitResult]:
        counted = after_settling(alive, self._core.step_dt)
        # One gait and style in each episode: the values of its first step.
        gait = values["gait_index"][0].long()
        commanded = values["style"][0]
        style = self._measured_style(values, counted)
        measured = torch.stack([style[name] for name in STYLE], dim=1)
        on_schedule = mean_over_steps(values["on_schedule"], counted)
        lin_vel_error = mean_over_steps(values["lin_vel_error"], counted)
        fell = (~alive[-1]).float()
        results = {}
        for index, name in enumerate(find_gait_command(self._core).cfg.gaits):
            rows = gait == index
            error = (measured[rows] - commanded[rows]).abs()
            results[name] = GaitResult(
                episodes=int(rows.sum()),
                falls=fell[rows].mean().item(),
                lin_vel_error=lin_vel_error[rows].nanmean().item(),
                on_schedule=on_schedule[rows].nanmean().item(),
                commanded=_by_name(commanded[rows]),
                measured=_by_name(measured[rows]),
                errors=_by_name(error),
                period_error=(error[:, 0] / commanded[rows, 0]).nanmean().item(),
            )
        return results

    def _measured_style(self, values: Measures, counted: torch.Tensor) -> Measures:
        """Return the measured period, clearance, height and pitch of each episode.

        The period is NaN unless a foot lands twice, the clearance without a swing, and height and
        pitch if no step counts. Shapes: (n,).
        """
        is_swing = values["swing_time"] >= LEAST_SWING
        landed = (values["landed"] > 0.0) & is_swing & counted.unsqueeze(2)
        num_swings = landed.sum((0, 2))
        clearance = (values["swing_height"] * landed).sum((0, 2)) / num_swings
        return {
            "period": mean_stride_time(landed, self._core.step_dt),
            "clearance": clearance,
            "height": mean_over_steps(values["base_height"], counted),
            "pitch": mean_over_steps(values["pitch"], counted),
        }


def mean_stride_time(landed: torch.Tensor, step_dt: float) -> torch.Tensor:
    """Return the mean time between two landings of a foot, over all feet of each robot.

    Args:
        landed: True where a foot lands. Shape: (steps, n, num_feet), bool.
        step_dt: Duration of a control step, s.

    Returns:
        Mean times, s. NaN for robots of which no foot landed twice. Shape: (n,).
    """
    steps = torch.arange(len(landed), device=landed.device).view(-1, 1, 1)
    first = torch.where(landed, steps, len(landed)).amin(0)
    last = torch.where(landed, steps, -1).amax(0)
    strides = (landed.sum(0) - 1).clamp(min=0)
    # A foot without a stride has no time between landings either.
    time = torch.where(strides > 0, last - first, 0)
    return time.sum(1) * step_dt / strides.sum(1)


def _by_name(rows: torch.Tensor) -> dict[str, float]:
    """Return the mean over episodes (n, 4) of each number of a style, by its name."""
    return dict(zip(STYLE, rows.nanmean(0).tolist(), strict=True))


def find_gait_command(core: CoreVectorEnv) -> GaitCommand:
    """Return the gait command of an environment.

    Raises:
        ValueError: If its task has none.
    """
    for term in core.commands.terms.values():
        if isinstance(term, GaitCommand):
            return term
    raise ValueError("the task has no gait command")


def hold_gait(
    core: CoreVectorEnv, choice: GaitChoice, observation: dict[str, torch.Tensor]
) -> None:
    """Set gait and style of every robot, and keep them constant until the next reset.

    Args:
        core: Environment with a gait command.
        choice: The gait and its style: period, clearance, height and pitch.
        observation: Current observation, by observation group. It is updated in place.

    Raises:
        ValueError: If the task has no gait command, or a number of the style is outside its range.
    """
    style = asdict(choice)
    gait = style.pop("gait")
    find_gait_command(core).hold_gait(gait, **style)
    # Several observation terms depend on the command, so all of them are computed again.
    observation.update(core.observe_again())

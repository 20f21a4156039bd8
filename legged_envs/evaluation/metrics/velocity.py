"""How well a robot follows velocity commands, and how it walks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, get_type_hints

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import LeggedVectorEnv
from legged_envs.evaluation.conditions import (
    command_errors,
    command_ranges,
    mean_over_steps,
    print_costs,
    settled,
)
from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.mdp import observations


@dataclass
class Evaluation:
    """Means over time after the first second, then over episodes, of a robot until it falls; % marks a fraction."""

    episodes: int
    commands: dict[str, tuple[float, float]]
    """Ranges of the velocity command, m/s and rad/s."""
    lin_vel_error: Annotated[float, "m/s"]
    ang_vel_error: Annotated[float, "rad/s"]
    """‖v_xy − c_xy‖ and |ω_z − c_ω|."""
    falls: Annotated[float, "%"]
    """Fraction of the episodes that ended early."""
    base_height: Annotated[float, "m"]
    tilt: Annotated[float, "rad"]
    duty_factor: Annotated[float, "%"]
    diagonal_agreement: Annotated[float, "%"]
    """Fraction of time that a foot stands; that a diagonal's feet do the same (two feet: that one of them swings)."""
    swing_height: Annotated[float, "m"]
    """Greatest height of a foot in its swings, mean over swings."""
    swing_time: Annotated[float, "s"]
    torque_rms: Annotated[float, "N·m"]
    power: Annotated[float, "W"]
    """Σ |τ q̇|."""
    still_joint_speed: Annotated[float, "rad/s"]
    still_contact: Annotated[float, "%"]
    """With the command zero: mean |q̇|, where drumming shows, and fraction of the time that a foot stands."""
    costs: dict[str, float]
    cost_limits: dict[str, float]
    """Mean of each cost per step, and what it may be."""

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, in dicts and numbers alone."""
        return asdict(self)

    def walks(self, lin_vel_error: float, ang_vel_error: float, falls: float) -> bool:
        """Whether errors, m/s and rad/s, and the fraction of falls are at most those given."""
        return (
            self.lin_vel_error <= lin_vel_error
            and self.ang_vel_error <= ang_vel_error
            and self.falls <= falls
        )

    def print(self, console: Console) -> None:
        """Print the ranges of the commands, a table of the means with their units, and one of the costs."""
        ranges = ", ".join(
            f"{name} in [{low:g}, {high:g}]" for name, (low, high) in self.commands.items()
        )
        console.print(f"{self.episodes} episodes; commands: {ranges}")
        table = Table("quantity", Column("mean", justify="right"))
        for name, unit in UNITS.items():
            value = getattr(self, name)
            table.add_row(
                name.replace("_", " "), f"{value:.1%}" if unit == "%" else f"{value:.3f} {unit}"
            )
        console.print(table)
        print_costs(self.costs, self.cost_limits, console)


_HINTS = get_type_hints(Evaluation, include_extras=True)
UNITS: dict[str, str] = {
    name: hint.__metadata__[0] for name, hint in _HINTS.items() if hasattr(hint, "__metadata__")
}
SWINGS = ("swing_height", "swing_time")
STILL = {"still_joint_speed": "joint_speed", "still_contact": "duty_factor"}
"""Measures of a foot's swing, which count where it landed; quantities with the command zero → what is measured."""


class VelocityMetrics(TaskMetrics):
    """What is measured on a task that follows velocity commands."""

    ERRORS: ClassVar[dict[str, str]] = {"lin_vel_error": "m/s", "ang_vel_error": "rad/s"}
    GOAL: ClassVar[dict[str, float]] = {"lin_vel_error": 0.25, "ang_vel_error": 0.25, "falls": 0.05}
    STANDS: ClassVar[bool] = True

    def __init__(self, core: LeggedVectorEnv):
        super().__init__(core)
        robot = core.cfg.robot
        self._diagonals = [
            [robot.foot_names.index(name) for name in pair] for pair in robot.diagonals
        ]
        self._peak = torch.zeros(core.num_envs, len(robot.foot_names), device=core.device)
        """Greatest height of each foot since it left the ground, m."""

    @staticmethod
    def training_errors(core: LeggedVectorEnv) -> dict[str, float]:
        """Means over the robots, in this moment, of ‖v_xy − c_xy‖, m/s, and |ω_z − c_ω|, rad/s."""
        return {name: error.mean().item() for name, error in command_errors(core).items()}

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        observation = super().start(envs, seed, still)
        if still:
            hold_velocity(self._core, (0.0, 0.0, 0.0), observation)
        self._peak.zero_()
        return observation

    def measures(self, info: dict[str, Any]) -> dict[str, torch.Tensor]:
        robot, contact = self._core.robot, self._core.robot.foot_contact
        height = robot.foot_height - self._core.cfg.robot.foot_radius
        peak, self._peak = self._peak, torch.where(contact, 0.0, torch.maximum(self._peak, height))
        pairs = [contact[:, first] == contact[:, second] for first, second in self._diagonals]
        agreement = pairs or [contact[:, 0] != contact[:, 1]]
        return {
            **command_errors(self._core),
            "base_height": robot.base_height,
            "tilt": torch.acos((-robot.projected_gravity[:, 2]).clamp(-1.0, 1.0)),
            "duty_factor": contact.float().mean(1),
            "diagonal_agreement": torch.stack(agreement).float().mean(0),
            "torque_squared": robot.joint_torque.square().mean(1),
            "power": (robot.joint_torque * robot.joint_vel).abs().sum(1),
            "joint_speed": robot.joint_vel.abs().mean(1),
            "costs": info["costs"],
            "landed": robot.foot_landed.float(),
            "swing_height": peak,
            "swing_time": robot.foot_air_time,
        }

    def result(
        self, values: dict[str, torch.Tensor], alive: torch.Tensor, still: Any = None
    ) -> Evaluation:
        core, counted = self._core, settled(alive, self._core.step_dt)
        means = {name: mean_over_steps(value, counted).nanmean(0) for name, value in values.items()}
        landed = values["landed"] * counted.unsqueeze(2)
        means |= {
            name: (values[name] * landed).sum() / landed.sum().clamp(min=1.0) for name in SWINGS
        }
        means["torque_rms"] = means["torque_squared"].sqrt()
        means["falls"] = (~alive[-1]).float().mean()
        means |= dict.fromkeys(STILL, torch.tensor(torch.nan))
        if still is not None:
            standing, stood = still[0], settled(still[1], core.step_dt)
            means |= {
                name: mean_over_steps(standing[of], stood).nanmean() for name, of in STILL.items()
            }
        return Evaluation(
            episodes=core.num_envs,
            commands=command_ranges(core.cfg),
            costs=dict(zip(core.cost_names, means["costs"].tolist(), strict=True)),
            cost_limits=dict(zip(core.cost_names, core.cost_limits, strict=True)),
            **{name: means[name].item() for name in UNITS},
        )


def hold_velocity(
    core: LeggedVectorEnv, command: Sequence[float], observation: dict[str, torch.Tensor]
) -> None:
    """Give every robot one velocity command until its next reset, and write it to an observation made before."""
    term: Any = core.commands.terms["velocity"]
    value = torch.tensor(command, dtype=torch.float32, device=core.device)
    term.hold(value)
    terms = [term for group in core.cfg.observations.values() for term in group.terms.values()]
    if not any(term.func is observations.command for term in terms):
        observation.update(core.observe_again())
        return
    for group in core.observations.groups.keys() & observation.keys():
        for name, cfg in core.cfg.observations[group].terms.items():
            if (
                cfg.func is observations.command
                and cfg.params.get("name", "velocity") == "velocity"
            ):
                seen = value * torch.as_tensor(cfg.scale, device=core.device)
                core.observations.groups[group].overwrite(observation[group], name, seen)

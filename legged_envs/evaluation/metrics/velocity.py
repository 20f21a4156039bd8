"""Metrics of a velocity task: errors of the velocity, gait, effort and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import CoreVectorEnv
from legged_envs.evaluation.conditions import (
    after_settling,
    command_errors,
    command_ranges,
    format_measure,
    mean_over_steps,
    print_why_unmeasured,
)
from legged_envs.evaluation.metrics.costs import CostResults, until_the_end
from legged_envs.evaluation.metrics.task import Measures, Rollout, TaskMetrics
from legged_envs.managers import ObservationTermCfg
from legged_envs.mdp import observations

UNITS: dict[str, str] = {
    "lin_vel_error": "m/s",
    "ang_vel_error": "rad/s",
    "falls": "%",
    "base_height": "m",
    "tilt": "rad",
    "duty_factor": "%",
    "diagonal_agreement": "%",
    "swing_height": "m",
    "swing_time": "s",
    "torque_rms": "N·m",
    "power": "W",
    "still_joint_speed": "rad/s",
    "still_contact": "%",
}
"""Units of the fields of `VelocityEvaluation`, in the order of the printed table. % marks a
fraction that is printed as a percentage."""


@dataclass
class VelocityEvaluation(CostResults):
    """Result of the evaluation of a policy on a velocity task.

    Values are means over the steps from the first second of an episode until the robot falls, then
    over episodes, unless a field's description differs.
    """

    episodes: int
    """Number of episodes."""
    commands: dict[str, tuple[float, float]]
    """Ranges of the velocity commands of the evaluation, by name, m/s and rad/s."""
    lin_vel_error: float
    """Error of the horizontal velocity ‖v_xy − c_xy‖ relative to the command c, m/s."""
    ang_vel_error: float
    """Error of the yaw rate |ω_z − c_ω| relative to the command c, rad/s."""
    falls: float
    """Fraction of the episodes that a termination ended, such as a fall."""
    base_height: float
    """Height of the base above the ground, m."""
    tilt: float
    """Angle between the z-axis of the base and the vertical, rad."""
    duty_factor: float
    """Fraction of the time during which a foot is in contact, mean over feet."""
    diagonal_agreement: float
    """Fraction of the time during which both feet of a diagonal pair stand, or both swing.

    For a biped: fraction of the time during which exactly one foot swings.
    """
    swing_height: float
    """Largest height of a foot during a swing, m, mean over swings."""
    swing_time: float
    """Duration of a swing, s, mean over swings."""
    torque_rms: float
    """Root mean square of the torques of all joints, N·m."""
    power: float
    """Mechanical power Σ |τ q̇|, summed over joints, W."""
    still_joint_speed: float
    """Joint speed |q̇| under the zero command, mean over joints, rad/s. It is large if the robot
    taps its feet on the ground. NaN if standing was not evaluated."""
    still_contact: float
    """Fraction of the time during which a foot is in contact under the zero command. NaN if
    standing was not evaluated."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, as dicts and numbers."""
        return asdict(self)

    def walks(self, lin_vel_error: float, ang_vel_error: float, falls: float) -> bool:
        """Return True if the errors and the fraction of falls are small enough.

        Args:
            lin_vel_error: Largest allowed error of the velocity, m/s.
            ang_vel_error: Largest allowed error of the turning velocity, rad/s.
            falls: Largest allowed fraction of episodes that end in a fall.
        """
        return (
            self.lin_vel_error <= lin_vel_error
            and self.ang_vel_error <= ang_vel_error
            and self.falls <= falls
        )

    def print(self, console: Console) -> None:
        """Print the ranges of the commands, a table of the means, and one of the costs."""
        ranges = []
        for name, (low, high) in self.commands.items():
            ranges.append(f"{name} in [{low:g}, {high:g}]")
        console.print(f"{self.episodes} episodes; commands: {', '.join(ranges)}")
        table = Table("quantity", Column("mean", justify="right"))
        for name, unit in UNITS.items():
            value = getattr(self, name)
            text = format_measure(value, ".1%" if unit == "%" else ".3f")
            if unit != "%" and text != "-":
                text += f" {unit}"
            table.add_row(name.replace("_", " "), text)
        console.print(table)
        print_why_unmeasured([self.lin_vel_error], console)
        self.print_costs(console)


class VelocityMetrics(TaskMetrics):
    """Metrics of a task that follows velocity commands.

    Args:
        core: Environment of the evaluation.
    """

    ERRORS: ClassVar[dict[str, str]] = {"lin_vel_error": "m/s", "ang_vel_error": "rad/s"}
    GOAL: ClassVar[dict[str, float]] = {"lin_vel_error": 0.25, "ang_vel_error": 0.25, "falls": 0.05}
    EVALUATES_STANDING: ClassVar[bool] = True
    OUTLASTS_TIME_LIMIT: ClassVar[bool] = True

    def __init__(self, core: CoreVectorEnv):
        super().__init__(core)
        robot = core.cfg.robot
        # Indices of the feet of each diagonal.
        self._diagonals: list[tuple[int, int]] = []
        # Robots with two feet have no diagonals.
        for first, second in robot.diagonals:
            pair = (robot.foot_names.index(first), robot.foot_names.index(second))
            self._diagonals.append(pair)
        # Greatest height of each foot since it left the ground, m.
        self._peak = torch.zeros(core.num_envs, len(robot.foot_names), device=core.device)

    @staticmethod
    def training_errors(core: CoreVectorEnv) -> dict[str, float]:
        """Return the current velocity errors, averaged over the robots of a training.

        Args:
            core: Training environment, without wrappers.

        Returns:
            `lin_vel_error`, m/s, and `ang_vel_error`, rad/s, relative to the velocity commands.
        """
        return {name: error.mean().item() for name, error in command_errors(core).items()}

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        observation = super().start(envs, seed, still)
        # Commands are drawn at the reset, and the zero command replaces them.
        if still:
            hold_velocity(self._core, (0.0, 0.0, 0.0), observation)
        self._peak.zero_()
        return observation

    def measures(self, info: Mapping[str, Any]) -> Measures:
        robot = self._core.robot
        contact = robot.foot_contact
        # The swing that ends in this step is over: its peak was reached in the step before.
        peak = self._peak
        # The height of a foot is measured at its centre: on the ground it is the radius.
        height = robot.foot_height - self._core.cfg.robot.foot_radius
        self._peak = torch.where(contact, 0.0, torch.maximum(peak, height))
        errors = command_errors(self._core)
        direction = torch.nn.functional.normalize(self._core.commands["velocity"][:, :2], dim=1)
        # Rounding may give a cosine slightly above 1.
        cos_tilt = (-robot.projected_gravity[:, 2]).clamp(-1.0, 1.0)
        return {
            "lin_vel_error": errors["lin_vel_error"],
            "ang_vel_error": errors["ang_vel_error"],
            "speed_along_command": (robot.lin_vel_b[:, :2] * direction).sum(1),
            "base_height": robot.base_height,
            "tilt": torch.acos(cos_tilt),
            "duty_factor": contact.float().mean(1),
            "diagonal_agreement": self._diagonal_agreement(contact),
            # The root is taken of the mean, in `result`.
            "torque_squared": robot.joint_torque.square().mean(1),
            "power": (robot.joint_torque * robot.joint_vel).abs().sum(1),
            "joint_speed": robot.joint_vel.abs().mean(1),
            "costs": info["costs"],
            "landed": robot.foot_landed.float(),
            "swing_height": peak,
            "swing_time": robot.foot_air_time,
        }

    def _diagonal_agreement(self, contact: torch.Tensor) -> torch.Tensor:
        if self._diagonals:
            agreements = [
                contact[:, first] == contact[:, second] for first, second in self._diagonals
            ]
        else:
            # Two feet walk if they take turns.
            agreements = [contact[:, 0] != contact[:, 1]]
        return torch.stack(agreements).float().mean(0)

    def result(
        self, values: Measures, alive: torch.Tensor, standing: Rollout | None = None
    ) -> VelocityEvaluation:
        core = self._core
        counted = after_settling(alive, core.step_dt)
        means = {name: mean_over_steps(value, counted).nanmean(0) for name, value in values.items()}
        # Swings are measured when the foot lands.
        landed = values["landed"] * counted.unsqueeze(2)
        joint_speed, contact = self._standing_means(standing)
        with_end = after_settling(until_the_end(alive), core.step_dt)
        costs = self._cost_results(values["costs"], alive, with_end)
        return VelocityEvaluation(
            episodes=core.num_envs,
            commands=command_ranges(core.cfg),
            lin_vel_error=means["lin_vel_error"].item(),
            ang_vel_error=means["ang_vel_error"].item(),
            falls=(~alive[-1]).float().mean().item(),
            base_height=means["base_height"].item(),
            tilt=means["tilt"].item(),
            duty_factor=means["duty_factor"].item(),
            diagonal_agreement=means["diagonal_agreement"].item(),
            swing_height=_mean_over_swings(values["swing_height"], landed),
            swing_time=_mean_over_swings(values["swing_time"], landed),
            torque_rms=means["torque_squared"].sqrt().item(),
            power=means["power"].item(),
            still_joint_speed=joint_speed,
            still_contact=contact,
            **vars(costs),
        )

    def _standing_means(self, standing: Rollout | None) -> tuple[float, float]:
        """Return joint speed and contact under the zero command, NaN without a rollout."""
        if standing is None:
            return torch.nan, torch.nan
        counted = after_settling(standing.alive, self._core.step_dt)
        joint_speed = mean_over_steps(standing.measures["joint_speed"], counted).nanmean()
        contact = mean_over_steps(standing.measures["duty_factor"], counted).nanmean()
        return joint_speed.item(), contact.item()


def _mean_over_swings(values: torch.Tensor, landed: torch.Tensor) -> float:
    """Return the mean over the feet that land, weighted by `landed`, (steps, num_envs, feet)."""
    # Without a single swing the mean is 0, and not NaN.
    mean = (values * landed).sum() / landed.sum().clamp(min=1.0)
    return mean.item()


def hold_velocity(
    core: CoreVectorEnv, command: Sequence[float], observation: dict[str, torch.Tensor]
) -> None:
    """Set the velocity command of every robot, and keep it constant until the next reset.

    The current observation still shows the previous command, so it is corrected as well.

    Args:
        core: Environment with a velocity command.
        command: Forward velocity, m/s, sideways velocity, m/s, and yaw rate, rad/s.
        observation: Current observation, by group. Changed in place to show the new command.
    """
    # A task of another package may have a command term of a custom class here.
    velocity: Any = core.commands.terms["velocity"]
    value = torch.tensor(command, dtype=torch.float32, device=core.device)
    velocity.hold(value)
    if not _observes_commands(core):
        # Another term may show the command in its own way.
        observation.update(core.observe_again())
        return
    # Only the columns of the command are replaced: noise and history stay as they were observed.
    for group in core.observations.groups.keys() & observation.keys():
        for name, term in core.cfg.observations[group].terms.items():
            if _shows_velocity(term):
                shown = value * torch.as_tensor(term.scale, device=core.device)
                core.observations.groups[group].overwrite(observation[group], name, shown)


def _observes_commands(core: CoreVectorEnv) -> bool:
    for group in core.cfg.observations.values():
        for term in group.terms.values():
            if term.func is observations.command:
                return True
    return False


def _shows_velocity(term: ObservationTermCfg) -> bool:
    # A task may have several velocity commands, and the name decides which command a term shows.
    shows_command = term.func is observations.command
    return shows_command and term.params.get("name", "velocity") == "velocity"

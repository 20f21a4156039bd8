"""Metrics of a velocity task under harsh conditions: errors while commands change, and standing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import CoreVectorEnv
from legged_envs.evaluation import harsh
from legged_envs.evaluation.conditions import (
    SETTLING_SECONDS,
    after_settling,
    format_measure,
    mean_over_steps,
)
from legged_envs.evaluation.metrics.task import Measures, Rollout, TaskMetrics
from legged_envs.evaluation.metrics.terrain import TerrainMetrics
from legged_envs.evaluation.metrics.velocity import VelocityEvaluation, VelocityMetrics


@dataclass
class HarshEvaluation:
    """Result of the evaluation of a policy on a velocity task under harsh conditions."""

    walk: VelocityEvaluation
    """Result with the measures of a usual evaluation; on rough ground also the crossed tiles.

    Errors are means over the steps with a command to move, among them those after a reversal. Joint
    speed and contact under the zero command are those after the stop at the end of an episode.
    """
    still_drift: float
    """Speed at which a robot drifts after the stop, ‖mean of v_xy‖, mean over episodes, m/s."""
    clipped: list[str]
    """Names of commands that are slower than in a usual evaluation, as the training's are."""
    conditions: dict[str, Any]
    """Harsh conditions by name: ranges, bounds of noise, and the phases of the command."""

    @property
    def crossings(self) -> dict[str, list[float]] | None:
        """Fraction of the episodes that crossed their tile, by kind and level; None on a plane."""
        crossings: dict[str, list[float]] | None = getattr(self.walk, "crossings", None)
        return crossings

    @property
    def falls(self) -> float:
        """Fraction of the episodes that a termination ended, such as a fall."""
        return self.walk.falls

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of ``walk`` and the others by name, as dicts and numbers."""
        own = {
            "still_drift": self.still_drift,
            "clipped": self.clipped,
            "harsh": self.conditions,
        }
        return {**self.walk.as_dict(), **own}

    def print(self, console: Console) -> None:
        """Print the conditions, the tables of a usual evaluation, and the drift."""
        low, high = self.conditions["payload"]
        console.print(
            f"harsh: friction {harsh.FRICTION[0]:g} to {harsh.FRICTION[1]:g}, "
            f"payload {low:.2g} to {high:.2g} kg, "
            f"delay of 0 or {harsh.ACTION_DELAY} control step, noise of the gyroscope "
            f"±{harsh.GYROSCOPE_NOISE:g} rad/s and of joint speeds ±{harsh.JOINT_SPEED_NOISE:g} "
            "rad/s; sudden starts, reversals and stops at the ends of the trained commands"
        )
        if self.clipped:
            names = ", ".join(self.clipped)
            console.print(
                "commands clipped to the trained range, which is smaller than for other "
                f"policies: {names}"
            )
        self.walk.print(console)
        console.print(f"drift after the stop: {format_measure(self.still_drift, '.3f')} m/s")


class HarshMetrics(TaskMetrics):
    """Metrics of a velocity task under harsh conditions, on flat or rough ground.

    Args:
        core: Environment of the evaluation.
    """

    EPISODE_SECONDS: ClassVar[float] = harsh.EPISODE_SECONDS
    OUTLASTS_TIME_LIMIT: ClassVar[bool] = True

    def __init__(self, core: CoreVectorEnv):
        super().__init__(core)
        metrics = VelocityMetrics if core.cfg.scene.terrain is None else TerrainMetrics
        self._usual = metrics(core)

    def start(self, envs: VectorEnv, seed: int, still: bool) -> dict[str, torch.Tensor]:
        return self._usual.start(envs, seed, still)

    def measures(self, info: Mapping[str, Any]) -> Measures:
        core = self._core
        measures = self._usual.measures(info)
        measures["moving"] = core.commands.terms["velocity"].moving
        measures["lin_vel_w"] = core.robot.root_lin_vel_w[:, :2]
        return measures

    def result(
        self, values: Measures, alive: torch.Tensor, standing: Rollout | None = None
    ) -> HarshEvaluation:
        core = self._core
        velocity_w = values.pop("lin_vel_w")
        moving = values.pop("moving") > 0.0
        after_stop = alive.clone()
        # After an emergency stop, a robot has a second to come to rest.
        after_stop[: round((harsh.STOP_SECONDS + SETTLING_SECONDS) / core.step_dt)] = False
        walking = moving & after_settling(alive, core.step_dt)
        means = {}
        for name in ("lin_vel_error", "ang_vel_error"):
            means[name] = mean_over_steps(values[name], walking).nanmean().item()
        for name in ("joint_speed", "duty_factor"):
            means[name] = mean_over_steps(values[name], after_stop).nanmean().item()
        drift = mean_over_steps(velocity_w, after_stop).norm(dim=1).nanmean().item()
        self._usual.cost_discount = self.cost_discount
        usual = self._usual.result(values, alive)
        walk = replace(
            usual,
            commands=harsh.commanded_ranges(core.cfg),
            lin_vel_error=means["lin_vel_error"],
            ang_vel_error=means["ang_vel_error"],
            still_joint_speed=means["joint_speed"],
            still_contact=means["duty_factor"],
        )
        return HarshEvaluation(
            walk=walk,
            still_drift=drift,
            clipped=harsh.clipped_commands(core.cfg),
            conditions=self._conditions(),
        )

    def _conditions(self) -> dict[str, Any]:
        return {
            "friction": list(harsh.FRICTION),
            "payload": list(harsh.payload_range(self._core.sim)),
            "action_delay": [0, harsh.ACTION_DELAY],
            "ang_vel_noise": harsh.GYROSCOPE_NOISE,
            "joint_vel_noise": harsh.JOINT_SPEED_NOISE,
            "command_phases": [list(phase) for phase in harsh.PHASES],
        }

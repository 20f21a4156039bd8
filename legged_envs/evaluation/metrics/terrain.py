"""Metrics of a velocity task on rough ground: velocity errors, and crossed tiles of the ground.

Rough ground is a grid of square tiles. A tile has a kind, such as stairs, and a level of
difficulty.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import apply_changes
from legged_envs.evaluation.metrics.task import Measures, Rollout
from legged_envs.evaluation.metrics.velocity import VelocityEvaluation, VelocityMetrics
from legged_envs.sim.ground import Ground

SPEED_RANGE = (0.6, 1.0)
"""Range of the forward velocity commands of an evaluation on rough ground, m/s."""


@dataclass
class TerrainEvaluation(VelocityEvaluation):
    """Result of the evaluation of a policy on a velocity task on rough ground.

    A robot starts in the middle of a tile of the rough ground and should cross it.
    """

    crossed: float = 0.0
    """Fraction of the episodes in which the robot left its tile without falling first."""
    crossings: dict[str, list[float]] | None = None
    """Fraction of the episodes that crossed their tile, at each level from the easiest on, by kind
    of terrain. NaN for levels without an episode."""

    def print(self, console: Console) -> None:
        """Print the tables of `VelocityEvaluation`, and a table of the crossed tiles.

        It has the percentage of episodes that crossed their tile, by kind of terrain and level.
        """
        super().print(console)
        assert self.crossings is not None
        num_levels = len(next(iter(self.crossings.values())))
        columns = [Column(str(level), justify="right") for level in range(num_levels)]
        table = Table("kind", *columns, title=f"{self.crossed:.1%} cross their tile, %")
        for kind, fractions in self.crossings.items():
            table.add_row(kind, *map(_percentage, fractions))
        console.print(table)


def _percentage(fraction: float) -> str:
    # NaN is the one number that differs from itself.
    if fraction != fraction:
        return "–"
    return f"{100 * fraction:.0f}"


class TerrainMetrics(VelocityMetrics):
    """Metrics of a velocity task on rough ground.

    From the middle of tiles of all kinds and levels, robots turn to a drawn heading and walk on. If
    the task starts all robots at one level, only tiles of that level are used.
    """

    ERRORS: ClassVar[dict[str, str]] = {**VelocityMetrics.ERRORS, "level": "mean level"}
    GOAL: ClassVar[dict[str, float]] = {}
    EVALUATES_STANDING: ClassVar[bool] = False
    EPISODE_SECONDS: ClassVar[float] = 15.0

    @staticmethod
    def task(cfg: TaskCfg, episodes: int) -> tuple[TaskCfg, int]:
        assert cfg.scene.terrain is not None
        low, high = cfg.scene.terrain.first_levels
        begin_at_one_level = low == high
        levels = (low, high) if begin_at_one_level else (0, cfg.scene.terrain.rows - 1)
        changes: dict[str, Any] = {
            "scene.terrain.first_levels": levels,
            # Robots walk straight on, over what is in front of them.
            "commands.velocity.heading": True,
            "commands.velocity.heading_fraction": 1.0,
            "commands.velocity.lin_vel_x": SPEED_RANGE,
            "commands.velocity.lin_vel_y": (0.0, 0.0),
            # A curriculum would move robots to other levels when an episode ends.
            "curriculum": {},
        }
        return apply_changes(cfg, changes), episodes

    @staticmethod
    def training_errors(core: CoreVectorEnv) -> dict[str, float]:
        """Return the current velocity errors and terrain level, averaged over the robots.

        Args:
            core: Training environment, without wrappers.

        Returns:
            `lin_vel_error`, m/s, `ang_vel_error`, rad/s, and `level`, the mean level of the tiles
            on which the robots are trained.
        """
        assert core.sim.ground is not None
        errors = VelocityMetrics.training_errors(core)
        errors["level"] = core.sim.ground.levels.float().mean().item()
        return errors

    @property
    def _ground(self) -> Ground:
        ground = self._core.sim.ground
        assert ground is not None
        return ground

    def measures(self, info: Mapping[str, Any]) -> Measures:
        ground = self._ground
        measures = super().measures(info)
        # Tiles are squares: the larger of |x| and |y| measures how far out a robot is.
        offset = self._core.robot.root_pos_w - ground.origins
        distance = offset[:, :2].abs().amax(1)
        measures["has_left_tile"] = (distance > 0.5 * ground.terrain.size).float()
        return measures

    def result(
        self, values: Measures, alive: torch.Tensor, standing: Rollout | None = None
    ) -> TerrainEvaluation:
        has_left_tile = values.pop("has_left_tile") > 0.0
        # A robot that falls and slides off its tile has not crossed it.
        crossed = (has_left_tile & alive).any(0).cpu()
        walk = super().result(values, alive, standing)
        return TerrainEvaluation(
            **asdict(walk),
            crossed=crossed.float().mean().item(),
            crossings=self._crossings(crossed),
        )

    def _crossings(self, crossed: torch.Tensor) -> dict[str, list[float]]:
        """Return the crossed fraction of each kind of terrain at each level."""
        ground = self._ground
        kinds = ground.terrain.kinds
        num_levels = len(ground.tile_origins)
        level = ground.levels.cpu()
        column = ground.columns.cpu()
        crossings: dict[str, list[float]] = {}
        # A kind can fill several columns of the terrain.
        for kind in dict.fromkeys(kinds):
            columns = [i for i, name in enumerate(kinds) if name == kind]
            of_kind = torch.isin(column, torch.tensor(columns))
            fractions = []
            for i in range(num_levels):
                fractions.append(crossed[of_kind & (level == i)].float().mean().item())
            crossings[kind] = fractions
        return crossings

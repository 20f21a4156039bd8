"""How well a robot gets over rough ground."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import torch
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg, replaced
from legged_envs.evaluation.metrics.velocity import Evaluation, VelocityMetrics

SPEEDS = (0.6, 1.0)
"""Forward commands of an evaluation, m/s, each towards one drawn heading."""


@dataclass
class TerrainEvaluation(Evaluation):
    """How a policy follows velocity commands on rough ground, and which tiles it crosses."""

    crossed: Annotated[float, "%"] = 0.0
    """Fraction of the episodes in which the robot left its tile before it fell."""
    crossings: dict[str, list[float]] | None = None
    """Kind of terrain → that fraction at each level, NaN where no episode was."""

    def print(self, console: Console) -> None:
        """Print the tables of :class:`Evaluation`, and one of the episodes that crossed their tile, %, by kind of
        terrain and level."""
        super().print(console)
        assert self.crossings is not None
        levels = range(len(next(iter(self.crossings.values()))))
        columns = [Column(str(level), justify="right") for level in levels]
        table = Table("kind", *columns, title=f"{self.crossed:.1%} cross their tile, %")
        for kind, fractions in self.crossings.items():
            table.add_row(
                kind, *("–" if value != value else f"{100 * value:.0f}" for value in fractions)
            )
        console.print(table)


class TerrainMetrics(VelocityMetrics):
    """Robots walk straight on from the middle of tiles of all kinds and levels, or of the one level at which all of the
    task begin."""

    ERRORS: ClassVar[dict[str, str]] = {**VelocityMetrics.ERRORS, "level": "mean level"}
    GOAL: ClassVar[dict[str, float]] = {}
    SECONDS: ClassVar[float] = 15.0
    STANDS: ClassVar[bool] = False

    @staticmethod
    def task(cfg: TaskCfg, episodes: int) -> tuple[TaskCfg, int]:
        assert cfg.scene.terrain is not None
        low, high = cfg.scene.terrain.first_levels
        levels = (low, high) if low == high else (0, cfg.scene.terrain.rows - 1)
        changes: dict[str, Any] = {
            "scene.terrain.first_levels": levels,
            "commands.velocity.heading": True,
        }
        changes |= {
            "commands.velocity.lin_vel_x": SPEEDS,
            "commands.velocity.lin_vel_y": (0.0, 0.0),
            "curriculum": {},
        }
        return replaced(cfg, changes), episodes

    @staticmethod
    def training_errors(core: LeggedVectorEnv) -> dict[str, float]:
        """The means of :class:`VelocityMetrics`, m/s and rad/s, and the mean level of the robots' tiles."""
        assert core.sim.ground is not None
        level = core.sim.ground.levels.float().mean().item()
        return {**VelocityMetrics.training_errors(core), "level": level}

    def measures(self, info: dict[str, Any]) -> dict[str, torch.Tensor]:
        ground = self._core.sim.ground
        assert ground is not None
        way = (self._core.robot.root_pos_w - ground.origins)[:, :2].abs().amax(1)
        return {**super().measures(info), "away": (way > 0.5 * ground.terrain.size).float()}

    def result(
        self, values: dict[str, torch.Tensor], alive: torch.Tensor, still: Any = None
    ) -> TerrainEvaluation:
        ground = self._core.sim.ground
        assert ground is not None
        crossed = ((values.pop("away") > 0.0) & alive).any(0).cpu()
        kinds, levels = ground.terrain.kinds, len(ground.tile_origins)
        level, column = ground.levels.cpu(), ground.columns.cpu()
        crossings = {}
        for kind in dict.fromkeys(kinds):
            own = torch.isin(
                column, torch.tensor([i for i, name in enumerate(kinds) if name == kind])
            )
            crossings[kind] = [
                crossed[own & (level == i)].float().mean().item() for i in range(levels)
            ]
        base = super().result(values, alive, still)
        return TerrainEvaluation(
            **asdict(base), crossed=crossed.float().mean().item(), crossings=crossings
        )

"""Commands to be somewhere in time."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from legged_envs.checks import check_range
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Env


@dataclass
class GoalCommandCfg(Configuration):
    """A pose to reach by the end of the episode (Rudin et al. 2022, LeggedGym-Ex ``go2_nav``)."""

    pos_x: tuple[float, float] = (-3.0, 3.0)
    pos_y: tuple[float, float] = (-3.0, 3.0)
    heading: tuple[float, float] = (-math.pi, math.pi)
    """Where the goal is from the start of the environment, m, and its heading, rad, both in the world frame."""
    height: float | None = None
    """Of the base above the ground there, m; None is that in which the robot stands."""

    def build(self, env: Env) -> "GoalCommand":
        """Make the goals of an environment; ValueError, naming the field, if a range is not (low, high)."""
        return GoalCommand(self, env)


class GoalCommand(CommandTerm):
    """``value``: the way to the goal in the frame of the base's heading, x, y and z, m, how far the heading is to turn,
    rad, and the time left, s. Shape: (num_envs, 5). ValueError for a range that is none."""

    STATE = ("value", "moving", "still", "goal_w", "heading", "elapsed")

    def __init__(self, cfg: GoalCommandCfg, env: Env):
        bounds = [cfg.pos_x, cfg.pos_y, cfg.heading]
        for name, bound in zip(("pos_x", "pos_y", "heading"), bounds, strict=True):
            check_range(f"GoalCommandCfg.{name}", bound)
        self.cfg, self._env, self._random = cfg, env, env.random.stream("command/goal")
        self._low, self._high = torch.tensor(bounds, device=env.device, dtype=torch.float32).unbind(
            1
        )
        self.goal_w = torch.zeros(env.num_envs, 3, device=env.device)
        """Where the base is to be, m in the world frame. Shape: (num_envs, 3)."""
        self.heading, self.elapsed = self.goal_w[:, 0].clone(), self.goal_w[:, 0].clone()
        self._update()

    def reset(self, env_ids: Tensor) -> None:
        x, y, heading = self._random.uniform(self._low, self._high, 3, env_ids).unbind(1)
        sim = self._env.sim
        z = torch.full_like(
            x, sim.robot.base_height if self.cfg.height is None else self.cfg.height
        )
        if sim.ground is not None:
            origins = sim.ground.origins[env_ids]
            x, y = x + origins[:, 0], y + origins[:, 1]
            z = z + sim.ground.height(x, y)
        self.goal_w = self.goal_w.index_copy(0, env_ids, torch.stack((x, y, z), dim=1))
        self.heading = self.heading.index_copy(0, env_ids, heading)
        self.elapsed = self.elapsed.index_fill(0, env_ids, 0.0)

    def placed(self, env_ids: Tensor) -> None:
        self._update()

    def advance(self) -> None:
        self.elapsed = self.elapsed + self._env.step_dt
        self._update()

    def _update(self) -> None:
        robot, yaw = self._env.robot, self._env.robot.heading()
        x, y, z = (self.goal_w - robot.root_pos_w).unbind(1)
        cos, sin = yaw.cos(), yaw.sin()
        turn = torch.remainder(self.heading - yaw + math.pi, 2.0 * math.pi) - math.pi
        left = self._env.max_episode_length_s - self.elapsed
        self.value = torch.stack((cos * x + sin * y, cos * y - sin * x, z, turn, left), dim=1)
        self.moving = (torch.linalg.vector_norm(self.value[:, :2], dim=1) > 0.25).float()
        self.still = 1.0 - self.moving

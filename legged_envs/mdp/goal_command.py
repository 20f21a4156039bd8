"""The goal command: reach a drawn position and heading by the end of the episode."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from legged_envs.checks import check_range
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Env

ARRIVED_DISTANCE = 0.25
"""A robot within this horizontal distance of its goal should stand still, m."""


@dataclass
class GoalCommandCfg(Configuration):
    """Configuration of goals: positions and headings to reach by the end of the episode.

    Source: Rudin et al. 2022, LeggedGym-Ex ``go2_nav``.
    """

    pos_x: tuple[float, float] = (-3.0, 3.0)
    """Range of the goal's position along world x, relative to the environment's start, m."""
    pos_y: tuple[float, float] = (-3.0, 3.0)
    """Range of the goal's position along world y, relative to the environment's start, m."""
    heading: tuple[float, float] = (-math.pi, math.pi)
    """Range of the heading to have at the goal, in the world frame, rad."""
    height: float | None = None
    """Height of the goal above the ground, m. None: the height of the base of a standing robot."""

    def build(self, env: Env) -> "GoalCommand":
        """Make the goal command of all environments of ``env``.

        Raises:
            ValueError: A range is not (low, high). The message names the field.
        """
        return GoalCommand(self, env)

    def check(self) -> None:
        """Check all ranges.

        Raises:
            ValueError: A range is not (low, high). The message names the field.
        """
        check_range("GoalCommandCfg.pos_x", self.pos_x)
        check_range("GoalCommandCfg.pos_y", self.pos_y)
        check_range("GoalCommandCfg.heading", self.heading)


class GoalCommand(CommandTerm):
    """The goal of each environment, drawn at the start of an episode.

    Args:
        cfg: Ranges of the goals.
        env: Environment that the goals are for.

    Raises:
        ValueError: A range of ``cfg`` is not (low, high). The message names it.
    """

    STATE = ("value", "moving", "still", "goal_w", "heading", "elapsed")

    def __init__(self, cfg: GoalCommandCfg, env: Env):
        cfg.check()
        self.cfg = cfg
        """Configuration of the goals: ranges of position and heading."""
        self._env = env
        self._random = env.random.stream("command/goal")
        bounds = (cfg.pos_x, cfg.pos_y, cfg.heading)
        ranges = torch.tensor(bounds, device=env.device, dtype=torch.float32)
        self._low, self._high = ranges.unbind(1)

        self.goal_w = torch.zeros(env.num_envs, 3, dtype=torch.float32, device=env.device)
        """Position that the base should reach, in the world frame, m. Shape: (num_envs, 3)."""
        self.heading = torch.zeros_like(self.goal_w[:, 0])
        """Heading that the base should have at the goal, world frame, rad. Shape: (num_envs,)."""
        self.elapsed = torch.zeros_like(self.heading)
        """Time since the start of the episode, s. Shape: (num_envs,)."""
        self._update()

    def reset(self, env_ids: Tensor) -> None:
        """Draw new goals for ``env_ids`` (n,), which start an episode."""
        sim = self._env.sim
        draw = self._random.uniform(self._low, self._high, 3, env_ids)
        x, y, heading = draw.unbind(1)
        start_x, start_y, _ = sim.start
        x = x + start_x
        y = y + start_y
        # The distance of the base, because the goal is a place for the base.
        height = sim.robot.base_height if self.cfg.height is None else self.cfg.height
        z = torch.full_like(x, height)
        if sim.ground is not None:
            origins = sim.ground.origins[env_ids]
            x = x + origins[:, 0]
            y = y + origins[:, 1]
            z = z + sim.ground.height(x, y)
        goal_w = torch.stack((x, y, z), dim=1)
        # Tensors that terms read are replaced, not written: readers may hold the tensors of the
        # last step.
        self.goal_w = self.goal_w.index_copy(0, env_ids, goal_w)
        self.heading = self.heading.index_copy(0, env_ids, heading)
        self.elapsed = self.elapsed.index_fill(0, env_ids, 0.0)

    def on_placed(self, env_ids: Tensor) -> None:
        """Compute the commands from the first pose of the episode.

        A reset calls this method after the robots of ``env_ids`` (n,) were placed.
        """
        self._update()

    def advance(self) -> None:
        """Advance the time by one control step, and compute the commands from the present pose."""
        self.elapsed = self.elapsed + self._env.step_dt
        self._update()

    def _update(self) -> None:
        robot = self._env.robot
        yaw = robot.heading()
        way_w = self.goal_w - robot.root_pos_w
        x, y, z = way_w.unbind(1)
        cos = yaw.cos()
        sin = yaw.sin()
        ahead = cos * x + sin * y
        left = cos * y - sin * x
        # Wrapped to [−π, π): the shorter turn.
        error = self.heading - yaw
        turn = torch.remainder(error + math.pi, 2.0 * math.pi) - math.pi
        time_left = self._env.max_episode_length_s - self.elapsed

        self.value = torch.stack((ahead, left, z, turn, time_left), dim=1)
        """Present command: where the goal is, and the time left to reach it. Shape: (num_envs, 5).

        Columns: vector from the base to the goal (x ahead, y to the left, z up), m; angle from the
        robot's heading to the goal's heading, rad; time left in the episode, s, negative in an
        environment that goes on after its time limit.
        """
        distance = torch.linalg.vector_norm(self.value[:, :2], dim=1)
        self.moving = (distance > ARRIVED_DISTANCE).float()
        self.still = 1.0 - self.moving

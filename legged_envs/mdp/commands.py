"""What every kind of command has, and velocity commands."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import torch

from legged_envs.checks import check_choice, check_number, check_range
from legged_envs.configuration import Configuration
from legged_envs.mdp.context import Env
from legged_envs.mdp.timer import Timer
from legged_envs.state import Stateful

STILL_COMMAND = (
    0.1  # a command with a norm below this asks the robot to stand still (m/s and rad/s together)
)
RANGES = ("lin_vel_x", "lin_vel_y", "ang_vel_z")  # what velocity commands are drawn from


class CommandTerm(Stateful, ABC):
    """One kind of command, for every environment; ``STATE`` names what its future depends on."""

    value: torch.Tensor
    """The present command. Shape: (num_envs, size)."""
    moving: torch.Tensor
    still: torch.Tensor
    """1 where the command asks the robot to move, else 0, and 1 minus that. Shape: (num_envs,), float32."""

    @abstractmethod
    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw anew for ``env_ids``, before their robots are placed."""

    def placed(self, env_ids: torch.Tensor) -> None:
        """Take in that the robots of ``env_ids`` stand in their first pose."""

    @abstractmethod
    def advance(self) -> None:
        """Let one control step pass."""

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Take in that the episodes of ``env_ids`` are over, before they begin anew."""


class CommandTermCfg(Protocol):
    """What the configuration of a command has: a method that makes its term."""

    def build(self, env: Env) -> CommandTerm:
        """The term of an environment; ``env.random.stream(name)`` has its random numbers."""


@dataclass
class VelocityCommandCfg(Configuration):
    """A velocity command (vx, vy, ωz) in the base frame, drawn uniformly and held for a random time."""

    lin_vel_x: tuple[float, float] = (-1.0, 1.0)
    lin_vel_y: tuple[float, float] = (-0.5, 0.5)
    ang_vel_z: tuple[float, float] = (-1.0, 1.0)
    """Ranges of vx and vy, m/s, and ωz, rad/s; with ``heading`` the last limits the turn towards it."""
    resampling_time_s: tuple[float, float] = (10.0, 10.0)
    standing_fraction: float = 0.1
    """Range of the time for which a command holds, s, and probability that it is to stand still."""
    small_command: float = 0.0
    """Linear commands with a norm at most this become 0, m/s (LeggedGym-Ex: 0.2)."""
    heading: bool = False
    heading_stiffness: float = 0.5
    """Whether ωz steers towards a drawn heading: clip(stiffness · wrap(ψ* − ψ)), stiffness in 1/s."""
    heading_range: tuple[float, float] = (-math.pi, math.pi)
    heading_fraction: float = 1.0
    """Range of that heading, rad, and probability that a command has one (Isaac Lab ``rel_heading_envs``)."""
    heading_column: bool = False
    """Whether the heading is the fourth column of the command (legged_gym ``commands[:, 3]``)."""

    def build(self, env: Env) -> "VelocityCommand":
        """Make the velocity commands of an environment; ValueError, naming the field, if a range is not (low, high) or
        a fraction not in [0, 1]."""
        return VelocityCommand(self, env)


class VelocityCommand(CommandTerm):
    """The velocity commands of every environment. Each draws on its own, as do the standing ones. ValueError for a
    range that is none."""

    STATE = (
        "value",
        "moving",
        "still",
        "heading",
        "path",
        "progress",
        "_steering",
        "_low",
        "_high",
        "_resampling",
    )

    def __init__(self, cfg: VelocityCommandCfg, env: Env):
        for name in RANGES:
            check_range(f"VelocityCommandCfg.{name}", getattr(cfg, name))
        check_range("VelocityCommandCfg.resampling_time_s", cfg.resampling_time_s, above=0.0)
        check_range("VelocityCommandCfg.heading_range", cfg.heading_range)
        for name in ("standing_fraction", "heading_fraction"):
            check_number(f"VelocityCommandCfg.{name}", getattr(cfg, name), 0.0, 1.0)
        self.cfg, self._env, self._random = cfg, env, env.random.stream("command/velocity")
        bounds = (
            cfg.lin_vel_x,
            cfg.lin_vel_y,
            cfg.ang_vel_z,
            cfg.heading_range,
            (0.0, 1.0),
            cfg.resampling_time_s,
        )
        self._low, self._high = torch.tensor(bounds, device=env.device, dtype=torch.float32).unbind(
            1
        )
        self._resampling = Timer(env.num_envs, env.step_dt, env.device)
        self.heading = torch.zeros(env.num_envs, dtype=torch.float32, device=env.device)
        self._steering = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        self.path, self.progress = torch.zeros_like(self.heading), torch.zeros_like(self.heading)
        """How far the commands of this episode led, and how far along them the robot went, m. Shape: (num_envs,)."""
        self._set(self.heading.new_zeros(env.num_envs, 3))

    def _set(self, velocity: torch.Tensor) -> None:
        column = self.cfg.heading_column
        self.value = torch.cat((velocity, self.heading.unsqueeze(1)), dim=1) if column else velocity
        """(vx m/s, vy m/s, ωz rad/s), with ``heading_column`` also the heading, rad. Shape: (num_envs, 3 or 4)."""
        self.moving = (torch.linalg.vector_norm(velocity, dim=1) > STILL_COMMAND).float()
        self.still = 1.0 - self.moving

    @property
    def ranges(self) -> torch.Tensor:
        """Bounds of vx, vy, ωz, heading, the draw of who stands, and time to the next draw. Shape: (6, 2)."""
        return torch.stack((self._low, self._high), dim=1)

    def set_range(self, name: str, low: float, high: float) -> None:
        """Draw ``lin_vel_x``, ``lin_vel_y`` or ``ang_vel_z`` from other bounds from the next draw on;
        ValueError for another name or a range that is none."""
        check_choice("set_range: name", name, RANGES)
        check_range(f"set_range: {name}", (low, high))
        self._low[RANGES.index(name)], self._high[RANGES.index(name)] = low, high

    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw new commands for ``env_ids``; those that steer towards a heading do so from :meth:`placed` on."""
        draw = self._random.uniform(self._low, self._high, 6, env_ids)
        command = draw[:, :3]
        if self.cfg.small_command > 0.0:
            command[:, :2] *= (
                torch.linalg.vector_norm(command[:, :2], dim=1, keepdim=True)
                > self.cfg.small_command
            )
        standing = draw[:, 4] < self.cfg.standing_fraction
        command[standing] = 0.0
        self.heading = self.heading.index_copy(0, env_ids, draw[:, 3])
        self._steering[env_ids] = ~standing
        if self.cfg.heading and self.cfg.heading_fraction < 1.0:
            self._steering[env_ids] &= (
                self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1) < self.cfg.heading_fraction
            )
        self._set(self.value[:, :3].index_copy(0, env_ids, command))
        self._resampling.start(env_ids, draw[:, 5])

    def placed(self, env_ids: torch.Tensor) -> None:
        self.path, self.progress = (
            part.index_fill(0, env_ids, 0.0) for part in (self.path, self.progress)
        )
        if self.cfg.heading:
            self._steer()

    def hold(self, command: torch.Tensor) -> None:
        """Give every environment one command until its next reset. Shape: (3,) or (num_envs, 3)."""
        self._set(command.to(self.value).expand_as(self.value[:, :3]).clone())
        self._resampling.stop()
        self._steering = torch.zeros_like(self._steering)

    def advance(self) -> None:
        if self._env.sim.ground is not None:
            velocity = self.value[:, :2]
            speed = torch.linalg.vector_norm(velocity, dim=1)
            along = (velocity * self._env.robot.lin_vel_b[:, :2]).sum(1) / speed.clamp(min=1e-6)
            self.path = self.path + speed * self._env.step_dt
            self.progress = self.progress + torch.minimum(along, speed) * self._env.step_dt
        if (due := self._resampling.advance()) is not None:
            self.reset(due)
        if self.cfg.heading:
            self._steer()

    def _steer(self) -> None:
        error = self.heading - self._env.robot.heading()
        wrapped = torch.remainder(error + torch.pi, 2 * torch.pi) - torch.pi
        turn = (wrapped * self.cfg.heading_stiffness).clamp_(*self.cfg.ang_vel_z)
        turn = torch.where(self._steering, turn, self.value[:, 2])
        self._set(torch.cat((self.value[:, :2], turn.unsqueeze(1)), dim=1))

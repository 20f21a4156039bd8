"""The interface of commands, which the policy must follow, and the velocity command."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol

import torch

from legged_envs.checks import check_choice, check_known, check_number, check_range
from legged_envs.configuration import Configuration
from legged_envs.mdp.context import Average, Env
from legged_envs.mdp.kind_ranges import VELOCITY_RANGES as VELOCITY_RANGES
from legged_envs.mdp.kind_ranges import KindRanges
from legged_envs.mdp.timer import Timer
from legged_envs.state import Stateful

STILL_COMMAND = 0.1
"""Largest norm of a velocity command (vx, vy, ωz) that still counts as "stand still".

The norm mixes m/s and rad/s.
"""


class CommandTerm(Stateful, ABC):
    """Base class of commands: one kind of command, with its present value in every environment.

    Subclasses list in ``STATE`` the attributes that a saved state needs.
    """

    value: torch.Tensor
    """Present command of each environment. Shape: (num_envs, size)."""
    moving: torch.Tensor
    """1 where the command asks the robot to move, otherwise 0. Shape: (num_envs,), float32."""
    still: torch.Tensor
    """1 where the command asks the robot to stand still: 1 − ``moving``. Shape: (num_envs,),
    float32."""

    @abstractmethod
    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw new commands for environments that start an episode.

        A reset calls this method before the robots are placed in their first pose.

        Args:
            env_ids: Indices of these environments. Shape: (n,), int64.
        """

    def on_placed(self, env_ids: torch.Tensor) -> None:
        """Update the commands that depend on the first pose of an episode.

        A reset calls this method after the robots were placed. The default does nothing.

        Args:
            env_ids: Indices of the environments that were reset. Shape: (n,), int64.
        """

    @abstractmethod
    def advance(self) -> None:
        """Advance the commands of all environments by one control step."""

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Record results of episodes that have just ended, before :meth:`reset` of the same step.

        The default does nothing.

        Args:
            env_ids: Indices of the environments of these episodes. Shape: (n,), int64.
        """

    def average_shared(self, average: Average) -> None:
        """Average what a curriculum changes for all robots over the processes of a training.

        The default does nothing: a command without such values has nothing to average.

        Args:
            average: Function that returns the mean of a tensor over all processes.
        """


class CommandTermCfg(Protocol):
    """The interface of a command's configuration: :meth:`build` makes the command."""

    def build(self, env: Env) -> CommandTerm:
        """Make the command term for all environments of ``env``.

        A command that needs random numbers draws them from ``env.random.stream(name)``.
        """


@dataclass
class VelocityCommandCfg(Configuration):
    """Configuration of velocity commands (vx, vy, ωz) in the base frame.

    Commands are drawn uniformly from ranges, and each command is kept for a random time.
    """

    lin_vel_x: tuple[float, float] = (-1.0, 1.0)
    """Range of the forward velocity vx, m/s."""
    lin_vel_y: tuple[float, float] = (-0.5, 0.5)
    """Range of the velocity to the left vy, m/s."""
    ang_vel_z: tuple[float, float] = (-1.0, 1.0)
    """Range of the turning velocity ωz, rad/s, positive to the left.

    With ``heading``, it bounds the ωz that turns the robot towards the drawn heading.
    """
    resampling_time_s: tuple[float, float] = (10.0, 10.0)
    """Range of the time for which a command is kept, s."""
    standing_fraction: float = 0.1
    """Probability that a drawn command is zero, so that the robot must stand still, 0 to 1."""
    small_command: float = 0.0
    """Linear commands with a norm up to this value are set to 0, m/s. LeggedGym-Ex has 0.2."""
    heading: bool = False
    """True if ωz is not drawn, but computed each step to turn the robot to a drawn heading ψ*.

    ωz = clip(stiffness · wrap(ψ* − ψ)), with the present heading ψ.
    """
    heading_stiffness: float = 0.5
    """Turning velocity per angle to the drawn heading, (rad/s)/rad. Used with ``heading``."""
    heading_range: tuple[float, float] = (-math.pi, math.pi)
    """Range of the drawn heading in the world frame, rad. Used with ``heading``."""
    heading_fraction: float = 1.0
    """Probability that a command has a heading; the other commands keep a drawn ωz.

    Used with ``heading``; called ``rel_heading_envs`` in Isaac Lab.
    """
    heading_column: bool = False
    """True if the command has a fourth column with the heading, rad, as in legged_gym."""
    inversion_fraction: float = 0.0
    """Probability that the next command in an episode is the present one with the opposite sign.

    Only a command to move is inverted. The heading, if there is one, stays.
    """
    kind_ranges: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """Other ranges for robots that start on some kinds of tiles, such as faster ones on flat tiles.

    Kind of tile → name of a range, such as ``"lin_vel_x"`` → the range. Kinds that the ground does
    not have are without effect.
    """

    def build(self, env: Env) -> "VelocityCommand":
        """Make the velocity commands of an environment.

        Raises:
            ValueError: A range is not (low, high), or a fraction not in [0, 1]. The message names
                the field.
        """
        return VelocityCommand(self, env)

    def check(self) -> None:
        """Check all ranges and fractions.

        Raises:
            ValueError: A field is wrong. The message names it.
        """
        check_range("VelocityCommandCfg.lin_vel_x", self.lin_vel_x)
        check_range("VelocityCommandCfg.lin_vel_y", self.lin_vel_y)
        check_range("VelocityCommandCfg.ang_vel_z", self.ang_vel_z)
        check_range("VelocityCommandCfg.resampling_time_s", self.resampling_time_s, above=0.0)
        check_range("VelocityCommandCfg.heading_range", self.heading_range)
        check_number("VelocityCommandCfg.standing_fraction", self.standing_fraction, 0.0, 1.0)
        check_number("VelocityCommandCfg.heading_fraction", self.heading_fraction, 0.0, 1.0)
        check_number("VelocityCommandCfg.inversion_fraction", self.inversion_fraction, 0.0, 1.0)
        for kind, ranges in self.kind_ranges.items():
            where = f"VelocityCommandCfg.kind_ranges[{kind!r}]"
            check_known(f"{where}: there is no range", ranges, VELOCITY_RANGES, "ranges")
            for name, span in ranges.items():
                check_range(f"{where}[{name!r}]", span)


class VelocityCommand(CommandTerm):
    """The velocity command of each environment, drawn again when its time is over.

    Args:
        cfg: Ranges of the commands and of the times for which they are kept.
        env: Environment that the commands are for.

    Raises:
        ValueError: A field of ``cfg`` is wrong. The message names it.
    """

    STATE: tuple[str, ...] = (
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
        cfg.check()
        self.cfg = cfg
        """Ranges of the commands and of the times for which they are kept.

        Later changes of ranges by :meth:`set_range` are not included.
        """
        self._env = env
        self._random = env.random.stream("command/velocity")
        # One draw of six numbers for each command: (vx, vy, ωz, heading, standing, time to the
        # next). Their order is part of the random stream.
        bounds = (
            cfg.lin_vel_x,
            cfg.lin_vel_y,
            cfg.ang_vel_z,
            cfg.heading_range,
            (0.0, 1.0),
            cfg.resampling_time_s,
        )
        ranges = torch.tensor(bounds, device=env.device, dtype=torch.float32)
        self._low, self._high = ranges.unbind(1)
        self._kind_ranges = KindRanges(cfg.kind_ranges, env.sim.ground, env.device)
        self._resampling = Timer(env.num_envs, env.step_dt, env.device)
        # True where ωz follows a heading and not a draw.
        self._steering = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)

        self.heading = torch.zeros(env.num_envs, dtype=torch.float32, device=env.device)
        """Drawn heading of each environment in the world frame, rad. Shape: (num_envs,)."""
        self.path = torch.zeros_like(self.heading)
        """Integral of the commanded speed over the present episode, m. Shape: (num_envs,).

        It is measured on a terrain only, for :func:`~legged_envs.mdp.curricula.terrain_levels`.
        """
        self.progress = torch.zeros_like(self.heading)
        """Distance that the robot moved in the commanded direction in the present episode, m.

        It is measured on a terrain only, for :func:`~legged_envs.mdp.curricula.terrain_levels`.
        Shape: (num_envs,).
        """
        self._set(self.heading.new_zeros(env.num_envs, 3))

    def _set(self, velocity: torch.Tensor) -> None:
        """Set the commands to velocities (num_envs, 3)."""
        if self.cfg.heading_column:
            value = torch.cat((velocity, self.heading.unsqueeze(1)), dim=1)
        else:
            value = velocity

        self.value = value
        """Present command (vx m/s, vy m/s, ωz rad/s) of each environment. Shape: (num_envs, 3).

        With ``heading_column`` a fourth column is the heading, rad.
        """
        self.moving = (torch.linalg.vector_norm(velocity, dim=1) > STILL_COMMAND).float()
        self.still = 1.0 - self.moving

    @property
    def ranges(self) -> torch.Tensor:
        """Present bounds (low, high) of the six numbers that are drawn for each command.

        They are vx and vy (m/s), ωz (rad/s), heading (rad), a number in [0, 1] that decides if the
        robot stands, and the time until the next draw (s). Shape: (6, 2).
        """
        return torch.stack((self._low, self._high), dim=1)

    def set_range(
        self,
        name: str,
        low: float,
        high: float,
    ) -> None:
        """Change the range of vx, vy or ωz for all later draws. Present commands stay.

        Args:
            name: ``lin_vel_x``, ``lin_vel_y`` or ``ang_vel_z``.
            low: Lower bound, m/s or rad/s.
            high: Upper bound, m/s or rad/s.

        Raises:
            ValueError: The name is unknown, or the range is not (low, high).
        """
        check_choice("set_range: name", name, VELOCITY_RANGES)
        check_range(f"set_range: {name}", (low, high))
        column = VELOCITY_RANGES.index(name)
        self._low[column] = low
        self._high[column] = high

    def average_shared(self, average: Average) -> None:
        """Average the present ranges over the processes of a training."""
        self._low = average(self._low)
        self._high = average(self._high)

    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw new commands for the environments ``env_ids`` (n,), which start an episode.

        :meth:`on_placed` computes ωz of commands with a heading, when the first pose is known.
        """
        draw = self._random.uniform(self._low, self._high, 6, env_ids)
        command = draw[:, :3]
        if self.cfg.kind_ranges:
            # A draw of every robot, so that the numbers of a robot do not depend on its tile.
            share = self._random.uniform(0.0, 1.0, 3, env_ids)
            bounds = self._kind_ranges.bounds(self._low[:3], self._high[:3], env_ids)
            has_own, low, high = bounds
            command = torch.where(has_own, low + share * (high - low), command)
        if self.cfg.small_command > 0.0:
            speed = torch.linalg.vector_norm(command[:, :2], dim=1, keepdim=True)
            command[:, :2] *= speed > self.cfg.small_command
        # After the small commands: a robot that must stand also gets no turn.
        standing = draw[:, 4] < self.cfg.standing_fraction
        command[standing] = 0.0
        # Tensors that terms read are replaced, not written: readers may hold the tensors of the
        # last step.
        self.heading = self.heading.index_copy(0, env_ids, draw[:, 3])
        self._steering[env_ids] = ~standing
        if self.cfg.heading and self.cfg.heading_fraction < 1.0:
            # A draw only for tasks with this option: other tasks keep their random numbers.
            share = self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
            self._steering[env_ids] &= share < self.cfg.heading_fraction
        velocity = self.value[:, :3]
        self._set(velocity.index_copy(0, env_ids, command))
        self._resampling.start(env_ids, draw[:, 5])

    def _redraw(self, env_ids: torch.Tensor) -> None:
        """Draw the next commands of ``env_ids`` (n,), or invert the present ones."""
        # A draw only for tasks with this option: other tasks keep their random numbers.
        if self.cfg.inversion_fraction == 0.0:
            self.reset(env_ids)
            return
        velocity = self.value[env_ids, :3]
        heading = self.heading[env_ids]
        steering = self._steering[env_ids]
        self.reset(env_ids)
        share = self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
        moves = torch.linalg.vector_norm(velocity, dim=1) > STILL_COMMAND
        chosen = moves & (share < self.cfg.inversion_fraction)
        heading = torch.where(chosen, heading, self.heading[env_ids])
        self.heading = self.heading.index_copy(0, env_ids, heading)
        self._steering[env_ids] = torch.where(chosen, steering, self._steering[env_ids])
        velocity = torch.where(chosen.unsqueeze(1), -velocity, self.value[env_ids, :3])
        self._set(self.value[:, :3].index_copy(0, env_ids, velocity))

    def stand(self, env_ids: torch.Tensor) -> None:
        """Ask the robots of ``env_ids`` (n,) to stand still until their next command is due."""
        zero = self.value.new_zeros(len(env_ids), 3)
        self._set(self.value[:, :3].index_copy(0, env_ids, zero))
        self._steering[env_ids] = False

    def on_placed(self, env_ids: torch.Tensor) -> None:
        """Set ``path`` and ``progress`` of ``env_ids`` (n,) to 0, and compute ωz from the heading.

        It is called at a reset, after the robots were placed.
        """
        self.path = self.path.index_fill(0, env_ids, 0.0)
        self.progress = self.progress.index_fill(0, env_ids, 0.0)
        if self.cfg.heading:
            self._steer()

    def hold(self, command: torch.Tensor) -> None:
        """Set fixed commands, which are kept until the next reset of each environment.

        Args:
            command: (vx, vy, ωz), m/s and rad/s. Shape: (3,) for all environments, or
                (num_envs, 3).
        """
        velocity = command.to(self.value).expand_as(self.value[:, :3])
        # A copy: the caller may write to its tensor later.
        self._set(velocity.clone())
        self._resampling.stop()
        self._steering = torch.zeros_like(self._steering)

    def advance(self) -> None:
        """Advance the commands by one control step.

        Update ``path`` and ``progress``, draw the commands with an expired time, and compute ωz of
        commands with a heading.
        """
        # Only the curriculum of terrain levels reads the distances.
        if self._env.sim.ground is not None:
            self._measure_progress()
        due = self._resampling.advance()
        if due is not None:
            self._redraw(due)
        if self.cfg.heading:
            self._steer()

    def _measure_progress(self) -> None:
        velocity = self.value[:, :2]
        speed = torch.linalg.vector_norm(velocity, dim=1)
        robot_velocity = self._env.robot.lin_vel_b[:, :2]
        # The bound keeps commands to stand still, and to turn, from dividing by 0.
        along = (velocity * robot_velocity).sum(1) / speed.clamp(min=1e-6)
        # A robot that is faster than commanded does not progress faster.
        self.path = self.path + speed * self._env.step_dt
        progress = torch.minimum(along, speed)
        self.progress = self.progress + progress * self._env.step_dt

    def _steer(self) -> None:
        """Set ωz of commands with a heading."""
        error = self.heading - self._env.robot.heading()
        # To [−π, π): the shorter turn.
        wrapped = torch.remainder(error + torch.pi, 2 * torch.pi) - torch.pi
        _, low, high = self._kind_ranges.bounds(self._low[:3], self._high[:3])
        turn = (wrapped * self.cfg.heading_stiffness).clamp_(low[..., 2], high[..., 2])
        turn = torch.where(self._steering, turn, self.value[:, 2])
        linear = self.value[:, :2]
        self._set(torch.cat((linear, turn.unsqueeze(1)), dim=1))

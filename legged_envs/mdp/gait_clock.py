"""The gait clock: a command that prescribes when each foot should stand and should swing."""

import math
from dataclasses import dataclass

import torch

from legged_envs.checks import check_number
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Env
from legged_envs.robots import RobotCfg

STATIONARY_ANGLE = 0.1
"""Joints with a smaller deflection in mid-swing than this count as not moved by the gait, rad."""


@dataclass
class GaitClockCfg(Configuration):
    """Configuration of a gait clock: times of standing and swinging in a stride of fixed duration.

    The defaults equal ``g1`` in LeggedGym-Ex.
    """

    period: float = 0.8
    """Duration of a stride, s. Every foot stands once and swings once in a stride."""
    stance: float = 0.55
    """Fraction of the stride during which a foot stands, in (0, 1)."""
    offsets: tuple[float, ...] = (0.0, 0.5)
    """Phase of each foot relative to the clock, as a fraction of the stride.

    One entry for each foot. A foot with 0.5 is half a stride ahead of the clock.
    """
    swing: float = 0.0
    """Height to which the clock's own joint positions lift a foot in mid-swing, m.

    A policy with ``JointPositionCfg.around`` corrects these positions, so the robot steps in place
    with action 0. 0: the clock's joint positions are the default pose.
    """

    def build(self, env: Env) -> "GaitClock":
        """Make the gait clocks of all environments of ``env``.

        Raises:
            ValueError: A number is out of its range, or ``offsets`` does not have one entry for
                each foot. The message names the field.
        """
        return GaitClock(self, env)

    def check(self, robot: RobotCfg) -> None:
        """Check all fields against a robot.

        Raises:
            ValueError: A field is wrong. The message names it.
        """
        check_number("GaitClockCfg.period", self.period, above=0.0)
        check_number("GaitClockCfg.stance", self.stance, above=0.0, below=1.0)
        check_number("GaitClockCfg.swing", self.swing, least=0.0)
        if len(self.offsets) != len(robot.foot_names):
            raise ValueError(
                f"GaitClockCfg.offsets needs one entry for each foot of {robot.name}: "
                f"{', '.join(robot.foot_names)}, got {self.offsets}"
            )


class GaitClock(CommandTerm):
    """The gait clock of each environment, which starts each episode at a random phase and never
    stops.

    Args:
        cfg: Times of the stride.
        env: Environment with the robot that walks.

    Raises:
        ValueError: A field of ``cfg`` is wrong. The message names it.
    """

    STATE = ("_phase", "value", "stance", "target_joint_pos")

    def __init__(self, cfg: GaitClockCfg, env: Env):
        cfg.check(env.sim.robot)
        self.cfg = cfg
        """Configuration of the clock: times of the stride."""
        self._default = env.robot.default_joint_pos
        self._random = env.random.stream("command/gait")
        # In strides per control step.
        self._step = env.step_dt / cfg.period
        self._offsets = torch.tensor(cfg.offsets, dtype=torch.float32, device=env.device)

        self.swing = env.sim.lifted(cfg.swing)
        """Deflection of each joint from the default pose in mid-swing of each foot, rad.

        Shape: (num_feet, num_joints).
        """
        # Legs that lift also turn joints next to the main ones slightly: these count as stationary.
        self.is_stationary = self.swing.abs().amax(0) < STATIONARY_ANGLE
        """True for joints that the gait does not move, such as arms. Shape: (num_joints,), bool."""
        self.available = torch.ones(env.num_envs, dtype=torch.float32, device=env.device)
        """1 for every environment: a clock always has a reference pose, unlike a motion command.

        Shape: (num_envs,), float32.
        """
        # A clock demands steps also on the spot.
        self.moving = torch.ones_like(self.available)
        self.still = torch.zeros_like(self.available)
        self._set(torch.zeros_like(self.available))

    def _set(self, phase: torch.Tensor) -> None:
        """Set the time of the stride, in strides, and what follows from it."""
        self._phase = phase
        angle = phase * (2.0 * math.pi)

        # Sine and cosine, because the phase itself jumps from 1 to 0.
        self.value = torch.stack((angle.sin(), angle.cos()), dim=1)
        """(sin, cos) of the clock's phase in the stride. Shape: (num_envs, 2)."""
        foot_phase = (phase.unsqueeze(1) + self._offsets).remainder_(1.0)

        self.stance = foot_phase < self.cfg.stance
        """True for feet that should be on the ground now. Shape: (num_envs, num_feet), bool."""
        # sin² of the time of the swing: the foot leaves the ground, and lands, at rest.
        swing_time = (foot_phase - self.cfg.stance).clamp_min_(0.0)
        half_waves = math.pi / (1.0 - self.cfg.stance)
        lift = swing_time.mul_(half_waves).sin_().square_()
        target = self._default.expand(len(phase), -1)
        for foot, swing in enumerate(self.swing):
            foot_lift = lift[:, foot, None]
            target = target + foot_lift * swing

        self.target_joint_pos = target
        """Reference pose of the gait: the default pose with lifted swinging feet, rad.

        Shape: (num_envs, num_joints).
        """

    def reset(self, env_ids: torch.Tensor) -> None:
        """Set the clocks of ``env_ids`` (n,), which start an episode, to drawn phases."""
        phase = self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
        self._set(self._phase.index_copy(0, env_ids, phase))

    def hold(self, command: torch.Tensor) -> None:
        """Set the phase of every clock. The clocks continue to run from this phase.

        Args:
            command: Phase as a fraction of the stride, 0 to 1. Shape: () or (num_envs,).
        """
        phase = command.to(self._phase).expand_as(self._phase)
        self._set(phase.remainder(1.0))

    def advance(self) -> None:
        """Advance every clock by one control step, and compute the targets for the next step."""
        self._set((self._phase + self._step).remainder_(1.0))

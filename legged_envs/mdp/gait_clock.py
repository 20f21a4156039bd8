"""A clock with the times at which each foot should stand and swing."""

import math
from dataclasses import dataclass

import torch

from legged_envs.checks import check_number
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Env
from legged_envs.robots import RobotCfg

STATIONARY_ANGLE = 0.1
"""Turn of a joint in mid-swing below which the gait does not move it, rad."""


@dataclass
class GaitClockCfg(Configuration):
    """The times of a stride, at a fixed pace. LeggedGym-Ex's ``g1`` has period 0.8 s and stance
    0.55."""

    period: float = 0.8
    """Duration of a stride, in which every foot stands once and swings once, s."""
    stance: float = 0.55
    """Part of the stride for which a foot stands, in (0, 1)."""
    offsets: tuple[float, ...] = (0.0, 0.5)
    """Time by which each foot is ahead of the clock, as a part of the stride."""
    swing: float = 0.0
    """Height of a foot in mid-swing with action 0, m. The joints that the model has for it lift the
    foot; see ``JointPositionCfg.around``."""

    def build(self, env: Env) -> "GaitClock":
        """Make the clocks of an environment.

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
    """Clocks that run all the time, from a random time of the stride on.

    Args:
        cfg: Times of the stride.
        env: The environment.

    Raises:
        ValueError: A field of ``cfg`` is wrong. The message names it.
    """

    STATE = ("_phase", "value", "stance", "target_joint_pos")

    def __init__(self, cfg: GaitClockCfg, env: Env):
        cfg.check(env.sim.robot)
        self.cfg = cfg
        """Times of the stride."""
        self._default = env.robot.default_joint_pos
        self._random = env.random.stream("command/gait")
        # In strides per control step.
        self._step = env.step_dt / cfg.period
        self._offsets = torch.tensor(cfg.offsets, dtype=torch.float32, device=env.device)

        self.swing = env.sim.lifted(cfg.swing)
        """Turn of the joints that lift each foot, in mid-swing, rad. Shape: (num_feet,
        num_joints)."""
        # Legs that lift also turn joints next to the main ones slightly: these count as stationary.
        self.is_stationary = self.swing.abs().amax(0) < STATIONARY_ANGLE
        """True for joints that the gait does not move. Shape: (num_joints,), bool."""
        self.available = torch.ones(env.num_envs, dtype=torch.float32, device=env.device)
        """1, because a clock always has joint positions. Shape: (num_envs,), float32."""
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
        """(sin, cos) of the time of the stride. Shape: (num_envs, 2)."""
        foot_phase = (phase.unsqueeze(1) + self._offsets).remainder_(1.0)

        self.stance = foot_phase < self.cfg.stance
        """True for feet that should stand. Shape: (num_envs, num_feet), bool."""
        # sin² of the time of the swing: the foot leaves the ground, and lands, at rest.
        swing_time = (foot_phase - self.cfg.stance).clamp_min_(0.0)
        half_waves = math.pi / (1.0 - self.cfg.stance)
        lift = swing_time.mul_(half_waves).sin_().square_()
        target = self._default.expand(len(phase), -1)
        for foot, swing in enumerate(self.swing):
            foot_lift = lift[:, foot, None]
            target = target + foot_lift * swing

        self.target_joint_pos = target
        """The default pose, with the swinging feet lifted, rad. Shape: (num_envs, num_joints)."""

    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw a time of the stride for ``env_ids`` (n,)."""
        phase = self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
        self._set(self._phase.index_copy(0, env_ids, phase))

    def hold(self, command: torch.Tensor) -> None:
        """Set every clock to a time of the stride, in strides, from which it runs.

        Shape: () or (num_envs,).
        """
        phase = command.to(self._phase).expand_as(self._phase)
        self._set(phase.remainder(1.0))

    def advance(self) -> None:
        """Let one control step pass."""
        self._set((self._phase + self._step).remainder_(1.0))

"""A clock that tells each foot when to stand and when to swing."""

import math
from dataclasses import dataclass

import torch

from legged_envs.checks import check_number
from legged_envs.configuration import Configuration
from legged_envs.mdp.commands import CommandTerm
from legged_envs.mdp.context import Env


@dataclass
class GaitClockCfg(Configuration):
    """When each foot stands and swings, at a fixed pace; LeggedGym-Ex's ``g1`` has period 0.8 s and stance 0.55."""

    period: float = 0.8
    """Duration of a stride, in which every foot stands once and swings once, s."""
    stance: float = 0.55
    offsets: tuple[float, ...] = (0.0, 0.5)
    """Part of the stride for which a foot stands, and how far ahead of the first each foot is, in strides."""
    swing: float = 0.0
    """How high a foot is in mid-swing with action 0, m, lifted by the joints that the model has for that; see
    ``JointPositionCfg.around``."""

    def build(self, env: Env) -> "GaitClock":
        """Make the clocks of an environment; ValueError, naming the field, if a number is out of its range or
        ``offsets`` has not one entry for each foot."""
        return GaitClock(self, env)


class GaitClock(CommandTerm):
    """Clocks that run all the time, from a random time of the stride on; ValueError if ``cfg`` does not fit."""

    STATE = ("_phase", "value", "stance", "target_joint_pos")

    def __init__(self, cfg: GaitClockCfg, env: Env):
        robot = env.sim.robot
        check_number("GaitClockCfg.period", cfg.period, above=0.0)
        check_number("GaitClockCfg.stance", cfg.stance, above=0.0, below=1.0)
        check_number("GaitClockCfg.swing", cfg.swing, least=0.0)
        if len(cfg.offsets) != len(robot.foot_names):
            feet = f"{robot.name}: {', '.join(robot.foot_names)}"
            raise ValueError(f"GaitClockCfg.offsets needs one entry for each foot of {feet}")
        self.cfg, self._default = cfg, env.robot.default_joint_pos
        self._random, self._step = env.random.stream("command/gait"), env.step_dt / cfg.period
        self._offsets = torch.tensor(cfg.offsets, dtype=torch.float32, device=env.device)
        self.swing = env.sim.lifted(cfg.swing)
        """How far each foot's joints are turned in mid-swing, rad. Shape: (num_feet, num_joints)."""
        self.held = self.swing.abs().amax(0) < 0.1
        """Joints that it leaves where they are. Shape: (num_joints,)."""
        self.available = torch.ones(env.num_envs, dtype=torch.float32, device=env.device)
        self.moving, self.still = torch.ones_like(self.available), torch.zeros_like(self.available)
        self._set(torch.zeros_like(self.available))

    def _set(self, phase: torch.Tensor) -> None:
        self._phase = phase
        angle = phase * (2.0 * math.pi)
        self.value = torch.stack((angle.sin(), angle.cos()), dim=1)
        """(sin, cos) of the time of the stride. Shape: (num_envs, 2)."""
        phases = (phase.unsqueeze(1) + self._offsets).remainder_(1.0)
        self.stance = phases < self.cfg.stance
        """Whether each foot is to stand. Shape: (num_envs, num_feet), bool."""
        lift = (
            (phases - self.cfg.stance)
            .clamp_min_(0.0)
            .mul_(math.pi / (1.0 - self.cfg.stance))
            .sin_()
            .square_()
        )
        self.target_joint_pos = self._default.expand(len(phase), -1)
        """The default pose, with the feet that swing lifted, rad. Shape: (num_envs, num_joints)."""
        for foot, swing in enumerate(self.swing):
            self.target_joint_pos = self.target_joint_pos + lift[:, foot, None] * swing

    def reset(self, env_ids: torch.Tensor) -> None:
        self._set(
            self._phase.index_copy(
                0, env_ids, self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)
            )
        )

    def hold(self, command: torch.Tensor) -> None:
        """Set every clock to a time of the stride, in strides, from which it runs on. Shape: () or (num_envs,)."""
        self._set(command.to(self._phase).expand_as(self._phase).remainder(1.0))

    def advance(self) -> None:
        self._set((self._phase + self._step).remainder_(1.0))

"""A clock that tells each foot when to stand and when to swing."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    swing: tuple[Mapping[str, float], ...] | float = ()
    """For each foot the joints that lift it, and how far in mid-swing, rad; or how high all feet are lifted then, m, by
    the joints that the model has for that: see ``JointPositionCfg.around``."""

    def build(self, env: Env) -> "GaitClock":
        return GaitClock(self, env)


class GaitClock(CommandTerm):
    """Clocks that run all the time, from a random time of the stride on; ValueError if ``cfg`` does not fit."""

    STATE = ("_phase", "value", "stance", "target_joint_pos")

    def __init__(self, cfg: GaitClockCfg, env: Env):
        robot = env.sim.robot
        check_number("GaitClockCfg.period", cfg.period, above=0.0)
        check_number("GaitClockCfg.stance", cfg.stance, above=0.0, below=1.0)
        by_height = isinstance(cfg.swing, (int, float))
        swings: Any = () if by_height else cfg.swing
        for name, entries in (("offsets", cfg.offsets), ("swing", swings)):
            if len(entries) != len(robot.foot_names) and (entries or name == "offsets"):
                feet = f"{robot.name}: {', '.join(robot.foot_names)}"
                raise ValueError(f"GaitClockCfg.{name} needs one entry for each foot of {feet}")
        if unknown := [joint for joints in swings for joint in joints if joint not in robot.joint_names]:
            raise ValueError(f"GaitClockCfg.swing: {robot.name} has no joint {unknown[0]!r}")
        self.cfg, self._default = cfg, env.robot.default_joint_pos
        self._random, self._step = env.random.stream("command/gait"), env.step_dt / cfg.period
        self._offsets = torch.tensor(cfg.offsets, dtype=torch.float32, device=env.device)
        if by_height:
            check_number("GaitClockCfg.swing", cfg.swing, above=0.0)
            self.swing = env.sim.lifted(cfg.swing)
        else:
            turns = [[joints.get(joint, 0.0) for joint in robot.joint_names] for joints in swings]
            self.swing = torch.tensor(turns, dtype=torch.float32, device=env.device)
        """How far each foot's joints are turned in mid-swing, rad. Shape: (num_feet, num_joints)."""
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
        lift = (phases - self.cfg.stance).clamp_min_(0.0).mul_(math.pi / (1.0 - self.cfg.stance)).sin_().square_()
        self.target_joint_pos = self._default.expand(len(phase), -1)
        """The default pose, with the feet that swing lifted, rad. Shape: (num_envs, num_joints)."""
        for foot, swing in enumerate(self.swing):
            self.target_joint_pos = self.target_joint_pos + lift[:, foot, None] * swing

    def reset(self, env_ids: torch.Tensor) -> None:
        self._set(self._phase.index_copy(0, env_ids, self._random.uniform(0.0, 1.0, 1, env_ids).squeeze(1)))

    def hold(self, command: torch.Tensor) -> None:
        """Set every clock to a time of the stride, in strides, from which it runs on. Shape: () or (num_envs,)."""
        self._set(command.to(self._phase).expand_as(self._phase).remainder(1.0))

    def advance(self) -> None:
        self._set((self._phase + self._step).remainder_(1.0))

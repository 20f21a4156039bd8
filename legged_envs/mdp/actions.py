"""Action terms: how a part of the action becomes targets of joints: positions [rad], velocities or torques [N·m]."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from legged_envs.configuration import Configuration
from legged_envs.mdp.context import Env


@dataclass
class JointActionCfg(Configuration):
    """A part of the action, one number for each of some joints, as targets ``centre + scale · action`` of these. A
    subclass has the kind of the targets, which gives their unit."""

    kind: ClassVar[str] = ""
    """What the joints' actuators take: an entry of ``RobotCfg.actuators``."""
    scale: float | tuple[float, ...] = 0.5
    """What action 1 commands; one number for all joints or one each."""
    joints: tuple[str, ...] = (".*",)
    clip: tuple[float, float] | None = None
    """Names of the joints, or regular expressions that match whole names, and bounds of their targets."""

    def build(self, env: Env) -> "JointAction":
        """Make the action term of an environment; ValueError, naming the field or the joint, if it does not fit the
        robot."""
        return JointAction(self, env)


@dataclass
class JointPositionCfg(JointActionCfg):
    """Joint positions ``default_joint_pos + scale · action``, or around a reference, rad."""

    kind = "position"
    around: str | None = None
    """A motion command or gait clock whose joint positions, one control step ahead, replace ``default_joint_pos`` where
    there are any: the policy corrects them (Xie et al. 2018, "Feedback control for Cassie")."""


@dataclass
class JointVelocityCfg(JointActionCfg):
    """Joint velocities ``scale · action``, rad/s, such as those of wheels."""

    kind = "velocity"


@dataclass
class JointTorqueCfg(JointActionCfg):
    """Joint torques ``scale · action``, N·m."""

    kind = "torque"


class JointAction:
    """Targets ``centre + scale · action`` of some joints; ValueError, naming the field, if ``cfg`` does not fit."""

    def __init__(self, cfg: JointActionCfg, env: Env):
        self.cfg = cfg
        name, robot, kinds = type(cfg).__name__, env.sim.robot, env.sim.robot.actuators
        self.joints = _matching_joints(f"{name}.joints", cfg.joints, robot.joint_names)
        """Numbers of its joints among those of the robot, ``size`` in all, as ``scale`` and ``index`` are."""
        self.size = len(self.joints)
        if wrong := [j for j in self.joints if kinds[j] != cfg.kind]:
            has = f"{robot.joint_names[wrong[0]]!r} of robot {robot.name!r} has a {kinds[wrong[0]]} actuator"
            raise ValueError(
                f"{name} needs joints with {cfg.kind} actuators, but {has}: see RobotCfg.actuators"
            )
        scale = torch.as_tensor(cfg.scale, dtype=torch.float32, device=env.device)
        if scale.ndim > 0 and scale.shape != (self.size,):
            raise ValueError(f"{name}.scale needs 1 or {self.size} values, got {scale.numel()}")
        if not ((scale > 0) & scale.isfinite()).all():
            raise ValueError(f"{name}.scale must be positive and finite, got {cfg.scale}")
        if cfg.clip is not None and not cfg.clip[0] < cfg.clip[1]:
            raise ValueError(f"{name}.clip must be (low, high), got {cfg.clip}")
        self.scale = scale.expand(self.size).contiguous()
        self.index = env.robot.joint_index(self.joints)
        zero = torch.zeros_like(self.scale)
        self._default = env.robot.default_joint_pos[self.index] if cfg.kind == "position" else zero
        self._reference: Any = None
        if isinstance(cfg, JointPositionCfg) and cfg.around is not None:
            self._reference = env.commands.terms.get(cfg.around)
            if not hasattr(self._reference, "target_joint_pos"):
                known = ", ".join(env.commands.terms)
                raise ValueError(
                    f"{name}.around: {cfg.around!r} is no motion command or gait clock; commands: {known}"
                )

    def targets(self, action: torch.Tensor) -> torch.Tensor:
        """The targets of its joints. Shapes: (num_envs, size)."""
        centre = self._default
        if self._reference is not None:
            available = self._reference.available.unsqueeze(1) > 0.0
            centre = torch.where(available, self._reference.target_joint_pos[:, self.index], centre)
        targets = torch.addcmul(centre, action, self.scale)
        return targets if self.cfg.clip is None else targets.clamp_(*self.cfg.clip)


def _matching_joints(
    field: str, patterns: tuple[str, ...], names: tuple[str, ...]
) -> tuple[int, ...]:
    for pattern in patterns:
        if not any(re.fullmatch(pattern, name) for name in names):
            raise ValueError(f"{field}: no joint matches {pattern!r}; joints: {', '.join(names)}")
    return tuple(
        i
        for i, name in enumerate(names)
        if any(re.fullmatch(pattern, name) for pattern in patterns)
    )

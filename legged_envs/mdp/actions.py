"""Action terms: a part of the action becomes targets of joints.

Targets are positions, rad, velocities, rad/s, or torques, N·m.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from legged_envs.configuration import Configuration
from legged_envs.mdp.context import Env
from legged_envs.robots import RobotCfg


@dataclass
class JointActionCfg(Configuration):
    """A part of the action, one number for each of some joints, which become targets of these.

    The targets are ``centre + scale · action``. Subclasses have the kind of the targets, which
    gives their unit.
    """

    kind: ClassVar[str] = ""
    """Kind of the joints' actuators: an entry of ``RobotCfg.actuators``."""
    scale: float | tuple[float, ...] = 0.5
    """Change of the target by an action of 1, in the unit of the targets: one number for all joints
    or one for each."""
    joints: tuple[str, ...] = (".*",)
    """Names of the joints, or regular expressions that match whole names."""
    clip: tuple[float, float] | None = None
    """Bounds of the targets, in their unit. None: no bounds."""

    def build(self, env: Env) -> "JointAction":
        """Make the action term of an environment.

        Raises:
            ValueError: A field does not fit the robot. The message names the field or the joint.
        """
        return JointAction(self, env)


@dataclass
class JointPositionCfg(JointActionCfg):
    """Joint positions ``default_joint_pos + scale · action``, or around a reference, rad."""

    kind = "position"

    around: str | None = None
    """Motion command or gait clock with joint positions that replace ``default_joint_pos``.

    They are those of one control step ahead, where there is a reference. The policy corrects them
    (Xie et al. 2018, "Feedback control for Cassie"). None: the default pose.
    """


@dataclass
class JointVelocityCfg(JointActionCfg):
    """Joint velocities ``scale · action``, rad/s, such as those of wheels."""

    kind = "velocity"


@dataclass
class JointTorqueCfg(JointActionCfg):
    """Joint torques ``scale · action``, N·m."""

    kind = "torque"


class JointAction:
    """Targets ``centre + scale · action`` of some joints.

    Args:
        cfg: Kind, scale and joints.
        env: The environment.

    Raises:
        ValueError: A field of ``cfg`` does not fit the robot. The message names it.
    """

    def __init__(self, cfg: JointActionCfg, env: Env):
        name = type(cfg).__name__
        robot = env.sim.robot

        self.cfg = cfg
        """Kind, scale and joints."""
        self.joints = _match_joints(f"{name}.joints", cfg.joints, robot.joint_names)
        """Indices into ``RobotCfg.joint_names`` of the joints. Length: ``size``."""
        _check_actuators(cfg, robot, self.joints)
        self.size = len(self.joints)
        """Number of joints, and of numbers in this part of the action."""
        self.scale = _expand_scale(cfg, self.size, env.device)
        """Change of each target by an action of 1, in the unit of the targets. Shape: (size,)."""
        if cfg.clip is not None and not cfg.clip[0] < cfg.clip[1]:
            raise ValueError(f"{name}.clip must be (low, high), got {cfg.clip}")
        self.index = env.robot.joint_index(self.joints)
        """Index of the joints among those of the robot: a slice where they are evenly spaced, else
        (size,), int64."""
        # Only positions have a default; velocities and torques are around 0.
        if cfg.kind == "position":
            self._default = env.robot.default_joint_pos[self.index]
        else:
            self._default = torch.zeros_like(self.scale)
        self._reference: Any = None
        if isinstance(cfg, JointPositionCfg) and cfg.around is not None:
            self._reference = _find_reference(cfg.around, env)

    def targets(self, action: torch.Tensor) -> torch.Tensor:
        """Return the targets of the joints. Shapes: (num_envs, size) → (num_envs, size)."""
        centre = self._default
        if self._reference is not None:
            # Without a reference the policy is free, and 0 is the default pose again.
            available = self._reference.available.unsqueeze(1) > 0.0
            reference_pos = self._reference.target_joint_pos[:, self.index]
            centre = torch.where(available, reference_pos, centre)
        # One operation; a product and a sum can round differently.
        targets = torch.addcmul(centre, action, self.scale)
        if self.cfg.clip is None:
            return targets
        low, high = self.cfg.clip
        return targets.clamp_(low, high)


def _check_actuators(
    cfg: JointActionCfg,
    robot: RobotCfg,
    joints: tuple[int, ...],
) -> None:
    for joint in joints:
        actuator = robot.actuators[joint]
        if actuator != cfg.kind:
            raise ValueError(
                f"{type(cfg).__name__} needs joints with {cfg.kind} actuators, "
                f"but {robot.joint_names[joint]!r} of robot {robot.name!r} has "
                f"a {actuator} actuator: see RobotCfg.actuators"
            )


def _expand_scale(
    cfg: JointActionCfg,
    size: int,
    device: torch.device,
) -> torch.Tensor:
    name = type(cfg).__name__
    scale = torch.as_tensor(cfg.scale, dtype=torch.float32, device=device)
    if scale.ndim > 0 and scale.shape != (size,):
        raise ValueError(f"{name}.scale needs 1 or {size} values, got {scale.numel()}")
    if not ((scale > 0) & scale.isfinite()).all():
        raise ValueError(f"{name}.scale must be positive and finite, got {cfg.scale}")
    return scale.expand(size).contiguous()


def _find_reference(around: str, env: Env) -> Any:
    """Return the command called ``around``, which has joint positions."""
    reference = env.commands.terms.get(around)
    # Any command of a user with this attribute will do.
    if not hasattr(reference, "target_joint_pos"):
        raise ValueError(
            "JointPositionCfg.around must name a motion command or gait clock, "
            f"got {around!r}; commands: {', '.join(env.commands.terms)}"
        )
    return reference


def _match_joints(
    field: str,
    patterns: tuple[str, ...],
    names: tuple[str, ...],
) -> tuple[int, ...]:
    """Return the indices of the names that match a pattern, in the order of the names."""
    matched = set()
    for pattern in patterns:
        matches = [index for index, name in enumerate(names) if re.fullmatch(pattern, name)]
        if not matches:
            raise ValueError(f"{field}: no joint matches {pattern!r}; joints: {', '.join(names)}")
        matched.update(matches)
    return tuple(sorted(matched))

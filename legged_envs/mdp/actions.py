"""Action terms: each converts a part of the policy's action to targets of some joints.

The targets are joint positions (rad), joint velocities (rad/s) or joint torques (N·m).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from legged_envs.configuration import Configuration
from legged_envs.mdp.context import Env
from legged_envs.robots import RobotCfg


@dataclass
class JointActionCfg(Configuration):
    """Configuration of an action term: a part of the action with one number for each of its joints.

    The term sets the targets of its joints to ``centre + scale · action``. Subclasses choose the
    quantity: positions (rad), velocities (rad/s) or torques (N·m).
    """

    kind: ClassVar[str] = ""
    """Kind of actuator that the joints must have in ``RobotCfg.actuators``: ``"position"``,
    ``"velocity"`` or ``"torque"``."""
    scale: float | tuple[float, ...] = 0.5
    """Change of the target by an action of 1, in the unit of the targets: one number for all joints
    or one for each."""
    joints: tuple[str, ...] = (".*",)
    """Names of the joints, or regular expressions that match whole names."""
    clip: tuple[float, float] | None = None
    """(low, high) to which the targets are clipped, in their unit. None: no clipping."""

    def build(self, env: Env) -> "JointAction":
        """Make the action term of an environment.

        Raises:
            ValueError: A field does not fit the robot. The message names the field or the joint.
        """
        return JointAction(self, env)


@dataclass
class JointPositionCfg(JointActionCfg):
    """Configuration of joint position targets ``default_joint_pos + scale · action``, rad.

    With ``around`` the centre is a reference pose instead of the default pose.
    """

    kind = "position"

    around: str | None = None
    """Name of a motion command or gait clock with a reference pose that replaces
    ``default_joint_pos``.

    The reference pose is one control step ahead, and the policy learns corrections to it (Xie et
    al. 2018, "Feedback control for Cassie"). Environments without a reference at the moment use the
    default pose. None: always the default pose.
    """


@dataclass
class JointVelocityCfg(JointActionCfg):
    """Configuration of joint velocity targets ``scale · action``, rad/s, for example of wheels."""

    kind = "velocity"


@dataclass
class JointTorqueCfg(JointActionCfg):
    """Configuration of joint torques ``scale · action``, N·m."""

    kind = "torque"


class JointAction:
    """Action term that computes the targets ``centre + scale · action`` of its joints.

    Args:
        cfg: Quantity of the targets, their scale, and the joints.
        env: Environment with the robot to control.

    Raises:
        ValueError: A field of ``cfg`` does not fit the robot. The message names it.
    """

    def __init__(self, cfg: JointActionCfg, env: Env):
        name = type(cfg).__name__
        robot = env.sim.robot

        self.cfg = cfg
        """Configuration of this term."""
        self.joints = _match_joints(f"{name}.joints", cfg.joints, robot.joint_names)
        """Indices into ``RobotCfg.joint_names`` of the joints of this term. Length: ``size``."""
        _check_actuators(cfg, robot, self.joints)
        self.size = len(self.joints)
        """Number of joints of this term, which is the length of its part of the action."""
        self.scale = _expand_scale(cfg, self.size, env.device)
        """Change of each target by an action of 1, in the unit of the targets. Shape: (size,)."""
        if cfg.clip is not None and not cfg.clip[0] < cfg.clip[1]:
            raise ValueError(f"{name}.clip must be (low, high), got {cfg.clip}")
        self.index = env.robot.joint_index(self.joints)
        """Index that selects the joints of this term in a tensor (…, num_joints).

        A slice if they are evenly spaced, otherwise a tensor (size,), int64.
        """
        # Only positions have a default; velocities and torques are around 0.
        if cfg.kind == "position":
            self._default = env.robot.default_joint_pos[self.index]
        else:
            self._default = torch.zeros_like(self.scale)
        self._reference: Any = None
        if isinstance(cfg, JointPositionCfg) and cfg.around is not None:
            self._reference = _find_reference(cfg.around, env)

    def reset(self, env_ids: torch.Tensor) -> None:
        """Do nothing: this term has no state.

        A subclass with a state, such as a filter, also inherits from
        :class:`~legged_envs.state.Stateful`, names the state in ``STATE``, and here resets that of
        the environments ``env_ids`` (n,), which start episodes.
        """

    def targets(self, action: torch.Tensor) -> torch.Tensor:
        """Return the joint targets for an action, in rad, rad/s or N·m.

        Shapes: (num_envs, size) → (num_envs, size).
        """
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
    patterns: Sequence[str],
    names: tuple[str, ...],
) -> tuple[int, ...]:
    """Return the indices of the names that match a pattern, in the order of the names."""
    if isinstance(patterns, str):
        raise ValueError(f"{field} must be a tuple of patterns, got the text {patterns!r}")
    matched = set()
    for pattern in patterns:
        try:
            # A stranger's file can have line breaks in names, which a dot matches with DOTALL only.
            expression = re.compile(pattern, re.DOTALL)
        except re.error as error:
            raise ValueError(f"{field}: {pattern!r} is no regular expression: {error}") from error
        matches = [index for index, name in enumerate(names) if expression.fullmatch(name)]
        if not matches:
            joints = ", ".join(map(repr, names))
            raise ValueError(f"{field}: no joint matches {pattern!r}; joints: {joints}")
        matched.update(matches)
    return tuple(sorted(matched))

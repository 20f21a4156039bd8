"""Actions in [−1, 1] → joint targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.managers.term import table
from legged_envs.mdp.gait_clock import GaitClock
from legged_envs.mdp.motion_command import MotionCommand
from legged_envs.rng import RandomStreams


@dataclass
class ActionCfg:
    """Joint position targets ``default_joint_pos + scale · clip(action, −1, 1)``, or around a reference."""

    scale: float | tuple[float, ...] = 0.5
    """Joint angle that action 1 commands, rad; one for all joints or one each."""
    max_delay: int = 0
    """An episode's actions act 0 to ``max_delay`` control steps late (0 or 1)."""
    reference: str | None = None
    """A motion command or gait clock whose joint positions, one control step ahead, take the place of
    ``default_joint_pos`` where there are any: the policy corrects them (Xie et al. 2018, "Feedback control for
    Cassie")."""


class ActionManager:
    """Turns actions into joint targets and remembers the last three actions.

    Actions are clipped to the action space [−1, 1] before anything else sees them, since Gaussian policies leave it
    routinely; ``current`` holds the clipped action.
    """

    def __init__(self, env: Any, cfg: ActionCfg, random: RandomStreams):
        if cfg.max_delay not in (0, 1):
            raise ValueError(f"ActionCfg.max_delay must be 0 or 1 control steps, got {cfg.max_delay}")
        self.cfg = cfg
        self._reference = _reference(env, cfg.reference)
        robot = env.robot
        n, num_joints = robot.sim.num_envs, len(robot.default_joint_pos)
        scale = torch.as_tensor(cfg.scale, dtype=torch.float32, device=robot.sim.device)
        if scale.ndim > 0 and scale.shape != (num_joints,):
            raise ValueError(f"ActionCfg.scale needs 1 or {num_joints} values, got {len(scale)}")
        if not ((scale > 0) & scale.isfinite()).all():
            raise ValueError(f"ActionCfg.scale must be positive and finite, got {cfg.scale}")
        self.scale = scale.expand(num_joints).contiguous()
        """Shape: (num_joints,)."""
        self._default = robot.default_joint_pos
        self._random = random.stream("action_delay")
        self.current = torch.zeros(n, num_joints, dtype=torch.float32, device=robot.sim.device)
        """The action of this step. Shape: (num_envs, num_joints)."""
        self.previous = torch.zeros_like(self.current)
        """The action one step ago."""
        self.before_previous = torch.zeros_like(self.current)
        """The action two steps ago."""
        self.delayed = torch.zeros(n, 1, dtype=torch.bool, device=robot.sim.device)
        """Which environments act one step late. Shape: (num_envs, 1)."""

    def process(self, action: torch.Tensor) -> torch.Tensor:
        """Take an action and return the joint targets it gives now. Shapes: (num_envs, num_joints)."""
        self.before_previous, self.previous = self.previous, self.current
        self.current = action.clamp(-1.0, 1.0)
        applied = torch.where(self.delayed, self.previous, self.current) if self.cfg.max_delay else self.current
        return torch.addcmul(self._centre(), applied, self.scale)

    def _centre(self) -> torch.Tensor:
        """The joint targets of action 0. Shape: (num_joints,) or (num_envs, num_joints)."""
        reference = self._reference
        if reference is None:
            return self._default
        return torch.where(reference.available.unsqueeze(1) > 0.0, reference.target_joint_pos, self._default)

    def reset(self, env_ids: torch.Tensor) -> None:
        for name in ("current", "previous", "before_previous"):
            # not in place: an action of this step may still be an observation of the last one
            setattr(self, name, getattr(self, name).index_fill(0, env_ids, 0.0))
        if self.cfg.max_delay:
            self.delayed[env_ids] = self._random.signed_24_bit(1, env_ids) >= 0

    def state_dict(self) -> dict[str, Any]:
        names = ("current", "previous", "before_previous", "delayed")
        return {name: getattr(self, name).clone() for name in names}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value.clone())

    def __str__(self) -> str:
        centre = self.cfg.reference or "default pose"
        rows = [("joint_position", self.current.shape[1], self.cfg.scale, centre, self.cfg.max_delay)]
        return table("Actions", ("term", "size", "scale [rad]", "around", "max delay [steps]"), rows)


def _reference(env: Any, name: str | None) -> MotionCommand | GaitClock | None:
    """The command that ``ActionCfg.reference`` names."""
    if name is None:
        return None
    term = env.commands.terms.get(name)
    if not isinstance(term, (MotionCommand, GaitClock)):
        known = ", ".join(env.commands.terms)
        raise ValueError(f"ActionCfg.reference: {name!r} is no motion command or gait clock; commands: {known}")
    return term

from collections.abc import Iterable
from typing import Any

import torch

from legged_envs.checks import check_choice
from legged_envs.managers.manager import Manager
from legged_envs.mdp.actions import JointActionCfg
from legged_envs.tables import Table


class ActionManager(Manager):
    """Turns actions into joint targets, term by term, and remembers the last three actions. The action is the parts of
    the terms in their order, clipped to ±``limit`` before anything else sees it, since Gaussian policies leave that
    routinely. A joint without a term stays at its default position, without velocity or torque. An episode's actions
    act 0 to ``max_delay`` (0 or 1) control steps late. ValueError if there is no term, or two drive one joint."""

    STATE = ("current", "previous", "before_previous", "delayed")

    def __init__(
        self, env: Any, cfg: dict[str, JointActionCfg], max_delay: int, limit: float = 1.0
    ):
        super().__init__(env, cfg)
        check_choice("max_action_delay [control steps]", max_delay, (0, 1))
        if not cfg:
            raise ValueError("actions need at least one term, such as JointPositionCfg()")
        self.terms = {name: term.build(env) for name, term in cfg.items()}
        self.max_delay, self.limit, robot = max_delay, limit, env.sim.robot
        driven = [joint for term in self.terms.values() for joint in term.joints]
        if twice := sorted(joint for joint in set(driven) if driven.count(joint) > 1):
            raise ValueError(
                f"actions: joint {robot.joint_names[twice[0]]!r} is driven by more than one term"
            )
        self.size = len(driven)
        self.scale = torch.cat([term.scale for term in self.terms.values()])
        self._random = env.random.stream("action_delay")
        self.current = torch.zeros(env.num_envs, self.size, dtype=torch.float32, device=env.device)
        self.previous, self.before_previous = (
            torch.zeros_like(self.current),
            torch.zeros_like(self.current),
        )
        """The actions of this step, and one and two steps ago. Shape: (num_envs, size)."""
        self.delayed = torch.zeros(env.num_envs, 1, dtype=torch.bool, device=env.device)
        """Which environments act one step late. Shape: (num_envs, 1)."""
        self._whole = len(self.terms) == 1 and self.size == robot.num_joints
        held = torch.tensor([kind == "position" for kind in robot.actuators], device=env.device)
        self._rest = (env.robot.default_joint_pos * held).expand(env.num_envs, -1)

    def process(self, action: torch.Tensor) -> torch.Tensor:
        """Take an action and return the joint targets it gives now. (num_envs, size) → (num_envs, num_joints)."""
        self.before_previous, self.previous = self.previous, self.current
        self.current = action.clamp(-self.limit, self.limit)
        applied = (
            torch.where(self.delayed, self.previous, self.current)
            if self.max_delay
            else self.current
        )
        if self._whole:
            return next(iter(self.terms.values())).targets(applied)
        targets = self._rest.clone()
        parts = applied.split([term.size for term in self.terms.values()], dim=1)
        for term, part in zip(self.terms.values(), parts, strict=True):
            targets[:, term.index] = term.targets(part)
        return targets

    def reset(self, env_ids: torch.Tensor) -> None:
        for name in ("current", "previous", "before_previous"):
            # not in place: an action of this step may still be an observation of the last one
            setattr(self, name, getattr(self, name).index_fill(0, env_ids, 0.0))
        if self.max_delay:
            self.delayed[env_ids] = self._random.signed_24_bit(1, env_ids) >= 0

    def _as_tables(self) -> Iterable[Table]:
        terms = [(name, term.size, term.cfg) for name, term in self.terms.items()]
        rows = [
            (name, cfg.kind, size, cfg.scale, getattr(cfg, "around", None))
            for name, size, cfg in terms
        ]
        title = f"Actions (up to {self.max_delay} steps late)" if self.max_delay else "Actions"
        return [(title, ("term", "kind", "size", "scale", "around"), rows)]

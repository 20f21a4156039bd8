"""Actions: the effect of a policy's numbers on the joints."""

from collections.abc import Iterable

import torch

from legged_envs.checks import check_choice
from legged_envs.managers.manager import Manager
from legged_envs.mdp.actions import JointActionCfg
from legged_envs.mdp.context import Env
from legged_envs.state import Stateful
from legged_envs.tables import Table


class ActionManager(Manager):
    """Turns actions into joint targets, term by term, and remembers the last three actions.

    An action consists of the parts of the terms, in their order. The action is clipped to
    ±``limit`` before anything else sees it, because Gaussian policies leave that range routinely. A
    joint without a term stays at its default position, or without velocity or torque.

    Args:
        env: The environment.
        cfg: Name of each term mapped to its configuration.
        max_delay: Largest delay of an episode's actions, control steps: 0 or 1.
        limit: Bound of an action.

    Raises:
        ValueError: If there is no term, two terms drive one joint, or ``max_delay`` is not 0 or 1.
    """

    STATE: tuple[str, ...] = ("current", "previous", "before_previous", "delayed")

    def __init__(
        self,
        env: Env,
        cfg: dict[str, JointActionCfg],
        max_delay: int,
        limit: float = 1.0,
    ):
        super().__init__(env, cfg)
        check_choice("max_action_delay [control steps]", max_delay, (0, 1))
        if not cfg:
            raise ValueError("actions need at least one term, such as JointPositionCfg()")
        self.terms = {name: term.build(env) for name, term in cfg.items()}
        """Name of each term mapped to the term."""
        self.max_delay = max_delay
        """Largest delay of an episode's actions, control steps."""
        self.limit = limit
        """Bound of an action."""
        robot = env.sim.robot
        # Two terms would write the same targets, and the later one would win without a word.
        driven = [joint for term in self.terms.values() for joint in term.joints]
        for joint in sorted(set(driven)):
            if driven.count(joint) > 1:
                raise ValueError(
                    f"actions: joint {robot.joint_names[joint]!r} is driven by more than one term"
                )
        self.stateful_terms = {
            name: term for name, term in self.terms.items() if isinstance(term, Stateful)
        }
        """Name of each term with a state of its own mapped to the term."""
        if self.stateful_terms:
            self.STATE = (*self.STATE, "stateful_terms")
        self.size = len(driven)
        """Number of elements of an action."""
        self.scale = torch.cat([term.scale for term in self.terms.values()])
        """Scale of each element. Shape: (size,)."""
        self._random = env.random.stream("action_delay")

        self.current = torch.zeros(env.num_envs, self.size, dtype=torch.float32, device=env.device)
        """Actions of this control step. Shape: (num_envs, size)."""
        self.previous = torch.zeros_like(self.current)
        """Actions of one control step ago, 0 where the episode had none. Shape: (num_envs,
        size)."""
        self.before_previous = torch.zeros_like(self.current)
        """Actions of two control steps ago, 0 where the episode had none. Shape: (num_envs,
        size)."""
        self.delayed = torch.zeros(env.num_envs, 1, dtype=torch.bool, device=env.device)
        """Environments with actions that act one step late. Shape: (num_envs, 1), bool."""
        # One term that drives every joint needs no copy of the default targets in each step.
        self._drives_all_joints = len(self.terms) == 1 and self.size == robot.num_joints
        holds_position = torch.tensor(
            [kind == "position" for kind in robot.actuators], device=env.device
        )
        default_targets = env.robot.default_joint_pos * holds_position
        self._default_targets = default_targets.expand(env.num_envs, -1)

    def process(self, action: torch.Tensor) -> torch.Tensor:
        """Record an action and return the joint targets that act in this step.

        Args:
            action: Actions of all environments, shape (num_envs, size).

        Returns:
            Joint targets in the unit of each actuator, shape (num_envs, num_joints).
        """
        # New tensors take the place of old ones, which observations and a learner may still hold.
        self.before_previous = self.previous
        self.previous = self.current
        self.current = action.clamp(-self.limit, self.limit)
        applied = self.current
        if self.max_delay:
            applied = torch.where(self.delayed, self.previous, self.current)
        terms = list(self.terms.values())
        if self._drives_all_joints:
            return terms[0].targets(applied)
        targets = self._default_targets.clone()
        parts = applied.split([term.size for term in terms], dim=1)
        for term, part in zip(terms, parts, strict=True):
            targets[:, term.index] = term.targets(part)
        return targets

    def reset(self, env_ids: torch.Tensor) -> None:
        # Not in place: an action of this step may still be an observation of the last one.
        self.current = self.current.index_fill(0, env_ids, 0.0)
        self.previous = self.previous.index_fill(0, env_ids, 0.0)
        self.before_previous = self.before_previous.index_fill(0, env_ids, 0.0)
        for term in self.stateful_terms.values():
            term.reset(env_ids)
        if self.max_delay:
            # Half of all draws are at least 0: an episode is late with a probability of 1/2.
            self.delayed[env_ids] = self._random.signed_24_bit(1, env_ids) >= 0

    def _as_tables(self) -> Iterable[Table]:
        rows = []
        for name, term in self.terms.items():
            around = getattr(term.cfg, "around", None)
            rows.append((name, term.cfg.kind, term.size, term.cfg.scale, around))
        title = f"Actions (up to {self.max_delay} steps late)" if self.max_delay else "Actions"
        return [(title, ("term", "kind", "size", "scale", "around"), rows)]

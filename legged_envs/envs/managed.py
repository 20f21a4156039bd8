"""The managers of a task as attributes of its environment."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from legged_envs.envs.changes import Changes
from legged_envs.envs.task import Task
from legged_envs.managers import (
    ActionManager,
    CommandManager,
    CostManager,
    CurriculumManager,
    EventManager,
    Manager,
    ObservationManager,
    RewardManager,
    TerminationManager,
)
from legged_envs.tables import Table

if TYPE_CHECKING:
    from legged_envs.envs.core import CoreVectorEnv
    from legged_envs.envs.manager_set import ManagerSet


class ManagedEnv:
    """Gives an environment the managers of its task as attributes.

    A task without managers raises an AttributeError that names the attribute.
    """

    task: Task
    num_envs: int

    @property
    def has_managers(self) -> bool:
        """True if the task has managers and was not closed."""
        return getattr(self.task, "managers", None) is not None

    @property
    def _managers(self) -> "ManagerSet":
        # getattr: a task without managers, and a closed task, lacks the attribute.
        manager_set: ManagerSet | None = getattr(self.task, "managers", None)
        if manager_set is None:
            raise AttributeError(f"{type(self.task).__name__} has no managers, or was closed")
        return manager_set

    @property
    def managers(self) -> dict[str, Manager]:
        """All managers by name."""
        return self._managers.by_name

    @property
    def actions(self) -> ActionManager:
        """Manager of the actions."""
        return self._managers.actions

    @property
    def commands(self) -> CommandManager:
        """Manager of the commands."""
        return self._managers.commands

    @property
    def events(self) -> EventManager:
        """Manager of the events."""
        return self._managers.events

    @property
    def terminations(self) -> TerminationManager:
        """Manager of the terminations."""
        return self._managers.terminations

    @property
    def rewards(self) -> RewardManager:
        """Manager of the rewards."""
        return self._managers.rewards

    @property
    def costs(self) -> CostManager:
        """Manager of the costs."""
        return self._managers.costs

    @property
    def curriculum(self) -> CurriculumManager:
        """Manager of the curricula."""
        return self._managers.curriculum

    @property
    def observations(self) -> ObservationManager:
        """Manager of the observation groups."""
        return self._managers.observations

    @property
    def observation_limit(self) -> float:
        """Bound that observations are clipped to."""
        return self._managers.observation_limit

    @property
    def changes(self) -> Changes:
        """Changes made by :meth:`reconfigure`, keyed by dotted path."""
        return self._managers.changes

    def reconfigure(self, changes: Changes) -> None:
        """Change terms of the task from now on.

        The managers are built again, which takes as long as tens of steps; the state of the
        managers stays. The saved state of the environment includes the changes. Cost limits reach
        only wrappers that are made later.

        Args:
            changes: Dotted paths as in ``cfg`` of ``make_vec``, such as
                ``{"events.push.params.velocity": 1.0}``. The first part is one of
                :data:`~legged_envs.envs.manager_set.CHANGEABLE`. Of ``sim``, the length of a
                physics step and their number per control step can change together:
                ``{"sim.dt": 0.01, "sim.decimation": 2}``.

        Raises:
            TypeError: If a value is not of the type of its field.
            ValueError: If a path does not exist or cannot change, or terms would be added, removed
                or change their sizes; nothing is changed then.
        """
        self._managers.reconfigure(changes)

    def _as_tables(self) -> Iterable[Table]:
        env = cast("CoreVectorEnv", self)
        cfg = env.cfg
        facts = {
            "robot": cfg.robot.name,
            "step [s]": env.step_dt,
            "episode [s]": env.max_episode_length_s,
            "observations": env.group_sizes,
            "actions": env.single_action_space.shape,
        }
        yield f"{self}", tuple(facts), [tuple(facts.values())]
        if self.has_managers:
            for manager in self.managers.values():
                if manager.cfg:
                    yield from manager._as_tables()

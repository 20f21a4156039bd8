"""The configuration of a task."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from legged_envs import managers
from legged_envs.checks import check_number
from legged_envs.configuration import Configuration
from legged_envs.envs.changes import Changes, apply_changes
from legged_envs.envs.cost_suites import suite_costs
from legged_envs.envs.manager_task import ManagerTask
from legged_envs.mdp.actions import JointActionCfg, JointPositionCfg
from legged_envs.mdp.commands import CommandTermCfg
from legged_envs.robots import RobotCfg
from legged_envs.sim import SceneCfg, SimCfg, ViewerCfg

if TYPE_CHECKING:
    from legged_envs.envs.task import Task


@dataclass
class TaskCfg(Configuration):
    """Everything that defines a task.

    The dicts map names to terms; add or delete entries freely.
    """

    robot: RobotCfg
    """The robot that acts."""
    sim: SimCfg = field(default_factory=SimCfg)
    """Physics: time step, decimation, threads."""
    scene: SceneCfg = field(default_factory=SceneCfg)
    """Ground, objects and further robots of every environment."""
    viewer: ViewerCfg = field(default_factory=ViewerCfg)
    """Camera of pictures and windows."""
    episode_length_s: float = 20.0
    """Time limit of an episode, s; infinity for none."""
    is_finite_horizon: bool = False
    """True if the time limit is a part of the task, so that its end is a termination (Isaac
    Lab)."""
    actions: dict[str, JointActionCfg] = field(
        default_factory=lambda: {"joint_position": JointPositionCfg()}
    )
    """Action terms."""
    action_limit: float = 1.0
    """Bound of the action space; actions are clipped to it."""
    max_action_delay: int = 0
    """Largest delay of an episode's actions, control steps: 0 or 1."""
    commands: dict[str, CommandTermCfg] = field(default_factory=dict)
    """Command terms."""
    observations: dict[str, managers.ObservationGroupCfg] = field(default_factory=dict)
    """Observation groups; the policy sees ``"policy"``."""
    rewards: dict[str, managers.RewardTermCfg] = field(default_factory=dict)
    """Reward terms."""
    only_positive_rewards: bool = True
    """True if the sum of the rewards is floored at 0 (LeggedGym-Ex: ``only_positive_rewards``)."""
    costs: dict[str, managers.CostTermCfg] = field(default_factory=dict)
    """Cost terms."""
    terminations: dict[str, managers.TerminationTermCfg] = field(default_factory=dict)
    """Termination terms."""
    events: dict[str, managers.EventTermCfg] = field(default_factory=dict)
    """Event terms."""
    curriculum: dict[str, managers.CurriculumTermCfg] = field(default_factory=dict)
    """Curriculum terms."""
    advance_first: bool = False
    """True if commands and pushes advance before the evaluation.

    LeggedGym-Ex: ``_post_physics_step_callback``.
    """

    @property
    def max_episode_length(self) -> int | None:
        """Time limit of an episode, control steps; None without a time limit."""
        if math.isinf(self.episode_length_s):
            return None
        # Minus a little: a quotient such as 3.0000000000000004 must not become one step more.
        return math.ceil(self.episode_length_s / self.sim.step_dt - 1e-6)

    @property
    def is_reconfigurable(self) -> bool:
        """True if only managers evaluate the task, so that its terms can be changed later."""
        return True

    def make_task(self) -> "Task":
        """Return a new task with this configuration."""
        return ManagerTask(self)

    def with_changes(self, changes: Changes) -> "TaskCfg":
        """Return a copy with fields replaced: see :func:`override`."""
        suite = changes.get("costs")
        if isinstance(suite, str):
            changes = {**changes, "costs": suite_costs(suite, self.robot.name)}
        return apply_changes(self, changes)

    def from_own_cfg(self, cfg: object) -> "TaskCfg":
        """Return the configuration for ``cfg``, which is written with the API of another framework.

        Raises:
            TypeError: If the task is not written with the API of another framework.
        """
        raise TypeError(f"cfg must be a TaskCfg or a mapping of changes, got {type(cfg).__name__}")

    def check(self) -> None:
        """Check the fields.

        Raises:
            ValueError: If a field is not valid; the error names the field.
            TypeError: If a field is of another type.
        """
        self.sim.check()
        self.scene.check()
        self.viewer.check()
        check_number("TaskCfg.action_limit", self.action_limit, above=0.0)
        # Written with "not", so that NaN is refused too.
        if not self.episode_length_s > 0.0:
            raise ValueError(
                f"TaskCfg.episode_length_s must be positive, got {self.episode_length_s!r}"
            )


def override(cfg: TaskCfg, changes: Changes) -> TaskCfg:
    """Return a copy of a task's configuration with fields replaced.

    Args:
        cfg: The configuration. If it is written with the API of another framework, the fields of
            that framework come first.
        changes: Dotted paths mapped to new values, such as
            ``{"rewards.joint_torque.weight": 0.0, "sim.dt": 0.004}``. None removes a term:
            ``{"events.push": None}``. In ``params`` of a term any parameter of its function can
            be set. The name of a suite stands for its costs:
            ``{"costs": "SafeLegged-v1/Go2-Flat/medium"}``.

    Raises:
        TypeError: If a path is not a string, or a value is not of the type of its field.
        ValueError: If there is no such field, term or suite.
    """
    return cfg.with_changes(changes)

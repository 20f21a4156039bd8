"""Kind of a task: the facts that select its metrics, training defaults and videos."""

from dataclasses import dataclass

from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.gait_command import GaitCommandCfg
from legged_envs.mdp.motion_command import MotionCommandCfg


@dataclass(frozen=True)
class TaskKind:
    """Facts about commands, ground and robot of a task, from :func:`kind_of`."""

    imitates_motions: bool
    """True if the task has a motion command: the robot imitates reference motions."""

    has_velocity_command: bool
    """True if the task has a velocity command. Mimic tasks can have one for episodes without a
    reference motion."""

    has_terrain: bool
    """True if the ground is rough. False: it is a plane."""

    balances: bool
    """True if the robot must balance on two feet or two wheels."""

    has_gait_command: bool = False
    """True if the task has a gait command: which feet swing together, and how."""

    @property
    def follows_velocity(self) -> bool:
        """True if the task has a velocity command and no reference motions."""
        return self.has_velocity_command and not self.imitates_motions


def kind_of(cfg: TaskCfg) -> TaskKind:
    """Return the kind of a task from its commands, its ground and the feet of its robot."""
    # By the class of a command and not by its name, which is free in tasks of other packages.
    has_motion = False
    has_gait = False
    for command in cfg.commands.values():
        if isinstance(command, MotionCommandCfg):
            has_motion = True
        if isinstance(command, GaitCommandCfg):
            has_gait = True
    return TaskKind(
        imitates_motions=has_motion,
        has_velocity_command=isinstance(cfg.commands.get("velocity"), VelocityCommandCfg),
        has_terrain=cfg.scene.terrain is not None,
        # Wheels count as feet.
        balances=len(cfg.robot.foot_names) == 2,
        has_gait_command=has_gait,
    )

"""The kind of a task: the facts that its metrics, training defaults and films depend on."""

from dataclasses import dataclass

from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.motion_command import MotionCommandCfg


@dataclass(frozen=True)
class TaskKind:
    """What a task asks of which type of robot, and where."""

    imitates_motions: bool
    """True if one of the commands is a motion to imitate."""

    has_velocity_command: bool
    """True if there is a velocity command. Mimic tasks may have one too, for episodes without a
    motion."""

    has_terrain: bool
    """True if the ground is rough, and not a plane."""

    balances: bool
    """True if the robot has two feet, or two wheels, on which it must balance."""

    @property
    def follows_velocity(self) -> bool:
        """True if a velocity command is all that the task asks for."""
        return self.has_velocity_command and not self.imitates_motions


def kind_of(cfg: TaskCfg) -> TaskKind:
    """Return the kind of a task from its commands, its ground and the feet of its robot."""
    has_motion = False
    for command in cfg.commands.values():
        if isinstance(command, MotionCommandCfg):
            has_motion = True
    return TaskKind(
        imitates_motions=has_motion,
        has_velocity_command=isinstance(cfg.commands.get("velocity"), VelocityCommandCfg),
        has_terrain=cfg.scene.terrain is not None,
        balances=len(cfg.robot.foot_names) == 2,
    )

"""Tasks: which robot, terms and weights make which registered id."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from legged_envs.checks import check_known
from legged_envs.system_checks import import_named

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg

TASKS: "dict[str, str | Callable[[], TaskCfg]]" = {
    "Legged/Go2-Flat-v0": "legged_envs.tasks.velocity:go2_flat",
    "Legged/G1-Flat-v0": "legged_envs.tasks.velocity:g1_flat",
    "Legged/Go1-Flat-v0": "legged_envs.tasks.velocity:go1_flat",
    "Legged/A1-Flat-v0": "legged_envs.tasks.velocity:a1_flat",
    "Legged/AnymalC-Flat-v0": "legged_envs.tasks.velocity:anymal_c_flat",
    "Legged/H1-Flat-v0": "legged_envs.tasks.velocity:h1_flat",
    "Legged/K1-Flat-v0": "legged_envs.tasks.velocity:k1_flat",
    "Legged/T1-Flat-v0": "legged_envs.tasks.velocity:t1_flat",
    "Legged/Tron1-PF-Flat-v0": "legged_envs.tasks.velocity:tron1_pf_flat",
    "Legged/Tron1-SF-Flat-v0": "legged_envs.tasks.velocity:tron1_sf_flat",
    "Legged/Tron1-WF-Flat-v0": "legged_envs.tasks.velocity:tron1_wf_flat",
    "Legged/Go2-Rough-v0": "legged_envs.tasks.rough:go2_rough",
    "Legged/Go2-Blind-v0": "legged_envs.tasks.rough:go2_blind",
    "Legged/Go1-Rough-v0": "legged_envs.tasks.rough:go1_rough",
    "Legged/A1-Rough-v0": "legged_envs.tasks.rough:a1_rough",
    "Legged/AnymalC-Rough-v0": "legged_envs.tasks.rough:anymal_c_rough",
    "Legged/G1-Rough-v0": "legged_envs.tasks.rough:g1_rough",
    "Legged/K1-Rough-v0": "legged_envs.tasks.rough:k1_rough",
    "Legged/Tron1-PF-Rough-v0": "legged_envs.tasks.rough:tron1_pf_rough",
    "Legged/Go2-Nav-v0": "legged_envs.tasks.rough:go2_nav",
    "Legged/Go2-Pair-v0": "legged_envs.tasks.go2_pair:go2_pair_task",
    "Legged/Go2-Mimic-v0": "legged_envs.tasks.mimic:go2_mimic",
    "Legged/G1-Mimic-v0": "legged_envs.tasks.mimic:g1_mimic",
    "Legged/Go2-Legs-v0": "legged_envs.tasks.go2_legs:go2_legs_task",
}
"""Registered id → the function that makes a fresh configuration, or its name as ``module:function``."""


def plain_id(task_id: str) -> str:
    """The registered id of a task: ``task_id``, or what stands behind the colon of ``module:Id``, whose module is then
    imported to register it, as in Gymnasium. ValueError if no task has that id."""
    module, _, name = task_id.rpartition(":")
    if ":" in task_id:
        import_named(module, task_id)
    check_known("unknown task", (name,), TASKS, "tasks (another package's are module:Id)")
    return name


def make_task_cfg(task_id: str) -> "TaskCfg":
    """A fresh configuration of a registered task, to change and pass as ``cfg=``; ValueError if no task has that id."""
    factory = TASKS[plain_id(task_id)]
    return (resolve_name(factory) if isinstance(factory, str) else factory)()


def follows_velocity(cfg: "TaskCfg") -> bool:
    """Whether a task has a velocity command to follow."""
    from legged_envs.mdp.commands import VelocityCommandCfg

    return isinstance(cfg.commands.get("velocity"), VelocityCommandCfg)


def balances(cfg: "TaskCfg") -> bool:
    """Whether the robot of a task falls unless it balances: it has two feet, or two wheels."""
    return len(cfg.robot.foot_names) == 2


def is_mimic(cfg: "TaskCfg") -> bool:
    """Whether a task imitates motions: one of its commands is a motion."""
    from legged_envs.mdp.motion_command import MotionCommandCfg

    return any(isinstance(command, MotionCommandCfg) for command in cfg.commands.values())

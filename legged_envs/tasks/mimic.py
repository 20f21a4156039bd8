"""Imitation on flat ground: LeggedGym-Ex's ``g1_mimic`` is where it starts from; terminations are BeyondMimic's."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from legged_envs.checks import check_known
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import EventTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.managers.observation import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import events, observations, rewards, terminations
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.motion_command import MotionCommandCfg
from legged_envs.motions import MotionFiles, shipped_motions
from legged_envs.motions.shipped import shipped_files
from legged_envs.robots import G1_29, GO2, RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.tasks.velocity import go2_flat, velocity_task

ACTOR_GROUPS = ("policy", "reference", "reference_mask")
"""Observation groups of a mimic policy: observation, reference window, mask."""

CRITIC_GROUPS = ("critic", "critic_reference", "critic_reference_mask")
"""Privileged observation groups, of critics and teachers: observation, reference window, mask."""


def motion_cfg(cfg: TaskCfg) -> tuple[str, MotionCommandCfg]:
    """Name and configuration of the motion command of a mimic task; ValueError if it has none."""
    for name, command in cfg.commands.items():
        if isinstance(command, MotionCommandCfg):
            return name, command
    raise ValueError(f"the task has no motion command; its commands: {', '.join(cfg.commands)}")


def clip_names(cfg: TaskCfg, clips: Sequence[str] = ()) -> tuple[str, ...]:
    """The names ``clips``, or of all clips of a mimic task if empty; ValueError if the task has not got one of them."""
    _, command = motion_cfg(cfg)
    shipped = (
        command.motions is shipped_motions and not command.clips
    )  # their names are known without loading them
    known = (
        list(shipped_files(cfg.robot))
        if shipped
        else [motion.name for motion in command.load(cfg.robot)]
    )
    check_known("there is no clip", clips, known, "clips")
    return tuple(clips or known)


def imitating(
    cfg: TaskCfg, clips: Sequence[str] = (), motions: Sequence[str | Path] = ()
) -> TaskCfg:
    """A copy of a mimic task that imitates ``clips``, empty for all, of the files ``motions`` or else of its own."""
    name, _ = motion_cfg(cfg)
    changes = {"clips": tuple(clips), "motions": motions and MotionFiles(tuple(motions))}
    return override(
        cfg, {f"commands.{name}.{field}": value for field, value in changes.items() if value}
    )


def mimic_task(robot: RobotCfg, motion: MotionCommandCfg) -> TaskCfg:
    """A mimic task for ``robot``: the velocity task's sensors, randomisation and costs, other rewards. The reference's
    velocity stands in for the command, and the reference itself has observation groups of its own. Contacts are as
    soft as MuJoCo's by default, as the policy that ships knows them."""
    cfg = velocity_task(robot)
    cfg.sim = SimCfg(solref=(0.02, 1.0), solimp=(0.9, 0.95, 0.001, 0.5, 2.0))
    cfg.commands = {"velocity": VelocityCommandCfg(standing_fraction=0.15), "motion": motion}
    groups = cfg.observations
    for group in groups.values():
        group.terms["command"] = ObservationTermCfg(observations.command_or_reference_velocity)
    groups["critic"].terms["key_error"] = ObservationTermCfg(
        observations.reference_key_error, scale=5.0
    )
    for prefix, window in (
        ("", observations.reference_window),
        ("critic_", observations.reference_window_and_root),
    ):
        available = ObservationTermCfg(observations.reference_available)
        groups[f"{prefix}reference"] = ObservationGroupCfg({"window": ObservationTermCfg(window)})
        groups[f"{prefix}reference_mask"] = ObservationGroupCfg({"available": available})
    cfg.rewards = {
        "reference_joint_pos": RewardTermCfg(rewards.reference_joint_pos, 2.0, {"sigma": 0.4}),
        "reference_joint_vel": RewardTermCfg(rewards.reference_joint_vel, 0.5, {"sigma": 20.0}),
        "reference_root_pose": RewardTermCfg(rewards.reference_root_pose, 1.0, {"sigma": 0.005}),
        "reference_root_vel": RewardTermCfg(
            rewards.reference_root_vel, 1.5, {"sigma": 0.25, "angular": 0.05}
        ),
        "reference_key_pos": RewardTermCfg(rewards.reference_key_pos, 1.0, {"sigma": 0.02}),
        "tracking_lin_vel": _free(rewards.tracking_lin_vel, 2.5, sigma=0.25),
        "tracking_ang_vel": _free(rewards.tracking_ang_vel, 2.25, sigma=0.25),
        "base_height": _free(rewards.base_height, -10.0, target=robot.base_height),
        "orientation": _free(rewards.orientation, -2.0),
        "posture": _free(rewards.dof_close_to_default, -0.2),
        "torques": RewardTermCfg(rewards.torques, -5e-5),
        "dof_acc": RewardTermCfg(rewards.dof_acc, -5e-8),
        "action_rate": RewardTermCfg(rewards.action_rate, -0.02),
        "collision": RewardTermCfg(rewards.collision, -0.5),
        "feet_slip": RewardTermCfg(rewards.feet_slip, -0.2),
        "dof_pos_limits": RewardTermCfg(rewards.dof_pos_limits, -1.0),
    }
    cfg.only_positive_rewards = False
    cfg.terminations["reference_lost"] = TerminationTermCfg(terminations.reference_lost)
    noise = {"joint_pos": 0.1, "velocity": 0.2}
    cfg.events["reference"] = EventTermCfg(events.reset_to_reference, "reset", params=noise)
    cfg.events["push"].params["velocity"] = 0.5
    return cfg


def _free(term: Callable[..., torch.Tensor], weight: float, **params: Any) -> RewardTermCfg:
    return RewardTermCfg(rewards.without_reference, weight, {"term": term, **params})


def go2_mimic() -> TaskCfg:
    """Go2 imitates the motions that come with the package; in three of ten episodes it follows velocity commands."""
    cfg = mimic_task(GO2, MotionCommandCfg())
    cfg.actions["joint_position"] = JointPositionCfg(scale=0.6, around="motion")
    cfg.terminations["reference_lost"].params = {"height": 0.15, "tilt": 0.6, "key_body": 0.2}
    walk = go2_flat().rewards
    for name in ("trot", "feet_air_time"):
        cfg.rewards[name] = _free(walk[name].func, walk[name].weight, **walk[name].params)
    cfg.rewards["base_height"].params["target"] = 0.30
    return cfg


G1_KEY_BODIES = tuple(
    f"{side}_{part}"
    for side in ("left", "right")
    for part in ("foot", "knee_link", "elbow_link", "wrist_yaw_link")
)


def g1_mimic() -> TaskCfg:
    """G1 (29 joints) imitates the motions that come with the package."""
    cfg = mimic_task(G1_29, MotionCommandCfg(key_bodies=("torso_link", *G1_KEY_BODIES)))
    cfg.commands["velocity"] = VelocityCommandCfg(
        lin_vel_x=(-0.8, 0.8), lin_vel_y=(-0.4, 0.4), ang_vel_z=(-0.8, 0.8)
    )
    cfg.actions["joint_position"] = JointPositionCfg(scale=0.5, around="motion")
    cfg.rewards["reference_joint_pos"].params["sigma"] = 1.0
    cfg.rewards["reference_joint_vel"].params["sigma"] = 50.0
    cfg.rewards["reference_key_pos"].params["sigma"] = 0.05
    cfg.rewards["torques"].weight = -1e-5
    cfg.rewards["dof_acc"].weight = -2.5e-8
    cfg.rewards["alive"] = RewardTermCfg(rewards.alive, 1.0)
    return cfg

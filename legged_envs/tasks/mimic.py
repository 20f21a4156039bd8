"""Imitation of reference motions (clips) on flat ground.

The tasks are based on LeggedGym-Ex's ``g1_mimic``. Their terminations follow BeyondMimic.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from legged_envs.checks import check_known
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from legged_envs.mdp import events, observations, rewards, terminations
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.motion_command import MotionCommandCfg
from legged_envs.motion_reading import MotionReading
from legged_envs.motions import MotionError, MotionFiles, shipped_motions
from legged_envs.motions.shipped import shipped_files
from legged_envs.robots import G1_29, GO2, RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.tasks.training_defaults import TrainingDefaults, mimic_training
from legged_envs.tasks.velocity import go2_flat, set_starts, velocity_task

ACTOR_GROUPS = ("policy", "reference", "reference_mask")
"""Names of the observation groups that a mimic policy reads: observation, reference window, mask.

The mask is 1 for robots with a reference, 0 for robots without one.
"""

CRITIC_GROUPS = ("critic", "critic_reference", "critic_reference_mask")
"""Names of the privileged observation groups that critics and teachers read.

They are observation, reference window and mask, as in :data:`ACTOR_GROUPS`.
"""

G1_KEY_BODIES = (
    "left_foot",
    "left_knee_link",
    "left_elbow_link",
    "left_wrist_yaw_link",
    "right_foot",
    "right_knee_link",
    "right_elbow_link",
    "right_wrist_yaw_link",
)
"""Names of the G1's feet, knees, elbows and wrists. Their positions are compared with the
reference."""


def motion_cfg(cfg: TaskCfg) -> tuple[str, MotionCommandCfg]:
    """Return the name and the configuration of the motion command of a mimic task.

    The motion command gives each robot a reference motion to imitate.

    Raises:
        ValueError: If the task has no motion command.
    """
    for name, command in cfg.commands.items():
        if isinstance(command, MotionCommandCfg):
            return name, command
    raise ValueError(f"the task has no motion command; its commands: {', '.join(cfg.commands)}")


def clip_names(cfg: TaskCfg, clips: Sequence[str] = ()) -> tuple[str, ...]:
    """Check that a mimic task has the named clips, and return their names.

    Args:
        cfg: Configuration of the task.
        clips: Names of clips. Empty: all clips of the task.

    Returns:
        ``clips``, or the names of all clips of the task if ``clips`` is empty.

    Raises:
        ValueError: If the task does not have one of the named clips.
    """
    _, command = motion_cfg(cfg)
    if command.motions is shipped_motions and not command.clips:
        # The names of the shipped motions are known without loading their files, which takes long.
        known = list(shipped_files(cfg.robot))
    else:
        known = [motion.name for motion in command.load(cfg.robot)]
    check_known("there is no clip", clips, known, "clips")
    return tuple(clips or known)


def imitating(
    cfg: TaskCfg,
    clips: Sequence[str] = (),
    motions: Sequence[str | Path] = (),
    reading: MotionReading | None = None,
) -> TaskCfg:
    """Return a copy of a mimic task that imitates the given clips or motion files.

    Args:
        cfg: Configuration of the task.
        clips: Names of the clips to imitate. Empty: no change.
        motions: Motion files that replace the motions of the task. Empty: no change.
        reading: Information that the files lack. None: the files are complete.
    """
    name, _ = motion_cfg(cfg)
    changes: dict[str, Any] = {}
    if clips:
        changes[f"commands.{name}.clips"] = tuple(clips)
    if motions:
        changes[f"commands.{name}.motions"] = MotionFiles(
            tuple(motions), **asdict(reading or MotionReading())
        )
    return override(cfg, changes)


def with_clips(
    cfg: TaskCfg,
    clips: Sequence[str],
    motions: Sequence[str | Path],
    reading: MotionReading | None = None,
) -> TaskCfg:
    """Return a copy of a mimic task that imitates the clips of a policy.

    Args:
        cfg: Configuration of the task.
        clips: Names of the clips.
        motions: Motion files that replace the motions of the task. Empty: no change.
        reading: Information that the files lack. None: the files are complete.

    Raises:
        ValueError: If there is no clip with one of the names.
    """
    # The names of clips are known only after the motion files were read.
    cfg = imitating(cfg, motions=motions, reading=reading)
    try:
        clip_names(cfg, clips)
    # The file is wrong, and not the names of the clips.
    except MotionError:
        raise
    except ValueError as error:
        raise ValueError(
            f"{error}. A policy that was trained with --motions needs the same --motions, "
            "or the --clips to imitate"
        ) from error
    return imitating(cfg, clips)


def mimic_task(robot: RobotCfg, motion: MotionCommandCfg) -> TaskCfg:
    """Make the base mimic task for a robot, which the function of each task then adapts.

    Sensors, randomization and costs are the same as in the velocity task. The velocity of the
    reference is observed instead of the velocity command. Separate observation groups hold the
    reference.

    Args:
        robot: The robot.
        motion: Configuration of the motion command: clips, key bodies and reference window.
    """
    cfg = velocity_task(robot)
    set_starts(cfg)
    # Contacts are as soft as MuJoCo's by default: the pretrained policies were trained with them.
    cfg.sim = SimCfg(solref=(0.02, 1.0), solimp=(0.9, 0.95, 0.001, 0.5, 2.0))
    cfg.commands = {
        "velocity": VelocityCommandCfg(standing_fraction=0.15),
        "motion": motion,
    }
    _add_reference_observations(cfg)
    cfg.rewards = _rewards(robot)
    # Clamping at 0 would hide the penalties of robots that imitate badly.
    cfg.only_positive_rewards = False
    cfg.terminations["reference_lost"] = TerminationTermCfg(terminations.reference_lost)
    noise = {"joint_pos": 0.1, "velocity": 0.2}
    cfg.events["reference"] = EventTermCfg(events.reset_to_reference, "reset", params=noise)
    cfg.events["push"].params["velocity"] = 0.5
    return cfg


def _add_reference_observations(cfg: TaskCfg) -> None:
    groups = cfg.observations
    for group in groups.values():
        group.terms["command"] = ObservationTermCfg(observations.command_or_reference_velocity)
    groups["critic"].terms["key_error"] = ObservationTermCfg(
        observations.reference_key_error, scale=5.0
    )
    groups["reference"] = _group("window", observations.reference_window)
    groups["reference_mask"] = _group("available", observations.reference_available)
    groups["critic_reference"] = _group("window", observations.reference_window_and_root)
    groups["critic_reference_mask"] = _group("available", observations.reference_available)


def _group(name: str, term: Callable[..., torch.Tensor]) -> ObservationGroupCfg:
    return ObservationGroupCfg({name: ObservationTermCfg(term)})


def _rewards(robot: RobotCfg) -> dict[str, RewardTermCfg]:
    return {
        "reference_joint_pos": RewardTermCfg(rewards.reference_joint_pos, 2.0, {"sigma": 0.4}),
        "reference_joint_vel": RewardTermCfg(rewards.reference_joint_vel, 0.5, {"sigma": 20.0}),
        "reference_root_pose": RewardTermCfg(rewards.reference_root_pose, 1.0, {"sigma": 0.005}),
        "reference_root_vel": RewardTermCfg(
            rewards.reference_root_vel, 1.5, {"sigma": 0.25, "angular": 0.05}
        ),
        "reference_key_pos": RewardTermCfg(rewards.reference_key_pos, 1.0, {"sigma": 0.02}),
        "tracking_lin_vel": _without_reference(rewards.tracking_lin_vel, 2.5, sigma=0.25),
        "tracking_ang_vel": _without_reference(rewards.tracking_ang_vel, 2.25, sigma=0.25),
        "base_height": _without_reference(rewards.base_height, -10.0, target=robot.base_height),
        "orientation": _without_reference(rewards.orientation, -2.0),
        "posture": _without_reference(rewards.joint_deviation, -0.2),
        "joint_torque": RewardTermCfg(rewards.joint_torque, -5e-5),
        "joint_acc": RewardTermCfg(rewards.joint_acc, -5e-8),
        "action_rate": RewardTermCfg(rewards.action_rate, -0.02),
        "collision": RewardTermCfg(rewards.collision, -0.5),
        "foot_slip": RewardTermCfg(rewards.foot_slip, -0.2),
        "joint_pos_limits": RewardTermCfg(rewards.joint_pos_limits, -1.0),
    }


def _without_reference(
    term: Callable[..., torch.Tensor], weight: float, **params: Any
) -> RewardTermCfg:
    """Make a reward that counts only in episodes without a reference motion."""
    return RewardTermCfg(rewards.without_reference, weight, {"term": term, **params})


def go2_mimic() -> TaskCfg:
    """Make the task of a Go2 that imitates the clips of this package.

    In three of ten episodes it has no reference and follows velocity commands.
    """
    cfg = mimic_task(GO2, MotionCommandCfg())
    cfg.actions["joint_position"] = JointPositionCfg(scale=0.6, around="motion")
    cfg.terminations["reference_lost"].params = {"height": 0.15, "tilt": 0.6, "key_body": 0.2}
    # Without a reference the Go2 trots, with the rewards of Go2-Flat.
    walk = go2_flat().rewards
    for name in ("trot", "foot_air_time"):
        term = walk[name]
        cfg.rewards[name] = _without_reference(term.func, term.weight, **term.params)
    cfg.rewards["base_height"].params["target"] = 0.30
    return cfg


def g1_mimic() -> TaskCfg:
    """Make the task of a G1 with 29 joints that imitates the clips of this package.

    Each episode has a reference.
    """
    motion = MotionCommandCfg(key_bodies=("torso_link", *G1_KEY_BODIES), reference_fraction=1.0)
    cfg = mimic_task(G1_29, motion)
    cfg.actions["joint_position"] = JointPositionCfg(scale=0.5, around="motion")
    # The kernels are wider than a Go2's, because a G1 has more joints and longer limbs.
    cfg.rewards["reference_joint_pos"].params["sigma"] = 1.0
    cfg.rewards["reference_joint_vel"].params["sigma"] = 50.0
    cfg.rewards["reference_key_pos"].params["sigma"] = 0.05
    # Without these a G1 learns to shuffle: it stands safely while its legs pretend to step.
    cfg.terminations["reference_lost"].params["foot_height"] = 0.07
    cfg.rewards["reference_foot_height"] = RewardTermCfg(
        rewards.reference_foot_height, 2.0, {"sigma": 0.003}
    )
    cfg.rewards["joint_torque"].weight = -1e-5
    cfg.rewards["joint_acc"].weight = -2.5e-8
    cfg.rewards["alive"] = RewardTermCfg(rewards.alive, 1.0)
    return cfg


def g1_mimic_training() -> TrainingDefaults:
    """Return the default training options of the task ``Legged/G1-Mimic-v0``."""
    return mimic_training(iterations=850)

"""A quadruped that trots, paces, bounds and pronks at a commanded pace.

Source: Margolis and Agrawal 2022, "Walk These Ways: Tuning Robot Control for Generalization with
Multiplicity of Behavior" (https://arxiv.org/abs/2212.03238).
"""

import copy

from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CurriculumTermCfg, ObservationTermCfg, RewardTermCfg
from legged_envs.mdp import gait_observations, gait_rewards
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.gait_command import GaitCommandCfg
from legged_envs.mdp.gait_curriculum import widen_gait_commands
from legged_envs.robots import GO2
from legged_envs.tasks.training_defaults import TrainingDefaults, quadruped_flat_training
from legged_envs.tasks.velocity import quadruped_flat, reach

REPLACED_REWARDS = (
    "trot",
    "foot_air_time",
    "foot_clearance",
    "base_height",
    "orientation",
    "hip_pos",
    "joint_pos_stand_still",
)
"""Names of the rewards of a velocity task that would contradict the gait command."""

THRESHOLDS = {
    "tracking_lin_vel": 0.7,
    "tracking_ang_vel": 0.6,
    "tracking_contacts_shaped_force": 0.88,
    "tracking_contacts_shaped_vel": 0.85,
    "tracking_foot_clearance": 0.8,
}
"""Shares of the largest sums of these rewards from which the commands of a gait are widened.

Those of the code of Walk These Ways are 0.8, 0.7, 0.9 and 0.9. Without a threshold for clearance,
and with 0.8 for forces, commands widened before robots lifted their feet. The sums also count the
noise of the exploration and the pushes.
"""


def go2_gaits() -> TaskCfg:
    """Make the task of a Unitree Go2 that follows commands of velocity, gait and style."""
    robot = GO2
    cfg = quadruped_flat(robot)
    # With the range of the flat task, legs reach neither the lowest base nor the highest swing.
    scale = tuple(round(angle, 1) for angle in reach(robot))
    cfg.actions["joint_position"] = JointPositionCfg(scale)
    cfg.commands["gait"] = GaitCommandCfg(level=0.2)
    for group in cfg.observations.values():
        terms = {"command": group.terms["command"], **_gait_observations(), **group.terms}
        group.terms = terms
    for name in REPLACED_REWARDS:
        del cfg.rewards[name]
    cfg.rewards.update(_gait_rewards())
    # A bound pitches, and a pronk leaves the ground: both must be cheap. The numbers of the paper
    # are smaller still, −0.02 and −0.001.
    cfg.rewards["lin_vel_z"].weight = -0.1
    cfg.rewards["ang_vel_xy"].weight = -0.01
    thresholds = {"thresholds": copy.copy(THRESHOLDS)}
    cfg.curriculum["gaits"] = CurriculumTermCfg(widen_gait_commands, thresholds)
    return cfg


def _gait_observations() -> dict[str, ObservationTermCfg]:
    return {
        "gait": ObservationTermCfg(gait_observations.gait_offsets, mirror="scalar"),
        "gait_style": ObservationTermCfg(gait_observations.gait_style, mirror="scalar"),
        "clock_sin": ObservationTermCfg(gait_observations.foot_clock_sin, mirror="foot"),
        "clock_cos": ObservationTermCfg(gait_observations.foot_clock_cos, mirror="foot"),
    }


def _gait_rewards() -> dict[str, RewardTermCfg]:
    hips = {"length": 0.38, "width": 0.29}
    # As in the paper, where the contacts have 8 of 9.5, they outweigh the velocities. With smaller
    # weights robots follow slow commands without steps.
    return {
        # A foot of a standing Go2 carries 37 N. With the paper's σ of 100 N², robots learnt only to
        # trot, and stood still for commands to bound or pronk.
        "tracking_contacts_shaped_force": RewardTermCfg(
            gait_rewards.tracking_contacts_shaped_force, 5.0, {"sigma": 800.0}
        ),
        "tracking_contacts_shaped_vel": RewardTermCfg(
            gait_rewards.tracking_contacts_shaped_vel, 3.0, {"sigma": 4.0}
        ),
        "tracking_stance": RewardTermCfg(gait_rewards.tracking_stance, 4.0),
        # An error of 2 cm costs a third in mid-swing, and a fifth in the height of the base.
        "tracking_foot_clearance": RewardTermCfg(
            gait_rewards.tracking_foot_clearance, 4.0, {"sigma": 0.001}
        ),
        "tracking_base_height": RewardTermCfg(
            gait_rewards.tracking_base_height, 2.0, {"sigma": 0.002}
        ),
        "tracking_orientation": RewardTermCfg(
            gait_rewards.tracking_orientation, 1.0, {"sigma": 0.05}
        ),
        "raibert_heuristic": RewardTermCfg(gait_rewards.raibert_heuristic, -15.0, hips),
    }


def go2_gaits_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/Go2-Gaits-v0``."""
    defaults = quadruped_flat_training(iterations=1000)
    # Four gaits with three numbers each are more to remember than one trot.
    defaults.hidden = (256, 128)
    # Noise is needed for longer than for one trot: commands widen as they are followed.
    defaults.init_std = 0.4
    defaults.entropy = 0.002
    # There is no reward of this name.
    defaults.first_trot = 1.0
    return defaults

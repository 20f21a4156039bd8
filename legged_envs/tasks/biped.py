"""Velocity tracking on flat ground for robots that balance: bipeds, and TRON1 on wheels.

Observations, terms and randomization follow LeggedGym-Ex's ``g1``.
"""

import math

from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import EventTermCfg, ObservationTermCfg, RewardTermCfg
from legged_envs.mdp import events, observations, rewards
from legged_envs.mdp.actions import JointPositionCfg, JointVelocityCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.gait_clock import GaitClockCfg
from legged_envs.robots import G1, H1, K1, T1, TRON1_PF, TRON1_SF, TRON1_WF, RobotCfg
from legged_envs.tasks.training_defaults import TrainingDefaults, biped_flat_training
from legged_envs.tasks.velocity import reach, set_starts, sideways_joints, velocity_task

REWARDS_OF_QUADRUPEDS = (
    "foot_air_time",
    "foot_clearance",
    "joint_pos_stand_still",
    "joint_vel_stand_still",
    "foot_contact_stand_still",
)
"""Names of the rewards of :func:`~legged_envs.tasks.velocity.velocity_task` that bipeds do not
have.

A gait clock, which prescribes when each foot stands, replaces them.
"""


def biped(robot: RobotCfg, frames: int = 1, beyond: float = 1.0) -> TaskCfg:
    """Make the velocity task of a biped that steps in time with a gait clock (LeggedGym-Ex ``g1``).

    The G1 tracks vx ±0.8 m/s, vy ±0.4 m/s and ωz ±0.8 rad/s. The robot observes the clock, also
    under the zero command, when it steps on the spot. Joint targets are offsets from a stepping
    motion, so action 0 lifts the feet in turn. For other robots, lengths scale with their height,
    speeds and times with its square root (Froude's law), and torques with their motors.

    Args:
        robot: The biped.
        frames: Number of control steps in an observation.
        beyond: Largest offset of a joint target, as a multiple of the offset at which the joint
            reaches its torque limit. Offsets are at most 0.5 rad.
    """
    size = robot.base_height / G1.base_height
    pace = math.sqrt(size)
    cfg = velocity_task(robot)
    # The stepping motion of the gait clock catches robots that start with some speed.
    set_starts(cfg)
    vx = round(0.8 * pace, 1)
    vy = round(0.4 * pace, 1)
    cfg.commands["velocity"] = VelocityCommandCfg(
        lin_vel_x=(-vx, vx), lin_vel_y=(-vy, vy), ang_vel_z=(-0.8, 0.8), standing_fraction=0.15
    )
    # Strides of 0.6 s: a G1 stands up longer with steps of 0.3 s than with LeggedGym-Ex's of 0.4 s.
    cfg.commands["gait"] = GaitClockCfg(period=round(0.6 * pace, 2), swing=round(0.08 * size, 3))
    scale = tuple(min(0.5, beyond * angle) for angle in reach(robot))
    cfg.actions["joint_position"] = JointPositionCfg(scale=scale, around="gait")
    for group in cfg.observations.values():
        group.terms["clock"] = ObservationTermCfg(
            observations.command, params={"name": "gait"}, mirror="clock"
        )
        group.history = frames
    _set_biped_rewards(cfg, size)
    cfg.events["push"].params["velocity"] = 0.5 * pace
    return cfg


def _set_biped_rewards(cfg: TaskCfg, size: float) -> None:
    """Change the rewards of a velocity task to the rewards of a biped, ``size`` times as high as a
    G1."""
    robot = cfg.robot
    strength = max(robot.torque_limits) / max(G1.torque_limits)
    for name in REWARDS_OF_QUADRUPEDS:
        del cfg.rewards[name]
    cfg.rewards["gait_contact"] = RewardTermCfg(rewards.gait_contact, 3.0)
    cfg.rewards["alive"] = RewardTermCfg(rewards.alive, 0.5)
    cfg.rewards["posture"] = RewardTermCfg(rewards.posture, -1.5)
    weights = {
        "tracking_lin_vel": 4.0,
        "tracking_ang_vel": 2.0,
        "foot_slip": -0.5,
        "action_rate": -0.1,
        "orientation": -5.0,
        "joint_torque": -1e-5 / strength**2,
        "joint_acc": -2.5e-8,
        "base_height": -10.0 / size**2,
    }
    for name, weight in weights.items():
        cfg.rewards[name].weight = weight
    cfg.rewards["base_height"].params["target"] = round(0.97 * robot.base_height, 2)


def in_short_episodes(cfg: TaskCfg) -> TaskCfg:
    """Return a copy of a velocity task with episodes of 5 s instead of 20 s.

    A new command and a push follow 3 to 5 s after the start of each episode. Robots that balance
    fall in their first two seconds or hardly ever, so short episodes train these seconds four times
    as often.
    """
    changes = {
        "episode_length_s": 5.0,
        "commands.velocity.resampling_time_s": (3.0, 5.0),
        "events.push.interval_s": (3.0, 5.0),
    }
    return override(cfg, changes)


def biped_flat(robot: RobotCfg, frames: int = 1, beyond: float = 1.0) -> TaskCfg:
    """Make the task of :func:`biped` with short episodes and a larger reward for turning.

    Args:
        robot: The biped.
        frames: Number of control steps in an observation.
        beyond: Largest offset of a joint target; see :func:`biped`.
    """
    cfg = in_short_episodes(biped(robot, frames, beyond))
    # With half of this weight, a K1 learns late to turn.
    return override(cfg, {"rewards.tracking_ang_vel.weight": 4.0})


def g1_flat() -> TaskCfg:
    """Make the task of the Unitree G1 on flat ground."""
    return biped_flat(G1)


def g1_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/G1-Flat-v0``, as used for the shipped policy."""
    return biped_flat_training(iterations=1500)


def h1_flat() -> TaskCfg:
    """Make the task of the Unitree H1 on flat ground."""
    return biped_flat(H1)


def h1_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/H1-Flat-v0``.

    The shipped policy was not trained with these defaults, but in two stages with symmetric
    networks: see docs/notes/training.md.
    """
    return biped_flat_training(iterations=2200)


def t1_flat() -> TaskCfg:
    """Make the task of the Booster T1 on flat ground."""
    # Its gains are stiff: a hip reaches its torque limit at 0.12 rad, too small a range to walk.
    return biped_flat(T1, beyond=2.0)


def t1_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/T1-Flat-v0``.

    The shipped policy was not trained with these defaults, but in two stages with symmetric
    networks: see docs/notes/training.md.
    """
    return biped_flat_training(iterations=1000)


def k1_flat() -> TaskCfg:
    """Make the task of the Booster K1 on flat ground.

    An observation has the last five control steps, as in LeggedGym-Ex.
    """
    return biped_flat(K1, frames=5)


def k1_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/K1-Flat-v0``, as used for the shipped policy."""
    return biped_flat_training(iterations=620)


def tron1_pf_flat() -> TaskCfg:
    """Make the task of TRON1 with point feet on flat ground.

    An observation has the last five control steps, as in LeggedGym-Ex.
    """
    return biped_flat(TRON1_PF, frames=5)


def tron1_pf_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/Tron1-PF-Flat-v0``, as for the shipped policy."""
    return biped_flat_training(iterations=1200)


def tron1_sf_flat() -> TaskCfg:
    """Make the task of TRON1 with soles on flat ground (LeggedGym-Ex ``tron1_sf``).

    An observation has the last ten control steps. Half of the episodes start in a crouch.
    """
    cfg = biped_flat(TRON1_SF, frames=10)
    pose = {
        "hip_L_Joint": 0.58,
        "knee_L_Joint": 1.35,
        "ankle_L_Joint": -0.8,
        "hip_R_Joint": -0.58,
        "knee_R_Joint": -1.35,
        "ankle_R_Joint": -0.8,
    }
    crouch = {"fraction": 0.5, "joint_pos": pose, "depth": 0.3}
    cfg.events["crouch"] = EventTermCfg(events.crouch, "reset", params=crouch)
    return cfg


def tron1_sf_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/Tron1-SF-Flat-v0``, as for the shipped policy."""
    return biped_flat_training(iterations=1700)


def tron1_wf_flat() -> TaskCfg:
    """Make the task of TRON1 on two wheels, which tracks vx ±1 m/s and ωz ±1 rad/s.

    The legs are position-controlled and balance the robot. The wheels are velocity-controlled.
    """
    cfg = velocity_task(TRON1_WF)
    # The wheels roll under a robot that starts with some speed.
    set_starts(cfg)
    # Wheels cannot roll sideways.
    cfg.commands["velocity"] = VelocityCommandCfg(lin_vel_y=(0.0, 0.0), standing_fraction=0.15)
    legs = ("(abad|hip|knee)_._Joint",)
    wheels = ("wheel_._Joint",)
    cfg.actions = {
        "legs": JointPositionCfg(0.3, legs),
        "wheels": JointVelocityCfg(15.0, wheels),
    }
    for name in ("foot_air_time", "foot_clearance", "joint_vel_stand_still"):
        del cfg.rewards[name]
    cfg.rewards["alive"] = RewardTermCfg(rewards.alive, 0.5)
    hips = {"joints": sideways_joints(TRON1_WF)}
    cfg.rewards["hip_pos"] = RewardTermCfg(rewards.joint_deviation, -1.0, hips)
    cfg.rewards["base_height"].params["target"] = round(0.97 * TRON1_WF.base_height, 2)
    weights = {
        "orientation": -5.0,
        "joint_torque": -2e-5,
        "joint_acc": -2.5e-8,
        "joint_pos_stand_still": -0.2,
        "foot_slip": -0.5,
    }
    for name, weight in weights.items():
        cfg.rewards[name].weight = weight
    cfg.events["push"].params["velocity"] = 0.5
    # With joint offsets of up to 0.2 rad, one robot in thirty starts with a lean and sideways speed
    # at which it inevitably falls over its outer wheel.
    cfg.events["joints"].params["range"] = 0.1
    return in_short_episodes(cfg)


def tron1_wf_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/Tron1-WF-Flat-v0``, as for the shipped policy."""
    return biped_flat_training(iterations=800)

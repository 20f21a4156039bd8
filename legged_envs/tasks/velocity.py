"""Velocity tracking on flat ground: observations, terms and randomisation of LeggedGym-Ex's ``go2`` and ``g1``."""

import copy
import math
from functools import partial

from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import CostTermCfg, EventTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.managers.observation import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import costs, events, observations, rewards, terminations
from legged_envs.mdp.actions import JointPositionCfg, JointVelocityCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.gait_clock import GaitClockCfg
from legged_envs.robots import (
    A1,
    ANYMAL_C,
    G1,
    GO1,
    GO2,
    H1,
    K1,
    T1,
    TRON1_PF,
    TRON1_SF,
    TRON1_WF,
    RobotCfg,
)


def velocity_task(robot: RobotCfg) -> TaskCfg:
    """A velocity task for ``robot``, which a robot's own function then adapts."""
    cfg = TaskCfg(robot, observations=_observations())
    cfg.commands["velocity"] = VelocityCommandCfg(standing_fraction=0.15)
    cfg.rewards = {
        "tracking_lin_vel": RewardTermCfg(rewards.tracking_lin_vel, 2.5, {"sigma": 0.25}),
        "tracking_ang_vel": RewardTermCfg(rewards.tracking_ang_vel, 2.25, {"sigma": 0.25}),
        "lin_vel_z": RewardTermCfg(rewards.lin_vel_z, -1.0),
        "ang_vel_xy": RewardTermCfg(rewards.ang_vel_xy, -0.05),
        "orientation": RewardTermCfg(rewards.orientation, -2.0),
        "base_height": RewardTermCfg(rewards.base_height, -10.0, {"target": robot.base_height}),
        "torques": RewardTermCfg(rewards.torques, -1e-4),
        "dof_acc": RewardTermCfg(rewards.dof_acc, -1e-7),
        "action_rate": RewardTermCfg(rewards.action_rate, -0.02),
        "action_smoothness": RewardTermCfg(rewards.action_smoothness, -0.005),
        "collision": RewardTermCfg(rewards.collision, -0.5),
        "feet_air_time": RewardTermCfg(rewards.feet_air_time, 3.0, {"target": 0.2, "longest": 0.2}),
        "foot_clearance": RewardTermCfg(rewards.foot_clearance, -10.0, {"target": 0.06}),
        "feet_slip": RewardTermCfg(rewards.feet_slip, -0.2),
        "dof_pos_stand_still": RewardTermCfg(rewards.dof_pos_stand_still, -1.0),
        "dof_vel_stand_still": RewardTermCfg(rewards.dof_vel_stand_still, -0.02),
        "feet_contact_stand_still": RewardTermCfg(rewards.feet_contact_stand_still, 1.5),
        "dof_pos_limits": RewardTermCfg(rewards.dof_pos_limits, -1.0),
    }
    cfg.costs = {
        "joint_position": CostTermCfg(
            costs.joint_position, limit=0.025, params={"soft_limit": 0.95}
        ),
        "joint_velocity": CostTermCfg(
            costs.joint_velocity, limit=0.025, params={"soft_limit": 0.8}
        ),
        "joint_torque": CostTermCfg(costs.joint_torque, limit=0.025, params={"soft_limit": 0.8}),
        "body_contact": CostTermCfg(costs.body_contact, limit=0.025),
        "base_orientation": CostTermCfg(costs.base_orientation, limit=0.025),
        "foot_slip": CostTermCfg(costs.foot_slip, limit=0.05),
    }
    cfg.terminations = {
        "fallen": TerminationTermCfg(terminations.fallen, grace_s=0.1),
        "illegal_contact": TerminationTermCfg(terminations.illegal_contact, grace_s=0.1),
    }
    cfg.events = {
        "base_mass": EventTermCfg(
            events.randomize_base_mass, "startup", params={"range": (-1.0, 2.0)}
        ),
        "base_com": EventTermCfg(
            events.randomize_base_com, "startup", params={"range": (-0.03, 0.03)}
        ),
        "friction": EventTermCfg(
            events.randomize_friction, "reset", purpose="randomise", params={"range": (0.5, 1.25)}
        ),
        "gains": EventTermCfg(
            events.randomize_gains, "reset", purpose="randomise", params={"range": (0.9, 1.1)}
        ),
        "root": EventTermCfg(events.reset_root, "reset", params={"velocity": 0.3}),
        "joints": EventTermCfg(events.reset_joints, "reset", params={"range": 0.2}),
        "push": EventTermCfg(
            events.push, "interval", interval_s=(8.0, 12.0), params={"velocity": 0.7}
        ),
    }
    return cfg


def _observations() -> dict[str, ObservationGroupCfg]:
    """LeggedGym-Ex's order, noise and scales; the critic sees the same without noise, and what is privileged."""
    policy = {
        "command": ObservationTermCfg(observations.command, mirror="velocity_command"),
        "gravity": ObservationTermCfg(observations.projected_gravity, noise=0.05, mirror="vector"),
        "ang_vel": ObservationTermCfg(
            observations.base_ang_vel, noise=0.2, scale=0.25, mirror="pseudovector"
        ),
        "joint_pos": ObservationTermCfg(observations.joint_pos, noise=0.01, mirror="joint"),
        "joint_vel": ObservationTermCfg(
            observations.joint_vel, noise=0.5, scale=0.05, mirror="joint"
        ),
        "action": ObservationTermCfg(observations.last_action, mirror="action"),
    }
    privileged = {
        "lin_vel": ObservationTermCfg(observations.base_lin_vel, mirror="vector"),
        "height": ObservationTermCfg(observations.base_height, mirror="scalar"),
        "foot_contact": ObservationTermCfg(observations.foot_contact, mirror="foot"),
        "foot_height": ObservationTermCfg(observations.foot_height, scale=5.0, mirror="foot"),
        "foot_air_time": ObservationTermCfg(observations.foot_air_time, mirror="foot"),
        "friction": ObservationTermCfg(observations.friction, mirror="scalar"),
        "base_mass": ObservationTermCfg(observations.base_mass_offset, mirror="scalar"),
        "base_com": ObservationTermCfg(observations.base_com_offset, scale=20.0, mirror="vector"),
        "gains": ObservationTermCfg(observations.gain_scale, mirror="scalar"),
    }
    return {
        "policy": ObservationGroupCfg(policy, noisy=True),
        "critic": ObservationGroupCfg(
            {**copy.deepcopy(policy), **privileged}
        ),  # each group has terms of its own
    }


def _sideways(robot: RobotCfg) -> tuple[int, ...]:
    """Joints that turn the other way in the mirror, which do not swing a leg forwards."""
    return tuple(i for i, (_, sign) in enumerate(robot.mirror) if sign < 0.0)


def reach(robot: RobotCfg) -> list[float]:
    """How far off the target of each joint must be for all its torque, rad."""
    return [
        torque / kp if kp else 0.0 for torque, kp in zip(robot.torque_limits, robot.kp, strict=True)
    ]


def quadruped_flat(robot: RobotCfg) -> TaskCfg:
    """A quadruped tracks vx ±1 m/s, vy ±0.5 m/s, ωz ±1 rad/s at a trot. Lengths, times and torques go with its size;
    actions reach until a joint gives all its torque, at least 0.5 rad. ValueError if the ``RobotCfg`` has no
    ``diagonals``."""
    if len(robot.diagonals) != 2:
        how = "write the two pairs of feet that swing together in a trot, or take velocity_task"
        raise ValueError(f"RobotCfg {robot.name!r}: diagonals is {robot.diagonals}; {how}")
    cfg, size = velocity_task(robot), robot.base_height / GO2.base_height
    cfg.actions["joint_position"] = JointPositionCfg(scale=max(0.5, round(min(reach(robot)), 1)))
    diagonals = tuple(tuple(map(robot.foot_names.index, pair)) for pair in robot.diagonals)
    step = round(0.16 * math.sqrt(size), 2)
    cfg.rewards["trot"] = RewardTermCfg(rewards.trot, 1.5, {"pairs": diagonals, "phase_time": step})
    cfg.rewards["hip_pos"] = RewardTermCfg(
        rewards.dof_close_to_default, -0.3, {"joints": _sideways(robot)}
    )
    cfg.rewards["base_height"].params["target"] = round(0.9 * robot.base_height, 2)
    cfg.rewards["foot_clearance"].params["target"] = round(0.06 * size, 2)
    cfg.rewards["torques"].weight *= (GO2.torque_limits[0] / robot.torque_limits[0]) ** 2
    return cfg


go2_flat, go1_flat, a1_flat, anymal_c_flat = (
    partial(quadruped_flat, robot) for robot in (GO2, GO1, A1, ANYMAL_C)
)


def biped(robot: RobotCfg, frames: int = 1, beyond: float = 1.0) -> TaskCfg:
    """A biped tracks velocities, the G1 vx ±0.8 m/s, vy ±0.4 m/s, ωz ±0.8 rad/s, walking at the pace of a clock, which
    it sees, also on the spot when it is to stand still (LeggedGym-Ex ``g1``). Action 0 lifts the feet in turn. Lengths
    go with its height, speeds and times with the root of that (Froude's law), torques with what its motors give. Steps
    of 0.3 s hold it better than LeggedGym-Ex's of 0.4 s. It sees the last ``frames`` steps. Targets reach ``beyond``
    times what takes all of a joint's torque, at most 0.5 rad."""
    cfg, size = velocity_task(robot), robot.base_height / G1.base_height
    pace, strength = math.sqrt(size), max(robot.torque_limits) / max(G1.torque_limits)
    vx, vy = round(0.8 * pace, 1), round(0.4 * pace, 1)
    cfg.commands["velocity"] = VelocityCommandCfg(
        (-vx, vx), (-vy, vy), (-0.8, 0.8), standing_fraction=0.15
    )
    cfg.commands["gait"] = GaitClockCfg(period=round(0.6 * pace, 2), swing=round(0.08 * size, 3))
    scale = tuple(min(0.5, beyond * angle) for angle in reach(robot))
    cfg.actions["joint_position"] = JointPositionCfg(scale=scale, around="gait")
    for group in cfg.observations.values():
        group.terms["clock"] = ObservationTermCfg(
            observations.command, params={"name": "gait"}, mirror="clock"
        )
        group.history = frames
    for name in (
        "feet_air_time",
        "foot_clearance",
        *(name for name in cfg.rewards if name.endswith("stand_still")),
    ):
        del cfg.rewards[name]
    cfg.rewards["gait_contact"] = RewardTermCfg(rewards.gait_contact, 3.0)
    cfg.rewards["alive"] = RewardTermCfg(rewards.alive, 0.5)
    cfg.rewards["posture"] = RewardTermCfg(rewards.posture, -1.5)
    weights = {
        "tracking_lin_vel": 4.0,
        "tracking_ang_vel": 2.0,
        "feet_slip": -0.5,
        "action_rate": -0.1,
    }
    weights |= {
        "orientation": -5.0,
        "torques": -1e-5 / strength**2,
        "dof_acc": -2.5e-8,
        "base_height": -10.0 / size**2,
    }
    for name, weight in weights.items():
        cfg.rewards[name].weight = weight
    cfg.rewards["base_height"].params["target"] = round(0.97 * robot.base_height, 2)
    cfg.events["push"].params["velocity"] = 0.5 * pace
    return cfg


def in_short_episodes(cfg: TaskCfg) -> TaskCfg:
    """The task in episodes of 5 s, each with a new command and a push: robots that balance fall in their first two
    seconds or hardly ever, and a training then sees four times as many of these."""
    times = {
        "commands.velocity.resampling_time_s": (3.0, 5.0),
        "events.push.interval_s": (3.0, 5.0),
    }
    return override(cfg, {"episode_length_s": 5.0, **times})


def biped_flat(robot: RobotCfg, frames: int = 1, beyond: float = 1.0) -> TaskCfg:
    """:func:`biped` in short episodes, turns as heavy as speeds: with half of that a K1 turns late."""
    return override(
        in_short_episodes(biped(robot, frames, beyond)), {"rewards.tracking_ang_vel.weight": 4.0}
    )


g1_flat, h1_flat = (partial(biped_flat, robot) for robot in (G1, H1))
t1_flat = partial(
    biped_flat, T1, beyond=2.0
)  # its gains are stiff: all the torque of a hip is 0.12 rad
k1_flat, tron1_pf_flat = (
    partial(biped_flat, robot, frames=5) for robot in (K1, TRON1_PF)
)  # as LeggedGym-Ex


def tron1_sf_flat() -> TaskCfg:
    """TRON1 on soles sees ten steps, and half of its episodes begin in a crouch (LeggedGym-Ex ``tron1_sf``)."""
    cfg = biped_flat(TRON1_SF, frames=10)
    pose = {
        f"{joint}_Joint": angle
        for joint, angle in {"hip_L": 0.58, "knee_L": 1.35, "ankle_L": -0.8}.items()
    }
    pose |= {
        f"{joint}_Joint": angle
        for joint, angle in {"hip_R": -0.58, "knee_R": -1.35, "ankle_R": -0.8}.items()
    }
    crouch = {"fraction": 0.5, "joint_pos": pose, "depth": 0.3}
    cfg.events["crouch"] = EventTermCfg(events.crouch, "reset", params=crouch)
    return cfg


def tron1_wf_flat() -> TaskCfg:
    """TRON1 drives on its wheels: vx ±1 m/s, ωz ±1 rad/s, its legs balance it. It cannot step aside, so its joints
    begin within 0.1 rad of the default pose: leaning by 0.2 rad, one in thirty begins with a sideways speed at which
    it falls over its outer wheel."""
    cfg = velocity_task(TRON1_WF)
    cfg.commands["velocity"] = VelocityCommandCfg(lin_vel_y=(0.0, 0.0), standing_fraction=0.15)
    legs, wheels = ("(abad|hip|knee)_._Joint",), ("wheel_._Joint",)
    cfg.actions = {"legs": JointPositionCfg(0.3, legs), "wheels": JointVelocityCfg(15.0, wheels)}
    for name in ("feet_air_time", "foot_clearance", "dof_vel_stand_still"):
        del cfg.rewards[name]
    cfg.rewards["alive"] = RewardTermCfg(rewards.alive, 0.5)
    cfg.rewards["hip_pos"] = RewardTermCfg(
        rewards.dof_close_to_default, -1.0, {"joints": _sideways(TRON1_WF)}
    )
    cfg.rewards["base_height"].params["target"] = round(0.97 * TRON1_WF.base_height, 2)
    terms = {
        "orientation": -5.0,
        "torques": -2e-5,
        "dof_acc": -2.5e-8,
        "dof_pos_stand_still": -0.2,
        "feet_slip": -0.5,
    }
    for name, weight in terms.items():
        cfg.rewards[name].weight = weight
    cfg.events["push"].params["velocity"] = 0.5
    cfg.events["joints"].params["range"] = 0.1
    return in_short_episodes(cfg)

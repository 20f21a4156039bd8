"""Every term against its formula in float64 numpy, on states of a rollout and on states that are forced to extremes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    TerminationTermCfg,
)
from legged_envs.mdp import costs, events, observations, rewards, terminations
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.gait_clock import GaitClockCfg
from legged_envs.mdp.gait_command import GaitCommand
from legged_envs.mdp.symmetry import Mirror
from legged_envs.rng import RandomStreams
from legged_envs.robots import G1, GO2, TRON1_SF, RobotCfg
from legged_envs.robots.reading.kinematics import leg_lift_angles
from legged_envs.robots.robot import counterpart
from legged_envs.sim import RobotState
from legged_envs.tasks import TASKS as registered_tasks
from legged_envs.training.learner.mirror import MirroredHalf

TASKS = {"go2": "Legged/Go2-Flat-v0", "g1": "Legged/G1-Flat-v0"}
ROBOTS = pytest.mark.parametrize("robot", [GO2, G1], ids=lambda robot: robot.name)
NUM_ENVS = 16
DT = 0.02

FEET = {name: i for i, name in enumerate(GO2.foot_names)}
DIAGONALS = ((FEET["FR_foot"], FEET["RL_foot"]), (FEET["FL_foot"], FEET["RR_foot"]))
HIPS = tuple(i for i, name in enumerate(GO2.joint_names) if "hip" in name)
TROT_OFFSETS = np.array([0.0 if name in ("FR_foot", "RL_foot") else 0.5 for name in GO2.foot_names])
Q0 = np.array(GO2.default_joint_pos)


def rotation(quat: np.ndarray) -> np.ndarray:
    """Rotation matrices, body to world, of unit quaternions (w, x, y, z). Shape: (n, 4) → (n, 3, 3)."""
    w, x, y, z = quat.T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.array(rows).transpose(2, 0, 1)


def raw(
    env: CoreVectorEnv,
    actions: list[np.ndarray],
    previous_joint_vel: np.ndarray,
    **remembered: np.ndarray,
) -> SimpleNamespace:
    """Inputs of the oracles below: quantities of the simulation, and values of earlier steps that this file records."""
    sim = env.sim

    def double(name: str) -> np.ndarray:
        return getattr(sim, name).double().numpy()

    to_base = rotation(double("root_quat_w")).transpose(0, 2, 1)
    contact_force = np.linalg.norm(double("contact_force_w"), axis=-1)
    models = [sim.batch.get_model(i) for i in range(env.num_envs)]
    return SimpleNamespace(
        **remembered,
        command=env.commands["velocity"].double().numpy(),
        phase=env.commands.terms["gait"].state_dict()["phase"].double().numpy(),
        height=double("root_pos_w")[:, 2],
        gravity=to_base @ np.array([0.0, 0.0, -1.0]),
        lin_vel=np.einsum("nij,nj->ni", to_base, double("root_lin_vel_w")),
        ang_vel=double("root_ang_vel_b"),
        joint_pos=double("joint_pos"),
        joint_vel=double("joint_vel"),
        previous_joint_vel=previous_joint_vel,
        torque=double("joint_torque"),
        actions=actions[:-4:-1],
        force=dict(zip(sim.body_names, contact_force.T, strict=True)),
        contact=contact_force[:, [sim.body_names.index(name) for name in GO2.foot_names]] > 1.0,
        foot_height=double("foot_pos_w")[..., 2],
        foot_pos=double("foot_pos_w"),
        foot_speed=np.linalg.norm(double("foot_lin_vel_w")[..., :2], axis=-1),
        foot_vel_z=double("foot_lin_vel_w")[..., 2],
        landed=env.robot.foot_landed.numpy().copy(),
        air_time=env.robot.foot_air_time.double().numpy(),
        contact_time=env.robot.foot_contact_time.double().numpy(),
        friction=np.array([model.geom("FR_foot_collision").friction[0] for model in models]),
        base_mass=np.array([model.body("base").mass[0] for model in models])
        - sim.model.body("base").mass[0],
        base_com=np.array([model.body("base").ipos for model in models])
        - sim.model.body("base").ipos,
        kp=np.array([model.actuator_gainprm[0, 0] for model in models]),
        kd=np.array([-model.actuator_biasprm[0, 2] for model in models]),
    )


def moving(s: SimpleNamespace) -> np.ndarray:
    return np.linalg.norm(s.command, axis=1) > 0.1


def outside(joint_pos: np.ndarray, fraction: float) -> np.ndarray:
    """How far joints are outside of ``fraction`` of Go2's ranges, about the middle, rad."""
    thigh = {"F": (-1.5708, 3.4907), "R": (-0.5236, 4.5379)}
    ranges = [
        limits
        for leg in ("FR", "FL", "RR", "RL")
        for limits in ((-1.0472, 1.0472), thigh[leg[0]], (-2.7227, -0.83776))
    ]
    low, high = np.array(ranges).T
    middle, half = (low + high) / 2, fraction * (high - low) / 2
    return np.maximum(0.0, np.abs(joint_pos - middle) - half)


def touching(s: SimpleNamespace, bodies: tuple[str, ...], threshold: float) -> np.ndarray:
    return np.array([s.force[body] > threshold for body in bodies])


def mode_time(s: SimpleNamespace) -> np.ndarray:
    """The shortest time for which a foot has been standing or swinging, s."""
    return np.where(s.contact, s.contact_time, s.air_time).min(1)


def trot(s: SimpleNamespace) -> np.ndarray:
    fr, fl, rr, rl = (s.contact[:, FEET[f"{leg}_foot"]] for leg in ("FR", "FL", "RR", "RL"))
    unhurried = (1 + np.minimum(mode_time(s) / 0.06, 1.0)) / 2
    return (0.5 * (fr == rl) + 0.5 * (fl == rr)) * (fr != fl) * unhurried * moving(s)


def foot_landing_vel(s):
    lands = (s.foot_height - GO2.foot_radius < 0.05) & ~s.contact & (s.foot_vel_z < 0.0)
    return (np.where(lands, s.foot_vel_z, 0.0) ** 2).sum(1)


def no_progress(s: SimpleNamespace) -> np.ndarray:
    speed = np.linalg.norm(s.command[:, :2], axis=1)
    along = (s.command[:, :2] * s.lin_vel[:, :2]).sum(1) / np.maximum(speed, 1e-9)
    return (along < 0.6 * speed) & (speed > 0.1)


def single_stance_time(s: SimpleNamespace) -> np.ndarray:
    return np.minimum(mode_time(s), 0.4) * (s.contact.sum(1) == 1) * moving(s)


def energy(s: SimpleNamespace) -> np.ndarray:
    """Mechanical power of all joints, W."""
    return np.abs(s.torque * s.joint_vel).sum(1)


def touchdown_speed(s: SimpleNamespace) -> np.ndarray:
    lands = (s.foot_height - GO2.foot_radius < 0.05) & ~s.contact
    return np.maximum(0.0, np.where(lands, -s.foot_vel_z, 0.0).max(1) - 0.1)


def foot_clearance_cost(s: SimpleNamespace) -> np.ndarray:
    missing = np.maximum(0.0, 0.08 + GO2.foot_radius - s.foot_height)
    return (missing * s.foot_speed * ~s.contact).mean(1)


def leg_asymmetry(s: SimpleNamespace) -> np.ndarray:
    """Legs are FR, FL, RR and RL; a hip turns outwards in opposite directions on both sides."""
    front_right, front_left, rear_right, rear_left = np.split(s.joint_pos - Q0, 4, axis=1)
    outwards = np.array([-1.0, 1.0, 1.0])
    front = np.abs(front_right - outwards * front_left)
    rear = np.abs(rear_right - outwards * rear_left)
    # Each of the two joints of a pair counts.
    return np.maximum(0.0, 2.0 * np.concatenate((front, rear), axis=1).sum(1) / 12 - 0.1)


def nearest_feet(s: SimpleNamespace) -> np.ndarray:
    """Smallest distance of two feet, m."""
    apart = []
    for first in range(4):
        for second in range(first):
            between = s.foot_pos[:, first] - s.foot_pos[:, second]
            apart.append(np.sqrt((between**2).sum(1)))
    return np.min(apart, axis=0)


def largest_foot_force(s: SimpleNamespace) -> np.ndarray:
    """Largest contact force on a foot, N."""
    return np.max([s.force[name] for name in GO2.foot_names], axis=0)


def tilt(s: SimpleNamespace) -> np.ndarray:
    """Angle of the base's z axis to the vertical, rad."""
    return np.arccos(np.clip(-s.gravity[:, 2], -1, 1))


Oracle = tuple[dict[str, Any], Callable[[SimpleNamespace], np.ndarray]]

THIGHS_AND_CALVES = tuple(
    f"{leg}_{link}" for leg in ("FR", "FL", "RR", "RL") for link in ("thigh", "calf")
)
TORQUE_LIMITS = np.array((23.7, 23.7, 45.43) * 4)
GO2_WEIGHT = 9.81 * 15.206  # mass of the model, kg
VELOCITY_LIMITS = np.array((30.1, 30.1, 15.7) * 4)

REWARDS: dict[str, Oracle] = {
    "tracking_lin_vel": (
        {"sigma": 0.3},
        lambda s: np.exp(-((s.command[:, :2] - s.lin_vel[:, :2]) ** 2).sum(1) / 0.3),
    ),
    "tracking_ang_vel": (
        {"sigma": 0.2},
        lambda s: np.exp(-((s.command[:, 2] - s.ang_vel[:, 2]) ** 2) / 0.2),
    ),
    "no_progress": ({"share": 0.6}, no_progress),
    "alive": ({}, lambda s: np.ones(NUM_ENVS)),
    "lin_vel_z": ({}, lambda s: s.lin_vel[:, 2] ** 2),
    "ang_vel_xy": ({}, lambda s: s.ang_vel[:, 0] ** 2 + s.ang_vel[:, 1] ** 2),
    "orientation": ({}, lambda s: s.gravity[:, 0] ** 2 + s.gravity[:, 1] ** 2),
    "base_height": ({"target": 0.31}, lambda s: (s.height - 0.31) ** 2),
    "joint_torque": ({}, lambda s: (s.torque**2).sum(1)),
    "torque_limits": (
        {"soft_limit": 0.3},
        lambda s: np.maximum(0.0, np.abs(s.torque) - 0.3 * TORQUE_LIMITS).sum(1),
    ),
    "termination": ({}, lambda s: s.terminated),
    "joint_power": ({}, lambda s: np.abs(s.torque * s.joint_vel).sum(1)),
    "joint_vel": ({}, lambda s: (s.joint_vel**2).sum(1)),
    "joint_acc": ({}, lambda s: (((s.joint_vel - s.previous_joint_vel) / DT) ** 2).sum(1)),
    "action_rate": ({}, lambda s: ((s.actions[0] - s.actions[1]) ** 2).sum(1)),
    "action_smoothness": (
        {},
        lambda s: ((s.actions[0] - 2 * s.actions[1] + s.actions[2]) ** 2).sum(1),
    ),
    "collision": ({}, lambda s: touching(s, THIGHS_AND_CALVES, 0.1).sum(0)),
    "joint_pos_limits": ({"soft_limit": 0.7}, lambda s: outside(s.joint_pos, 0.7).sum(1)),
    "foot_air_time": (
        {"target": 0.1, "longest": 0.15},
        lambda s: ((np.minimum(s.air_time, 0.15) - 0.1) * s.landed).sum(1) * moving(s),
    ),
    "single_stance_time": ({"limit": 0.4}, single_stance_time),
    "foot_clearance": (
        {"target": 0.06},
        lambda s: (s.foot_speed * (s.foot_height - GO2.foot_radius - 0.06) ** 2).sum(1),
    ),
    "foot_landing_vel": ({"threshold": 0.05}, foot_landing_vel),
    "foot_slip": ({}, lambda s: (s.foot_speed**2 * s.contact).sum(1)),
    "gait_contact": (
        {},
        lambda s: (s.contact == ((s.phase[:, None] + TROT_OFFSETS) % 1.0 < 0.55)).sum(1),
    ),
    "trot": ({"pairs": DIAGONALS, "phase_time": 0.06}, trot),
    "joint_pos_stand_still": ({}, lambda s: ((s.joint_pos - Q0) ** 2).sum(1) * ~moving(s)),
    "joint_vel_stand_still": ({}, lambda s: np.abs(s.joint_vel).sum(1) * ~moving(s)),
    "foot_contact_stand_still": ({}, lambda s: s.contact.all(1) & ~moving(s)),
    "posture": (
        {},
        lambda s: ((s.joint_pos - Q0)[:, 0::3] ** 2).sum(1),
    ),  # thighs and calves lift the feet
    "joint_deviation": ({"joints": HIPS}, lambda s: ((s.joint_pos - Q0)[:, 0::3] ** 2).sum(1)),
}

COSTS: dict[str, Oracle] = {
    "joint_position": ({"soft_limit": 0.8}, lambda s: (outside(s.joint_pos, 0.8) > 0).mean(1)),
    "joint_velocity": (
        {"soft_limit": 0.5},
        lambda s: (np.abs(s.joint_vel) > 0.5 * VELOCITY_LIMITS).mean(1),
    ),
    "joint_torque": (
        {"soft_limit": 0.7},
        lambda s: (np.abs(s.torque) > 0.7 * TORQUE_LIMITS).mean(1),
    ),
    "torque_limits": (
        {"soft_limit": 0.7},
        lambda s: np.maximum(0.0, np.abs(s.torque) - 0.7 * TORQUE_LIMITS).sum(1),
    ),
    "body_contact": ({}, lambda s: touching(s, ("base", *THIGHS_AND_CALVES), 1.0).any(0)),
    "base_orientation": ({"max_tilt": 0.35}, lambda s: tilt(s) > 0.35),
    "foot_slip": (
        {"max_speed": 0.2},
        lambda s: (np.maximum(0.0, s.foot_speed - 0.2) * s.contact).mean(1),
    ),
    "energy": ({"allowed": 60.0}, lambda s: np.maximum(0.0, energy(s) - 60.0)),
    "energy_per_metre": (
        {"allowed": 150.0, "lowest_speed": 0.2},
        lambda s: np.maximum(
            0.0, energy(s) / np.maximum(np.linalg.norm(s.lin_vel[:, :2], axis=1), 0.2) - 150.0
        ),
    ),
    "foot_contact_force": (
        {"allowed": 0.5},
        lambda s: np.maximum(0.0, largest_foot_force(s) / GO2_WEIGHT - 0.5),
    ),
    "touchdown_speed": ({"allowed": 0.1, "threshold": 0.05}, touchdown_speed),
    "joint_acceleration": (
        {"max_acceleration": 300.0},
        lambda s: (np.abs(s.joint_vel - s.previous_joint_vel) / DT > 300.0).mean(1),
    ),
    "action_rate": (
        {"max_rate": 30.0},
        lambda s: (np.abs(s.actions[0] - s.actions[1]) / DT > 30.0).mean(1),
    ),
    "foot_clearance": ({"target": 0.08}, foot_clearance_cost),
    "base_height": (
        {"lowest": 0.2, "highest": 0.33},
        lambda s: (s.height < 0.2) | (s.height > 0.33),
    ),
    "symmetry": ({"allowed": 0.1}, leg_asymmetry),
    "self_collision": ({"distance": 0.2}, lambda s: nearest_feet(s) < 0.2),
    "com_frame": (
        {"height": (0.2, 0.4), "max_tilt": 0.5},
        lambda s: (s.height < 0.2) | (s.height > 0.4) | (tilt(s) > 0.5),
    ),
}

TERMINATIONS: dict[str, Oracle] = {
    "illegal_contact": ({}, lambda s: s.force["base"] > 10.0),
    "fallen": ({}, lambda s: s.gravity[:, 2] > -0.1),
}

OBSERVATIONS: dict[str, Oracle] = {
    "command": ({}, lambda s: s.command),
    "projected_gravity": ({}, lambda s: s.gravity),
    "base_ang_vel": ({}, lambda s: s.ang_vel),
    "base_lin_vel": ({}, lambda s: s.lin_vel),
    "joint_pos": ({}, lambda s: s.joint_pos - Q0),
    "joint_vel": ({}, lambda s: s.joint_vel),
    "last_action": ({}, lambda s: s.actions[0]),
    "before_previous_action": ({}, lambda s: s.actions[2]),
    "last_push_velocity": ({}, lambda s: s.pushed),
    "base_height": ({}, lambda s: s.height[:, None]),
    "foot_contact": ({}, lambda s: s.contact),
    "foot_height": ({}, lambda s: s.foot_height),
    "foot_air_time": ({}, lambda s: s.air_time),
    "friction": ({}, lambda s: s.friction[:, None]),
    "base_mass_offset": ({}, lambda s: s.base_mass[:, None]),
    "base_com_offset": ({}, lambda s: s.base_com),
    "gain_scale": ({}, lambda s: np.stack((s.kp / 40.0, s.kd / 1.0), axis=1)),
}

ORACLES: dict[ModuleType, dict[str, Oracle]] = {
    rewards: REWARDS,
    costs: COSTS,
    terminations: TERMINATIONS,
    observations: OBSERVATIONS,
}
OF_THE_GROUND = {
    "height_scan",
    "foot_scan",
    "foot_ground_normal",
    "foot_edge_distance",
    "stumble",
    "left_terrain",
}
OF_THE_GROUND |= {"goal_position", "goal_heading", "stall", "move_in_direction", "goal_stand_still"}
ALL_TERMS = [
    pytest.param(module, name, id=f"{module.__name__.rsplit('.', 1)[1]}.{name}")
    for module, terms in ORACLES.items()
    for name in terms
]


def term_functions(module: ModuleType) -> set[str]:
    return {
        name
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }


@pytest.fixture(scope="module")
def rollout() -> list[tuple[SimpleNamespace, dict[tuple[ModuleType, str], np.ndarray]]]:
    """(raw quantities, value of every term) of each step: robots are dropped, flail, and are thrown about."""
    cfg = make_task_cfg(TASKS["go2"])
    del cfg.events["push"]
    cfg.events["root"] = EventTermCfg(
        events.reset_root, "reset", params={"height": (0.0, 0.2), "velocity": 0.5}
    )
    cfg.events["joints"] = EventTermCfg(
        events.reset_joints, "reset", params={"range": 0.4, "velocity": 2.0}
    )
    cfg.commands["velocity"] = VelocityCommandCfg(standing_fraction=0.4)
    cfg.commands["gait"] = GaitClockCfg(offsets=tuple(TROT_OFFSETS.tolist()), swing=0.05)
    env = make_core(cfg, NUM_ENVS, array="torch", observations="dict")
    env.reset(seed=3)
    rng = np.random.default_rng(1)
    actions = [np.zeros((NUM_ENVS, 12))] * 3
    joint_vel = env.sim.joint_vel.double().numpy()
    pushed = np.zeros((NUM_ENVS, 3))
    snapshots = []
    for step in range(80):
        if step == 70:
            _throw(env, rng)
        action = (1.3 * rng.uniform(-1.0, 1.0, (NUM_ENVS, 12))).astype(np.float32)
        if step > 40:
            action[:] = 0.0
        terminated = env.step(torch.from_numpy(action))[2].numpy().copy()
        if step % 30 == 10:
            rows = rng.choice(NUM_ENVS, 5, replace=False)
            pushed = pushed.copy()
            pushed[rows] = rng.uniform(-1.0, 1.0, (5, 3)).astype(np.float32)
            env.robot.push(
                torch.from_numpy(rows), torch.from_numpy(pushed[rows].astype(np.float32))
            )
        actions.append(np.clip(action.astype(np.float64), -1.0, 1.0))
        values = {
            (module, name): getattr(module, name)(env, **params).double().numpy()
            for module, terms in ORACLES.items()
            for name, (params, _) in terms.items()
        }
        snapshots.append(
            (raw(env, actions, joint_vel, terminated=terminated, pushed=pushed), values)
        )
        joint_vel = env.sim.joint_vel.double().numpy()
    return snapshots


def _throw(env: CoreVectorEnv, rng: np.random.Generator) -> None:
    """Give every robot a random orientation, joints beyond their limits and fast."""
    n = env.num_envs
    pos = np.concatenate([rng.uniform(-1, 1, (n, 2)), rng.uniform(0.1, 0.6, (n, 1))], axis=1)
    quat = rng.normal(size=(n, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array.astype(np.float32))

    ids = torch.arange(n)
    env.sim.write_root_state(
        ids,
        tensor(pos),
        tensor(quat),
        tensor(rng.uniform(-2, 2, (n, 3))),
        tensor(rng.uniform(-5, 5, (n, 3))),
    )
    env.sim.write_joint_state(
        ids, tensor(Q0 + rng.normal(size=(n, 12))), tensor(20.0 * rng.normal(size=(n, 12)))
    )


# --- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ORACLES, ids=lambda module: module.__name__.rsplit(".", 1)[1])
def test_every_term_has_an_oracle(module):
    """Terms of mimic tasks, with ``reference`` in their names, are tested in test_mimic.py; terms of the ground and of goals in test_ground.py."""
    own = {
        name
        for name in term_functions(module)
        if "reference" not in name and name not in OF_THE_GROUND
    }
    assert own == set(ORACLES[module])
    in_ground = (Path(__file__).parents[1] / "terrains" / "test_ground.py").read_text()
    assert all(name in in_ground for name in OF_THE_GROUND)


@pytest.mark.parametrize("module", ORACLES, ids=lambda module: module.__name__.rsplit(".", 1)[1])
def test_every_public_function_is_a_term_and_helpers_are_private(module):
    for name in term_functions(module):
        assert next(iter(inspect.signature(getattr(module, name)).parameters)) == "env", name


@pytest.mark.parametrize(("module", "name"), ALL_TERMS)
def test_term_is_its_formula(module, name, rollout):
    oracle = ORACLES[module][name][1]
    actual = np.array([values[module, name] for _, values in rollout])
    expected = np.array([oracle(state) for state, _ in rollout]).astype(np.float64)
    assert actual.shape == expected.shape
    scale = max(np.abs(expected).max(), 1e-3)
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5 * scale)
    assert np.abs(expected).max() > 1e-3, "the rollout does not exercise the term"
    if name != "alive":
        assert np.ptp(expected) > 1e-3, "the rollout does not exercise the term"


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_never_negative_and_exactly_zero_when_satisfied(name, rollout):
    values = np.array([values[costs, name] for _, values in rollout])
    satisfied = np.array([COSTS[name][1](state) for state, _ in rollout]) == 0.0
    assert (values >= 0.0).all() and (values > 0.0).any()
    assert satisfied.any() and (values[satisfied] == 0.0).all()


def test_self_collision_is_of_named_bodies_and_needs_two():
    env = make_core(make_task_cfg(TASKS["go2"]), 2, array="torch")
    env.reset(seed=0)
    calves = [env.sim.body_names.index(name) for name in ("FR_calf", "FL_calf")]
    first, second = env.sim.body_pos_w[:, calves].double().unbind(1)
    apart = (first - second).square().sum(1).sqrt().min().item()
    too_close = [
        costs.self_collision(env, ("FR_calf", "FL_calf"), apart + margin).max().item()
        for margin in (-1e-4, 1e-4)
    ]
    assert too_close == [0.0, 1.0]
    with pytest.raises(ValueError, match="base"):
        costs.self_collision(env, ("base",))


@ROBOTS
def test_a_standing_robot_satisfies_every_constraint_and_no_termination(robot):
    cfg = make_task_cfg(TASKS[robot.name])
    cfg.events = {}
    env = make_core(cfg, 2, array="torch")
    env.reset(seed=0)
    for _ in range(20):
        _, _, terminated, _, info = env.step(torch.zeros(2, 12))
    assert torch.equal(info["costs"], torch.zeros(2, len(env.cost_names)))
    assert not terminated.any()


# --- the state of the robots ------------------------------------------------------------------------------------------


def legs_in_base(env: Any, bodies: tuple[str, ...]) -> torch.Tensor:
    """Positions of bodies in the base frame, as a user's term may ask for them."""
    return env.robot.bodies(bodies).pos_b.flatten(1)


BODY_SETS = (("FR_calf", "RL_thigh"), ("base",), ("RL_foot", "FR_calf", "FL_hip"))


def test_terms_of_several_sets_of_bodies_show_where_these_are_from_the_base():
    cfg = make_task_cfg(TASKS["go2"])
    terms = {
        str(i): ObservationTermCfg(legs_in_base, params={"bodies": names})
        for i, names in enumerate(BODY_SETS)
    }
    cfg.observations = {"policy": ObservationGroupCfg(terms)}
    env = make_core(cfg, 4, array="torch")
    observation = env.reset(seed=0)[0]
    rng = np.random.default_rng(2)
    for step in range(8):
        sim = env.sim
        places, turns = sim.body_pos_w.double().numpy(), sim.body_quat_w.double().numpy()
        ids = sim.body_ids(tuple(name for names in BODY_SETS for name in names))
        expected = np.einsum("nji,nkj->nki", rotation(turns[:, 0]), places[:, ids] - places[:, :1])
        np.testing.assert_allclose(observation.numpy(), expected.reshape(4, -1), atol=1e-5)
        if step % 3 == 2:
            observation = env.reset(options={"reset_mask": torch.arange(4) == step % 4})[0]
        else:
            observation = env.step(
                torch.from_numpy(rng.uniform(-1, 1, (4, 12)).astype(np.float32))
            )[0]
    assert env.robot.bodies(BODY_SETS[0]) is env.robot.bodies(BODY_SETS[0])
    with pytest.raises(ValueError, match=r"'go2'.*'tail'.*base"):
        env.robot.bodies(("base", "tail"))
    with pytest.raises(ValueError, match="bodies"):
        env.robot.bodies(())


def test_after_whatever_happened_every_tensor_is_what_follows_from_the_simulation(assert_same):
    """A reset, push, move or load changes some rows: they get the same bits as in a step of all."""
    env = event_env(
        push=EventTermCfg(events.push, "interval", interval_s=(0.1, 0.3), params={"velocity": 1.0})
    )
    rng = np.random.default_rng(5)
    state = env.get_state()

    names = ("FR_calf", "RL_thigh")
    legs = env.robot.bodies(names)
    derived = (
        "lin_vel_b",
        "projected_gravity",
        "base_height",
        "joint_offset",
        "contact_force",
        "foot_height",
        "foot_speed",
    )

    def check() -> None:
        fresh = RobotState(env.sim, env.step_dt)
        for name in derived:
            assert_same(getattr(env.robot, name), getattr(fresh, name))
        assert_same(legs.pos_b, fresh.bodies(names).pos_b)

    check()
    for step in range(12):
        env.step(torch.from_numpy(rng.uniform(-1, 1, (400, 12)).astype(np.float32)))
        check()
        some = torch.from_numpy(np.sort(rng.choice(400, 7, replace=False)))
        if step % 3 == 0:
            env.reset(options={"reset_mask": torch.isin(torch.arange(400), some)})
        elif step % 3 == 1:
            env.sim.write_joint_state(some, env.sim.joint_pos[some] + 0.1, env.sim.joint_vel[some])
            env.sim.forward(some)
            env.robot.refresh(some)
        else:
            env.robot.push(some, torch.ones(7, 3))
        check()
    env.set_state(state)
    check()


@pytest.mark.parametrize("task", ["Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0"])
def test_another_default_dtype_changes_nothing(task, make_vec, assert_same):
    def run() -> list[Any]:
        env = make_vec(3, task, array="torch", observations="dict")
        trace = [env.reset(seed=1)[0]]
        for step in range(3):
            *results, info = env.step(
                torch.full(env.action_space.shape, 0.1 * step, dtype=torch.float32)
            )
            trace.append([*results, info["cost"], info["costs"]])
        return trace

    expected = run()
    torch.set_default_dtype(torch.float64)
    try:
        assert_same(run(), expected)
    finally:
        torch.set_default_dtype(torch.float32)


# --- contacts of feet -------------------------------------------------------------------------------------------------


def lift_and_put_down(pattern: str, robot: RobotCfg = GO2) -> list[SimpleNamespace]:
    """Return states of a robot that stands ("s") or is held in the air ("a"), one letter per control step."""
    cfg = make_task_cfg(TASKS[robot.name])
    cfg.events = {}
    cfg.actions["joint_position"].around = None
    env = make_core(cfg, 2, array="torch")
    env.reset(seed=0)
    for _ in range(5):
        env.step(torch.zeros(2, 12))
    standing = env.sim.get_state()
    shown = []
    for letter in pattern:
        env.sim.set_state(standing)
        if letter == "a":
            height = env.sim.root_pos_w + torch.tensor([0.0, 0.0, 1.0])
            env.sim.write_root_state(
                torch.arange(2), height, env.sim.root_quat_w, *torch.zeros(2, 2, 3)
            )
        env.step(torch.zeros(2, 12))
        robot_state = env.robot
        shown.append(
            SimpleNamespace(
                contact=robot_state.foot_contact.clone(),
                landed=robot_state.foot_landed.clone(),
                air_time=robot_state.foot_air_time.clone(),
                contact_time=robot_state.foot_contact_time.clone(),
            )
        )
    for state, letter in zip(shown, pattern, strict=True):
        assert state.contact.all() if letter == "s" else not state.contact.any()
    return shown


@ROBOTS
@pytest.mark.parametrize("num_steps", [2, 3, 10])
def test_the_air_time_of_a_landing_is_the_time_that_the_foot_was_in_the_air(num_steps, robot):
    """As LeggedGym-Ex counts it: the control steps without contact, times their duration."""
    shown = lift_and_put_down("ss" + "a" * num_steps + "sss", robot)
    landing = shown[2 + num_steps]
    assert landing.landed.all()
    assert torch.allclose(landing.air_time, torch.tensor(num_steps * DT))
    for state in (*shown[:2], *shown[3 + num_steps :]):
        assert not state.landed.any()
        assert not state.air_time.any()


def test_a_foot_lands_once_per_swing_and_a_single_step_without_contact_is_no_swing():
    pattern = "ssasasaasaaaassaa"
    landed = [state.landed.all().item() for state in lift_and_put_down(pattern)]
    assert [i for i, flag in enumerate(landed) if flag] == [
        pattern.index("aas") + 2,
        pattern.index("aaaas") + 4,
    ]


def test_stance_time_counts_from_the_landing():
    shown = lift_and_put_down("saaassss")
    assert [round(state.contact_time[0, 0].item() / DT) for state in shown[2:]] == [
        0,
        0,
        1,
        2,
        3,
        4,
    ]


def test_a_robot_placed_on_its_feet_has_not_landed():
    cfg = make_task_cfg(TASKS["go2"])
    cfg.events = {}
    env = make_core(cfg, 2, array="torch")
    env.reset(seed=0)
    for _ in range(3):
        env.step(torch.zeros(2, 12))
        assert not env.robot.foot_landed.any()


# --- symmetry ---------------------------------------------------------------------------------------------------------


FLAT = [task_id for task_id in registered_tasks if task_id.endswith("-Flat-v0")]
EVERY_ROBOT = pytest.mark.parametrize("task_id", [*FLAT, "Legged/Go2-Gaits-v0"])


def symmetric(robot: RobotCfg, folder: Path) -> RobotCfg:
    """``robot`` with masses that are exactly symmetric; published masses are only nearly symmetric."""
    spec = mujoco.MjSpec.from_file(str(robot.path))
    model = spec.compile()
    names = [body.name for body in spec.bodies]
    for body in spec.bodies[1:]:
        own, other = model.body(body.name), model.body(counterpart(body.name, names))
        matrices = []
        for part in (own, other):
            rotation = np.empty(9)
            mujoco.mju_quat2Mat(rotation, part.iquat)
            matrices.append(rotation.reshape(3, 3) * part.inertia @ rotation.reshape(3, 3).T)
        reflect = np.array([1.0, -1.0, 1.0])
        body.inertia, axes = np.linalg.eigh(
            (matrices[0] + reflect[:, None] * matrices[1] * reflect) / 2
        )
        axes[:, 0] *= np.linalg.det(axes)
        mujoco.mju_mat2Quat(body.iquat, axes.ravel())
        body.mass, body.ipos = (
            (own.mass[0] + other.mass[0]) / 2,
            (own.ipos + reflect * other.ipos) / 2,
        )
    path = folder / f"{robot.name}.xml"
    path.write_text(spec.to_xml())
    return replace(robot, xml=str(path))


def half_mirror(env: CoreVectorEnv) -> MirroredHalf:
    return MirroredHalf(env, ("policy",), ("critic",))


def mirrored_pair(cfg: TaskCfg, seed: int) -> CoreVectorEnv:
    """Two robots, the second one the mirror image of the first, near the ground in a random state."""
    robot, n = cfg.robot, cfg.robot.num_joints
    cfg.events = {}
    env = make_core(cfg, 2, array="torch", observations="dict")
    env.reset(seed=0)
    rng = np.random.default_rng(seed)

    def pair(value: np.ndarray, sign: tuple[float, ...]) -> torch.Tensor:
        return torch.from_numpy(np.stack((value, value * np.array(sign))).astype(np.float32))

    vector, pseudovector = (1.0, -1.0, 1.0), (-1.0, 1.0, -1.0)
    joints = Mirror(robot, [("joints", "joint", n)])
    mirrored_action = half_mirror(env).action

    def joint_pair(values: np.ndarray) -> torch.Tensor:
        one = torch.from_numpy(values.astype(np.float32))
        return torch.stack((one, joints(one)))

    quat = np.array([1.0, 0.0, 0.0, 0.0]) + 0.1 * rng.normal(size=4)
    quat /= np.linalg.norm(quat)
    both = torch.arange(2)
    env.sim.write_root_state(
        both,
        pair(np.array([0.3, 0.7, robot.base_height - 0.01]), vector),
        pair(quat, (1.0, -1.0, 1.0, -1.0)),
        pair(rng.normal(size=3) * 0.5, vector),
        pair(rng.normal(size=3) * 0.5, pseudovector),
    )
    pose = np.array(robot.default_joint_pos)
    env.sim.write_joint_state(
        both, joint_pair(pose + 0.2 * rng.normal(size=n)), joint_pair(rng.normal(size=n))
    )
    env.commands.terms["velocity"].hold(pair(rng.uniform(-1, 1, 3), (1.0, -1.0, -1.0)))
    gait = env.commands.terms.get("gait")
    if isinstance(gait, GaitCommand):
        hold_mirrored_gaits(gait, rng)
    elif gait is not None:
        gait.hold(rng.uniform() + torch.tensor((0.0, 0.5)))
    for step in range(3):
        one = torch.from_numpy(rng.uniform(-1, 1, n).astype(np.float32))
        action = torch.stack((one, mirrored_action(one)))
        env.actions.process(action) if step < 2 else env.step(action)
    return env


def hold_mirrored_gaits(gait: GaitCommand, rng: np.random.Generator) -> None:
    """Hold a gait of two robots with any offsets: what left legs do of one, right legs do of the other."""
    first, second, third, time = rng.uniform(0.0, 1.0, 4)
    style = (0.4, 0.1, 0.25, 0.2)
    gait.stride_time = torch.tensor((time, (time + first + third) % 1.0), dtype=torch.float32)
    gait.hold(torch.tensor(((first, second, third, *style), (-first, second, -third, *style))))


@EVERY_ROBOT
@pytest.mark.parametrize("seed", range(2))
def test_a_mirrored_robot_has_the_mirrored_observation_and_the_same_rewards_and_costs(
    task_id, seed, tmp_path
):
    cfg = make_task_cfg(task_id)
    cfg.robot = symmetric(cfg.robot, tmp_path)
    env = mirrored_pair(cfg, seed)
    one, other = env.observations.groups["critic"].compute_rows(torch.arange(2))
    assert torch.allclose(half_mirror(env).critic(one), other, rtol=5e-4, atol=5e-4)
    assert not torch.allclose(one, other, rtol=0.02, atol=0.02)
    for term in (*env.rewards.terms, *env.costs.terms):
        value, mirrored = term(env).tolist()
        assert value == pytest.approx(mirrored, rel=5e-4, abs=5e-4), term.where


@EVERY_ROBOT
def test_mirroring_twice_gives_the_same_again(task_id):
    env = mirrored_pair(make_task_cfg(task_id), 0)
    half = half_mirror(env)
    for group, mirror in (("policy", half.actor), ("critic", half.critic)):
        x = torch.arange(1.0, 1.0 + env.group_sizes[group]).repeat(3, 1)
        assert torch.equal(mirror(mirror(x)), x)
        assert not torch.equal(mirror(x), x)


def test_an_action_without_that_of_its_partner_has_no_mirror_image():
    with pytest.raises(ValueError, match="'FL_hip_joint'"):
        Mirror(GO2, [("action", "action", 1)], [GO2.joint_names.index("FR_hip_joint")])


def test_a_term_that_cannot_be_mirrored_is_named():
    with pytest.raises(ValueError, match=r"'speed'.*'vector'.*'sideways'"):
        Mirror(GO2, [("speed", "sideways", 3)])
    with pytest.raises(ValueError, match=r"'speed'.*None"):
        Mirror(GO2, [("speed", None, 3)])
    for kind, size in (("vector", 4), ("joint", 11), ("foot", 2)):
        with pytest.raises(ValueError, match=rf"'legs'.*'{kind}'.*{size}"):
            Mirror(GO2, [("ok", "scalar", 5), ("legs", kind, size)])


# --- commands ---------------------------------------------------------------------------------------------------------


def command_env(num_envs: int, **cfg: Any) -> CoreVectorEnv:
    task = make_task_cfg(TASKS["go2"])
    task.events = {}
    task.commands["velocity"] = VelocityCommandCfg(**cfg)
    env = make_core(task, num_envs, array="torch")
    env.reset(seed=1)
    return env


def test_commands_are_uniform_in_their_ranges_and_stand_still_as_often_as_asked():
    ranges = {"lin_vel_x": (-1.0, 2.0), "lin_vel_y": (-0.5, 0.1), "ang_vel_z": (0.2, 0.8)}
    n = 1500
    command = command_env(n, standing_fraction=0.3, **ranges).commands["velocity"].numpy()
    standing = ~command.any(1)
    assert abs(standing.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / n)
    for column, (low, high) in zip(command[~standing].T, ranges.values(), strict=True):
        width = high - low
        assert low <= column.min() < low + 0.02 * width
        assert high - 0.02 * width < column.max() <= high
        assert abs(column.mean() - (low + high) / 2) < 5 * width / np.sqrt(12 * len(column))
    correlation = np.corrcoef(command[~standing].T) - np.eye(3)
    assert np.abs(correlation).max() < 5 / np.sqrt((~standing).sum())


def test_small_linear_commands_become_zero_and_keep_their_turn():
    command = command_env(500, standing_fraction=0.0, small_command=0.4).commands["velocity"]
    speed = torch.linalg.vector_norm(command[:, :2], dim=1)
    assert ((speed == 0.0) | (speed > 0.4)).all()
    small = speed == 0.0
    assert 0 < small.sum() < 500
    assert (command[small, 2] != 0.0).all()


def test_commands_hold_for_a_time_in_the_range_and_each_environment_for_its_own():
    env = command_env(300, standing_fraction=0.0, resampling_time_s=(0.1, 0.3))
    holds = []
    since = np.zeros(300, dtype=int)
    for _ in range(60):
        before = env.commands["velocity"].clone()
        env.commands.advance()
        changed = (env.commands["velocity"] != before).any(1).numpy()
        since += 1
        holds += since[changed].tolist()
        since[changed] = 0
    assert len(holds) > 1000
    assert 5 <= min(holds) <= 6 and max(holds) == 15
    assert np.mean(holds) == pytest.approx(10.25, abs=0.6)


def place(env: CoreVectorEnv, yaw: torch.Tensor) -> None:
    n = env.num_envs
    zero = torch.zeros(n)
    quat = torch.stack(((yaw / 2).cos(), zero, zero, (yaw / 2).sin()), dim=1)
    env.sim.write_root_state(
        torch.arange(n), env.sim.root_pos_w.clone(), quat, *torch.zeros(2, n, 3)
    )
    env.robot.refresh(torch.arange(n))


def test_in_heading_mode_a_robot_that_obeys_ends_at_its_heading_the_short_way_round():
    ranges = {"ang_vel_z": (-1.0, 1.0), "resampling_time_s": (60.0, 60.0)}
    env = command_env(100, heading=True, heading_stiffness=0.5, standing_fraction=0.2, **ranges)
    linear = env.commands["velocity"][:, :2].clone()
    yaw = torch.zeros(100)
    turned = torch.zeros(100)
    for step in range(600):
        place(env, yaw)
        env.commands.advance()
        turn = env.commands["velocity"][:, 2]
        assert (turn.abs() <= 1.0).all()
        if step == 0:
            first = turn.clone()
        yaw = yaw + turn * DT
        turned += turn * DT
    standing = (linear == 0.0).all(1)
    assert 5 < standing.sum() < 40
    assert (first[standing] == 0.0).all() and (turned[standing] == 0.0).all()
    assert (turn.abs() < 0.01).all()
    assert (turned.abs() <= torch.pi + 0.05).all() and (turned.abs() > 2.0).any()
    unclipped = first.abs() < 0.99
    assert torch.allclose(first[unclipped], 0.5 * turned[unclipped], atol=0.02)
    assert torch.equal(env.commands["velocity"][:, :2], linear)


@pytest.mark.parametrize("heading", [False, True])
def test_a_held_command_stays_until_the_reset(heading):
    env = command_env(4, heading=heading, resampling_time_s=(0.04, 0.06))
    wanted = torch.tensor([0.5, -0.2, 0.3])
    env.commands.terms["velocity"].hold(wanted)
    for _ in range(10):
        env.step(torch.zeros(4, 12))
        assert torch.equal(env.commands["velocity"], wanted.expand(4, 3))
    env.reset(options={"reset_mask": torch.tensor([True, False, False, False])})
    assert not torch.equal(env.commands["velocity"][0], wanted)
    assert torch.equal(env.commands["velocity"][1:], wanted.expand(3, 3))


def test_a_command_can_be_held_after_a_state_was_loaded():
    env = command_env(4)
    env.step(torch.zeros(4, 12))
    env.set_state(env.get_state())
    env.commands.terms["velocity"].hold(torch.tensor([0.5, -0.2, 0.3]))
    env.step(torch.zeros(4, 12))
    assert torch.equal(env.commands["velocity"], torch.tensor([[0.5, -0.2, 0.3]] * 4))


def test_commands_to_move_are_inverted_as_often_as_asked():
    env = command_env(
        400, standing_fraction=0.3, resampling_time_s=(0.04, 0.06), inversion_fraction=0.25
    )
    inverted = moved = 0
    for _ in range(10):
        before = env.commands["velocity"].clone()
        env.commands.advance()
        after = env.commands["velocity"]
        due = (after != before).any(1) & before.any(1)
        moved += int(due.sum())
        inverted += int((after[due] == -before[due]).all(1).sum())
    assert moved > 800
    assert inverted / moved == pytest.approx(0.25, abs=0.05)


def test_an_inverted_command_keeps_its_heading():
    times = {"resampling_time_s": (0.02, 0.02), "standing_fraction": 0.0}
    env = command_env(50, heading=True, inversion_fraction=1.0, **times)
    before = env.commands["velocity"].clone()
    heading = env.commands.terms["velocity"].heading.clone()
    env.commands.advance()
    after = env.commands["velocity"]
    assert torch.equal(after[:, :2], -before[:, :2])
    assert torch.equal(env.commands.terms["velocity"].heading, heading)
    assert torch.allclose(after[:, 2], before[:, 2])  # Nobody has turned yet.


def test_robots_that_are_told_to_stand_do_so_until_their_next_command():
    env = command_env(6, standing_fraction=0.0, resampling_time_s=(0.1, 0.1), heading=True)
    term = env.commands.terms["velocity"]
    term.stand(torch.tensor([1, 4]))
    for _ in range(4):
        env.commands.advance()
        still = (term.value == 0.0).all(1)
        assert still.tolist() == [False, True, False, False, True, False]
        assert torch.equal(term.still, still.float())
    env.commands.advance()
    assert (term.value != 0.0).any(1).all()


def test_a_range_of_no_velocity_is_named():
    with pytest.raises(ValueError, match=r"kind_ranges\['flat'\].*'speed'.*lin_vel_x"):
        command_env(1, kind_ranges={"flat": {"speed": (0.0, 1.0)}})


def test_a_range_the_wrong_way_round_is_named():
    with pytest.raises(ValueError, match=r"lin_vel_y.*\(0.5, -0.5\)"):
        command_env(1, lin_vel_y=(0.5, -0.5))


@pytest.mark.parametrize("fraction", [-0.1, 3.0])
def test_a_standing_fraction_that_is_no_probability_is_named(fraction):
    with pytest.raises(ValueError, match=f"standing_fraction.*{fraction}"):
        command_env(1, standing_fraction=fraction)


# --- gait clock -------------------------------------------------------------------------------------------------------


def g1_env(num_envs: int, **clock: Any) -> CoreVectorEnv:
    cfg = make_task_cfg(TASKS["g1"])
    cfg.events = {}
    if clock:
        cfg.commands["gait"] = GaitClockCfg(**clock)
    env = make_core(cfg, num_envs, array="torch")
    env.reset(seed=2)
    return env


def test_a_clock_lets_the_feet_stand_in_turn_and_comes_round_after_a_stride():
    env = g1_env(200, period=0.8)
    clock = env.commands.terms["gait"]
    first = clock.value.clone()
    angle = torch.atan2(first[:, 0], first[:, 1]) / (2 * torch.pi) % 1.0
    assert (
        angle.min() < 0.05 and angle.max() > 0.95 and abs(angle.mean() - 0.5) < 0.1
    )  # each starts at its own time
    stance = []
    for _ in range(40):
        stance.append(clock.stance.clone())
        env.commands.advance()
    assert torch.allclose(clock.value, first, atol=1e-4)
    assert torch.allclose(
        torch.stack(stance).sum(0).float(), torch.tensor(22.0), atol=1.0
    )  # 0.55 of 40 steps
    assert torch.stack(stance).any(2).all() and not torch.stack(stance).all(2).all(0).any()


def test_action_0_lifts_the_feet_that_swing_and_actions_correct_it():
    env = g1_env(64)
    phase = env.commands.terms["gait"].state_dict()["phase"].double().numpy()
    expected = np.tile(G1.default_joint_pos, (64, 1))
    for offset, turned in zip(
        (0.0, 0.5), leg_lift_angles(G1, env.commands.terms["gait"].cfg.swing), strict=True
    ):
        swung = np.maximum((phase + offset) % 1.0 - 0.55, 0.0) / 0.45
        expected += np.sin(np.pi * swung[:, None]) ** 2 * turned
    action = torch.zeros(64, 12)
    np.testing.assert_allclose(env.actions.process(action).numpy(), expected, atol=1e-5)
    action[:, 3] = 0.4
    expected[:, 3] += 0.4 * 0.5
    np.testing.assert_allclose(env.actions.process(action).numpy(), expected, atol=1e-5)


def test_a_clock_without_a_swing_leaves_action_0_at_the_default_pose():
    env = g1_env(8, period=1.0)
    assert torch.equal(
        env.actions.process(torch.zeros(8, 12)), torch.tensor(G1.default_joint_pos).expand(8, -1)
    )


def test_a_clock_goes_on_from_its_state_and_from_where_it_is_held():
    env, other = g1_env(3), g1_env(3)
    clock, copy = env.commands.terms["gait"], other.commands.terms["gait"]
    env.commands.terms["gait"].hold(torch.tensor(0.25))
    assert torch.allclose(clock.value, torch.tensor([1.0, 0.0]).expand(3, 2), atol=1e-6)
    env.commands.advance()
    copy.load_state_dict(clock.state_dict())
    for name in ("value", "stance", "target_joint_pos"):
        assert torch.equal(getattr(clock, name), getattr(copy, name))
    assert torch.allclose(clock.state_dict()["phase"], torch.tensor(0.25 + DT / clock.cfg.period))


@pytest.mark.parametrize(
    ("clock", "match"),
    [
        ({"period": 0.0}, r"period.*0\.0"),
        ({"stance": 1.0}, r"stance.*1\.0"),
        (
            {"offsets": (0.0, 0.5, 0.5)},
            r"offsets.*g1: left_foot, right_foot",
        ),
        ({"swing": -0.1}, r"swing.*-0\.1"),
        ({"swing": 3.0}, r"'g1'.*'left_foot'.* 3 m"),
    ],
)
def test_a_clock_that_does_not_fit_the_robot_says_what_is_wrong(clock, match):
    with pytest.raises(ValueError, match=match):
        g1_env(1, **clock)


def test_actions_about_a_command_without_joint_positions_are_refused():
    cfg = make_task_cfg(TASKS["g1"])
    cfg.actions["joint_position"].around = "velocity"
    with pytest.raises(ValueError, match=r"around.*'velocity'.*velocity, gait"):
        make_core(cfg, 1)


# --- events -----------------------------------------------------------------------------------------------------------


def event_env(**terms: EventTermCfg) -> CoreVectorEnv:
    cfg = make_task_cfg(TASKS["go2"])
    cfg.events = terms
    env = make_core(cfg, 400, array="torch")
    env.reset(seed=2)
    return env


def assert_uniform(values: torch.Tensor, low: float, high: float) -> None:
    """Every column fills [low, high] evenly."""
    columns = values.reshape(len(values), -1).double()
    width = high - low
    slack = 1e-5 * max(abs(low), abs(high), 1.0)
    assert (columns >= low - slack).all() and (columns <= high + slack).all()
    assert (columns.amin(0) < low + 0.05 * width).all() and (
        columns.amax(0) > high - 0.05 * width
    ).all()
    assert (
        (columns.mean(0) - (low + high) / 2).abs() < 5 * width / np.sqrt(12 * len(columns))
    ).all()


def test_friction_is_drawn_in_its_range():
    env = event_env(
        x=EventTermCfg(events.randomize_friction, "reset", params={"range": (0.5, 1.25)})
    )
    assert_uniform(env.sim.get_parameter("friction"), 0.5, 1.25)


def test_mass_is_added_to_the_base_alone():
    env = event_env(
        x=EventTermCfg(events.randomize_base_mass, "startup", params={"range": (-1.0, 2.0)})
    )
    added = env.sim.get_parameter("body_mass") - env.sim.default_parameter("body_mass")
    assert_uniform(added[:, 0], -1.0, 2.0)
    assert not added[:, 1:].any()


def test_the_centre_of_mass_of_the_base_alone_moves_along_each_axis():
    env = event_env(
        x=EventTermCfg(events.randomize_base_com, "startup", params={"range": (-0.03, 0.03)})
    )
    moved = env.sim.get_parameter("com") - env.sim.default_parameter("com")
    assert_uniform(moved[:, 0], -0.03, 0.03)
    assert not moved[:, 1:].any()


def heavier_feet(env, env_ids, random):
    feet = env.sim.body_ids(env.sim.robot.foot_names)
    masses = env.sim.get_parameter("body_mass")[env_ids]
    centres = env.sim.get_parameter("com")[env_ids]
    masses[:, feet] += 0.05
    centres[:, feet] += 0.01
    env.sim.set_parameter("body_mass", masses, env_ids)
    env.sim.set_parameter("com", centres, env_ids)


def test_events_of_the_base_keep_what_other_events_did_to_other_bodies():
    env = event_env(
        feet=EventTermCfg(heavier_feet, "startup"),
        mass=EventTermCfg(events.randomize_base_mass, "startup", params={"range": (1.0, 1.0)}),
        com=EventTermCfg(events.randomize_base_com, "startup", params={"range": (0.02, 0.02)}),
    )
    feet = env.sim.body_ids(env.sim.robot.foot_names)
    added = env.sim.get_parameter("body_mass") - env.sim.default_parameter("body_mass")
    moved = env.sim.get_parameter("com") - env.sim.default_parameter("com")
    assert torch.allclose(added[:, feet], torch.tensor(0.05), atol=1e-6)
    assert torch.allclose(added[:, 0], torch.tensor(1.0), atol=1e-6)
    assert torch.allclose(moved[:, feet], torch.tensor(0.01), atol=1e-6)
    assert torch.allclose(moved[:, 0], torch.tensor(0.02), atol=1e-6)


def test_the_gains_of_all_joints_are_multiplied_by_the_same_two_factors():
    env = event_env(x=EventTermCfg(events.randomize_gains, "reset", params={"range": (0.8, 1.1)}))
    factors = [
        env.sim.get_parameter(name) / env.sim.default_parameter(name) for name in ("kp", "kd")
    ]
    for factor in factors:
        assert_uniform(factor[:, 0], 0.8, 1.1)
        assert torch.allclose(factor, factor[:, :1])
    assert abs(np.corrcoef(factors[0][:, 0], factors[1][:, 0])[0, 1]) < 0.25


@pytest.mark.parametrize("parameter", ["armature", "joint_damping", "joint_friction"])
def test_all_joints_of_a_robot_get_one_drawn_value(parameter):
    params = {"parameter": parameter, "range": (0.1, 0.3)}
    env = event_env(x=EventTermCfg(events.randomize_joint_parameter, "startup", params=params))
    values = env.sim.get_parameter(parameter)
    assert_uniform(values[:, 0], 0.1, 0.3)
    assert torch.equal(values, values[:, :1].expand_as(values))


def test_robots_are_placed_upright_with_the_heading_height_and_velocity_asked_for():
    params = {"yaw": (-1.0, 2.0), "height": (0.0, 0.4), "velocity": 0.3}
    env = event_env(x=EventTermCfg(events.reset_root, "reset", params=params))
    assert_uniform(env.robot.heading(), -1.0, 2.0)
    assert torch.allclose(env.robot.projected_gravity, torch.tensor([0.0, 0.0, -1.0]), atol=1e-6)
    assert_uniform(env.sim.root_pos_w[:, 2] - GO2.base_height, 0.0, 0.4)
    assert not env.sim.root_pos_w[:, :2].any()
    assert_uniform(env.sim.root_lin_vel_w, -0.3, 0.3)
    assert_uniform(env.sim.root_ang_vel_b, -0.3, 0.3)


def test_joints_are_placed_about_the_default_pose_and_within_their_limits():
    env = event_env(
        x=EventTermCfg(events.reset_joints, "reset", params={"range": 0.2, "velocity": 1.5})
    )
    assert_uniform(env.sim.joint_pos - env.robot.default_joint_pos, -0.2, 0.2)
    assert_uniform(env.sim.joint_vel, -1.5, 1.5)
    wide = event_env(x=EventTermCfg(events.reset_joints, "reset", params={"range": 3.0}))
    low, high = wide.sim.joint_pos_limits.unbind(1)
    assert (wide.sim.joint_pos >= low - 1e-6).all() and (wide.sim.joint_pos <= high + 1e-6).all()
    assert (wide.sim.joint_pos < low + 1e-6).any() and (wide.sim.joint_pos > high - 1e-6).any()


def test_a_share_of_the_robots_begins_in_a_crouch_on_its_feet():
    cfg = make_task_cfg("Legged/Tron1-SF-Flat-v0")
    cfg.events = {name: cfg.events[name] for name in ("root", "joints", "crouch")}
    cfg.events["joints"].params["range"] = 0.0
    env = make_core(cfg, 400, array="torch")
    env.reset(seed=0)
    low = env.sim.root_pos_w[:, 2] < TRON1_SF.base_height - 0.25
    assert 0.4 < low.float().mean() < 0.6
    for joint, angle in {
        "hip_R_Joint": -0.58,
        "knee_L_Joint": 1.35,
        "ankle_R_Joint": -0.8,
        "abad_L_Joint": 0.0,
    }.items():
        expected = torch.where(low, angle, 0.0)
        assert torch.allclose(
            env.sim.joint_pos[:, TRON1_SF.joint_names.index(joint)], expected, atol=1e-6
        )
    assert (env.robot.foot_height.abs() < 0.02).all()
    for group in (low, ~low):
        assert_uniform(env.sim.root_lin_vel_w[group], -0.3, 0.3)


def test_a_push_changes_the_horizontal_velocity_of_the_base_and_nothing_else():
    env = event_env()
    ids = torch.arange(0, 400, 2)
    names = (
        "root_pos_w",
        "root_quat_w",
        "root_ang_vel_b",
        "joint_pos",
        "joint_vel",
        "root_lin_vel_w",
    )
    before = {name: getattr(env.sim, name).clone() for name in names}
    random = RandomStreams(400, torch.device("cpu"))
    random.seed(0, torch.arange(400))
    events.push(env, ids, random.stream("push"), velocity=0.7)
    change = env.sim.root_lin_vel_w - before["root_lin_vel_w"]
    assert_uniform(change[ids, :2], -0.7, 0.7)
    assert not change[1::2].any() and not change[:, 2].any()
    assert all(torch.equal(getattr(env.sim, name), before[name]) for name in names[:-1])


def test_what_the_last_push_added_is_remembered_until_the_reset_and_saved(assert_same):
    env = event_env()
    ids = torch.tensor([3, 5])
    first, second = (
        torch.tensor([[0.1, -0.2, 0.3], [1.0, 0.0, 0.0]]),
        torch.tensor([[-0.5, 0.0, 0.0]]),
    )
    env.robot.push(ids, first)
    env.step(torch.zeros(400, 12))
    env.robot.push(ids[:1], second)
    expected = torch.zeros(400, 3)
    expected[3], expected[5] = second[0], first[1]
    assert torch.equal(env.robot.last_push_velocity, expected)
    state = env.get_state()
    env.reset(options={"reset_mask": torch.arange(400) == 5})
    expected[5] = 0.0
    assert torch.equal(env.robot.last_push_velocity, expected)
    env.set_state(state)
    assert torch.equal(env.robot.last_push_velocity[5], first[1])


def test_the_critic_sees_the_velocity_after_a_push():
    cfg = make_task_cfg(TASKS["go2"])
    cfg.events = {
        "push": EventTermCfg(events.push, "interval", interval_s=(DT, DT), params={"velocity": 2.0})
    }
    env = make_core(cfg, 8, array="torch", observations="dict")
    env.reset(seed=0)
    names, sizes, _ = zip(*env.observations.groups["critic"].layout, strict=True)
    first = sum(sizes[: names.index("lin_vel")])
    for _ in range(3):
        observation = (
            env.step(torch.zeros(8, 12))[0]["critic"][:, first : first + 3].double().numpy()
        )
        to_world = rotation(env.sim.root_quat_w.double().numpy())
        velocity = np.einsum("nij,nj->ni", to_world, observation)
        np.testing.assert_allclose(velocity, env.sim.root_lin_vel_w.numpy(), atol=1e-4)
        assert np.abs(velocity).max() > 1.0


def test_startup_events_act_when_seeded_and_reset_events_at_every_reset():
    env = event_env(
        mass=EventTermCfg(events.randomize_base_mass, "startup", params={"range": (-1.0, 2.0)}),
        friction=EventTermCfg(events.randomize_friction, "reset", params={"range": (0.5, 1.25)}),
    )

    def parameters() -> tuple[torch.Tensor, torch.Tensor]:
        return env.sim.get_parameter("body_mass").clone(), env.sim.get_parameter("friction").clone()

    mass, friction = parameters()
    env.reset()
    assert torch.equal(parameters()[0], mass)
    assert (parameters()[1] != friction).all()
    env.reset(seed=3)
    assert (parameters()[0][:, 0] != mass[:, 0]).all()
    env.reset(seed=2)
    assert torch.equal(parameters()[0], mass) and torch.equal(parameters()[1], friction)


def test_interval_events_act_at_times_in_their_range_and_start_again_at_a_reset():
    times: list[list[int]] = [[] for _ in range(400)]
    clock = [0]

    def note(env: Any, env_ids: torch.Tensor, random: Any) -> None:
        for i in env_ids.tolist():
            times[i].append(clock[0])

    env = event_env(x=EventTermCfg(note, "interval", interval_s=(0.1, 0.3)))
    for step in range(1, 61):
        clock[0] = step
        env.events.advance()
    gaps = np.concatenate([np.diff([0, *row]) for row in times])
    assert 5 <= gaps.min() <= 6 and gaps.max() == 15
    assert np.mean(gaps) == pytest.approx(10.25, abs=0.6)
    env.events.reset(torch.arange(400))
    for row in times:
        row.clear()
    for _ in range(4):
        env.events.advance()
    assert not any(times)


# --- terminations on the whole ----------------------------------------------------------------------------------------


@ROBOTS
def test_a_robot_on_its_back_has_fallen_and_one_on_its_feet_has_not(robot):
    cfg = make_task_cfg(TASKS[robot.name])
    cfg.events = {}
    cfg.terminations = {
        name: TerminationTermCfg(term.func) for name, term in cfg.terminations.items()
    }
    env = make_core(cfg, 2, array="torch")
    env.reset(seed=0)
    env.sim.write_root_state(
        torch.tensor([1]),
        torch.tensor([[0.0, 0.0, 0.3]]),
        torch.tensor([[0.0, 1.0, 0.0, 0.0]]),
        *torch.zeros(2, 1, 3),
    )
    ended = [env.step(torch.zeros(2, 12))[2].tolist() for _ in range(3)]
    assert ended == [[False, True]] * 3


def test_commands_with_a_heading_keep_the_present_range_of_turns():
    env = command_env(50, heading=True, heading_stiffness=5.0)
    velocity = env.commands.terms["velocity"]
    velocity.set_range("ang_vel_z", -0.1, 0.1)
    velocity.advance()
    assert velocity.value[:, 2].abs().max().item() == pytest.approx(0.1)

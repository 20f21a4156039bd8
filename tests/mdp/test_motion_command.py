"""The mimic tasks: references, starts, masks, rewards and terminations against the clips' own frames in float64."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv, make_core, unwrap
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import RewardTermCfg, TerminationTermCfg
from legged_envs.mdp import events, rewards, terminations
from legged_envs.mdp.motion_command import MotionCommand, MotionCommandCfg, motion_command
from legged_envs.motions import (
    Motion,
    MotionError,
    StartCfg,
    load_motion,
    resample,
    save_motion,
    shipped_motions,
)
from legged_envs.robots import G1_29, GO2, RobotCfg

GO2_TASK, G1_TASK = "Legged/Go2-Mimic-v0", "Legged/G1-Mimic-v0"
DT = 0.02
WINDOW = (1, 2, 4, 8)
Q0 = torch.tensor(GO2.default_joint_pos)


# --- a clip's frames, by hand -----------------------------------------------------------------------------------------


def rotation(quat: np.ndarray) -> np.ndarray:
    """Rotation matrix, body to world, of a unit quaternion (w, x, y, z)."""
    w, x, y, z = np.asarray(quat, dtype=np.float64) / np.linalg.norm(quat)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.array(rows)


def about_z(angle: float) -> np.ndarray:
    return rotation(np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]))


def frame_of(motion: Motion, frame: int) -> SimpleNamespace:
    """Return a clip's frame in float64, also after its end: a looping clip continues from its last pose, other clips rest."""
    last = motion.num_frames - 1
    repetitions, i = divmod(frame, last) if motion.loop else (0, min(frame, last))
    at_rest = frame > last and not motion.loop

    def row(field: str) -> np.ndarray:
        values = getattr(motion, field)[i].double().numpy()
        return np.zeros_like(values) if at_rest and "vel" in field else values

    pos, turn, lin_vel = row("root_pos_w"), rotation(row("root_quat_w")), row("root_lin_vel_w")
    body_pos = row("body_pos_w")
    if motion.loop:
        start, end = (rotation(motion.root_quat_w[k].numpy()) for k in (0, last))
        between = end @ start.T
        on = about_z(np.arctan2(between[1, 0] - between[0, 1], between[0, 0] + between[1, 1]))
        first_pos, last_pos = (motion.root_pos_w[k].double().numpy() for k in (0, last))
        step = (last_pos - on @ first_pos) * (1.0, 1.0, 0.0)
        for _ in range(repetitions):
            pos, turn, lin_vel, body_pos = (
                on @ pos + step,
                on @ turn,
                on @ lin_vel,
                body_pos @ on.T + step,
            )
    return SimpleNamespace(
        pos=pos,
        turn=turn,
        lin_vel_w=lin_vel,
        gravity=turn.T @ (0.0, 0.0, -1.0),
        lin_vel=turn.T @ lin_vel,
        ang_vel=row("root_ang_vel_b"),
        joint_pos=row("joint_pos"),
        joint_vel=row("joint_vel"),
        body_pos=dict(zip(motion.body_names, body_pos, strict=True)),
    )


def key_pos(motion: Motion, frame: int, share: float, bodies: tuple[str, ...]) -> np.ndarray:
    """Return positions of bodies in the base frame, interpolated by ``share`` between a frame and the next."""
    low, high = frame_of(motion, frame), frame_of(motion, frame + 1)
    way = low.turn.T @ high.turn
    angle = np.arccos(np.clip((np.trace(way) - 1) / 2, -1.0, 1.0))
    axis = np.array([way[2, 1] - way[1, 2], way[0, 2] - way[2, 0], way[1, 0] - way[0, 1]])
    axis = axis / max(np.linalg.norm(axis), 1e-12)
    half = share * angle / 2
    turn = low.turn @ rotation(np.array([np.cos(half), *(np.sin(half) * axis)]))
    base = (1 - share) * low.pos + share * high.pos
    places = [
        (1 - share) * low.body_pos[name] + share * high.body_pos[name] - base for name in bodies
    ]
    return np.array(places) @ turn


def key_heights(motion: Motion, frame: int, share: float, bodies: tuple[str, ...]) -> np.ndarray:
    """How high bodies are a ``share`` of the way from a frame to the next."""
    low, high = frame_of(motion, frame), frame_of(motion, frame + 1)
    heights = [(1 - share) * low.body_pos[name] + share * high.body_pos[name] for name in bodies]
    return np.array(heights)[:, 2]


def window_of(motion: Motion, frame: int, robot: RobotCfg) -> np.ndarray:
    """Return the observation of coming frames, where ``frame`` is the present one."""
    frames = []
    for ahead in WINDOW:
        f = frame_of(motion, frame + ahead)
        joints = (f.joint_pos - np.array(robot.default_joint_pos), 0.05 * f.joint_vel)
        frames += [*joints, f.gravity, f.lin_vel, 0.25 * f.ang_vel, f.pos[2:]]
    return np.concatenate(frames)


# --- environments -----------------------------------------------------------------------------------------------------


@pytest.fixture
def make() -> Iterator[Callable[..., CoreVectorEnv]]:
    """Makes a mimic environment without the noise of starts; it is reset with seed 0 unless ``seed`` is None."""
    made = []

    def build(
        num_envs: int = 4, task: str | TaskCfg = GO2_TASK, seed: int | None = 0, **changes: Any
    ) -> CoreVectorEnv:
        if isinstance(task, str):
            task = override(make_task_cfg(task), {"events.reference.params": {}})
        command = {f"commands.motion.{name}": value for name, value in changes.items()}
        made.append(
            make_core(override(task, command), num_envs, array="torch", observations="dict")
        )
        if seed is not None:
            made[-1].reset(seed=seed)
        return made[-1]

    yield build
    for env in made:
        env.close()


def motion_of(env: CoreVectorEnv) -> MotionCommand:
    return motion_command(env.commands)


def start_at(env: CoreVectorEnv, starts: dict[int, tuple[str, int]]) -> list[tuple[Motion, int]]:
    """Reset with each environment at a frame of a clip, by default the frame of environment 0. Returns clip and frame of each."""
    motion = motion_of(env)
    chosen = [starts.get(i, starts[0]) for i in range(env.num_envs)]
    clips = {clip.name: clip for clip in motion.cfg.load(env.cfg.robot)}
    names = motion.player.library.names
    frames = torch.tensor([frame for _, frame in chosen])
    motion.pin(torch.tensor([names.index(name) for name, _ in chosen]), frames.double() * DT)
    env.reset(seed=0)
    return [(clips[name], frame) for name, frame in chosen]


def still(env: CoreVectorEnv) -> torch.Tensor:
    return torch.zeros(env.num_envs, env.cfg.robot.num_joints)


def columns(env: CoreVectorEnv, group: str, name: str) -> slice:
    """Return the slice of a term in an observation group."""
    sizes = {name: size for name, size, _ in env.observations.groups[group].layout}
    start = sum(size for other, size in list(sizes.items())[: list(sizes).index(name)])
    return slice(start, start + sizes[name])


def near(actual: torch.Tensor, expected: Any, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(
        actual.double().numpy(), np.asarray(expected), atol=tolerance, rtol=tolerance
    )


# --- targets ----------------------------------------------------------------------------------------------------------

SEAMS = {
    GO2_TASK: (
        "trot 90",
        "turn_left 95",
        "turn_right 296",
        "sit_to_stand 115",
        "bound 0",
        "stand 3",
    ),
    G1_TASK: ("squat 146", "wave 219"),
}


@pytest.mark.parametrize(
    ("task", "robot", "steps"), [(GO2_TASK, GO2, 22), (G1_TASK, G1_29, 10)], ids=("go2", "g1")
)
def test_targets_and_window_are_the_frames_to_come_also_across_seams_and_at_ends(
    task, robot, steps, make
):
    env = make(len(SEAMS[task]), task, seed=None)
    starts = {
        i: (name, int(frame))
        for i, (name, frame) in enumerate(start.split() for start in SEAMS[task])
    }
    placed, motion = start_at(env, starts), motion_of(env)
    bodies = motion.key_bodies
    assert bodies == (GO2.foot_names if robot is GO2 else ("torso_link", *bodies[1:]))
    assert list(motion.frame_sizes.values()) == [robot.num_joints, robot.num_joints, 3, 3, 3, 1]
    for step in range(steps):
        for i, (clip, first) in enumerate(placed):
            frame = first + step
            target = frame_of(clip, frame + 1)
            near(motion.target_joint_pos[i], target.joint_pos)
            near(motion.target_joint_vel[i], target.joint_vel, 1e-4)
            near(motion.target_gravity[i], target.gravity)
            near(motion.target_lin_vel_b[i], target.lin_vel)
            near(motion.target_ang_vel_b[i], target.ang_vel)
            near(motion.value[i], window_of(clip, frame, robot))
            near(motion.target_key_pos_b[i], key_pos(clip, frame, 0.75, bodies), 1e-4)
            for k, ahead in enumerate(WINDOW):
                coming = frame_of(clip, frame + ahead)
                near(motion.window_root_pos_w[i, k], coming.pos)
                near(
                    torch.from_numpy(rotation(motion.window_root_quat_w[i, k].numpy())),
                    coming.turn,
                    1e-4,
                )
            speed = np.linalg.norm(target.lin_vel) + np.linalg.norm(target.ang_vel)
            assert abs(speed - 0.1) < 1e-3 or motion.moving[i] == float(speed > 0.1)
            assert motion.still[i] == 1.0 - motion.moving[i]
        assert (motion.available == 1.0).all()
        env.step(still(env))


def test_a_trot_walks_on_across_its_seam_and_a_clip_that_ends_rests(make):
    env = make(2, seed=None)
    start_at(env, {0: ("trot", 90), 1: ("sit_to_stand", 118)})
    motion, places = motion_of(env), []
    for _ in range(20):
        places.append(motion.window_root_pos_w[0, 0].clone())
        env.step(still(env))
    strides = torch.stack(places).diff(dim=0)[:, :2].norm(dim=1)
    assert strides.min() > 0.004 and strides.max() < 0.03
    assert not motion.target_joint_vel[1].any() and not motion.target_lin_vel_b[1].any()
    near(motion.target_joint_pos[1], shipped_motions(GO2, "sit_to_stand")[0].joint_pos[-1])
    near(motion.value[1].unflatten(0, (4, -1)).diff(dim=0), np.zeros((3, 34)))


# --- rewards and terminations -----------------------------------------------------------------------------------------

TERMS: dict[str, tuple[Callable[..., torch.Tensor], dict[str, Any]]] = {
    "joint_pos": (rewards.reference_joint_pos, {"sigma": 3.0}),
    "joint_vel": (rewards.reference_joint_vel, {"sigma": 40.0}),
    "root_pose": (rewards.reference_root_pose, {"sigma": 0.02}),
    "root_pose_planar": (rewards.reference_root_pose, {"sigma": 0.1, "planar": True}),
    "root_vel": (rewards.reference_root_vel, {"sigma": 2.0, "angular": 0.05}),
    "key_pos": (rewards.reference_key_pos, {"sigma": 0.1}),
    "foot_height": (rewards.reference_foot_height, {"sigma": 0.01}),
    "free": (rewards.without_reference, {"term": rewards.base_height, "target": 0.5}),
}
LOST = {"height": 0.04, "tilt": 0.25, "key_body": 0.12, "foot_height": 0.1}


def terms_by_hand(
    env: CoreVectorEnv, i: int, target: SimpleNamespace, keys: np.ndarray, heights: np.ndarray
) -> dict[str, float]:
    """Return the terms of :data:`TERMS` and the error of robot i relative to the bound of the termination (above 1: the reference is lost)."""
    sim = env.sim
    pos, quat, lin_vel, ang_vel, q, dq = (
        getattr(sim, name)[i].double().numpy()
        for name in (
            "root_pos_w",
            "root_quat_w",
            "root_lin_vel_w",
            "root_ang_vel_b",
            "joint_pos",
            "joint_vel",
        )
    )
    turn = rotation(quat)
    bodies = sim.body_ids(("base", *GO2.foot_names))
    base, *feet = sim.body_pos_w[i, bodies].double().numpy()
    watched = (np.array(feet) - base) @ rotation(sim.body_quat_w[i, bodies[0]].numpy())
    gravity = turn.T @ (0.0, 0.0, -1.0)
    away = turn.T @ target.turn
    # |⟨p, q⟩| of two quaternions is cos(angle / 2)
    cosine = np.sqrt(max(0.0, (1 + np.trace(away)) / 4))
    height, tilt = abs(pos[2] - target.pos[2]), np.linalg.norm(gravity - target.gravity)
    distance = np.linalg.norm(watched - keys, axis=1)
    velocity = ((turn.T @ lin_vel - target.lin_vel) ** 2).sum() + 0.05 * (
        (ang_vel - target.ang_vel) ** 2
    ).sum()
    foot_error = np.abs(np.array(feet)[:, 2] - heights).max()
    return {
        "joint_pos": np.exp(-((q - target.joint_pos) ** 2).sum() / 3.0),
        "joint_vel": np.exp(-np.abs(dq - target.joint_vel).sum() / 40.0),
        "root_pose": np.exp(-(height**2 + 0.1 * tilt**2 / 4) / 0.02),
        "root_pose_planar": np.exp(-(((pos - target.pos) ** 2).sum() + 0.2 * (1 - cosine)) / 0.1),
        "root_vel": np.exp(-velocity / 2.0),
        "key_pos": np.exp(-(distance**2).sum() / 0.1),
        "foot_height": np.exp(-((np.array(feet)[:, 2] - heights) ** 2).sum() / 0.01),
        "free": (pos[2] - 0.5) ** 2,
        "lost": max(
            height / LOST["height"],
            tilt / LOST["tilt"],
            distance.max() / LOST["key_body"],
            foot_error / LOST["foot_height"],
        ),
    }


def test_rewards_and_the_lost_reference_compare_a_step_with_the_target_announced_before_it(
    make, random_actions
):
    cfg = override(make_task_cfg(GO2_TASK), {"events.reference.params": {}})
    cfg.rewards = {
        name: RewardTermCfg(func, 1.0 / DT, params) for name, (func, params) in TERMS.items()
    }
    cfg.terminations = {
        "reference_lost": TerminationTermCfg(terminations.reference_lost, params=LOST)
    }
    env = make(5, cfg, seed=None)
    withheld = torch.tensor([False, False, False, True, False])
    motion_of(env).withhold(withheld)
    starts = {
        0: ("trot", 20),
        1: ("bound", 60),
        2: ("turn_left", 95),
        3: ("trot", 5),
        4: ("sit_to_stand", 60),
    }
    placed = start_at(env, starts)
    sums, lost, seen = env.rewards.episode_sums.clone(), [], []
    for step, action in enumerate(torch.from_numpy(random_actions(25, 5))):
        _, reward, terminated, _, _ = env.step(
            action * torch.tensor([0.0, 0.2, 0.3, 0.3, 0.5])[:, None]
        )
        values, sums = env.rewards.episode_sums - sums, env.rewards.episode_sums.clone()
        near(reward, values.sum(1), 1e-5)
        for i, (clip, first) in enumerate(placed):
            keys = key_pos(clip, first + step, 0.75, GO2.foot_names)
            heights = key_heights(clip, first + step, 0.75, GO2.foot_names)
            target = frame_of(clip, first + step + 1)
            expected = terms_by_hand(env, i, target, keys, heights)
            nearness = expected.pop("lost")
            active = {
                name: value * ((name == "free") == withheld[i].item())
                for name, value in expected.items()
            }
            near(values[i], list(active.values()), 2e-4)
            if abs(nearness - 1.0) > 1e-3:
                assert terminated[i].item() == (nearness > 1.0 and not withheld[i])
            lost.append(terminated[i].item())
            seen.append([value for value in active.values() if value])
    assert 20 < sum(lost) < 100
    assert len({round(value, 6) for values in seen for value in values}) > 300


@pytest.mark.parametrize(
    "params",
    [{"height": 0.1}, {"tilt": 0.5}, {"key_body": 0.1}, {"foot_height": 0.1}],
    ids=lambda params: "".join(params),
)
def test_each_criterion_alone_loses_the_reference(params, make):
    cfg = override(make_task_cfg(GO2_TASK), {"events.reference.params": {}})
    loose = {"height": 10.0, "tilt": 10.0, "key_body": 10.0}
    cfg.terminations = {
        "lost": TerminationTermCfg(terminations.reference_lost, params={**loose, **params})
    }
    env = make(4, cfg, seed=None)
    start_at(env, {0: ("stand", 0)})
    assert not env.step(still(env))[2].any()
    ids, sim = torch.arange(3), env.sim
    pos, quat, joints = (
        sim.root_pos_w[:3].clone(),
        sim.root_quat_w[:3].clone(),
        sim.joint_pos[:3].clone(),
    )
    pos[0, 2] += 0.3
    quat[1] = torch.tensor((np.cos(0.4), np.sin(0.4), 0.0, 0.0))
    pos[1, 2] += 0.05
    joints[2, 2::3] -= 0.6
    sim.write_root_state(ids, pos, quat, torch.zeros(3, 3), torch.zeros(3, 3))
    sim.write_joint_state(ids, joints, torch.zeros(3, 12))
    lost = env.step(still(env))[2].tolist()
    # The first robot flies, the second is tilted, the third bends its knees.
    loses = {"height": 0, "tilt": 1, "key_body": 2, "foot_height": 0}
    (criterion,) = params
    assert lost[loses[criterion]] and not lost[3]
    assert lost[0] == (criterion in ("height", "foot_height"))


def test_a_users_own_term_runs_as_it_is_written_also_where_there_is_no_reference(make):
    calls = iter(range(10**6))

    def count(env: Any) -> torch.Tensor:
        return torch.full((env.num_envs,), float(next(calls)))

    cfg = make_task_cfg(GO2_TASK)
    cfg.rewards = {"mine": RewardTermCfg(rewards.without_reference, 1.0, {"term": count})}
    env = make(2, cfg, reference_fraction=0.0)
    assert env.step(still(env))[1][0] != env.step(still(env))[1][0]


# --- starts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "robot"), [(GO2_TASK, GO2), (G1_TASK, G1_29)], ids=("go2", "g1"))
def test_robots_start_in_the_reference_and_its_key_bodies_are_where_plain_mujoco_has_them(
    task, robot, make
):
    env = make(6, task, reference_fraction=1.0)
    motion, reference = motion_of(env), motion_of(env).player.sample()
    assert len(motion.player.time.unique()) == 6
    for name in ("root_pos_w", "root_quat_w", "root_lin_vel_w", "joint_pos", "joint_vel"):
        assert torch.equal(getattr(env.sim, name), getattr(reference, name)), name
        assert torch.equal(getattr(env.robot, name), getattr(reference, name)), name
    assert torch.equal(env.robot.ang_vel_b, reference.root_ang_vel_b)
    data = mujoco.MjData(env.sim.model)
    for i in range(6):
        pose = (reference.root_pos_w[i], reference.root_quat_w[i], reference.joint_pos[i])
        data.qpos[:] = torch.cat(pose).double().numpy()
        mujoco.mj_kinematics(env.sim.model, data)
        turn = rotation(reference.root_quat_w[i].numpy())
        near(env.robot.lin_vel_b[i], reference.root_lin_vel_w[i].double().numpy() @ turn)
        near(env.robot.projected_gravity[i], -turn[2])
        base = data.body(robot.base_body).xpos
        places = np.array([data.body(name).xpos for name in motion.key_bodies]) - base
        near(env.robot.bodies(motion.key_bodies).pos_b[i], places @ turn)


def test_robots_start_on_the_very_frame_that_is_asked_for(make):
    env = make(3, seed=None)
    for i, (clip, frame) in enumerate(
        start_at(env, {0: ("trot", 37), 1: ("turn_left", 150), 2: ("bound", 104)})
    ):
        expected = frame_of(clip, frame)
        near(env.sim.root_pos_w[i], expected.pos)
        near(env.sim.root_lin_vel_w[i], expected.lin_vel_w)
        near(env.sim.root_ang_vel_b[i], expected.ang_vel)
        near(env.sim.joint_pos[i], expected.joint_pos)
        near(env.sim.joint_vel[i], expected.joint_vel)


@pytest.mark.parametrize(("joint_pos", "velocity"), [(0.1, 0.2), (2.0, 0.0)])
def test_the_noise_of_a_start_keeps_its_half_width_and_the_joints_their_limits(
    joint_pos, velocity, make
):
    cfg = make_task_cfg(GO2_TASK)
    cfg.events["reference"].params = {"joint_pos": joint_pos, "velocity": velocity}
    env = make(64, cfg, reference_fraction=1.0)
    reference, sim = motion_of(env).player.sample(), env.sim
    assert torch.equal(sim.root_pos_w, reference.root_pos_w) and torch.equal(
        sim.root_quat_w, reference.root_quat_w
    )
    assert torch.equal(sim.joint_vel, reference.joint_vel)
    low, high = env.robot.soft_joint_pos_limits(1.0)
    assert ((sim.joint_pos >= low) & (sim.joint_pos <= high)).all()
    near(torch.stack((low, high), dim=1), sim.joint_pos_limits, 1e-6)
    joints = sim.joint_pos - reference.joint_pos
    if joint_pos > 1.0:
        assert ((sim.joint_pos == low) | (sim.joint_pos == high)).any()
    else:
        free = joints[(sim.joint_pos > low) & (sim.joint_pos < high)]
        assert (
            free.abs().max() <= joint_pos + 1e-6
            and free.max() > 0.9 * joint_pos
            and free.min() < -0.9 * joint_pos
        )
    for moved in (
        sim.root_lin_vel_w - reference.root_lin_vel_w,
        sim.root_ang_vel_b - reference.root_ang_vel_b,
    ):
        assert moved.abs().max() <= velocity + 1e-6
        assert (
            velocity == 0.0 or (torch.minimum(moved.amax(0), -moved.amin(0)) > 0.8 * velocity).all()
        )


def test_robots_without_a_reference_keep_the_place_that_the_events_before_gave_them(make):
    cfg = make_task_cfg(GO2_TASK)
    placed = make(16, cfg, reference_fraction=0.5)
    del cfg.events["reference"]
    before = make(16, cfg, reference_fraction=0.5)
    free = motion_of(placed).available == 0.0
    assert 2 < free.sum() < 14
    for name in (
        "root_pos_w",
        "root_quat_w",
        "root_lin_vel_w",
        "root_ang_vel_b",
        "joint_pos",
        "joint_vel",
    ):
        same = (getattr(placed.sim, name) == getattr(before.sim, name)).all(1)
        assert same[free].all(), name
        assert name == "joint_vel" or not same[~free].any(), (
            name
        )  # a standing clip's joints are at rest too


@pytest.mark.parametrize(
    ("fraction", "low", "high"), [(0.0, 0, 0), (0.3, 50, 105), (1.0, 256, 256)]
)
def test_a_part_of_the_episodes_has_a_reference(fraction, low, high, make):
    env = make(256, reference_fraction=fraction)
    for _ in range(2):
        available = motion_of(env).available
        assert low <= available.sum() <= high
        env.reset()
    assert fraction in (0.0, 1.0) or not torch.equal(motion_of(env).available, available)


# --- masks ------------------------------------------------------------------------------------------------------------


def test_without_a_reference_there_is_none_in_observations_rewards_and_terminations(make):
    cfg = make_task_cfg(GO2_TASK)
    cfg.terminations["reference_lost"].params = {"height": -1.0}
    env = make(4, cfg, seed=None)
    free = torch.tensor([True, False, True, False])
    motion_of(env).withhold(free)
    start_at(env, {0: ("trot", 10)})
    observation = env.last_observation
    for step in range(3):
        motion = motion_of(env)
        assert torch.equal(motion.available, (~free).float())
        for group in ("reference", "critic_reference"):
            assert (
                not observation[group][free].any()
                and (observation[group][~free] != 0.0).any(1).all()
            )
        for group in ("reference_mask", "critic_reference_mask"):
            assert torch.equal(observation[group], motion.available[:, None])
        error = observation["critic"][:, columns(env, "critic", "key_error")]
        assert not error[free].any() and (error[~free] != 0.0).all()
        way = motion.target_key_pos_b - env.robot.bodies(motion.key_bodies).pos_b
        near(error[~free], 5.0 * way[~free].flatten(1), 1e-5)
        velocity = torch.cat(
            (motion.target_lin_vel_b[:, :2], motion.target_ang_vel_b[:, 2:]), dim=1
        )
        for group in ("policy", "critic"):
            command = observation[group][:, columns(env, group, "command")]
            assert torch.equal(command[free], env.commands["velocity"][free])
            assert torch.equal(command[~free], velocity[~free])
        observation, _, terminated, _, _ = env.step(still(env))
        assert torch.equal(terminated, ~free), step
    sums = dict(zip(env.rewards.names, env.rewards.episode_sums.T, strict=True))
    imitation = [name for name in sums if name.startswith("reference_")]
    assert len(imitation) == 5
    for name in imitation:
        assert not sums[name][free].any() and (sums[name][~free] > 0.0).all(), name
    for name in ("tracking_lin_vel", "tracking_ang_vel", "base_height", "orientation", "posture"):
        assert not sums[name][~free].any() and (sums[name][free] != 0.0).all(), name


def test_the_critic_sees_where_the_base_is_to_be_from_where_it_is(make, random_actions):
    env = make(2, seed=None)
    placed = start_at(env, {0: ("turn_left", 80), 1: ("trot", 96)})
    for step, action in enumerate(torch.from_numpy(random_actions(6, 2))):
        observation = env.step(action)[0]["critic_reference"]
        for i, (clip, first) in enumerate(placed):
            turn = rotation(env.sim.root_quat_w[i].numpy())
            expected = []
            for k, ahead in enumerate(WINDOW):
                coming = frame_of(clip, first + step + 1 + ahead)
                way = turn.T @ coming.turn
                sine = (
                    np.array([way[2, 1] - way[1, 2], way[0, 2] - way[2, 0], way[1, 0] - way[0, 1]])
                    / 2
                )
                cosine = np.sqrt((1 + np.trace(way)) / 4)
                place = turn.T @ (coming.pos - env.sim.root_pos_w[i].double().numpy())
                frame = window_of(clip, first + step + 1, GO2)[k * 34 : (k + 1) * 34]
                expected.append([*frame, *place, *(sine / cosine)])
            near(observation[i], np.concatenate(expected), 2e-4)


def test_actions_correct_the_reference_and_without_one_the_default_pose(make, random_actions):
    env = make(4, seed=None)
    free = torch.tensor([False, False, True, True])
    motion_of(env).withhold(free)
    placed = start_at(env, {0: ("trot", 95), 1: ("sit_to_stand", 40)})
    targets = env.sim.batch.bind("ctrl")
    for step, action in enumerate([still(env), *torch.from_numpy(random_actions(8, 4) * 1.5)]):
        env.step(action)
        for i, (clip, first) in enumerate(placed):
            centre = Q0.numpy() if free[i] else frame_of(clip, first + step + 1).joint_pos
            near(torch.from_numpy(targets[i]), centre + 0.6 * action[i].clamp(-1.0, 1.0).numpy())


def test_frames_that_are_not_valid_are_not_imitated(make):
    valid = torch.ones(101, dtype=torch.bool)
    valid[30:41] = False
    clip = dataclasses.replace(shipped_motions(GO2, "trot")[0], valid=valid)
    clip.joint_pos[30:41] = 99.0
    env = make(2, seed=None, motions=lambda robot: [clip])
    start_at(env, {0: ("trot", 25), 1: ("trot", 0)})
    motion, targets = motion_of(env), env.sim.batch.bind("ctrl")
    for step in range(20):
        expected = float(all(valid[25 + step + ahead] for ahead in WINDOW))
        assert motion.available.tolist() == [expected, 1.0], step
        assert motion.value[0].any() == bool(expected) and motion.value.abs().max() < 10.0
        observation = env.step(still(env))[0]
        assert torch.equal(torch.from_numpy(targets[0]).float(), Q0) != bool(expected)
        assert observation["reference_mask"][0] == motion.available[0]
    env = make(200, seed=0, motions=lambda robot: [clip], reference_fraction=1.0)
    frames = motion_of(env).player.time / DT
    assert ((frames <= 29.0) | (frames >= 41.0)).all()
    assert (frames < 29.0).any() and (frames > 41.0).any()


# --- hold, withhold, release ------------------------------------------------------------------------------------------


def test_starts_are_held_withheld_and_released_from_the_next_reset_on(make):
    env = make(6, reference_fraction=0.0)
    motion = motion_of(env)
    drawn = motion.player.time.clone()
    motion.pin(torch.tensor(2), torch.tensor(0.5))
    assert torch.equal(motion.player.time, drawn) and not motion.available.any()
    env.reset(options={"reset_mask": torch.arange(6) < 2})
    assert motion.player.time[:2].tolist() == [0.5, 0.5] and torch.equal(
        motion.player.time[2:], drawn[2:]
    )
    assert (
        motion.player.clip[:2].tolist() == [2, 2]
        and motion.available.tolist() == [1.0] * 2 + [0.0] * 4
    )
    clips, times = torch.arange(6), 0.1 * torch.arange(6.0)
    motion.pin(clips, times)
    motion.withhold(torch.arange(6) == 3)
    clips[:], times[:] = 7, 7.0
    env.reset()
    assert motion.player.clip.tolist() == list(range(6))
    near(motion.player.time, 0.1 * np.arange(6.0), 1e-6)
    assert motion.available.tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    motion.release()
    env.reset()
    assert not motion.available.any() and len(motion.player.time.unique()) == 6
    motion.pin(torch.tensor(1), torch.tensor(0.25))
    env.reset()
    assert motion.player.clip.tolist() == [1] * 6 and motion.player.time.tolist() == [0.25] * 6


def test_a_clip_number_that_does_not_exist_is_refused_and_the_clips_are_listed(make):
    env = make(2, clips=("trot", "stand"))
    for clip in (2, -1, 0.5):
        with pytest.raises(ValueError, match=rf"0 stand, 1 trot.*{clip}"):
            motion_of(env).pin(torch.tensor(clip), torch.tensor(0.0))
    assert motion_of(env)._pinned is None


@pytest.mark.parametrize(
    ("call", "culprit"),
    [
        (lambda motion: motion.pin(torch.zeros(()), torch.tensor(float("nan"))), r"nan"),
        (
            lambda motion: motion.pin(torch.zeros(3), torch.zeros(2)),
            r"clips of shape \(\) or \(2,\).*\(3,\)",
        ),
        (
            lambda motion: motion.pin(torch.zeros(2), torch.zeros(1)),
            r"times of shape \(\) or \(2,\).*\(1,\)",
        ),
        (lambda motion: motion.pin(torch.zeros(2), torch.tensor([0.0, float("inf")])), r"inf"),
        (lambda motion: motion.withhold(torch.ones(3, dtype=torch.bool)), r"\(2,\).*\(3,\)"),
        (lambda motion: motion.withhold(torch.ones(2)), r"bool.*float32"),
    ],
    ids=("pin nan", "pin clips", "pin times", "pin inf", "withhold shape", "withhold dtype"),
)
def test_what_is_pinned_or_withheld_must_be_of_every_environment(call, culprit, make):
    with pytest.raises((TypeError, ValueError), match=culprit):
        call(motion_of(make(2)))


# --- bad input --------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "clip": ({"commands.motion.clips": ("tort",)}, ValueError, r"'tort'.*bound.*trot"),
    "body": (
        {"commands.motion.key_bodies": ("FL_hand",)},
        ValueError,
        r"'go2'.*'FL_hand'.*FL_foot",
    ),
    "window 2": ({"commands.motion.window": (2, 4)}, ValueError, r"window.*1.*\(2, 4\)"),
    "window falls": ({"commands.motion.window": (1, 4, 2)}, ValueError, r"window.*\(1, 4, 2\)"),
    "window twice": ({"commands.motion.window": (1, 1, 2)}, ValueError, r"window.*\(1, 1, 2\)"),
    "no window": ({"commands.motion.window": ()}, ValueError, r"window.*\(\)"),
    "fraction": (
        {"commands.motion.reference_fraction": 1.5},
        ValueError,
        r"reference_fraction.*1\.5",
    ),
    "negative fraction": (
        {"commands.motion.reference_fraction": -0.1},
        ValueError,
        r"reference_fraction.*-0\.1",
    ),
    "fraction nan": (
        {"commands.motion.reference_fraction": float("nan")},
        ValueError,
        r"reference_fraction.*nan",
    ),
    "end": ({"commands.motion.end": "stop"}, ValueError, r"end.*'stop'"),
    "starts": ({"commands.motion.starts.bin_length": 0.0}, ValueError, r"bin_length.*0"),
    "action": (
        {"actions.joint_position.around": "dance"},
        ValueError,
        r"around.*'dance'.*velocity, motion",
    ),
    "robot": (
        {"commands.motion.motions": lambda robot: shipped_motions(G1_29)},
        MotionError,
        r"robot.*'go2'.*'g1_29'",
    ),
    "rates": (
        {
            "commands.motion.motions": lambda robot: [
                trot(),
                dataclasses.replace(resample(trot(), GO2, 30.0), name="slow"),
            ]
        },
        MotionError,
        r"frame_rate.*50.*resample.*30",
    ),
    "no motions": ({"commands.motion.motions": lambda robot: []}, MotionError, r"at least one"),
}


def trot() -> Motion:
    return dataclasses.replace(shipped_motions(GO2, "trot")[0], source="")


@pytest.mark.parametrize("name", WRONG)
def test_configurations_that_make_no_sense_are_refused_by_name(name):
    changes, error, culprit = WRONG[name]
    with pytest.raises(error, match=culprit):
        gym.make_vec(GO2_TASK, num_envs=2, cfg=changes)


def test_clips_to_imitate_on_rough_ground_are_refused():
    task = make_task_cfg(GO2_TASK)
    task.scene.terrain = make_task_cfg("Legged/Go2-Rough-v0").scene.terrain
    with pytest.raises(ValueError, match=r"flat ground.*scene\.terrain"):
        make_core(task, 2)
    task.commands["motion"].reference_fraction = 0.0
    make_core(task, 2).close()


def test_an_action_around_a_command_that_is_no_motion_is_refused():
    with pytest.raises(ValueError, match="velocity"):
        gym.make_vec(GO2_TASK, num_envs=2, cfg={"actions.joint_position.around": "velocity"}).reset(
            seed=0
        )


def test_a_task_without_a_motion_command_says_what_it_has(make):
    env = make(1, make_task_cfg("Legged/Go2-Flat-v0"))
    for name in ("motion", "velocity"):
        with pytest.raises(ValueError, match=f"'{name}'.*velocity"):
            motion_command(env.commands, name)


def test_feet_that_are_no_key_bodies_have_no_heights_to_imitate(make):
    cfg = make_task_cfg(GO2_TASK)
    cfg.commands["motion"].key_bodies = ("FL_calf",)
    cfg.rewards["reference_foot_height"] = RewardTermCfg(
        rewards.reference_foot_height, 1.0, {"sigma": 0.01}
    )
    with pytest.raises(ValueError, match=r"FL_foot.*key_bodies.*FL_calf"):
        env = make(2, cfg)
        env.step(still(env))


def test_commands_with_other_key_bodies_do_not_disturb_each_other(make):
    cfg = make_task_cfg(GO2_TASK)
    cfg.commands["other"] = MotionCommandCfg(key_bodies=("FL_calf",))
    env = make(3, cfg)
    for _ in range(3):
        env.step(torch.zeros(3, 12))
        for name, bodies in (("motion", GO2.foot_names), ("other", ("FL_calf",))):
            target = env.commands.terms[name]
            assert target.key_bodies == bodies
            distance = (
                (env.robot.bodies(bodies).pos_b - target.target_key_pos_b)
                .square()
                .sum((1, 2))
                .double()
                .numpy()
            )
            expected = np.exp(-distance / 0.1) * target.available.numpy()
            near(rewards.reference_key_pos(env, sigma=0.1, motion=name), expected)


# --- isolation, determinism, saved state ------------------------------------------------------------------------------


def adaptive(**fields: Any) -> dict[str, Any]:
    return {"commands.motion.starts": StartCfg(adaptive=True, **{"smoothing": 0.1, **fields})}


STRICT = {"terminations.reference_lost.params": {"height": 0.05, "tilt": 0.3, "key_body": 0.1}}
"""Random actions soon lose a reference that must be followed so closely."""


def rollout(env: Any, actions: np.ndarray) -> list[Any]:
    """Everything that steps return, but wall-clock times; environments that ended are reset where nobody else does."""
    trace = []
    for action in actions:
        observation, reward, terminated, truncated, info = copy.deepcopy(env.step(action))
        for part in (info, info.get("final_info", {})):
            if "episode" in part:
                part["episode"].pop("t", None)
        trace.append([observation, reward, terminated, truncated, info])
        ended = terminated | truncated
        if env.metadata["autoreset_mode"] is gym.vector.AutoresetMode.DISABLED and ended.any():
            trace[-1].append(copy.deepcopy(env.reset(options={"reset_mask": ended})[0]))
    return trace


def test_a_start_is_the_same_whoever_else_starts(make):
    cfg = make_task_cfg(GO2_TASK)
    together, one_by_one = (make(12, cfg, reference_fraction=0.5) for _ in range(2))
    together.reset()
    for i in (3, 11, 0, 7, 1, 2, 10, 4, 9, 5, 8, 6):
        one_by_one.reset(options={"reset_mask": torch.arange(12) == i})
    assert 2 < motion_of(together).available.sum() < 10
    for name in (
        "root_pos_w",
        "root_quat_w",
        "root_lin_vel_w",
        "root_ang_vel_b",
        "joint_pos",
        "joint_vel",
    ):
        assert torch.equal(getattr(together.sim, name), getattr(one_by_one.sim, name)), name
    for name, value in vars(motion_of(together)).items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, getattr(motion_of(one_by_one), name)), name


def test_adaptive_starts_are_the_same_for_the_same_seed(make_vec, random_actions, assert_same):
    actions = random_actions(60, 8)
    traces = []
    for seed in (1, 1, 2):
        env = make_vec(
            8, GO2_TASK, observations="dict", max_episode_steps=30, cfg={**adaptive(), **STRICT}
        )
        first = env.reset(seed=seed)[0]
        traces.append([first, rollout(env, actions)])
    assert sum(step[2].sum() for step in traces[0][1]) > 8
    assert motion_of(unwrap(env))._sampler.failures.sum() > 0.0
    assert_same(traces[0], traces[1])
    assert not np.array_equal(traces[0][0]["policy"], traces[2][0]["policy"])


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("kind", ["adaptive", "held"])
def test_a_saved_run_continues_bit_for_bit_also_in_a_fresh_environment(
    kind, mode, make_vec, random_actions, assert_same
):
    def fresh() -> Any:
        kwargs = {"autoreset_mode": mode, "observations": "dict", "max_episode_steps": 18}
        return make_vec(
            6, GO2_TASK, cfg={**adaptive(), **STRICT} if kind == "adaptive" else None, **kwargs
        )

    actions, env = random_actions(60, 6), fresh()
    if kind == "held":
        motion = motion_of(unwrap(env))
        motion.pin(torch.arange(6), 0.31 * torch.arange(6.0))
        motion.withhold(torch.arange(6) == 4)
    env.reset(seed=3)
    rollout(env, actions[:30])
    state = env.get_state()
    expected = rollout(env, actions[30:])
    for target in (env, fresh()):
        target.set_state(copy.deepcopy(state))
        assert_same(rollout(target, actions[30:]), expected)
    assert sum(step[2].sum() + step[3].sum() for step in expected) > 6


def test_a_state_saved_between_the_last_step_and_the_reset_goes_on_exactly(make_vec, assert_same):
    """The causes of ended episodes are a part of the state, since adaptive starts learn from them at the reset."""

    def fresh() -> Any:
        cfg = {**adaptive(), "terminations.reference_lost.params": {"height": -1.0}}
        return make_vec(
            4,
            GO2_TASK,
            autoreset_mode="Disabled",
            cfg={**cfg, "commands.motion.reference_fraction": 1.0},
        )

    env, other = fresh(), fresh()
    env.reset(seed=0)
    ended = env.step(np.zeros((4, 12), np.float32))[2]
    assert ended.all()
    other.set_state(env.get_state())
    for each in (env, other):
        each.reset(options={"reset_mask": ended})
    failures = [motion_of(unwrap(each))._sampler.failures for each in (env, other)]
    assert failures[0].sum() > 0.0
    assert_same(failures[0], failures[1])


def test_a_failure_counts_once_whoever_resets_next(make_vec):
    cfg = {**adaptive(), "terminations.reference_lost.params": {"height": -1.0}}
    cfg["commands.motion.reference_fraction"] = 1.0
    env = make_vec(4, GO2_TASK, autoreset_mode="Disabled", cfg=cfg)
    env.reset(seed=0)
    ended = env.step(np.zeros((4, 12), np.float32))[2]
    env.reset(options={"reset_mask": ended})
    once = motion_of(unwrap(env))._sampler.failures.sum()
    env.reset(options={"reset_mask": ended})
    assert once > 0.0
    assert motion_of(unwrap(env))._sampler.failures.sum() == once, (
        "no episode had begun, so none ended"
    )


def test_a_robot_that_fails_without_a_reference_is_no_failure_of_a_clip(make_vec):
    cfg = {**adaptive(), "terminations.fallen.params": {"max_projected_gravity": -2.0}}
    cfg |= {"terminations.fallen.grace_s": 0.0, "commands.motion.reference_fraction": 0.0}
    env = make_vec(4, GO2_TASK, cfg=cfg)
    env.reset(seed=0)
    assert env.step(np.zeros((4, 12), np.float32))[2].all()
    assert motion_of(unwrap(env))._sampler.failures.sum() == 0.0


def test_adaptive_starts_are_drawn_before_the_place_where_robots_fail(make):
    def wall(env: CoreVectorEnv) -> torch.Tensor:
        return (motion_of(env).player.time - 1.25).abs() < 0.5 * DT

    cfg = make_task_cfg(GO2_TASK)
    cfg.terminations = {"wall": TerminationTermCfg(wall)}
    early = {}
    for name in ("uniform", "adaptive"):
        starts = StartCfg(adaptive=name == "adaptive", smoothing=0.1)
        env = make(64, cfg, clips=("sit_to_stand",), starts=starts, reference_fraction=1.0)
        for step in range(70):
            terminated = env.step(still(env))[2]
            ended = terminated | (torch.arange(64) % 70 == step)
            if ended.any():
                env.reset(options={"reset_mask": ended})
        times = []
        for _ in range(4):
            env.reset()
            times.append(motion_of(env).player.time.clone())
        early[name] = (torch.cat(times) < 1.5).float().mean().item()
    # Bins of 0.5 s: the wall is in the third, so the first three are drawn to it; one start in ten stays uniform.
    assert early["uniform"] == pytest.approx(0.6, abs=0.1)
    assert early["adaptive"] == pytest.approx(0.96, abs=0.04)


# --- what users do ----------------------------------------------------------------------------------------------------


def test_bad_physics_ends_that_robot_alone_and_leaves_the_reference_finite(
    make_vec, random_actions, log_elsewhere
):
    env = make_vec(3, GO2_TASK, observations="dict")
    env.reset(seed=0)
    env.unwrapped.sim.batch.bind("qpos")[1, 3] = np.nan
    for step, action in enumerate(0.1 * random_actions(5, 3)):
        observation, reward, terminated, _, info = env.step(action)
        assert all(
            np.isfinite(rows).all() for rows in (*observation.values(), reward, info["costs"])
        )
        assert step or terminated.tolist() == [False, True, False]


def test_the_unbatched_task_passes_gymnasiums_check(make_single):
    check_env(make_single(GO2_TASK).unwrapped, skip_render_check=True)


def test_a_users_own_clip_is_imitated(make_vec, tmp_path):
    path = tmp_path / "kick.npz"
    kick = dataclasses.replace(trot(), name="kick", joint_pos=trot().joint_pos + 0.1, loop=False)
    save_motion(path, kick)
    cfg = make_task_cfg(GO2_TASK)
    cfg.commands["motion"] = MotionCommandCfg(
        motions=lambda robot: [load_motion(path, robot)], reference_fraction=1.0
    )
    env = make_vec(2, GO2_TASK, cfg=cfg)
    motion = motion_of(unwrap(env))
    assert motion.player.library.names == ("kick",)
    motion.pin(torch.tensor(0), torch.tensor(0.2))
    env.reset(seed=0)
    near(motion.target_joint_pos[0], kick.joint_pos[11])
    _, reward, *_ = env.step(np.zeros((2, 12), np.float32))
    assert np.isfinite(reward).all()


def test_clips_are_chosen_by_name_and_all_of_them_are_drawn(make_vec):
    chosen = make_vec(8, GO2_TASK, cfg={"commands.motion.clips": ("trot",)})
    assert motion_of(unwrap(chosen)).player.library.names == ("trot",)
    env = make_vec(64, GO2_TASK)
    env.reset(seed=0)
    motion = motion_of(unwrap(env))
    assert motion.player.library.names == tuple(clip.name for clip in shipped_motions(GO2))
    assert set(motion.player.clip.tolist()) == set(range(motion.player.library.num_clips))


def test_another_window_changes_the_reference_alone(make):
    short, usual = make(2, window=(1, 3)), make(2)
    sizes = [env.group_sizes for env in (short, usual)]
    assert (sizes[0]["reference"], sizes[1]["reference"]) == (2 * 34, 4 * 34)
    assert (sizes[0]["critic_reference"], sizes[1]["critic_reference"]) == (2 * 40, 4 * 40)
    for group in ("policy", "critic", "reference_mask"):
        assert torch.equal(short.last_observation[group], usual.last_observation[group])


def test_end_overrules_what_the_clips_say(make):
    for end, moves in (("hold", False), ("loop", True), ("clip", True)):
        env = make(1, seed=None, end=end)
        start_at(env, {0: ("trot", 130)})
        assert (motion_of(env).target_lin_vel_b.norm() > 0.1) == moves


def test_no_event_of_the_reference_is_needed_to_follow_it(make):
    cfg = make_task_cfg(GO2_TASK)
    del cfg.events["reference"]
    env = make(4, cfg, reference_fraction=1.0)
    assert (env.sim.root_pos_w[:, :2] == 0.0).all()
    assert (motion_of(env).available == 1.0).all()
    assert events.reset_to_reference not in [event.func for event in env.cfg.events.values()]


def test_bodies_of_the_reference_are_as_old_as_those_of_the_simulation(make_vec):
    """They are one physics step older than the control step, also after that step was changed."""
    coarse = {"sim.dt": 0.01, "sim.decimation": 2}
    changed = make_vec(4, task="Legged/Go2-Mimic-v0", array="torch").unwrapped
    made = make_vec(4, task="Legged/Go2-Mimic-v0", array="torch", cfg=coarse).unwrapped
    for env in (changed, made):
        env.reset(seed=1)
    changed.reconfigure(coarse)
    for env in (changed, made):
        motion = env.commands.terms["motion"]
        motion.player.time.fill_(0.5)
        motion.advance()
    expected = made.commands.terms["motion"].target_key_pos_b
    assert torch.equal(changed.commands.terms["motion"].target_key_pos_b, expected)

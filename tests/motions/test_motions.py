"""Reference motions: formats in, clips of our own, interpolation, starts and clip ends, against plain computations."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from legged_envs import rotation
from legged_envs.motions import (
    G1_LEVEL_BY_LEVEL,
    G1_LIMB_BY_LIMB,
    Motion,
    MotionError,
    MotionFiles,
    MotionLibrary,
    MotionPlayer,
    StartCfg,
    StartSampler,
    foot_contacts,
    inspect_motion,
    load_amp_json,
    load_beyondmimic_npz,
    load_lafan1_csv,
    load_motion,
    motion_from_coordinates,
    resample,
    save_motion,
    shipped_motions,
)
from legged_envs.motions.kinematics import angular_velocity_b, body_names, robot_model
from legged_envs.motions.shipped import FOLDER
from legged_envs.rng import RandomStreams, Stream
from legged_envs.robots import G1, G1_29, GO2, RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.sim.scene import build_scene
from tools.motions.choreography import (
    Clip,
    Plan,
    centre_of_mass,
    default_stance,
    make_motion,
    solve,
)
from tools.motions.generate import all_clips, generate
from tools.motions.gestures import Gesturing, Reach, Swing
from tools.motions.inverse_kinematics import FootIK
from tools.motions.planted import Key, Planted

CPU = torch.device("cpu")
CLIPS = {(clip.robot.name, clip.name): clip for clip in all_clips()}


# --- plain computations -----------------------------------------------------------------------------------------------


def plain_slerp(p: list[float], q: list[float], t: float) -> list[float]:
    """Shoemake's formula by the arc cosine, one rotation at a time."""
    dot = sum(a * b for a, b in zip(p, q, strict=True))
    if dot < 0.0:
        q, dot = [-b for b in q], -dot
    angle = math.acos(min(dot, 1.0))
    if angle < 1e-9:
        return p
    return [
        (math.sin((1 - t) * angle) * a + math.sin(t * angle) * b) / math.sin(angle)
        for a, b in zip(p, q, strict=True)
    ]


def matrix(quat: np.ndarray) -> np.ndarray:
    """Rotation matrix of (w, x, y, z) by MuJoCo."""
    result = np.zeros(9)
    mujoco.mju_quat2Mat(result, np.asarray(quat, dtype=float))
    return result.reshape(3, 3)


def random_quaternions(shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    quat = torch.from_numpy(np.random.default_rng(seed).normal(size=(*shape, 4)))
    return quat / torch.linalg.vector_norm(quat, dim=-1, keepdim=True)


def wandering(
    robot: RobotCfg = GO2,
    name: str = "walkabout",
    frames: int = 12,
    frame_rate: float = 50.0,
    seed: int = 0,
    **kwargs,
) -> Motion:
    """A smooth random motion that ends elsewhere, turned."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] / frame_rate
    joints = np.array(robot.default_joint_pos) + 0.2 * np.sin(
        6 * t + rng.uniform(0, 6, robot.num_joints)
    )
    pos = np.array([0.0, 0.0, robot.base_height]) + t * rng.normal(size=3) + 0.02 * np.sin(9 * t)
    quat = rotation.from_rotation_vector(torch.from_numpy(t * rng.normal(size=3)))
    return motion_from_coordinates(
        robot, name, frame_rate, torch.from_numpy(pos), quat, torch.from_numpy(joints), **kwargs
    )


def sample_all(library: MotionLibrary, clips: torch.Tensor, times: torch.Tensor) -> SimpleNamespace:
    """Base, joints and all bodies, by the names that they have in a motion."""
    bodies = {
        f"body_{field}": values
        for field, values in vars(library.sample_bodies(clips, times)).items()
    }
    return SimpleNamespace(**vars(library.sample(clips, times)), **bodies)


def stream(num_envs: int, seed: int = 0) -> Stream:
    random = RandomStreams(num_envs, CPU)
    random.seed(seed, torch.arange(num_envs))
    return random.stream("starts")


def ids(*clips: int) -> torch.Tensor:
    return torch.tensor(clips)


# --- quaternions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("size", [3.0, 1e-2, 1e-4, 0.0])
def test_slerp_equals_the_plain_formula_at_every_angle(dtype, tolerance, size):
    start = random_quaternions((40,))
    turn = rotation.from_rotation_vector(
        size * torch.from_numpy(np.random.default_rng(1).normal(size=(40, 3)))
    )
    end = rotation.multiply(start, turn) * torch.tensor([1.0, -1.0]).double().repeat(20).unsqueeze(
        1
    )
    blend = torch.linspace(0.0, 1.0, 40, dtype=torch.float64)
    expected = torch.tensor(
        [
            plain_slerp(*row)
            for row in zip(start.tolist(), end.tolist(), blend.tolist(), strict=True)
        ]
    )
    got = rotation.slerp(start.to(dtype), end.to(dtype), blend.to(dtype))
    assert torch.allclose(got.double(), expected.double(), atol=max(tolerance, 2e-8))
    assert torch.allclose(
        torch.linalg.vector_norm(got, dim=-1).double(), torch.ones(40).double(), atol=tolerance
    )


def test_products_rotations_and_logarithms_equal_mujocos():
    p, q = random_quaternions((30,), 1), random_quaternions((30,), 2)
    vectors = torch.from_numpy(np.random.default_rng(3).normal(size=(30, 3)))
    for a, b, v, product, rotated, log in zip(
        p.numpy(),
        q.numpy(),
        vectors.numpy(),
        rotation.multiply(p, q).numpy(),
        rotation.rotate(p, vectors).numpy(),
        rotation.to_rotation_vector(p).numpy(),
        strict=True,
    ):
        expected, expected_log = np.zeros(4), np.zeros(3)
        mujoco.mju_mulQuat(expected, a, b)
        mujoco.mju_quat2Vel(expected_log, a, 1.0)
        assert (
            np.allclose(product, expected)
            and np.allclose(rotated, matrix(a) @ v)
            and np.allclose(log, expected_log)
        )
    assert torch.allclose(
        rotation.from_rotation_vector(rotation.to_rotation_vector(p)),
        p * p[:, :1].sign(),
        atol=1e-12,
    )


def test_vectors_of_the_world_and_headings_are_as_the_rotation_matrix_has_them():
    """Several vectors per frame."""
    quats = random_quaternions((30,), 1).float()
    vectors = torch.from_numpy(np.random.default_rng(3).normal(size=(30, 2, 3))).float()
    turned, headings = rotation.rotate_inverse(quats, vectors), rotation.heading(quats)
    for q, rows, got, heading in zip(
        quats.numpy(), vectors.numpy(), turned.numpy(), headings.numpy(), strict=True
    ):
        turn = matrix(q)
        assert np.allclose(got, rows @ turn, atol=1e-6)
        assert heading == pytest.approx(math.atan2(turn[1, 0], turn[0, 0]), abs=1e-5)


# --- kinematics and velocities ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", [GO2, G1_29], ids=lambda robot: robot.name)
def test_body_states_equal_those_of_mj_forward(robot):
    motion = wandering(robot)
    model = build_scene(robot, SimCfg())
    assert motion.body_names == tuple(model.body(i).name for i in range(1, model.nbody))
    data = mujoco.MjData(model)
    for i in range(motion.num_frames):
        data.qpos[:] = torch.cat(
            (motion.root_pos_w[i], motion.root_quat_w[i], motion.joint_pos[i])
        ).numpy()
        data.qvel[:] = torch.cat(
            (motion.root_lin_vel_w[i], motion.root_ang_vel_b[i], motion.joint_vel[i])
        ).numpy()
        mujoco.mj_forward(model, data)
        assert np.allclose(motion.body_pos_w[i], data.xpos[1:], atol=1e-5)
        for body, quat in enumerate(motion.body_quat_w[i].numpy()):
            assert np.allclose(matrix(quat), data.xmat[body + 1].reshape(3, 3), atol=1e-5)
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body + 1, velocity, 0)
            assert np.allclose(motion.body_ang_vel_w[i, body], velocity[:3], atol=1e-4)
            assert np.allclose(motion.body_lin_vel_w[i, body], velocity[3:], atol=1e-4)


def test_velocities_that_are_not_given_are_central_differences():
    motion = wandering(frames=8)
    dt = 1.0 / motion.frame_rate
    for i in range(8):
        low, high = max(i - 1, 0), min(i + 1, 7)
        for pos, vel in (("root_pos_w", "root_lin_vel_w"), ("joint_pos", "joint_vel")):
            values = getattr(motion, pos).double().numpy()
            expected = (values[high] - values[low]) / ((high - low) * dt)
            assert np.allclose(getattr(motion, vel)[i], expected, atol=2e-4), (vel, i)
        turned = np.zeros(3)
        mujoco.mju_subQuat(turned, *(motion.root_quat_w[j].double().numpy() for j in (high, low)))
        assert np.allclose(motion.root_ang_vel_b[i], turned / ((high - low) * dt), atol=2e-4)


def test_a_constant_turn_has_its_rate_in_the_base_frame():
    rate = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    tilted = random_quaternions((1,))
    times = torch.arange(20, dtype=torch.float64).unsqueeze(1) / 30.0
    quat = rotation.multiply(tilted, rotation.from_rotation_vector(times * rate))
    assert torch.allclose(angular_velocity_b(quat, 30.0), rate.expand(20, 3), atol=1e-9)


@pytest.mark.parametrize("name", ["trot", "bound", "turn_left"])
def test_velocities_of_a_loop_are_those_of_its_repetition(name):
    """As differences within three repetitions one after the other give them, also at the seam."""
    clip = shipped_motions(GO2, name)[0]
    last = clip.num_frames - 1
    loop, again = (
        motion_from_coordinates(
            GO2, name, 50.0, m.root_pos_w, m.root_quat_w, m.joint_pos, loop=m is clip
        )
        for m in (
            clip,
            MotionLibrary([clip], GO2).sample(ids(0), torch.arange(-last, 2 * last + 1) / 50.0),
        )
    )
    for field, tolerance in (
        ("root_lin_vel_w", 1e-3),
        ("root_ang_vel_b", 1e-3),
        ("joint_vel", 1e-3),
    ):
        expected = getattr(again, field)[last : 2 * last + 1]
        assert torch.allclose(getattr(loop, field), expected, atol=tolerance), field
    assert torch.allclose(loop.body_lin_vel_w, again.body_lin_vel_w[last : 2 * last + 1], atol=2e-3)


def test_quaternions_come_out_continuous_in_sign():
    motion = wandering(frames=20)
    flipped = motion.root_quat_w * torch.tensor([1.0, -1.0]).repeat(10).unsqueeze(1)
    again = motion_from_coordinates(
        GO2, "flipped", 50.0, motion.root_pos_w, flipped, motion.joint_pos
    )
    assert torch.allclose(again.root_quat_w, motion.root_quat_w, atol=1e-6)
    assert torch.allclose(again.root_ang_vel_b, motion.root_ang_vel_b, atol=1e-3)


# --- sampling ---------------------------------------------------------------------------------------------------------

LINEAR = (
    "root_pos_w",
    "root_lin_vel_w",
    "root_ang_vel_b",
    "joint_pos",
    "joint_vel",
    "body_pos_w",
    "body_lin_vel_w",
)


def test_samples_equal_a_plain_interpolation_in_float64():
    motions = [wandering(name=f"clip {i}", frames=5 + 3 * i, seed=i) for i in range(3)]
    library = MotionLibrary(motions, GO2)
    rng = np.random.default_rng(0)
    clips = rng.integers(0, 3, 30)
    times = np.array([rng.uniform(0.0, motions[c].duration) for c in clips])
    sample = sample_all(library, torch.from_numpy(clips), torch.from_numpy(times))
    for row, (c, t) in enumerate(zip(clips, times, strict=True)):
        frame = int(t * 50.0)
        blend = t * 50.0 - frame
        for field in (*LINEAR, "body_ang_vel_w"):
            low, high = getattr(motions[c], field)[frame : frame + 2].double().numpy()
            assert np.allclose(
                getattr(sample, field)[row], (1 - blend) * low + blend * high, atol=1e-5
            ), field
        low, high = motions[c].root_quat_w[frame : frame + 2].double().tolist()
        assert np.allclose(sample.root_quat_w[row], plain_slerp(low, high, blend), atol=1e-6)
        for body in range(len(library.body_names)):
            low, high = motions[c].body_quat_w[frame : frame + 2, body].double().tolist()
            expected = plain_slerp(low, high, blend)
            assert abs(abs(np.dot(sample.body_quat_w[row, body].numpy(), expected)) - 1.0) < 1e-6
    assert sample.valid.all() and not sample.ended.any()


def test_a_time_on_a_frame_gives_that_frame_bit_for_bit():
    motion = wandering()
    sample = sample_all(MotionLibrary([motion], GO2), ids(0), torch.arange(12) * 0.02)
    for field in LINEAR:
        assert torch.equal(getattr(sample, field), getattr(motion, field)), field


def test_samples_have_the_shape_of_the_times_and_the_bodies_asked_for():
    library = MotionLibrary([wandering()], GO2)
    clips, times = ids(0, 0, 0).unsqueeze(1), torch.zeros(1, 5)
    sample = library.sample(clips, times)
    assert sample.joint_pos.shape == (3, 5, 12) and sample.valid.shape == (3, 5)
    bodies = library.sample_bodies(clips, times, library.body_ids("RL_foot", "base"))
    assert bodies.pos_w.shape == (3, 5, 2, 3) and bodies.quat_w.shape == (3, 5, 2, 4)
    assert torch.allclose(bodies.pos_w[0, 0, 1], sample.root_pos_w[0, 0])
    assert sample[1:, 2].joint_pos.shape == (2, 12)
    with pytest.raises(ValueError, match="'tail'"):
        library.body_ids("tail")


def test_a_held_clip_rests_in_its_last_pose_and_before_its_first():
    motion = wandering(frames=6)
    library = MotionLibrary([motion], GO2)
    sample = sample_all(library, ids(0), torch.tensor([-1.0, 0.08, 0.1, 0.1001, 1e6]))
    assert sample.ended.tolist() == [False, False, True, True, True]
    assert torch.equal(sample.joint_pos[[2, 3, 4]], motion.joint_pos[[5, 5, 5]])
    assert torch.equal(sample.body_quat_w[[0, 4]], motion.body_quat_w[[0, 5]])
    assert torch.equal(sample.joint_vel[2], motion.joint_vel[5])
    for field in (
        "root_lin_vel_w",
        "root_ang_vel_b",
        "joint_vel",
        "body_lin_vel_w",
        "body_ang_vel_w",
    ):
        assert not getattr(sample, field)[[0, 3, 4]].any(), field


def test_a_looped_clip_goes_on_from_where_it_ended_turn_for_turn():
    motion = wandering(frames=11, loop=True, seed=4)
    library = MotionLibrary([motion], GO2)
    pos, quat = motion.root_pos_w.double().numpy(), motion.root_quat_w.double()
    turn = rotation.twist_about_z(rotation.multiply(quat[-1], rotation.conjugate(quat[0]))).item()
    assert abs(turn) > 0.05
    turned = matrix(np.array([math.cos(turn / 2), 0.0, 0.0, math.sin(turn / 2)]))
    for cycle in (-2, 0, 1, 3):
        times = torch.tensor([0.07, 0.11]).double()
        sample = sample_all(library, ids(0), times + cycle * motion.duration)
        first = sample_all(library, ids(0), times)
        for row in range(2):
            expected = {
                field: getattr(first, field)[row].double().numpy()
                for field in (*LINEAR, "body_ang_vel_w")
            }
            orientation = matrix(first.root_quat_w[row])
            for _ in range(abs(cycle)):
                r = turned if cycle > 0 else turned.T
                for field in ("root_pos_w", "body_pos_w"):
                    start, end = (pos[0], pos[-1]) if cycle > 0 else (pos[-1], pos[0])
                    planar = (expected[field] - start) @ r.T + end
                    planar[..., 2] = expected[field][..., 2]
                    expected[field] = planar
                for field in ("root_lin_vel_w", "body_lin_vel_w", "body_ang_vel_w"):
                    expected[field] = expected[field] @ r.T
                orientation = r @ orientation
            for field, values in expected.items():
                assert np.allclose(getattr(sample, field)[row], values, atol=2e-5), (field, cycle)
            assert np.allclose(matrix(sample.root_quat_w[row]), orientation, atol=1e-5)
            assert np.allclose(matrix(sample.body_quat_w[row, 0]), orientation, atol=1e-5)
    assert not library.sample(ids(0), torch.tensor([1e3])).ended.any()


def test_the_end_of_all_clips_can_be_decided_for_them():
    clips = [wandering(name="a", loop=True), wandering(name="b")]
    assert MotionLibrary(clips, GO2).loops.tolist() == [True, False]
    assert MotionLibrary(clips, GO2, end="loop").loops.tolist() == [True, True]
    held = MotionLibrary(clips, GO2, end="hold")
    assert held.sample(ids(0, 1), torch.tensor([9.0, 9.0])).ended.tolist() == [True, True]
    with pytest.raises(ValueError, match="'stop'"):
        MotionLibrary(clips, GO2, end="stop")


def test_a_sample_is_valid_where_all_frames_it_is_made_of_are():
    valid = torch.ones(12, dtype=torch.bool)
    valid[4] = False
    library = MotionLibrary([wandering(valid=valid)], GO2)
    times = torch.tensor([2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]) / 50.0
    assert library.sample(ids(0), times).valid.tolist() == [
        True,
        True,
        False,
        False,
        False,
        True,
        True,
    ]


# --- player -----------------------------------------------------------------------------------------------------------


def test_each_environment_plays_its_own_clip_from_its_own_time():
    library = MotionLibrary(
        [wandering(name="a", loop=True), wandering(name="b", frames=21, seed=1)], GO2
    )
    player = MotionPlayer(library, 3)
    player.start(ids(0, 2), library.clip_ids("b", "a"), torch.tensor([0.1, 0.2]))
    state = player.state_dict()
    for _ in range(5):
        player.advance(0.02)
    assert player.clip.tolist() == [1, 0, 0]
    assert torch.allclose(player.phase, torch.tensor([0.5, 0.1 / 0.22, (0.3 / 0.22) % 1.0]))
    window = player.sample(torch.tensor([-0.02, 0.0, 0.04]))
    assert window.joint_pos.shape == (3, 3, 12)
    assert torch.equal(window.joint_pos[:, 1], player.sample().joint_pos)
    assert torch.equal(
        window.joint_pos[0, 2], library.sample(ids(1), torch.tensor([0.24])).joint_pos[0]
    )
    player.load_state_dict(state)
    assert torch.allclose(player.time, torch.tensor([0.1, 0.0, 0.2]).double())
    with pytest.raises(ValueError, match=r"\[2\]"):
        player.start(ids(0), ids(2), torch.zeros(1))


def test_reference_motions_need_neither_mujoco_nor_terms_until_they_are_loaded():
    """A policy's control loop imports few modules, and terms do not depend on an engine."""
    code = """
import sys
import legged_envs
sys.modules.update({"mujoco": None, "legged_envs.sim": None})
import legged_envs.motions
assert not [name for name in sys.modules if name.startswith("legged_envs.mdp")]
import legged_envs.mdp.motion_command, legged_envs.managers
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


# --- starts -----------------------------------------------------------------------------------------------------------


def test_uniform_starts_are_drawn_by_weight_and_evenly_over_valid_times_before_the_margin():
    valid = torch.ones(21, dtype=torch.bool)
    valid[5:10] = False
    library = MotionLibrary(
        [
            wandering(name="a", frames=11, weight=3.0, loop=True),
            wandering(name="b", frames=21, valid=valid),
        ],
        GO2,
    )
    sampler = StartSampler(library, StartCfg(margin=0.1, bin_length=0.05))
    clips, times = sampler.draw(stream(20000), torch.arange(20000))
    assert abs((clips == 0).double().mean() - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 20000)
    of_a, of_b = times[clips == 0].numpy(), times[clips == 1].numpy()
    assert (
        abs(of_a.mean() - 0.1) < 5 * 0.2 / math.sqrt(12 * len(of_a))
        and of_a.min() >= 0
        and of_a.max() <= 0.2
    )
    counts = np.histogram(of_b, bins=20, range=(0.0, 0.4))[0]
    usable = [
        0,
        1,
        2,
        3,
        10,
        11,
        12,
        13,
        14,
    ]  # from frames 4 to 9 on one is invalid, from 15 on the end near
    assert counts.sum() == counts[usable].sum()
    assert abs(counts[usable] - len(of_b) / 9).max() < 5 * math.sqrt(len(of_b) / 9)
    assert library.sample(clips, times).valid.all()


def test_adaptive_starts_go_where_robots_failed_and_a_little_before():
    library = MotionLibrary(
        [wandering(name="a", frames=81, loop=True), wandering(name="b", frames=41)], GO2
    )
    cfg = StartCfg(
        adaptive=True, bin_length=0.2, smoothing=0.5, uniform_fraction=0.2, bins_ahead=3, decay=0.5
    )
    sampler = StartSampler(library, cfg)
    uniform = np.array([1 / 16] * 8 + [1 / 8] * 4)
    assert np.allclose(sampler.probabilities, uniform)
    sampler.record(
        ids(0, 0, 1, 1),
        torch.tensor([1.7, 1.0, 0.7, 0.75]),
        torch.tensor([True, False, True, True]),
    )
    failures = np.array([0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.0])
    assert np.allclose(sampler.failures, failures)
    sampler.record(ids(1), torch.tensor([0.1]), torch.tensor([False]))
    failures *= 0.5
    drawn_to = np.zeros(12)
    for b in range(12):
        first, count = (0, 8) if b < 8 else (8, 4)
        for u in range(3):
            ahead = (b - first + u) % count if first == 0 else min(b - first + u, count - 1)
            drawn_to[b] += 0.5**u * failures[first + ahead]
    expected = 0.2 * uniform + 0.8 * drawn_to / drawn_to.sum()
    assert np.allclose(sampler.probabilities, expected)
    clips, times = sampler.draw(stream(20000), torch.arange(20000))
    drawn = np.bincount(sampler.bins(clips, times), minlength=12) / 20000
    assert np.allclose(drawn, expected, atol=5 * math.sqrt(0.25 / 20000))
    again = StartSampler(library, cfg)
    again.load_state_dict(sampler.state_dict())
    assert torch.equal(again.probabilities, sampler.probabilities)


def test_a_start_depends_on_its_own_environments_random_numbers_only():
    library = MotionLibrary([wandering(name="a"), wandering(name="b", frames=21)], GO2)
    sampler = StartSampler(library)
    all_clips_drawn, all_times = sampler.draw(stream(8, seed=3), torch.arange(8))
    clips, times = sampler.draw(stream(8, seed=3), ids(5, 2))
    assert torch.equal(clips, all_clips_drawn[[5, 2]]) and torch.equal(times, all_times[[5, 2]])


def test_starts_that_cannot_be_are_refused():
    library = MotionLibrary([wandering()], GO2)
    with pytest.raises(MotionError, match=r"'walkabout'.*0\.3"):
        StartSampler(library, StartCfg(margin=0.3))
    with pytest.raises(MotionError, match="weight"):
        StartSampler(MotionLibrary([wandering(weight=0.0)], GO2))
    with pytest.raises(ValueError, match=r"uniform_fraction.*0\.0"):
        StartSampler(library, StartCfg(uniform_fraction=0.0))


# --- files ------------------------------------------------------------------------------------------------------------


def random_walk(frames: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Base positions and orientations (w, x, y, z) and G1's 29 joints within their ranges, smooth in time."""
    rng = np.random.default_rng(5)
    t = np.arange(frames)[:, None] / 50.0
    low, high = robot_model(G1_29).jnt_range[1:].T
    joints = (low + high) / 2 + 0.45 * (high - low) * np.sin(4 * t + rng.uniform(0, 6, 29))
    quat = rotation.from_rotation_vector(torch.from_numpy(0.3 + t * rng.normal(size=3))).numpy()
    return np.array([0.0, 0.0, 0.8]) + t * rng.normal(size=3), quat, joints


def plain_kinematics(
    pos: np.ndarray, quat: np.ndarray, joints: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Names, positions and orientations of G1_29's bodies by mj_kinematics only."""
    model = mujoco.MjModel.from_xml_path(str(G1_29.path))
    data = mujoco.MjData(model)
    body_pos, body_quat = (
        np.zeros((len(pos), model.nbody - 1, 3)),
        np.zeros((len(pos), model.nbody - 1, 4)),
    )
    for i, qpos in enumerate(np.hstack((pos, quat, joints))):
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        body_pos[i], body_quat[i] = data.xpos[1:], data.xquat[1:]
    return tuple(model.body(i).name for i in range(1, model.nbody)), body_pos, body_quat


def lafan1_lines(frames: int = 4) -> list[str]:
    """Frame i turns by 0.1 i rad about z, and joint j is at 0.01 j + 0.001 i rad."""
    rows = []
    for i in range(frames):
        root = [0.1 * i, 0.0, 0.78, 0.0, 0.0, math.sin(0.05 * i), math.cos(0.05 * i)]
        rows.append(
            ",".join(
                f"{value:.6f}" for value in [*root, *(0.01 * j + 0.001 * i for j in range(29))]
            )
        )
    return rows


def test_lafan1_csv(tmp_path: Path):
    path = tmp_path / "walk1_subject1.csv"
    path.write_text("\n".join(lafan1_lines()) + "\n")
    motion = load_lafan1_csv(path, G1_29)
    assert (motion.name, motion.frame_rate, motion.num_frames, motion.loop) == (
        "walk1_subject1",
        30.0,
        4,
        False,
    )
    assert np.allclose(motion.root_quat_w[2], [math.cos(0.1), 0, 0, math.sin(0.1)], atol=1e-5)
    assert np.allclose(motion.joint_pos[3], [0.01 * j + 0.003 for j in range(29)], atol=1e-5)
    assert np.allclose(motion.root_lin_vel_w, [[3.0, 0.0, 0.0]] * 4, atol=1e-4)
    assert np.allclose(motion.root_ang_vel_b, [[0.0, 0.0, 3.0]] * 4, atol=1e-3)
    assert np.allclose(motion.joint_vel, 0.03, atol=1e-4)
    part = load_lafan1_csv(path, G1_29, lines=(2, 3))
    assert torch.allclose(part.joint_pos, motion.joint_pos[1:3])
    legs = load_lafan1_csv(path, G1, ignore_extra_joints=True)
    assert torch.equal(legs.joint_pos, motion.joint_pos[:, :12])


def test_bodies_of_a_lafan1_csv_are_where_mujoco_puts_them(tmp_path: Path):
    pos, quat, joints = random_walk(20)
    path = tmp_path / "dance.csv"
    np.savetxt(path, np.hstack((pos, quat[:, [1, 2, 3, 0]], joints)), delimiter=",", fmt="%.9f")
    motion = load_lafan1_csv(path, G1_29)
    names, body_pos, body_quat = plain_kinematics(pos, quat, joints)
    assert motion.body_names == names
    assert np.allclose(motion.body_pos_w, body_pos, atol=1e-6)
    assert np.allclose(abs((motion.body_quat_w.numpy() * body_quat).sum(-1)), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (2, lambda cells: cells[:-1], r"line 2.*35"),
        (3, lambda cells: [*cells, "1.0"], r"line 3.*37"),
        (
            3,
            lambda cells: [*cells[:8], "nan", *cells[9:]],
            r"line 3: column\[left_hip_roll_joint\]",
        ),
        (
            1,
            lambda cells: ["x", *cells[1:]],
            r"line 1: column\[root x\].*'x'",
        ),
        (
            2,
            lambda cells: [*cells[:-1], "1_0.002"],
            r"line 2: column\[right_wrist_yaw_joint\].*'1_0.002'",
        ),
        (
            4,
            lambda cells: [*cells[:6], "0.5", *cells[7:]],
            r"line 4: root quaternion \(x, y, z, w\)",
        ),
    ],
)
def test_errors_in_a_csv_name_file_line_and_column(tmp_path: Path, line, change, message):
    rows = lafan1_lines()
    rows[line - 1] = ",".join(change(rows[line - 1].split(",")))
    path = tmp_path / "broken.csv"
    path.write_text("\n".join(rows))
    with pytest.raises(MotionError, match=r"broken\.csv: " + message):
        load_lafan1_csv(path, G1_29)


def test_a_csv_that_is_no_utf_8_is_refused_with_its_line(tmp_path: Path):
    path = tmp_path / "latin.csv"
    path.write_bytes("\n".join([*lafan1_lines(2), "0,1°,2"]).encode("latin-1"))
    with pytest.raises(MotionError, match=r"latin\.csv: line 3: .*UTF-8"):
        load_lafan1_csv(path, G1_29)


def test_files_of_every_format_are_known_by_their_ending_and_content(tmp_path: Path):
    (tmp_path / "walk.csv").write_text("\n".join(lafan1_lines()))
    np.savez(tmp_path / "dance.npz", **beyondmimic_arrays(G1_LIMB_BY_LIMB))
    save_motion(tmp_path / "own.npz", shipped_motions(G1_29, "wave")[0])
    files = MotionFiles([tmp_path / name for name in ("walk.csv", "dance.npz", "own.npz")])
    assert [(m.name, m.frame_rate) for m in files(G1_29)] == [
        ("walk", 50.0),
        ("dance", 50.0),
        ("wave", 50.0),
    ]
    (tmp_path / "trot0.json").write_text(json.dumps(amp_content(61)))
    assert [motion.name for motion in MotionFiles((str(tmp_path / "trot0.json"),))(GO2)] == [
        "trot0"
    ]
    with pytest.raises(MotionError, match=r"kick\.bvh: .*\.npz, \.csv, .*'\.bvh'"):
        MotionFiles(("kick.bvh",))(GO2)
    for name in ("missing.npz", "missing.csv", "missing.json"):
        with pytest.raises(FileNotFoundError, match=name):
            MotionFiles((tmp_path / name,))(GO2)


def test_a_joint_that_is_named_twice_is_refused(tmp_path: Path):
    """Else the second column would be dropped."""
    (tmp_path / "g1.csv").write_text("\n".join(lafan1_lines()))
    np.savez(tmp_path / "g1.npz", **beyondmimic_arrays(G1_LIMB_BY_LIMB))
    (tmp_path / "go2.txt").write_text(
        json.dumps({**amp_content(19), "Frames": [[*f, 0.0] for f in amp_frames(19)]})
    )
    twice = (*G1_LIMB_BY_LIMB[:-1], G1_LIMB_BY_LIMB[0])
    for load in (
        lambda: load_lafan1_csv(
            tmp_path / "g1.csv", G1, joint_names=twice, ignore_extra_joints=True
        ),
        lambda: load_beyondmimic_npz(
            tmp_path / "g1.npz", G1, joint_names=twice, ignore_extra_joints=True
        ),
        lambda: load_amp_json(
            tmp_path / "go2.txt", GO2, joint_names=(*GO2.joint_names, GO2.joint_names[0])
        ),
    ):
        with pytest.raises(MotionError, match=r"(g1|go2)\..*: joint_names.*'.*'"):
            load()


def test_joints_that_do_not_match_the_robot_are_named(tmp_path: Path):
    path = tmp_path / "g1.csv"
    path.write_text("\n".join(lafan1_lines()))
    with pytest.raises(MotionError, match=r"g1\.csv: .*'g1'.*'waist_yaw_joint'.*17"):
        load_lafan1_csv(path, G1)
    with pytest.raises(MotionError, match=r"g1\.csv: .*'go2'.*left_hip_pitch_joint"):
        load_lafan1_csv(path, GO2, ignore_extra_joints=True)
    path.write_text("")
    with pytest.raises(MotionError, match=r"2 frames.* 0"):
        load_lafan1_csv(path, G1, ignore_extra_joints=True)


BODY_STATES = ("pos", "quat", "lin_vel", "ang_vel")


def beyondmimic_arrays(order: tuple[str, ...]) -> dict[str, np.ndarray]:
    """A random walk as such a file holds it: joints in ``order``, bodies without feet, velocities by differences."""
    pos, quat, joints = random_walk(12)
    names, body_pos, body_quat = plain_kinematics(pos, quat, joints)
    bodies = [i for i, name in enumerate(names) if name not in G1_29.foot_names]
    columns = [G1_29.joint_names.index(name) for name in order]
    turning = np.stack(
        [angular_velocity_b(torch.from_numpy(body_quat[:, b]), 50.0).numpy() for b in bodies],
        axis=1,
    )
    return {
        "fps": np.array([50]),
        "joint_pos": joints[:, columns].astype(np.float32),
        "joint_vel": np.gradient(joints, 0.02, axis=0)[:, columns].astype(np.float32),
        "body_pos_w": body_pos[:, bodies].astype(np.float32),
        "body_quat_w": body_quat[:, bodies].astype(np.float32),
        "body_lin_vel_w": np.gradient(body_pos[:, bodies], 0.02, axis=0).astype(np.float32),
        "body_ang_vel_w": rotation.rotate(
            torch.from_numpy(body_quat[:, bodies]), torch.from_numpy(turning)
        )
        .numpy()
        .astype(np.float32),
    }


@pytest.mark.parametrize("order", [G1_LIMB_BY_LIMB, G1_LEVEL_BY_LEVEL], ids=["mjlab", "isaac"])
def test_beyondmimic_npz(tmp_path: Path, order):
    path = tmp_path / "dance.npz"
    arrays = beyondmimic_arrays(order)
    np.savez(path, **arrays)
    motion = load_beyondmimic_npz(path, G1_29, joint_names=order)
    pos, quat, joints = random_walk(12)
    assert (motion.name, motion.frame_rate) == ("dance", 50.0)
    assert np.allclose(motion.joint_pos, joints, atol=1e-6) and np.allclose(
        motion.root_pos_w, pos, atol=1e-6
    )
    assert np.allclose(motion.joint_vel, np.gradient(joints, 0.02, axis=0), atol=1e-4)
    assert np.allclose(
        motion.root_ang_vel_b, angular_velocity_b(torch.from_numpy(quat), 50.0), atol=1e-4
    )
    names, body_pos, body_quat = plain_kinematics(pos, quat, joints)
    assert motion.body_names == names
    assert np.allclose(motion.body_pos_w, body_pos, atol=1e-5)
    assert np.allclose(abs((motion.body_quat_w.numpy() * body_quat).sum(-1)), 1.0, atol=1e-6)
    bodies = [i for i, name in enumerate(names) if name not in G1_29.foot_names]
    differences = arrays["body_lin_vel_w"][1:-1] - motion.body_lin_vel_w[1:-1, bodies].numpy()
    assert abs(differences).mean() < 0.02, "they differ by those of finite differences only"
    legs = load_beyondmimic_npz(path, G1, joint_names=order, ignore_extra_joints=True)
    assert torch.equal(legs.joint_pos, motion.joint_pos[:, :12])
    other = G1_LEVEL_BY_LEVEL if order is G1_LIMB_BY_LIMB else G1_LIMB_BY_LIMB
    with pytest.raises(
        MotionError,
        match=r"dance\.npz: frame \d+: body_pos_w .*joint_names",
    ):
        load_beyondmimic_npz(path, G1_29, joint_names=other)


def test_the_two_joint_orders_of_g1_are_of_the_same_29_joints():
    assert len(set(G1_LIMB_BY_LIMB)) == 29 and set(G1_LIMB_BY_LIMB) == set(G1_LEVEL_BY_LEVEL)
    assert G1_LIMB_BY_LIMB[:3] == (
        "left_hip_pitch_joint",
        "left_hip_roll_joint",
        "left_hip_yaw_joint",
    )
    assert G1_LIMB_BY_LIMB[12:16] == (
        "waist_yaw_joint",
        "waist_roll_joint",
        "waist_pitch_joint",
        "left_shoulder_pitch_joint",
    )
    assert G1_LEVEL_BY_LEVEL[:5] == (
        "left_hip_pitch_joint",
        "right_hip_pitch_joint",
        "waist_yaw_joint",
        "left_hip_roll_joint",
        "right_hip_roll_joint",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"body_quat_w": None}, r".*'body_quat_w'"),
        (
            {"joint_pos": np.zeros((11, 29))},
            r"joint_pos.*\(11, 29\)",
        ),
        (
            {"body_quat_w": np.full((12, 30, 4), 0.6)},
            "frame 0: body_quat_w",
        ),
        ({"fps": np.array("fifty")}, r"fps.*'fifty'"),
        (
            {
                f"body_{field}_w": np.zeros((12, 0, 4 if field == "quat" else 3))
                for field in BODY_STATES
            },
            r"body_pos_w.*12 frames of 0 bodies",
        ),
        ({"joint_vel": np.zeros(12)}, r"joint_vel.*\(12,\)"),
        ({"fps": np.array([0])}, "frame rate"),
    ],
)
def test_errors_in_an_archive_name_file_and_field(tmp_path: Path, change, message):
    arrays = {**beyondmimic_arrays(G1_LIMB_BY_LIMB), **change}
    path = tmp_path / "broken.npz"
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    with pytest.raises(MotionError, match=r"broken\.npz: " + message):
        load_beyondmimic_npz(path, G1_29)


def amp_frames(width: int) -> list[list[float]]:
    """Three frames of 19 or 61 numbers, base turned by 90° about z, moving 1 m/s ahead, that is along world y."""
    frames = []
    for i in range(3):
        root = [0.0, 0.02 * i, 0.3, 0.0, 0.0, 0.70711, 0.70711]
        joints = [0.1 * j + 0.01 * i for j in range(12)]
        feet, velocity = [9.0, 0.0, 9.0] * 4, [1.0, 0.0, 0.0, 0.1, 0.2, 0.3]
        frames.append(
            [*root, *joints, *feet, *velocity, *(float(j) for j in range(12)), *feet][:width]
        )
    return frames


def amp_content(width: int) -> dict:
    return {
        "LoopMode": "Wrap",
        "FrameDuration": 0.02,
        "EnableCycleOffsetPosition": True,
        "EnableCycleOffsetRotation": True,
        "MotionWeight": 0.5,
        "Frames": amp_frames(width),
    }


def test_amp_json_of_61_columns(tmp_path: Path):
    path = tmp_path / "trot0.txt"
    path.write_text(json.dumps(amp_content(61)))
    motion = load_amp_json(path, GO2)
    assert (motion.name, motion.loop, motion.weight) == ("trot0", True, 0.5)
    assert math.isclose(motion.frame_rate, 50.0)
    half = math.sqrt(0.5)
    assert np.allclose(motion.root_quat_w, [[half, 0, 0, half]] * 3, atol=1e-5)
    assert np.allclose(motion.root_lin_vel_w, [[0.0, 1.0, 0.0]] * 3, atol=1e-4)
    assert np.allclose(motion.root_ang_vel_b, [[0.1, 0.2, 0.3]] * 3)
    assert np.allclose(motion.joint_pos[1], [0.1 * j + 0.01 for j in range(12)], atol=1e-6)
    assert np.allclose(motion.joint_vel, [list(range(12))] * 3)
    left_first = [
        name.replace("FR", "x").replace("FL", "FR").replace("x", "FL") for name in GO2.joint_names
    ]
    swapped = load_amp_json(path, GO2, joint_names=left_first)
    assert torch.equal(swapped.joint_pos[:, :3], motion.joint_pos[:, 3:6])


def test_amp_json_whose_legs_are_in_another_order_is_recognized_by_its_feet(tmp_path: Path):
    """AMP_for_hardware's own files begin with the right front leg; a fork's of a Go1 begin with the left one."""
    content = amp_content(61)
    for frame in content["Frames"]:
        frame[7:19] = GO2.default_joint_pos
        frame[19:31] = [0.2, 0.13, -0.3, 0.2, -0.13, -0.3, -0.2, 0.13, -0.3, -0.2, -0.13, -0.3]
    path = tmp_path / "trot1.txt"
    path.write_text(json.dumps(content))
    with pytest.raises(MotionError, match=r"trot1\.txt: foot 0 .*'FR' .*joint_names"):
        load_amp_json(path, GO2)
    order = [
        f"{leg}_{joint}_joint"
        for leg in ("FL", "FR", "RL", "RR")
        for joint in ("hip", "thigh", "calf")
    ]
    motion = load_amp_json(path, GO2, joint_names=order)
    assert motion.joint_vel[0].tolist() == [
        3.0,
        4.0,
        5.0,
        0.0,
        1.0,
        2.0,
        9.0,
        10.0,
        11.0,
        6.0,
        7.0,
        8.0,
    ]


def test_amp_json_of_19_columns_has_velocities_from_differences(tmp_path: Path):
    path = tmp_path / "pace.txt"
    path.write_text(json.dumps({**amp_content(19), "LoopMode": "Clamp"}))
    motion = load_amp_json(path, GO2)
    assert not motion.loop
    assert np.allclose(motion.root_lin_vel_w, [[0.0, 1.0, 0.0]] * 3, atol=1e-4)
    assert np.allclose(motion.joint_vel, 0.5, atol=1e-4) and np.allclose(
        motion.root_ang_vel_b, 0.0, atol=1e-6
    )


def test_a_frame_duration_with_few_digits_is_a_whole_rate(tmp_path: Path):
    path = tmp_path / "trot.txt"
    path.write_text(json.dumps(amp_content(61) | {"FrameDuration": 0.01667}))
    assert load_amp_json(path, GO2).frame_rate == 60.0


@pytest.mark.parametrize("name", ["bound", "turn_left"])
def test_amp_json_of_19_columns_that_wraps_has_no_jump_in_its_velocities(tmp_path: Path, name):
    motion = shipped_motions(GO2, name)[0]
    frames = torch.cat(
        (motion.root_pos_w, motion.root_quat_w[:, [1, 2, 3, 0]], motion.joint_pos), 1
    ).tolist()
    path = tmp_path / "loop.txt"
    path.write_text(json.dumps({"LoopMode": "Wrap", "FrameDuration": 0.02, "Frames": frames}))
    loaded = load_amp_json(path, GO2, joint_names=GO2.joint_names)
    again = sample_all(MotionLibrary([loaded], GO2), ids(0), torch.tensor([loaded.duration]))
    for field in (
        "root_lin_vel_w",
        "root_ang_vel_b",
        "joint_vel",
        "body_lin_vel_w",
        "body_ang_vel_w",
    ):
        assert torch.allclose(getattr(again, field)[0], getattr(loaded, field)[-1], atol=1e-3), (
            field
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Labels": []}, r".*'Labels'"),
        ({"LoopMode": "Bounce"}, r"LoopMode.*'Bounce'"),
        ({"FrameDuration": 0.0}, "FrameDuration"),
        (
            {"EnableCycleOffsetPosition": False},
            "EnableCycleOffsetPosition",
        ),
        ({"Frames": [[0.0] * 20] * 3}, r"frame 0.*20"),
        (
            {"Frames": [*amp_content(19)["Frames"], [0.0] * 18]},
            r"frame 3.*18",
        ),
        (
            {"Frames": [[*amp_content(19)["Frames"][0][:7], math.nan, *[0.0] * 11]] * 2},
            r"frame 0: column\[FR_hip_joint\]",
        ),
        ({"Frames": []}, "Frames"),
        (
            {"Frames": [amp_frames(19)[0], [10**400] * 19]},
            r"frame 1: column\[root x\].*100",
        ),
        ({"FrameDuration": 10**400}, r"FrameDuration.*100"),
        ({"MotionWeight": 10**400}, r"MotionWeight.*100"),
    ],
)
def test_errors_in_json_name_file_frame_and_field(tmp_path: Path, change, message):
    path = tmp_path / "broken.txt"
    path.write_text(json.dumps({**amp_content(19), **change}))
    with pytest.raises(MotionError, match=r"broken\.txt: " + message):
        load_amp_json(path, GO2)


def test_our_own_files_keep_everything(tmp_path: Path):
    valid = torch.arange(12) != 3
    motion = wandering(loop=True, weight=2.0, valid=valid)
    save_motion(tmp_path / "one.npz", motion)
    again = load_motion(tmp_path / "one.npz", GO2)
    for field in ("name", "robot", "frame_rate", "loop", "weight", "joint_names", "body_names"):
        assert getattr(again, field) == getattr(motion, field), field
    for field in (*LINEAR, "root_quat_w", "body_quat_w", "body_ang_vel_w", "valid"):
        assert torch.allclose(
            getattr(again, field).float(), getattr(motion, field).float(), atol=1e-5
        ), field
    save_motion(tmp_path / "two.npz", motion)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with pytest.raises(MotionError, match=r"one\.npz: robot.*'g1'.*'go2'"):
        load_motion(tmp_path / "one.npz", G1)
    with pytest.raises(ValueError, match=r"\.npz"):
        save_motion(tmp_path / "one.npy", motion)
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(MotionError, match=r"text\.npz: "):
        load_motion(tmp_path / "text.npz", GO2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"frame_rate": np.array([50.0, 50.0])},
            r"frame_rate.*float64 of shape \(2,\)",
        ),
        ({"frame_rate": np.array("fast")}, r"frame_rate.*'fast'"),
        ({"weight": np.array("much")}, r"weight.*'much'"),
        ({"loop": np.array([True, True])}, r"loop.*bool of shape \(2,\)"),
        ({"loop": np.array("False")}, r"loop.*'False'"),
        ({"loop": np.array(0)}, r"loop.*0"),
        ({"name": np.array(["a", "b"])}, r"name.*<U1 of shape \(2,\)"),
        (
            {"joint_names": np.array("FR_hip_joint")},
            r"joint_names.*'FR_hip_joint'",
        ),
        (
            {"joint_names": np.array([*GO2.joint_names, "FR_hip_joint"])},
            r"joint_names.*'FR_hip_joint' twice",
        ),
        (
            {"root_quat_w": np.zeros((12, 4), dtype=int)},
            "frame 0: root_quat_w",
        ),
        ({"valid": np.ones(12)}, r"valid.*float64"),
    ],
)
def test_errors_in_our_own_files_name_file_and_field(tmp_path: Path, change, message):
    path = tmp_path / "broken.npz"
    save_motion(path, wandering())
    with np.load(path) as archive:
        np.savez(path, **{**archive, **change})
    with pytest.raises(MotionError, match=r"broken\.npz: " + message):
        load_motion(path, GO2)


def test_numbers_of_our_own_files_may_be_of_any_type(tmp_path: Path):
    path = tmp_path / "upright.npz"
    upright = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(12, 1)
    motion = wandering()
    save_motion(path, replace(motion, root_quat_w=upright))
    for dtype in (np.int64, np.uint8, ">f4", np.float16):
        with np.load(path) as archive:
            np.savez(
                path,
                **{**archive, "root_quat_w": upright.numpy().astype(dtype), "weight": np.array(1)},
            )
        again = load_motion(path, GO2)
        assert torch.equal(again.root_quat_w, upright) and torch.equal(
            again.joint_pos, motion.joint_pos
        )
    whole = motion_from_coordinates(
        GO2, "whole", 50.0, motion.root_pos_w, upright.long(), motion.joint_pos
    )
    assert torch.equal(whole.root_quat_w, upright)


def test_damaged_archives_are_refused_with_the_field(tmp_path: Path):
    path = tmp_path / "damaged.npz"
    save_motion(path, wandering())
    sound = path.read_bytes()
    begin = sound.index(b"joint_pos.npy") + 60
    path.write_bytes(sound[:begin] + b"\xff" * 30 + sound[begin + 30 :])
    with pytest.raises(MotionError, match=r"damaged\.npz: .*'joint_pos'"):
        load_motion(path, GO2)
    np.save(tmp_path / "single.npy", np.zeros(3))
    with pytest.raises(MotionError, match=r"single\.npy: .*single array"):
        load_motion(tmp_path / "single.npy", GO2)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("loop", "no array")
    with pytest.raises(MotionError, match=r"damaged\.npz: .*'loop'"):
        load_motion(path, GO2)
    with pytest.raises(FileNotFoundError):
        load_motion(tmp_path / "nowhere.npz", GO2)


def test_a_damaged_file_is_a_motion_error_that_names_it_wherever_it_is_damaged(tmp_path: Path):
    """Cut short, or one bit turned over, anywhere; damage that changes nothing is loaded as if it were not there."""
    sound = (FOLDER / "go2" / "stand.npz").read_bytes()
    rng, path = np.random.default_rng(0), tmp_path / "damaged.npz"
    cut = [
        sound[:length]
        for length in (0, 1, 3, 4, 30, *rng.integers(len(sound), size=60), len(sound) - 1)
    ]
    damaged = [*cut]
    for place in (
        *range(0, 32),
        *rng.integers(len(sound), size=150),
        *range(len(sound) - 100, len(sound)),
    ):
        byte = sound[place] ^ (1 << int(rng.integers(8)))
        damaged.append(sound[:place] + bytes([byte]) + sound[place + 1 :])
    refused = 0
    for i, content in enumerate(damaged):
        path.write_bytes(content)
        try:
            MotionFiles((path,))(GO2)
            assert i >= len(cut)
        except MotionError as error:
            assert str(error).startswith(f"{path}: "), error
            refused += 1
    assert refused > len(damaged) / 2


# --- bad motions ------------------------------------------------------------------------------------------------------


def test_a_motion_with_bad_numbers_names_frame_and_field():
    motion = wandering()
    joints, quat = motion.joint_pos.clone(), motion.root_quat_w.clone()
    joints[7, 2], quat[4] = math.inf, torch.tensor([1.0, 0.1, 0.0, 0.0])
    with pytest.raises(
        MotionError,
        match=r"'walkabout': frame 7: joint_pos\[FR_calf_joint\].*inf",
    ):
        replace(motion, joint_pos=joints)
    with pytest.raises(MotionError, match=r"frame 4: root_quat_w.*unit"):
        replace(motion, root_quat_w=quat)
    with pytest.raises(MotionError, match=r"joint_vel.*\(12, 12\) torch.float32.*\(11, 12\)"):
        replace(motion, joint_vel=motion.joint_vel[1:])
    with pytest.raises(MotionError, match=r"2 frames.* 1"):
        motion_from_coordinates(
            GO2, "short", 50.0, *(x[:1] for x in (motion.root_pos_w, quat, motion.joint_pos))
        )
    with pytest.raises(MotionError, match=r"frame rate.* 0"):
        replace(motion, frame_rate=0.0)


def test_clips_that_do_not_go_together_are_refused_by_name():
    slow = wandering(name="slow", frame_rate=30.0)
    with pytest.raises(
        MotionError,
        match=r"'slow': frame_rate.*50.*'walkabout'.*resample.*30",
    ):
        MotionLibrary([wandering(), slow], GO2)
    with pytest.raises(MotionError, match=r"name.*'walkabout'"):
        MotionLibrary([wandering(), wandering()], GO2)
    with pytest.raises(MotionError, match=r"robot.*'go2'"):
        MotionLibrary([wandering(G1)], GO2)
    with pytest.raises(MotionError, match="at least one motion"):
        MotionLibrary([], GO2)
    with pytest.raises(ValueError, match="'jog'"):
        MotionLibrary([wandering()], GO2).clip_ids("jog")


def test_resampling_keeps_the_course_and_closes_loops():
    motion = wandering(frames=31, frame_rate=30.0)
    finer = resample(motion, GO2, 50.0)
    assert (finer.num_frames, finer.frame_rate) == (51, 50.0)
    times = torch.linspace(0.0, 1.0, 11)
    one, other = (MotionLibrary([m], GO2).sample(ids(0), times) for m in (motion, finer))
    assert torch.allclose(one.joint_pos, other.joint_pos, atol=2e-3)
    assert torch.allclose(other.joint_pos[[0, 10]], motion.joint_pos[[0, 30]], atol=1e-6)
    MotionLibrary([wandering(name="other"), finer], GO2)
    loop = wandering(frames=31, frame_rate=30.0, loop=True)
    assert resample(loop, GO2, 50.0).num_frames == 51
    with pytest.raises(
        MotionError,
        match=r"frame rate.* 1 s .*33\.3 Hz",
    ):
        resample(loop, GO2, 33.3)


# --- the package's own clips ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("motions")
    generate(folder)
    return folder


def test_shipped_files_are_what_the_generator_makes(generated: Path):
    shipped = {path.relative_to(FOLDER) for path in FOLDER.rglob("*.npz")}
    assert shipped == {path.relative_to(generated) for path in generated.rglob("*.npz")}
    assert {str(path.with_suffix("")) for path in shipped} == {
        f"{robot}/{name}" for robot, name in CLIPS
    }
    for path in shipped:
        with np.load(FOLDER / path) as one, np.load(generated / path) as other:
            assert set(one.files) == set(other.files)
            for key in one.files:
                if one[key].dtype.kind == "f":
                    assert np.allclose(one[key], other[key], atol=2e-4 if "vel" in key else 2e-6), (
                        path,
                        key,
                    )
                else:
                    assert np.array_equal(one[key], other[key]), (path, key)
    assert sum((FOLDER / path).stat().st_size for path in shipped) < 1.5e6


@pytest.mark.parametrize("robot", [GO2, G1_29], ids=lambda robot: robot.name)
def test_robots_can_make_the_shipped_motions(robot):
    motions = shipped_motions(robot)
    model = robot_model(robot)
    for motion in motions:
        report = inspect_motion(motion, robot)
        assert not report.problems(), (motion.name, report.problems())
        low, high = model.jnt_range[1:].T
        assert (motion.joint_pos.numpy() > low).all() and (motion.joint_pos.numpy() < high).all(), (
            motion.name
        )
        assert (motion.joint_vel.abs().numpy() < np.array(robot.velocity_limits)).all(), motion.name
    MotionLibrary(motions, robot)


@pytest.mark.parametrize(("robot_name", "name"), CLIPS, ids=lambda value: value)
def test_feet_stay_where_they_stand_by_the_plan(robot_name, name):
    """The feet that the plan puts on the ground, in the frames as they come from the file."""
    clip = CLIPS[robot_name, name]
    motion = shipped_motions(clip.robot, name)[0]
    plan = clip.choreography(
        torch.arange(motion.num_frames, dtype=torch.float64) / motion.frame_rate
    )
    feet = [motion.body_names.index(foot) for foot in clip.robot.foot_names]
    stands = plan.foot_pos_w[..., 2] < clip.robot.foot_radius + 1e-9
    still = (
        stands[1:]
        & stands[:-1]
        & ((plan.foot_pos_w[1:] - plan.foot_pos_w[:-1]).norm(dim=-1) < 0.05)
    )
    moved = (motion.body_pos_w[1:, feet] - motion.body_pos_w[:-1, feet]).norm(dim=-1)
    assert still.any() and moved[still].max() < 1e-3
    assert motion.body_lin_vel_w[:, feet][stands].norm(dim=-1).median() < 5e-3
    assert torch.equal(foot_contacts(motion, clip.robot) | ~stands, torch.ones_like(stands))


@pytest.mark.parametrize(
    ("name", "pairs", "standing"),
    [
        ("trot", [(0, 3), (1, 2)], 0.5),
        ("pace", [(0, 2), (1, 3)], 0.5),
        ("bound", [(0, 1), (2, 3)], 0.4),
        ("pronk", [(0, 1), (1, 2), (2, 3)], 0.6),
    ],
)
def test_gaits_have_their_foot_pattern(name, pairs, standing):
    contacts = foot_contacts(shipped_motions(GO2, name)[0], GO2)
    for one, other in pairs:
        assert torch.equal(contacts[:, one], contacts[:, other])
    if name != "pronk":
        assert (contacts[:, pairs[0][0]] != contacts[:, pairs[1][0]]).float().mean() > 0.6
    assert abs(contacts.float().mean().item() - standing) < 0.15


def test_the_pronk_flies_on_a_parabola():
    clip = CLIPS["go2", "pronk"]
    gait = clip.choreography.gait
    times = torch.linspace(
        gait.duty * gait.period + 0.01, gait.period - 0.01, 19, dtype=torch.float64
    )
    pos, joint_pos, quat = solve(clip, times)
    mass = centre_of_mass(GO2, torch.cat((pos, quat, joint_pos), dim=1))
    assert np.allclose(
        mass.diff(n=2, dim=0) / (times[1] - times[0]) ** 2, [[0.0, 0.0, -9.81]] * 17, atol=1e-2
    )


def test_a_turn_and_a_trot_go_on_over_many_repetitions():
    motions = shipped_motions(GO2, "trot", "turn_left", "turn_right")
    library = MotionLibrary(motions, GO2)
    sample = library.sample(torch.arange(3).unsqueeze(1), torch.tensor([0.3, 20.3]))
    assert np.allclose(
        sample.root_pos_w[0, 1] - sample.root_pos_w[0, 0], [12.0, 0.0, 0.0], atol=1e-3
    )
    for row, rate in ((1, 0.8), (2, -0.8)):
        turned = rotation.twist_about_z(
            rotation.multiply(
                sample.root_quat_w[row, 1], rotation.conjugate(sample.root_quat_w[row, 0])
            )
        )
        assert math.cos(turned - rate * 20.0) > 1.0 - 1e-4
    assert torch.allclose(sample.joint_pos[:, 0], sample.joint_pos[:, 1], atol=1e-5)


def test_velocities_of_made_motions_are_those_of_their_positions():
    for motion in (
        *shipped_motions(GO2, "trot", "sit_to_stand"),
        *shipped_motions(G1_29, "march", "wave"),
    ):
        moved = motion.joint_pos.diff(dim=0) * motion.frame_rate
        between = (motion.joint_vel[1:] + motion.joint_vel[:-1]) / 2
        assert (moved - between).abs().mean() < 0.05, motion.name
        speed = motion.root_pos_w.diff(dim=0) * motion.frame_rate
        assert (
            speed - (motion.root_lin_vel_w[1:] + motion.root_lin_vel_w[:-1]) / 2
        ).abs().mean() < 0.01, motion.name


def test_slow_motions_keep_the_centre_of_mass_above_the_middle_of_the_feet():
    for robot, name in ((GO2, "sit_to_stand"), (G1_29, "squat"), (G1_29, "stand")):
        motion = shipped_motions(robot, name)[0]
        feet = [motion.body_names.index(foot) for foot in robot.foot_names]
        mass = centre_of_mass(
            robot, torch.cat((motion.root_pos_w, motion.root_quat_w, motion.joint_pos), dim=1)
        )
        assert (mass[:, :2] - motion.body_pos_w[:, feet, :2].mean(1)).abs().max() < 1e-3, name


G1_CLIPS = pytest.mark.parametrize("name", ["march", "squat", "stand", "wave"])


def soles(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the lowest points of the spheres of the soles, m. Shape: (n, 2)."""
    spheres = [g for g in range(model.ngeom) if model.geom(g).name.endswith("_collision")]
    spheres = [g for g in spheres if model.body(model.geom_bodyid[g]).name in G1_29.foot_names]
    return np.array(
        [
            data.geom_xpos[g, :2]
            for g in spheres
            if data.geom_xpos[g, 2] - model.geom_size[g, 0] < 1e-3
        ]
    )


def depth(point: np.ndarray, corners: np.ndarray) -> float:
    """How deep ``point`` is in the convex hull of ``corners``, m; negative outside."""
    angle = np.linspace(0.0, 2.0 * np.pi, 720, endpoint=False)
    directions = np.stack((np.cos(angle), np.sin(angle)))
    return float(((corners @ directions).max(0) - point @ directions).min())


def posed_states(motion: Motion):
    """Each frame of a looping motion as MuJoCo data with positions, velocities and accelerations."""
    model = mujoco.MjModel.from_xml_path(str(G1_29.path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    positions = (
        torch.cat((motion.root_pos_w, motion.root_quat_w, motion.joint_pos), 1).double().numpy()
    )
    velocities = (
        torch.cat((motion.root_lin_vel_w, motion.root_ang_vel_b, motion.joint_vel), 1)
        .double()
        .numpy()
    )
    last = motion.num_frames - 1
    for i in range(last):
        data.qpos[:], data.qvel[:] = positions[i], velocities[i]
        data.qacc[:] = (velocities[i + 1] - velocities[(i - 1) % last]) * motion.frame_rate / 2.0
        mujoco.mj_inverse(model, data)
        yield model, data


@G1_CLIPS
def test_the_ground_can_push_as_the_motion_needs(name):
    """The point where the ground would have to push, by inverse dynamics, is under the soles that stand."""
    deepest = []
    for model, data in posed_states(shipped_motions(G1_29, name)[0]):
        force, torque = data.qfrc_inverse[:3], data.xmat[1].reshape(3, 3) @ data.qfrc_inverse[3:6]
        moment = np.cross(data.xpos[1], force) + torque
        deepest.append(depth(np.array([-moment[1], moment[0]]) / force[2], soles(model, data)))
        assert force[2] > 0.5 * model.body_mass.sum() * 9.81
    assert min(deepest) > (0.004 if name == "march" else 0.06), (
        "march stands on one sole 55 mm wide"
    )


@G1_CLIPS
def test_standing_feet_are_flat_and_slow_motions_balanced(name):
    motion = shipped_motions(G1_29, name)[0]
    feet = [motion.body_names.index(foot) for foot in G1_29.foot_names]
    stands = foot_contacts(motion, G1_29)
    upward = rotation.rotate(motion.body_quat_w[:, feet], torch.tensor([0.0, 0.0, 1.0]))
    assert (1.0 - upward[stands][:, 2]).max() < 1e-6
    assert stands.any(1).all() and (stands.all() or name == "march")
    if name != "march":
        for model, data in posed_states(motion):
            assert depth(data.subtree_com[1, :2], soles(model, data)) > 0.08


@G1_CLIPS
def test_hands_stay_clear_of_the_body(name):
    """The physics has no self-collision, so only the test finds such contacts."""
    for model, data in posed_states(shipped_motions(G1_29, name)[0]):
        shapes = [g for g in range(model.ngeom) if model.geom_conaffinity[g]]
        of_arm = ("forearm", "hand")
        arms = [g for g in shapes if any(part in model.geom(g).name for part in of_arm)]
        others = [g for g in shapes if "arm" not in model.geom(g).name and g not in arms]
        assert (
            min(mujoco.mj_geomDistance(model, data, a, b, 1.0, None) for a in arms for b in others)
            > 0.03
        )


def test_a_wave_is_a_wave():
    motion = shipped_motions(G1_29, "wave")[0]
    place = {
        name: motion.body_pos_w[:, motion.body_names.index(name)] for name in motion.body_names
    }
    right, left = place["right_wrist_yaw_link"], place["left_wrist_yaw_link"]
    up = right[:, 2] > place["torso_link"][:, 2] + 0.35
    assert 2.0 < up.sum() / motion.frame_rate < 3.5 and not up[0] and not up[-1]
    assert (right[up][:, 1] < place["torso_link"][up][:, 1] - 0.2).all(), "beside the head"
    sideways = right[up].diff(dim=0)[:, 1].sign()
    assert ((sideways[1:] * sideways[:-1]) < 0).sum() >= 5, "to and fro"
    assert (left - left[0]).norm(dim=-1).max() < 0.05
    assert 0.01 < (motion.root_pos_w[:, 1].max() - motion.root_pos_w[0, 1]) < 0.05


def test_marching_lifts_the_feet_and_swings_each_arm_with_the_other_sides_knee():
    motion = shipped_motions(G1_29, "march")[0]
    place = {
        name: motion.body_pos_w[:, motion.body_names.index(name)] for name in motion.body_names
    }
    for side, other in (("left", "right"), ("right", "left")):
        assert abs(place[f"{side}_foot"][:, 2].max() - G1_29.foot_radius - 0.1) < 0.005
        hand = place[f"{side}_wrist_yaw_link"][:, 0] - place["pelvis"][:, 0]
        assert hand.max() - hand.min() > 0.15
        knee = place[f"{other}_knee_link"][:, 2]
        assert np.corrcoef(hand, knee)[0, 1] > 0.7


def test_gestures_start_and_end_where_the_plan_is():
    rest = default_stance(G1_29)
    reach = Reach({"left_elbow_joint": -0.5}, 0.2, 0.6, 1.0, 1.4)
    swing = Swing({"left_elbow_joint": 0.1, "waist_yaw_joint": -0.2}, 0.4, 0.25, during=(0.2, 1.4))
    times = torch.tensor([0.0, 0.2, 0.8, 1.4, 2.0], dtype=torch.float64)
    plan = Gesturing(Planted((Key(0.0, 0.78),), rest), G1_29, (reach, swing))(times)
    added = plan.joint_pos - rest.joint_pos
    elbow, waist = (
        G1_29.joint_names.index(joint) for joint in ("left_elbow_joint", "waist_yaw_joint")
    )
    assert np.allclose(added[:, elbow], [0, 0, -0.6, 0, 0]) and np.allclose(
        added[:, waist], [0, 0, 0.2, 0, 0]
    )
    assert added.abs().sum() == added[:, [elbow, waist]].abs().sum()
    always = Swing({"waist_yaw_joint": 1.0}, 2.0).offsets(torch.tensor([0.5, 100.5]))[
        "waist_yaw_joint"
    ]
    assert np.allclose(always, 1.0, atol=1e-4)
    with pytest.raises(ValueError, match=r"'g1'.*'left_elbow_joint'.*left_hip"):
        Gesturing(Planted((Key(0.0, 0.78),), rest), G1, (swing,))


def test_inspection_finds_what_a_robot_cannot_do():
    motion = shipped_motions(GO2, "trot")[0]
    assert not inspect_motion(motion, GO2).problems()
    feet = [motion.body_names.index(foot) for foot in GO2.foot_names]
    sliding = motion.body_pos_w.clone()
    sliding[:, feet[0], 0] += 0.002 * torch.arange(motion.num_frames)
    lower, bent = motion.root_pos_w - torch.tensor([0.0, 0.0, 0.05]), motion.joint_pos.clone()
    bent[3, 2] = -2.9
    for change, problem in (
        ({"body_pos_w": sliding}, "foot slips 2"),
        ({"root_pos_w": lower}, "50.0 mm below the ground"),
        ({"joint_pos": bent}, "FR_calf_joint is 0.177 rad outside"),
        ({"joint_vel": motion.joint_vel * 9.0}, "times its speed limit"),
        (
            {"joint_pos": motion.joint_pos + 0.01 * torch.arange(101).unsqueeze(1) / 100},
            "loop does not close",
        ),
    ):
        assert any(
            problem in found for found in inspect_motion(replace(motion, **change), GO2).problems()
        ), problem


def test_feet_out_of_reach_are_named():
    stance = default_stance(GO2)
    high = Clip("tiptoe", GO2, 0.1, Planted((Key(0.0, 0.6),), stance))
    with pytest.raises(MotionError, match=r"'go2': frame 0: '.._foot'"):
        make_motion(high)
    with pytest.raises(ValueError, match=r"0\.11 s"):
        make_motion(replace(high, duration=0.11))


ARMED = """
<mujoco model="armed">
  <worldbody>
    <body name="base" pos="0 0 0.4">
      <freejoint name="root"/>
      <geom size="0.1" contype="0" conaffinity="0"/>
      <body name="hip"><joint name="hip" axis="1 0 0" range="-1 1"/><geom size="0.02" mass="0.1"/>
        <body name="thigh"><joint name="thigh" axis="0 1 0" range="-2 2"/><geom size="0.02" mass="0.1"/>
          <body name="calf" pos="0 0 -0.25">
            <joint name="calf" axis="0 1 0" range="-2.7 0"/><geom size="0.02" mass="0.1"/>
            <body name="foot" pos="0 0 -0.25"><geom size="0.02" mass="0.1"/></body></body></body></body>
      <body name="arm" pos="0 0 0.1">
        <joint name="shoulder" axis="0 1 0" range="-3 3"/><geom size="0.02" mass="0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def test_joints_that_move_no_foot_follow_the_plan(tmp_path: Path):
    """Requirements of waving on two legs."""
    (tmp_path / "armed.xml").write_text(ARMED)
    robot = replace(
        GO2,
        name="armed",
        xml=str(tmp_path / "armed.xml"),
        joint_names=("hip", "thigh", "calf", "shoulder"),
        default_joint_pos=(0.0, 0.6, -1.2, 0.0),
        foot_names=("foot",),
        penalized_bodies=("calf",),
        termination_bodies=("base",),
        actuators=("position",) * 4,
        diagonals=(),
        mirror=(("hip", -1.0), ("thigh", 1.0), ("calf", 1.0), ("shoulder", 1.0)),
        foot_mirror=(0,),
        **{field: (1.0,) * 4 for field in ("kp", "kd", "torque_limits", "velocity_limits")},
    )
    assert body_names(robot) == ("base", "hip", "thigh", "calf", "foot", "arm")
    times = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
    wave = torch.stack(
        (*torch.tensor([[0.0], [0.6], [-1.2]]).double().expand(3, 5), torch.sin(times)), dim=1
    )
    upright = rotation.from_yaw(torch.zeros(5, dtype=torch.float64))
    plan = Plan(
        root_pos_w=torch.stack((0.02 * times, 0.0 * times, 0.4 + 0.0 * times), dim=1),
        root_quat_w=upright,
        foot_pos_w=torch.tensor([0.0, 0.0, 0.02], dtype=torch.float64).expand(5, 1, 3),
        foot_quat_w=upright.unsqueeze(1),
        joint_pos=wave,
    )
    solved = FootIK(robot).solve(
        plan.root_pos_w, plan.root_quat_w, plan.foot_pos_w, plan.foot_quat_w, plan.joint_pos
    )
    assert torch.equal(solved[:, 3], torch.sin(times)) and not torch.allclose(
        solved[0, :3], solved[4, :3], atol=1e-3
    )


def test_unknown_shipped_motions_are_named():
    with pytest.raises(ValueError, match=r"'jog'.*'go2': bound"):
        shipped_motions(GO2, "jog")
    with pytest.raises(
        ValueError,
        match=r"'g1'.*g1_29, go2",
    ):
        shipped_motions(G1)

"""Clips that are wrong as a whole are named when they are loaded; right ones are not."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch
from made_clips import walk, write_csv

from legged_envs import rotation
from legged_envs.motions import (
    MotionFiles,
    MotionLibrary,
    MotionWarning,
    inspect_motion,
    load_lafan1_csv,
    motion_from_coordinates,
    save_motion,
    shipped_motions,
    suspicions,
)
from legged_envs.motions.kinematics import robot_model
from legged_envs.motions.lowest import lowest_point
from legged_envs.robots import A1, G1_29, GO2, T1, TRON1_WF


@pytest.mark.parametrize("robot", [GO2, G1_29], ids=lambda robot: robot.name)
def test_shipped_clips_are_not_suspicious(robot):
    for motion in shipped_motions(robot):
        assert suspicions(motion, robot) == [], motion.name


def clip(rate=30.0, height=None, roll=0.0, **changes):
    """The gliding G1, lifted or rolled."""
    pos, quat, joints = (torch.from_numpy(values) for values in walk(rate))
    if height is not None:
        pos[:, 2] += height
    half = torch.tensor(roll / 2.0)
    turn = torch.tensor([math.cos(half), math.sin(half), 0.0, 0.0], dtype=torch.float64)
    quat = rotation.multiply(quat[:, [3, 0, 1, 2]], turn.expand(len(quat), 4))
    return motion_from_coordinates(G1_29, "walk", rate, pos, quat, joints, **changes)


@pytest.mark.parametrize(
    ("motion", "named"),
    [
        (clip(roll=math.pi / 2, height=-0.5), r"lies.* 90°"),
        (clip(height=0.3), r"flies.*0\.[23]\d m.*--motion\.lift -0\.[23]\d"),
        (clip(height=-0.2), r"sinks.*0\.[12]\d m.*--motion\.lift 0\.[12]\d"),
    ],
    ids=["side", "flies", "sinks"],
)
def test_what_is_wrong_is_named_with_its_size(motion, named):
    [sentence] = suspicions(motion, G1_29)
    assert re.search(named, sentence)


@pytest.mark.parametrize(
    ("turn", "named"), [(0.3, r"tilts.* 5\d°.*xyzw"), (0.02, r"moves backwards.* 0\.8 m/s.*xyzw")]
)
def test_coordinates_with_w_last_are_named(tmp_path, turn, named):
    """They are upright, whatever the order: only the way of the base tells it."""
    pos, quat, joints = walk(50.0)
    yaw = turn * np.arange(len(pos)) / 50.0
    quat[:, 2:] = np.stack([np.sin(yaw / 2.0), np.cos(yaw / 2.0)], axis=1)
    path = tmp_path / "walk.npz"
    np.savez(path, qpos=np.hstack((pos, quat, joints)), fps=50)
    with pytest.warns(MotionWarning, match=named):
        MotionFiles([path])(G1_29)
    np.savez(path, qpos=np.hstack((pos, quat[:, [3, 0, 1, 2]], joints)), fps=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MotionFiles([path])(G1_29)


def test_a_clip_of_another_order_of_joints_leaves_the_ranges():
    motion = clip()
    shuffled = replace(motion, joint_pos=motion.joint_pos.flip(1) - 1.0)
    assert any("--motion.order" in sentence for sentence in suspicions(shuffled, G1_29))


def test_velocities_of_another_rate_tell_the_rate():
    """Return frames of 60 Hz in a file that claims 30 Hz, with the velocities of 60 Hz."""
    right = clip(60.0)
    wrong = clip(60.0, joint_vel=right.joint_vel.double())
    assert suspicions(wrong, G1_29) == []
    slow = motion_from_coordinates(
        G1_29,
        "slow",
        30.0,
        right.root_pos_w,
        right.root_quat_w,
        right.joint_pos,
        joint_vel=right.joint_vel,
    )
    [sentence] = suspicions(slow, G1_29)
    assert "2.00 times" in sentence and "--motion.rate 60" in sentence


@pytest.mark.parametrize("factor", [0.0, -1.0, "shuffled"])
def test_velocities_of_other_joints_are_named(factor):
    right = clip(60.0)
    vel = right.joint_vel.double()
    vel = vel.flip(1) if factor == "shuffled" else factor * vel
    wrong = clip(60.0, joint_vel=vel)
    [sentence] = suspicions(wrong, G1_29)
    assert "do not belong to its joint positions" in sentence and "--motion.rate" not in sentence


def stepping(rate: float, played: float):
    """A Go2 that walks 1 m/s in steps of 0.3 m with sliding feet, recorded at ``rate``, read at
    ``played``."""
    trot = shipped_motions(GO2, "trot")[0]
    times = torch.arange(round(3.0 * rate), dtype=torch.float64) / rate
    pose = MotionLibrary([trot], GO2).sample(torch.zeros(1, dtype=torch.long), times)
    ahead = pose.root_pos_w.clone()
    ahead[:, 0] *= 3.0
    return motion_from_coordinates(GO2, "walk", played, ahead, pose.root_quat_w, pose.joint_pos)


def jumping(rate: float, played: float):
    """A Go2 that hops with 2 m/s: it falls as gravity has it."""
    times = np.arange(round(3.0 * rate)) / rate
    phase = np.mod(times, 1.0)
    hop = np.where(phase < 0.4077, 2.0 * phase - 4.905 * phase**2, 0.0)
    pos = np.stack([0 * times, 0 * times, GO2.base_height + hop], axis=1)
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (len(times), 1))
    joints = np.tile(np.array(GO2.default_joint_pos), (len(times), 1))
    numbers = (torch.from_numpy(values) for values in (pos, quat, joints))
    return motion_from_coordinates(GO2, "hop", played, *numbers)


def test_jumps_that_fall_slowly_tell_the_rate():
    assert suspicions(jumping(60.0, 60.0), GO2) == []
    [sentence] = suspicions(jumping(60.0, 30.0), GO2)
    assert "2.5 m/s²" in sentence and "--motion.rate 60" in sentence


def human_walk(rate: float, played: float):
    """A G1 that takes 1.8 steps of 0.6 m per s, with feet that stand and swing alternately.

    The legs are those of a compass: the hips pitch, and the other knee bends while it swings.
    """
    times = np.arange(round(4.0 * rate)) / rate
    step = 1.0 / 1.8
    leg = 0.65
    joints = np.tile(np.array(G1_29.default_joint_pos), (len(times), 1))
    reach = np.arcsin(0.3 / leg)
    for side, shift in (("left", 0.0), ("right", step)):
        phase = np.mod((times + shift) / (2.0 * step), 1.0)
        stands = phase < 0.5
        hip = np.where(stands, -reach + 4.0 * reach * phase, 3.0 * reach - 4.0 * reach * phase)
        knee = np.where(stands, 0.0, 0.9 * np.sin(np.pi * (phase - 0.5) / 0.5))
        names = G1_29.joint_names
        joints[:, names.index(f"{side}_hip_pitch_joint")] = hip - knee / 2
        joints[:, names.index(f"{side}_knee_joint")] = knee
        joints[:, names.index(f"{side}_ankle_pitch_joint")] = -hip - knee / 2
    pos = np.stack([0.6 / step * times, 0 * times, 0 * times + 0.76], axis=1)
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (len(times), 1))
    numbers = (torch.from_numpy(values) for values in (pos, quat, joints))
    return motion_from_coordinates(G1_29, "walk", played, *numbers)


def test_a_walk_at_half_its_speed_is_named():
    def about_speed(motion, robot=G1_29):
        return [text for text in suspicions(motion, robot) if "--motion.rate" in text]

    assert about_speed(human_walk(60.0, 60.0)) == []
    [sentence] = about_speed(human_walk(60.0, 30.0))
    assert "0.5 of the speed" in sentence and "--motion.rate 60" in sentence
    assert about_speed(stepping(50.0, 50.0), GO2) == []


def test_files_name_them_when_they_are_loaded(tmp_path):
    pos, quat, joints = walk()
    pos[:, 2] += 0.4
    path = write_csv(tmp_path / "high.csv", np.hstack((pos, quat, joints)))
    with pytest.warns(MotionWarning, match=r"high\.csv: it flies.*--motion\.lift"):
        MotionFiles([path], rate=30.0)(G1_29)
    with pytest.warns(MotionWarning, match=r"high\.csv: it flies"):
        load_lafan1_csv(path, G1_29)
    save_motion(tmp_path / "high.npz", clip(height=0.4))
    with pytest.warns(MotionWarning, match=r"high\.npz: it flies"):
        MotionFiles([tmp_path / "high.npz"])(G1_29)


SHAPES = """
<mujoco>
  <asset>
    <mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1  .3 .2 .1"/>
  </asset>
  <worldbody>
    <body name="base"><freejoint/><geom {shape}/>
      <body><joint name="idle"/><geom size=".01" contype="0" conaffinity="0"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize(
    "shape",
    [
        'type="sphere" size=".1"',
        'type="capsule" size=".05 .2"',
        'type="cylinder" size=".05 .2" pos=".1 0 .2" euler="20 30 0"',
        'type="ellipsoid" size=".1 .2 .3" euler="10 0 50"',
        'type="box" size=".1 .2 .3" pos="0 .1 0"',
        'type="mesh" mesh="wedge" mass="1" euler="0 40 0"',
    ],
    ids=lambda shape: shape.split('"')[1],
)
def test_lowest_points_of_every_shape_touch_the_ground(tmp_path, shape):
    """The oracle is MuJoCo's distance between the shape and a plane."""
    path = tmp_path / "shape.xml"
    path.write_text(SHAPES.format(shape=shape))
    robot = replace(
        A1,
        name=f"shape of {path}",
        xml=str(path),
        base_body="base",
        joint_names=("idle",),
        foot_names=("base",),
        penalized_bodies=(),
        termination_bodies=(),
        actuators=("position",),
        diagonals=(),
        mirror=(("idle", 1.0),),
        foot_mirror=(0,),
        **dict.fromkeys(
            ("default_joint_pos", "kp", "kd", "torque_limits", "velocity_limits"), (1.0,)
        ),
    )
    rng = np.random.default_rng(0)
    quat = rng.normal(size=(20, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    qpos = np.hstack((rng.normal(size=(20, 2)), np.full((20, 1), 2.0), quat, np.zeros((20, 1))))
    got = lowest_point(robot, torch.from_numpy(qpos))
    spec = mujoco.MjSpec.from_file(str(path))
    spec.worldbody.add_geom(
        name="ground", type=mujoco.mjtGeom.mjGEOM_BOX, size=[9, 9, 0.5], pos=[0, 0, -0.5]
    )
    model = spec.compile()
    data = mujoco.MjData(model)
    ground = model.geom("ground").id
    for row, lowest in zip(qpos, got.tolist(), strict=True):
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        other = model.body("base").geomadr[0]
        distance = mujoco.mj_geomDistance(model, data, other, ground, 9.0, None)
        assert lowest == pytest.approx(distance, abs=2e-4)


@pytest.mark.parametrize("robot", [T1, TRON1_WF, GO2], ids=lambda robot: robot.name)
def test_every_robot_is_inspected(robot):
    pos = torch.tensor([[0.0, 0.0, robot.base_height]]).repeat(5, 1)
    quat = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(5, 1)
    joints = torch.tensor(robot.default_joint_pos).repeat(5, 1)
    motion = motion_from_coordinates(robot, "stand", 50.0, pos, quat, joints)
    report = inspect_motion(motion, robot)
    model = robot_model(robot)
    assert -0.03 < report.lowest < 0.05 and model.nq == 7 + robot.num_joints

"""Motions carried over to another robot: its own back again, feet that stay, joints in range."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

pytest.importorskip("mink")
pytest.importorskip("daqp")

from made_clips import HUMAN, human_positions, walking_human, write_bvh

from legged_envs import rotation
from legged_envs.motions import (
    Motion,
    MotionError,
    inspect_motion,
    key_points_of,
    load_human,
    retarget,
    shipped_motions,
)
from legged_envs.motions.key_points import runs
from legged_envs.motions.kinematics import robot_model
from legged_envs.motions.limbs import limbs_of
from legged_envs.motions.planting import plant
from legged_envs.robots import ANYMAL_C, G1_29, GO2, H1, K1, T1, RobotCfg


def foot_slip(motion: Motion, robot: RobotCfg, points) -> float:
    """Largest distance that a planted foot moves from its mean place, m."""
    worst = 0.0
    for role, limb in limbs_of(robot).items():
        if not role.endswith("leg"):
            continue
        foot = motion.body_pos_w[:, motion.body_names.index(limb.end)]
        for first, end in runs(points.planted(role)):
            place = foot[first:end]
            worst = max(worst, (place - place.mean(0)).norm(dim=1).max().item())
    return worst


def assert_possible(motion: Motion, robot: RobotCfg) -> None:
    report = inspect_motion(motion, robot)
    assert report.joint_margin > -1e-6 and report.joint_speed < 1.01
    assert report.lowest > -0.005


def test_limbs_are_found_whatever_their_names():
    assert list(limbs_of(G1_29)) == ["left leg", "right leg", "left arm", "right arm"]
    assert limbs_of(G1_29)["left leg"].middle == "left_knee_link"
    assert limbs_of(G1_29)["right arm"].middle == "right_elbow_link"
    assert set(limbs_of(T1)) == {"left leg", "right leg", "left arm", "right arm"}
    roles = {f"{end} {side} leg" for end in ("front", "hind") for side in ("left", "right")}
    for robot in (GO2, ANYMAL_C):
        assert set(limbs_of(robot)) == roles
    assert limbs_of(GO2)["front left leg"].bodies[1:] == ("FL_calf", "FL_foot")


@pytest.mark.parametrize(("robot", "name"), [(G1_29, "march"), (GO2, "pace")])
def test_a_robots_own_motion_comes_back(robot, name):
    motion = shipped_motions(robot, name)[0]
    again = retarget(key_points_of(motion, robot), robot)
    assert (again.joint_pos - motion.joint_pos).abs().max() < 0.03
    assert (again.root_pos_w - motion.root_pos_w).abs().max() < 0.005
    assert again.loop == motion.loop and again.frame_rate == motion.frame_rate


@pytest.mark.parametrize(
    ("source", "name", "target"), [(GO2, "trot", ANYMAL_C), (G1_29, "march", T1)]
)
def test_the_feet_of_another_robot_stay_where_they_stand(source, name, target):
    motion = shipped_motions(source, name)[0]
    points = key_points_of(motion, source)
    carried = retarget(points, target)
    assert carried.robot == target.name and carried.num_frames == motion.num_frames
    assert_possible(carried, target)
    assert carried.loop
    assert foot_slip(carried, target, points) < 0.005
    lengths = [
        np.mean([sum(limb.lengths) for role, limb in limbs_of(robot).items() if "leg" in role])
        for robot in (target, source)
    ]
    travelled = [clip.root_pos_w[-1, 0] - clip.root_pos_w[0, 0] for clip in (carried, motion)]
    assert travelled[0] == pytest.approx(float(travelled[1]) * lengths[0] / lengths[1], abs=0.03)


def test_a_human_of_a_bvh_file_becomes_a_robot_that_marches(tmp_path):
    angles = walking_human()
    points = load_human(write_bvh(tmp_path / "march.bvh", angles))
    places = human_positions(angles)
    for role, joints in (
        ("left leg", ("LeftUpLeg", "LeftLeg", "LeftFoot")),
        ("right arm", ("RightArm", "RightForeArm", "RightHand")),
    ):
        expected = np.stack([places[joint] for joint in joints], axis=1)
        assert np.allclose(0.01 * points.limbs[role].numpy(), expected, atol=1e-4)
    assert points.leg_length == pytest.approx(84.0, abs=0.1)
    upright = rotation.rotate(points.base_quat_w[:1], torch.tensor([[0.0, 0.0, 1.0]]).double())
    assert upright[0, 2] > 0.99
    motion = retarget(points, G1_29)
    assert_possible(motion, G1_29)
    assert foot_slip(motion, G1_29, points) < 0.005
    names = G1_29.joint_names
    for side, human in (("left", "Left"), ("right", "Right")):
        knee = motion.joint_pos[:, names.index(f"{side}_knee_joint")].numpy()
        assert np.corrcoef(knee, angles[f"{human}Leg"])[0, 1] > 0.9
        arm = motion.joint_pos[:, names.index(f"{side}_shoulder_pitch_joint")].numpy()
        assert np.corrcoef(arm, angles[f"{human}Arm"])[0, 1] > 0.9


SPELLINGS = {
    "Biped": "Bip01 Pelvis,L Thigh,L Calf,L Foot,L Toe0,Spine,Spine1,L UpperArm,L Forearm,L Hand",
    "DAZ": "hip,lThigh,lShin,lFoot,lToe,abdomen,chest,lShldr,lForeArm,lHand",
    "OptiTrack": "Hip,LThigh,LShin,LFoot,LToe,Ab,Chest,LUArm,LFArm,LHand",
    "CMU": "root,lfemur,ltibia,lfoot,ltoes,lowerback,thorax,lhumerus,lradius,lhand",
    "Character1": "Hips,LeftUpLeg,LeftLeg,LeftFoot,LeftToeBase,Spine,Spine2,LeftArm,LeftForeArm,"
    "LeftHand",
    "Blender": "hips,thigh.L,shin.L,foot.L,toe.L,spine,chest,upper_arm.L,forearm.L,hand.L",
}
"""Program → its names of pelvis, left leg, spine and left arm, as in ``HUMAN``."""


def spelled(program: str) -> dict[str, str]:
    """Joint of ``HUMAN`` → name of the program."""
    names = SPELLINGS[program].split(",")
    left = [joint for joint in HUMAN if not joint.startswith("Right")]
    spelling = dict(zip(left, names, strict=True))
    for joint, name in list(spelling.items()):
        if joint.startswith("Left"):
            for one, other in (("Left", "Right"), ("L ", "R "), (".L", ".R")):
                name = name.replace(one, other)
            if program in ("DAZ", "CMU", "OptiTrack"):
                name = {"l": "r", "L": "R"}[name[0]] + name[1:]
            spelling[joint.replace("Left", "Right")] = name
    for joint, name in spelling.items():
        before = {"Biped": "Bip01 ", "Character1": "Character1_"}.get(program, "")
        spelling[joint] = name if name.startswith(before) else before + name
    return spelling


@pytest.mark.parametrize("program", list(SPELLINGS))
def test_a_human_is_known_by_the_names_of_many_programs(tmp_path, program):
    path = write_bvh(tmp_path / "march.bvh", walking_human(31))
    expected = load_human(path)
    lines = path.read_text().splitlines()
    spelling = spelled(program)
    for number, line in enumerate(lines):
        kind, _, joint = line.strip().partition(" ")
        if kind in ("ROOT", "JOINT"):
            lines[number] = f"{kind} {spelling[joint]}"
    path.write_text("\n".join(lines))
    points = load_human(path)
    assert points.limbs.keys() == expected.limbs.keys()
    for role, positions in expected.limbs.items():
        assert torch.equal(points.limbs[role], positions)


@pytest.mark.parametrize("up", [1, 2])
def test_joints_of_a_body_model_are_the_same_human(tmp_path, up):
    """As an archive in the order of SMPL, in m, with y or z up."""
    places = human_positions(walking_human(31))
    order = [
        "Hips", "LeftUpLeg", "RightUpLeg", "Spine", "LeftLeg", "RightLeg", "Spine", "LeftFoot",
        "RightFoot", "Spine2", "LeftToe", "RightToe", "Spine2", "LeftArm", "RightArm", "Spine2",
        "LeftArm", "RightArm", "LeftForeArm", "RightForeArm", "LeftHand", "RightHand",
    ]  # fmt: skip
    joints = np.stack([places[name] for name in order], axis=1)
    if up == 1:
        joints = joints[..., [1, 2, 0]]
    np.savez(tmp_path / "march.npz", joints=joints, fps=30)
    points = load_human(tmp_path / "march.npz")
    assert points.leg_length == pytest.approx(0.84, abs=1e-3) and points.frame_rate == 30.0
    assert (points.limbs["left leg"][:, 0, 2] > 0.8).all()
    assert set(HUMAN) >= set(order)


def test_damaged_joints_of_a_body_model_are_named(tmp_path):
    joints = np.random.default_rng(0).normal(size=(12, 22, 3))
    joints[10, 7, 1] = np.nan
    np.savez(tmp_path / "march.npz", joints=joints, fps=30)
    with pytest.raises(MotionError, match=r"march\.npz: joints: frame 10: left_ankle .*nan"):
        load_human(tmp_path / "march.npz")
    np.savez(tmp_path / "march.npz", joints=np.zeros((12, 22, 3)), fps=30)
    with pytest.raises(MotionError, match=r"march\.npz: lengths of the left leg .*above 0"):
        load_human(tmp_path / "march.npz")


@pytest.mark.parametrize("robot", [G1_29, H1, T1, K1], ids=lambda robot: robot.name)
def test_arms_have_the_directions_of_the_humans_arms(tmp_path, robot):
    """Also of robots whose last body is the whole forearm: H1, T1 and K1."""
    angles = walking_human(13)
    for side in ("Left", "Right"):
        angles[f"{side}ForeArm"] = np.linspace(-20.0, -70.0, 13)
    points = load_human(write_bvh(tmp_path / "march.bvh", angles))
    motion = retarget(points, robot)
    carried = key_points_of(motion, robot)
    for role in ("left arm", "right arm"):
        wanted = torch.nn.functional.normalize(points.limbs[role].diff(dim=1), dim=2)
        got = torch.nn.functional.normalize(carried.limbs[role].diff(dim=1), dim=2)
        degrees = torch.rad2deg(torch.acos((wanted * got).sum(2).clamp(-1.0, 1.0)))
        assert degrees.max() < 20.0


@pytest.mark.parametrize("robot", [G1_29, H1], ids=lambda robot: robot.name)
def test_knees_of_a_human_that_stretches_its_legs_do_not_bend_backwards(tmp_path, robot):
    """The model's knees could, by 5° to 15°."""
    points = load_human(write_bvh(tmp_path / "march.bvh", walking_human(31)))
    # Feet that are out of reach stretch the legs.
    for role in ("left leg", "right leg"):
        points.limbs[role][:, :2, 2] += 4.0
    motion = retarget(points, robot)
    model = robot_model(robot)
    for role in ("left leg", "right leg"):
        [knee] = model.body(limbs_of(robot)[role].middle).jntadr
        assert model.jnt_range[knee, 0] < 0.0
        assert motion.joint_pos[:, knee - 1].min() > -1e-6


def test_a_planted_foot_is_at_one_place_and_none_is_below_the_ground():
    times = np.linspace(0.0, 1.0, 21)
    foot = np.stack([times, 0 * times, 0.1 * np.sin(2 * np.pi * times)], axis=1)
    planted = torch.zeros(21, dtype=torch.bool)
    planted[:6] = True
    planted[15:] = True
    path = plant(foot, planted, 0.02)
    for part in (path[:6], path[15:]):
        assert np.ptp(part[:, :2], axis=0).max() == 0.0 and np.allclose(part[:, 2], 0.02)
    assert path[:, 2].min() >= 0.02 and abs(np.diff(path[:, 0])).max() < 0.3
    assert np.allclose(plant(foot + 1.0, ~planted & planted, 0.02), foot + 1.0)


def test_a_robot_with_other_legs_is_refused():
    points = key_points_of(shipped_motions(GO2, "trot")[0], GO2)
    with pytest.raises(MotionError, match=r"'trot'.*left leg.*'g1_29'"):
        retarget(points, G1_29)


@pytest.mark.parametrize("rate", [0.0, -30.0, float("nan")])
def test_a_rate_that_is_none_is_refused(tmp_path, rate):
    np.savez(tmp_path / "march.npz", joints=np.ones((5, 22, 3)), fps=rate)
    with pytest.raises(MotionError, match="march"):
        load_human(tmp_path / "march.npz")


@pytest.mark.parametrize("step", ["nan", "1e-320", "inf", "0"])
def test_a_step_without_a_rate_is_refused(tmp_path, step):
    write_bvh(tmp_path / "walk.bvh", walking_human(31))
    text = (tmp_path / "walk.bvh").read_text()
    (tmp_path / "walk.bvh").write_text(re.sub("Frame Time: .*", f"Frame Time: {step}", text))
    with pytest.raises(MotionError, match="positive Frame Time"):
        load_human(tmp_path / "walk.bvh")

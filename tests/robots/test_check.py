"""``legged-envs check``: its numbers against MuJoCo, drafts of robots that are not in the package, and bad models."""

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest

import legged_envs
from legged_envs import cli
from legged_envs.robot_check import Report, raise_gains
from legged_envs.robots import GO2, ROBOTS, RobotCfg
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.robot import counterpart
from legged_envs.sim import gains
from legged_envs.sim.gains import check_gains, settle
from legged_envs.tasks import TASKS
from legged_envs.tasks.velocity import velocity_task

# --- Models that are not in the package -------------------------------------------------------------------------------


def link(name: str, mass: float, *shapes: str, middle: str = "0 0 -0.1") -> str:
    inertia = 'ixx="{0}" iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"'.format(0.005 * mass)
    own = (
        f'<inertial><origin xyz="{middle}"/><mass value="{mass}"/><inertia {inertia}/></inertial>'
        if mass
        else ""
    )
    return f'<link name="{name}">{own}{"".join(f"<collision>{shape}</collision>" for shape in shapes)}</link>'


def shape(kind: str, place: str = "0 0 0") -> str:
    return f'<origin xyz="{place}"/><geometry><{kind}/></geometry>'


def joint(name: str, parent: str, child: str, place: str, axis: str = "", limit: str = "") -> str:
    kind = "revolute" if axis else "fixed"
    moves = f'<axis xyz="{axis}"/><limit {limit}/>' if axis else ""
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{place}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{moves}</joint>\n'


def quadruped() -> str:
    """14 kg on legs of 0.2 and 0.2 m, whose knees cannot be straight, with parts that MuJoCo ignores."""
    text = link("trunk", 8.0, shape('box size="0.4 0.2 0.1"'), middle="0 0 0") + link(
        "imu_link", 0.0
    )
    text += joint("imu_fixed", "trunk", "imu_link", "0 0 0.02")
    shank = shape('cylinder radius="0.015" length="0.16"', "0 0 -0.1")
    for leg, x, y in (("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1)):
        text += (
            link(f"{leg}_hip", 0.5)
            + link(f"{leg}_thigh", 0.5, shank)
            + link(f"{leg}_calf", 0.5, shank)
        )
        text += link(f"{leg}_foot", 0.0, shape('sphere radius="0.02"'))
        drive = 'effort="30" velocity="18"'
        hip, thigh = f"{0.2 * x} {0.08 * y} 0", f"0 {0.06 * y} 0"
        text += joint(
            f"{leg}_hip_joint",
            "trunk",
            f"{leg}_hip",
            hip,
            "1 0 0",
            f'lower="-0.8" upper="0.8" {drive}',
        )
        text += joint(
            f"{leg}_thigh_joint",
            f"{leg}_hip",
            f"{leg}_thigh",
            thigh,
            "0 1 0",
            f'lower="-1" upper="3" {drive}',
        )
        knee = f'lower="-2.6" upper="-0.4" {drive}'
        text += joint(f"{leg}_calf_joint", f"{leg}_thigh", f"{leg}_calf", "0 0 -0.2", "0 1 0", knee)
        text += joint(f"{leg}_foot_fixed", f"{leg}_calf", f"{leg}_foot", "0 0 -0.2")
    ignored = (
        '<transmission name="motor"><type>simple</type></transmission><gazebo reference="trunk"/>'
    )
    return f'<robot name="dog">{text}{ignored}</robot>'


def biped() -> str:
    """21.6 kg; the axes of hips and knees point outwards, and one motor has no speed."""
    text = link("pelvis", 10.0, shape('box size="0.15 0.2 0.3"', "0 0 0.1"), middle="0 0 0.1")
    bone = shape('cylinder radius="0.03" length="0.2"', "0 0 -0.15")
    drive = 'lower="-1" upper="1" effort="80" velocity="12"'
    for side, y in (("left", 1), ("right", -1)):
        parts = {"hip": 1.0, "thigh": 2.0, "shin": 1.5, "ankle": 0.5, "arm": 0.8}
        sole = shape('box size="0.2 0.08 0.03"', "0.03 0 -0.04")
        shapes = {"thigh": bone, "shin": bone, "arm": bone, "ankle": sole}
        for part, mass in parts.items():
            text += link(f"{side}_{part}_link", mass, *([shapes[part]] if part in shapes else []))
        hip, knee, arm = f"0 {0.1 * y} -0.05", "0 0 -0.3", f"0 {0.18 * y} 0.25"
        text += joint(f"{side}_hip_roll", "pelvis", f"{side}_hip_link", hip, f"{y} 0 0", drive)
        text += joint(
            f"{side}_hip_pitch", f"{side}_hip_link", f"{side}_thigh_link", "0 0 0", "0 1 0", drive
        )
        text += joint(
            f"{side}_knee", f"{side}_thigh_link", f"{side}_shin_link", knee, f"0 {y} 0", drive
        )
        text += joint(
            f"{side}_ankle", f"{side}_shin_link", f"{side}_ankle_link", knee, "0 1 0", drive
        )
        limit = 'lower="-2" upper="2" effort="15"'
        text += joint(f"{side}_shoulder", "pelvis", f"{side}_arm_link", arm, "0 0 1", limit)
    return f'<robot name="man">{text}</robot>'


def scene() -> str:
    """An MJCF as others write it: ground, light, motors, a sensor, a keyframe, and shanks whose lower ends are feet."""
    legs = ""
    for leg, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("hl", -0.2, 0.1), ("hr", -0.2, -0.1)):
        bone = '<geom type="capsule" size=".015" fromto="0 0 0 0 0 -.2"/>'
        shin = f'<joint name="{leg}_kn" axis="0 1 0" range="-150 -10"/>{bone}'
        thigh = f'<joint name="{leg}_hy" axis="0 1 0" range="-90 90"/>{bone}'
        legs += f"""<body name="{leg}_hip" pos="{x} {y} 0"><joint name="{leg}_hx" axis="1 0 0" range="-45 45"/>
          <geom type="capsule" size=".03" fromto="0 0 0 0 {y / 2} 0"/>
          <body name="{leg}_uleg" pos="0 {y / 2} 0">{thigh}
            <body name="{leg}_lleg" pos="0 0 -.2">{shin}</body></body></body>"""
    motors = "".join(
        f'<position joint="{leg}_{part}" kp="60" forcerange="-40 40"/>'
        for leg in ("fl", "fr", "hl", "hr")
        for part in ("hx", "hy", "kn")
    )
    return f"""<mujoco model="spot"><worldbody><light pos="0 0 3"/><geom name="floor" type="plane" size="0 0 1"/>
      <body name="trunk" pos="0 0 .5"><freejoint name="floating"/><site name="imu_site"/>
        <geom type="box" size=".25 .1 .05" mass="10"/>
        <geom type="sphere" size=".06" pos=".3 0 0" contype="0" conaffinity="0" mass="0"/>{legs}</body></worldbody>
      <actuator>{motors}</actuator><sensor><framequat objtype="site" objname="imu_site"/></sensor>
      <keyframe><key name="down" qpos="0 0 .1 1 0 0 0 {"0 1.2 -2.4 " * 4}"/>
      <key name="home" qpos="0 0 .4 1 0 0 0 {"0 .6 -1.2 " * 4}"/></keyframe></mujoco>"""


MODELS = {"dog.urdf": quadruped, "man.urdf": biped, "spot.xml": scene}


def check(words: str, capsys: pytest.CaptureFixture[str], status: int) -> str:
    """What the command prints, which ends with ``status``; an error without its beginning."""
    try:
        cli.main(["check", *words.split()])
        ended = 0
    except SystemExit as stop:
        ended = stop.code
    printed = capsys.readouterr()
    assert ended == status, printed
    return printed.out if status < 2 else printed.err.removeprefix("legged-envs: error: ")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models, which is the working directory and where modules are imported from."""
    for name, model in MODELS.items():
        (tmp_path / name).write_text(model())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


# --- The report -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_robots_of_the_package_have_no_problems(robot: RobotCfg) -> None:
    assert Report(robot, {}).problems == []


def test_the_numbers_are_those_of_plain_mujoco() -> None:
    model = mujoco.MjModel.from_xml_path(str(GO2.path))
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, 0.0, GO2.base_height, 1.0, 0.0, 0.0, 0.0, *GO2.default_joint_pos]
    mujoco.mj_forward(model, data)
    masses, joints, stance, feet = (table[2] for table in Report(GO2, {}).tables[:4])
    assert [mass for _, mass in masses] == pytest.approx(
        [
            model.body("base").mass[0],
            *(model.body(f"{leg}_hip").subtreemass[0] for leg in ("FR", "FL", "RR", "RL")),
        ]
    )
    assert sum(mass for _, mass in masses) == pytest.approx(15.20641, abs=1e-4)
    for i, row in enumerate(joints):
        low, high = model.jnt_range[1 + i]
        numbers = (low, high, GO2.default_joint_pos[i], GO2.kp[i], GO2.kd[i], GO2.torque_limits[i])
        assert row[:7] == pytest.approx((GO2.joint_names[i], *numbers))
        assert float(row[8]) == pytest.approx(min(row[3] - low, high - row[3]), abs=1e-3)
    for foot, low, uneven, origin in feet:
        height = data.body(foot).xpos[2] - model.geom(f"{foot}_collision").size[0]
        assert (float(low), float(uneven), float(origin)) == pytest.approx(
            (height, 0.0, 0.022), abs=1e-4
        )
    assert dict(stance)["at which it touches the ground, m"] == pytest.approx(
        GO2.base_height, abs=1e-4
    )
    assert 0.01 < dict(stance)["sinks by, m"] < 0.04


def test_torques_that_carry_the_robot_balance_what_its_joints_give_way() -> None:
    """At rest a servo's torque is kp times its error, and the engine's solution is that of statics."""
    sinks, sag, load = settle(GO2)
    np.testing.assert_allclose(load * GO2.torque_limits, np.multiply(GO2.kp, abs(sag)), atol=0.05)
    assert settle(replace(GO2, kp=(400.0,) * 12, kd=(10.0,) * 12))[0] < 0.5 * sinks


def test_shapes_that_overlap_are_listed_but_not_those_of_neighbours() -> None:
    crossed = replace(
        GO2, default_joint_pos=(0.9, 0.8, -1.5, -0.9, 0.8, -1.5, *GO2.default_joint_pos[6:])
    )
    pairs = [{row[0], row[1]} for row in Report(crossed, {}).tables[4][2]]
    assert pairs and all(
        any("FR" in body for body in pair) and any("FL" in body for body in pair) for pair in pairs
    )


def _change(field: str, value: Any, i: int = 0) -> dict[str, Any]:
    values = list(getattr(GO2, field))
    values[i] = value
    return {field: tuple(values)}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_change("default_joint_pos", 1.047), "default_joint_pos of 'FR_hip_joint', 1.047, is at an end of -1.0472 to"),
        ({"kp": (5.0,) * 12}, r"kp of 'FR_calf_joint': it sags by .* write (2[5-9]|[3-9]\d)"),
        ({"kp": (5.0,) * 12}, r"kp: the robot sinks by .*: for legs write about 25, 2 m g base_height / feet"),
        ({"torque_limits": (0.5,) * 12}, "kp: the robot sinks by .*: see torque_limits"),
        ({"kp": (5.0,) * 12}, "the robot sinks by 0.2.* m"),
        (_change("torque_limits", 2.0, 2), "torque_limits of 'FR_calf_joint': .*% of 2 N m to stand"),
        ({"base_height": 0.36}, "foot 'FR_foot' is 0.025 m above the ground"),
        ({"foot_radius": 0.05}, "foot_radius: the origin of 'FR_foot' is at 0.0220 m"),
        ({"mirror": tuple((name, 1.0) for name, _ in GO2.mirror)}, "mirror of 'FR_hip_joint' .* sign -1"),
        ({"penalized_bodies": ("FR_hip",)}, "'FR_hip' has no collision shape: take it out, or give it one in go2.xml"),
        ({"foot_names": GO2.foot_names[:2], "foot_mirror": (1, 0), "diagonals": ()}, "'RR_foot', not a foot, is -?0.000"),
    ],
)  # fmt: skip
def test_a_problem_says_which_where_and_what_to_write(change: dict[str, Any], problem: str) -> None:
    report = Report(replace(GO2, **change), {})
    assert any(re.search(problem, each) for each in report.problems), report.problems
    assert all(each in str(report) for each in report.problems)


def test_feet_that_would_catch_on_rough_ground_are_seen(tmp_path: Path) -> None:
    text = (Path(legged_envs.__file__).parent / "robots" / GO2.xml).read_text()
    (tmp_path / "go2.xml").write_text(
        text.replace('type="sphere" size="0.022"/>', 'type="sphere" size="0.005"/>')
    )
    robot = replace(
        GO2, xml=str(tmp_path / "go2.xml"), foot_radius=0.005, base_height=GO2.base_height - 0.017
    )
    (wrong, *_) = Report(robot, {}).problems
    assert wrong.startswith(
        "foot 'FR_foot' has a ball or capsule of radius 0.005 m; smaller than 15 mm it catches on"
    )
    assert not Report(GO2, {}).problems


def test_a_box_that_is_not_level_is_seen(here: Path) -> None:
    robot, _ = draft_robot(here / "man.urdf", "man", here)
    assert not [problem for problem in Report(robot, {}).problems if "level" in problem]
    tilted = [0.1 if "ankle" in name else 0.0 for name in robot.joint_names]
    problems = Report(
        replace(robot, default_joint_pos=tuple(tilted), base_height=0.715), {}
    ).problems
    assert "foot 'left_ankle_foot' is not level, by 0.020 m: change default_joint_pos" in problems


# --- Drafts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "status", "guess"),
    [("dog.urdf", 0, None), ("man.urdf", 1, "velocity_limits"), ("spot.xml", 1, "velocity_limits")],
)
def test_a_model_becomes_a_module_whose_robot_stands(
    file: str, status: int, guess: str | None, here: Path, capsys
) -> None:
    name = file.partition(".")[0]
    text = check(f"{file} --write robots_{name}/{name}.py", capsys, status)
    assert ("\nnone\n" in text) == (status == 0) and (
        guess is None or f"{guess}: {file} has none of" in text
    )
    module = importlib.import_module(f"robots_{name}.{name}")
    robot: RobotCfg = getattr(module, name.upper())
    source = Path(module.__file__).read_text()
    assert source.count("# TODO: ") == (guess is not None) and (
        guess is None or f"\n    {guess}=" in source
    )
    assert settle(robot)[0] < 0.03 * robot.base_height
    assert check(f"robots_{name}.{name}:{name.upper()}", capsys, 0)

    def task():
        cfg = velocity_task(robot)
        cfg.events = {}
        return cfg

    legged_envs.register(f"Drafts/{name}-v0", task)
    try:
        envs = gym.make_vec(f"Drafts/{name}-v0", num_envs=2)
        envs.reset(seed=0)
        ended = [
            envs.step(np.zeros((2, robot.num_joints), np.float32))[2].any() for _ in range(100)
        ]
        assert (
            not any(ended)
            and (envs.unwrapped.sim.root_pos_w[:, 2] > 0.85 * robot.base_height).all()
        )
        envs.close()
    finally:
        TASKS.pop(f"Drafts/{name}-v0"), gym.registry.pop(f"Drafts/{name}-v0")


def test_the_draft_of_a_urdf_has_its_figures(here: Path) -> None:
    robot, gaps = draft_robot(here / "dog.urdf", "dog", here)
    legs = ("FL", "FR", "RL", "RR")
    assert gaps == {} and robot.base_body == "trunk" and robot.num_joints == 12
    assert robot.joint_names == tuple(
        f"{leg}_{part}_joint" for leg in legs for part in ("hip", "thigh", "calf")
    )
    assert robot.default_joint_pos == (0.0, 0.255, -0.51) * 4  # a twentieth of 2.2 rad beyond -0.4
    assert set(robot.torque_limits) == {30.0} and set(robot.velocity_limits) == {18.0}
    assert robot.foot_names == tuple(f"{leg}_foot" for leg in legs) and robot.foot_radius == 0.02
    assert robot.base_height == pytest.approx(2 * 0.2 * np.cos(0.255) + 0.02, abs=1e-4)
    assert robot.kp[0] == pytest.approx(2 * 14.0 * 9.81 * robot.base_height / 4, rel=0.05)
    assert robot.mirror[:3] == (
        ("FR_hip_joint", -1.0),
        ("FR_thigh_joint", 1.0),
        ("FR_calf_joint", 1.0),
    )
    assert robot.foot_mirror == (1, 0, 3, 2)
    assert robot.termination_bodies == ("trunk",) and len(robot.penalized_bodies) == 8
    model = mujoco.MjModel.from_xml_path(robot.xml)
    assert model.body_subtreemass[1] == pytest.approx(14.0) and not model.geom_contype.any()


def test_signs_of_the_mirror_follow_from_axes_and_shapes_at_ankles_become_feet(here: Path) -> None:
    robot, gaps = draft_robot(here / "man.urdf", "man", here)
    mirror = dict(zip(robot.joint_names, robot.mirror, strict=True))
    assert mirror["left_hip_roll"] == ("right_hip_roll", 1.0)  # about the outward axis
    assert mirror["left_knee"] == ("right_knee", -1.0)
    assert mirror["left_shoulder"] == ("right_shoulder", -1.0)
    assert (
        robot.foot_names == ("left_ankle_foot", "right_ankle_foot") and robot.foot_radius == 0.015
    )
    assert (
        gaps == {"velocity_limits": gaps["velocity_limits"]}
        and "20.0 rad/s is a guess" in gaps["velocity_limits"]
    )
    assert robot.kp[robot.joint_names.index("left_shoulder")] == pytest.approx(
        10 * 0.8 * 9.81 * 0.1, rel=0.05
    )
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(robot.xml))
    mujoco.mj_kinematics(data.model, data)
    np.testing.assert_allclose(data.body("left_ankle_foot").xpos, [0.03, 0.1, 0.015], atol=1e-4)


def test_the_draft_of_an_mjcf_has_its_keyframe_limits_and_masses_alone(here: Path) -> None:
    robot, _ = draft_robot(here / "spot.xml", "spot", here / "new")
    assert robot.default_joint_pos == (0.0, 0.6, -1.2) * 4 and set(robot.torque_limits) == {40.0}
    theirs, ours = (
        mujoco.MjModel.from_xml_path(path) for path in (str(here / "spot.xml"), robot.xml)
    )
    assert (ours.nu, ours.nkey, ours.nlight, ours.nsensor) == (0, 0, 0, 0)
    assert ours.body_subtreemass[1] == pytest.approx(theirs.body_subtreemass[1])
    assert ours.body("fl_lleg").inertia == pytest.approx(theirs.body("fl_lleg").inertia, rel=1e-4)
    assert ours.body("fl_lleg_foot").pos[2] == pytest.approx(-0.2) and robot.foot_radius == 0.015


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_joints_feet_and_mirror_of_the_packages_models_are_found(
    robot: RobotCfg, tmp_path: Path
) -> None:
    found, _ = draft_robot(robot.path, robot.name, tmp_path)
    for field in ("base_body", "joint_names", "foot_names", "mirror", "foot_mirror"):
        assert getattr(found, field) == getattr(robot, field)
    assert {frozenset(pair) for pair in found.diagonals} == {
        frozenset(pair) for pair in robot.diagonals
    }
    assert found.foot_radius == pytest.approx(robot.foot_radius, abs=1e-3)
    assert {*found.penalized_bodies, *found.termination_bodies} == {
        *robot.penalized_bodies,
        *robot.termination_bodies,
    }


def test_left_and_right_are_found_in_names() -> None:
    pairs = {
        "left_knee": "right_knee",
        "LeftKnee": "RightKnee",
        "FL_hip": "FR_hip",
        "RL_hip": "RR_hip",
    }
    pairs |= {
        "LF_HAA": "RF_HAA",
        "l_arm": "r_arm",
        "arm_l_2": "arm_r_2",
        "hip_L_Joint": "hip_R_Joint",
        "lh.kn": "rh.kn",
    }
    names = [*pairs, *pairs.values(), "waist", "roll", "ll_tail"]
    for left, right in pairs.items():
        assert counterpart(left, names) == right and counterpart(right, names) == left
    assert [counterpart(name, names) for name in ("waist", "roll", "ll_tail")] == [
        "waist",
        "roll",
        "ll_tail",
    ]


SOFT = {"kp": (5.0,) * 12}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            SOFT,
            r"base sinks by 0\.\d+ m; joint 'F._calf_joint', with kp = 5, gives way by .* kp of about .*feet, 25 \(",
        ),
        ({"kp": (0.0,) * 12}, r"sinks by .* kp = 0, .*write kp of about"),
        (
            {"torque_limits": (23.7, 23.7, 3.0) * 4},
            r"calf_joint'.*its torque reaches its limit of 3 N m: raise torque_",
        ),
    ],
)
def test_an_environment_refuses_gains_that_do_not_hold_the_default_pose(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(
        ValueError, match=rf"RobotCfg 'go2': the default pose is not held.*{message}"
    ):
        gym.make_vec("Legged/Go2-Flat-v0", num_envs=1, cfg={"robot": replace(GO2, **change)})


def test_gains_are_checked_once_and_neither_soft_ones_nor_learned_torques_are_refused(
    monkeypatch,
) -> None:
    settled: list[float] = []
    monkeypatch.setattr(
        gains,
        "settle",
        lambda robot, duration: settled.append(duration) or settle(robot, duration),
    )
    softer = replace(GO2, name="softer", kp=(20.0,) * 12, kd=(0.5,) * 12)  # LeggedGym-Ex
    for _ in range(3):
        check_gains(softer)
    assert len(settled) == 1
    check_gains(
        replace(GO2, name="learned", actuators=("torque",) * 12, kp=(0.0,) * 12, kd=(0.0,) * 12)
    )
    assert len(settled) == 1


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=lambda robot: robot.name)
def test_robots_of_the_package_are_held_and_with_a_fiftieth_of_their_gains_are_not(
    robot: RobotCfg,
) -> None:
    check_gains(robot)
    weak = {name: tuple(0.02 * gain for gain in getattr(robot, name)) for name in ("kp", "kd")}
    with pytest.raises(ValueError, match=f"'{robot.name}': the default pose is not held"):
        check_gains(replace(robot, **weak))


def test_a_mesh_that_is_missing_is_named_when_an_environment_is_made(tmp_path: Path) -> None:
    text = GO2.path.read_text().replace(
        "<worldbody>", '<asset><mesh file="shell.stl"/></asset><worldbody>'
    )
    (tmp_path / "go2.xml").write_text(text)
    with pytest.raises(
        ValueError,
        match=r"RobotCfg 'go2': cannot compile .*go2\.xml': .*shell\.stl.*mesh is looked for",
    ):
        robot = replace(GO2, xml=str(tmp_path / "go2.xml"))
        gym.make_vec("Legged/Go2-Flat-v0", num_envs=1, cfg={"robot": robot})


def test_gains_are_raised_until_the_robot_stands() -> None:
    weak = replace(GO2, kp=(15.0,) * 12, kd=(0.4,) * 12)
    strong = raise_gains(weak)
    assert settle(weak)[0] > 0.03 * GO2.base_height > settle(strong)[0]
    assert strong.kp[0] / strong.kd[0] == pytest.approx(15.0 / 0.4, rel=0.01)


def test_meshes_are_found_around_the_file_and_from_where_the_model_is_written(here: Path) -> None:
    tetrahedron = "v 0 0 0\nv .02 0 0\nv 0 .02 0\nv 0 0 .02\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (here / "pack" / "meshes").mkdir(parents=True)
    (here / "pack" / "meshes" / "trunk.obj").write_text(tetrahedron)
    (here / "pack" / "urdf").mkdir()
    mesh = '<visual><geometry><mesh filename="package://pack/meshes/{}"/></geometry></visual>'
    text = quadruped().replace(
        '<link name="trunk">', f'<link name="trunk">{mesh.format("trunk.obj")}', 1
    )
    (here / "pack" / "urdf" / "dog.urdf").write_text(
        text.replace('name="imu_link">', f'name="imu_link">{mesh.format("i.dae")}')
    )
    robot, gaps = draft_robot(here / "pack" / "urdf" / "dog.urdf", "dog", here / "out")
    assert mujoco.MjModel.from_xml_path(robot.xml).nmesh == 1
    assert 'file="../pack/meshes/trunk.obj"' in Path(robot.xml).read_text()
    assert (
        list(gaps) == ["xml"]
        and "visual of link 'imu_link' has the mesh 'package://pack/meshes/i.dae'" in gaps["xml"]
    )


def test_without_links_called_feet_the_ends_of_the_legs_are_feet(here: Path) -> None:
    end = '<collision><origin xyz="0 0 0"/><geometry><sphere radius="0.02"/></geometry></collision>'
    (here / "dog.urdf").write_text(quadruped().replace(end, ""))
    robot, _ = draft_robot(here / "dog.urdf", "dog", here)
    assert robot.foot_names == tuple(f"{leg}_calf_foot" for leg in ("FL", "FR", "RL", "RR"))
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(robot.xml))
    assert data.model.body("FL_calf_foot").pos[2] == pytest.approx(-0.165, abs=0.02)


# --- Bad models -------------------------------------------------------------------------------------------------------

_KNEE = '<child link="FL_calf"/>'
_IMU = 'name="imu_fixed" type="fixed"'
_CLOSED = '<connect body1="fl_lleg" body2="fr_lleg" anchor="0 0 0"/>'
_BOX = '<box size="0.4 0.2 0.1"/>'
_TENDON = '<tendon><fixed name="t"><joint joint="fl_kn" coef="1"/></fixed></tendon>'


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("dog.urdf", "</robot>", "", "no element found"),
        ("dog.urdf", _KNEE, _KNEE + '<mimic joint="FR_calf_joint"/>', "'FL_calf_joint' mimics 'FR_calf_joint', .*fix"),
        ("dog.urdf", _IMU, _IMU.replace("fixed", "floating"), "'imu_floating' is floating.*fixed"),
        ("dog.urdf", _IMU, _IMU.replace("fixed", "planar"), "'imu_planar' is planar"),
        ("dog.urdf", '<child link="FL_foot"/>', '<child link="FR_foot"/>', "'FR_foot_fixed' closes a loop.*'FR_foot'"),
        ("dog.urdf", _KNEE, '<child link="knee"/>', "'FL_calf_joint' has a link 'knee', which does not exist"),
        ("dog.urdf", "</robot>", '<link name="trunk"/></robot>', "several links 'trunk': give each a different name"),
        ("dog.urdf", 'velocity="', 'velocity="fast', "the limit of joint 'FL_.*' has no numbers: .*'fast"),
        ("spot.xml", "<actuator>", _TENDON + "<actuator>", r"tendons \['t'\] couple joints, .*take them out"),
        ("dog.urdf", _BOX, '<mesh filename="trunk.stl"/>', "collision of link 'trunk' has .* 'trunk.stl', .* no such"),
        ("dog.urdf", _BOX, '<mesh filename="package://d/t.dae"/>', "'package://d/t.dae', .* no such .*write a path"),
        ("dog.urdf", '<mass value="0.5"/>', '<mass value="0"/>', "larger than mjMINVAL .*'FL_hip'.*write its <in"),
        ("dog.urdf", "<gazebo", '<x:if xmlns:x="http://ros.org/wiki/xacro"/><gazebo', "xacro.*write the output"),
        ("spot.xml", 'name="fl_kn" axis="0 1 0" range="-150 -10"', 'name="fl_kn" type="ball"', "'fl_kn' of body 'fl_"),
        ("spot.xml", '<freejoint name="floating"/>', '<joint name="rail" type="slide"/>', "'rail' of .* is a slide"),
        ("spot.xml", "<actuator>", f"<equality>{_CLOSED}</equality><actuator>", "of 'fl_lleg' and 'fr_lleg' closes"),
        ("spot.xml", "</worldbody>", '<body name="ball"/></worldbody>', r"one outermost body.*\['trunk', 'ball'\]"),
        ("spot.xml", 'geom type="capsule"', 'geom type="capsule" contype="0" conaffinity="0"', "there are no feet"),
        ("spot.xml", 'type="box"', 'type="mesh" mesh="m"', "MuJoCo|mesh"),
        ("spot.xml", "<mujoco", "<sdf", "mismatched|sdf"),
    ],
)  # fmt: skip
def test_what_the_package_does_not_take_is_one_line_with_its_place(
    file: str, old: str, new: str, message: str, here: Path, capsys
) -> None:
    text = (here / file).read_text()
    assert old in text
    (here / file).write_text(
        re.sub("<keyframe>.*</keyframe>", "", text.replace(old, new), flags=re.DOTALL)
    )
    told = check(f"{file} --write new/it.py", capsys, 2)
    assert (
        re.search(message, told)
        and told.startswith(f"cannot read '{file}': ")
        and told.count("\n") == 1
    )
    assert not (here / "new").exists()


@pytest.mark.parametrize("there", ["dog.py", "dog.xml"])
def test_nothing_is_overwritten(there: str, here: Path, capsys) -> None:
    (here / there).write_text("mine")
    assert f"'{there}' exists: nothing is overwritten" in check(
        "dog.urdf --write dog.py", capsys, 2
    )
    assert (here / there).read_text() == "mine"


def test_a_robot_of_a_module_that_does_not_fit_its_model_is_refused(here: Path, capsys) -> None:
    code = "from dataclasses import replace\nfrom legged_envs.robots import GO2\n"
    (here / "mine.py").write_text(
        f"{code}BAD = replace(GO2, default_joint_pos=(2.0,) + GO2.default_joint_pos[1:])\n"
    )
    assert "'FR_hip_joint' is 2.0, outside of its range in go2.xml, -1.0472 to 1.0472" in check(
        "mine:BAD", capsys, 2
    )
    sys.modules.pop("mine")


def test_a_robot_on_a_fixed_base_and_names_that_are_none_are_one_line(here: Path, capsys) -> None:
    code = "from dataclasses import replace\nfrom legged_envs.robots import GO2\n"
    (here / "fixed.xml").write_text(GO2.path.read_text().replace('<freejoint name="root"/>', ""))
    (here / "mine.py").write_text(f"{code}FIXED = replace(GO2, xml={str(here / 'fixed.xml')!r})\n")
    assert 'has no free joint: put <freejoint name="root"/> first' in check("mine:FIXED", capsys, 2)
    sys.modules.pop("mine")
    for name in (".mine:FIXED", ":FIXED", "my-robots:FIXED"):
        assert f"must be the whole name of a module, got {name!r}" in check(name, capsys, 2)
    for name in ("class.py", "3dog.py", "my-robot.py"):
        assert f"must name a module that Python can import, got {name!r}" in check(
            f"dog.urdf --write {name}", capsys, 2
        )
    with pytest.raises(ValueError, match="foot_names is empty"):
        replace(GO2, foot_names=())


def test_all_that_a_urdf_lacks_is_told(here: Path, capsys) -> None:
    seen = '<visual><geometry><mesh filename="gone.stl"/></geometry></visual>'
    text = quadruped().replace("<inertial>", f"{seen}<inertial>", 2)
    text = re.sub(r'lower="[^"]*" upper="[^"]*"', "", text, count=1)
    (here / "dog.urdf").write_text(text)
    told = draft_robot(here / "dog.urdf", "dog", here / "new")[1]["xml"]
    assert told.count("gone.stl") == 2
    assert re.search(r"joint 'FL_\w+' moves without an end: write <limit", told)


def test_models_are_drafted_without_pytorch() -> None:
    code = "import sys, legged_envs.robots.reading.draft; assert not {'torch', 'legged_envs.sim'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)

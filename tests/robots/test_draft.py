"""First descriptions of URDF and MJCF files, and files that cannot be read."""

import re
import subprocess
import sys
from pathlib import Path

import imageio.v3 as imageio
import mujoco
import numpy as np
import pytest
from robot_models import quadruped, write_models

from legged_envs.robots import ROBOTS, RobotCfg
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.robot import counterpart


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with the models."""
    write_models(tmp_path)
    return tmp_path


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
        and "20.0 rad/s" in gaps["velocity_limits"]
    )
    assert robot.kp[robot.joint_names.index("left_shoulder")] == pytest.approx(
        10 * 0.8 * 9.81 * 0.1, rel=0.05
    )
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(robot.xml))
    mujoco.mj_kinematics(data.model, data)
    # With straight legs, which are a little longer than in the default pose.
    np.testing.assert_allclose(data.body("left_ankle_foot").xpos, [0.03, 0.1, 0.015], atol=1e-3)


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


ANY_MOTOR = re.compile(r'<position joint="(.*?)" kp="60" forcerange="-40 40"/>')


@pytest.mark.parametrize(
    ("motor", "of_joint", "limit"),
    [
        (r'<general joint="\1" gainprm="24" ctrlrange="-1 1"/>', "", 24.0),
        (r'<motor joint="\1" forcerange="-100 100"/>', 'actuatorfrcrange="-24 24"', 24.0),
        (r'<motor joint="\1" forcerange="-20 20"/>', 'actuatorfrcrange="-24 24"', 20.0),
        (r'<motor joint="\1"/>', 'actuatorfrclimited="true" actuatorfrcrange="-24 24"', 24.0),
    ],
)
def test_torque_limits_of_an_mjcf_are_those_that_mujoco_keeps(
    motor: str, of_joint: str, limit: float, here: Path
) -> None:
    text = ANY_MOTOR.sub(motor, (here / "spot.xml").read_text())
    text = text.replace("<joint name", f"<joint {of_joint} name")
    (here / "spot.xml").write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1e3
    mujoco.mj_forward(model, data)
    robot, _ = draft_robot(here / "spot.xml", "spot", here / "new")
    assert set(robot.torque_limits) == {limit}
    if motor.count("range"):
        assert data.qfrc_actuator[6:] == pytest.approx(np.full(12, limit))


def test_a_keyframe_is_kept_but_for_rounding_beyond_the_end_of_a_range(here: Path) -> None:
    text = (here / "spot.xml").read_text().replace("0 .6 -1.2 ", "0 .6 -2.61803 ")
    (here / "spot.xml").write_text(text)  # The range ends at -150 degrees, which is -2.61799.
    robot, _ = draft_robot(here / "spot.xml", "spot", here / "new")
    assert robot.default_joint_pos == pytest.approx((0.0, 0.6, -np.radians(150.0)) * 4, abs=1e-4)


def test_joints_of_one_body_without_names_get_different_names_and_knees_bend_the_nearest_joint(
    here: Path,
) -> None:
    text = (here / "spot.xml").read_text()
    text = re.sub(
        r'<body name="(\w+)_hip" (pos=".*?")>(<joint name.*?/>).*?<body.*?>',
        r'<body name="\1_uleg" \2>\3',
        text,
        flags=re.DOTALL,
    )
    text = text.replace("</body></body></body>", "</body></body>")
    text = re.sub(r'name="\w+_h[xy]"', "", text)
    text = re.sub(r"<actuator>.*</actuator>|<keyframe>.*</keyframe>", "", text, flags=re.DOTALL)
    (here / "spot.xml").write_text(text)
    robot, _ = draft_robot(here / "spot.xml", "spot", here / "new")
    assert robot.joint_names[:3] == ("fl_uleg_joint", "fl_uleg_joint1", "fl_kn")
    knee = robot.default_joint_pos[2]
    assert robot.default_joint_pos[:2] == pytest.approx((0.0, -0.5 * knee), abs=1e-4)


def test_pictures_of_the_sides_of_a_cube_are_found_from_where_the_model_is_written(
    here: Path,
) -> None:
    picture = np.zeros((4, 4, 3), np.uint8)
    imageio.imwrite(here / "side.png", picture)
    sides = '<texture type="cube" name="sides" fileright="side.png" fileleft="side.png"/>'
    text = (
        (here / "spot.xml").read_text().replace("<actuator>", f"<asset>{sides}</asset><actuator>")
    )
    (here / "spot.xml").write_text(text)
    robot, _ = draft_robot(here / "spot.xml", "spot", here / "new")
    assert mujoco.MjModel.from_xml_path(robot.xml).ntex == 1


def foot_height(robot: RobotCfg) -> float:
    """Return the mean height of the feet's origins in the default pose above the lowest one's sole.

    All soles are the lowest points of convex shapes, found by their distance to a plane.
    """
    spec = mujoco.MjSpec.from_file(robot.xml)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], conaffinity=0)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[2] = 10.0
    for joint, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
        data.joint(joint).qpos = position
    mujoco.mj_forward(model, data)
    feet = [model.body(foot).id for foot in robot.foot_names]
    lowest = min(
        mujoco.mj_geomDistance(model, data, 0, geom, 100.0, None)
        for geom in range(1, model.ngeom)
        if model.geom_bodyid[geom] in feet and model.geom_conaffinity[geom]
    )
    return float(data.xpos[feet, 2].mean()) - lowest


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
    assert found.foot_radius == pytest.approx(foot_height(found), abs=1e-3)
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
    assert list(gaps) == ["xml"] and re.search(
        "'imu_link'.*'package://pack/meshes/i.dae'", gaps["xml"]
    )


def test_without_links_called_feet_the_ends_of_the_legs_are_feet(here: Path) -> None:
    end = '<collision><origin xyz="0 0 0"/><geometry><sphere radius="0.02"/></geometry></collision>'
    (here / "dog.urdf").write_text(quadruped().replace(end, ""))
    robot, _ = draft_robot(here / "dog.urdf", "dog", here)
    assert robot.foot_names == tuple(f"{leg}_calf_foot" for leg in ("FL", "FR", "RL", "RR"))
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(robot.xml))
    assert data.model.body("FL_calf_foot").pos[2] == pytest.approx(-0.165, abs=0.02)


def test_all_that_a_urdf_lacks_is_told(here: Path, capsys) -> None:
    seen = '<visual><geometry><mesh filename="gone.stl"/></geometry></visual>'
    text = quadruped().replace("<inertial>", f"{seen}<inertial>", 2)
    text = re.sub(r'lower="[^"]*" upper="[^"]*"', "", text, count=1)
    (here / "dog.urdf").write_text(text)
    told = draft_robot(here / "dog.urdf", "dog", here / "new")[1]["xml"]
    assert told.count("gone.stl") == 2
    assert re.search(r"'FL_\w+'.*<limit", told)


def test_models_are_drafted_without_pytorch() -> None:
    code = "import sys, legged_envs.robots.reading.draft; assert not {'torch', 'legged_envs.sim'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)

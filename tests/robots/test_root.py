"""The root of a robot file: bodies welded to it, its orientation, its joint, and the file's options."""

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from dogs import MASSLESS_ROOT, WELD, dog, draft

from legged_envs.envs import make_core
from legged_envs.robot_check import Report
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.tasks.velocity import velocity_task


def test_what_is_welded_to_a_root_without_mass_is_the_base(tmp_path: Path) -> None:
    alone, _ = draft(dog(), tmp_path)
    theirs = mujoco.MjModel.from_xml_path(alone.xml)
    robot, _ = draft(dog(root=MASSLESS_ROOT + WELD), tmp_path)
    model = mujoco.MjModel.from_xml_path(robot.xml)
    assert robot.base_body == "base" and robot.termination_bodies == ("trunk",)
    assert "trunk" not in robot.penalized_bodies
    # The base has mass, centre and inertia of the trunk.
    for field in ("body_mass", "body_ipos"):
        assert getattr(model, field)[1] == pytest.approx(getattr(theirs, field)[1], abs=1e-9)
    moments = sorted(model.body_inertia[1])
    assert moments == pytest.approx(sorted(theirs.body_inertia[1]), abs=1e-9)
    assert model.body_subtreemass[1] == pytest.approx(theirs.body_subtreemass[1])
    core = make_core(velocity_task(robot), 16, array="torch")
    core.reset(seed=0)
    masses = core.sim.get_parameter("body_mass")[:, 0]
    assert 5.0 <= masses.min() < 5.9 and 6.1 < masses.max() <= 8.0


def test_masses_of_several_welded_links_are_one_rigid_body(tmp_path: Path) -> None:
    payload = (
        '<link name="head"><inertial><origin xyz="0.1 0 0"/><mass value="2"/><inertia ixx="0.01" '
        'iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="neck" type="fixed"><parent link="trunk"/><child link="head"/>'
        '<origin xyz="0.2 0 0.1" rpy="0 0 1.5708"/></joint>'
    )
    path = tmp_path / "dog.urdf"
    path.write_text(dog().replace("</robot>", f"{payload}</robot>"))
    robot, _ = draft_robot(path, "mine", tmp_path / "out")
    model = mujoco.MjModel.from_xml_path(robot.xml)
    assert model.body("head").mass[0] == 0.0 and model.body("trunk").mass[0] == pytest.approx(8.0)
    # The head's own x axis points along y of the trunk: its centre is at (0.2, 0.1, 0.1).
    centre = 2.0 / 8.0 * np.array((0.2, 0.1, 0.1))
    assert model.body("trunk").ipos == pytest.approx(centre, abs=1e-4)
    # Steiner: the moment about the common centre along z.
    offset = np.array((0.2, 0.1, 0.1))
    about_z = 0.1 + 0.02 + 6.0 * 2.0 / 8.0 * (offset[0] ** 2 + offset[1] ** 2)
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, model.body("trunk").iquat)
    axes = axes.reshape(3, 3)
    inertia = axes * model.body("trunk").inertia @ axes.T
    assert inertia[2, 2] == pytest.approx(about_z, rel=1e-3)


def test_a_trunk_that_is_welded_to_the_root_is_no_foot(tmp_path: Path) -> None:
    head, legs = dog(root=MASSLESS_ROOT + WELD).split('<link name="FL_hip">', 1)
    legs = re.sub(r"<collision>.*?</collision>", "", legs)
    with pytest.raises(ValueError, match="feet"):
        draft(f'{head}<link name="FL_hip">{legs}', tmp_path)


def mjcf(tmp_path: Path, old: str = "", new: str = "") -> str:
    """The dog as an MJCF file, with a change."""
    robot, _ = draft(dog(), tmp_path)
    text = Path(robot.xml).read_text()
    assert old in text
    return text.replace(old, new, 1)


def test_defaults_for_joints_do_not_reach_the_free_joint(tmp_path: Path) -> None:
    defaults = '<default><joint limited="true" armature="0.02" damping="3"/></default><worldbody>'
    text = mjcf(tmp_path, "<worldbody>", defaults)
    for free in ("", '<joint type="free" limited="false"/>'):
        text_of_file = re.sub(r'<(free)?joint name="root"[^>]*/>', free, text, count=1)
        robot, _ = draft(text_of_file, tmp_path, "xml")
        model = mujoco.MjModel.from_xml_path(robot.xml)
        assert not model.jnt_limited[0] and not model.dof_damping[:6].any()
        assert not model.dof_armature[:6].any()
        assert model.jnt_limited[1:].all() and (model.dof_damping[6:] == 3.0).all()


def test_a_root_that_is_turned_in_the_file_is_upright(tmp_path: Path) -> None:
    upright, gaps = draft(mjcf(tmp_path), tmp_path, "xml")
    assert "xml" not in gaps
    text = Path(upright.xml).read_text()
    # The same robot, drawn with its y axis upwards, in a root that is turned by 90 degrees.
    spec = mujoco.MjSpec.from_string(text)
    half = np.sqrt(0.5)
    base = spec.worldbody.bodies[0]
    back = np.array((half, -half, 0.0, 0.0))
    for part in (*base.geoms, *base.bodies):
        turned = np.zeros(3)
        mujoco.mju_rotVecQuat(turned, np.array(part.pos), back)
        quat = np.zeros(4)
        mujoco.mju_mulQuat(quat, back, np.array(part.quat))
        part.pos = turned
        part.quat = quat
    base.quat = [half, half, 0.0, 0.0]
    spec.compile()
    robot, gaps = draft(spec.to_xml(), tmp_path, "xml")
    assert "90°" in gaps["xml"]
    assert robot.base_height == pytest.approx(upright.base_height, abs=1e-3)
    assert robot.foot_names == upright.foot_names and robot.mirror == upright.mirror


def test_global_options_of_a_file_are_left_out_and_told(tmp_path: Path) -> None:
    options = '<option gravity="0 0 -3.7" density="1000"><flag contact="disable"/></option>'
    text = mjcf(tmp_path, "<worldbody>", f"{options}<worldbody>")
    text = text.replace('<body name="FL_thigh"', '<body gravcomp="1" name="FL_thigh"')
    robot, gaps = draft(text, tmp_path, "xml")
    model = mujoco.MjModel.from_xml_path(robot.xml)
    assert model.opt.gravity[2] == -9.81 and model.opt.density == 0.0
    assert model.opt.disableflags == 0 and not model.body_gravcomp.any()
    for name in ("gravity 0 0 -3.7", "density 1000", "disableflags", "FL_thigh"):
        assert name in gaps["xml"]
    # In the file of a RobotCfg they are named, because the simulation has them.
    assert not [line for line in Report(robot, {}).problems if "gravity" in line]
    written = Path(robot.xml)
    text = written.read_text().replace("<worldbody>", f"{options}<worldbody>", 1)
    written.write_text(text)
    assert any("gravity 0 0 -3.7" in line for line in Report(robot, {}).problems)


def test_a_light_base_is_randomized_by_a_share_of_its_mass(tmp_path: Path) -> None:
    robot, _ = draft(dog(base_mass=0.6), tmp_path)
    core = make_core(velocity_task(robot), 64, array="torch")
    core.reset(seed=0)
    masses = core.sim.get_parameter("body_mass")[:, 0]
    # -1 to 2 kg scaled to -0.18 to 0.36 kg.
    assert masses.min() >= 0.6 - 0.181 and masses.max() <= 0.6 + 0.361
    assert masses.min() < 0.5 and masses.max() > 0.85
    cfg = velocity_task(robot)
    del cfg.events["base_mass"].params["most_share"]
    core = make_core(cfg, 2, array="torch")
    with pytest.raises(ValueError, match=r"base_mass.*'mine'.* 0.6 kg"):
        core.reset(seed=0)
    assert torch.isfinite(masses).all()


def test_an_empty_root_with_a_floating_joint_is_left_out(tmp_path: Path) -> None:
    joint = '<joint name="free" type="floating"><parent link="world"/><child link="trunk"/></joint>'
    path = tmp_path / "dog.urdf"
    path.write_text(dog(root='<link name="world"/>').replace("</robot>", f"{joint}</robot>"))
    robot, gaps = draft_robot(path, "mine", tmp_path / "out")
    assert robot.base_body == "trunk" and robot.num_joints == 12
    assert "'world'" in gaps["xml"] and "'free'" in gaps["xml"]
    # A link with a mass is a part of the robot.
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    path.write_text(
        path.read_text().replace('<link name="world"/>', f'<link name="world">{mass}</link>')
    )
    with pytest.raises(ValueError, match=r"'free'.*floating"):
        draft_robot(path, "mine", tmp_path / "out")

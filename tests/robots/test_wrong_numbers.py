"""Numbers of a robot file that cannot be right are named, with their place."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from dogs import BOX, dog, draft, stl_box

from legged_envs.envs import make_core
from legged_envs.robot_check import Report
from legged_envs.robots import GO2
from legged_envs.tasks.velocity import velocity_task

THIGH_RANGE = 'lower="-1.0" upper="2.0"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<mass value="6.0"/>', '<mass value="-6"/>', "<mass> of link 'trunk' is -6"),
        ('<mass value="6.0"/>', '<mass value="nan"/>', "<mass> of link 'trunk' has value='nan'"),
        ('<mass value="0.5"/>', '<mass value="1,5"/>', "<mass> of link 'FL_hip' has value='1,5'"),
        ('ixx="0.05"', 'ixx="a"', "<inertia> of link 'trunk' has ixx='a'"),
        ("0 0.08 0", "0 up 0", "<origin> of joint 'FL_thigh_joint' has xyz='0 up 0'"),
        ("0 0.08 0", "0 inf 0", "<origin> of joint 'FL_thigh_joint' has xyz='0 inf 0'"),
    ],
)
def test_a_number_that_is_none_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in dog()
    with pytest.raises(ValueError, match=re.escape(message)):
        draft(dog().replace(old, new, 1), tmp_path)


def test_limits_at_or_below_zero_are_none(tmp_path: Path) -> None:
    for effort in ("-1", "0", "nan"):
        robot, gaps = draft(dog().replace('effort="30"', f'effort="{effort}"'), tmp_path)
        assert robot.torque_limits == (12.0,) * 12
        assert "has none of FL_hip_joint" in gaps["torque_limits"]


def test_a_range_with_its_ends_swapped_is_swapped_back(tmp_path: Path) -> None:
    swapped = dog().replace(THIGH_RANGE, 'lower="2.0" upper="-1.0"')
    robot, gaps = draft(swapped, tmp_path)
    assert "'FL_thigh_joint' (2 to -1)" in gaps["xml"]
    model = mujoco.MjModel.from_xml_path(robot.xml)
    np.testing.assert_allclose(model.joint("FL_thigh_joint").range, (-1.0, 2.0))


def test_a_range_of_1e16_has_no_end(tmp_path: Path) -> None:
    robot, _ = draft(dog().replace(THIGH_RANGE, 'lower="-1e16" upper="1e16"'), tmp_path)
    model = mujoco.MjModel.from_xml_path(robot.xml)
    assert not model.joint("FL_thigh_joint").limited
    assert model.joint("FL_hip_joint").limited


def test_ranges_in_degrees_are_named_once(tmp_path: Path) -> None:
    robot, gaps = draft(dog().replace(THIGH_RANGE, 'lower="-60" upper="120"'), tmp_path)
    problems = [each for each in Report(robot, gaps).problems if each.startswith("range")]
    assert len(problems) == 1
    assert "-60 to 120 rad" in problems[0] and "degrees" in problems[0]
    assert all(f"'{leg}_thigh_joint'" in problems[0] for leg in ("FL", "FR", "RL", "RR"))


def test_joints_with_the_same_problem_are_one_sentence() -> None:
    weak = replace(GO2, torque_limits=(0.5,) * 12)
    problems = [each for each in Report(weak, {}).problems if each.startswith("torque_limits of")]
    assert len(problems) == 1 and problems[0].count("_joint'") > 3


def test_an_inertia_in_other_units_is_named(tmp_path: Path) -> None:
    _, gaps = draft(dog(thigh_inertia=(40.0, 40.0, 5.0)), tmp_path)
    assert re.search("'FL_thigh' .40 kg m² at 0.8 kg.*kg m²", gaps["xml"])


def test_a_mesh_in_millimetres_is_named(tmp_path: Path) -> None:
    (tmp_path / "trunk.stl").write_bytes(stl_box(400.0, 200.0, 100.0))
    mesh = '<mesh filename="trunk.stl"/>'
    with pytest.raises(ValueError, match=r"'trunk' of 'trunk' is 458 m long.*scale"):
        draft(dog().replace(BOX, mesh, 1), tmp_path)
    scaled = '<mesh filename="trunk.stl" scale="0.001 0.001 0.001"/>'
    robot, _ = draft(dog().replace(BOX, scaled, 1), tmp_path)
    assert robot.num_joints == 12


def test_a_space_in_a_url_can_be_percent_20(tmp_path: Path) -> None:
    (tmp_path / "a b.stl").write_bytes(stl_box(0.4, 0.2, 0.1))
    robot, _ = draft(dog().replace(BOX, '<mesh filename="package://d/a%20b.stl"/>', 1), tmp_path)
    assert mujoco.MjModel.from_xml_path(robot.xml).nmesh == 1


def test_a_flat_mesh_with_which_the_robot_collides_is_refused_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    (tmp_path / "flat.stl").write_bytes(stl_box(0.4, 0.2, 0.0))
    with pytest.raises(ValueError, match=r"flat\.stl'.*write a thin box instead") as caught:
        draft(dog().replace(BOX, '<mesh filename="flat.stl"/>', 1), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_pointer_of_git_lfs_has_one_remedy(tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match=r"git lfs pull' in its repository$"):
        draft(dog().replace(BOX, '<mesh filename="part.stl"/>', 1), tmp_path)


def test_names_with_line_breaks_are_names_like_others(tmp_path: Path) -> None:
    robot, _ = draft(dog(name=lambda leg, part: f"{leg}&#10;{part}"), tmp_path)
    assert robot.joint_names[0] == "FL\nhip_joint"
    env = make_core(velocity_task(robot), 1)
    assert env.single_action_space.shape == (12,)
    env.close()

"""Default poses of bipeds that fall over their toes or heels in the pose of their files."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from robot_models import biped

from legged_envs.robot_check import raise_gains
from legged_envs.robot_check.motions import make_moving, start, upright
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.robot import RobotCfg

SOLE = '<origin xyz="0.03 0 -0.04"/>'
"""Place of the soles at the ankles of the biped. They are 0.2 m long."""


def drafted(folder: Path, text: str) -> RobotCfg:
    (folder / "man.urdf").write_text(text)
    return draft_robot(folder / "man.urdf", "man", folder)[0]


def standing(robot: RobotCfg) -> mujoco.MjData:
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(robot.xml))
    data.qpos[2] = robot.base_height
    for joint, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
        data.joint(joint).qpos = position
    mujoco.mj_forward(data.model, data)
    return data


@pytest.mark.parametrize("offset", [-0.07, 0.09])
def test_the_centre_of_mass_is_between_ankles_and_the_middle_of_the_soles(
    tmp_path: Path, offset: float
) -> None:
    robot = drafted(tmp_path, biped().replace(SOLE, f'<origin xyz="{offset} 0 -0.04"/>'))
    data = standing(robot)
    model = data.model
    for foot in robot.foot_names:
        geom = model.body(foot).geomadr[0]
        best = data.geom_xpos[geom, 0] - offset / 2
        assert best == pytest.approx(data.subtree_com[1, 0], abs=0.003)
        # The sole is level, and on the ground.
        assert data.geom_xmat[geom, 8] == pytest.approx(1.0, abs=1e-3)
        assert data.geom_xpos[geom, 2] == pytest.approx(0.015, abs=2e-3)
    # Left and right bend alike: the axes of hips and ankles of both sides are the same.
    angles = dict(zip(robot.joint_names, robot.default_joint_pos, strict=True))
    assert angles["left_hip_pitch"] == pytest.approx(angles["right_hip_pitch"], abs=1e-3)
    assert abs(angles["left_hip_pitch"]) > 0.05


def test_a_biped_that_is_balanced_stands_where_the_same_falls_with_straight_legs(
    tmp_path: Path,
) -> None:
    robot = drafted(tmp_path, biped().replace(SOLE, '<origin xyz="0.11 0 -0.04"/>'))
    strong = raise_gains(robot)
    straight = replace(strong, default_joint_pos=(0.0,) * robot.num_joints, base_height=0.705)
    heights = []
    for cfg in (strong, straight):
        moving = make_moving(cfg, is_held=False)
        start(moving)
        mujoco.mj_step(moving.model, moving.data, 1000)
        heights.append(upright(moving.data))
    assert heights[0] > 0.99 and heights[1] < 0.5


def test_a_pose_that_is_balanced_is_kept(tmp_path: Path) -> None:
    robot = drafted(tmp_path, biped().replace(SOLE, '<origin xyz="0.0 0 -0.04"/>'))
    assert robot.default_joint_pos == (0.0,) * robot.num_joints


def test_on_points_no_biped_balances_so_that_its_pose_is_kept(tmp_path: Path) -> None:
    text = biped().replace('box size="0.2 0.08 0.03"', 'sphere radius="0.03"')
    robot = drafted(tmp_path, text.replace(SOLE, '<origin xyz="0.1 0 -0.04"/>'))
    np.testing.assert_array_equal(robot.default_joint_pos, 0.0)


def test_weak_ankles_have_the_centre_of_mass_above_them(tmp_path: Path) -> None:
    # 2 · 5 N m hold 21.6 kg where it is at most 0.047 m before the ankles.
    text = biped().replace(SOLE, '<origin xyz="0.09 0 -0.04"/>')
    for side in ("left", "right"):
        start = text.index(f'<joint name="{side}_ankle"')
        text = text[:start] + text[start:].replace('effort="80"', 'effort="5"', 1)
    robot = drafted(tmp_path, text)
    data = standing(robot)
    reach = 5.0 / (0.5 * 21.6 * 9.81)
    usable_middle = 0.5 * (-0.01 + reach)
    for foot in robot.foot_names:
        ankle = data.joint(f"{foot.split('_')[0]}_ankle").xanchor[0]
        assert data.subtree_com[1, 0] - ankle == pytest.approx(usable_middle / 2, abs=0.003)


@pytest.mark.parametrize("tilt", [-0.2, 0.17])
def test_soles_that_are_tilted_with_all_joints_at_0_are_level(tmp_path: Path, tilt: float) -> None:
    robot = drafted(
        tmp_path, biped().replace(SOLE, f'<origin xyz="0.03 0 -0.04" rpy="0 {tilt} 0"/>')
    )
    data = standing(robot)
    for foot in robot.foot_names:
        geom = data.model.body(foot).geomadr[0]
        assert data.geom_xmat[geom, 8] == pytest.approx(1.0, abs=1e-3)

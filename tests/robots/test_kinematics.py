"""Lifted feet, against MuJoCo's forward kinematics."""

import mujoco
import numpy as np
import pytest

from legged_envs.robots import GO2, ROBOTS, TRON1_PF, TRON1_WF, RobotCfg
from legged_envs.robots.reading.kinematics import leg_lift_angles


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_feet_are_lifted_straight_up_and_stay_level_where_they_can(robot: RobotCfg) -> None:
    model = mujoco.MjModel.from_xml_path(str(robot.path))
    data, height = mujoco.MjData(model), 0.1 * robot.base_height
    joints = [model.joint(name).qposadr[0] for name in robot.joint_names]
    data.qpos[joints] = robot.default_joint_pos
    mujoco.mj_kinematics(model, data)
    before = {
        name: (data.body(name).xpos.copy(), data.body(name).xmat[6:].copy())
        for name in robot.foot_names
    }
    for foot, turned in zip(robot.foot_names, leg_lift_angles(robot, height), strict=True):
        data.qpos[joints] = np.array(robot.default_joint_pos) + turned
        mujoco.mj_kinematics(model, data)
        assert data.body(foot).xpos == pytest.approx(
            before[foot][0] + (0.0, 0.0, height), abs=0.1 * height
        )
        if robot.num_joints > 8:  # those have ankles, or feet that are balls
            tilt = np.arccos(np.clip(data.body(foot).xmat[6:] @ before[foot][1], -1.0, 1.0))
            assert tilt < 0.02 or len(robot.foot_names) == 4
        others = [name for name in robot.foot_names if name != foot]
        for other in others:
            assert data.body(other).xpos == pytest.approx(before[other][0], abs=1e-3)


def test_the_sides_are_each_others_mirror_image() -> None:
    turned = leg_lift_angles(GO2, 0.05)
    index = [GO2.joint_names.index(partner) for partner, _ in GO2.mirror]
    sign = np.array([sign for _, sign in GO2.mirror])
    for foot, partner in enumerate(GO2.foot_mirror):
        assert turned[partner] == pytest.approx(turned[foot][index] * sign, abs=1e-6)


def test_wheels_do_not_turn_and_a_leg_has_its_length() -> None:
    wheels = [i for i, kind in enumerate(TRON1_WF.actuators) if kind == "velocity"]
    assert not leg_lift_angles(TRON1_WF, 0.1)[:, wheels].any()
    with pytest.raises(ValueError, match=r"'tron1_pf'.*'L_foot'.* 2 m"):
        leg_lift_angles(TRON1_PF, 2.0)

"""Bipeds lean further forwards on stiffer ankles, and weak ankles stay soft."""

from dataclasses import replace
from pathlib import Path

import mujoco
import pytest
from dogs import dog, draft
from robot_models import biped

from legged_envs.robot_check import raise_gains
from legged_envs.robot_check.leaning import is_balanced, lean
from legged_envs.robot_check.motions import make_moving
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.reading.soles import support_share
from legged_envs.robots.robot import RobotCfg

OFFSET = 0.06
"""Distance of the middle of the soles from the ankles of the biped, m."""


@pytest.fixture(name="man")
def drafted_man(tmp_path: Path) -> RobotCfg:
    text = biped().replace("0.03 0 -0.04", f"{OFFSET} 0 -0.04")
    (tmp_path / "man.urdf").write_text(text)
    return draft_robot(tmp_path / "man.urdf", "man", tmp_path)[0]


def test_the_sag_of_an_ankle_follows_from_its_gain() -> None:
    """A column on a spring K: at rest K (x − x0) = m g h x / h, solved by hand for 2, 4 and 8."""
    for factor, expected in ((2.0, 0.5), (4.0, 0.75), (8.0, 0.875)):
        assert support_share(factor) == pytest.approx(expected)


def test_a_stiffer_biped_leans_further(man: RobotCfg) -> None:
    moving = make_moving(man, is_held=False)
    assert is_balanced(moving)
    stiff = lean(moving, replace(man, kp=tuple(4 * kp for kp in man.kp)), gain_factor=8.0)
    # Leaning again does not add up.
    assert lean(moving, stiff, gain_factor=8.0) == stiff
    assert stiff.kp[0] == 4 * man.kp[0]
    model = mujoco.MjModel.from_xml_path(man.xml)
    for robot, share in ((man, 0.5), (stiff, 0.875)):
        data = mujoco.MjData(model)
        data.qpos[2] = robot.base_height
        for joint, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
            data.joint(joint).qpos = position
        mujoco.mj_forward(model, data)
        ankle = data.joint("left_ankle").xanchor[0]
        assert data.subtree_com[1, 0] - ankle == pytest.approx(share * OFFSET, abs=0.003)
        sole = model.body(robot.foot_names[0])
        # The soles are 0.03 m thick, level, and on the ground.
        assert data.geom_xpos[sole.geomadr[0], 2] == pytest.approx(0.015, abs=1e-3)


def test_a_pose_of_a_person_is_not_changed(man: RobotCfg) -> None:
    bent = replace(man, default_joint_pos=tuple(q - 0.1 for q in man.default_joint_pos))
    assert not is_balanced(make_moving(bent, is_held=False))


def test_a_weak_motor_keeps_the_gain_at_which_it_has_a_reach(tmp_path: Path) -> None:
    robot, _ = draft(dog(), tmp_path)
    weak = raise_gains(replace(robot, kp=(5.0,) * 12, kd=(0.2,) * 12, torque_limits=(0.3,) * 12))
    assert 8.0 <= max(weak.kp) <= 0.3 / 0.03
    assert max(weak.kd) == pytest.approx(0.04 * max(weak.kp), rel=0.02)


def test_a_biped_that_gains_alone_hold_keeps_its_pose(man: RobotCfg) -> None:
    soft = replace(man, kp=tuple(0.5 * kp for kp in man.kp), kd=tuple(0.5 * kd for kd in man.kd))
    raised = raise_gains(soft)
    assert raised.kp[0] > soft.kp[0]
    assert raised.default_joint_pos == man.default_joint_pos

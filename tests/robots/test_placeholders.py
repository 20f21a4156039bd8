"""Limits of robot files that are too small for any motor, such as 0.001 rad/s."""

from dataclasses import replace
from pathlib import Path

import pytest
from dogs import dog, draft, joint, link

from legged_envs.robot_check import Report

SMALL_FINGER = joint("finger_joint", "trunk", "finger", "0.2 0 0") + link(
    "finger", 0.02, '<box size="0.02 0.01 0.01"/>', "0.02 0 0", (1e-6,) * 3
)


@pytest.mark.parametrize("value", ["0.001", "0.1"])
def test_a_motor_that_hardly_turns_is_a_placeholder(tmp_path: Path, value: str) -> None:
    robot, gaps = draft(dog().replace('velocity="20"', f'velocity="{value}"'), tmp_path)
    assert robot.velocity_limits == (20.0,) * 12
    assert f"{value} of 'FL_hip_joint'" in gaps["velocity_limits"]
    assert "less rad/s" in gaps["velocity_limits"]
    # 30 N m · 5 ms / 20 rad/s, not / 0.001 rad/s, for the lightest links.
    assert "0.0075 of 'FL_calf_joint'" in gaps["velocity_limits"]


def test_a_motor_that_cannot_hold_its_own_limb_is_a_placeholder(tmp_path: Path) -> None:
    robot, gaps = draft(dog().replace('effort="30"', 'effort="0.001"'), tmp_path)
    assert robot.torque_limits == (12.0,) * 12
    assert "0.001 of 'FL_hip_joint'" in gaps["torque_limits"]
    assert "less N m" in gaps["torque_limits"]


def test_a_weak_motor_of_a_light_finger_is_real(tmp_path: Path) -> None:
    # A finger of 20 g needs 0.02 kg · 9.81 m/s² · 0.02 m = 0.004 N m.
    for effort, is_real in (("0.002", True), ("0.0001", False)):
        finger = SMALL_FINGER.replace('effort="30"', f'effort="{effort}"')
        folder = tmp_path / effort
        folder.mkdir()
        text = dog().replace("</robot>", finger + "</robot>")
        robot, gaps = draft(text, folder)
        limit = dict(zip(robot.joint_names, robot.torque_limits, strict=True))["finger_joint"]
        assert (limit == float(effort)) == is_real
        assert ("torque_limits" in gaps) != is_real


def test_the_report_names_small_limits_of_a_configuration(tmp_path: Path) -> None:
    robot, _ = draft(dog(), tmp_path)
    wrong = replace(robot, velocity_limits=(0.001,) * 12, torque_limits=(0.001,) * 12)
    problems = "\n".join(Report(wrong, {}).problems)
    assert "velocity_limits: 0.001 of 'FL_hip_joint'" in problems
    assert "torque_limits: 0.001 of 'FL_hip_joint'" in problems
    assert "less rad/s" in problems and "less N m" in problems

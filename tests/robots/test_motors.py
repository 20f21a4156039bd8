"""Limits that no motor has, joints without inertia, and what a robot does when it moves."""

import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from dogs import dog, draft

from legged_envs.robot_check import Report, raise_gains
from legged_envs.robot_check.motions import check_motions
from legged_envs.robots import G1_29, GO2, ROBOTS, RobotCfg
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.reading.motors import PHYSICS_DT, missing_armatures
from legged_envs.sim import SimCfg
from legged_envs.tasks.velocity import quadruped_flat, velocity_task


def test_placeholders_are_guesses_and_name_their_joints(tmp_path: Path) -> None:
    text = dog().replace('effort="30"', 'effort="1000"').replace('velocity="20"', 'velocity="1000"')
    robot, gaps = draft(text, tmp_path)
    # m g h / feet of 12.2 kg at 0.4 m.
    assert robot.torque_limits == (12.0,) * 12 and robot.velocity_limits == (20.0,) * 12
    assert "1000 of 'FL_hip_joint'" in gaps["torque_limits"] and "12.0 N m" in gaps["torque_limits"]
    assert "1000 of 'FL_hip_joint'" in gaps["velocity_limits"]
    assert quadruped_flat(robot).actions["joint_position"].scale == 0.5
    wrong = replace(robot, torque_limits=(1000.0,) * 12, velocity_limits=(1000.0,) * 12)
    assert quadruped_flat(wrong).actions["joint_position"].scale == 1.5
    problems = "\n".join(Report(wrong, {}).problems)
    assert re.search("torque_limits: 1000 of 'FL_hip_joint'", problems)
    assert re.search("velocity_limits: 1000 of 'FL_hip_joint'", problems)


def test_no_action_moves_a_target_by_more_than_the_width_of_a_range(tmp_path: Path) -> None:
    text = dog()
    narrow = re.sub(
        r'(name="FL_hip_joint".*?lower=)"[^"]*"( upper=)"[^"]*"',
        r'\1"-0.1"\2"0.2"',
        text,
        count=1,
        flags=re.DOTALL,
    )
    robot, _ = draft(narrow, tmp_path)
    index = robot.joint_names.index("FL_hip_joint")
    for task in (velocity_task, quadruped_flat):
        scale = task(robot).actions["joint_position"].scale
        assert scale[index] == pytest.approx(0.3)
        assert min(scale[:index] + scale[index + 1 :]) >= 0.5


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_motors_of_the_package_are_not_taken_for_placeholders(
    robot: RobotCfg, tmp_path: Path
) -> None:
    limits = Path(robot.path).read_text()
    found, gaps = draft_robot(robot.path, robot.name, tmp_path)
    assert "armature" not in gaps.get("xml", "") and "a motor of this" not in str(gaps)
    assert found.num_joints == robot.num_joints and limits


def test_joints_that_their_motors_throw_get_an_armature(tmp_path: Path) -> None:
    text = re.sub(r'\sarmature="[^"]*"', "", G1_29.path.read_text())
    (tmp_path / "bare.xml").write_text(text)
    bare = replace(G1_29, xml=str(tmp_path / "bare.xml"))
    problems = "\n".join(check_motions(bare).problems)
    assert "armature of" in problems and "'left_ankle_roll_joint'" in problems
    robot, gaps = draft_robot(tmp_path / "bare.xml", "mine", tmp_path / "out")
    told = " ".join(gaps.values())
    assert "armature" in told and "left_ankle_roll_joint" in told
    model = mujoco.MjModel.from_xml_path(robot.xml)
    index = robot.joint_names.index("left_ankle_roll_joint")
    expected = robot.torque_limits[index] * PHYSICS_DT / robot.velocity_limits[index]
    assert model.joint("left_ankle_roll_joint").damping[0] >= 0.0
    armature = model.dof_armature[model.joint("left_ankle_roll_joint").dofadr[0]]
    assert armature == pytest.approx(expected, rel=0.05)
    assert SimCfg().dt == PHYSICS_DT
    moves = check_motions(raise_gains(robot))
    assert not [problem for problem in moves.problems if "armature" in problem]


def test_the_jump_of_a_joint_is_its_torque_over_its_inertia() -> None:
    """A rod that turns about its end: inertia m l² / 3 by hand."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='1' mass='1e6'/>"
        "<body><joint name='j' axis='0 1 0'/>"
        "<inertial pos='0.15 0 0' mass='0.3' diaginertia='1e-5 0.00225 0.00225'/>"
        "</body></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = 0.3 * 0.3**2 / 3
    # Just below and above twice 10 rad/s in a step.
    for factor, is_missing in ((0.98, False), (1.02, True)):
        torque = factor * 2.0 * 10.0 * inertia / PHYSICS_DT
        found = missing_armatures(model, data, {"j": torque}, {"j": 10.0})
        assert bool(found) == is_missing
        if found:
            assert found["j"] == pytest.approx(torque * PHYSICS_DT / 10.0, rel=0.05)


def test_an_arm_is_light_about_its_own_axis_once_its_elbow_is_straight() -> None:
    """The upper arm turns about its length; the forearm is a rod, which is bent in this pose."""
    forearm = "<inertial pos='0 0 -0.2' mass='1' diaginertia='0.0134 0.0134 1e-4'/>"
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='1' mass='1e6'/>"
        "<body><joint name='yaw' axis='0 0 1'/><geom size='0.01' mass='0.01'/>"
        "<body><joint name='elbow' axis='0 1 0' range='-100 100'/>"
        f"{forearm}</body></body></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    data.joint("elbow").qpos = np.pi / 2
    mujoco.mj_forward(model, data)
    # Bent, the forearm has 0.05 kg m², so that 50 N m are 5 rad/s in a step.
    velocities = {"yaw": 10.0, "elbow": 30.0}
    armatures = missing_armatures(model, data, {"yaw": 50.0, "elbow": 5.0}, velocities)
    assert armatures == {"yaw": pytest.approx(50.0 * PHYSICS_DT / 10.0, rel=0.05)}


def test_left_and_right_have_the_same_armature(tmp_path: Path) -> None:
    text = dog().replace('effort="30"', 'effort="16"')
    foot = '<link name="FL_foot"><inertial><origin xyz="0 0 0"/><mass value="0.05"/>'
    assert foot in text
    robot, _ = draft(text.replace(foot, foot.replace("0.05", "0.005")), tmp_path)
    model = mujoco.MjModel.from_xml_path(robot.xml)
    armature = 16.0 * PHYSICS_DT / 20.0
    for leg, expected in (("FL", armature), ("FR", armature), ("RL", 0.0), ("RR", 0.0)):
        dof = model.joint(f"{leg}_calf_joint").dofadr[0]
        assert model.dof_armature[dof] == pytest.approx(expected)


def rows(robot: RobotCfg) -> dict[str, str]:
    _, _, table = check_motions(robot).table
    return {str(motion): str(result) for motion, result in table}


def test_what_happens_is_said() -> None:
    happened = rows(GO2)
    assert happened["each joint through its range"] == "all 12 joints follow"
    assert happened["dropped from 2 cm"].startswith("stands, at 0.3")
    assert happened["random joint targets"] == "nothing explodes"


def test_a_robot_that_falls_or_does_not_follow_is_a_problem() -> None:
    weak = replace(GO2, kp=(0.3,) * 12, kd=(0.05,) * 12)
    problems = "\n".join(check_motions(weak).problems)
    assert "kp of 'FR_hip_joint'" in problems and "falls after" in problems


def test_a_thigh_without_range_turns_back_by_half_of_the_knee(tmp_path: Path) -> None:
    robot, _ = draft(dog(thigh_kind="continuous"), tmp_path)
    # The knee is bent by a twentieth of its range of 2 rad beyond -0.5.
    assert robot.default_joint_pos[:3] == (0.0, 0.3, -0.6)
    assert np.array(robot.actuators).tolist() == ["position"] * 12


def test_a_weak_motor_that_is_named_first_changes_no_penalty_of_the_legs():
    weak = replace(GO2, torque_limits=(0.6, *GO2.torque_limits[1:]))
    weights = [quadruped_flat(robot).rewards["joint_torque"].weight for robot in (GO2, weak)]
    assert weights[0] == weights[1]
    strong = replace(GO2, torque_limits=tuple(2.0 * limit for limit in GO2.torque_limits))
    assert quadruped_flat(strong).rewards["joint_torque"].weight == pytest.approx(weights[0] / 4.0)

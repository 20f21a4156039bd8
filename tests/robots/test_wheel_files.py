"""Robot files with wheels at the ends of the legs."""

from pathlib import Path

import numpy as np
import pytest
from dogs import dog, draft

from legged_envs.envs import make_core
from legged_envs.robot_check import raise_gains
from legged_envs.robots import TRON1_WF
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.scene import build_scene
from legged_envs.tasks.velocity import velocity_task

CYLINDER = '<cylinder radius="0.05" length="0.03"/>'


def rolling_dog() -> str:
    """The dog on wheels, whose cylinders lie along the y axis of the foot links."""
    text = dog(foot=CYLINDER, foot_kind="continuous")
    return text.replace(f'<origin xyz="0 0 0"/><geometry>{CYLINDER}',
                        f'<origin xyz="0 0 0" rpy="1.5708 0 0"/><geometry>{CYLINDER}')  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
def test_joints_without_end_at_the_feet_are_wheels(turned: bool, tmp_path: Path) -> None:
    text = rolling_dog()
    if turned:
        # The same wheels in links whose z axis is the axle.
        text = text.replace('rpy="1.5708 0 0"', 'rpy="0 0 0"')
        for leg in ("FL", "FR", "RL", "RR"):
            old = f'<child link="{leg}_foot"/><origin xyz="0 0 -0.2"/><axis xyz="0 1 0"/>'
            new = old.replace(
                '-0.2"/><axis xyz="0 1 0"', '-0.2" rpy="-1.5708 0 0"/><axis xyz="0 0 1"'
            )
            assert old in text
            text = text.replace(old, new)
    robot, gaps = draft(text, tmp_path)
    kinds = {joint: kind for joint, kind in zip(robot.joint_names, robot.actuators, strict=True)}
    wheels = [f"{leg}_foot_joint" for leg in ("FL", "FR", "RL", "RR")]
    assert robot.wheels and {joint for joint in kinds if kinds[joint] == "velocity"} == {*wheels}
    assert robot.foot_radius == pytest.approx(0.05, abs=1e-3)
    index = robot.joint_names.index("FL_foot_joint")
    assert robot.kp[index] == 0.0 and robot.kd[index] == pytest.approx(30 / 20)
    # Each foot turns about its y axis.
    build_scene(robot, SimCfg())
    core = make_core(velocity_task(robot), 4, array="torch")
    core.reset(seed=0)
    assert core.action_space.shape[1] == 16
    action = core.task.actions.terms["wheels"] if hasattr(core.task, "actions") else None
    assert action is None or action.size == 4
    assert "mirror" not in gaps


def test_rolling_wheels_move_the_robot_forwards(tmp_path: Path) -> None:
    robot = raise_gains(draft(rolling_dog(), tmp_path)[0])
    cfg = velocity_task(robot)
    cfg.events = {}
    core = make_core(cfg, 1, array="numpy")
    core.reset(seed=0)
    action = np.zeros(core.action_space.shape, np.float32)
    action[:, -4:] = 0.25  # 2 m/s for an action of 1
    for _ in range(100):
        core.step(action)
    assert float(core.robot.lin_vel_b[0, 0]) == pytest.approx(0.5, abs=0.15)


def test_an_ankle_without_range_is_no_wheel(tmp_path: Path) -> None:
    """The sole is below the joint, so it does not turn about its own middle."""
    text = dog(foot='<sphere radius="0.02"/>', foot_kind="continuous")
    text = text.replace(
        '<origin xyz="0 0 0"/><geometry><sphere', '<origin xyz="0 0 -0.06"/><geometry><sphere'
    )
    robot, _ = draft(text, tmp_path)
    assert not robot.wheels and set(robot.actuators) == {"position"}


def test_tron1_is_drafted_on_wheels(tmp_path: Path) -> None:
    robot, _ = draft_robot(TRON1_WF.path, "tron", tmp_path)
    assert robot.wheels and robot.actuators == TRON1_WF.actuators
    assert robot.foot_radius == pytest.approx(TRON1_WF.foot_radius, abs=1e-3)


def test_a_motor_at_the_hub_of_a_wheel_is_no_foot(tmp_path: Path) -> None:
    text = rolling_dog()
    for leg in ("FL", "FR", "RL", "RR"):
        motor = (
            f'<link name="{leg}_foot_motor"><collision><origin xyz="0 0 -0.02"/><geometry>'
            f'<sphere radius="0.02"/></geometry></collision></link><joint name="{leg}_hub" '
            f'type="fixed"><parent link="{leg}_calf"/><child link="{leg}_foot_motor"/>'
            '<origin xyz="0 0.03 -0.2"/></joint>'
        )
        text = text.replace("</robot>", f"{motor}</robot>")
    robot, _ = draft(text, tmp_path)
    assert robot.wheels and len(robot.foot_names) == 4
    assert "FL_foot_motor" in robot.penalized_bodies

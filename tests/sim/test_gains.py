"""Gains that hold the default pose, and gains that do not."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from legged_envs.robots import GO2, ROBOTS, RobotCfg
from legged_envs.sim import gains
from legged_envs.sim.gains import check_gains, settle


def test_torques_that_carry_the_robot_balance_what_its_joints_give_way() -> None:
    """At rest a servo's torque is kp times its error, and the engine's solution equals statics."""
    sinks, sag, load = settle(GO2)
    np.testing.assert_allclose(load * GO2.torque_limits, np.multiply(GO2.kp, abs(sag)), atol=0.05)
    assert settle(replace(GO2, kp=(400.0,) * 12, kd=(10.0,) * 12))[0] < 0.5 * sinks


SOFT = {"kp": (5.0,) * 12}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (SOFT, r"0\.\d+ m.*'F._calf_joint'.*kp = 5,.*feet, 25 "),
        ({"kp": (0.0,) * 12}, "kp = 0,.*write kp"),
        ({"torque_limits": (23.7, 23.7, 3.0) * 4}, "calf_joint'.* 3 N m.*torque_limits"),
    ],
)
def test_an_environment_refuses_gains_that_do_not_hold_the_default_pose(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"'go2'.*{message}"):
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
    with pytest.raises(ValueError, match=f"'{robot.name}'.*kp"):
        check_gains(replace(robot, **weak))
